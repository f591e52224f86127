"""Connected components: the one place where they are computed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph

from mechdesign.base._arrays import Integers

__all__ = ["connected", "members"]


def connected(n: int, pairs: ArrayLike, *, strong: bool = False) -> Integers:
    """Return a label for each of n nodes, equal where a chain of pairs joins them.

    Args:
        n: The number of nodes.
        pairs: Joined nodes, integers of shape (k, 2).
        strong: Whether a pair (s, t) leads only from s to t, and a chain must lead there and back.

    Returns:
        Labels, int64 of shape (n,), counted from 0 in the order of the components' first nodes.

    >>> connected(5, [(4, 1), (1, 2)]).tolist()
    [0, 1, 1, 2, 1]
    """
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    graph = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    labels: NDArray[np.int32] = csgraph.connected_components(graph, connection="strong" if strong else "weak")[1]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def members(labels: Integers) -> list[Integers]:
    """Return the nodes of each component, ascending, given labels 0, 1, … of which each occurs.

    >>> [nodes.tolist() for nodes in members(np.array([0, 1, 1, 2, 1]))]
    [[0], [1, 2, 4], [3]]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
