"""Independent parts: split, solve once, assemble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.certify._evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.model._channel import EXPONENT
from mechdesign.model._components import label_disclosed_sets, label_tied_secrets
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.synthesis._normal import VACUOUS
from mechdesign.synthesis._recovery import nothing
from mechdesign.synthesis._result import Design, SolveSummary


@dataclass(frozen=True, eq=False)
class Assembled:
    """An integer channel for the whole problem, the multipliers that prove its cost, and how both were found."""

    numerators: Integers
    multipliers: Multipliers
    summary: SolveSummary


class Gathered:
    """Sparse multipliers of a problem's requirements, collected part by part."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._entries: list[list[tuple[Floats | Integers, ...]]] = [[] for _ in problem.claims]

    def add(self, requirement: int, *columns: Integers | Floats) -> None:
        """Add entries of one requirement: the columns of `PairMultipliers` or `FloorMultipliers`."""
        self._entries[requirement].append(columns)

    def multipliers(self, weights: Floats | None = None) -> Multipliers:
        """Return all that was added."""
        found: list[PairMultipliers | FloorMultipliers] = []
        for place, entries in enumerate(self._entries):
            columns = [np.concatenate(column) for column in zip(*entries, strict=True)]
            kind = FloorMultipliers if place in self._problem.floors else PairMultipliers
            found.append(kind(*columns) if columns else nothing(self._problem, place))
        return Multipliers(tuple(found), weights)


T = TypeVar("T")

# Parts of a map differ in the last digits of their coordinates, and so of their costs.
_RESOLUTION = 1e-12

# Of a part that is less likely than this not even a relative gap of 1e-9 can tell how well it is served.
_NEVER = 1e-200


@dataclass(frozen=True, eq=False)
class Part:
    """Secrets that are solved together, with the observables permitted to any of them; ascending indices of both.

    `mass` is the probability of the secrets; 0 where it is too small to matter. `alike` tells whether all of them are
    permitted the same observables.
    """

    secrets: Integers
    observables: Integers
    mass: float
    alike: bool = True


def has_floors(problem: Problem) -> bool:
    """Tell whether a distortion floor couples all secrets."""
    return any(floor.minimum > 0 for floor in problem.floors.values())


def split(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a problem, in the order of their first secrets.

    Without floors these are the sets that bounds on pairs tie together. A floor also joins secrets with a common
    permitted answer, since the adversary's error about that answer does not split. The members of a part may be
    permitted different answers: by a floor over answers that they share in part, or by bounds in one direction.
    """
    labels = (
        label_disclosed_sets(problem.cost, problem.claims)
        if has_floors(problem)
        else label_tied_secrets(len(problem.prior), problem.claims)
    )
    order = np.argsort(labels, kind="stable")
    permitted = np.isfinite(problem.cost)
    parts = []
    for secrets in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        to_any = permitted[secrets].any(axis=0)
        alike = bool((permitted[secrets] == to_any).all())
        mass = float(problem.prior[secrets].sum())
        parts.append(Part(secrets, np.flatnonzero(to_any), mass if mass > _NEVER else 0.0, alike))
    return tuple(parts)


def restricted(problem: Problem, part: Part, observables: Integers) -> Problem:
    """Return the problem of a part alone, with some of its observables and a prior that sums to 1.

    Secrets that never occur count as equally likely. Floors are left out: every floor becomes one of 0.
    """
    size = part.secrets.size
    prior = problem.prior[part.secrets] / part.mass if part.mass else np.full(size, 1 / size)
    requirements = [requirement.restrict(part.secrets) for requirement in problem.requirements]
    return Problem(prior, problem.cost[np.ix_(part.secrets, observables)], requirements, problem.objective)


class Known(Generic[T]):
    """Answers to parts, found again for parts that are equal: to the bit in bounds, to 12 digits in all else.

    The multipliers of one then prove the cost of the other to about as many digits; what is lost is shown by the
    certificate, which is computed from the true numbers.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], list[tuple[Floats, T]]] = {}

    def answer(self, problem: Problem, make: Callable[[], T]) -> T:
        """Return what `make` gave for an equal problem, or what it gives for this one."""
        bounds, numbers = _fingerprint(problem)
        same = self._found.setdefault(bounds, [])
        if same:
            known = np.array([other for other, _ in same])
            close = (np.abs(known - numbers) <= _RESOLUTION * numbers).all(axis=1)
            if close.any():
                return same[int(close.argmax())][1]
        made = make()
        same.append((numbers, made))
        return made


def _fingerprint(problem: Problem) -> tuple[tuple[object, ...], Floats]:
    """Return what must be equal to the bit, and what may differ in the last digits."""
    permitted = np.isfinite(problem.cost)
    bounds: list[object] = [problem.objective, problem.cost.shape, permitted.tobytes()]
    numbers = [problem.prior, problem.cost[permitted]]
    for bound in problem.pair_bounds.values():
        arrays = (bound.sources, bound.targets, *bound.terms)
        bounds += [bound.number, bound.nominal, *(array.tobytes() for array in arrays)]
    for floor in problem.floors.values():
        bounds += [floor.minimum > 0, floor.error.shape, floor.prior is None]
        numbers += [floor.error.ravel(), floor.prior_or(problem.prior)]
    # Multipliers stand in the order of the claims.
    bounds += [*problem.point_bounds.items(), *problem.pair_bounds, *problem.floors]
    return tuple(bounds), np.concatenate(numbers)


def undominated(cost: Floats) -> tuple[Integers, Integers]:
    """Return the columns of `cost` (k, m) that are worth using, ascending, and for each column one that replaces it.

    Column j replaces column o where cost[:, j] <= cost[:, o]: whatever a channel answers by o it may answer by j, under
    the same bounds on pairs and at no higher cost. A column worth using is replaced by itself.
    """
    replaced = np.full(cost.shape[1], -1, dtype=np.int64)
    # What replaces a column has no larger sum; of equal columns the first is kept.
    for column in np.argsort(cost.sum(axis=0), kind="stable").tolist():
        if replaced[column] < 0:
            replaced[(cost[:, [column]] <= cost).all(axis=0) & (replaced < 0)] = column
    return np.unique(replaced), replaced


@dataclass(frozen=True, eq=False)
class Piece:
    """The design of a part, in its place in the whole; `observables` are those that its program had."""

    part: Part
    observables: Integers
    design: Design
    cost: Floats
    kept: Integers
    replaced: Integers

    def multipliers(self) -> Iterator[tuple[int, Integers, Integers, Integers, Floats]]:
        """Yield the multipliers of pairs, also for the observables that the program left out.

        Each is the index of a requirement and the columns of its `PairMultipliers`, in the numbers of the whole.
        """
        if self.design.multipliers is None:
            return
        part = self.part
        copies = _copies(self.design, self.cost, self.kept, self.replaced)
        for index, entry in enumerate(self.design.multipliers.requirements):
            if not isinstance(entry, PairMultipliers):
                continue
            for column, targets in enumerate(copies):
                mine = np.flatnonzero(entry.observables == column)
                if not mine.size:
                    continue
                many = np.tile(mine, targets.size)
                yield (
                    index,
                    part.secrets[entry.sources[many]],
                    part.secrets[entry.targets[many]],
                    part.observables[np.repeat(targets, mine.size)],
                    entry.values[many],
                )


@dataclass(frozen=True, eq=False)
class RestrictionInverse:
    """The way back from a part to the whole."""

    part: Part
    cost: Floats
    kept: Integers
    replaced: Integers

    def __call__(self, design: Design) -> Piece:
        """Put the design of the part in its place."""
        return Piece(self.part, self.part.observables[self.kept], design, self.cost, self.kept, self.replaced)


@dataclass(frozen=True, eq=False)
class Restriction:
    """From a problem to the problem of one part, and back."""

    part: Part

    def apply(self, problem: Problem) -> tuple[Problem, RestrictionInverse]:
        """Return the problem of the part, with a prior that sums to 1, and its inverse."""
        cost = problem.cost[np.ix_(self.part.secrets, self.part.observables)]
        every = np.arange(self.part.observables.size)
        kept, replaced = undominated(cost) if self.part.alike else (every, every)
        alone = restricted(problem, self.part, self.part.observables[kept])
        return alone, RestrictionInverse(self.part, cost, kept, replaced)


def _copies(design: Design, cost: Floats, kept: Integers, replaced: Integers) -> list[Integers]:
    """Return, for each column that was solved for, the columns of the part that need its multipliers, itself first.

    Without multipliers a column o has the reduced costs w_s c(s, o), which may lie below the row's least one λ_s; with
    those of the column j that replaces it, they are w_s (c(s, o) − c(s, j)) >= 0 above those of j. Most columns that
    were left out are so costly that they need none.
    """
    copies = [np.array([column]) for column in kept.tolist()]
    dropped = np.flatnonzero(replaced != np.arange(replaced.size))
    if dropped.size:
        weights, reduced = _reduced_costs(design)
        low = (weights[:, None] * cost[:, dropped] < reduced.min(axis=1)[:, None]).any(axis=0)
        for column, position in zip(dropped[low], np.searchsorted(kept, replaced[dropped[low]]), strict=True):
            copies[position] = np.append(copies[position], column)
    return copies


def _reduced_costs(design: Design) -> tuple[Floats, Floats]:
    """Return the weights w (k,) and w_s c(s,o) − Σ g y(r,s,o) + Σ y(s,t,o), shape (k, q), in floating point."""
    problem, multipliers = design.problem, design.multipliers
    assert multipliers is not None
    weights = problem.prior if multipliers.weights is None else multipliers.weights
    reduced = weights[:, None] * problem.cost
    for place, bound in problem.pair_bounds.items():
        entry = multipliers.requirements[place]
        if isinstance(entry, PairMultipliers):
            exponents = np.zeros((weights.size, weights.size))
            exponents[bound.sources, bound.targets] = bound.exponents
            growth = np.exp(np.minimum(exponents[entry.sources, entry.targets], VACUOUS))
            np.add.at(reduced, (entry.sources, entry.observables), entry.values)
            np.add.at(reduced, (entry.targets, entry.observables), -growth * entry.values)
    return weights, reduced


def assemble(problem: Problem, parts: Sequence[Part], solve: Callable[[Problem, str], Design]) -> Assembled:
    """Solve a problem without floors part by part, with `solve` given the problem and the name of a part.

    Rows of different parts have no requirement in common: for the expected cost the least costs add up, with the
    multipliers of each part weighted by its probability. For the worst cost every part is made as good as it can be,
    and the part with the largest bound proves it for all. A secret alone gets its cheapest answer.
    """
    numerators = np.zeros(problem.cost.shape, dtype=np.int64)
    gathered = Gathered(problem)
    known: Known[Design] = Known()
    designs: dict[int, Design] = {}
    worst: tuple[float, Part, Piece | None] | None = None
    for number, part in enumerate(parts, start=1):
        if part.secrets.size == 1:
            (secret,) = part.secrets
            numerators[secret, problem.cost[secret].argmin()] = 1 << EXPONENT
            bound, piece = float(problem.cost[secret].min()), None
        else:
            alone, inverse = Restriction(part).apply(problem)
            name = f"part {number} of {len(parts)}"
            piece = inverse(known.answer(alone, lambda alone=alone, name=name: solve(alone, name)))  # type: ignore[misc]
            designs[id(piece.design)] = piece.design
            numerators[np.ix_(part.secrets, piece.observables)] = piece.design.channel.numerators
            bound = piece.design.certificate.lower_bound
            if problem.objective == "expected" and part.mass:
                _gather(gathered, piece, part.mass)
        if worst is None or bound > worst[0]:
            worst = bound, part, piece
    assert worst is not None
    weights = None
    if problem.objective == "worst":
        weights = np.zeros(len(problem.prior))
        _, part, piece = worst
        proved = None if piece is None or piece.design.multipliers is None else piece.design.multipliers.weights
        weights[part.secrets] = 1 / part.secrets.size if proved is None else proved
        if piece is not None:
            _gather(gathered, piece, 1.0)
    summary = _summary(len(parts), [design.summary for design in designs.values()])
    return Assembled(numerators, gathered.multipliers(weights), summary)


def _gather(gathered: Gathered, piece: Piece, scale: float) -> None:
    for index, *ends, values in piece.multipliers():
        gathered.add(index, *ends, values * scale)


def _summary(parts: int, found: Sequence[SolveSummary]) -> SolveSummary:
    return SolveSummary(
        next((one.status for one in found if one.status is not Status.OPTIMAL), Status.OPTIMAL),
        plan=f"{parts} parts that nothing ties together, {len(found)} different ones solved",
        solver=", ".join(sorted({one.solver for one in found if one.solver})) or "closed form",
        solver_version=", ".join(sorted({one.solver_version for one in found if one.solver_version})),
        parts=parts,
        programs=len(found),
        iterations=sum(one.iterations or 0 for one in found),
        privacy_weight=max((one.privacy_weight or 0.0 for one in found), default=0.0),
        floor_weight=0.0,
        rounding_seconds=_total(one.rounding_seconds for one in found),
        proving_seconds=_total(one.proving_seconds for one in found),
        certifying_seconds=_total(one.certifying_seconds for one in found),
    )


def _total(seconds: Iterable[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return round(sum(known), 3) if known else None
