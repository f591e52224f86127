"""What a policy graph says, counted: who is joined, who is left out, who is exposed, and what would protect them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_array
from mechdesign.graphs._builders import check_graph, edge_array
from mechdesign.graphs._constraints import components, constrain, disconnected, excluded, isolated
from mechdesign.graphs._exposure import degree_of_protection, exposed, hull_between
from mechdesign.graphs._geometry._hull import SensitivityHull, as_points
from mechdesign.graphs._repairs import Method, Repair, repair
from mechdesign.model._domain import Domain


@dataclass(frozen=True, eq=False)
class Geometry:
    """What the places of the secrets add to a policy graph.

    Attributes:
        body: the sensitivity hull of the whole graph.
        exposed: for each hull, "component" and "graph", the nodes that a mechanism fitted to it exposes, sorted.
        degrees: for each node of the graph its degree of protection, in ascending order of the nodes.
        judged: the hull, "component" or "graph", by which degrees and repair were judged.
        repair: the edges that protect the exposed nodes; None where none is exposed, where a single node is possible,
            and where it was not asked for.
    """

    body: SensitivityHull
    exposed: dict[str, Integers]
    degrees: dict[int, int]
    judged: str
    repair: Repair | None


@dataclass(frozen=True, eq=False)
class Overview:
    """What a policy graph says of the possible secrets.

    Attributes:
        graph: the policy graph on the possible secrets.
        components: its connected components, each sorted, in the order of their first nodes.
        excluded: the secrets that are not possible, sorted.
        isolated: the nodes without an edge, sorted; an optimal channel may tell them.
        disconnected: those of them that have neighbours which are not possible.
        geometry: what needs places; None where the secrets have none.
    """

    graph: nx.Graph
    components: tuple[Integers, ...]
    excluded: Integers
    isolated: Integers
    disconnected: Integers
    geometry: Geometry | None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values; nodes are indices of secrets."""
        found: dict[str, Any] = {
            "nodes": self.graph.number_of_nodes(),
            "edges": self.graph.number_of_edges(),
            "components": [nodes.tolist() for nodes in self.components],
            "excluded": self.excluded.tolist(),
            "isolated": self.isolated.tolist(),
            "disconnected": self.disconnected.tolist(),
        }
        if self.geometry is None:
            return found | dict.fromkeys(("hull", "exposed", "degree_of_protection", "repair"))
        shape = self.geometry
        return found | {
            "hull": _described(shape.body),
            "exposed": {name: nodes.tolist() for name, nodes in shape.exposed.items()},
            "degree_of_protection": {"hull": shape.judged, "of": {str(k): v for k, v in shape.degrees.items()}},
            "repair": None if shape.repair is None else _repaired(shape.repair),
        }


def overview(
    graph: nx.Graph,
    points: Domain | ArrayLike | None = None,
    support: Sequence[int] | Integers | None = None,
    *,
    hull: Literal["component", "graph"] = "component",
    method: Method | None = "area",
) -> Overview:
    """Return what a policy graph says, of the secrets in `support` where not all are possible.

    `points` holds the places f(s) of the secrets, a domain or an array (n, d); without them nothing is said of hulls.
    `hull` is the one that the noise is fitted to, and `method` how exposed nodes are to be protected, None not at all;
    see `exposed` and `repair`. Raises `InputError` as these do.
    """
    check_graph(graph)
    possible = np.array(sorted(graph), dtype=np.int64) if support is None else as_array(support, "support", np.int64)
    kept = constrain(graph, possible)
    places: Floats | None = None
    if points is not None and not (isinstance(points, Domain) and points.points.shape[1] == 0):
        places = as_points(points)
    return Overview(
        kept,
        tuple(components(kept)),
        excluded(graph, possible),
        isolated(kept),
        disconnected(graph, possible),
        None if places is None else _geometry(kept, places, hull, method),
    )


def _geometry(graph: nx.Graph, places: Floats, hull: Literal["component", "graph"], method: Method | None) -> Geometry:
    found = {"component": exposed(places, graph, "component"), "graph": exposed(places, graph, "graph")}
    degrees = degree_of_protection(places, graph, hull=hull)
    assert isinstance(degrees, dict)
    repaired = None
    if method is not None and found[hull].size and len(graph) > 1:
        repaired = repair(places, graph, method, hull=hull)
    return Geometry(hull_between(places, graph), found, degrees, hull, repaired)


def _described(body: SensitivityHull) -> dict[str, Any]:
    return {"dimension": body.dimension, "volume": body.volume, "vertices": body.vertices.tolist()}


def _repaired(made: Repair) -> dict[str, Any]:
    return {
        "method": made.method,
        "hull": made.hull,
        "added": [list(edge) for edge in made.added],
        "order": list(made.order),
        "hull_before": _described(made.hull_before),
        "hull_after": _described(made.hull_after),
        "edges": edge_array(made.graph).tolist(),
    }
