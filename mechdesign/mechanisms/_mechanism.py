"""The interface shared by all mechanisms under a policy graph."""

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
        """Return the mechanism as a certified channel of integers: one row per node, one column per observable.

        Args:
            observables: the possible answers, as a domain or as an array of places.
            within: The value "map" allows every observable. With "component" the answers of a node are the nodes of its
                connected component. The `observables` must then be the domain or the places that the nodes index.

        Returns:
            The channel, whose guarantee has been proved in exact arithmetic.
        """

    def _row(self, node: int) -> int:
        """Return the row of a node in `nodes`; raise `InputError` if the graph lacks the node."""
        return int(np.searchsorted(self.nodes, as_node(self.graph, node)))

    def degrees(self) -> dict[int, int]:
        """Return, for every node, the number of nodes that are ε-indistinguishable from it, including itself.

        By default these are the node and its neighbours in the policy graph.
        """
        return {int(node): int(degree) + 1 for node, degree in self.graph.degree()}

    def level(self) -> float:
        """Return an upper bound, in nats, on the privacy loss between any two nodes: ε times the graph's diameter.

        The bound is infinite if the graph is not connected (PGLP, Cao et al. 2020, Lemma 1).
        """
        return graph_level(self.epsilon, self.graph)


def graph_level(epsilon: Fraction, graph: nx.Graph) -> float:
    """Return ε times the diameter of a policy graph; infinite if the graph is not connected."""
    return float(epsilon) * int(nx.diameter(graph)) if nx.is_connected(graph) else float("inf")
