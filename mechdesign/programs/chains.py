"""Exponents that chains of ratio bounds imply."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse
from scipy.sparse import csgraph

__all__ = ["implied_exponents"]

Array = npt.NDArray[np.float64]


def implied_exponents(exponents: Array) -> Array:
    """Return the exponents (n, n) that chains of finite ones imply: shortest paths, 0 on the diagonal."""
    sources, targets = np.nonzero(np.isfinite(exponents))
    # A dense matrix would not do: there, SciPy takes entries below 1e-8 for absent edges.
    graph = sparse.csr_array((exponents[sources, targets], (sources, targets)), shape=exponents.shape)
    paths: Array = csgraph.shortest_path(graph)
    return paths
