"""Randomised response among k values."""

from __future__ import annotations

import networkx as nx
import numpy as np

from mechdesign.mechanisms.finite import FiniteMechanism
from mechdesign.mechanisms.finite import hops
from mechdesign.model._numbers import Number
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_integer

__all__ = ["RandomisedResponse"]


def __dir__() -> list[str]:
    return sorted(__all__)


class RandomisedResponse(FiniteMechanism):
    """k-ary randomised response: the truth with probability e^ε / (e^ε + k − 1), else any other value (Warner 1965).

    Any two values are ε-indistinguishable. Under the uniform prior and Hamming cost it is optimal for the complete
    graph, at the cost (k − 1)/(k − 1 + e^ε).

    >>> RandomisedResponse("0.5", 2).matrix().round(4).tolist()[0]
    [0.6225, 0.3775]
    """

    def __init__(self, epsilon: Number, k: int) -> None:
        super().__init__(epsilon, 1.0 - np.eye(as_integer(k, "k", 1)))

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> RandomisedResponse:
        """Return randomised response within each connected component of a policy graph."""
        made = cls(epsilon, 1)
        made.distance = np.minimum(hops(graph), np.where(np.isinf(hops(graph)), np.inf, 1.0))
        made.graph = nx.freeze(nx.Graph(graph))
        made.nodes = np.array(sorted(graph), dtype=np.int64)
        return made

    def _masses(self, rate: float) -> Floats:
        weights = np.exp(-rate * self.distance)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
