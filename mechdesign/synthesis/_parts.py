"""Split a problem into independent parts, solve equal parts once, and assemble the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.certify._evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.model._channel import EXPONENT
from mechdesign.model._claims import label_disclosed_sets, label_tied_secrets, members
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.synthesis._normal import VACUOUS
from mechdesign.synthesis._recovery import make_empty_multipliers
from mechdesign.synthesis._result import Design, SolveSummary


@dataclass(frozen=True, eq=False)
class AssembledChannel:
    """An integer channel for the whole problem, the multipliers that prove its lower bound, and a summary."""

    numerators: Integers
    multipliers: Multipliers
    summary: SolveSummary


class MultiplierCollector:
    """Sparse multipliers of a problem's requirements, collected part by part."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._entries: list[list[tuple[Floats | Integers, ...]]] = [[] for _ in problem.claims]

    def add(self, requirement: int, *columns: Integers | Floats) -> None:
        """Add entries of one requirement: the columns of `PairMultipliers` or `FloorMultipliers`."""
        self._entries[requirement].append(columns)

    def multipliers(self, weights: Floats | None = None) -> Multipliers:
        """Return the collected multipliers of all requirements."""
        found: list[PairMultipliers | FloorMultipliers] = []
        for place, entries in enumerate(self._entries):
            columns = [np.concatenate(column) for column in zip(*entries, strict=True)]
            kind = FloorMultipliers if place in self._problem.floors else PairMultipliers
            found.append(kind(*columns) if columns else make_empty_multipliers(self._problem, place))
        return Multipliers(tuple(found), weights)


T = TypeVar("T")

# Relative difference up to which numbers of two parts are treated as equal, because equal parts of a map differ by
# rounding errors.
_MATCHING_ACCURACY = 1e-12

# Parts with less probability than this do not affect the objective, even at a relative gap of 1e-9.
_MIN_PART_MASS = 1e-200


@dataclass(frozen=True, eq=False)
class Part:
    """Secrets that must be solved together in one program.

    Attributes:
        secrets: Indices of the secrets, ascending.
        observables: Indices of the observables that are permitted to at least one of the secrets, ascending.
        mass: Total probability of the secrets, or 0 if it is negligible.
        alike: Whether all secrets of the part are permitted the same observables.
    """

    secrets: Integers
    observables: Integers
    mass: float
    alike: bool = True


def has_floors(problem: Problem) -> bool:
    """Return whether a positive distortion floor couples the secrets."""
    return any(floor.minimum > 0 for floor in problem.floors.values())


def split(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a problem, ordered by their first secrets.

    Without floors, parts are the sets of secrets that pair bounds connect. With a floor, secrets that share a permitted
    answer also belong to one part, because the adversary's error for that answer cannot be split. The secrets of a part
    may be permitted different answers. This happens if a floor connects secrets that share only some answers, or if
    bounds apply in one direction only.
    """
    labels = (
        label_disclosed_sets(problem.cost, problem.claims)
        if has_floors(problem)
        else label_tied_secrets(len(problem.prior), problem.claims)
    )
    permitted = np.isfinite(problem.cost)
    parts = []
    for secrets in members(labels):
        to_any = permitted[secrets].any(axis=0)
        alike = bool((permitted[secrets] == to_any).all())
        mass = float(problem.prior[secrets].sum())
        parts.append(Part(secrets, np.flatnonzero(to_any), mass if mass > _MIN_PART_MASS else 0.0, alike))
    return tuple(parts)


def restrict_problem(problem: Problem, part: Part, observables: Integers) -> Problem:
    """Return the problem of one part, with the given observables and a prior that sums to 1.

    If the part has probability 0, its prior is uniform. Every floor becomes 0.
    """
    size = part.secrets.size
    prior = problem.prior[part.secrets] / part.mass if part.mass else np.full(size, 1 / size)
    requirements = [requirement.restrict(part.secrets) for requirement in problem.requirements]
    return Problem(prior, problem.cost[np.ix_(part.secrets, observables)], requirements, problem.objective)


class PartCache(Generic[T]):
    """A cache of solutions for equal parts, whose bounds are identical and whose other numbers agree to 12 digits.

    The multipliers of one part therefore also prove the lower bound of an equal part, to about 12 digits. The
    certificate uses the true numbers of each part, so its gap includes the differences between equal parts.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], list[tuple[Floats, T]]] = {}

    def answer(self, problem: Problem, make: Callable[[], T]) -> T:
        """Return the cached result of an equal problem; otherwise call `make` and cache its result."""
        bounds, numbers = _compute_fingerprint(problem)
        same = self._found.setdefault(bounds, [])
        if same:
            known = np.array([other for other, _ in same])
            close = (np.abs(known - numbers) <= _MATCHING_ACCURACY * numbers).all(axis=1)
            if close.any():
                return same[int(close.argmax())][1]
        made = make()
        same.append((numbers, made))
        return made


def _compute_fingerprint(problem: Problem) -> tuple[tuple[object, ...], Floats]:
    """Return the values of a problem that must be identical, and the numbers that may differ by rounding errors."""
    permitted = np.isfinite(problem.cost)
    bounds: list[object] = [problem.objective, problem.cost.shape, permitted.tobytes()]
    numbers = [problem.prior, problem.cost[permitted]]
    for bound in problem.pair_bounds.values():
        arrays = (bound.sources, bound.targets, *bound.terms)
        bounds += [bound.number, bound.nominal, *(array.tobytes() for array in arrays)]
    for floor in problem.floors.values():
        bounds += [floor.minimum > 0, floor.error.shape, floor.prior is None]
        numbers += [floor.error.ravel(), floor.prior_or(problem.prior)]
    # Multipliers are stored in the order of the claims, so this order must be the same.
    bounds += [*problem.point_bounds.items(), *problem.pair_bounds, *problem.floors]
    return tuple(bounds), np.concatenate(numbers)


def find_undominated(cost: Floats) -> tuple[Integers, Integers]:
    """Return the undominated columns of `cost` (k, m), ascending, and an undominated replacement for each column.

    Column j can replace column o if cost[:, j] <= cost[:, o]. A channel may then answer j in place of o: the pair
    bounds remain valid, and the cost does not rise. The replacement of an undominated column is the column itself.
    """
    replaced = np.full(cost.shape[1], -1, dtype=np.int64)
    # A replacement never has a larger sum than its column; among equal columns the first is kept.
    for column in np.argsort(cost.sum(axis=0), kind="stable").tolist():
        if replaced[column] < 0:
            replaced[(cost[:, [column]] <= cost).all(axis=0) & (replaced < 0)] = column
    return np.unique(replaced), replaced


@dataclass(frozen=True, eq=False)
class PartDesign:
    """The design of a part, with the indices that place it in the whole problem.

    Attributes:
        part: The part.
        observables: Observables of the part's program, as indices of the whole problem.
        design: The design of the part.
        cost: Costs of the part, for all its observables.
        kept: Undominated columns of `cost`.
        replaced: Replacement of each column of `cost`.
    """

    part: Part
    observables: Integers
    design: Design
    cost: Floats
    kept: Integers
    replaced: Integers

    def multipliers(self) -> Iterator[tuple[int, Integers, Integers, Integers, Floats]]:
        """Yield the pair multipliers of the part, including multipliers for observables that its program left out.

        Each item is the index of a requirement and the columns of its `PairMultipliers`, with indices of the whole
        problem.
        """
        if self.design.multipliers is None:
            return
        part = self.part
        copies = _find_copies(self.design, self.cost, self.kept, self.replaced)
        for index, entry in enumerate(self.design.multipliers.requirements):
            if not isinstance(entry, PairMultipliers):
                continue
            for column, targets in enumerate(copies):
                selected = np.flatnonzero(entry.observables == column)
                if not selected.size:
                    continue
                many = np.tile(selected, targets.size)
                yield (
                    index,
                    part.secrets[entry.sources[many]],
                    part.secrets[entry.targets[many]],
                    part.observables[np.repeat(targets, selected.size)],
                    entry.values[many],
                )


@dataclass(frozen=True, eq=False)
class RestrictionInverse:
    """Maps the design of a part back to the whole problem."""

    part: Part
    cost: Floats
    kept: Integers
    replaced: Integers

    def __call__(self, design: Design) -> PartDesign:
        """Return the part's design with its place in the whole problem."""
        return PartDesign(self.part, self.part.observables[self.kept], design, self.cost, self.kept, self.replaced)


@dataclass(frozen=True, eq=False)
class Restriction:
    """Reduction of a problem to the problem of one part."""

    part: Part

    def apply(self, problem: Problem) -> tuple[Problem, RestrictionInverse]:
        """Return the problem of the part, with a prior that sums to 1, and its inverse."""
        cost = problem.cost[np.ix_(self.part.secrets, self.part.observables)]
        every = np.arange(self.part.observables.size)
        kept, replaced = find_undominated(cost) if self.part.alike else (every, every)
        alone = restrict_problem(problem, self.part, self.part.observables[kept])
        return alone, RestrictionInverse(self.part, cost, kept, replaced)


def _find_copies(design: Design, cost: Floats, kept: Integers, replaced: Integers) -> list[Integers]:
    """Return for each solved column the column itself, and then the omitted columns that need the same multipliers.

    Without multipliers, column o has the reduced costs w_s c(s, o), which may lie below λ_s, the least of the row. With
    the multipliers of its replacement j, the reduced costs of o exceed those of j by w_s (c(s, o) − c(s, j)) >= 0. Most
    omitted columns cost so much that their reduced costs reach λ_s without multipliers.
    """
    copies = [np.array([column]) for column in kept.tolist()]
    dropped = np.flatnonzero(replaced != np.arange(replaced.size))
    if dropped.size:
        weights, reduced = _compute_reduced_costs(design)
        low = (weights[:, None] * cost[:, dropped] < reduced.min(axis=1)[:, None]).any(axis=0)
        for column, position in zip(dropped[low], np.searchsorted(kept, replaced[dropped[low]]), strict=True):
            copies[position] = np.append(copies[position], column)
    return copies


def _compute_reduced_costs(design: Design) -> tuple[Floats, Floats]:
    """Return the weights w, shape (k,), and the reduced costs, shape (k, q), in floating point.

    The reduced costs are ``w_s c(s,o) − Σ g y(r,s,o) + Σ y(s,t,o)``.
    """
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


def assemble(problem: Problem, parts: Sequence[Part], solve: Callable[[Problem, str], Design]) -> AssembledChannel:
    """Solve a problem without floors part by part; `solve` receives the problem and the name of a part.

    No requirement connects different parts. The expected cost is the sum over the parts, and the multipliers of each
    part are weighted by its probability. For the worst cost, every part is optimised, and the part with the largest
    lower bound proves the bound of the whole. The channel of a part with one secret gives the cheapest answer.
    """
    numerators = np.zeros(problem.cost.shape, dtype=np.int64)
    gathered = MultiplierCollector(problem)
    known: PartCache[Design] = PartCache()
    designs: dict[int, Design] = {}
    worst: tuple[float, Part, PartDesign | None] | None = None
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
                _collect(gathered, piece, part.mass)
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
            _collect(gathered, piece, 1.0)
    summary = _summarise(len(parts), [design.summary for design in designs.values()])
    return AssembledChannel(numerators, gathered.multipliers(weights), summary)


def _collect(gathered: MultiplierCollector, piece: PartDesign, scale: float) -> None:
    for index, *ends, values in piece.multipliers():
        gathered.add(index, *ends, values * scale)


def _summarise(parts: int, found: Sequence[SolveSummary]) -> SolveSummary:
    return SolveSummary(
        next((one.status for one in found if one.status is not Status.OPTIMAL), Status.OPTIMAL),
        plan=f"{parts} independent parts, {len(found)} different ones solved",
        solver=", ".join(sorted({one.solver for one in found if one.solver})) or "closed form",
        solver_version=", ".join(sorted({one.solver_version for one in found if one.solver_version})),
        parts=parts,
        programs=len(found),
        iterations=sum(one.iterations or 0 for one in found),
        privacy_weight=max((one.privacy_weight or 0.0 for one in found), default=0.0),
        floor_weight=0.0,
        rounding_seconds=_sum_seconds(one.rounding_seconds for one in found),
        proving_seconds=_sum_seconds(one.proving_seconds for one in found),
        certifying_seconds=_sum_seconds(one.certifying_seconds for one in found),
    )


def _sum_seconds(seconds: Iterable[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return round(sum(known), 3) if known else None
