"""The truncated geometric mechanism on a line."""

from __future__ import annotations

import networkx as nx
import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.mechanisms.finite import FiniteMechanism
from mechdesign.mechanisms.finite import hops
from mechdesign.model._numbers import Number
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_integer

__all__ = ["Geometric"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Geometric(FiniteMechanism):
    """The geometric mechanism on 0, …, n−1, truncated to that range (Ghosh, Roughgarden and Sundararajan 2009).

    Two-sided geometric noise, Pr(z) = (1 − α)/(1 + α) α^|z| with α = e^−ε, is added and the result is clipped to the
    range: an end gets α^k/(1 + α) from k steps away. Neighbours are ε-indistinguishable. Followed by the Bayes-optimal
    remap of its answers it is optimal for every cost that does not fall with the distance; as it is, it is not.

    >>> Geometric(1, 3).matrix().round(4).tolist()[0]
    [0.7311, 0.17, 0.0989]
    """

    def __init__(self, epsilon: Number, n: int) -> None:
        places = np.arange(as_integer(n, "n", 1), dtype=np.float64)
        self._order = np.arange(len(places))
        super().__init__(epsilon, np.abs(places[:, None] - places), nx.path_graph(len(places)))

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Geometric:
        """Return the mechanism under a policy graph that is a path, such as that of an ordered attribute."""
        distance = hops(graph)
        if np.isinf(distance).any() or any(degree > 2 for _, degree in graph.degree()) or nx.cycle_basis(graph):
            raise InputError("graph", "is not a path", remedy='use "exponential" or "randomised-response"')
        made = cls(epsilon, len(distance))
        made.distance, made.graph = distance, nx.freeze(nx.Graph(graph))
        made.nodes = np.array(sorted(graph), dtype=np.int64)
        # The place of every node along the path, from one of its ends.
        made._order = distance[int(np.unravel_index(int(distance.argmax()), distance.shape)[0])].astype(np.int64)
        return made

    def _masses(self, rate: float) -> Floats:
        n = len(self._order)
        ratio = np.exp(-rate)
        steps = np.abs(self._order[:, None] - self._order).astype(np.float64)
        masses = ratio**steps / (1 + ratio)
        inside = (self._order > 0) & (self._order < n - 1)
        masses[:, inside] *= -np.expm1(-rate)
        return np.asarray(masses) if n > 1 else np.ones((1, 1))
