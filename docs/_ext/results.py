"""Measured numbers on pages come from ``docs/results/*.json``, where ``docs/measure.py`` wrote them.

The role ``{result}`files:key``` shows one value; ``{result}`files:key|.1f``` formats it. The directive
``{result-table} name`` shows the table of a file, with the command that made it and the machine it ran on.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole
from stored import RESULTS, markdown, origin, value


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
