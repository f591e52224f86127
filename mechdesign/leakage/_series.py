"""A series of a ledger: releases of the same people at time steps, the correlations, and a plan of budgets.

The leakage of a release at time t is TPL_t = BPL_t + FPL_t − ε_t (Cao, Yoshikawa, Xiao and Xiong 2019). It is convex in
time between two releases, so that the steps with a release suffice; see the theory of temporal privacy leakage.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.base._arithmetic import decimals, in_own_arithmetic
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import as_decimal, float_down
from mechdesign.leakage._entries import TimeStep
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._upwards import Amount, Budget, add_up, carry, that_count

LONGEST = 100_000
"""Largest number of time steps of a series and of a plan."""

Losses = tuple[LossFunction | None, ...]

# The search for the largest amount stops at this relative width, and below this share of α.
_WIDTH, _LEAST = 2.0**-50, 2.0**-64
# After so many secants the search bisects.
_SECANTS = 24
# Significant digits of budgets that tell of the own data.
_OWN_DIGITS = 4
# Bound of integer time steps, which a file and a message write in digits.
_FARTHEST = 10**15

_MONTH = re.compile("([0-9]{4})-(0[1-9]|1[0-2])")


def as_step(step: object, path: str = "step") -> TimeStep:
    """Return a time step; raise `InputError` unless it is an integer or an ISO month."""
    if isinstance(step, int | np.integer) and not isinstance(step, bool) and abs(int(step)) < _FARTHEST:
        return int(step)
    if isinstance(step, str) and _MONTH.fullmatch(step):
        return step
    raise InputError(
        path,
        "is not a time step",
        value=None if isinstance(step, int) else step,
        bound='an integer of at most 15 digits, or an ISO month such as "2026-11"',
        remedy="give the number of a step as an integer, not as a text",
    )


def read_step(text: str, path: str = "step") -> TimeStep:
    """Return the time step of a text in a file or on the command line, where digits are an integer."""
    text = text.strip()
    return as_step(int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else text, path)


def place_of(step: TimeStep) -> int:
    """Return the place of a time step on the axis of time: the integer itself, or the number of the month."""
    if isinstance(step, int):
        return step
    year, month = map(int, step.split("-"))
    return 12 * year + month - 1


def step_after(step: TimeStep) -> TimeStep | None:
    """Return the next time step; None after the last one."""
    if isinstance(step, int):
        return step + 1 if step + 1 < _FARTHEST else None
    year, month = divmod(place_of(step) + 1, 12)
    return f"{year:04}-{month + 1:02}" if year < 10_000 else None


def require_kind_of(others: Iterable[TimeStep], step: TimeStep, path: str = "step") -> None:
    """Raise `InputError` unless a time step is an integer or a month as the others are."""
    if any(isinstance(step, int) != isinstance(other, int) for other in others):
        bound = "a month" if isinstance(step, int) else "an integer"
        raise InputError(path, "is of another kind than the other steps", value=step, bound=f"{bound}, as they are")


@dataclass(frozen=True)
class Plan:
    """The planned budgets of a series. The k-th time step with a release since the plan has the k-th budget.

    Attributes:
        kind: "equal", "constant" (the same budget without an end), "allocated", "list" or "none".
        budgets: The exact budgets; one for a constant plan.
        since: Number of entries of the ledger when the plan was made.
        when: Time of the plan in UTC, ISO 8601.
    """

    kind: str = "none"
    budgets: tuple[Fraction, ...] = ()
    since: int = 0
    when: str = ""

    @property
    def asked(self) -> Any:
        """The plan in the form that `Ledger.add_series` accepts."""
        if self.kind in ("equal", "allocated"):
            return self.kind, len(self.budgets)
        return {"none": None, "constant": self.kind}.get(self.kind, list(self.budgets))

    def budget(self, turn: int) -> Fraction:
        """Return the budget of a turn, 0 beyond the end of the plan."""
        if self.kind == "constant":
            return self.budgets[0]
        return self.budgets[turn] if turn < len(self.budgets) else Fraction(0)


@dataclass(frozen=True, eq=False)
class Series:
    """The promise of a series: the limit α of each leakage, the correlations, and the plans, the last of which holds.

    Attributes:
        alpha: The exact limit of the leakage of each release.
        backward: The backward loss functions of the candidates.
        forward: The forward loss functions of the candidates.
        history: "others" or "own": whose data determined the correlations.
        domain: The digest of the domain of the chain, or None.
        plans: All plans in order.
    """

    alpha: Fraction
    backward: Losses
    forward: Losses
    history: str
    domain: str | None = None
    plans: tuple[Plan, ...] = (Plan(),)

    @property
    def plan(self) -> Plan:
        """The plan that holds."""
        return self.plans[-1]

    @property
    def promise(self) -> tuple[object, ...]:
        """What stands as long as the series has entries."""
        digests = ([loss and loss.digest for loss in side] for side in (self.backward, self.forward))
        return self.alpha, self.history, self.domain, *digests

    @property
    def size(self) -> int:
        """The number of values of the chain."""
        return next(loss.n for loss in (*self.backward, *self.forward) if loss is not None)

    @property
    def is_exact(self) -> bool:
        """Whether all leakages are exact fractions, because every loss is 0 or the identity."""
        return all(loss.identity for side in (self.backward, self.forward) for loss in that_count(side))

    def publishable(self, budget: Fraction) -> Fraction:
        """Return a budget as it may be published: rounded down if it tells of the own data of the people."""
        if self.history == "others":
            return budget
        return Fraction(decimals(_OWN_DIGITS, ROUND_FLOOR).divide(budget.numerator, budget.denominator))

    def leakages(self, spent: Mapping[int, Fraction]) -> dict[int, Amount]:
        """Return the leakage TPL_t of each place with a release, rounded up, for the budgets of the places."""
        places, budgets = sorted(spent), [spent[place] for place in sorted(spent)]
        gaps = [after - before for before, after in itertools.pairwise(places)]
        # No release leaks more than all budgets together (Theorem 3).
        most = sum(budgets)
        found = map(add_up, *self.both_ways(budgets, gaps), budgets)
        return {place: min(most, each) for place, each in zip(places, found, strict=True)}

    def both_ways(
        self, budgets: Sequence[Budget], gaps: Sequence[int] | None = None
    ) -> tuple[list[Amount], list[Amount]]:
        """Return the amounts that earlier and later releases add to each release, and the steps between them."""
        if not budgets:
            return [], []
        before = carry(map(itertools.repeat, that_count(self.backward)), budgets, gaps)
        after = carry(map(itertools.repeat, that_count(self.forward)), budgets[::-1], gaps and gaps[::-1])
        return before, after[::-1]

    @in_own_arithmetic
    def largest(self, leak: Callable[[Fraction], Mapping[int, Amount]], least: Fraction) -> Fraction:
        """Return the largest amount for which no leakage exceeds α, rounded down.

        Args:
            leak: The leakages for an amount. They are linear in the amount if the leakages are exact.
            least: An amount that may be accepted, as a start.

        Returns:
            The amount, at least 0.
        """
        if self.is_exact:
            none, one = leak(Fraction(0)), leak(Fraction(1))
            rooms = ((self.alpha - none[t]) / (one[t] - none[t]) for t in none if one[t] > none[t])
            return max(min(Fraction(room) for room in rooms), Fraction(0))

        def excess(amount: Fraction) -> float:
            return float(Fraction(max(leak(amount).values())) - self.alpha)

        if excess(self.alpha) <= 0:
            return self.alpha
        start = least if excess(least) <= 0 else Fraction(0)
        low, high = float_down(start), float_down(self.alpha)
        below, above = excess(as_decimal(low)), excess(as_decimal(high))
        smallest, noise, rose, secants = _LEAST * high, math.ulp(high), None, _SECANTS
        # The Illinois method: secants, where the value at an end that stays is halved.
        while below <= 0 and high - low > (width := _WIDTH * high) > 0 and high > smallest:
            secants -= 1
            middle = low + (high - low) * (below / (below - above) if secants > 0 else 0.5)
            middle = min(max(middle, low + width / 2), high - width / 2)
            found = excess(as_decimal(middle))
            if found <= 0:
                low, below, above = middle, min(found, -noise), above / 2 if rose else above
            else:
                high, above, below = middle, found, below / 2 if rose is False else below
            rose = found <= 0
        return max(start, as_decimal(low))
