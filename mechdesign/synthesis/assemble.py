"""Solve the parts of a problem one by one, equal ones once, and put their channels and multipliers together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify.claims import PairBound
from mechdesign.certify.evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.model.channel import EXPONENT
from mechdesign.model.problem import Problem
from mechdesign.solvers import Status
from mechdesign.synthesis.exponents import VACUOUS
from mechdesign.synthesis.multipliers import nothing
from mechdesign.synthesis.parts import Known, Part, restricted, undominated
from mechdesign.synthesis.summary import SolveSummary

if TYPE_CHECKING:
    from mechdesign.synthesis.certified import Design

__all__ = ["Assembled", "Gathered", "assemble", "first_trouble"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Assembled:
    """An integer channel for the whole problem, the multipliers that prove its cost, and how both were found."""

    numerators: Integers
    multipliers: Multipliers
    summary: SolveSummary


class Gathered:
    """Sparse multipliers of a problem's requirements, collected part by part."""

    def __init__(self, problem: Problem) -> None:
        self._claims = problem.claims
        self._entries: list[list[tuple[NDArray[np.float64] | Integers, ...]]] = [[] for _ in problem.claims]

    def add(self, requirement: int, *columns: Integers | Floats) -> None:
        """Add entries of one requirement: the columns of `PairMultipliers` or `FloorMultipliers`."""
        self._entries[requirement].append(columns)

    def multipliers(self, weights: Floats | None = None) -> Multipliers:
        """Return all that was added."""
        found: list[PairMultipliers | FloorMultipliers] = []
        for claim, entries in zip(self._claims, self._entries, strict=True):
            columns = [np.concatenate(column) for column in zip(*entries, strict=True)]
            kind = PairMultipliers if isinstance(claim, PairBound) else FloorMultipliers
            found.append(kind(*columns) if columns else nothing(claim))
        return Multipliers(tuple(found), weights)


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
    worst: tuple[float, Part, Design | None] | None = None
    for number, part in enumerate(parts, start=1):
        if part.secrets.size == 1:
            (secret,) = part.secrets
            numerators[secret, problem.cost[secret].argmin()] = 1 << EXPONENT
            bound, design = float(problem.cost[secret].min()), None
        else:
            kept, _ = undominated(problem.cost[np.ix_(part.secrets, part.observables)])
            sub = restricted(problem, part, part.observables[kept])
            name = f"part {number} of {len(parts)}"
            design = known.answer(sub, lambda sub=sub, name=name: solve(sub, name))  # type: ignore[misc]
            designs[id(design)] = design
            numerators[np.ix_(part.secrets, part.observables[kept])] = design.channel.numerators
            bound = design.certificate.lower_bound
            if problem.objective == "expected" and part.mass:
                _gather(gathered, problem, part, design, part.mass)
        if worst is None or bound > worst[0]:
            worst = bound, part, design
    assert worst is not None
    weights = None
    if problem.objective == "worst":
        weights = np.zeros(len(problem.prior))
        _, part, design = worst
        proved = None if design is None or design.multipliers is None else design.multipliers.weights
        weights[part.secrets] = 1 / part.secrets.size if proved is None else proved
        if design is not None:
            _gather(gathered, problem, part, design, 1.0)
    summary = _summary(len(parts), [design.summary for design in designs.values()])
    return Assembled(numerators, gathered.multipliers(weights), summary)


def first_trouble(statuses: Iterator[Status]) -> Status:
    """Return the first status that is not OPTIMAL, OPTIMAL without any."""
    return next((status for status in statuses if status is not Status.OPTIMAL), Status.OPTIMAL)


def _gather(gathered: Gathered, problem: Problem, part: Part, design: Design, scale: float) -> None:
    """Add the multipliers of a part, times `scale`, also for the columns that its own program left out."""
    if design.multipliers is None:
        return
    cost = problem.cost[np.ix_(part.secrets, part.observables)]
    kept, replaced = undominated(cost)
    copies = _copies(design, cost, kept, replaced)
    for index, entry in enumerate(design.multipliers.requirements):
        if not isinstance(entry, PairMultipliers):
            continue
        for column, targets in enumerate(copies):
            mine = np.flatnonzero(entry.observables == column)
            if not mine.size:
                continue
            many = np.tile(mine, targets.size)
            gathered.add(
                index,
                part.secrets[entry.sources[many]],
                part.secrets[entry.targets[many]],
                part.observables[np.repeat(targets, mine.size)],
                entry.values[many] * scale,
            )


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
    for claim, entry in zip(problem.claims, multipliers.requirements, strict=True):
        if isinstance(claim, PairBound) and isinstance(entry, PairMultipliers):
            exponents = np.zeros((weights.size, weights.size))
            exponents[claim.sources, claim.targets] = float(claim.epsilon) * claim.weights
            growth = np.exp(np.minimum(exponents[entry.sources, entry.targets], VACUOUS))
            np.add.at(reduced, (entry.sources, entry.observables), entry.values)
            np.add.at(reduced, (entry.targets, entry.observables), -growth * entry.values)
    return weights, reduced


def _summary(parts: int, found: Sequence[SolveSummary]) -> SolveSummary:
    return SolveSummary(
        first_trouble(one.status for one in found),
        plan=f"{parts} parts that nothing ties together, {len(found)} different ones solved",
        solver=", ".join(sorted({one.solver for one in found if one.solver})) or "closed form",
        solver_version=", ".join(sorted({one.solver_version for one in found if one.solver_version})),
        parts=parts,
        programs=len(found),
        iterations=sum(one.iterations or 0 for one in found),
        privacy_weight=max((one.privacy_weight or 0.0 for one in found), default=0.0),
        floor_weight=0.0,
    )
