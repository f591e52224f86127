"""d-privacy on a planar graph like a road network."""

from __future__ import annotations

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import prior_on
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._metric import MetricPrivacy

__all__ = ["FAMILY"]

EPSILON = "1"
# Roads per crossing: street networks have some 1.3 to 1.6, a Delaunay triangulation nearly 3, a tree 1.
_DEGREE = 1.5


def make(n: int, seed: int) -> Problem:
    """Return d-privacy in travel distance between n crossings: a random planar graph with 1.5 n roads.

    The roads are a shortest spanning tree of random points and the shortest further edges of their triangulation.
    """
    rng = np.random.default_rng([seed, n])
    # About one crossing for each unit of area; whole thousandths keep sums of lengths exact.
    points = np.unique(np.round(rng.uniform(0, n**0.5, (n, 2)), 3), axis=0)
    triangles = Delaunay(points).simplices
    edges = {tuple(sorted((int(a), int(b)))) for triangle in triangles for a in triangle for b in triangle if a < b}
    triangulated = nx.Graph()
    for a, b in sorted(edges):
        triangulated.add_edge(a, b, length=round(float(np.linalg.norm(points[a] - points[b])), 3))
    tree = nx.minimum_spanning_tree(triangulated, weight="length")
    graph = nx.Graph()
    graph.add_nodes_from(range(len(points)))
    graph.add_edges_from(tree.edges(data=True))
    others = sorted((data["length"], a, b) for a, b, data in triangulated.edges(data=True) if not tree.has_edge(a, b))
    for length, a, b in others[: max(0, round(_DEGREE * len(points)) - tree.number_of_edges())]:
        graph.add_edge(a, b, length=length)
    distance = distances.shortest_path(graph, weight="length")
    domain = Domain.from_points(points)
    return Problem(prior_on(domain, seed), distance, [MetricPrivacy(EPSILON, distance)], title=f"roads {n} {seed}")


FAMILY = Family("roads", "d-privacy on a road-like planar graph", {"epsilon": EPSILON, "degree": _DEGREE}, make)
