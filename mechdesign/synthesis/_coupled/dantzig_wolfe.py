"""Design channels for parts with disjoint answers that share distortion floors.

An answer reveals which part contains the secret, so the adversary's errors for the parts add up. See
`mechdesign.synthesis._coupled.column_generation` for the decomposition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError, SolverError
from mechdesign.certify._claims import Floor
from mechdesign.certify._costs import distortion
from mechdesign.certify._evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._privacy import check
from mechdesign.model._channel import EXPONENT
from mechdesign.model._problem import Problem
from mechdesign.synthesis._attempts import choose_simplex_solver, takes_blocks
from mechdesign.synthesis._coupled.column_generation import PartMixture, PricedParts, decompose
from mechdesign.synthesis._coupled.pricing import PartAnswer, PartClass, PartProposal, make_pricing_problem
from mechdesign.synthesis._parts import AssembledChannel, MultiplierCollector, Part, PartCache
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._rounding import round_channel
from mechdesign.synthesis._settings import SolveSettings

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
    return AssembledChannel(numerators, _multipliers(problem, members, best.proof, floors), summary)


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
            value = sum((_distortion(problem, floor, one.part, channels[one.kind]) for one in members), Fraction(0))
            if value < floor.minimum:
                room = sum(kind.mass * kind.constant.distortions[index] for kind in kinds) - float(value)
                missing = float(floor.minimum - value) / room if room > 0 else 1.0
                short = max(short, weight + (1 - weight) * min(1.0, max(missing, 2.0**-50)))
        if not short:
            return channels, weight
        if weight >= 1.0:
            raise SolverError("the constant channels do not meet a floor that they should meet")
        weight = min(1.0, max(2 * weight, short * (1 + 1e-9) + 2.0**-50))


def _distortion(problem: Problem, floor: Floor, part: Part, numerators: Integers) -> Fraction:
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


def _multipliers(
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
            for estimates, observables, values in _attacks(problem, member, answer, index, floor, prices[index]):
                gathered.add(index, estimates, part.observables[observables], values)
    idle = np.flatnonzero(unused)
    for index, price in prices.items():
        gathered.add(index, np.zeros(idle.size, dtype=np.int64), idle, np.full(idle.size, price))
    return gathered.multipliers()


def _attacks(
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
