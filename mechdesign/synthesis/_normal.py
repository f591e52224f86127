"""The normal form of a problem, and the pairs of its groups that need rows.

A problem is solved by a chain of reductions, which are undone in reverse order:

    Problem ─ restriction to a part ─ normal form ─ row program or block program ─ solver

The entries of a channel are integers N <= 2^k in units of 2^-k, where k = `mechdesign.model._channel.EXPONENT` = 62.
Because the entries are integers, only some exponents ln g of the bounds p_s <= g p_t are useful:

- For g >= 2^k, N_s <= g N_t only requires that N_s is 0 if N_t is 0. `VACUOUS` = k ln 2, about 43.0, is the exponent of
  g = 2^k. The block method omits bounds with larger exponents, and rounding caps larger exponents at `VACUOUS`.
- A solver of row programs evaluates g p_t and p_s in double precision. Bounds with exponents beyond
  `LARGEST_ROW_EXPONENT` = 40 get no row; this limit is four bits below `VACUOUS`. The coefficients √g and 1/√g then
  stay between 2·10^-9 and 5·10^8. Rounding repairs a bound without a row by moving at most 1/g of probability, about 16
  units.

The verifier does not use these limits: it compares the integers themselves (`mechdesign.certify._privacy`).

A program needs rows only for some pairs (docs/theory/programs.md). The exact reduction omits pairs whose bounds follow
from others; a spanner omits more. A subset of the pairs is a δ-spanner if each pair has a path through the subset whose
length is at most δ times the pair's exponent. The least such δ is the dilation of the subset. Bounds on the pairs of a
δ-spanner imply bounds on all other pairs, with exponents multiplied by δ. Source: Bordenabe, Chatzikokolakis and
Palamidessi, Optimal geo-indistinguishable mechanisms for location privacy, 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.model._channel import EXPONENT
from mechdesign.model._claims import label_components
from mechdesign.model._problem import Problem
from mechdesign.solve._block_angular import imply_exponents
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.solve._contract import Status
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._settings import Rows

VACUOUS = EXPONENT * math.log(2)
"""The exponent beyond which a bound only requires that p(o|s) is 0 if p(o|t) is 0."""

LARGEST_ROW_EXPONENT = float(math.floor((EXPONENT - 4) * math.log(2)))
"""The largest exponent of a bound that gets a row in a row program."""


@dataclass(frozen=True, eq=False)
class FloorRows:
    """A distortion floor over merged secrets: Σ_o min_ŝ Σ_g error[ŝ, g] p(o|g) >= minimum.

    Attributes:
        requirement: Index of the floor among the claims of the problem.
        claim: The exact floor.
        error: Σ π_s a(ŝ, s) over the secrets s of each group, shape (estimates, groups). The prior π is the floor's
            prior or, if the floor has none, the problem's prior.
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
    """A problem over k groups of secrets with equal rows.

    A bound with exponent 0 between two secrets, in either direction, forces equal rows, because both rows sum to 1.
    Secrets connected by slightly larger exponents may also be merged, at little cost (see `normalise`).

    Attributes:
        problem: The problem.
        group: Group of each secret, shape (n,).
        exponents: Least ln g over all bounds p(o|s) <= g p(o|t) between members of two groups, shape (k, k). The
            exponent is infinite for pairs without a bound, and on the diagonal.
        owner: Index of the claim that determines each exponent, shape (k, k).
        source: Secret s of the bound that determines each exponent, shape (k, k).
        target: Secret t of the bound that determines each exponent, shape (k, k).
        floors: The positive floors over groups.
        ties: Bounds (secret, parent, claim, forward) that connect each group, in order from the leaves of its spanning
            tree to its root. `forward` is true if the bound limits p(o|secret) by p(o|parent).
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
        """Whether an answer is forbidden to a group, shape (k, m): it is forbidden to at least one member."""
        forbidden = np.zeros((self.groups, self.observables), dtype=np.bool_)
        np.logical_or.at(forbidden, self.group, np.isinf(self.problem.cost))
        return forbidden

    @cached_property
    def finite_cost(self) -> Floats:
        """The costs (n, m) of the problem, with 0 for forbidden answers."""
        return np.where(np.isinf(self.problem.cost), 0.0, self.problem.cost)

    @cached_property
    def components(self) -> Integers:
        """A label for each group, shape (k,): groups connected by bounds have the same label."""
        return label_components(self.groups, np.argwhere(np.isfinite(self.exponents)))

    @cached_property
    def implied(self) -> Floats:
        """The exponents (k, k) that chains of bounds imply: lengths of shortest paths, 0 on the diagonal."""
        return imply_exponents(self.exponents)

    def gather(self, per_secret: Floats) -> Floats:
        """Sum an array (n, …) over the members of each group, and return the sums (k, …)."""
        summed = np.zeros((self.groups, *per_secret.shape[1:]))
        np.add.at(summed, self.group, per_secret)
        return summed


def normalise(problem: Problem, alike: float = 0.0) -> NormalForm:
    """Bring a problem into normal form; secrets connected by bounds with exponents of at most `alike` are merged.

    If `alike` is above 0, the normal form excludes some of the problem's channels, because the rows within a group are
    equal. In this case, the form's multipliers prove a lower bound for the problem that is weaker by about `alike`,
    relative to the costs.
    """
    n = problem.prior.size
    bounds = list(problem.pair_bounds.items())
    group, ties = _group_secrets(n, bounds, alike)
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
        for least, new in ((exponents, best), (source, first), (target, second)):
            least[better] = new[better]
        owner[better] = i
    np.fill_diagonal(exponents, np.inf)
    floors = []
    for i, floor in problem.floors.items():
        if floor.minimum > 0:
            error = np.zeros((floor.error.shape[0], groups))
            np.add.at(error.T, group, (floor.error * floor.prior_or(problem.prior)).T)
            floors.append(FloorRows(i, floor, error))
    return NormalForm(problem, group, exponents, owner, source, target, tuple(floors), ties)


def _group_secrets(
    n: int, bounds: list[tuple[int, PairBound]], alike: float
) -> tuple[Integers, tuple[tuple[int, int, int, bool], ...]]:
    """Return the group of each secret, and the ties of the groups; see `NormalForm`."""
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


@dataclass(frozen=True, eq=False)
class FormMultipliers:
    """Multipliers >= 0 of a normal form.

    Attributes:
        sources: Groups s of the rows exp(exponents[s, t]) p(o|t) − p(o|s) >= 0 with a multiplier.
        targets: Groups t of these rows.
        observables: Observables o of these rows.
        values: Multipliers of these rows.
        floors: Multipliers of each floor, shape (estimates, observables).
        weights: Weights of the secrets for the worst cost, shape (n,), with any sum; None for the expected cost.
        potentials: Multipliers λ of the row sums, shape (k,), if the solver returned them.
    """

    sources: Integers
    targets: Integers
    observables: Integers
    values: Floats
    floors: tuple[Floats, ...] = ()
    weights: Floats | None = None
    potentials: Floats | None = None


@dataclass(frozen=True, eq=False)
class ChannelCandidate:
    """A solver's channel and multipliers for a normal form, not yet certified.

    Attributes:
        matrix: p(o|group), shape (k, m), or None if the solver returned no point.
        multipliers: Multipliers for a lower bound, or None.
        summary: Summary of the solve. The status is OPTIMAL if the last program was solved, and if a repair of the
            violated rows costs at most the tolerance.
        start: A warm start for the same solver.
        relative_error: Relative error with which the matrix keeps all bounds between groups. The value is None if the
            matrix does not keep these bounds by construction.
    """

    matrix: Floats | None
    multipliers: FormMultipliers | None
    summary: SolveSummary
    start: object = None
    relative_error: float | None = None

    @property
    def status(self) -> Status:
        """The reason why the solve ended."""
        return self.summary.status

    def with_facts(self, **changes: object) -> ChannelCandidate:
        """Return this candidate with changed fields in its summary."""
        return replace(self, summary=replace(self.summary, **changes))  # type: ignore[arg-type]


# Relative rounding error that a comparison of path lengths allows.
_ROUNDING = 1e-12
# Number of source secrets for which one call of SciPy computes shortest paths.
_SOURCES_PER_BATCH = 64
# The search for irreducible pairs considers this number of nearest secrets, after a test with a few secrets.
_NEAREST_SECRETS, _TRIAL_SECRETS = 32, 8


def mark_irreducible(exponents: Floats, dilation: float = 1.0, deadline: Deadline | None = None) -> Flags:
    """Mark the pairs (s, t) whose bound is not implied by two shorter bounds.

    `exponents` (k, k) is infinite for pairs without a bound. A pair is left out if, for some r,
    ``exponents[s, r] + exponents[r, t] <= dilation * exponents[s, t]`` and both summands are smaller than
    ``exponents[s, t]``.

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
