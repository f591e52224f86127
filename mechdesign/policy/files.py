"""The files of an overview of a policy graph: facts, edges and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdesign.base._atomic import write_file
from mechdesign.certify._texts import csv_text
from mechdesign.graphs._builders import edge_array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mechdesign.model._domain import Domain
    from mechdesign.graphs._overview import Overview

__all__ = ["EDGES", "FACTS", "PICTURE", "picture", "write_overview"]

FACTS, EDGES, PICTURE = "policy.json", "policy-edges.csv", "policy.svg"


def picture(domain: Domain, found: Overview) -> Figure:
    """Return the picture of a policy graph on the map of its secrets."""
    from mechdesign.report.policy import Shown
    from mechdesign.report.policy import policy_picture

    shape = found.geometry
    assert shape is not None
    repaired = shape.repair
    shown = Shown(
        excluded=found.excluded.tolist(),
        alone=found.isolated.tolist(),
        exposed=shape.exposed[shape.judged].tolist(),
        added=() if repaired is None else repaired.added,
        hull=shape.body.vertices,
        hull_after=None if repaired is None else repaired.hull_after.vertices,
    )
    return policy_picture(domain, edge_array(found.graph), shown)


def write_overview(
    directory: Path, domain: Domain, found: Overview, facts: dict[str, Any], drawn: Figure | None
) -> None:
    """Write the facts, the edges of the repaired graph and, where there is one, the picture into a folder."""
    directory.mkdir(parents=True, exist_ok=True)
    # The facts go first and come last: where they stand, the other files are of the same run. The edges, which a
    # specification may name, are replaced at once.
    for name in (FACTS, PICTURE):
        (directory / name).unlink(missing_ok=True)
    graph = found.graph
    if found.geometry is not None and found.geometry.repair is not None:
        graph = found.geometry.repair.graph
    rows = [["source", "target", "added"]]
    for i, j in sorted(sorted(edge) for edge in graph.edges):
        rows.append([domain.labels[i], domain.labels[j], "no" if found.graph.has_edge(i, j) else "yes"])
    write_file(directory / EDGES, [csv_text(rows).encode()])
    if drawn is not None:
        from mechdesign.report.style import save_figure

        save_figure(drawn, directory / PICTURE)
    write_file(directory / FACTS, [json.dumps(facts, indent=2).encode()])
