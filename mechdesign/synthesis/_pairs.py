"""Which pairs need rows: an exact reduction, and spanners with a stated dilation.

A set of pairs is a δ-spanner when, for every pair, some path over the set is at most δ times as long as the pair's own
exponent; the least such δ is its dilation (Bordenabe, Chatzikokolakis and Palamidessi, Optimal geo-indistinguishable
mechanisms for location privacy, 2014). Bounds on the set then imply all others with exponents times δ.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.synthesis._normal import LARGEST_ROW_EXPONENT, NormalForm
from mechdesign.synthesis._settings import Rows

_ROUNDING = 1e-12
_SOURCES_PER_BATCH = 64
# What pairs no others imply is looked for among so many next to each secret, and checked first from a few secrets.
_NEAREST_SECRETS, _TRIAL_SECRETS = 32, 8


def mark_irreducible(exponents: Floats, dilation: float = 1.0, deadline: Deadline | None = None) -> Flags:
    """Mark the pairs (s, t) whose bound is not implied by a detour over two shorter ones.

    `exponents` (k, k) is infinite where nothing is required. A pair is left out when some r has
    exponents[s, r] + exponents[r, t] <= dilation · exponents[s, t], with both legs strictly shorter than the whole.
    With ``dilation=1`` the pairs that remain imply all others: exactly, up to a rounding of 1e-12 that the
    certificate's own slack pays for. On a grid under the Euclidean distance these are the coprime offsets.
    A larger one leaves a spanner; `measure_dilation`, the function, measures what it really guarantees.
    Raises OutOfTimeError at the time limit.
    """
    bounded = np.isfinite(exponents)
    few = is_sparse(len(exponents), int(bounded.sum()), 0)
    kept = bounded.copy()
    limit = exponents * (dilation * (1 + _ROUNDING))
    every = slice(None)
    for r in range(len(exponents)):
        # Where bounds are few, few pairs have two of them over r.
        s, t = (np.flatnonzero(bounded[:, r])[:, None], np.flatnonzero(bounded[r])) if few else (every, every)
        first, second, whole = exponents[s, r].reshape(-1, 1), exponents[r, t], exponents[s, t]
        kept[s, t] &= ~((first + second <= limit[s, t]) & (first < whole) & (second < whole))
        if deadline is not None:
            deadline.check_time()
    return kept


def find_few_pairs(exponents: Floats, deadline: Deadline | None = None) -> Flags | None:
    """Mark the pairs that no others imply where these are few and near, as in lengths of paths in a road network.

    They imply all other bounds, up to a rounding of 1e-12. None where they are not few enough for
    blocks to count as sparse, or where some have many secrets between their ends.
    """
    bounded = np.isfinite(exponents)
    n = exponents.shape[0]
    if is_sparse(n, int(bounded.sum()), 0):
        return bounded
    if not is_sparse(n, 0, 0):
        return None
    last = min(_NEAREST_SECRETS, n - 1)
    reach = np.partition(exponents, last, axis=1)[:, last]
    near = bounded & (exponents <= reach[:, None])
    some = np.linspace(0, n - 1, _TRIAL_SECRETS).astype(np.int64)
    if not _are_implied(exponents, near, some):
        return None
    kept = near.copy()
    for s in range(n):
        targets = np.flatnonzero(near[s])
        to, between = exponents[s, targets], exponents[np.ix_(targets, targets)]
        limit = to * (1 + _ROUNDING)
        detour = (to[:, None] + between <= limit) & (to[:, None] < to) & (between < to)
        kept[s, targets[detour.any(axis=0)]] = False
    if not is_sparse(n, int(kept.sum()), 0):
        return None
    for start in range(0, n, _SOURCES_PER_BATCH):
        if deadline is not None:
            deadline.check()
        if not _are_implied(exponents, kept, np.arange(start, min(start + _SOURCES_PER_BATCH, n))):
            return None
    return kept


def _are_implied(exponents: Floats, kept: Flags, some: Integers) -> bool:
    """Tell whether paths over the pairs kept are no longer than the bounds on pairs from `some` secrets."""
    sources, targets = np.nonzero(kept)
    graph = sparse.csr_array((exponents[kept], (sources, targets)), shape=exponents.shape)
    paths = csgraph.shortest_path(graph, method="D", indices=some)
    return bool((paths <= exponents[some] * (1 + _ROUNDING)).all())


def measure_dilation(exponents: Floats, kept: Flags, deadline: Deadline | None = None) -> float:
    """Return the least δ >= 1 such that the bounds on `kept` pairs imply all bounds with exponents times δ.

    It is the largest ratio of a shortest path over kept pairs to the exponent of a pair, infinite when some pair
    is not joined at all. Raises OutOfTimeError as `mark_irreducible` does.
    """
    sources, targets = np.nonzero(kept)
    # A dense matrix would not do: there, SciPy takes entries below 1e-8 for absent edges.
    graph = sparse.csr_array((exponents[kept], (sources, targets)), shape=exponents.shape)
    largest = 1.0
    # A few sources at a time: SciPy hears no Ctrl-C.
    for start in range(0, exponents.shape[0], _SOURCES_PER_BATCH):
        some = np.arange(start, min(start + _SOURCES_PER_BATCH, exponents.shape[0]))
        if deadline is not None:
            deadline.check_time()
        paths = csgraph.shortest_path(graph, method="D", indices=some)
        required = np.isfinite(exponents[some])
        largest = max(largest, float(np.max(paths[required] / exponents[some][required], initial=1.0)))
    return largest


def find_bounded_pairs(form: NormalForm, rows: Rows, deadline: Deadline | None = None) -> Flags:
    """Return the pairs (k, k) that may get a row: all of them, or those that no others imply.

    Raises OutOfTimeError as `mark_irreducible` does.
    """
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return bounded if rows == "all" else mark_irreducible(form.exponents, deadline=deadline) & bounded
