"""The exponential mechanism."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.mechanisms.finite import FiniteMechanism, hops
from mechdesign.model import distances
from mechdesign.requirements.numbers import Number
from mechdesign.validation import Floats

__all__ = ["Exponential"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Exponential(FiniteMechanism):
    """The exponential mechanism, p(o|s) ∝ exp(−ε d(s, o) / 2) (McSherry and Talwar 2007).

    With a metric d it is ε·d-private: both the numerator and the normalising sum change by at most exp(ε d / 2).

    >>> Exponential(2, [[0, 1], [1, 0]]).probabilities().round(4).tolist()
    [[0.7311, 0.2689], [0.2689, 0.7311]]
    """

    def __init__(self, epsilon: Number, distance: ArrayLike, graph: nx.Graph | None = None) -> None:
        super().__init__(epsilon, distance, graph)
        distances.check_metric(self.distance, "distance")

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Exponential:
        """Return the mechanism under a policy graph: d counts hops, and answers stay in the component."""
        return cls(epsilon, hops(graph), graph)

    def _masses(self, rate: float) -> Floats:
        weights = np.exp(-rate / 2 * self.distance)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
