"""Exponents that chains of ratio bounds imply."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Floats

__all__ = ["implied_exponents", "near_exponents"]


_IMPLIED = 1e-9


def implied_exponents(exponents: Floats) -> Floats:
    """Return the exponents (n, n) that chains of finite ones imply: shortest paths, 0 on the diagonal."""
    sources, targets = np.nonzero(np.isfinite(exponents))
    # A dense matrix would not do: there, SciPy takes entries below 1e-8 for absent edges.
    graph = sparse.csr_array((exponents[sources, targets], (sources, targets)), shape=exponents.shape)
    paths: Floats = csgraph.shortest_path(graph)
    return paths


def near_exponents(exponents: Floats, count: int) -> Floats:
    """Return the exponents (n, n) of the `count` strictest bounds on each row, infinity elsewhere.

    Bounds that two stricter ones imply are passed over: on a grid those along a line. What is left out is allowed more:
    a lower bound with these exponents is one with all.
    """
    n = len(exponents)
    own = exponents.copy()
    np.fill_diagonal(own, np.inf)
    candidates = min(3 * count, n - 1)
    near = np.full((n, n), np.inf)
    first = np.argpartition(own, candidates - 1, axis=1)[:, :candidates]
    for row in range(n):
        some = first[row]
        some = some[np.isfinite(own[row, some])]
        apart = own[row, some]
        through = (apart[:, None] + own[np.ix_(some, some)]).min(axis=0, initial=np.inf)
        direct = np.flatnonzero(through > (1 + _IMPLIED) * apart)
        kept = some[direct[np.argsort(apart[direct], kind="stable")[:count]]]
        near[row, kept] = own[row, kept]
    np.fill_diagonal(near, exponents.diagonal())
    return near
