"""Normal form, reductions, exponents.

Entries of a channel are whole multiples of 2^-k, with k = `mechdesign.model._channel.EXPONENT` = 62, and so at most 2^k
of these units. All limits on ln g follow:

- From g = 2^k on, N_s <= g N_t says one thing only: where N_t is 0, N_s is 0, too. No larger exponent need ever be told
  to anyone: `VACUOUS` = k ln 2, about 43.0. The block method leaves out bounds beyond it, and rounding takes them
  for this much.
- A solver of rows sees both g p_t and p_s in double precision. Rows end four bits below, at 2^(k - 4):
  `LARGEST_ROW_EXPONENT` = 40. Their coefficients √g and 1/√g stay within 5·10^8 of 1, and meeting afterwards a bound
  that got no row moves at most 1/g, about 16 units, of probability.

The verifier knows none of these: it compares the integers themselves (`mechdesign.certify._privacy`).

The road from a problem to a certificate is a chain of them, undone in reverse order:

    Problem ─ restriction to a part ─ normal form ─ program of rows or of blocks ─ solver
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.model._channel import EXPONENT
from mechdesign.model._components import label_components
from mechdesign.model._problem import Problem
from mechdesign.solve._block_angular import implied_exponents
from mechdesign.solve._contract import Status
from mechdesign.synthesis._result import SolveSummary

VACUOUS = EXPONENT * math.log(2)
"""The exponent from which on a bound only says that zero goes with zero."""

LARGEST_ROW_EXPONENT = float(math.floor((EXPONENT - 4) * math.log(2)))
"""The largest exponent of a bound that gets a row of its own."""


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
        return label_components(self.groups, np.argwhere(np.isfinite(self.exponents)))

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
    bounds = list(problem.pair_bounds.items())
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
    for i, floor in problem.floors.items():
        if floor.minimum > 0:
            error = np.zeros((floor.error.shape[0], groups))
            np.add.at(error.T, group, (floor.error * floor.prior_or(problem.prior)).T)
            floors.append(FloorRows(i, floor, error))
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
    labels = label_components(n, pairs)
    ties: list[tuple[int, int, int, bool]] = []
    for root in np.unique(labels, return_index=True)[1]:
        order, parents = csgraph.breadth_first_order(graph, root, directed=False)
        ties.extend((s, p, *edges[s, p]) for s, p in ((int(s), int(parents[s])) for s in order[:0:-1]))
    return labels, tuple(ties)


Given = TypeVar("Given", contravariant=True)
Program = TypeVar("Program", covariant=True)
Solution = TypeVar("Solution", contravariant=True)
Answer = TypeVar("Answer", covariant=True)


class Reduction(Protocol[Given, Program, Solution, Answer]):
    """A way to turn what is given into a program, and the program's solution into an answer."""

    def apply(self, given: Given) -> tuple[Program, Callable[[Solution], Answer]]:
        """Return the program, and its inverse: a function from solutions of the program to answers."""


@dataclass(frozen=True, eq=False)
class FormMultipliers:
    """Multipliers >= 0 of a normal form.

    Attributes:
        sources: Groups s of the rows exp(exponents[s, t]) p(o|t) − p(o|s) >= 0 that have one.
        targets: Their groups t.
        observables: Their observables o.
        values: The multipliers of these rows.
        floors: Those of each floor, (estimates, observables).
        weights: (n,), those of the secrets where the worst cost counts, of any sum.
        potentials: λ (k,), those of the row sums, where the solver gave them.
    """

    sources: Integers
    targets: Integers
    observables: Integers
    values: Floats
    floors: tuple[Floats, ...] = ()
    weights: Floats | None = None
    potentials: Floats | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """What solving says about a normal form: nothing of it is believed before it is certified.

    Attributes:
        matrix: p(o|group), (k, m), or None where the solver gave no point.
        multipliers: What proves a lower bound, or None.
        summary: How the solve went. Its status is OPTIMAL when the last program was solved and none of the rows that it
            left out is violated by more than the tolerance pays for.
        start: What the same solver can start from next time.
        relative_error: Where the matrix keeps all bounds between groups by construction, up to rounding: the relative
            error with which it does.
    """

    matrix: Floats | None
    multipliers: FormMultipliers | None
    summary: SolveSummary
    start: object = None
    relative_error: float | None = None

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return self.summary.status

    def noted(self, **changes: object) -> Candidate:
        """Return this answer with other facts in its summary."""
        return replace(self, summary=replace(self.summary, **changes))  # type: ignore[arg-type]
