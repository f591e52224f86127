"""Random series: each entry is accepted exactly where an independent reference finds no broken rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import series_reference as reference

import mechdesign as md
from mechdesign.errors import (
    BudgetExceededError,
    ExactReleaseError,
    InputError,
    LeakageExceededError,
    LedgerError,
    MechdesignError,
)
from mechdesign.leakage import Candidates
from mechdesign.leakage._partition import Partition

# Random matrices are of no common chain.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.MechdesignWarning")

# The rules that each error may stand for.
RULES: dict[type[MechdesignError], set[str]] = {
    LeakageExceededError: {"leakage"},
    BudgetExceededError: {"plan", "epsilon", "rho"},
    ExactReleaseError: {"exact"},
    InputError: {
        "step",
        "kind",
        "gap",
        "span",
        "policy",
        "domain",
        "rho in a series",
        "exact",
        "beside",
        "cost",
        "zero",
    }
    | {"history", "alpha", "size", "none"},
    LedgerError: {"again", "beside"},
}
LEAST = Fraction(1, 10**9)


def a_matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    kind = rng.integers(6)
    if kind == 0:
        return np.eye(n)
    if kind == 1:
        return np.tile(rng.dirichlet(np.ones(n)), (n, 1))
    P = rng.dirichlet(np.full(n, rng.choice([0.3, 1, 5])), size=n) + 1e-6
    P = 0.5 * P / P.sum(axis=1, keepdims=True) + 0.5 * np.eye(n) * (kind == 2) + 0.5 * (kind != 2) / n
    P /= P.sum(axis=1, keepdims=True)
    if kind == 3 and n > 1:
        P[rng.integers(n)] = 0
    return P


def a_side(rng: np.random.Generator, n: int) -> Any:
    """Return a correlation for both: a matrix, candidates or None."""
    kind = rng.integers(6)
    if kind == 0:
        return None
    return [a_matrix(rng, n), *([None] * int(kind == 2)), a_matrix(rng, n)] if kind < 3 else a_matrix(rng, n)


def given(side: Any) -> Any:
    """Return a correlation in the form of the package."""
    return Candidates(side) if isinstance(side, list) else side


def a_plan(rng: random.Random) -> Any:
    kind = rng.randrange(5)
    if kind == 0:
        return [Fraction(rng.randint(0, 30), 100) for _ in range(rng.randint(1, 8))]
    return [None, ("equal", rng.randint(1, 30)), "constant", ("allocated", rng.randint(1, 12))][kind - 1]


class Both:
    """A ledger of the package and one of the reference, which must agree."""

    def __init__(self, seed: int) -> None:
        self.rng, arrays = random.Random(seed), np.random.default_rng(seed)
        rng = self.rng
        self.n = rng.choice([1, 2, 2, 3, 5, rng.randint(6, 30)])
        self.alpha = Fraction(rng.choice(["1", "0.3", "1/3", "2.5"]))
        epsilon = rng.choice([None, None, self.alpha * 2, self.alpha * 10])
        rho = rng.choice([None, None, None, Fraction(2), Fraction(1, 10)])
        self.ledger, self.expected = md.Ledger(epsilon, rho=rho), reference.Ledger(epsilon, rho)
        if rng.random() < 0.1:
            self.spend(reference.Entry(Fraction(1, 100), series=False if rng.random() < 0.7 else None))
        self.sides = a_side(arrays, self.n), a_side(arrays, self.n)
        self.domain = rng.choice([None, None, "d"])
        self.add_series()
        self.first = rng.choice([0, -3, "2025-11"])
        self.count = 0

    def add_series(self) -> None:
        plan, history = a_plan(self.rng), self.rng.choice(["others"] * 9 + ["own"] * 3 + ["?"])
        error = None
        try:
            self.ledger.add_series(
                alpha=self.alpha,
                backward=given(self.sides[0]),
                forward=given(self.sides[1]),
                plan=plan,
                history=history,
                domain=self.domain,
            )
        except MechdesignError as caught:
            error = caught
        arguments = {"plan": plan, "history": history, "domain": self.domain, "budgets": self.budgets(error)}
        self.agree_on_plan(error, lambda: self.expected.add_series(self.alpha, *self.sides, **arguments))

    def budgets(self, error: MechdesignError | None) -> Any:
        """Return the budgets of the program's plan in the form of the reference; None after an error."""
        plan = None if error or self.ledger.series is None else self.ledger._contents.series.plan
        if plan is None or plan.kind == "none":
            return None
        return plan.budgets if plan.kind == "constant" else list(plan.budgets)

    def replan(self) -> None:
        plan, error = a_plan(self.rng), None
        try:
            self.ledger.series.plan = plan
        except MechdesignError as caught:
            error = caught
        self.agree_on_plan(error, lambda: self.expected.replan(plan, self.budgets(error)))

    def agree_on_plan(self, error: MechdesignError | None, plan: Callable[[], set[str]]) -> None:
        near, before = self.is_near(), self.expected.series
        broken = plan()
        if isinstance(error, LeakageExceededError):
            near = near or error.leakage - self.alpha < LEAST
        if near and error:
            self.expected.series = before
        else:
            self.agree(error, broken)

    def is_near(self) -> bool:
        """Tell whether a leakage is so near α that the roundings decide what is left."""
        steps = self.expected.steps() if self.expected.series else {}
        return bool(steps) and abs(max(self.expected.leakage().values()) - self.alpha) < LEAST

    def agree(self, error: MechdesignError | None, broken: set[str], near: bool = False) -> None:
        if error is None:
            assert not broken or (near and broken == {"leakage"}), broken
        elif not (near and isinstance(error, LeakageExceededError)):
            assert RULES[type(error)] & broken, (error, broken)

    def spend(self, entry: reference.Entry, who: dict[str, Any] | None = None) -> bool:
        broken, near = self.expected.refusals(entry)
        labels = [0] * self.__dict__.get("n", 2) + [1]
        if entry.epsilon == 0 and entry.one_class is not None:
            labels = labels if entry.one_class or len(labels) < 3 else list(range(len(labels)))
            if not entry.one_class and len(labels) < 3:
                return True
        classes = None if entry.one_class is None else Partition.of(labels)
        error = None
        try:
            self.ledger.spend(
                "x",
                "y",
                epsilon=entry.epsilon,
                rho=entry.rho,
                part=entry.part,
                policy="p",
                domain=entry.domain,
                classes=classes,
                step=entry.step,
                complete=entry.complete,
                planned=entry.planned,
                gap=entry.gap,
                series=entry.series,
            )
        except MechdesignError as caught:
            error = caught
        self.agree(error, broken, near)
        if error is None:
            self.expected.entries.append(entry)
        return error is None

    def a_step(self) -> Any:
        rng = self.rng
        move = rng.choice([0, 0, 1, 1, 1, 1, 1, 1, -1, 2, rng.randint(-30, 30)])
        self.count = max(self.count + move, 0) if rng.random() < 0.9 else rng.randint(0, 200)
        place = reference.place(self.first)[1] + self.count
        return place if isinstance(self.first, int) else f"{place // 12:04}-{place % 12 + 1:02}"

    def turn(self) -> None:
        """Make one random release, or replace the plan."""
        rng, series = self.rng, self.expected.series
        if series is None or rng.random() < 0.04:
            return self.replan() if series is not None else self.add_series()
        step, part = self.a_step(), rng.choice([None, None, ("d", "a"), ("d", "b"), ("e", "a")])
        odd = rng.random()
        if odd < 0.02:
            step = rng.choice(["12", 1.0, True, "2025-13", 10**6, "1999-01", 5])
        arguments: dict[str, Any] = {"gap": rng.random() < 0.6, "complete": self.n, "domain": self.domain}
        size = float(self.alpha) * rng.choice([0.01, 0.05, 0.2, 1.1])
        epsilon: Any = Fraction(rng.randint(1, 1000), 1000) * Fraction(repr(size))
        if series is not None and reference.place(step) and (known := self.expected.steps() or True):
            planned = self.expected.planned(step, part)
            if planned and rng.random() < 0.7:
                epsilon = planned * rng.choice([1, 1, 1, Fraction(1, 2), Fraction(11, 10)])
                arguments["planned"] = rng.random() < 0.5
            elif planned is None and rng.random() < 0.1 and known:
                epsilon = self.ledger.series.largest(step, part) or epsilon
        match rng.randrange(30):
            case 0:
                arguments["complete"] = rng.choice([None, self.n + 1])
            case 1:
                arguments["domain"] = "other"
            case 2:
                return self.note(self.spend(reference.Entry(None, Fraction(1, 100), part, step, **arguments)))
            case 3:
                arguments["one_class"], epsilon = rng.random() < 0.5, Fraction(0)
                arguments.pop("planned", None)
            case 4:
                step, arguments = None, {"series": rng.choice([None, False])}
                epsilon = Fraction(1, 100)
        return self.note(self.spend(reference.Entry(epsilon, None, part, step, **arguments)))

    def note(self, accepted: bool) -> None:
        """Compare totals and leakages after a release."""
        if accepted and self.ledger.series is not None and self.expected.steps():
            found, expected = self.ledger.series.leakage, self.expected.leakage()
            assert [reference.place(step)[1] for step in found] == list(expected)
            np.testing.assert_allclose(list(found.values()), list(map(float, expected.values())), rtol=1e-9, atol=1e-15)
            assert all(Fraction(a) >= b * (1 - LEAST) for a, b in zip(found.values(), expected.values(), strict=True))
            epsilon, rho = self.expected.totals()
            assert (self.ledger.spent.epsilon, self.ledger.spent.rho) == (epsilon, rho)

    def compare_queries(self, *, largest: bool) -> None:
        """Compare what is planned and what is the largest, and check that this is accepted, and little more is not."""
        if self.ledger.series is None:
            return
        for step, part in ((self.a_step(), None), (self.a_step(), ("d", "a"))):
            planned = self.ledger.series.planned(step, part)
            assert planned == self.expected.planned(step, part)
            most = self.ledger.series.largest(step, part)
            assert (
                not largest
                or self.is_near()
                or float(most) == pytest.approx(self.expected.largest(step, part), rel=1e-6, abs=1e-9)
            )
            arguments = {"step": step, "part": part, "complete": self.n, "gap": True}
            first = next((e for e in self.expected.entries if e.step is not None), None)
            arguments["domain"] = self.domain or (first and first.domain)
            if most > 0:
                self.ledger.check("x", "y", epsilon=most, **arguments)
            refusals = (BudgetExceededError, LeakageExceededError, *([] if most else [InputError]))
            with pytest.raises(refusals):
                self.ledger.check("x", "y", epsilon=most * (1 + LEAST) + LEAST / 10**6, **arguments)


def run(seed: int, most_turns: int, *, largest: bool) -> None:
    both = Both(seed)
    for _ in range(both.rng.randint(1, most_turns)):
        both.turn()
    both.compare_queries(largest=largest)


@pytest.mark.parametrize("seed", range(60))
def test_a_random_series_is_judged_as_by_the_reference(seed: int) -> None:
    run(seed, 12, largest=False)


# Each change is tried on two of ten groups.
@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [148, 236, *(pytest.param(each, marks=pytest.mark.long) for each in range(60, 500, 44) if each not in (148, 236))],
)
def test_further_random_series_are_judged_as_by_the_reference(first: int) -> None:
    for seed in range(first, first + 44):
        run(seed, 60, largest=True)
