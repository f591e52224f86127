"""Common parts of HTML pages, which contain all their figures and load nothing from the network.

A page is a template of the folder ``templates``, filled with numbers and sentences without HTML. All values are
escaped, and control characters are left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from mechdesign.certify._texts import csv_text
from mechdesign.model._words import plain
from mechdesign.report._explorer import POLICY
from mechdesign.report._scales import ramps
from mechdesign.report._style import Target, on_page, report_style
from mechdesign.report._svg import Parts, inline_panels, inline_svg

# The page loads nothing and runs only the script of the explorer, whatever the labels contain.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Strong(str):
    """Text that a page shows with emphasis."""


def typeset(text: str) -> Markup:
    """Return a text as HTML with lowered indices: the S of ε_S, for example.

    >>> str(typeset("ε_S < 1"))
    'ε<sub>S</sub> &lt; 1'
    """
    return Markup(re.sub(r"ε_(\w)", r"ε<sub>\1</sub>", str(escape(plain(text)))))


def render(template: str, **facts: object) -> str:
    """Return the page of a template filled with facts, whose text is escaped."""
    style = _file("report.css")
    style += f"{ramps(dark=False)}\n@media (prefers-color-scheme: dark) {{\n{ramps(dark=True)}\n}}\n"
    head = {"style": style, "policy": f"{_POLICY}; {POLICY}"}
    return _environment().get_template(template).render(head=head, **facts)


def figure(
    draw: Callable[[], Figure],
    name: str,
    subject: str,
    caption: str = "",
    parts: Parts | None = None,
    data: Sequence[Sequence[str]] = (),
) -> dict[str, object]:
    """Return the facts of a figure: its headline, its caption, its drawings and its data.

    The figure is drawn for wide and for narrow screens (`mechdesign.report._style.on_page`). `data` are the numbers
    that it shows, below a row of heads: the page contains them as a table and as a CSV file.
    """
    drawn, finding = [], ""
    targets: tuple[tuple[Target, str], ...] = (("page", name), ("narrow page", f"{name}-narrow"))
    for target, own in targets:
        with report_style(), on_page(target):
            made = draw()
            finding = " ".join(made.get_suptitle().split())
            drawn.append(inline_svg(made, own, f"{subject}. {finding}.", parts))
    shown = {"name": name, "finding": finding, "drawn": drawn, "caption": caption, "panels": False}
    return {**shown, "data": data, "csv": _write_csv(data)}


def panels(draw: Callable[[], Figure], name: str, parts: Parts) -> dict[str, object]:
    """Return the facts of a figure whose panels the page arranges, side by side if the screen is wide enough."""
    with report_style(), on_page("panels"):
        made = draw()
        drawn = inline_panels(made, name, parts)
    finding = " ".join(made.get_suptitle().split())
    return {"name": name, "finding": finding, "drawn": drawn, "caption": "", "panels": True, "data": ()}


def _write_csv(data: Sequence[Sequence[str]]) -> str:
    """Return the address of a CSV file that the page itself contains; it writes ∞ as programs read it."""
    rows = [[plain("inf" if cell == "∞" else cell) for cell in row] for row in data]
    return f"data:text/csv;charset=utf-8,{quote(csv_text(rows))}"


@functools.cache
def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        finalize=_plain,
        loader=PackageLoader("mechdesign.report"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["anchor"] = _anchor
    made.tests["strong"] = lambda value: isinstance(value, Strong)
    return made


def _anchor(heading: str) -> str:
    """Return the identifier of the section with a heading; figures have identifiers without a prefix."""
    return "section-" + "-".join(re.findall(r"\w+", heading.lower()))


def _plain(value: object) -> object:
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@functools.cache
def _file(name: str) -> str:
    return resources.files("mechdesign.report").joinpath("templates", name).read_text(encoding="utf-8")
