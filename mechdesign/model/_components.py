"""Connected components; forbidden answers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph

from mechdesign.base._arrays import Flags, Floats, Integers, read_only
from mechdesign.base._errors import InfeasibleError
from mechdesign.model._claims import Claims


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


def tied(n: int, claims: Claims) -> Integers:
    """Return a label (n,) for each of n secrets, equal where bounds tie secrets together, directly or by a chain.

    Labels count from 0, in the order of their first secrets.
    """
    return connected(n, _pairs(claims))


def spread(cost: Floats, claims: Claims) -> Floats:
    """Return costs (n, m) that are also infinite where the bounds on pairs leave no probability.

    From p(o|s) <= g p(o|t) and p(o|t) = 0 follows p(o|s) = 0: what is forbidden to t is forbidden to s. Where g is 1,
    both rows are equal, as both sum to 1, and what is forbidden to s is forbidden to t, too. Raises InfeasibleError
    when nothing is left for a secret.
    """
    forbidden = np.isinf(cost)
    if not forbidden.any():
        return cost
    pairs = np.concatenate([_pairs(claims), _pairs(claims, equal=True)[:, ::-1]])
    labels = connected(len(cost), pairs, strong=True)
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sets: Flags = np.logical_or.reduceat(forbidden[order], starts, axis=0)
    links = labels[pairs]
    one_way = np.unique(links[links[:, 0] != links[:, 1]], axis=0)
    while True:
        grown = sets.copy()
        np.logical_or.at(grown, one_way[:, 0], sets[one_way[:, 1]])
        if np.array_equal(grown, sets):
            break
        sets = grown
    nothing = np.flatnonzero(np.asarray(sets.all(axis=1))[labels])
    if nothing.size:
        raise InfeasibleError(
            f"no channel has an answer for secret {nothing[0]}: each is forbidden to it, or to a "
            "secret that requirements tie to it. Permit secrets that are tied together a common answer",
            "cost",
        )
    return read_only(np.where(sets[labels], np.inf, cost))


def sharing(cost: Floats, claims: Claims) -> Integers:
    """Return a label (n,) for each secret, equal where a chain of bounds or of common permitted answers joins them.

    An answer then tells an adversary the label, whatever the channel, and need not tell more.
    """
    n, m = cost.shape
    if np.isfinite(cost).all():
        return np.zeros(n, dtype=np.int64)
    labels = tied(n, claims)
    secrets, observables = np.nonzero(np.isfinite(cost))
    members = int(labels.max()) + 1
    # Secrets and answers are the nodes, secrets first: the labels of their sets begin with 0 and leave none out.
    return connected(members + m, np.column_stack((labels[secrets], members + observables)))[labels]


def _pairs(claims: Claims, *, equal: bool = False) -> Integers:
    """Return the bounded pairs (s, t) of all claims, shape (k, 2), or only those with the factor 1."""
    bounds = claims.pair_bounds.values()
    found = [np.column_stack((claim.sources, claim.targets)) for claim in bounds]
    if equal:
        found = [pairs[claim.exponents <= 0] for pairs, claim in zip(found, bounds, strict=True)]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *found])
