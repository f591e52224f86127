"""Overview of a policy graph: its components, excluded and exposed secrets, and a repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._names import named
from mechdesign.graphs._builders import components, constrain, disconnected, edge_array, excluded, isolated, sort_nodes
from mechdesign.graphs._exposure import degree_of_protection, exposed, hull_between
from mechdesign.graphs._hull import SensitivityHull, as_points
from mechdesign.graphs._repairs import Method, Repair, repair
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph


@dataclass(frozen=True, eq=False)
class PlaceOverview:
    """Properties of a policy graph that depend on the places of the secrets.

    Attributes:
        body: The sensitivity hull of the whole graph.
        exposed: The sorted exposed nodes for each of the hulls "component" and "graph".
        degrees: The degree of protection of each node, in ascending order of the nodes.
        judged: The hull, "component" or "graph", on which `degrees` and `repair` are based.
        repair: Added edges that protect the exposed nodes. None if no node is exposed, if the graph has a single node,
            or if no repair was requested.
    """

    body: SensitivityHull
    exposed: dict[str, Integers]
    degrees: dict[int, int]
    judged: str
    repair: Repair | None


@dataclass(frozen=True, eq=False)
class Overview:
    """Properties of a policy graph on the possible secrets.

    Attributes:
        graph: The policy graph on the possible secrets.
        components: The connected components of the graph, each sorted, in the order of their first nodes.
        excluded: The impossible secrets, sorted.
        isolated: The nodes without an edge, sorted; an optimal channel may reveal them.
        disconnected: The isolated nodes that have neighbours in the policy graph on all secrets.
        geometry: Properties that depend on places; None if the secrets have no places.

    >>> overview(nx.path_graph(3), support=[0, 2]).disconnected.tolist()
    [0, 2]
    """

    graph: nx.Graph
    components: tuple[Integers, ...]
    excluded: Integers
    isolated: Integers
    disconnected: Integers
    geometry: PlaceOverview | None

    def to_json(self) -> dict[str, Any]:
        """Return all properties as JSON values; nodes are indices of secrets."""
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
            "hull": _hull_values(shape.body),
            "exposed": {name: nodes.tolist() for name, nodes in shape.exposed.items()},
            "degree_of_protection": {"hull": shape.judged, "of": {str(k): v for k, v in shape.degrees.items()}},
            "repair": None if shape.repair is None else _repair_values(shape.repair),
        }


def overview(
    graph: nx.Graph,
    points: Domain | ArrayLike | None = None,
    support: Sequence[int] | Integers | None = None,
    *,
    hull: Literal["component", "graph"] = "component",
    method: Method | None = "area",
) -> Overview:
    """Return the properties of a policy graph on the possible secrets.

    Args:
        graph: The policy graph.
        points: The places f(s): a domain, or an array (n, d). If the domain has no places, `geometry` is None.
        support: The possible secrets; None means all nodes.
        hull: The hull of the mechanism, "component" or "graph"; see `exposed`.
        method: The method of `repair` for exposed nodes; None for no repair.

    Returns:
        The overview.

    Raises:
        InputError: An argument is invalid; see `exposed` and `repair`.

    >>> overview(nx.path_graph(3)).to_json()["edges"]
    2
    """
    check_graph(graph)
    possible = sort_nodes(graph) if support is None else named(support, "support", dtype=np.int64)
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


def _geometry(
    graph: nx.Graph, places: Floats, hull: Literal["component", "graph"], method: Method | None
) -> PlaceOverview:
    found = {"component": exposed(places, graph, "component"), "graph": exposed(places, graph, "graph")}
    degrees = degree_of_protection(places, graph, hull=hull)
    assert isinstance(degrees, dict)
    repaired = None
    if method is not None and found[hull].size and len(graph) > 1:
        repaired = repair(places, graph, method, hull=hull)
    return PlaceOverview(hull_between(places, graph), found, degrees, hull, repaired)


def _hull_values(body: SensitivityHull) -> dict[str, Any]:
    return {"dimension": body.dimension, "volume": body.volume, "vertices": body.vertices.tolist()}


def _repair_values(made: Repair) -> dict[str, Any]:
    return {
        "method": made.method,
        "hull": made.hull,
        "added": [list(edge) for edge in made.added],
        "order": list(made.order),
        "hull_before": _hull_values(made.hull_before),
        "hull_after": _hull_values(made.hull_after),
        "edges": edge_array(made.graph).tolist(),
    }
