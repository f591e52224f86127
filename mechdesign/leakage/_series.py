"""A series of a ledger: releases of the same people at time steps, the correlations, and a plan of budgets.

The leakage of a release at time t is TPL_t = BPL_t + FPL_t − ε_t (Cao, Yoshikawa, Xiao and Xiong 2019). It is convex in
time between two releases, so that the steps with a release suffice; see the theory of temporal privacy leakage.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.base._arithmetic import decimals, in_own_arithmetic
from mechdesign.base._check import as_integer
from mechdesign.base._errors import BudgetExceededError, InputError, LeakageExceededError
from mechdesign.certify._exact import as_decimal, exact, exact_text, float_down, nearest
from mechdesign.leakage._budgets import allocated, constant
from mechdesign.leakage._entries import Entry, TimeStep, are_apart, cost, epsilon_of, grouped, rho_of, totals
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._upwards import Amount, Budget, add_up, as_float, carry, that_count

LONGEST = 100_000
"""Largest number of time steps of a series and of a plan."""

Losses = tuple[LossFunction | None, ...]

# The bisection stops at this relative width, and below this share of α.
_WIDTH, _LEAST = 2.0**-50, 2.0**-64
# Binary places of a square root that is rounded down, and significant digits of budgets chosen from the own data.
_ROOT_PLACES, _OWN_DIGITS = 100, 4

_MONTH = re.compile("([0-9]{4})-(0[1-9]|1[0-2])")


def as_step(step: object, path: str = "step") -> TimeStep:
    """Return a time step; raise `InputError` unless it is an integer or an ISO month."""
    if isinstance(step, int | np.integer) and not isinstance(step, bool):
        return int(step)
    if isinstance(step, str) and _MONTH.fullmatch(step):
        return step
    raise InputError(
        path,
        "is not a time step",
        value=step,
        bound='an integer, or an ISO month such as "2026-11"',
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
    def size(self) -> int:
        """The number of values of the chain."""
        return next(loss.n for loss in (*self.backward, *self.forward) if loss is not None)

    @property
    def is_exact(self) -> bool:
        """Whether all leakages are exact fractions, because every loss is 0 or the identity."""
        return all(loss.identity for side in (self.backward, self.forward) for loss in that_count(side))

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
        gaps = [1] * (len(budgets) - 1) if gaps is None else gaps
        before = self._carried(self.backward, budgets, gaps)
        return before, self._carried(self.forward, budgets[::-1], gaps[::-1])[::-1]

    @staticmethod
    def _carried(losses: Losses, budgets: Sequence[Budget], gaps: Sequence[int]) -> list[Amount]:
        counted: list[LossFunction | None] = [*that_count(losses)]
        chains = map(itertools.repeat, counted or [None])
        return [max(amounts) for amounts in zip(*(carry(chain, budgets, gaps) for chain in chains), strict=True)]

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

        def fits(amount: Fraction) -> bool:
            return max(leak(amount).values()) <= self.alpha

        if fits(self.alpha):
            return self.alpha
        start = least if fits(least) else Fraction(0)
        low, high = float_down(start), float_down(self.alpha)
        smallest = _LEAST * high
        while high - low > _WIDTH * high and high > smallest:
            middle = low + (high - low) / 2
            low, high = (middle, high) if fits(as_decimal(middle)) else (low, middle)
        return max(start, as_decimal(low))


@dataclass(frozen=True)
class Contents:
    """The contents of a ledger at one moment: the budgets in ε and ρ, the entries and the series."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    entries: tuple[Entry, ...] = ()
    series: Series | None = None

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

    def turn_of(self, step: TimeStep) -> int | None:
        """Return the turn of a time step under the plan, or None if it spent something before the plan was made."""
        assert self.series is not None
        since = self.series.plan.since
        if any(entry.step == step and entry.epsilon for entry in self.entries[:since]):
            return None
        turns = {entry.step: entry.turn for entry in self.entries[since:] if entry.turn is not None}
        return turns.get(step, len(turns))

    def planned(self, step: TimeStep, part: tuple[str, str] | None) -> Fraction | None:
        """Return what is left of the planned budget of a time step for a part; None without a plan."""
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
        steps, spent, place = self.steps, self.spent, place_of(step)
        places = [*spent, place]
        other_kind = any(isinstance(step, int) != isinstance(other, int) for other in steps)
        if other_kind or max(places) - min(places) >= LONGEST:
            return Fraction(0)
        now = steps.get(step, [])
        same = [entry for entry in now if not are_apart(entry.part, part)]
        epsilon, rho = self.left
        # What the part may spend before ε_t grows.
        free = cost(now, epsilon_of) - cost(same, epsilon_of)
        bounds = [free + self.raise_at(place), self.planned(step, part)]
        bounds += [] if epsilon is None else [free + epsilon]
        bounds += [] if rho is None else [self._rho_bound(rho + cost(now, rho_of) - cost(same, rho_of))]
        return max(min(bound for bound in bounds if bound is not None), Fraction(0))

    def raise_at(self, place: int) -> Fraction:
        """Return how much more the releases of a place may spend together under α."""
        assert self.series is not None
        series, spent = self.series, self.spent
        now = spent.get(place, Fraction(0))
        return series.largest(lambda amount: series.leakages({**spent, place: now + amount}), Fraction(0))

    @staticmethod
    def _rho_bound(rho: Fraction) -> Fraction:
        """Return the largest ε with ε²/2 ≤ ρ, rounded down."""
        square = 2 * max(rho, Fraction(0))
        return Fraction(math.isqrt((square.numerator << 2 * _ROOT_PLACES) // square.denominator), 1 << _ROOT_PLACES)

    def made_plan(self, series: Series, asked: object, when: str) -> Plan:
        """Return a plan that begins after the last time step; raise an error if it does not fit."""
        kind, count, budgets = _as_plan(asked)
        alpha = float_down(series.alpha)
        if kind == "constant":
            budgets = [as_decimal(constant(alpha, series.backward, series.forward))]
        elif kind == "allocated":
            budgets = list(map(as_decimal, allocated(alpha, count, series.backward, series.forward)))
        if series.history == "own" and kind in ("constant", "allocated"):
            budgets = list(map(_rounded_down, budgets))
        if kind == "equal":
            budgets = [self._equal_budget(series, count)] * count
        _require_positive(budgets, kind)
        if kind not in ("none", "constant"):
            _require_sum(budgets, *self.left)
            self._require_leakages(series, budgets)
        return Plan(kind, tuple(budgets), len(self.entries), when)

    def _equal_budget(self, series: Series, count: int) -> Fraction:
        """Return the largest equal budget of so many more time steps, next to each other after the last one."""
        spent, (epsilon, rho) = self.spent, self.left
        now = max((Fraction(each) for each in series.leakages(spent).values()), default=Fraction(0))
        least = max(series.alpha - now, Fraction(0)) / count
        found = series.largest(lambda each: series.leakages({**spent, **_ahead(spent, [each] * count)}), least)
        caps = [] if epsilon is None else [epsilon / count]
        caps += [] if rho is None else [self._rho_bound(rho / count)]
        found = min([found, *caps])
        return found if series.history == "others" else max(_rounded_down(found), min(least, found))

    def _require_leakages(self, series: Series, budgets: Sequence[Fraction]) -> None:
        """Raise `LeakageExceededError` if the planned steps, next to each other, leak more than α."""
        ahead = _ahead(self.spent, budgets)
        found = series.leakages({**self.spent, **ahead})
        worst = max(found, key=lambda place: found[place])
        if found[worst] > series.alpha:
            which = f"{worst - min(ahead) + 1} of the plan" if worst in ahead else "before the plan"
            remedy = 'Plan fewer steps or smaller budgets, such as those of ("equal", m)'
            raise LeakageExceededError(which, as_float(found[worst]), nearest(series.alpha), remedy)


def _ahead(spent: Mapping[int, Fraction], budgets: Sequence[Fraction]) -> dict[int, Fraction]:
    """Return the budgets by place, next to each other after the last place that has an entry."""
    return dict(enumerate(budgets, start=max(spent, default=-1) + 1))


def _as_plan(asked: object) -> tuple[str, int, list[Fraction]]:
    """Return the kind of a plan, its number of steps and the given budgets."""
    if asked is None or asked == "constant":
        return ("none" if asked is None else "constant"), 0, []
    if isinstance(asked, tuple) and len(asked) == 2 and asked[0] in ("equal", "allocated"):
        return asked[0], _as_count(as_integer(asked[1], "plan[1]", 1), "plan[1]"), []
    if isinstance(asked, list | np.ndarray) and len(asked):
        _as_count(len(asked), "plan")
        return "list", len(asked), [exact(each, f"plan[{turn}]") for turn, each in enumerate(asked)]
    raise InputError(
        "plan",
        "is not a plan",
        value=asked,
        bound='("equal", 12), "constant", ("allocated", 12), a list of budgets, or None',
    )


def _as_count(count: int, path: str) -> int:
    if count > LONGEST:
        raise InputError(path, "has too many steps", value=count, bound=f"at most {LONGEST}")
    return count


def _rounded_down(budget: Fraction) -> Fraction:
    """Return a budget with fewer digits, which tell less about the people whose data determined it."""
    return Fraction(decimals(_OWN_DIGITS, ROUND_FLOOR).divide(budget.numerator, budget.denominator))


def _require_positive(budgets: Sequence[Fraction], kind: str) -> None:
    for turn, budget in enumerate(budgets):
        if budget <= 0:
            place, remedy = f"plan[{turn}]", "give positive budgets"
            if kind == "equal":
                place, remedy = (
                    "plan",
                    "nothing is left of alpha or of the total budget: begin a ledger for other people",
                )
            elif kind != "list":
                place = "plan"
                remedy = 'two rows of a matrix have disjoint supports, so that leakage adds up: take ("equal", 12)'
            raise InputError(
                place, "has a budget that is not positive", value=exact_text(budget), bound="> 0", remedy=remedy
            )


def _require_sum(budgets: Sequence[Fraction], epsilon: Fraction | None, rho: Fraction | None) -> None:
    sums = ("ε", sum(budgets), epsilon), ("ρ", sum(budget**2 for budget in budgets) / 2, rho)
    for name, needed, left in sums:
        if left is not None and needed > left:
            raise BudgetExceededError(
                f"the plan would spend {name} = {exact_text(Fraction(needed))}, but {exact_text(left)} is left of the "
                "budget of the ledger; plan fewer steps or smaller budgets"
            )
