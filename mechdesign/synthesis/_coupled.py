"""Design channels for parts with disjoint answers that share distortion floors.

Each part has its own pricing problem (Dantzig–Wolfe decomposition). An answer reveals which part contains the secret,
so the adversary's errors for the parts add up.

The floors are Σ_k M_k d_ki >= D_i, where M_k is the probability of part k and d_ki its distortion for floor i. Given a
price t_i >= 0 for each floor, each part is a separate program: minimise c_k − Σ_i t_i d_ki. A small master program
mixes the proposed channels of the parts so that the floors are met at the least cost. The multipliers of the master
program are the prices of the next round. The cost of a mixture is the mean of its channels' costs. A mixture's
distortion is at least the mean of its channels' distortions: a minimum of sums is at least the sum of the minima. Every
round gives the lower bound Σ_i t_i D_i + Σ_k M_k min(c_k − Σ_i t_i d_ki).

Source: Dantzig and Wolfe, Decomposition principle for linear programs, Operations Research, 1960.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError, SolverError
from mechdesign.certify._claims import Floor
from mechdesign.certify._costs import distortion
from mechdesign.certify._evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._privacy import check
from mechdesign.certify._stated import Stated
from mechdesign.model._channel import EXPONENT
from mechdesign.model._problem import Problem, largest_distortion
from mechdesign.model._requirements._kinds import ClaimedPrivacy
from mechdesign.solve import _solve as solvers
from mechdesign.solve._column_generation import (
    Bracket,
    GenerationOutcome,
    PricingResult,
    RestrictedSolution,
    generate_columns,
)
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._attempts import choose_simplex_solver, takes_blocks
from mechdesign.synthesis._normal import find_bounded_pairs, normalise
from mechdesign.synthesis._parts import (
    AssembledChannel,
    MultiplierCollector,
    Part,
    PartCache,
    find_undominated,
    restrict_problem,
)
from mechdesign.synthesis._recovery import lift_multipliers
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._rounding import compute_cost, find_cheapest_constant, round_channel
from mechdesign.synthesis._rows import RowReduction, list_all_rows
from mechdesign.synthesis._settings import Rows, SolveSettings


@dataclass(frozen=True, eq=False)
class PartProposal:
    """A channel p(o|group) of a part, with its cost and its distortion for each floor, under the part's prior."""

    matrix: Floats
    cost: float
    distortions: Floats


@dataclass(frozen=True, eq=False)
class PartAnswer:
    """The solution of a pricing problem.

    Attributes:
        proposal: The channel of the solution.
        bound: Lower bound on the cost minus prices times distortions.
        multipliers: Multipliers that prove the bound.
    """

    proposal: PartProposal
    bound: float
    multipliers: Multipliers


def make_pricing_problem(problem: Problem, part: Part, floors: Sequence[int]) -> tuple[Problem, dict[int, Integers]]:
    """Return the pricing problem of a part, and for each of its floors the estimates that the problem contains.

    `floors` are indices among the claims. An estimate is left out if another estimate is at least as good for each
    secret of the part. In the pricing problem, each floor gets the largest possible minimum, which serves only as a
    scale. A floor is left out if all its minimum values are 0. If a floor has its own prior, its errors are weighted by
    the part's probability under it.
    """
    alone = restrict_problem(problem, part, part.observables)
    statements = list(alone.stated)
    estimates: dict[int, Integers] = {}
    for index in floors:
        floor = problem.floors[index]
        errors = floor.error[:, part.secrets]
        kept, _ = find_undominated(errors.T)
        if floor.prior is None:
            prior, errors = alone.prior, errors[kept]
        elif (total := floor.prior[part.secrets].sum()) > 0:
            prior, errors = floor.prior[part.secrets] / total, errors[kept] * (total / part.mass)
        else:
            continue
        largest = largest_distortion(prior, errors)
        if largest:
            own = None if floor.prior is None else prior
            statements[index] = Stated.floor("priced", largest, errors, own)
            estimates[index] = kept
    requirements = [ClaimedPrivacy([stated], part.secrets.size) for stated in statements]
    return Problem(alone.prior, alone.cost, requirements), estimates


@dataclass(eq=False)
class PartClass:
    """A class of equal parts at different places, which share one program.

    Attributes:
        problem: The pricing problem.
        floors: Indices of the priced floors among the requirements.
        rows: Privacy rows of the program.
        mass: Total probability of the parts of this class.
    """

    problem: Problem
    floors: tuple[int, ...]
    rows: Rows
    mass: float = 0.0
    _start: object = None

    def __post_init__(self) -> None:
        self.form = normalise(self.problem)
        pairs = find_bounded_pairs(self.form, "all" if self.rows == "all" else "reduced")
        self._program, self._inverse = RowReduction(list_all_rows(pairs, self.form.observables)).apply(self.form)
        self.constant = self.propose(np.tile(find_cheapest_constant(self.form), (self.form.groups, 1)))

    def propose(self, matrix: Floats) -> PartProposal:
        """Return a channel p(o|group) with its cost and the adversary's errors."""
        rows = np.clip(matrix, 0.0, 1.0)
        rows /= rows.sum(axis=1, keepdims=True)
        known = {floor.requirement: float((floor.error @ rows).min(axis=0).sum()) for floor in self.form.floors}
        distortions = np.array([known.get(index, 0.0) for index in self.floors])
        return PartProposal(rows, compute_cost(self.form, rows[self.form.group]), distortions)

    def ask(self, prices: Floats, solver: str, options: Options) -> tuple[Status, PartAnswer | None]:
        """Minimise Σ π p c − Σ_i price_i · distortion_i; return None if the solver was stopped before the optimum.

        Raises SolverError if the solver fails.
        """
        program, inverse = self._program, self._inverse
        cost, lower = program.cost.copy(), program.row_lower.copy()
        at = dict(zip(self.floors, prices.tolist(), strict=True))
        for i, (floor, factor) in enumerate(zip(self.form.floors, inverse.floor_scales, strict=True)):
            cost[program.column_blocks[f"x{i}"]] = -at[floor.requirement] * inverse.scale / factor
            # The last row of a floor is the floor itself. A single part does not have to meet the floor.
            lower[program.row_blocks[f"floor{i}"].stop - 1] = -np.inf
        found = solvers.solve(replace(program, cost=cost, row_lower=lower), solver, options, self._start)
        if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.ITERATION_LIMIT):
            return found.status, None
        if found.status not in (Status.OPTIMAL, Status.STALLED) or not np.isfinite(found.row_dual).all():
            raise SolverError(f"{solver} returned an unusable solution: {found.message}")
        self._start = found.start
        proposal = self.propose(inverse.channel(found.x))
        multipliers = lift_multipliers(self.form, inverse.multipliers(found.row_dual))
        return found.status, PartAnswer(proposal, inverse.bound(found), multipliers)


# Gaps are relative to the cost or, if the cost is smaller, to this share of the largest entry of the cost matrix.
_UNIT = 1e-9
_MAX_ROUNDS = 300
# Share of the tolerance that the decomposition may use; rounding may use the rest.
_GAP_SHARE = 0.3
# Feasibility tolerance and relative gap of the linear programs.
_SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class PartColumns:
    """The working set: the proposed channels for each class of equal parts, starting with the constant channel."""

    proposals: tuple[tuple[PartProposal, ...], ...]

    def __len__(self) -> int:
        """Return the number of proposals."""
        return sum(map(len, self.proposals))

    def add(self, columns: Sequence[tuple[int, PartProposal]]) -> Self:
        """Return the working set with additional proposals, each given with the index of its class."""
        more = [tuple(one for kind, one in columns if kind == number) for number in range(len(self.proposals))]
        return type(self)(tuple(old + new for old, new in zip(self.proposals, more, strict=True)))


@dataclass(frozen=True, eq=False)
class PartMixture:
    """A mixture that meets the floors: for each class of parts, the proposals and an array of their shares."""

    proposals: tuple[tuple[PartProposal, ...], ...]
    shares: Sequence[Floats]


@dataclass(frozen=True, eq=False)
class PricedParts:
    """Prices of the floors, and the solutions of all pricing problems, which prove a lower bound."""

    prices: Floats
    answers: Sequence[PartAnswer]


PartsBest = Bracket[PartMixture, PricedParts]


class PartMixtureMaster:
    """The master program, which mixes the proposals of the parts."""

    def __init__(self, kinds: Sequence[PartClass], minima: Floats, tolerance: float, deadline: Deadline) -> None:
        self.kinds, self.minima, self.deadline = kinds, minima, deadline
        self.options = Options(tolerance, deadline=deadline.quiet())

    def solve(self, working: PartColumns, number: int, best: PartsBest) -> RestrictedSolution[PartColumns, Floats]:
        """Mix the proposals so that the floors are met at the least cost; round 0 mixes nothing and has prices of 0."""
        cost = sum(kind.mass * kind.constant.cost for kind in self.kinds)
        if not number:
            best.offer_point(cost, PartMixture(working.proposals, [np.ones(1) for _ in self.kinds]))
            return RestrictedSolution(working, np.zeros(self.minima.size))
        # Costs are divided by the cost of the constant channels, and floors by their minima, so that all numbers are of
        # order 1.
        scale = cost or 1.0
        found = solvers.solve(self._program(working, scale), choose_simplex_solver(), self.options)
        if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            return RestrictedSolution(working, np.zeros(self.minima.size), found.status, found.message, -np.inf)
        if found.status is not Status.OPTIMAL:
            raise SolverError(f"the master program of the parts could not be solved: {found.message}")
        counts = [len(each) for each in working.proposals]
        shares = [np.clip(part, 0.0, None) for part in np.split(found.x, np.cumsum(counts)[:-1])]
        value = found.residuals.objective * scale
        best.offer_point(value, PartMixture(working.proposals, [part / part.sum() for part in shares]))
        self.deadline.tell(f"round {number}", number, best.lower, value)
        prices = np.maximum(found.row_dual[: self.minima.size], 0.0) * scale / self.minima
        return RestrictedSolution(working, prices)

    def _program(self, working: PartColumns, scale: float) -> LinearProgram:
        weighted = [(kind.mass, one) for kind, each in zip(self.kinds, working.proposals, strict=True) for one in each]
        width = len(weighted)
        distortions = np.array([mass * one.distortions / self.minima for mass, one in weighted])
        owners = np.repeat(np.arange(len(self.kinds)), [len(each) for each in working.proposals])
        sums = sparse.coo_array((np.ones(width), (owners, np.arange(width))), shape=(len(self.kinds), width))
        count = self.minima.size
        return LinearProgram(
            cost=np.array([mass * one.cost for mass, one in weighted]) / scale,
            matrix=sparse.csr_array(sparse.vstack([sparse.csr_array(distortions.T), sums])),
            row_lower=np.ones(count + len(self.kinds)),
            row_upper=np.concatenate([np.full(count, np.inf), np.ones(len(self.kinds))]),
            lower=np.zeros(width),
            upper=np.full(width, np.inf),
            name="mixture",
        )


class PartPricer:
    """Solves the pricing problems of all classes of parts; `rounds` counts the rounds in which all were solved."""

    def __init__(self, kinds: Sequence[PartClass], minima: Floats, solver: str, options: Options) -> None:
        self.kinds, self.minima, self.solver, self.options = kinds, minima, solver, options
        self.rounds = 0

    def price(self, found: RestrictedSolution[PartColumns, Floats], best: PartsBest) -> PricingResult:
        """Return the new proposals, and offer the whole problem's lower bound to `best`, which keeps the largest."""
        prices, answers = found.prices, []
        for kind in self.kinds:
            status, answer = kind.ask(prices, self.solver, self.options)
            if answer is None:
                return PricingResult(status=status)
            answers.append(answer)
        self.rounds += 1
        bound = float(prices @ self.minima)
        bound += sum(kind.mass * one.bound for kind, one in zip(self.kinds, answers, strict=True))
        best.offer_bound(bound, PricedParts(prices, answers))
        known = found.working.proposals
        return PricingResult(
            [
                (number, one.proposal)
                for number, one in enumerate(answers)
                if not any(np.array_equal(one.proposal.matrix, other.matrix) for other in known[number])
            ]
        )


def decompose(
    kinds: Sequence[PartClass],
    minima: Floats,
    solver: str,
    settings: SolveSettings,
    deadline: Deadline,
) -> tuple[GenerationOutcome[PartColumns], PartsBest, int]:
    """Alternate between pricing and mixing until cost and lower bound agree, or until the time limit.

    Args:
        kinds: The classes of equal parts.
        minima: The floors, positive; none exceeds the distortion of the constant channels.
        solver: Name of the solver of the pricing problems.
        settings: Tolerance, threads and options.
        deadline: Deadline of the design.

    Returns:
        The outcome, the best mixture with the best bound, and the number of rounds.

    Raises:
        SolverError: A solver fails.
    """
    options = Options(_SOLVER_TOLERANCE, deadline=deadline.quiet(), threads=settings.threads, extra=settings.options)
    best: PartsBest = Bracket(_UNIT * max(float(np.abs(kind.problem.cost).max()) for kind in kinds))
    pricer = PartPricer(kinds, minima, solver, options)
    outcome = generate_columns(
        PartMixtureMaster(kinds, minima, _SOLVER_TOLERANCE, deadline), pricer,
        PartColumns(tuple((kind.constant,) for kind in kinds)), best, _GAP_SHARE * settings.tolerance, deadline,
        max_rounds=_MAX_ROUNDS, min_entering_limit=len(kinds),
    )  # fmt: skip
    return outcome, best, pricer.rounds


_Columns = tuple[Integers, Integers, Floats]


@dataclass(frozen=True, eq=False)
class _Member:
    """A part, the index of its class, and for each floor the indices of the estimates that the pricing problem uses."""

    part: Part
    kind: int
    estimates: Mapping[int, Integers]


def couple(problem: Problem, parts: Sequence[Part], settings: SolveSettings, deadline: Deadline) -> AssembledChannel:
    """Design a channel for parts that share floors.

    Args:
        problem: The problem, which meets the conditions of `is_decomposable`.
        parts: Its parts.
        settings: The solver must be "auto" (the simplex method with warm starts) or a solver of row programs. The rows
            must be "auto", "all" or "reduced".
        deadline: Deadline of the design.

    Returns:
        The integer channel, its multipliers and a summary.

    Raises:
        InputError: The settings choose another solver or other rows.
        SolverError: A solver fails.
    """
    _check_choices(settings)
    floors = {i: floor for i, floor in problem.floors.items() if floor.minimum > 0}
    known: PartCache[int] = PartCache()
    kinds: list[PartClass] = []
    members: list[_Member] = []
    for part in parts:
        alone, estimates = make_pricing_problem(problem, part, tuple(floors))
        number = known.answer(alone, lambda: len(kinds))
        if number == len(kinds):
            kinds.append(PartClass(alone, tuple(floors), settings.rows))
        kinds[number].mass += part.mass
        members.append(_Member(part, number, estimates))
    name = choose_simplex_solver() if settings.solver == "auto" else settings.solver
    minima = np.array([float(floor.minimum) for floor in floors.values()])
    outcome, best, rounds = decompose(kinds, minima, name, settings, deadline)
    assert best.point is not None
    channels, weight = _round_parts(problem, kinds, members, best.point, floors)
    numerators = np.zeros(problem.cost.shape, dtype=np.int64)
    for member in members:
        numerators[np.ix_(member.part.secrets, member.part.observables)] = channels[member.kind]
    summary = SolveSummary(
        outcome.status,
        plan=f"{len(parts)} parts that share floors, {len(kinds)} different ones, by decomposition",
        solver=name,
        parts=len(parts),
        programs=len(kinds),
        rounds=rounds,
        proposals=len(outcome.working),
        floor_weight=float(weight),
    )
    return AssembledChannel(numerators, _assemble_multipliers(problem, members, best.proof, floors), summary)


def is_decomposable(problem: Problem, parts: Sequence[Part]) -> bool:
    """Return whether `couple` can solve a problem.

    The objective must be the expected cost, because the worst cost also couples the parts. All secrets of a part must
    be permitted the same answers. If a floor has its own prior, this prior must be 0 on all parts whose probability
    under the problem's prior is 0.
    """
    beliefs = [floor.prior for floor in problem.floors.values() if floor.minimum > 0]
    scaled = all(part.mass or not prior[part.secrets].any() for prior in beliefs if prior is not None for part in parts)
    return problem.objective == "expected" and scaled and all(part.alike for part in parts)


def _check_choices(settings: SolveSettings) -> None:
    """Raise InputError for a solver or rows that coupled parts do not support."""
    solver, rows = settings.solver, settings.rows
    if solver != "auto" and takes_blocks(solver):
        bound = "auto, or a solver of row programs"
        raise InputError("solver", "does not support parts coupled by a floor", value=solver, bound=bound)
    if rows not in ("auto", "all", "reduced"):
        bound = "auto, all or reduced"
        raise InputError("rows", "cannot be chosen for parts coupled by a floor", value=rows, bound=bound)


def _round_parts(
    problem: Problem,
    kinds: Sequence[PartClass],
    members: Sequence[_Member],
    mixture: PartMixture,
    floors: Mapping[int, Floor],
) -> tuple[list[Integers], float]:
    """Return an integer channel for each class, and the weight of the constant channels mixed in to meet the floors.

    Privacy and floors are checked in exact arithmetic; the distortions of the parts add up.
    """
    weight = 0.0
    while True:
        channels = [
            _round_mixture(*each, weight) for each in zip(kinds, mixture.proposals, mixture.shares, strict=True)
        ]
        short = 0.0
        for index, floor in enumerate(floors.values()):
            value = sum(
                (_measure_distortion(problem, floor, one.part, channels[one.kind]) for one in members), Fraction(0)
            )
            if value < floor.minimum:
                room = sum(kind.mass * kind.constant.distortions[index] for kind in kinds) - float(value)
                missing = float(floor.minimum - value) / room if room > 0 else 1.0
                short = max(short, weight + (1 - weight) * min(1.0, max(missing, 2.0**-50)))
        if not short:
            return channels, weight
        if weight >= 1.0:
            raise SolverError("the constant channels do not meet a floor that they should meet")
        weight = min(1.0, max(2 * weight, short * (1 + 1e-9) + 2.0**-50))


def _measure_distortion(problem: Problem, floor: Floor, part: Part, numerators: Integers) -> Fraction:
    prior = floor.prior_or(problem.prior)
    return distortion(numerators, EXPONENT, prior[part.secrets], floor.error[:, part.secrets])


def _round_mixture(kind: PartClass, proposals: Sequence[PartProposal], shares: Floats, weight: float) -> Integers:
    """Mix the proposals of a class with its constant channel, which has the given weight, and round the mixture."""
    bounds = kind.problem.pair_bounds.values()
    # For a class of probability 0, the mixture of the master program is arbitrary, so the cheapest proposal is used.
    if not kind.mass:
        shares = np.eye(shares.size)[int(np.argmin([one.cost for one in proposals]))]
    matrix = weight * kind.constant.matrix
    for share, one in zip(shares.tolist(), proposals, strict=True):
        matrix = matrix + (1 - weight) * share * one.matrix
    found = round_channel(
        replace(kind.form, floors=()),
        matrix,
        lambda numerators: all(check(numerators, EXPONENT, bound) is None for bound in bounds),
        lambda _: (),
    )
    if found is None:
        raise SolverError("the solution of a part cannot be rounded to a channel that meets all pair bounds")
    return found.numerators


def _assemble_multipliers(
    problem: Problem, members: Sequence[_Member], found: PricedParts | None, floors: Mapping[int, Floor]
) -> Multipliers:
    """Assemble the multipliers of the best bound.

    The multipliers of a floor must sum to its price for every observable, even if no secret may answer this observable.
    """
    gathered = MultiplierCollector(problem)
    if found is None:
        return gathered.multipliers()
    unused = np.ones(problem.cost.shape[1], dtype=np.bool_)
    prices = dict(zip(floors, found.prices.tolist(), strict=True))
    for member in members:
        part, answer = member.part, found.answers[member.kind]
        unused[part.observables] = False
        for index, entry in enumerate(answer.multipliers.requirements):
            if isinstance(entry, PairMultipliers) and part.mass:
                ends = part.secrets[entry.sources], part.secrets[entry.targets]
                gathered.add(index, *ends, part.observables[entry.observables], entry.values * part.mass)
        for index, floor in floors.items():
            for estimates, observables, values in _list_attacks(problem, member, answer, index, floor, prices[index]):
                gathered.add(index, estimates, part.observables[observables], values)
    idle = np.flatnonzero(unused)
    for index, price in prices.items():
        gathered.add(index, np.zeros(idle.size, dtype=np.int64), idle, np.full(idle.size, price))
    return gathered.multipliers()


def _list_attacks(
    problem: Problem, member: _Member, answer: PartAnswer, index: int, floor: Floor, price: float
) -> Iterator[_Columns]:
    """Yield estimates, observables and multipliers of a floor; for each observable, the multipliers sum to the price.

    If the solver returned no multipliers for an observable, the best estimate for the part gets the whole price.
    """
    secrets, size = member.part.secrets, member.part.observables.size
    entry = answer.multipliers.requirements[index]
    assert isinstance(entry, FloorMultipliers)
    given = index in member.estimates
    sums = np.bincount(entry.observables, entry.values, size) if given else np.zeros(size)
    if given:
        used = np.flatnonzero((entry.values > 0) & (sums[entry.observables] > 0))
        observables = entry.observables[used]
        scaled = entry.values[used] * (price / sums[observables])
        yield member.estimates[index][entry.estimates[used]], observables, scaled
    remaining = np.flatnonzero(sums == 0)
    best = int((floor.error[:, secrets] @ floor.prior_or(problem.prior)[secrets]).argmin())
    yield np.full(remaining.size, best), remaining, np.full(remaining.size, price)
