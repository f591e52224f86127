"""Choose the pairs that need rows: an exact reduction, and spanners with their dilation (docs/theory/programs.md).

A subset of the pairs is a δ-spanner if each pair has a path through the subset of length at most δ times its exponent.
The least δ with this property is the dilation of the subset. Bounds on the pairs of a δ-spanner imply the bounds on all
other pairs, with exponents multiplied by δ. Source: Bordenabe, Chatzikokolakis and Palamidessi, Optimal
geo-indistinguishable mechanisms for location privacy, 2014.
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

# Relative rounding error that a comparison of path lengths allows.
_ROUNDING = 1e-12
# Number of source secrets for which one call of SciPy computes shortest paths.
_SOURCES_PER_BATCH = 64
# The search for irreducible pairs considers this number of nearest secrets, after a test with a few secrets.
_NEAREST_SECRETS, _TRIAL_SECRETS = 32, 8


def mark_irreducible(exponents: Floats, dilation: float = 1.0, deadline: Deadline | None = None) -> Flags:
    """Mark the pairs (s, t) whose bound is not implied by two shorter bounds.

    `exponents` (k, k) is infinite for pairs without a bound. A pair is left out if, for some r, ``exponents[s, r] +
    exponents[r,
    t] <= dilation * exponents[s, t]`` and both summands are smaller than ``exponents[s, t]``.

    With ``dilation=1`` the remaining pairs imply all others, up to a relative rounding error of 1e-12, which rounding
    repairs later. On a grid with the Euclidean distance, the remaining pairs are those with coprime offsets. With a
    larger dilation, the remaining pairs are a spanner, whose true dilation `measure_dilation` returns.

    Raises OutOfTimeError at the time limit.
    """
    bounded = np.isfinite(exponents)
    few = is_sparse(len(exponents), int(bounded.sum()), 0)
    kept = bounded.copy()
    limit = exponents * (dilation * (1 + _ROUNDING))
    every = slice(None)
    for r in range(len(exponents)):
        # If there are few bounds, only a few pairs have a detour through r.
        s, t = (np.flatnonzero(bounded[:, r])[:, None], np.flatnonzero(bounded[r])) if few else (every, every)
        first, second, whole = exponents[s, r].reshape(-1, 1), exponents[r, t], exponents[s, t]
        kept[s, t] &= ~((first + second <= limit[s, t]) & (first < whole) & (second < whole))
        if deadline is not None:
            deadline.check_time()
    return kept


def find_few_pairs(exponents: Floats, deadline: Deadline | None = None) -> Flags | None:
    """Mark the irreducible pairs if they are few and near each other, as for path lengths in a road network.

    The marked pairs imply all other bounds, up to a relative rounding error of 1e-12. Returns None if the irreducible
    pairs are too many for sparse blocks, or if pairs of near secrets do not imply all bounds.
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
    batch = np.linspace(0, n - 1, _TRIAL_SECRETS).astype(np.int64)
    if not _are_implied(exponents, near, batch):
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


def _are_implied(exponents: Floats, kept: Flags, batch: Integers) -> bool:
    """Return whether the kept pairs imply all bounds on pairs whose source is in `batch`."""
    sources, targets = np.nonzero(kept)
    graph = sparse.csr_array((exponents[kept], (sources, targets)), shape=exponents.shape)
    paths = csgraph.shortest_path(graph, method="D", indices=batch)
    return bool((paths <= exponents[batch] * (1 + _ROUNDING)).all())


def measure_dilation(exponents: Floats, kept: Flags, deadline: Deadline | None = None) -> float:
    """Return the least δ >= 1 such that the bounds on `kept` pairs imply all bounds with exponents multiplied by δ.

    The result is the largest ratio, over all pairs, of the shortest path through kept pairs to the exponent of the
    pair. The dilation is infinite if the kept pairs do not connect some pair. Raises OutOfTimeError at the time limit.
    """
    sources, targets = np.nonzero(kept)
    # The matrix must be sparse: in dense matrices SciPy treats entries below 1e-8 as absent edges.
    graph = sparse.csr_array((exponents[kept], (sources, targets)), shape=exponents.shape)
    largest = 1.0
    # Each call handles only a few sources, because SciPy cannot be interrupted.
    for start in range(0, exponents.shape[0], _SOURCES_PER_BATCH):
        batch = np.arange(start, min(start + _SOURCES_PER_BATCH, exponents.shape[0]))
        if deadline is not None:
            deadline.check_time()
        paths = csgraph.shortest_path(graph, method="D", indices=batch)
        required = np.isfinite(exponents[batch])
        largest = max(largest, float(np.max(paths[required] / exponents[batch][required], initial=1.0)))
    return largest


def find_bounded_pairs(form: NormalForm, rows: Rows, deadline: Deadline | None = None) -> Flags:
    """Mark the pairs (k, k) that may get a row: all pairs, or only the irreducible ones.

    Raises OutOfTimeError at the time limit.
    """
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return bounded if rows == "all" else mark_irreducible(form.exponents, deadline=deadline) & bounded
