"""Lines G − μD: one for each set of columns of a pair of rows, and what the loss function is made of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mechdesign.base._arrays import Floats

__all__ = ["Line", "are_pieces", "line_of"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Line(NamedTuple):
    """The line G − μD of a set of columns: D = Σ d_j, G = Σ q_j − D, and the rest 1 − Q = Σ q_j outside the set.

    All three are sums rounded once, so that neither G of two nearly equal rows nor 1 − Q of two nearly disjoint rows
    is a difference of rounded numbers.
    """

    G: float
    D: float
    rest: float

    def at(self, mu: float) -> float:
        """Return the height of the line at `mu`."""
        return self.G - mu * self.D


def line_of(q: Floats, d: Floats, mu: float) -> Line:
    """Return the line of the columns with q_j − d_j > μ d_j; at `mu` = inf those with d_j = 0.

    `q` and `d` have shape (n,). The line touches the support function of the pair at `mu`.
    """
    inside = (d == 0) & (q > 0) if math.isinf(mu) else (q - d) - mu * d > 0
    chosen_q, chosen_d = q[inside], d[inside]
    return Line(
        math.fsum(np.concatenate([chosen_q, -chosen_d]).tolist()),
        math.fsum(chosen_d.tolist()),
        math.fsum(q[~inside].tolist()),
    )


def are_pieces(lines: Sequence[Line]) -> bool:
    """Whether lines may be those of a loss function: shares of probability, falling in G and in D."""
    within = all(0 <= value <= 1 + 1e-9 for line in lines for value in line)
    return bool(lines) and within and all(a.G > b.G and a.D > b.D for a, b in itertools.pairwise(lines))
