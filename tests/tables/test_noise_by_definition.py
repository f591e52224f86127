"""What a release adds noise to, and how much: the loss between neighbours, and the variance of the answers.

The noise is taken away, or put on a single measurement: so a release shows its measurements, and how each answer
depends on the noise of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from database_oracle import neighbours

import mechdesign as md
from mechdesign.mechanisms._discrete import DiscreteLaplace, DiscreteNoise
from mechdesign.tables._budget import Budget
from mechdesign.tables._workload import prefixes

B = md.tables
SIX = B.Domain({"x": [0, 0.5, 1.0, 1.5, 2.0, 2.5]})
BOX = B.Domain({"a": range(3), "b": [0, 1.5]})
FOUR = B.Domain({"x": [0, 0.5, 1.0, 1.5]})
HALF = [1, 1, 0, 0]
BUDGETS = {"epsilon": Budget.of("0.7"), "rho": Budget.of(rho="0.3")}
POLICIES = {
    "full": B.Policy.full(SIX),
    "unbounded": B.Policy.full(SIX, unbounded=True),
    "threshold": B.Policy.threshold(SIX, 1),
    "line": B.Policy.threshold(SIX, 1),
    "partition": B.Policy.partition(SIX, [0, 0, 0, 1, 1, 1]),
    "box": B.Policy.threshold(BOX, 2),
    "known counts": B.Policy.threshold(FOUR, 1, constraints=[HALF]),
    "known counts, unbounded": B.Policy.threshold(FOUR, 1, constraints=[HALF], unbounded=True),
}
WEIGHTS = [[0, 0.2, 0.2, 0.6, 1, 3], [1, 1, 1, -0.4, 0, 0]]
QUERIES = {
    "histogram": B.Histogram(),
    "blocks": B.Histogram([0, 1, 1, 2, 2, 2]),
    "sum": B.Sum("x"),
    "sum of b": B.Sum("b"),
    "linear": B.Linear(WEIGHTS, step="0.2"),
    "ordered": B.Cumulative(mechanism="ordered"),
    "tree": B.Cumulative(mechanism="hierarchical", fanout=2),
    "tree in blocks": B.Cumulative(mechanism="ordered-hierarchical", fanout=2),
    "k-means": B.KMeans(2, iterations=2),
    "one round": B.KMeans(2, iterations=1),
    "optimal": prefixes(6).using("optimal"),
    "hierarchical": B.all_ranges(6).using("hierarchical"),
    "identity": B.MatrixQueries(WEIGHTS).using("identity"),
}
# Some policies are left out where they cost much time: each kind of release has one with the null node.
PLAIN = ("full", "unbounded", "threshold", "line", "partition")
ASKED = {
    **dict.fromkeys(("blocks", "linear"), PLAIN),
    "k-means": ("unbounded", "threshold", "partition", "box"),
    "one round": ("unbounded", "box"),
    **dict.fromkeys(("ordered", "tree", "tree in blocks"), ("full", "threshold", "line", "known counts")),
    "sum": ("unbounded", "threshold", "known counts", "known counts, unbounded"),
    "optimal": ("threshold",),
    "hierarchical": ("unbounded",),
    "identity": ("partition",),
}
# The loss of these is at most the budget: any clusters may come, and more records than are tried.
BELOW = {"k-means", "one round"}


def size_of_pulse(law: DiscreteNoise) -> int:
    """Return a noise about as large as the law's: on a fine lattice a single step would be lost in rounding."""
    return 1 + law.spread


@dataclass
class Watched:
    """The laws of the noise and the values that it was added to; `pulse` is the measurement that gets noise."""

    pulse: int = -1
    laws: list[DiscreteNoise] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def add(self, law: DiscreteNoise, values: np.ndarray, rng: object = None) -> np.ndarray:
        place = self.pulse - len(self.values)
        self.laws += [law] * values.size
        self.values += values.ravel().tolist()
        noise = size_of_pulse(law) * (np.arange(values.size) == place).astype(np.int64)
        return values + noise.reshape(values.shape)


@contextmanager
def watched(pulse: int = -1) -> Iterator[Watched]:
    found = Watched(pulse)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteNoise, "add", lambda law, values, rng=None: found.add(law, values, rng))
        yield found


def amounts(budget: Budget) -> dict[str, Any]:
    return {"epsilon": budget.epsilon, "rho": budget.rho}


def cases(*names: str) -> Iterator[tuple[str, Callable[..., Any], B.Policy, Budget]]:
    """Give the queries that a policy and a budget allow, each by its name, as functions of a table."""
    for name in names:
        query = QUERIES[name]
        for policy_name, policy in POLICIES.items():
            for measure, budget in BUDGETS.items():
                if policy_name not in ASKED.get(name, POLICIES):
                    continue

                def release(table: list[int], query=query, policy=policy, budget=budget) -> Any:
                    return query.release(policy=policy, **amounts(budget), positions=table, rng=1)

                try:
                    release([0, 3])
                except md.errors.InputError:
                    continue
                yield f"{name}, {policy_name}, {measure}", release, policy, budget


def loss(law: DiscreteNoise, change: int) -> Fraction:
    """Return the largest log-ratio of Laplace noise, or the ρ of Gaussian noise, if the true answer changes."""
    if isinstance(law, DiscreteLaplace):
        return abs(change) / law.scale
    return Fraction(change**2) / (2 * law.sigma_squared)


def variance(law: DiscreteNoise) -> float:
    """Sum k²·P(k) over the law's own exponents; on fine lattices the sums have closed forms."""
    if law.spread > 100:
        wide = float(law.exponent(1))
        # Σ k² q^|k| over Σ q^|k|, and by Poisson's summation σ² but for e^(−2π²σ²).
        return 0.5 / math.sinh(wide / 2) ** 2 if law.exponent(2) == 2 * law.exponent(1) else 0.5 / wide
    weights = [math.exp(-law.exponent(k)) for k in range(60 * (law.spread + 1))]
    return 2 * math.fsum(k * k * w for k, w in enumerate(weights)) / (2 * math.fsum(weights) - weights[0])


GROUPS = [
    ("histogram", "sum", "sum of b"),
    ("blocks", "linear"),
    ("ordered", "tree", "tree in blocks"),
    ("optimal", "hierarchical", "identity"),
]


@pytest.mark.parametrize("names", [*GROUPS, ("k-means",)], ids=" ".join)
def test_the_loss_between_neighbouring_tables_is_the_budget(names: tuple[str, ...]) -> None:
    seen = set()
    for name, release, policy, budget in cases(*names):
        graph = policy.secret_graph
        rows = [[*each.counted.astype(int), 0] for each in policy.constraints]
        edges = {frozenset(edge) for edge in graph.edges().tolist()}
        records = 2 if rows else 1
        measured = {}
        laws: list[DiscreteNoise] = []
        worst = Fraction(0)
        for pair in neighbours(edges, graph.node_count, records, rows):
            for table in pair:
                if table not in measured:
                    with watched() as found:
                        # One more record that stays: no table is empty.
                        release([0, *(value for value in table if value < policy.domain.size)])
                    measured[table], laws = found.values, found.laws
            first, second = (measured[table] for table in pair)
            worst = max(worst, sum(map(loss, laws, (a - b for a, b in zip(first, second, strict=True))), Fraction(0)))
        amount = budget.epsilon or budget.rho
        assert worst <= amount, (name, float(worst))
        if not rows and not BELOW & set(names) and laws:
            assert worst == amount, (name, float(worst))
        assert worst >= amount / 2 or not laws, (name, float(worst))
        seen.add(name.split(",")[0])
    assert seen == set(names)


@pytest.mark.parametrize("names", [*GROUPS, ("one round",)], ids=" ".join)
def test_standard_errors_are_those_of_the_noise_that_is_added(names: tuple[str, ...]) -> None:
    seen = set()
    for name, release, policy, budget in cases(*names):
        with watched() as base:
            found = release([0, 3, 2, 2])
        column = "linear" if hasattr(found, "linear") else "answers"
        known: dict[DiscreteNoise, float] = {}
        total = np.zeros(len(found))
        for place, law in enumerate(base.laws):
            with watched(place):
                answers = getattr(release([0, 3, 2, 2]), column)
            if law not in known:
                known[law] = variance(law)
            total += ((answers - getattr(found, column)) / size_of_pulse(law)) ** 2 * known[law]
        np.testing.assert_allclose(found.standard_errors**2, total, rtol=1e-7, atol=1e-9, err_msg=name)
        seen.add(name.split(",")[0])
        if not BELOW & seen:
            planned = QUERIES[name.split(",")[0]].plan(policy, **amounts(budget)).taken.error
            assert planned == pytest.approx(math.sqrt(total.mean()), rel=1e-6), name
    assert seen == set(names)
