"""Sensitivity hulls of policy graphs: of a whole graph, or of each connected component."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.geometry.body import upright
from mechdesign.geometry.hull import SensitivityHull
from mechdesign.geometry.hull import as_points
from mechdesign.geometry.hull import hull_of
from mechdesign.graphs.check import check_graph
from mechdesign.graphs.check import edge_array
from mechdesign.graphs.constraint import components
from mechdesign.graphs.constraint import membership
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number
from mechdesign.model._numbers import positive
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_indices

__all__ = ["component_hulls", "hull_between", "hull_level", "hulls_between", "sensitivity_hull"]


def __dir__() -> list[str]:
    return sorted(__all__)


def sensitivity_hull(points: Domain | ArrayLike, graph: nx.Graph) -> SensitivityHull:
    """Return the sensitivity hull of a whole policy graph (DPHMM, Definition 5.1).

    `points` are the answers f(s): a domain with places, or an array of shape (n, d); the nodes of `graph` are indices
    into them. For PGLP's hull of each component see `component_hulls`. A graph without edges gives K = {0}.
    """
    return hull_between(as_points(points), graph)


def hull_between(places: Floats, graph: nx.Graph) -> SensitivityHull:
    """Return the sensitivity hull of a graph on places that are checked already, shape (n, d)."""
    check_graph(graph, len(places))
    edges = edge_array(graph)
    return hull_of(places[edges[:, 0]] - places[edges[:, 1]])


def component_hulls(points: Domain | ArrayLike, graph: nx.Graph) -> list[SensitivityHull]:
    """Return the sensitivity hull of each connected component (PGLP, Definition 8), in the order of `components`.

    Components whose differences are the same to the bit share one object; nodes without edges share K = {0}.
    """
    return hulls_between(as_points(points), graph)


def hulls_between(places: Floats, graph: nx.Graph) -> list[SensitivityHull]:
    """Return the sensitivity hull of each component of a graph on places that are checked already, shape (n, d)."""
    check_graph(graph, len(places))
    parts, edges = components(graph), edge_array(graph)
    owner = membership(parts, len(places))[edges[:, 0]]
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(parts) + 1))
    differences = upright((places[edges[:, 0]] - places[edges[:, 1]])[order])
    known: dict[bytes, SensitivityHull] = {}
    hulls = []
    for first, last in itertools.pairwise(starts.tolist()):
        distinct = np.unique(differences[first:last], axis=0)
        key = distinct.tobytes()
        if key not in known:
            known[key] = hull_of(distinct)
        hulls.append(known[key])
    return hulls


def hull_level(
    points: Domain | ArrayLike, hull: SensitivityHull, epsilon: Number, *, support: ArrayLike | None = None
) -> float:
    """Return ε max ‖f(s_j) − f(s_k)‖_K over the states in `support`, all unless given (DPHMM, Theorems 5.3 and 6.3).

    Infinite where two places differ by a vector off the span of K.
    """
    places = as_points(points)
    chosen = places if support is None else places[as_indices(support, "support", len(places))]
    budget = float(positive(epsilon, "epsilon"))
    if len(chosen) == 0 or math.isinf(hull.norm(chosen - chosen[0]).max()):
        return 0.0 if len(chosen) == 0 else math.inf
    # The K-norm of a difference is the largest over the facets, and on each the extremes are farthest apart.
    heights = chosen @ hull.facets.T
    return budget * float((heights.max(axis=0) - heights.min(axis=0)).max(initial=0.0))
