"""Queries as values: they give what was recorded, and specifications ask them."""

from __future__ import annotations

import hashlib
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.specification._table_specification import AnyRelease
from mechdesign.tables import _workload as workload_module
from mechdesign.tables._budget import Budget
from mechdesign.tables._workload import prefixes

B = md.tables
AGES = B.Domain({"age": range(12)})
HALF = [int(age < 6) for age in range(12)]
BLOCKS = [age // 4 for age in range(12)]
RECORDS = [(7 * number) % 12 for number in range(60)]
RECORD = json.loads((Path(__file__).parents[1] / "reference" / "queries.json").read_text(encoding="utf-8"))

POLICIES = {
    "full": B.Policy.full(AGES),
    "unbounded": B.Policy.full(AGES, unbounded=True),
    "partition": B.Policy.partition(AGES, BLOCKS),
    "threshold": B.Policy.threshold(AGES, 3),
    "line": B.Policy.threshold(AGES, 1),
    "known": B.Policy.threshold(AGES, 1, constraints=[HALF]),
}
BUDGETS = {"epsilon": {"epsilon": "0.5"}, "rho": {"rho": "0.25"}}
QUERIES = {
    "histogram": B.Histogram(),
    "blocks": B.Histogram(BLOCKS),
    "sum": B.Sum(),
    "linear": B.Linear([HALF, [age / 2 for age in range(12)]], step="0.5"),
    "cdf": B.Cumulative(),
    "quantiles": B.Quantiles(["0.25", "0.5"]),
    "ranges": B.Ranges([(0, 5), (3, 11)]),
    "kmeans": B.KMeans(2, iterations=3),
    "workload": workload_module.prefixes(12),
}


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.round(array, 9).tobytes() for array in arrays)).hexdigest()[:16]


def outcome(name: str, policy: str, budget: str) -> dict[str, object]:
    """Return the results of a query under a policy: its sensitivity, plan, rehearsal and charges."""
    query, ledger = QUERIES[name], md.Ledger(**{budget: 10})
    try:
        found = query.release(RECORDS, POLICIES[policy], **BUDGETS[budget], rng=5, ledger=ledger)
        plan = query.plan(POLICIES[policy], **BUDGETS[budget])
    except InputError as error:
        return {"refused": error.path}
    taken = [plan.taken.name, f"{plan.taken.error:.6g}"]
    recorded = {"answers": digest(found.answers, found.low, found.high)}
    if "strategy" in plan.taken.name:
        # The optimum of a strategy is rounded differently on different machines.
        taken, recorded = ["strategy", f"{plan.taken.error:.4g}"], {}
    return recorded | {
        "sensitivity": str(query.sensitivity(POLICIES[policy], 1 if budget == "epsilon" else 2).power),
        "plan": [plan.what, taken[0], plan.spends, taken[1]],
        "charged": [[each.what, str(each.epsilon), str(each.rho)] for each in ledger.entries],
    }


@pytest.mark.parametrize("name", QUERIES)
def test_queries_give_what_was_recorded(name: str) -> None:
    for policy, budget in itertools.product(POLICIES, BUDGETS):
        key = f"{name}, {policy}, {budget}"
        assert outcome(name, policy, budget) == RECORD[key], key


def test_every_table_of_a_specification_is_that_of_a_query() -> None:
    tags = {table.__struct_config__.tag for table in get_args(AnyRelease)}
    assert tags == {"histogram", "sum", "cdf", "quantiles", "ranges", "kmeans", "workload"}
    assert all(isinstance(query, B.Query) for query in QUERIES.values())


def test_what_is_read_from_a_release_is_named_by_values() -> None:
    found = QUERIES["ranges"].release(RECORDS, POLICIES["line"], **BUDGETS["epsilon"], rng=5)
    ((first, last),) = [(each.first, each.last) for each in QUERIES["ranges"].read(found, AGES)["ranges"][1:]]
    assert (first, last) == ("3", "11")


def test_a_strategy_is_found_once_and_is_the_one_that_is_asked_for() -> None:
    workload, line = workload_module.prefixes(12), POLICIES["line"]
    assert workload.strategy(line) is workload.strategy(line)
    assert workload.using("identity").strategy(line).kind == "identity"
    with pytest.raises(InputError, match="kind: does not support publicly known counts"):
        workload.using("identity").plan(POLICIES["known"], **BUDGETS["rho"])


def test_budgets_are_exact_and_nothing_is_nothing_of_one_measure() -> None:
    assert Budget("0.1") == Budget.of(epsilon=Fraction(1, 10))
    assert str(Budget(rho=1).nothing()) == "ρ = 0"
    assert Budget(rho=1).nothing().epsilon is None


def test_workloads_keep_their_queries_and_their_strategy() -> None:
    domain = md.tables.Domain({"age": range(6)})
    policy = md.tables.Policy.full(domain)
    low, high = np.array([0]), np.array([5])
    queries = md.tables.RangeQueries(6, low, high, "all")
    low[0] = 3
    assert queries.low[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        queries.high[0] = 1
    chosen = prefixes(6).using("hierarchical")
    assert chosen.strategy(policy, "laplace").kind == "hierarchical"
    assert chosen.using("identity").strategy(policy, "laplace").kind == "identity"


def test_a_release_is_read_with_its_own_domain_only() -> None:
    domain = md.tables.Domain({"age": range(6)})
    policy, ranges = md.tables.Policy.threshold(domain, 1), md.tables.Ranges(positions=[(0, 1)])
    for query, budget in ((md.tables.Quantiles(["0.5"]), "epsilon"), (ranges, "epsilon"), (ranges, "rho")):
        release = query.release(policy=policy, positions=[0, 1, 1, 5], rng=1, **{budget: 1})
        assert query.read(release, domain)
        for other in (md.tables.Domain({"salary": range(1000, 1006)}), md.tables.Domain({"a": range(5, 9)}), None):
            with pytest.raises(InputError, match="domain"):
                query.read(release, other)  # type: ignore[arg-type]


def test_a_query_without_independent_noise_says_so() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(6)}))
    with pytest.raises(InputError, match="is not answered with independent noise"):
        md.tables.KMeans(2).ask(policy)
