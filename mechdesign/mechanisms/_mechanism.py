"""What every mechanism under a policy graph offers, whatever its law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.graphs._constraints import as_node
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain

Within = Literal["map", "component"]
"""Whether answers are any observables, or only the nodes of the secret's own connected component."""


class Mechanism(ABC):
    """A mechanism that makes the two ends of every edge of a policy graph ε-indistinguishable.

    Attributes:
        epsilon: ε in nats per edge, exact.
        graph: the policy graph, frozen.
        nodes: its nodes, sorted, int64: the rows of `channel`.
    """

    epsilon: Fraction
    graph: nx.Graph
    nodes: Integers

    @abstractmethod
    def channel(self, observables: Domain | ArrayLike, within: Within = "map") -> Channel:
        """Return the mechanism as a channel of integers, certified: a row for each node, a column for each observable.

        With ``within="component"`` the answers to a node are the nodes of its connected component alone, and the
        observables are the places, or the domain, that the nodes index.
        """

    def _row(self, node: int) -> int:
        """Return the place of a node among `nodes`; raise `InputError` where it is none of them."""
        return int(np.searchsorted(self.nodes, as_node(self.graph, node)))

    def degrees(self) -> dict[int, int]:
        """Return, for every node, how many nodes it is ε-indistinguishable from, itself included.

        Without anything better known, these are its neighbours.
        """
        return {int(node): int(degree) + 1 for node, degree in self.graph.degree()}

    def level(self) -> float:
        """Return a bound, in nats, on what tells any two nodes apart: ε times the largest number of hops.

        Infinite where the graph is not connected (PGLP, Cao et al. 2020, Lemma 1).
        """
        return graph_level(self.epsilon, self.graph)


def graph_level(epsilon: Fraction, graph: nx.Graph) -> float:
    """Return ε times the diameter of a policy graph, infinite where it is not connected."""
    return float(epsilon) * int(nx.diameter(graph)) if nx.is_connected(graph) else float("inf")
