"""The hulls with which the nodes of a policy graph are released, while edges are added to it one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from mechdesign.geometry.hull import SensitivityHull
from mechdesign.graphs.constraint import components
from mechdesign.graphs.constraint import membership
from mechdesign.graphs.hulls import hull_between
from mechdesign.graphs.hulls import hulls_between
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Released", "released"]


@dataclass(frozen=True, eq=False)
class Released:
    """The hulls with which the nodes are released; nodes are counted 0, 1, … whatever their numbers.

    Node i is released with hulls[member[i]], which sizes[member[i]] nodes share: one hull for all, or one for each
    component. Nodes where `bystander` is true protect others only once an edge leads to them.
    """

    places: Floats
    member: Integers
    sizes: Integers
    hulls: tuple[SensitivityHull, ...]
    separate: bool
    bystander: Flags

    def exposed(self, i: int) -> bool:
        """Tell whether no other node is released with the same hull and within it."""
        body = self.hulls[self.member[i]]
        alike = np.array([other is body or other.dimension == body.dimension == 0 for other in self.hulls])
        others = alike[self.member] & ~self.bystander
        others[i] = False
        return not body.contains(self.places[others] - self.places[i]).any()

    def ever_exposed(self, visits: list[int]) -> list[int]:
        """Return all nodes that are exposed or may become so, `visits` first.

        One hull for all only grows. A node released exactly may be left alone at its place.
        """
        if not self.separate:
            return visits
        bare = np.array([body.dimension == 0 for body in self.hulls])[self.member]
        return list(dict.fromkeys([*visits, *np.flatnonzero(bare).tolist()]))

    def joined(self, i: int, j: int) -> Released:
        """Return the state with an edge between i, which has none, and j."""
        owner = self.member[j]
        bystander = self.bystander.copy()
        bystander[j] = False
        difference = self.places[j] - self.places[i]
        hulls = list(self.hulls)
        hulls[owner] = SensitivityHull.of(np.concatenate((hulls[owner].vertices, difference[None])))
        if not self.separate:
            return replace(self, hulls=tuple(hulls), bystander=bystander)
        member, sizes = self.member.copy(), self.sizes.copy()
        sizes[member[i]] -= 1
        sizes[owner] += 1
        member[i] = owner
        return replace(self, hulls=tuple(hulls), member=member, sizes=sizes, bystander=bystander)

    def volumes(self) -> Floats:
        """Return the volume summed over the nodes, apart for hulls of dimension d, d − 1, …, 1.

        Compared in this order a larger graph is never less: hulls only grow.
        """
        d = self.places.shape[1]
        total = np.zeros(d + 1)
        for size, body in zip(self.sizes, self.hulls, strict=True):
            total[d - body.dimension] += size * body.volume
        return total[:d]

    def costs(self, i: int) -> tuple[Integers, Floats]:
        """Return the other nodes, and by how much `volumes` would grow if i were joined to each; the length last."""
        others = np.delete(np.arange(len(self.places)), i)
        vectors = self.places[others] - self.places[i]
        d = self.places.shape[1]
        costs = np.zeros((len(others), d + 2))
        costs[:, d + 1] = np.sqrt((vectors**2).sum(axis=1))
        owners = self.member[others]
        sizes = self.sizes[owners]
        # Components may share a hull; all nodes without an edge do.
        shared = np.array([id(body) for body in self.hulls])[owners]
        for one in np.unique(shared):
            rows = np.flatnonzero(shared == one)
            body = self.hulls[owners[rows[0]]]
            dimensions, volumes = body.grown(vectors[rows])
            costs[rows, d - body.dimension] -= sizes[rows] * body.volume
            costs[rows, d - dimensions] += (sizes[rows] + self.separate) * volumes
        # The column of dimension 0 says nothing.
        return others, np.delete(costs, d, axis=1)


def released(places: Floats, graph: nx.Graph, nodes: Integers, hull: str, bystander: Flags) -> Released:
    """Return the hulls of a graph with the sorted `nodes`, one for all ("graph") or one for each component."""
    count = len(nodes)
    if hull == "graph":
        body = hull_between(places, graph)
        return Released(places[nodes], np.zeros(count, dtype=np.int64), np.array([count]), (body,), False, bystander)
    parts = components(graph)
    member = membership(parts, len(places))[nodes]
    sizes = np.bincount(member, minlength=len(parts))
    return Released(places[nodes], member, sizes, tuple(hulls_between(places, graph)), True, bystander)
