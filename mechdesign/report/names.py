"""Name requirements, in the words that a problem's own distances give them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.model.problem import Problem
from mechdesign.model.requirement import Requirement
from mechdesign.model.requirement import Words
from mechdesign.report.numbers import short
from mechdesign.report.words import Measure
from mechdesign.report.words import decimal
from mechdesign.report.words import recognised
from mechdesign.base._arrays import Floats

__all__ = ["InWords", "claim_names", "claimants", "requirement_name"]


@dataclass(frozen=True, eq=False)
class InWords(Words):
    """What the requirements of a problem are phrased with."""

    problem: Problem

    def measure(self, matrix: Floats) -> Measure:
        """Recognise a matrix between the secrets."""
        return recognised(matrix, self.problem.secrets, self.problem.secrets)

    def number(self, value: float, digits: int = 3) -> str:
        """Write a number in few digits."""
        return short(value, digits)

    def decimal(self, value: Fraction) -> str:
        """Write an exact number in full."""
        return decimal(value)

    def factor(self, exponent: float) -> str:
        """Write e to the power of `exponent`."""
        return short(math.exp(exponent), 3) if exponent < 30 else f"e^{short(exponent)}"


def requirement_name(problem: Problem, requirement: Requirement) -> str:
    """Name a requirement and what its number means; its distance, too, where that is one of the library's."""
    return requirement.title(InWords(problem))


def claim_names(problem: Problem) -> tuple[str, ...]:
    """Name each claim, and so each entry of a certificate: by the requirement that makes it, or its part of it."""
    return tuple(name for requirement in problem.requirements for name in requirement.titles(InWords(problem)))


def claimants(problem: Problem) -> tuple[Requirement, ...]:
    """Return for each claim, and so for each entry of a certificate, the requirement that makes it."""
    return tuple(problem.requirements[place] for place in problem.places)
