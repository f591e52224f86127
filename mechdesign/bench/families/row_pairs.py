"""Sets of linear-fractional programs: the temporal privacy leakage of pairs of rows."""

from __future__ import annotations

import numpy as np

from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import RowPairs

__all__ = ["FAMILY"]

_ALPHA = 1.0
_PAIRS = 20


def make(n: int, seed: int) -> RowPairs:
    """Return programs (19)–(21) of Cao et al. (2017) for 20 ordered pairs of rows of a random chain with n states."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(n, 0.5), size=n)
    first = rng.integers(0, n, _PAIRS)
    second = (first + rng.integers(1, n, _PAIRS)) % n
    return RowPairs(matrix, np.stack([first, second], axis=1), _ALPHA)


FAMILY = Family("row-pairs", "linear-fractional programs of temporal leakage", {"alpha": _ALPHA, "pairs": _PAIRS}, make)
