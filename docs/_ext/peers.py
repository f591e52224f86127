"""``{peer-table}``: the tight ε of what solvers returned, from the stored runs of the benchmark."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"

# Families of channels with one ε, and that ε; problem sizes at which some peers still finish.
_NOMINAL = {"grid": 0.6, "roads": 1.0, "blocks": 1.0}
_SHOWN = (("grid", "16"), ("grid", "36"), ("roads", "16"), ("roads", "49"), ("blocks", "16"), ("blocks", "49"))


def peer_table() -> str:
    """Return a table in Markdown: a row for each solver, and how far its tight ε is from the ε that was asked for."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for solver, place, row in _rows():
        if place in _SHOWN:
            found.setdefault(solver, {})[place] = _entry(row, _NOMINAL[place[0]])
    lines = ["| solver | " + " | ".join(f"{family} {n}" for family, n in _SHOWN) + " |"]
    lines.append("| --- " * (len(_SHOWN) + 1) + "|")
    for solver, entries in found.items():
        lines.append(f"| {solver} | " + " | ".join(entries.get(place, "") for place in _SHOWN) + " |")
    return "\n".join(lines) + "\n"


def _rows() -> Iterator[tuple[str, tuple[str, str], dict[str, str]]]:
    for name in ("bench-small", "bench-medium"):
        with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                solver = f"{row['solver']} ({row['settings']})" if row.get("settings") else row["solver"]
                yield solver, (row["family"], row["n"]), row
    with (RESULTS / "peers-qif.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["solver"] == "qif":
                yield "qif", ("grid", row["n"]), row


def _entry(row: dict[str, str], nominal: float) -> str:
    if row["claimed"] == "timeout" or not row["tight_epsilon"]:
        return "no answer"
    tight = float(row["tight_epsilon"])
    if math.isinf(tight):
        return "**∞**"
    excess = tight / nominal - 1
    return "holds" if tight <= nominal else f"+{excess:.0e}"


class PeerTable(SphinxDirective):
    """``{peer-table}`` shows the table."""

    def run(self) -> list[nodes.Node]:
        """Return it."""
        return self.parse_text_to_nodes(peer_table())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("peer-table", PeerTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
