"""The normal form of a problem: identical secrets merged, pair requirements folded into one matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.certify._claims import Floor
from mechdesign.certify._claims import PairBound
from mechdesign.base._values import cached_property
from mechdesign.model._components import connected
from mechdesign.model._problem import Problem
from mechdesign.solve._block_angular import implied_exponents
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["FloorRows", "NormalForm", "normalise"]


@dataclass(frozen=True, eq=False)
class FloorRows:
    """A distortion floor over merged secrets: Σ_o min_ŝ Σ_g error[ŝ, g] p(o|g) >= minimum.

    `error` (estimates, groups) holds Σ π_s a(ŝ, s) over the secrets s of each group, π the floor's own prior where it
    has one; `claim` is the exact floor and `requirement` its index among the claims of the problem.
    """

    requirement: int
    claim: Floor
    error: Floats

    @property
    def minimum(self) -> float:
        """The floor, as the nearest float."""
        return float(self.claim.minimum)


@dataclass(frozen=True, eq=False)
class NormalForm:
    """A problem over k groups of secrets that every channel must treat alike.

    A bound with exponent 0 between two secrets forces equal rows (both sum to 1), in whichever direction it stands, and
    secrets with bounds of hardly more may be given equal rows at little cost (see `normalise`); `group` (n,) maps each
    secret to its group. `exponents` (k, k) is the least ln g over all bounds p(o|s) <= g p(o|t) of members, infinite
    where nothing is required and on the diagonal; `owner`, `source` and `target` (k, k) say which claim and which pair
    of secrets that exponent comes from. `ties` lists, from the leaves of each group's spanning tree inwards, the bounds
    (secret, parent, claim, forward) of exponent 0, or hardly more, that hold the group together, `forward` when the
    bound is one of p(o|secret) by p(o|parent).
    """

    problem: Problem
    group: Integers
    exponents: Floats
    owner: Integers
    source: Integers
    target: Integers
    floors: tuple[FloorRows, ...]
    ties: tuple[tuple[int, int, int, bool], ...]

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.exponents.shape[0])

    @property
    def observables(self) -> int:
        """Number of observables."""
        return int(self.problem.cost.shape[1])

    @cached_property
    def forbidden(self) -> Flags:
        """Which answers are forbidden to a group (k, m): those that are to one of its members."""
        forbidden = np.zeros((self.groups, self.observables), dtype=np.bool_)
        np.logical_or.at(forbidden, self.group, np.isinf(self.problem.cost))
        return forbidden

    @cached_property
    def finite_cost(self) -> Floats:
        """The costs (n, m) of the problem, with 0 where the answer is forbidden."""
        return np.where(np.isinf(self.problem.cost), 0.0, self.problem.cost)

    @cached_property
    def components(self) -> Integers:
        """A label for each group (k,), equal where a chain of bounds joins them."""
        return connected(self.groups, np.argwhere(np.isfinite(self.exponents)))

    @cached_property
    def implied(self) -> Floats:
        """The exponents (k, k) that chains of bounds imply: shortest paths, 0 on the diagonal."""
        return implied_exponents(self.exponents)

    def gather(self, per_secret: Floats) -> Floats:
        """Sum an array (n, …) over the members of each group, giving (k, …)."""
        summed = np.zeros((self.groups, *per_secret.shape[1:]))
        np.add.at(summed, self.group, per_secret)
        return summed


def normalise(problem: Problem, alike: float = 0.0) -> NormalForm:
    """Bring a problem into normal form, merging secrets that bounds with exponents of at most `alike` tie together.

    With `alike` above 0 the channels of the form are some of the problem's, and multipliers carried over prove a bound
    that is lower by about as much, relative to costs.
    """
    n = problem.prior.size
    bounds = [(i, claim) for i, claim in enumerate(problem.claims) if isinstance(claim, PairBound)]
    group, ties = _tied(n, bounds, alike)
    groups = int(group.max()) + 1
    exponents = np.full((groups, groups), np.inf)
    owner, source, target = (np.full((groups, groups), -1) for _ in range(3))
    for i, bound in bounds:
        values = bound.exponents
        order = np.argsort(-values, kind="stable")  # the last write wins, so the least exponent comes last
        s, t, values = bound.sources[order], bound.targets[order], values[order]
        best = np.full((groups, groups), np.inf)
        best[group[s], group[t]] = values
        first, second = (np.full((groups, groups), -1) for _ in range(2))
        first[group[s], group[t]], second[group[s], group[t]] = s, t
        better = best < exponents
        for mine, theirs in ((exponents, best), (source, first), (target, second)):
            mine[better] = theirs[better]
        owner[better] = i
    np.fill_diagonal(exponents, np.inf)
    floors = []
    for i, claim in enumerate(problem.claims):
        if isinstance(claim, Floor) and claim.minimum > 0:
            error = np.zeros((claim.error.shape[0], groups))
            np.add.at(error.T, group, (claim.error * claim.prior_or(problem.prior)).T)
            floors.append(FloorRows(i, claim, error))
    return NormalForm(problem, group, exponents, owner, source, target, tuple(floors), ties)


def _tied(
    n: int, bounds: list[tuple[int, PairBound]], alike: float
) -> tuple[Integers, tuple[tuple[int, int, int, bool], ...]]:
    """Return the group of each secret, and the ties that hold the groups together, as `NormalForm` has them."""
    edges: dict[tuple[int, int], tuple[int, bool]] = {}
    for i, bound in bounds:
        tight = np.flatnonzero(bound.exponents <= alike)
        for s, t in zip(bound.sources[tight].tolist(), bound.targets[tight].tolist(), strict=True):
            if s != t:
                edges.setdefault((s, t), (i, True))
                edges.setdefault((t, s), (i, False))
    if not edges:
        return np.arange(n), ()
    pairs = np.array(list(edges))
    graph = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    labels = connected(n, pairs)
    ties: list[tuple[int, int, int, bool]] = []
    for root in np.unique(labels, return_index=True)[1]:
        order, parents = csgraph.breadth_first_order(graph, root, directed=False)
        ties.extend((s, p, *edges[s, p]) for s, p in ((int(s), int(parents[s])) for s in order[:0:-1]))
    return labels, tuple(ties)
