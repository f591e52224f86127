"""Plans of budgets for the coming time steps of a series, and sentences about what a series promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from mechdesign.base._check import as_integer
from mechdesign.base._errors import BudgetExceededError, InputError, LeakageExceededError
from mechdesign.certify._exact import as_decimal, exact, exact_text, float_down, nearest
from mechdesign.leakage._budgets import allocated, constant
from mechdesign.leakage._contents import Contents, epsilon_within
from mechdesign.leakage._entries import Entry, TimeStep, totals
from mechdesign.leakage._series import LONGEST, Plan, Series, place_of
from mechdesign.leakage._upwards import as_float

# A remainder below this share of α may be a rounding error.
_ROUNDING = Fraction(1, 2**40)


def make_plan(contents: Contents, series: Series, asked: object, when: str) -> Plan:
    """Return a plan that begins after the last time step; raise an error if it does not fit."""
    kind, count, budgets = _as_plan(asked)
    alpha = float_down(series.alpha)
    if kind == "constant":
        budgets = [as_decimal(constant(alpha, series.backward, series.forward))]
    elif kind == "allocated":
        budgets = list(map(as_decimal, allocated(alpha, count, series.backward, series.forward)))
    if kind in ("constant", "allocated"):
        budgets = list(map(series.publishable, budgets))
    if kind == "equal":
        budgets = [_equal_budget(contents, series, count)] * count
    _require_positive(budgets, kind)
    if kind not in ("none", "constant"):
        _require_sum(budgets, *contents.left)
        _require_leakages(contents, series, budgets)
    return Plan(kind, tuple(budgets), len(contents.entries), when)


def _equal_budget(contents: Contents, series: Series, count: int) -> Fraction:
    """Return the largest budget for each of `count` further time steps, which follow the last one without gaps."""
    spent, (epsilon, rho) = contents.spent, contents.left
    now = max((Fraction(each) for each in series.leakages(spent).values()), default=Fraction(0))
    left = max(series.alpha - now, Fraction(0))
    if not series.is_exact and left < _ROUNDING * series.alpha:
        return Fraction(0)
    found = series.largest(lambda each: series.leakages({**spent, **_ahead(spent, [each] * count)}), left / count)
    caps = [] if epsilon is None else [epsilon / count]
    caps += [] if rho is None else [epsilon_within(rho / count)]
    found = min([found, *caps])
    # Without entries, α/T depends on no data, and need not be rounded.
    return max(series.publishable(found), Fraction(0) if spent else min(left / count, found))


def _require_leakages(contents: Contents, series: Series, budgets: Sequence[Fraction]) -> None:
    """Raise `LeakageExceededError` if the planned steps leak more than α when they follow without gaps."""
    ahead = _ahead(contents.spent, budgets)
    found = series.leakages({**contents.spent, **ahead})
    worst = max(found, key=lambda place: found[place])
    if found[worst] > series.alpha:
        which, remedy = "before the plan", "; where α is used up, begin a ledger for other people"
        if worst in ahead:
            which, remedy = f"{worst - min(ahead) + 1} of the plan", ""
        remedy = f'Plan fewer steps or smaller budgets, such as those of ("equal", m){remedy}'
        raise LeakageExceededError(which, as_float(found[worst]), nearest(series.alpha), remedy)


def _ahead(spent: Mapping[int, Fraction], budgets: Sequence[Fraction]) -> dict[int, Fraction]:
    """Return the budgets by place, without gaps after the last place that has an entry."""
    return dict(enumerate(budgets, start=max(spent, default=-1) + 1))


def _as_plan(asked: object) -> tuple[str, int, list[Fraction]]:
    """Return the kind of a plan, its number of steps and the given budgets."""
    match asked:
        case None:
            return "none", 0, []
        case str("constant"):
            return "constant", 0, []
        case (str("equal" | "allocated") as kind, count) if isinstance(asked, tuple):
            return kind, as_integer(count, "plan[1]", 1, LONGEST), []
        case list() | np.ndarray(ndim=1) if len(asked):
            count = as_integer(len(asked), "plan", 1, LONGEST)
            return "list", count, [exact(each, f"plan[{turn}]") for turn, each in enumerate(asked)]
    raise InputError(
        "plan",
        "is not a plan",
        value=asked,
        bound='("equal", 12), "constant", ("allocated", 12), a list of budgets, or None',
    )


def _require_positive(budgets: Sequence[Fraction], kind: str) -> None:
    turn = next((turn for turn, budget in enumerate(budgets) if budget <= 0), None)
    if turn is not None:
        remedies = {
            "list": "give positive budgets",
            "equal": "begin a ledger for other people, since nothing is left of alpha or of the total budget",
        }
        disjoint = (
            'plan equal budgets, ("equal", 12) or --steps 12 without --plan: two rows of a matrix have disjoint '
            "supports, or almost, so that leakage adds up"
        )
        place = f"plan[{turn}]" if kind == "list" else "plan"
        problem, value = "has a budget that is not positive", exact_text(budgets[turn])
        raise InputError(place, problem, value=value, bound="> 0", remedy=remedies.get(kind, disjoint))


def _require_sum(budgets: Sequence[Fraction], epsilon: Fraction | None, rho: Fraction | None) -> None:
    sums = ("ε", sum(budgets), epsilon), ("ρ", sum(budget**2 for budget in budgets) / 2, rho)
    for name, needed, left in sums:
        if left is not None and needed > left:
            raise BudgetExceededError(
                f"the plan would spend {name} = {exact_text(Fraction(needed))}, but {exact_text(left)} is left of the "
                "budget of the ledger; plan fewer steps or smaller budgets"
            )


OUTSIDE = (
    "This release is outside the series of the ledger: the limit of the leakage does not count what it tells about "
    "the same values."
)
"""The sentence about a release with ``series=False``."""


def promises(contents: Contents, entry: Entry) -> tuple[str, ...]:
    """Return the sentences about an entry of a ledger with a series."""
    series = contents.series
    assert series is not None
    if entry.step is None:
        return (OUTSIDE,)
    before = contents.entries[: contents.entries.index(entry) + 1]
    epsilon = exact_text(entry.epsilon) if entry.epsilon is not None else ""
    return (
        f"This release (step {entry.step}): ε = {epsilon} between any two values of a person at this step.",
        f"All releases so far together ({len(before)}): {totals(before)}, whatever all values of a person are.",
        f"Each value, given all releases of the series and the correlation: α = {exact_text(series.alpha)}.",
        *_left_out(before, entry.step),
        *assumptions(series),
        *([_DIVISION] if any(each.part is not None for each in before) else []),
    )


def _left_out(entries: Sequence[Entry], step: TimeStep) -> Iterator[str]:
    """Yield a sentence if steps lie between a time step and the nearest one of the entries."""
    others = {entry.step for entry in entries if entry.step is not None} - {step}
    if others:
        nearest = min(others, key=lambda other: abs(place_of(other) - place_of(step)))
        count = abs(place_of(nearest) - place_of(step)) - 1
        if count:
            yield (
                f"Steps left out between {nearest} and {step} at this time: {count}. What was released there before is "
                "not counted; what is released there later is."
            )


def assumptions(series: Series) -> tuple[str, ...]:
    """Return the sentences about what the limit α assumes."""
    sides = {"backward": series.backward, "forward": series.forward}
    several = [name for name, losses in sides.items() if len(losses) > 1]
    unknown = [name for name, losses in sides.items() if not any(losses)]
    return (
        "The limit α assumes that a person has one row at each step, and that the chain holds for each person and at "
        "every step. Groups of people that move in different ways can leak more than a chain counted over all of them "
        "says.",
        *([_CANDIDATES] if several else []),
        *(_UNKNOWN.format(side=name) for name in unknown),
        *([_OWN] if series.history == "own" else []),
    )


_CANDIDATES = (
    "The candidates bound an adversary who knows which of them is true, not one who is unsure: mixtures can leak more."
)
_UNKNOWN = (
    "The limit α assumes that the adversary does not know the {side} correlation. An adversary who knows the other one "
    "and how many people have each value can compute it; the bound is then too small."
)
_OWN = "ε was chosen from these people's own data; the limit α does not cover what ε tells about them."
_DIVISION = (
    "Groups of a division are public and tell nothing about the values. Nobody changes the group within a step; a "
    "correction for somebody who did is charged under another division."
)
