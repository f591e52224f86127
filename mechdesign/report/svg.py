"""Turn figures into SVG that stands inside a page: same bytes every time, colours that follow light and dark mode."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html import escape
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from mechdesign.report.style import ACCENT
from mechdesign.report.style import INK
from mechdesign.report.style import MUTED
from mechdesign.report.style import RULE
from mechdesign.report.style import styled

__all__ = ["VARIABLES", "inline_svg"]

VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", ACCENT: "--accent"}
"""The variables of the page's style sheet that stand for colours of the figures."""

# What one inch of a picture is on the page: type of 9 points then has 0.8 rem.
_REM_PER_INCH = 6.4
_RASTER_DPI = 150
_COLOUR = re.compile("|".join(VARIABLES))
_FONT = re.compile(r"'DejaVu Sans'[^;]*")
_FRACTION = re.compile(r"(\.\d{2})\d+")
_DROPPED = {"metadata", "style"}


def inline_svg(figure: Figure, name: str, description: str, hints: Mapping[str, str] | None = None) -> str:
    """Return an ``<svg>`` element for a page, with `description` as its alternative text.

    `name` is put before all identifiers, so that several pictures fit in one page. Text stays text, in the page's font.
    `hints` are what browsers show where the pointer rests on a part of the figure, by the identifier of that part (its
    ``gid``). The headline of the figure is left out: pages write it themselves.
    """
    buffer = io.BytesIO()
    with styled():
        figure.savefig(
            buffer, format="svg", dpi=_RASTER_DPI, facecolor="none", metadata={"Date": None}, bbox_inches=_cut(figure)
        )
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root, name, hints or {})
    box = root.attrib["viewBox"]
    inside = "\n".join(ElementTree.tostring(child, encoding="unicode").strip() for child in root)
    width = f"{float(box.split()[2]) / 72 * _REM_PER_INCH:.1f}rem"
    label = escape(description)
    return f'<svg viewBox="{box}" role="img" aria-label="{label}" style="width: {width}">\n{inside}\n</svg>'


def _cut(figure: Figure) -> Bbox:
    """Return what of a figure is below its headline, in inches, and hide the headline."""
    width, height = figure.get_size_inches()
    headline = figure._suptitle  # type: ignore[attr-defined]
    if headline is None or not headline.get_text():
        return Bbox.from_bounds(0, 0, width, height)
    lowest = headline.get_window_extent().y0 / figure.dpi
    headline.set_visible(False)
    return Bbox.from_bounds(0, 0, width, lowest)


def _clean(element: ElementTree.Element, name: str, hints: Mapping[str, str]) -> None:
    """Drop what a page has no use for, and rename identifiers, colours and fonts, in place.

    Inside HTML no namespaces are written: the parser of HTML knows the elements of SVG, and ``href`` serves for links.
    """
    element.tag = _local(element.tag)
    attributes = {_local(key): value for key, value in element.attrib.items()}
    hint: ElementTree.Element | None = None
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            # Groups have identifiers too, but nothing refers to them.
            if element.tag != "g":
                element.set("id", f"{name}-{value}")
            elif value in hints:
                hint = ElementTree.Element("title")
                hint.text = hints[value]
        elif key == "href":
            element.set("href", value if value.startswith("data:") else f"#{name}-{value[1:]}")
        else:
            value = value.replace("url(#", f"url(#{name}-")
            if key in ("d", "x", "y", "transform", "points"):
                value = _FRACTION.sub(r"\1", " ".join(value.split()))
            elif key == "style":
                value = _FONT.sub("var(--font)", _COLOUR.sub(lambda found: f"var({VARIABLES[found[0]]})", value))
            element.set(key, value)
    if element.tag != "text" and element.text:
        element.text = None
    element.tail = None
    for child in list(element):
        if _local(child.tag) in _DROPPED or (_local(child.tag) == "defs" and _is_style(child)):
            element.remove(child)
        else:
            _clean(child, name, hints)
    if hint is not None:
        element.insert(0, hint)


def _is_style(element: ElementTree.Element) -> bool:
    return len(element) > 0 and all(_local(child.tag) in _DROPPED for child in element)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
