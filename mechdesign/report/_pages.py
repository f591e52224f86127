"""Pages of HTML that hold everything, pictures included, and ask nothing of the network: what all of them share.

A page is a template of the folder ``templates``, and facts: numbers and sentences without HTML. Whatever a template
writes is escaped, and control characters are left out.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from mechdesign.model._words import plain
from mechdesign.report._scales import ramps
from mechdesign.report._style import Target, on_page, styled
from mechdesign.report._svg import Parts, inline_panels, inline_svg

# Nothing is fetched, and no script runs but the page's own, whatever a label may hold.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Strong(str):
    """Text that stands out."""


def render(template: str, **facts: object) -> str:
    """Return the page that a template makes of facts; text in them is never read as HTML.

    A page with `data` of its maps has the script that lets readers ask them.
    """
    style, script, policy = _file("report.css"), "", _POLICY
    style += f"{ramps(dark=False)}\n@media (prefers-color-scheme: dark) {{\n{ramps(dark=True)}\n}}\n"
    if "data" in facts:
        script = _file("report.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    head = {"style": style, "script": script, "policy": policy}
    return _environment().get_template(template).render(head=head, **facts)


def figure(
    draw: Callable[[], Figure], name: str, subject: str, caption: str = "", parts: Parts | None = None
) -> dict[str, object]:
    """Return the facts of a picture: its finding, which is its headline, its caption, and its drawings.

    It is drawn twice: also for narrow screens (`mechdesign.report._style.on_page`).
    """
    drawn, finding = [], ""
    targets: tuple[tuple[Target, str], ...] = (("page", name), ("narrow page", f"{name}-narrow"))
    for target, own in targets:
        with styled(), on_page(target):
            made = draw()
            finding = " ".join(made.get_suptitle().split())
            drawn.append(inline_svg(made, own, f"{subject}. {finding}.", parts))
    return {"name": name, "finding": finding, "drawn": drawn, "caption": caption, "panels": False}


def panels(draw: Callable[[], Figure], name: str, parts: Parts) -> dict[str, object]:
    """Return the facts of a picture of which the page arranges the panels, side by side where there is room."""
    with styled(), on_page("panels"):
        made = draw()
        drawn = inline_panels(made, name, parts)
    finding = " ".join(made.get_suptitle().split())
    return {"name": name, "finding": finding, "drawn": drawn, "caption": "", "panels": True}


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
    made.tests["strong"] = lambda value: isinstance(value, Strong)
    return made


def _plain(value: object) -> object:
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@functools.cache
def _file(name: str) -> str:
    return resources.files("mechdesign.report").joinpath("templates", name).read_text(encoding="utf-8")
