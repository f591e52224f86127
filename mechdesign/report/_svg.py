"""Figures as inline SVG of a page: text remains text, and colours follow light and dark mode.

The ``gid`` of an artist is its role on a page: see `GROUPS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.figure import Figure

from mechdesign.report._canvas import PageCanvas
from mechdesign.report._scales import colour_classes
from mechdesign.report._style import ACCENT, INK, MUTED, RULE, report_style

GROUPS = ("values", "numbers", "ramp", "mark", "box")
"""Roles of artists: members of a map, their numbers, steps of a colour bar, marks, the frame for the pointer."""

VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", ACCENT: "--accent"}
"""Variables of the page's style sheet for colours of the figures."""

# Width, in rem, that one inch of a figure has on the page; text of 9 points is then 0.8 rem high.
_REM_PER_INCH = 6.4
_COLOUR = re.compile("|".join(VARIABLES))
_TICK = ["fill: var(--muted)", "stroke: var(--muted)", "stroke-width: 0.8"]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_LONG = re.compile(r"\d+\.\d{2,}")
# Styles that are left out, because the style sheet sets them for all text of figures, or because they have no effect.
_USUAL = {"font-size: 8.5px", "fill: var(--ink)", "stroke-linejoin: miter", "stroke-linecap: butt"}


Parts = Mapping[str, Mapping[str, str]]
"""Further attributes of a figure's parts, by the ``gid`` of the part; the attribute ``title`` becomes a tooltip."""


def inline_svg(figure: Figure, name: str, description: str, parts: Parts | None = None) -> str:
    """Return an ``<svg>`` element for a page, with `description` as its alternative text.

    All identifiers start with `name`, so that one page can contain several figures. The headline of the figure is left
    out, since pages show it in HTML.
    """
    root, whole = _draw(figure)
    said = figure._suptitle  # type: ignore[attr-defined]
    height = said.get_window_extent().y0 if said is not None and said.get_text() else whole
    box = (0.0, whole - height, 72 * figure.get_figwidth(), height)
    return _frame(root, box, _Page(name, parts or {}), f'role="img" aria-label="{escape(description)}"')


def inline_panels(figure: Figure, name: str, parts: Parts | None = None) -> list[str]:
    """Return an ``<svg>`` element for each panel of a figure, its colour bar and its legend; the page arranges them.

    `parts` contains descriptions for screen readers. See `inline_svg`.
    """
    panels = [*(axes for axes in figure.axes if axes.get_visible()), *figure.legends]
    for number, each in enumerate(panels):
        if each.get_gid() is None:
            each.set_gid(f"panel-{number}")
    root, whole = _draw(figure)
    with report_style():
        boxes = {each: each.get_tightbbox() for each in panels}
    drawn = {group.get("id"): group for group in root.iter() if _local(group.tag) == "g"}
    found = []
    for each in panels:
        if each.get_gid() == "bar":
            found.append('<span class="break"></span>')
        seen = boxes[each]
        assert seen is not None
        box = (seen.x0 - 1.0, whole - seen.y1 - 1.0, seen.width + 2.0, seen.height + 2.0)
        inside = Element("svg")
        inside.append(drawn[each.get_gid()])
        found.append(_frame(inside, box, _Page(name, parts or {}), ""))
    shared = Element("svg")
    shared.extend(child for child in root if _local(child.tag) == "defs")
    return [*found, _frame(shared, (0.0, 0.0, 0.0, 0.0), _Page(name, {}), 'class="defs" aria-hidden="true"')]


def _draw(figure: Figure) -> tuple[Element, float]:
    """Draw a figure as SVG, and return it with its height."""
    figure.patch.set_visible(False)
    with report_style():
        canvas = figure.canvas if isinstance(figure.canvas, PageCanvas) else PageCanvas(figure)
        return ElementTree.fromstring(canvas.draw_svg()), 72 * figure.get_figheight()


def _frame(root: Element, box: tuple[float, float, float, float], page: _Page, attributes: str) -> str:
    found = [each for child in root for each in _clean(child, page)]
    inside = "".join(ElementTree.tostring(each, encoding="unicode").replace(" />", "/>") + "\n" for each in found)
    seen = " ".join(f"{value:.1f}" for value in box)
    return f'<svg viewBox="{seen}" {attributes} style="width: {box[2] / 72 * _REM_PER_INCH:.1f}rem">\n{inside}</svg>'


class _Page(NamedTuple):
    name: str
    parts: Parts


def _clean(element: Element, page: _Page) -> Iterator[Element]:
    """Yield an element reduced to its use on a page: without groups that have no role, with new identifiers and styles.

    SVG inside HTML needs no namespaces, and uses ``href`` for links.
    """
    tag, identity = _local(element.tag), element.get("id", "")
    kind = identity.partition(" ")[0]
    if tag in ("metadata", "style") or kind == "headline":
        return
    if tag == "g" and identity in ("values", "ramp"):
        yield _members(element, kind)
        return
    if tag == "g" and kind == "box":
        (path,) = element
        yield Element("path", {"class": kind, "d": _trim_numbers(path.get("d", ""))})
        return
    known = {"class": kind} if tag == "g" and kind in GROUPS else {}
    made = Element(tag, known | dict(_attributes(element, page.name)))
    made.text = element.text if tag == "text" else None
    said = page.parts.get(identity, {}) if tag == "g" else {}
    made.attrib |= {key: value for key, value in said.items() if key != "title"}
    if "title" in said:
        ElementTree.SubElement(made, "title").text = said["title"]
    made.extend(_gather([each for child in element for each in _clean(child, page)]))
    if tag == "g" and not made.attrib and not said:
        yield from made
    elif len(made) or made.text or (tag not in ("g", "defs") and made.get("style") != "fill: none"):
        yield made


def _attributes(element: Element, name: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a page needs; colours become variables, and steps of a scale become classes."""
    tag = _local(element.tag)
    for key, value in element.attrib.items():
        key = _local(key)
        if key == "style":
            yield from _style_of(tag, value, name)
        elif key == "id":
            # The identifiers of groups are left out, because nothing refers to them.
            if tag != "g":
                yield "id", f"{name}-{value}"
        elif key == "href":
            yield key, value if value.startswith("data:") else f"#{name}-{value[1:]}"
        elif not value.startswith("rotate(-0 "):
            value = value.replace("url(#", f"url(#{name}-")
            yield (
                key,
                _trim_numbers(value) if key in ("d", "x", "y", "transform", "points", "width", "height") else value,
            )


def _style_of(tag: str, style: str, name: str) -> Iterator[tuple[str, str]]:
    classes, kept = colour_classes(), []
    for each in style.split("; "):
        key, _, value = each.partition(": ")
        if key == "fill" and value in classes:
            yield "class", classes[value]
        elif not key.startswith("font-family") and (said := _COLOUR.sub(_variable, each)) not in _USUAL:
            kept.append(said.replace("url(#", f"url(#{name}-"))
    if kept != _TICK:
        yield from [("style", ";".join(kept).replace(": ", ":"))] if kept else []
    elif tag != "use":
        yield "class", "tick"


def _variable(found: re.Match[str]) -> str:
    return f"var({VARIABLES[found[0]]})"


def _trim_numbers(numbers: str) -> str:
    return _LONG.sub(lambda found: f"{float(found[0]):.1f}", " ".join(numbers.split()))


def _gather(children: list[Element]) -> list[Element]:
    """Return the elements, with all members of a map in the first group of their role."""
    kept: list[Element] = []
    first: Element | None = None
    for child in children:
        if child.tag == "g" and child.get("class") == "values":
            if first is not None:
                first.extend(child)
                continue
            first = child
        kept.append(child)
    return kept


def _members(group: Element, kind: str) -> Element:
    """Return cells, bars or points as one group: rectangles of one colour as one path, and points as circles."""
    made = Element("g", {"class": kind})
    known = {path.get("id"): path.get("d", "") for path in group.iter() if path.get("id")}
    drawn: dict[str, list[str]] = {}
    for element in group.iter():
        style = element.get("style", "")
        link = next((value[1:] for key, value in element.attrib.items() if _local(key) == "href"), "")
        shape = known.get(link, "") if link else element.get("d", "") if element.get("id") not in known else ""
        if not shape:
            continue
        x, y = (
            [float(value) + float(element.get(key, 0)) for value in _NUMBER.findall(shape)[start::2]]
            for key, start in (("x", 0), ("y", 1))
        )
        low, high, width, height = min(x), min(y), max(x) - min(x), max(y) - min(y)
        fill = next((part[6:] for part in style.split("; ") if part.startswith("fill: ")), "")
        if fill == "none" and "C" not in shape:
            # A cell without a colour shows the hatch below it.
            continue
        colour = colour_classes().get(fill, {"none": "hollow", ACCENT: "mark"}.get(fill, ""))
        if "C" in shape:
            place = {"cx": low + width / 2, "cy": high + height / 2, "r": width / 2}
            attributes = {key: f"{value:.1f}" for key, value in place.items()}
            ElementTree.SubElement(made, "circle", {"class": colour, **attributes})
        else:
            corner = f"M{low:.1f} {high:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z"
            drawn.setdefault(colour, []).append(corner.replace(".0", ""))
    for colour, shapes in drawn.items():
        ElementTree.SubElement(made, "path", {"class": colour, "d": "".join(shapes)})
    return made


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
