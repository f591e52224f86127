"""Pages of HTML that hold everything, pictures included, and ask nothing of the network: what all of them share."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from html import escape
from importlib import resources

from matplotlib.figure import Figure

from mechdesign.report.svg import inline_svg
from mechdesign.report.words import plain

__all__ = ["document", "figure", "section", "table", "text"]

# No script runs in the page and nothing is fetched, whatever a label may hold.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, sections: Iterable[str]) -> str:
    """Return a page with a title, plain text, and sections that are HTML already."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_style()}</style>",
            "</head>",
            "<body>",
            "<main>",
            *sections,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def section(heading: str, *parts: str) -> str:
    """Return a section under a heading, plain text; the parts are HTML already."""
    return "\n".join(["<section>", f"<h2>{escape(heading)}</h2>", *parts, "</section>"])


def figure(picture: Figure, name: str, subject: str, caption: str) -> str:
    """Return a picture with its caption; its headline is what readers without eyes are told."""
    finding = " ".join(picture.get_suptitle().split())
    drawn = inline_svg(picture, name, f"{subject}. {finding}.")
    return f'<figure id="{name}">\n{drawn}\n<figcaption>{text(caption)}</figcaption>\n</figure>'


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], kind: str = "") -> str:
    """Return a table of cells that are HTML already; the first of each row is its head."""
    lines = [f'<div class="wide"><table class="{kind}">' if kind else '<div class="wide"><table>']
    if heads:
        lines.append("<thead><tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead>")
    lines.append("<tbody>")
    for first, *rest in rows:
        lines.append(f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>")
    return "\n".join([*lines, "</tbody>", "</table></div>"])


def text(given: str) -> str:
    """Return plain text as HTML."""
    return escape(plain(given))


@functools.cache
def _style() -> str:
    return resources.files("mechdesign.report").joinpath("report.css").read_text(encoding="utf-8")
