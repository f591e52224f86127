"""The contents of a ledger: budgets, entries and series, and the largest ε that they allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from mechdesign.leakage._entries import Entry, TimeStep, are_apart, cost, epsilon_of, grouped, rho_of, totals
from mechdesign.leakage._series import LONGEST, Series, place_of

# Number of binary digits to which a square root is rounded down.
_ROOT_PLACES = 100


@dataclass(frozen=True)
class Contents:
    """The contents of a ledger at one moment: budgets in ε and ρ, entries and series; and the file, if there is one."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    entries: tuple[Entry, ...] = ()
    series: Series | None = None
    path: Path | None = None

    @property
    def left(self) -> tuple[Fraction | None, Fraction | None]:
        """What is left of the total budgets in ε and in ρ; None without one."""
        spent = totals(self.entries)
        epsilon = None if self.epsilon is None or spent.epsilon is None else self.epsilon - spent.epsilon
        return epsilon, None if self.rho is None else self.rho - spent.rho

    @property
    def steps(self) -> dict[TimeStep, list[Entry]]:
        """The entries of each time step of the series, in the order of time."""
        steps = grouped((entry for entry in self.entries if entry.step is not None), lambda entry: entry.step)
        return dict(sorted(steps.items(), key=lambda item: place_of(item[0])))  # type: ignore[arg-type]

    @property
    def spent(self) -> dict[int, Fraction]:
        """The ε of each place of the series that has an entry."""
        return {place_of(step): cost(entries, epsilon_of) for step, entries in self.steps.items()}

    def continues(self, known: Contents) -> bool:
        """Return whether all entries of earlier contents and their series remain."""
        was, now = known.series, self.series
        kept = was is None or (now is not None and now.promise == was.promise and len(now.plans) >= len(was.plans))
        # A series without entries may have been given anew.
        anew = now is not None and not known.steps
        return (kept or anew) and self.entries[: len(known.entries)] == known.entries

    @property
    def turns(self) -> dict[TimeStep, int]:
        """The turn of each time step that has one under the plan."""
        assert self.series is not None
        found = self.entries[self.series.plan.since :]
        return {entry.step: entry.turn for entry in found if entry.step is not None and entry.turn is not None}

    def turn_of(self, step: TimeStep) -> int | None:
        """Return the turn of a time step under the plan, or None if it spent something before the plan was made."""
        assert self.series is not None
        since = self.series.plan.since
        if any(entry.step == step and entry.epsilon for entry in self.entries[:since]):
            return None
        return self.turns.get(step, len(self.turns))

    def planned(self, step: TimeStep, part: tuple[str, str] | None) -> Fraction | None:
        """Return the remaining planned budget of a time step for a part; None without a plan."""
        assert self.series is not None
        if self.series.plan.kind == "none":
            return None
        turn = self.turn_of(step)
        if turn is None:
            return Fraction(0)
        # Other parts of the division do not raise ε_t above the budget.
        same = [entry for entry in self.steps.get(step, []) if not are_apart(entry.part, part)]
        return max(self.series.plan.budget(turn) - cost(same, epsilon_of), Fraction(0))

    def largest(self, step: TimeStep, part: tuple[str, str] | None) -> Fraction:
        """Return the largest ε that a release of a time step may spend, 0 if none."""
        assert self.series is not None
        series, steps, spent, place = self.series, self.steps, self.spent, place_of(step)
        places = [*spent, place]
        other_kind = any(isinstance(step, int) != isinstance(other, int) for other in steps)
        if other_kind or max(places) - min(places) >= LONGEST:
            return Fraction(0)
        now = steps.get(step, [])
        same = [entry for entry in now if not are_apart(entry.part, part)]
        epsilon, rho = self.left
        # The largest budget for this part that leaves ε_t unchanged.
        free = cost(now, epsilon_of) - cost(same, epsilon_of)
        more = series.largest(lambda more: series.leakages({**spent, place: cost(now, epsilon_of) + more}), Fraction(0))
        bounds = [free + more, self.planned(step, part)]
        bounds += [] if epsilon is None else [free + epsilon]
        bounds += [] if rho is None else [epsilon_within(rho + cost(now, rho_of) - cost(same, rho_of))]
        return max(min(bound for bound in bounds if bound is not None), Fraction(0))


def epsilon_within(rho: Fraction) -> Fraction:
    """Return the largest ε with ε²/2 ≤ ρ, rounded down."""
    square = 2 * max(rho, Fraction(0))
    return Fraction(math.isqrt((square.numerator << 2 * _ROOT_PLACES) // square.denominator), 1 << _ROOT_PLACES)
