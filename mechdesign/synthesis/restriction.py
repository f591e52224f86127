"""The reduction of a problem to one of its parts, without the observables that are never worth using."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mechdesign.certify._claims import PairBound
from mechdesign.certify._evidence import PairMultipliers
from mechdesign.model._problem import Problem
from mechdesign.synthesis.certified import Design
from mechdesign.synthesis.exponents import VACUOUS
from mechdesign.synthesis.parts import Part
from mechdesign.synthesis.parts import restricted
from mechdesign.synthesis.parts import undominated
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Piece", "Restriction", "RestrictionInverse"]


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
    for claim, entry in zip(problem.claims, multipliers.requirements, strict=True):
        if isinstance(claim, PairBound) and isinstance(entry, PairMultipliers):
            exponents = np.zeros((weights.size, weights.size))
            exponents[claim.sources, claim.targets] = claim.exponents
            growth = np.exp(np.minimum(exponents[entry.sources, entry.targets], VACUOUS))
            np.add.at(reduced, (entry.sources, entry.observables), entry.values)
            np.add.at(reduced, (entry.targets, entry.observables), -growth * entry.values)
    return weights, reduced
