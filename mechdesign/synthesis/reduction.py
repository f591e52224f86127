"""Reductions: what becomes a program comes with the way back (cvxpy's apply and invert, as one object).

The road from a problem to a certificate is a chain of them, undone in reverse order:

    Problem ─ restriction to a part ─ normal form ─ program of rows or of blocks ─ solver
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from mechdesign.solve._contract import Status
from mechdesign.synthesis.summary import SolveSummary
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Candidate", "FormMultipliers", "Reduction"]


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
            left out is violated.
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
