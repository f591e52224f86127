"""The interface shared by all mechanisms under a policy graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.graphs._builders import as_node
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain

Within = Literal["map", "component"]
"""The possible answers: all observables, or only the nodes of the connected component of the secret."""


class Mechanism(ABC):
    """A mechanism that makes the two ends of every edge of a policy graph ε-indistinguishable.

    Attributes:
        epsilon: The exact ε, in nats per edge.
        graph: The policy graph, frozen.
        nodes: The sorted nodes of the policy graph, int64, which index the rows of `channel`.

    >>> import mechdesign as md
    >>> mechanism = md.mechanisms.RandomisedResponse("0.5", 3)
    >>> isinstance(mechanism, Mechanism), mechanism.degrees(), mechanism.level()
    (True, {0: 3, 1: 3, 2: 3}, 0.5)
    """

    epsilon: Fraction
    graph: nx.Graph
    nodes: Integers

    @abstractmethod
    def channel(self, observables: Domain | ArrayLike, within: Within = "map") -> Channel:
        """Return the mechanism as a certified integer channel with one row per node and one column per observable.

        Args:
            observables: The possible answers, as a domain or as an array of places.
            within: The value "map" allows every observable. The value "component" allows only the nodes of the
                secret's connected component, and requires that the `observables` are the places that the nodes index.

        Returns:
            The channel, whose guarantee is proved in exact arithmetic.
        """

    def _row(self, node: int) -> int:
        """Return the index of a node in `nodes`; raise `InputError` if the graph lacks the node."""
        return int(np.searchsorted(self.nodes, as_node(self.graph, node)))

    def degrees(self) -> dict[int, int]:
        """Return the degree of protection of each node.

        The degree is the number of nodes that are ε-indistinguishable from the node, including itself. By default the
        method counts the node and its neighbours in the policy graph.

        Returns:
            The degree of protection of each node, by node.
        """
        return {int(node): int(degree) + 1 for node, degree in self.graph.degree()}

    def level(self) -> float:
        """Return an upper bound, in nats, on the privacy loss between any two nodes: ε times the graph's diameter.

        The bound is infinite if the graph is not connected (PGLP, Cao et al. 2020, Lemma 1).

        Returns:
            The bound in nats.
        """
        return graph_level(self.epsilon, self.graph)


def graph_level(epsilon: Fraction, graph: nx.Graph) -> float:
    """Return ε times the diameter of a policy graph, or infinity if the graph is not connected."""
    return float(epsilon) * int(nx.diameter(graph)) if nx.is_connected(graph) else float("inf")
