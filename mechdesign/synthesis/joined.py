"""What was found for the parts of a problem, put together for the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.certify._claims import Floor
from mechdesign.certify._evidence import FloorMultipliers
from mechdesign.certify._evidence import Multipliers
from mechdesign.certify._evidence import PairMultipliers
from mechdesign.model._problem import Problem
from mechdesign.synthesis.multipliers import nothing
from mechdesign.synthesis.summary import SolveSummary
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Assembled", "Gathered"]


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
        self._entries: list[list[tuple[Floats | Integers, ...]]] = [[] for _ in problem.claims]

    def add(self, requirement: int, *columns: Integers | Floats) -> None:
        """Add entries of one requirement: the columns of `PairMultipliers` or `FloorMultipliers`."""
        self._entries[requirement].append(columns)

    def multipliers(self, weights: Floats | None = None) -> Multipliers:
        """Return all that was added."""
        found: list[PairMultipliers | FloorMultipliers] = []
        for claim, entries in zip(self._claims, self._entries, strict=True):
            columns = [np.concatenate(column) for column in zip(*entries, strict=True)]
            kind = FloorMultipliers if isinstance(claim, Floor) else PairMultipliers
            found.append(kind(*columns) if columns else nothing(claim))
        return Multipliers(tuple(found), weights)
