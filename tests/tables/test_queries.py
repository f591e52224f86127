"""Queries as values: they answer as the functions do, are refused where they are made, and specifications ask them."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from scipy import sparse

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.specification._table_specification import AnyRelease

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
    "line": B.Policy.line(AGES),
    "known": B.Policy.line(AGES, constraints=[HALF]),
}
BUDGETS = {"epsilon": B.Budget.of("0.5"), "rho": B.Budget.of(rho="0.25")}
QUERIES = {
    "histogram": B.Histogram(),
    "blocks": B.Histogram(BLOCKS),
    "sum": B.Sum(),
    "linear": B.Linear([HALF, [age / 2 for age in range(12)]], step="0.5"),
    "cdf": B.Cumulative(),
    "quantiles": B.Quantiles(["0.25", "0.5"]),
    "ranges": B.Ranges([(0, 5), (3, 11)]),
    "kmeans": B.KMeans(2, iterations=3),
    "workload": B.prefixes(12),
}
FUNCTIONS = {
    "histogram": lambda policy, **how: B.release_histogram(RECORDS, policy, **how),
    "blocks": lambda policy, **how: B.release_histogram(RECORDS, policy, partition=BLOCKS, **how),
    "sum": lambda policy, **how: B.release_sum(RECORDS, policy, **how),
    "kmeans": lambda policy, rho, **how: B.kmeans(RECORDS, 2, policy, iterations=3, **how),
}


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.round(array, 9).tobytes() for array in arrays)).hexdigest()[:16]


def outcome(name: str, policy: str, budget: str) -> dict[str, object]:
    """Return the results of a query under a policy: its sensitivity, plan, rehearsal and charges."""
    query, ledger = QUERIES[name], md.Ledger(**{budget: 10})
    try:
        found = query.release(RECORDS, POLICIES[policy], BUDGETS[budget], rng=5, ledger=ledger)
        plan = query.plan(POLICIES[policy], BUDGETS[budget], compare=False)
    except InputError as error:
        return {"refused": error.path}
    assert isinstance(found, query.released)
    return {
        "sensitivity": str(query.sensitivity(POLICIES[policy], BUDGETS[budget].norm).power),
        "plan": [plan.what, plan.taken.name, plan.spends, f"{plan.taken.error:.6g}"],
        "answers": digest(found.answers, found.low, found.high),
        "charged": [[each.what, str(each.epsilon), str(each.rho)] for each in ledger.entries],
    }


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", QUERIES)
def test_queries_give_what_was_recorded(name: str, policy: str, budget: str) -> None:
    found, recorded = outcome(name, policy, budget), RECORD[f"{name}, {policy}, {budget}"]
    if name == "workload":
        # Strategies are optimised in floating point, and depend on the processor's rounding.
        found, recorded = ({key: each[key] for key in each if key != "answers"} for each in (found, recorded))
    assert found == recorded


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_its_query(name: str) -> None:
    budget = BUDGETS["epsilon"]
    found = FUNCTIONS[name](POLICIES["line"], epsilon=budget.epsilon, rho=None, rng=3)
    again = QUERIES[name].release(RECORDS, POLICIES["line"], budget, rng=3)
    assert found.answers.tolist() == again.answers.tolist()
    assert found.description == again.description


def test_every_table_of_a_specification_is_that_of_a_query() -> None:
    assert {table.__struct_config__.tag for table in get_args(AnyRelease)} <= set(B.QUERIES)
    assert all(issubclass(query, B.Query) for query in B.QUERIES.values())


def test_what_is_read_from_a_release_is_named_by_values() -> None:
    found = QUERIES["ranges"].release(RECORDS, POLICIES["line"], BUDGETS["epsilon"], rng=5)
    ((first, last),) = [(each.first, each.last) for each in QUERIES["ranges"].read(found, AGES)["ranges"][1:]]
    assert (first, last) == ("3", "11")


def test_a_strategy_is_found_once_and_is_the_one_that_is_asked_for() -> None:
    workload, line = B.prefixes(12), POLICIES["line"]
    assert workload.strategy(line) is workload.strategy(line)
    assert workload.using("identity").strategy(line).kind == "identity"
    with pytest.raises(InputError, match="kind: does not support publicly known counts"):
        workload.using("identity").plan(POLICIES["known"], BUDGETS["rho"])


NO_TEXTS = [
    0,
    1,
    -1,
    2.5,
    True,
    False,
    b"age",
    [],
    ["age"],
    (),
    ("age",),
    {},
    {"age": 1},
    set(),
    object(),
    int,
    1j,
    ...,
]
NO_COUNTS = [0, -1, -7, 0.5, 1.0, 2.5, "1", "two", None, True, False, [], [1], (), {}, b"1", 1j, object(), int, np.nan]
NO_LISTS = [0, 1, 2.5, True, object(), int, 1j, ..., np.float64(1), -3]
MASKED = np.ma.array([0, 1], mask=[0, 1])
CELLS = sparse.csr_array(np.eye(3))

WRONG = {
    B.Histogram: [
        *[((value,), {}) for value in (*NO_LISTS, "abc", b"abc", [], (), np.zeros(0), {}, MASKED)],
        *[((value,), {}) for value in ([[1], [2]], [0, np.nan], np.array([0, np.nan]), [{}, {}], [set(), 1])],
    ],
    B.Sum: [((value,), {}) for value in (*NO_TEXTS, np.array(["age"]), np.nan)],
    B.Linear: [
        *[((value,), {}) for value in ("ranges", [], [[]], [[[1]]], [[1, 2], [3]], [0.5], [np.nan], [np.inf], [1j])],
        *[((value,), {}) for value in (["a"], [None], {}, object(), MASKED, [2**62], [[1, 0.1]])],
        *[(([1],), {"step": step}) for step in (0, -1, "one", None, np.nan, np.inf, "1e-201", "1e201", [1])],
        (([1, 2],), {"size": 3}),
    ],
    B.Cumulative: [
        *[((), {"mechanism": name}) for name in ("best", "", "Ordered", None, 0, [], ())],
        *[((), {"fanout": value}) for value in (*NO_COUNTS, 1, 2**31 + 1) if value is not None],
    ],
    B.Ranges: [
        *[((value,), {}) for value in (*NO_LISTS, None, "ab", b"ab", [], (), [1], [(1,)], [(1, 2, 3)], ["ab"], {})],
        (([(1, 2)],), {"positions": [(1, 2)]}),
        (([(1, 2)],), {"mechanism": "best"}),
    ],
    B.Quantiles: [
        *[((value,), {}) for value in (*NO_LISTS, "0.5", b"1", [], (), {}, [0], [-1], [1.5], ["half"], [0.5, None])],
        *[(([value],), {}) for value in ([], np.nan, np.inf, object())],
    ],
    B.KMeans: [
        *[((value,), {}) for value in (*NO_COUNTS, 1_000_001)],
        *[((2, value), {}) for value in NO_COUNTS],
        *[((2, 5, value), {}) for value in ("ab", [1, 2], [["a"]], [[1], [2, 3]], 5)],
    ],
    B.RangeQueries: [
        *[((value, [0], [0], ""), {}) for value in NO_COUNTS],
        *[((3, *ends, ""), {}) for ends in (([0], [3]), ([-1], [1]), ([2], [1]), ([0], [0, 1]), ([0.5], [1]))],
        ((3, [0], [1], "", np.array(["a"])), {}),
    ],
    B.MatrixQueries: [
        *[((value,), {}) for value in (*NO_LISTS, *NO_TEXTS, None, np.eye(3), [[1]], sparse.csr_array([[np.nan]]))],
        ((CELLS, "", ("one",)), {}),
    ],
    B.prefixes(3).using: [
        *[((value,), {}) for value in ("best", "", None, 0, [], "Optimal", 1.5)],
        *[(("auto", value), {}) for value in (0, 1, -1, 2, np.nan, np.inf, "0.5", None, True, [], [0.5], 1j, object())],
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "arguments", "keywords"),
    [(make, *each) for make, cases in WRONG.items() for each in cases],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_wrong_inputs_are_refused_where_a_query_is_made(make, arguments, keywords) -> None:
    with pytest.raises(InputError) as caught:
        make(*arguments, **keywords)
    error = caught.value
    assert error.path
    assert error.path.split("[")[0] in str(error)
    assert error.bound or error.value is not None


def test_twenty_wrong_inputs_are_tried_for_each() -> None:
    assert min(map(len, WRONG.values())) >= 20


WRONG_BUDGETS = (
    *({}, {"epsilon": 0}, {"rho": 0}, {"epsilon": True}, {"epsilon": float("nan")}, {"epsilon": 10**400}),
    *({"epsilon": -1}, {"epsilon": 1, "rho": 1}, {"epsilon": "half"}, {"rho": [1]}, {"rho": float("inf")}),
)


@pytest.mark.parametrize("wrong", WRONG_BUDGETS)
def test_a_budget_is_checked_where_it_is_made(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        md.tables.Budget(**wrong)  # type: ignore[arg-type]
    assert caught.value.path in ("epsilon", "rho")


def test_budgets_are_exact_and_nothing_is_nothing_of_one_measure() -> None:
    assert md.tables.Budget("0.1") == md.tables.Budget.of(epsilon=Fraction(1, 10))
    assert str(md.tables.Budget(rho=1).nothing()) == "ρ = 0"
    assert md.tables.Budget(rho=1).nothing().epsilon is None


def test_workloads_keep_their_queries_and_their_strategy() -> None:
    domain = md.tables.Domain({"age": range(6)})
    policy = md.tables.Policy.full(domain)
    low, high = np.array([0]), np.array([5])
    queries = md.tables.RangeQueries(6, low, high, "all")
    low[0] = 3
    assert queries.low[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        queries.high[0] = 1
    chosen = md.tables.prefixes(6).using("hierarchical")
    assert md.tables.strategy(chosen, policy, "laplace").kind == "hierarchical"
    assert md.tables.strategy(chosen, policy, "laplace", kind="identity").kind == "identity"


@pytest.mark.parametrize("partition", [set("abcdef"), dict.fromkeys(range(6), "a")])
def test_a_partition_without_an_order_is_refused(partition: object) -> None:
    with pytest.raises(InputError, match="partition: is not a list of labels"):
        md.tables.Histogram(partition)  # type: ignore[arg-type]


def test_a_release_is_read_with_its_own_domain_only() -> None:
    domain, budget = md.tables.Domain({"age": range(6)}), md.tables.Budget("1")
    policy = md.tables.Policy.line(domain)
    for query in (md.tables.Quantiles(["0.5"]), md.tables.Ranges(positions=[(0, 1)])):
        release = query.release(None, policy, budget, positions=[0, 1, 1, 5], rng=1)
        assert query.read(release, domain)
        for other in (md.tables.Domain({"salary": range(1000, 1006)}), md.tables.Domain({"a": range(2)}), None):
            with pytest.raises(InputError, match="domain"):
                query.read(release, other)  # type: ignore[arg-type]


def test_a_query_without_independent_noise_says_so() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(6)}))
    with pytest.raises(InputError, match="is not answered with independent noise"):
        md.tables.KMeans(2).ask(policy)
