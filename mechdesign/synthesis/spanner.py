"""Which pairs need rows: an exact reduction, and spanners with a stated dilation.

A set of pairs is a δ-spanner when, for every pair, some path over the set is at most δ times as long as the pair's own
exponent; the least such δ is its dilation (Bordenabe, Chatzikokolakis and Palamidessi, Optimal geo-indistinguishable
mechanisms for location privacy, 2014). Bounds on the set then imply all others with exponents times δ.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse import csgraph

from mechdesign import interrupts
from mechdesign.synthesis.exponents import LARGEST_ROW_EXPONENT
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.settings import Rows

__all__ = ["bounded_pairs", "dilation", "irreducible"]

Floats = NDArray[np.float64]

# Far above the rounding of sums of distances, far below any slack that a certificate could notice.
_ROUNDING = 1e-12
_SOURCES = 64


def irreducible(exponents: Floats, dilation: float = 1.0) -> NDArray[np.bool_]:
    """Mark the pairs (s, t) whose bound is not implied by a detour over two shorter ones.

    `exponents` (k, k) is infinite where nothing is required. A pair is left out when some r has
    exponents[s, r] + exponents[r, t] <= dilation · exponents[s, t], with both legs strictly shorter than the whole.
    With ``dilation=1`` the pairs that remain imply all others: exactly, up to a rounding of 1e-12 that the
    certificate's own slack pays for. On a grid under the Euclidean distance these are the coprime offsets.
    A larger one leaves a spanner; `dilation`, the function, measures what it really guarantees.
    """
    kept = np.isfinite(exponents)
    limit = exponents * (dilation * (1 + _ROUNDING))
    for r in range(exponents.shape[0]):
        first, second = exponents[:, r, None], exponents[None, r, :]
        detour = (first + second <= limit) & (first < exponents) & (second < exponents)
        kept &= ~detour
        interrupts.check()
    return kept


def dilation(exponents: Floats, kept: NDArray[np.bool_]) -> float:
    """Return the least δ >= 1 such that the bounds on `kept` pairs imply all bounds with exponents times δ.

    It is the largest ratio of a shortest path over kept pairs to the exponent of a pair, infinite when some pair
    is not joined at all.
    """
    sources, targets = np.nonzero(kept)
    # A dense matrix would not do: there, SciPy takes entries below 1e-8 for absent edges.
    graph = sparse.csr_array((exponents[kept], (sources, targets)), shape=exponents.shape)
    largest = 1.0
    # A few sources at a time: SciPy hears no Ctrl-C.
    for start in range(0, exponents.shape[0], _SOURCES):
        some = np.arange(start, min(start + _SOURCES, exponents.shape[0]))
        interrupts.check()
        paths = csgraph.shortest_path(graph, method="D", indices=some)
        required = np.isfinite(exponents[some])
        largest = max(largest, float(np.max(paths[required] / exponents[some][required], initial=1.0)))
    return largest


def bounded_pairs(form: NormalForm, rows: Rows) -> NDArray[np.bool_]:
    """Return the pairs (k, k) that may get a row: all of them, or those that no others imply."""
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return bounded if rows == "all" else irreducible(form.exponents) & bounded
