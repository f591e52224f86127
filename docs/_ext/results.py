"""Measured numbers on pages come from ``docs/results/*.json``, where ``docs/measure.py`` wrote them.

The role ``{result}`files:key``` shows one value; ``{result}`files:key|.1f``` formats it. The directive
``{result-table} name`` shows the table of a file, with the command that made it and the machine it ran on.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

RESULTS = Path(__file__).parents[1] / "results"


@cache
def load(name: str) -> dict[str, Any]:
    """Return a stored result."""
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def value(text: str) -> str:
    """Return what ``name:key`` or ``name:key|format`` stands for."""
    place, _, form = text.partition("|")
    name, _, key = place.partition(":")
    return format(load(name)["values"][key], form)


def origin(name: str) -> str:
    """Say in a line where a result comes from."""
    found = load(name)
    machine = found["machine"]
    return (
        f"{found['command']} on {machine['date']}: {machine['processor']}, {machine['cores']} cores, Python "
        f"{machine['python']}, NumPy {machine['numpy']}, mechdesign {machine['mechdesign']}"
    )


def markdown(name: str) -> str:
    """Return the table of a result in Markdown, as the README shows it."""
    table = load(name)["table"]
    rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows) + "\n"


class ResultRole(SphinxRole):
    """One number."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return it as text; an unknown name is an error of the page."""
        try:
            return [nodes.Text(value(self.text))], []
        except (KeyError, OSError, ValueError) as error:
            message = self.inliner.reporter.error(f"no stored result {self.text!r}: {error!r}", line=self.lineno)
            return [], [message]


class ResultTable(SphinxDirective):
    """The table of a result and its origin."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return both; the table is parsed as Markdown, so that cells may hold formulas and links."""
        name = self.arguments[0]
        self.env.note_dependency(str(RESULTS / f"{name}.json"))
        parsed = self.parse_text_to_nodes(markdown(name))
        line = nodes.paragraph("", origin(name), classes=["origin"])
        return [*parsed, line]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register role and directive."""
    app.add_role("result", ResultRole())
    app.add_directive("result-table", ResultTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
