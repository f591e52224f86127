"""Plans of budgets for the time steps of a series that are still to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from mechdesign.base._check import as_integer
from mechdesign.base._errors import BudgetExceededError, InputError, LeakageExceededError
from mechdesign.certify._exact import as_decimal, exact, exact_text, float_down, nearest
from mechdesign.leakage._budgets import allocated, constant
from mechdesign.leakage._contents import Contents, epsilon_within
from mechdesign.leakage._series import LONGEST, Plan, Series
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
    """Return the largest equal budget of so many more time steps, next to each other after the last one."""
    spent, (epsilon, rho) = contents.spent, contents.left
    now = max((Fraction(each) for each in series.leakages(spent).values()), default=Fraction(0))
    left = max(series.alpha - now, Fraction(0))
    if not series.is_exact and left < _ROUNDING * series.alpha:
        return Fraction(0)
    found = series.largest(lambda each: series.leakages({**spent, **_ahead(spent, [each] * count)}), left / count)
    caps = [] if epsilon is None else [epsilon / count]
    caps += [] if rho is None else [epsilon_within(rho / count)]
    found = min([found, *caps])
    # Without entries, α/T tells nothing about the data.
    return max(series.publishable(found), Fraction(0) if spent else min(left / count, found))


def _require_leakages(contents: Contents, series: Series, budgets: Sequence[Fraction]) -> None:
    """Raise `LeakageExceededError` if the planned steps, next to each other, leak more than α."""
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
    """Return the budgets by place, next to each other after the last place that has an entry."""
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
