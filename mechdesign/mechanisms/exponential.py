"""The exponential mechanism."""

from __future__ import annotations

import networkx as nx
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import InputError
from mechdesign.mechanisms.finite import FiniteMechanism
from mechdesign.mechanisms.finite import falling
from mechdesign.mechanisms.finite import hops
from mechdesign.model import distances
from mechdesign.model._numbers import Number
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_nonnegative

__all__ = ["Exponential"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Exponential(FiniteMechanism):
    """The exponential mechanism, p(o|s) ∝ exp(−ε d(s, o) / 2) (McSherry and Talwar 2007).

    With a metric d it is ε·d-private: both the numerator and the normalising sum change by at most exp(ε d / 2).

    >>> Exponential(2, [[0, 1], [1, 0]]).matrix().round(4).tolist()
    [[0.7311, 0.2689], [0.2689, 0.7311]]
    """

    def __init__(self, epsilon: Number, distance: ArrayLike, graph: nx.Graph | None = None) -> None:
        super().__init__(epsilon, distance, graph)
        distances.check_metric(self.distance, "distance")

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Exponential:
        """Return the mechanism under a policy graph: d counts hops, and answers stay in the component."""
        return cls(epsilon, hops(graph), graph)

    @in_own_arithmetic
    def matrix(self, answers: ArrayLike | None = None) -> Floats:
        """Return p(o|s) as floats, up to a few roundings: shape (n, n), or (n, m) for other answers than the secrets.

        Args:
            answers: d(s, o) >= 0 from the n secrets to m answers, (n, m), in the unit of the distance.

        >>> Exponential(2, [[0, 1], [1, 0]]).matrix(answers=[[0], [3]]).tolist()
        [[1.0], [1.0]]
        """
        rate = float(self.epsilon)
        if answers is None:
            return self._masses(rate)
        apart = as_nonnegative(answers, "answers", 2)
        if len(apart) != len(self.nodes) or not apart.size:
            raise InputError(
                "answers", "have another shape", value=apart.shape, bound=f"({len(self.nodes)}, m), m >= 1"
            )
        return falling(apart, rate / 2)

    def _masses(self, rate: float) -> Floats:
        return falling(self.distance, rate / 2)
