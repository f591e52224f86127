"""Pages of HTML that hold everything, pictures included, and ask nothing of the network: what all of them share."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from importlib import resources
from itertools import zip_longest

from matplotlib.figure import Figure

from mechdesign.model._words import plain
from mechdesign.report._explorer import HATCH, framed
from mechdesign.report._scales import ramps
from mechdesign.report._style import inline_svg, narrow

# Columns that a phone has room for.
_FEW = 3
_TAG = re.compile("<[^>]*>")
# Nothing is fetched, and no script runs but the page's own, whatever a label may hold.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, sections: Iterable[str], maps: bool = False) -> str:
    """Return a page with a title, plain text, and sections that are HTML already.

    With `maps` it has the colours of maps, and the script that lets readers ask them; one of the sections then holds
    the data of `mechdesign.report._explorer.data_block`.
    """
    style, script, policy = _file("report.css"), "", _POLICY
    if maps:
        style += f"{ramps(dark=False)}\n@media (prefers-color-scheme: dark) {{\n{ramps(dark=True)}\n}}\n"
        script = _file("report.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            *([HATCH] if maps else []),
            "<main>",
            *sections,
            "</main>",
            *([f"<script>{script}</script>"] if maps else []),
            "</body>",
            "</html>",
            "",
        ]
    )


def section(heading: str, *parts: str) -> str:
    """Return a section under a heading, plain text; the parts are HTML already."""
    return "\n".join(["<section>", f"<h2>{escape(heading)}</h2>", *parts, "</section>"])


def figure(
    picture: Figure | Callable[[], Figure],
    name: str,
    subject: str,
    caption: str,
    hints: Mapping[str, str] | None = None,
) -> str:
    """Return a picture with its caption, under its headline, which is text of the page.

    What draws a picture, in place of one, is asked twice: also for narrow screens (`mechdesign.report._style.narrow`).
    `hints` are those of `mechdesign.report._style.inline_svg`.
    """
    wide = picture() if callable(picture) else picture
    finding = " ".join(wide.get_suptitle().split())
    label = f"{subject}. {finding}."
    drawn = [inline_svg(wide, name, label, hints)]
    if callable(picture):
        with narrow():
            slim = picture()
        drawn = [
            f'<div class="wide-screen">\n{drawn[0]}\n</div>',
            f'<div class="narrow-screen">\n{inline_svg(slim, f"{name}-narrow", label, hints)}\n</div>',
        ]
    return framed(name, finding, drawn, caption)


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], kind: str = "") -> str:
    """Return a table of cells that are HTML already; the first of each row is its head.

    On a narrow screen the rows of a table of many columns become lists, each cell beside the head of its column.
    """
    kind = f"{kind} many".strip() if len(heads) > _FEW else kind
    named = [f' data-head="{_TAG.sub("", head)}"' if len(heads) > _FEW else "" for head in heads[1:]]
    lines = [f'<div class="wide"><table class="{kind}">' if kind else '<div class="wide"><table>']
    if heads:
        lines.append("<thead><tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead>")
    lines.append("<tbody>")
    for first, *rest in rows:
        cells = zip_longest(rest, named[: len(rest)], fillvalue="")
        lines.append(
            f'<tr><th scope="row">{first}</th>' + "".join(f"<td{of}>{cell}</td>" for cell, of in cells) + "</tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table></div>"])


def text(given: str) -> str:
    """Return plain text as HTML."""
    return escape(plain(given))


@functools.cache
def _file(name: str) -> str:
    return resources.files("mechdesign.report").joinpath("templates", name).read_text(encoding="utf-8")
