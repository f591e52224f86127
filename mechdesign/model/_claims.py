"""An ordered list of claims: bounds on pairs, bounds on points between anchors, and floors.

Bounds on pairs connect secrets, whose components this file labels, and forbid further answers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Flags, Floats, Integers, read_only
from mechdesign.base._errors import InfeasibleError
from mechdesign.base._values import ReadOnlyMapping, cached_property
from mechdesign.certify._claims import Claim, ExponentBound, Floor, PairBound
from mechdesign.certify._dithering import Dithered


class Claims(tuple[Claim, ...]):
    """The claims about a channel, in order; each property maps indices to the claims of one form.

    >>> claims = Claims([Floor(1, [[0, 1], [1, 0]]), PairBound.graph(1, 2, [(0, 1)])])
    >>> list(claims.floors), list(claims.pair_bounds), list(claims.point_bounds)
    ([0], [1], [])
    """

    @cached_property
    def pair_bounds(self) -> Mapping[int, PairBound]:
        """The bounds on pairs of secrets."""
        return ReadOnlyMapping({place: claim for place, claim in enumerate(self) if isinstance(claim, PairBound)})

    @cached_property
    def exponent_bounds(self) -> Mapping[int, ExponentBound]:
        """The bounds on pairs of secrets with factors exp(ε·w)."""
        found = self.pair_bounds.items()
        return ReadOnlyMapping({place: bound for place, bound in found if isinstance(bound, ExponentBound)})

    @cached_property
    def point_bounds(self) -> Mapping[int, Dithered]:
        """The bounds on all points between anchors."""
        return ReadOnlyMapping({place: claim for place, claim in enumerate(self) if isinstance(claim, Dithered)})

    @cached_property
    def floors(self) -> Mapping[int, Floor]:
        """The floors on the adversary's error."""
        return ReadOnlyMapping({place: claim for place, claim in enumerate(self) if isinstance(claim, Floor)})


def label_components(n: int, pairs: ArrayLike, *, strong: bool = False) -> Integers:
    """Label n nodes; two nodes have the same label if a chain of pairs connects them.

    Args:
        n: The number of nodes.
        pairs: Pairs of connected nodes, integers of shape (k, 2).
        strong: Whether pairs are directed; if so, two nodes have the same label only if there is a chain in each
            direction.

    Returns:
        Labels, int64 of shape (n,), numbered from 0 in the order of the components' first nodes.

    >>> label_components(5, [(4, 1), (1, 2)]).tolist()
    [0, 1, 1, 2, 1]
    """
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if strong and not np.isin(ends @ (n, 1), ends @ (1, n)).all():
        # Imported late, because a verification, whose pairs have both directions, then takes half the time.
        from scipy.sparse import csgraph, csr_array

        graph = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        labels = csgraph.connected_components(graph, connection="strong")[1].astype(np.int64)
    else:
        labels = np.arange(n)
        while len(ends):
            # Each label takes the least label beside it, and then the label of that one.
            least = np.arange(n)
            np.minimum.at(least, np.maximum(*ends.T), np.minimum(*ends.T))
            while (least[least] != least).any():
                least = least[least]
            labels, ends = least[labels], least[ends]
            ends = ends[ends[:, 0] != ends[:, 1]]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def members(labels: Integers) -> list[Integers]:
    """Return the nodes of each component in ascending order; every label from 0 to the maximum must occur.

    >>> [nodes.tolist() for nodes in members(np.array([0, 1, 1, 2, 1]))]
    [[0], [1, 2, 4], [3]]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def label_tied_secrets(n: int, claims: Claims) -> Integers:
    """Label n secrets; two secrets have the same label if bounds tie them together, directly or by a chain.

    Labels are numbered from 0 in the order of their first secrets.
    """
    return label_components(n, _pairs(claims))


def propagate_forbidden(cost: Floats, claims: Claims) -> Floats:
    """Return the costs (n, m), in which answers that the bounds on pairs forbid have infinite cost, too.

    The bound p(o|s) <= g p(o|t) and p(o|t) = 0 imply p(o|s) = 0: answers forbidden to t are also forbidden to s. If g
    is 1, both rows are equal, because both sum to 1; answers forbidden to s are then forbidden to t as well. Raises
    InfeasibleError if every answer is forbidden to some secret.
    """
    forbidden = np.isinf(cost)
    if not forbidden.any():
        return cost
    pairs = np.concatenate([_pairs(claims), _pairs(claims, equal=True)[:, ::-1]])
    labels = label_components(len(cost), pairs, strong=True)
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
            f"no channel has an answer for secret {nothing[0]}: each answer is forbidden to this secret, or to a "
            "secret that requirements tie to it. Permit a common answer for all secrets that are tied together",
            "cost",
        )
    return read_only(np.where(sets[labels], np.inf, cost))


def label_disclosed_sets(cost: Floats, claims: Claims) -> Integers:
    """Label n secrets; labels are equal if a chain of bounds or common permitted answers connects two secrets.

    Every answer of a channel reveals the label of the secret.
    """
    n, m = cost.shape
    if np.isfinite(cost).all():
        return np.zeros(n, dtype=np.int64)
    labels = label_tied_secrets(n, claims)
    secrets, observables = np.nonzero(np.isfinite(cost))
    groups = int(labels.max()) + 1
    # The nodes are groups of tied secrets, then answers. Groups come first, so the labels of secrets start at 0 and
    # have no gaps.
    return label_components(groups + m, np.column_stack((labels[secrets], groups + observables)))[labels]


def _pairs(claims: Claims, *, equal: bool = False) -> Integers:
    """Return the bounded pairs (s, t) of all claims, (k, 2); if `equal`, only pairs with the factor 1."""
    bounds = claims.pair_bounds.values()
    found = [np.column_stack((claim.sources, claim.targets)) for claim in bounds]
    if equal:
        found = [pairs[claim.exponents <= 0] for pairs, claim in zip(found, bounds, strict=True)]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *found])
