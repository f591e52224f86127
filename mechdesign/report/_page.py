"""HTML pages: a title, a verdict, and sections with prose, tables, code and figures; a page loads nothing.

All text is escaped, and control characters are left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from mechdesign.base._arrays import Floats
from mechdesign.certify._texts import csv_text
from mechdesign.model._domain import Domain
from mechdesign.model._words import plain
from mechdesign.report._explorer import POLICY
from mechdesign.report._maps import name_of
from mechdesign.report._style import page_svg
from mechdesign.report._verdicts import Verdict

Row = Sequence[str]
_MOST_ROWS = 40


class Strong(str):
    """Text that a page shows with emphasis."""


@dataclass(frozen=True)
class Prose:
    """Sentences as a paragraph, or as a list."""

    sentences: Sequence[str]
    form: str = "paragraph"


@dataclass(frozen=True)
class Code:
    """Lines of code, under a summary if they are folded."""

    text: str
    summary: str = ""


@dataclass(frozen=True)
class Table:
    """Rows below heads; without heads, the first cell of each row is its head."""

    rows: Sequence[Row]
    heads: Row = ()

    @property
    def csv(self) -> str:
        """The address of a CSV file that the page itself contains; it writes ∞ as programs read it."""
        rows = [[plain("inf" if cell == "∞" else cell) for cell in row] for row in (self.heads, *self.rows)]
        return f"data:text/csv;charset=utf-8,{quote(csv_text(rows))}"


@dataclass(frozen=True)
class Picture:
    """A figure with its name, title, description and numbers."""

    name: str
    title: str
    said: str
    figure: Figure = field(compare=False)
    numbers: Table = Table(())

    @property
    def inside(self) -> Markup:
        """What is inside the ``<svg>`` element of the figure."""
        return Markup(page_svg(self.figure, self.name))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the figure in points."""
        width, height = (72 * self.figure.get_size_inches()).tolist()
        return width, height


@dataclass(frozen=True)
class Section:
    """A heading with what is below it; markup is inserted without escaping."""

    heading: str
    parts: Sequence[Prose | Code | Table | Picture | Markup]


def page(
    title: str, verdict: Verdict, sections: Sequence[Section], warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Return a page as HTML; equal values give equal text.

    Args:
        title: The title.
        verdict: The verdict.
        sections: The sections; one with markup may run the script of the explorer.
        warnings: Sentences below the verdict, each of them marked.
        notes: Sentences below the warnings.

    Returns:
        The text of the page.
    """
    policy = ["default-src 'none'", "img-src data:", "style-src 'unsafe-inline'"]
    if any(isinstance(part, Markup) for each in sections for part in each.parts):
        policy.append(POLICY)
    start, colon, rest = str(verdict).partition(":")
    facts = {"verdict": (start + colon, rest), "good": verdict.good, "warnings": warnings, "notes": notes}
    template = _environment().get_template("page.html")
    return template.render(title=plain(title).strip(), policy="; ".join(policy), sections=sections, **facts)


def first_rows(rows: Sequence[Row], heads: Row) -> Table:
    """Return the first rows of a long table, whose first head then says how many there are."""
    first = heads[0] if len(rows) <= _MOST_ROWS else f"{heads[0]} (the first {_MOST_ROWS} of {len(rows)})"
    return Table(rows[:_MOST_ROWS], (first, *heads[1:]))


def members_table(
    what: str, domain: Domain | None, columns: Mapping[str, Floats], write: Callable[[float], str]
) -> Table:
    """Return the numbers of the members of a domain, at most those with the largest numbers."""
    numbers = np.column_stack(list(columns.values()))
    chosen = np.sort(np.argsort(-numbers.max(axis=1), kind="stable")[:_MOST_ROWS]).tolist()
    first = what if len(numbers) <= _MOST_ROWS else f"{what} (the {_MOST_ROWS} largest of {len(numbers)})"
    rows = [(name_of(domain, index), *map(write, numbers[index].tolist())) for index in chosen]
    return Table(rows, (first, *columns))


@functools.cache
def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        finalize=lambda value: plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        loader=PackageLoader("mechdesign.report"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["anchor"] = lambda heading: "section-" + "-".join(re.findall(r"\w+", heading.lower()))
    made.filters["kind"] = lambda part: type(part).__name__
    made.tests["strong"] = lambda value: isinstance(value, Strong)
    return made
