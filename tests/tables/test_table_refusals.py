"""Wrong input of each door of `mechdesign.tables`: by the place that its error names, one table for each door."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from refusals import Mistake, assert_refused
from releases import release_counts, strategy_of
from scipy import sparse
from series import Series

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import parallel_composition
from mechdesign.tables._known_counts import marginal_constraints
from mechdesign.tables._queries._cumulative import find_theta
from mechdesign.tables._queries._trees import budget_split, choose_tree
from mechdesign.tables._workload import identity, marginals, prefixes

B = md.tables
Domain, Policy = B.Domain, B.Policy
NAN = float("nan")
FIVE = Domain({"x": range(5)})
SIX = Domain({"x": range(6)})
MIXED = Domain({"age": range(4), "sex": ["f", "m"]})
SEX = Domain({"sex": ["f", "m"]})
AGES = Domain({"age": range(17, 91)})
TWO = Domain({"age": range(17, 91), "sex": ["f", "m"]})
TABLE = Domain({"age": range(3), "sex": ["f", "m"], "smokes": ["no", "yes"]})
PEOPLE = Domain({"age": range(20, 60, 10), "sex": ["f", "m"], "rate": [0.1, 0.2, 0.5]})
OLD = Policy.threshold(AGES, 1)


def refused(places: Mapping[str, list[Callable[[], object]]]) -> None:
    """Demand that each of the calls is refused, with an error that names the place under which it stands."""
    assert_refused(
        Mistake(f"{place}, number {number}", make, place, error=InputError)
        for place, calls in places.items()
        for number, make in enumerate(calls)
    )


def each(ask: Callable[..., object], *arguments: Any) -> list[Callable[[], object]]:
    """Give a call for each argument; a tuple holds several arguments, and a dictionary keywords."""

    def call(argument: Any) -> object:
        if isinstance(argument, dict):
            return ask(**argument)
        return ask(*argument) if isinstance(argument, tuple) else ask(argument)

    return [lambda argument=argument: call(argument) for argument in arguments]


def test_domains_and_tables() -> None:
    refused(
        {
            "domain": [
                *each(Domain, {"attributes": {}}, [], {"attributes": {"": [1]}}, {"attributes": {1: [1]}}),
                lambda: Domain({name: range(10**6) for name in "abcd"}),
            ],
            "domain['x']": [
                lambda values=values: Domain({"x": values})
                for values in ([], range(0), "abc", 5, {"f", "m"}, range(2**70))
            ],
            "domain['x'][0]": [
                lambda value=value: Domain({"x": [value]}) for value in (float("inf"), None, [1], 10**5000)
            ],
            "domain['x'][1]": [lambda value=value: Domain({"x": [1, value]}) for value in (1.0, NAN)],
            "domain['x'][2]": [lambda: Domain({"x": [1, 2, 1]})],
            "attribute": [lambda: PEOPLE.attribute("height")],
            "index": each(PEOPLE.value, -1, 24),
        }
    )
    with pytest.raises(InputError, match="too many"):
        Domain({"x": range(2**20), "y": range(2**20)}).counts([0])
    whole = {"age": [20], "sex": ["f"], "rate": [0.1]}
    refused(
        {
            "data['age'], row 1": each(
                PEOPLE.indices,
                [(20, "f", 0.1), (25, "f", 0.1)],
                [(20, "f", 0.1), (60, "f", 0.1)],
                ({"age": np.array([20, 2**62]), "sex": ["f", "f"], "rate": [0.1, 0.1]},),
            ),
            "data['sex'], row 0": each(PEOPLE.indices, [(20, "x", 0.1)], [(20, None, 0.1)]),
            "data['rate'], row 0": each(PEOPLE.indices, [(20, "f", 0.3)], [(20, "f", NAN)]),
            "data[0]": each(PEOPLE.indices, [(20, "f")]),
            "data[1]": each(PEOPLE.indices, [(20, "f", 0.1), 7]),
            "data": each(PEOPLE.indices, [0, 1, 23], [20], np.array([20, 30]), [0.5], "text", None, np.zeros((2, 2)))
            + [
                lambda change=change: PEOPLE.indices({**whole, **change})
                for change in ({"age": [20, 30]}, {"age": np.zeros((2, 2))}, {"age": "39"}, {"age": 39})
            ]
            + [lambda: PEOPLE.indices({"age": [20], "sex": ["f"]})],
            "data['age'], row 0": [lambda: PEOPLE.indices({**whole, "age": [[]]})],
        }
    )
    with pytest.raises(InputError, match=r"^data\['sex'\], row 1: is outside the domain; found \[\]; must be one of"):
        PEOPLE.indices({"age": [20, 20], "sex": ["f", []], "rate": [0.1, 0.1]})
    for wrong in ([30, 31], (30,), np.array([30]), ["f"], [30.0, 31]):
        with pytest.raises(InputError, match=r"a record has 2 values; .* positions="):
            TWO.indices(wrong)


def test_points() -> None:
    box = Domain({"x": range(0, 10, 2), "y": [0.5, 1.0, 4.0]})
    refused(
        {
            "points['x'], row 1": [lambda: box.nearest(np.array([[0, 0.5], [9.1, 1.0]]))],
            "points['y'], row 0": [lambda y=y: box.nearest(np.array([[0, y]])) for y in (0.2, NAN)],
            "points": [lambda: box.nearest(np.array([[0, 1, 2]]))],
            "points['x']": [lambda: Domain({"x": ["a"]}).nearest(np.array([[3.5]]))],
        }
    )


def test_policies() -> None:
    def threshold(domain: Domain) -> Policy:
        return Policy.threshold(domain, 1)

    def attribute(theta: Any, domain: Domain = MIXED) -> Policy:
        return Policy.attribute(domain, theta=theta)

    wrong = (-1, 0.5, "0.5", 9, "near", NAN, True, None)

    refused(
        {
            "theta": [
                *[lambda theta=theta: Policy.threshold(FIVE, theta) for theta in (0, -1, 0.5, 6, 5.1, NAN, True)],
                *each(attribute, 5, "next", ["age"], ({"age": 0, "sex": 0},)),
                *each(threshold, Domain({"x": [2]}), MIXED, SEX, Domain({"x": [2, 1]})),
                lambda: Policy.threshold(FIVE, {"x": 1}),  # type: ignore[arg-type]
            ],
            "theta['age']": each(attribute, *(({"age": theta},) for theta in wrong)),
            "theta['sex']": each(attribute, ({"sex": 1},), ({"sex": "next"},)),
            "theta['height']": each(attribute, ({"height": 1},)),
            "theta['x']": [
                *each(attribute, *(({"x": theta}, Domain({"x": [2, 1]})) for theta in (1, "next"))),
                *each(attribute, *(({"x": theta}, Domain({"x": [2], "y": [1, 2]})) for theta in (1, "next"))),
            ],
            "domain": each(Policy.full, ({"x": [1]},)),
            "labels": [lambda labels=labels: Policy.partition(FIVE, labels) for labels in ([0, 1], "01234", 7)],
            "labels[4]": [lambda: Policy.partition(FIVE, [0, 1, 2, 3, NAN])],
            "graph[0]": [
                lambda edge=edge: Policy.graph(FIVE, [edge]) for edge in ((0, 5), (0, 1, 2), (0, 1.5), (0, -1))
            ],
            "graph[1]": [lambda: Policy.graph(FIVE, [(0, 1), (2, 2)])],
            "graph": [
                lambda graph=graph: Policy.graph(FIVE, graph)
                for graph in (7, nx.DiGraph([(0, 1)]), nx.Graph([("a", "b")]))
            ],
            "unbounded": [lambda: Policy.full(FIVE, unbounded=1)],  # type: ignore[arg-type]
        }
    )
    with pytest.raises(InputError, match="unbounded of the policy"):
        Policy.graph(FIVE, [(None, 2)])
    for theta, words in (("Next", '"next"'), (-1, "must be >= 0"), (None, '"next"')):
        with pytest.raises(InputError, match=words):
            attribute({"age": theta})


def test_constraints() -> None:
    four = Domain({"x": range(4)})

    def constrained(*rows: object) -> Policy:
        return Policy.full(four, constraints=list(rows))

    good = [0, 1, 0, 0]
    refused(
        {
            "constraints": [lambda given=given: Policy.full(four, constraints=given) for given in (5, "text")],
            "constraints[0]": [
                lambda row=row: constrained(row)
                for row in (
                    *([0, 1], list("abcd"), (good, 1.5), (good, True), (good, 10**12)),
                    *([], [good, good, good], (good, 1, 2)),
                )
            ],
            "constraints[0][2]": [lambda: constrained([0, 1, 2, 0])],
            "constraints[0][1]": [lambda: constrained([0, 0.5, 0, 0])],
            "constraints[1]": [lambda: constrained(good, (good, -1))],
            "table": [lambda: marginal_constraints(MIXED, ["sex"], [1, 2, 3])],
            "attribute": [lambda: marginal_constraints(MIXED, ["height"])],
        }
    )
    with pytest.raises(InputError) as caught:
        marginal_constraints(MIXED, ["sex"], [1, 2, 3])
    assert (caught.value.value, caught.value.bound) == ((3,), f"({len(MIXED.attribute('sex').values)},)")
    policy = constrained(([1, 1, 0, 0], 3), good)
    policy.check_counts([1, 2, 5, 0])
    refused({"constraints[0]": each(policy.check_counts, [1, 1, 5, 0]), "counts": each(policy.check_counts, [1])})
    with pytest.raises(InputError, match=r"write constraints=\[\(array, count\)\]|Write constraints="):
        Policy.full(AGES, constraints=([1] * 74, 5))


NO_TEXTS = [0, 1, -1, 2.5, True, False, b"age", [], ["age"], {}, {"age": 1}, set(), object(), int, 1j, ...]
NO_COUNTS = [0, -1, -7, 0.5, 1.0, 2.5, "1", "two", None, True, False, [], [1], {}, b"1", 1j, object(), int, np.nan]
NO_LISTS = [0, 1, 2.5, True, object(), int, 1j, ..., np.float64(1), -3]
MASKED = np.ma.array([0, 1], mask=[0, 1])


def test_queries() -> None:
    """Queries are refused where they are made."""

    def made(kind: Callable[..., object], *values: object, **keywords: object) -> list[Callable[[], object]]:
        return [lambda value=value: kind(value, **keywords) for value in values]

    def named(kind: Callable[..., object], name: str, *values: object) -> list[Callable[[], object]]:
        return [lambda value=value: kind(**{name: value}) for value in values]

    counts = [value for value in NO_COUNTS if value is not None]
    refused(
        {
            "partition": made(B.Histogram, *NO_LISTS, "abc", b"abc", [], (), np.zeros(0), {}, MASKED)
            + made(B.Histogram, [[1], [2]], [0, np.nan], np.array([0, np.nan]), [{}, {}], [set(), 1])
            + made(B.Histogram, set("abcdef"), dict.fromkeys(range(6), "a")),
            "attribute": made(B.Sum, *NO_TEXTS, (), ("age",), np.array(["age"]), np.nan),
            "queries": made(B.Linear, "ranges", [], [[]], [[[1]]], [[1, 2], [3]], [0.5], [np.nan], [np.inf], [1j])
            + made(B.Linear, ["a"], [None], {}, object(), MASKED, [2**62], [[1, 0.1]]),
            "step": [
                lambda step=step: B.Linear([1], step=step)
                for step in (0, -1, "one", None, np.nan, np.inf, "1e-201", "1e201", [1])
            ],
            "mechanism": [
                *named(B.Cumulative, "mechanism", "best", "", "Ordered", None, 0, [], ()),
                lambda: B.Ranges([(1, 2)], mechanism="best"),
            ],
            "fanout": named(B.Cumulative, "fanout", *counts, (), 1, 2**31 + 1),
            "ranges": made(B.Ranges, *NO_LISTS, None, "ab", b"ab", [], (), [1], [(1,)], [(1, 2, 3)], ["ab"], {}),
            "positions": made(B.Ranges, [(1, 2)], positions=[(1, 2)]),
            "probabilities": made(B.Quantiles, *NO_LISTS, "0.5", b"1", [], (), {}, [0], [-1], [1.5], ["half"])
            + made(B.Quantiles, [0.5, None], [[]], [np.nan], [np.inf], [object()]),
            "k": made(B.KMeans, *NO_COUNTS, (), 1_000_001),
            "iterations": [lambda value=value: B.KMeans(2, value) for value in (*NO_COUNTS, ())],
            "initial": [lambda value=value: B.KMeans(2, 5, value) for value in ("ab", [1, 2], [["a"]], [[1], [2, 3]])],
        }
    )
    # Here the place depends on what is wrong with the value.
    csr = sparse.csr_array
    for ask in (
        *[lambda value=value: B.RangeQueries(value, [0], [0], "") for value in NO_COUNTS],
        *[
            lambda ends=ends: B.RangeQueries(3, *ends, "")
            for ends in (([0], [3]), ([-1], [1]), ([2], [1]), ([0], [0, 1]), ([0.5], [1]))
        ],
        lambda: B.RangeQueries(3, [0], [1], "", np.array(["a"])),
        *made(B.MatrixQueries, "deciles", None, [], {}, object(), 1j, [["a"]], np.ones((2, 2, 7)), np.zeros((0, 7))),
        *made(B.MatrixQueries, csr([[np.nan]]), np.full((1, 7), np.nan), [[1e200] * 7], [[1e-200] * 7], MASKED),
        lambda: B.MatrixQueries(csr(np.eye(3)), "", ("one",)),
        lambda: B.RangeQueries(3, [], [], ""),
        *made(prefixes(3).using, "best", "", None, 0, [], "Optimal", 1.5),
        *[
            lambda value=value: prefixes(3).using("auto", value)
            for value in (0, 1, -1, 2, np.nan, np.inf, "0.5", None, True, [], [0.5], 1j, object())
        ],
        lambda: B.KMeans(2, 5, 5),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert caught.value.path.split("[")[0] in str(caught.value)
        assert caught.value.bound or caught.value.value is not None, caught.value
    with pytest.raises(InputError, match=r"queries: are a text.*prefixes"):
        B.Linear("ranges").release([39], Policy.full(AGES), epsilon=1)


def test_budgets() -> None:
    refused(
        {
            "epsilon": [
                *each(Budget, *[{"epsilon": value} for value in (0, True, NAN, 10**400, -1, "half")], {}),
                lambda: Budget(epsilon=1, rho=1),
            ],
            "rho": each(Budget, *[{"rho": value} for value in (0, [1], float("inf"), "1.0000001e100")]),
        }
    )
    assert Budget.of("1e100").epsilon == 10**100
    for noise, ask in (("gaussian", {"epsilon": 1}), ("laplace", {"rho": 1})):
        found = strategy_of("identity", Policy.full(SIX), noise)
        wrong = [{}, {"rho": 1, "epsilon": 1}, ask, {"rho" if noise == "gaussian" else "epsilon": -1}]
        places = ["epsilon", "epsilon", *ask, "rho" if noise == "gaussian" else "epsilon"]
        for method in (found.error, found.lower_bound, found.standard_errors):
            for place, given in zip(places, wrong, strict=True):
                refused({place: each(method, given)})
    with pytest.raises(InputError, match="ε²/2"):
        found.error(rho=1)


def test_releases() -> None:
    full, rows = Policy.full(MIXED), [(0, "f"), (3, "m")]

    class Ledger(md.Ledger):
        def spend(self, *arguments: object, **keywords: object) -> Any:
            raise AssertionError("wrong input was charged")

    def histogram(data: object = rows, **keywords: Any) -> object:
        return B.Histogram().release(data, full, **{"ledger": Ledger(), **keywords})

    def linear(**keywords: Any) -> object:
        given = {"policy": full, "queries": np.eye(8), "epsilon": 1, "step": 1, **keywords}
        return B.Linear(given.pop("queries"), given.pop("step")).release(rows, **given)

    one = {"epsilon": 1}
    refused(
        {
            "data": [
                lambda: histogram([], **one),
                lambda: histogram([0, 7], **one),
                lambda: histogram({"age": [3]}, **one),
            ],
            "data['age'], row 1": [
                lambda: histogram([(0, "f"), (6, "f")], **one),
                lambda: histogram({"age": [3, 9], "sex": ["f", "f"]}, **one),
            ],
            "epsilon": [lambda epsilon=epsilon: histogram(epsilon=epsilon) for epsilon in (0, -1, True, None, "1e-20")]
            + [lambda: histogram(epsilon=1, rho=1)],
            "rho": [lambda: histogram(rho="inf"), lambda: histogram(rho="1e-40")],
            "confidence": [lambda: histogram(confidence=1, **one)],
            "rng": [lambda: histogram(rng="seed", **one)],
            "ledger": [lambda: histogram(ledger=1.0, **one), lambda: histogram(ledger=md.Ledger, **one)],
            "policy": [
                lambda: B.Histogram().release(rows, None, epsilon=1),
                lambda: linear(policy=None),
                lambda: B.Sum().release(rows, "full", epsilon=1),
                lambda: B.KMeans(2, iterations=1).release(rows, None, epsilon=1),
                lambda: parallel_composition(None),
            ],
            "queries": [lambda: linear(queries=[[1, 2], [1]]), lambda: linear(queries=np.eye(7))],
            "step": [lambda step=step: linear(step=step) for step in ("1e-400", "1e400", 0)],
            "attribute": [lambda: B.Sum().release(rows, full, epsilon=1)],
            "domain['sex']": [lambda: B.Sum("sex").release(rows, full, epsilon=1)],
            "positions": [
                lambda given=given: B.Histogram().release(policy=OLD, epsilon=1, positions=given)
                for given in ([74], [-1], [13.0], ["13"], [[13]], 13)
            ],
        }
    )
    wrong = ([13], [16], [91], [30.5], ["30"], [None], 30, {30}, iter([30]), [[30, 31]], np.zeros((1, 2, 1)), None)
    refused({"data": [lambda data=data: B.Histogram().release(data, OLD, epsilon=1) for data in wrong]})
    with pytest.raises(InputError, match="positions: are given together with data"):
        B.Histogram().release([30], OLD, epsilon=1, positions=[13])


def test_clusters() -> None:
    line = Policy.threshold(SIX, 1)
    good = {"data": [1, 2, 3], "k": 2, "policy": line, "epsilon": 1, "iterations": 2, "initial": None}

    def kmeans(**keywords: Any) -> object:
        given = {**good, **keywords}
        return B.KMeans(*(given.pop(name) for name in ("k", "iterations", "initial"))).release(**given)

    numbers = {"policy": Policy.full(SEX), "data": ["f", "m"]}
    refused(
        {
            "k": each(kmeans, {"k": 0}, {"k": True}),
            "iterations": each(kmeans, {"iterations": 0}),
            "epsilon": each(kmeans, {"epsilon": 0}),
            "data['x'], row 2": each(kmeans, {"data": {"x": [1, 2, 30]}}),
            "data['x'], row 0": each(kmeans, {"data": {"x": [1.5]}}),
            "domain": each(kmeans, numbers),
            "initial[1]": each(kmeans, {"initial": [[1], [30]]}, {"initial": [[1], [NAN]]}),
            "initial": each(kmeans, {"initial": [[1, 2]]}),
            "rng": each(kmeans, {"rng": "seed"}),
        }
    )
    with pytest.raises(InputError, match="no record"):
        kmeans(data=[])


def test_cumulative_histograms() -> None:
    def release(counts: object = (1, 2), epsilon: object = 1, **keywords: Any) -> object:
        query = B.Cumulative(mechanism="ordered", fanout=keywords.pop("fanout", None))
        return query.release(policy=Policy.full(Domain({"x": range(2)})), counts=counts, epsilon=epsilon, **keywords)

    forty = Domain({"age": range(40)})
    known = Policy.full(forty, constraints=[np.arange(40) < 3])
    irregular = (Policy.partition(forty, np.arange(40) // 2), Policy.threshold(Domain({"x": [0, 1, 2, 10, 11]}), 2))
    several = (Policy.full(MIXED), Policy.full(SEX))
    assert [find_theta(policy) for policy in (known, Policy.full(forty, unbounded=True), *irregular)] == [None] * 4
    refused(
        {
            "counts[1]": each(release, [1, -2], [1, 2.5], [1.0, NAN]),
            "counts": each(release, [], [0, 0], [[1, 2]], ["a"], [2**61, 2**61]),
            "epsilon": [lambda epsilon=epsilon: release(epsilon=epsilon) for epsilon in (0, -1, None, "1e-20")]
            + [
                lambda epsilon=epsilon: release_counts([1] * 9, 3, epsilon, "ordered-hierarchical")
                for epsilon in ("1e-200", "1e200")
            ]
            + [lambda: B.Cumulative().plan(Policy.full(forty), epsilon="1e-300")],
            "confidence": [lambda: release(confidence=1)],
            "fanout": [lambda: release(fanout=1), lambda: budget_split(9, 3, 10**400, epsilon=1)],
            "mechanism": [
                lambda: B.Cumulative(mechanism="best"),
                lambda: B.Cumulative(mechanism="hierarchical").plan(known, epsilon=1),
            ],
            "policy": [
                lambda mechanism=mechanism, policy=policy: B.Cumulative(mechanism=mechanism).plan(policy, epsilon=1)
                for mechanism in ("hierarchical", "ordered-hierarchical")
                for policy in irregular
            ]
            + [lambda: B.Cumulative(mechanism="ordered").plan(Policy.full(forty, unbounded=True), epsilon=1)]
            + [lambda: B.Quantiles([0.5]).plan(Policy.full(forty, unbounded=True), epsilon=1)],
            "rho": [lambda: B.Cumulative(mechanism="ordered").plan(Policy.full(forty), rho=1)],
            "domain": [lambda policy=policy: B.Cumulative().plan(policy, epsilon=1) for policy in several],
        }
    )
    wrong = {
        "size": [(0, 1, 2, 1)],
        "theta": [(5, 0, 2, 1), (5, 6, 2, 1), (5, 2.5, 2, 1)],
        "fanout": [(5, 2, 1, 1)],
        "epsilon": [(5, 2, 2, 0), (5, 2, 2, "nan")],
    }
    for place, rows in wrong.items():
        for size, theta, fanout, epsilon in rows:
            given = {"fanout": fanout, "epsilon": epsilon}
            refused({place: [partial(choose_tree, size, theta, **given)]})
            refused({place: [partial(budget_split, size, theta, **given)]})


def test_reading_a_cumulative_histogram() -> None:
    ages = B.Cumulative(mechanism="ordered").release([30, 31, 60], OLD, epsilon=1000, rng=1)

    def ends(*values: object, **keywords: Any) -> list[Callable[[], object]]:
        return [lambda: B.range_query(ages, *values, **keywords)]

    refused(
        {
            # 13 and 14 are the positions of 30 and 31, and no ages.
            "low": ends(13, 14)
            + ends(16, 90)
            + ends(30.5, 40)
            + ends("30", 40)
            + ends(True, 40)
            + ends(NAN, 40)
            + ends(40, 30)
            + ends(),
            "high": ends(17, 91) + ends(30),
            "positions": ends(30, 40, positions=(13, 14))
            + [
                lambda given=given: B.range_query(ages, positions=given)
                for given in ((13, 74), (-1, 3), (14, 13), (13.0, 14), 13, (False, True))
            ],
            "probability": [lambda value=value: B.quantile(ages, value) for value in (0, -0.1, 1.1, "nan")],
            "release": [lambda: B.quantile([1, 2], 0.5)],
        }
    )


def test_workloads() -> None:
    seven = Policy.full(Domain({"x": range(7)}))
    refused(
        {
            "workload": [
                lambda asked=asked: asked.plan(seven, rho=1)
                for asked in (B.MatrixQueries(np.ones((2, 6))), identity(6))
            ],
            "ways": each(lambda ways: marginals(TABLE, ways), 0, 4, [], "age", [["height"]]),
        }
    )


def test_strategies() -> None:
    def strategy(**arguments: Any) -> object:
        return strategy_of(**{"asked": "ranges", "policy": Policy.full(SIX), **arguments})

    refused(
        {
            "workload": each(strategy, {"asked": np.ones((2, 5))}),
            "noise": each(strategy, {"noise": "cauchy"}),
            "kind": each(strategy, {"kind": "best"}, {"kind": "ordered-hierarchical"}),
            "policy": each(identity(6).strategy, "full")
            + each(
                strategy,
                {"policy": Policy.full(SIX, constraints=[np.arange(6) < 3])},
                {"policy": Policy.full(Domain({"x": range(2049)}))},
            ),
            "tolerance": each(strategy, {"tolerance": 0}),
        }
    )


def test_ranges_are_values_and_positions_are_called_so() -> None:
    wrong = {
        "[0]": [[(13, 23)], [(40, 30)], [(30, 40, 50)], [("30", "40")], [((30,), (30, 31))]],
        "[1]": [[(30, 40), (40, 91)]],
    }

    def plan(ranges: Any = None, positions: Any = None) -> object:
        return B.Ranges(ranges, positions=positions).plan(OLD, epsilon=1)

    refused({"ranges" + place: [partial(plan, given) for given in rows] for place, rows in wrong.items()})
    rows = ([(0, 74)], [(-1, 3)], [(3, 1)], [(0.5, 1)], [(True, 2)], [(0,)], [], 3, "ab")
    refused({"positions": [partial(plan, None, given) for given in rows]})
    with pytest.raises(InputError, match="together with"):
        plan([(30, 40)], [(13, 23)])


def test_counts_and_the_one_way_to_release() -> None:
    three, two = Domain({"age": range(17, 20)}), Domain({"age": range(17, 20), "sex": ["f", "m"]})
    policy, pairs = Policy.full(three), Policy.full(two)
    good = {17: 5, 18: 0, 19: 2}
    halves = Policy.full(three, constraints=[([1, 1, 0], 5)])

    def release(counts: Any, policy: Any = policy, query: Any = None, **how: Any) -> object:
        return (query or B.Histogram()).release(policy=policy, counts=counts, **{"epsilon": 1, **how})

    def each_of(*wrong: Any, **how: Any) -> list[Callable[[], object]]:
        return [lambda given=given: release(given, **how) for given in wrong]

    refused(
        {
            # Neither ε nor ρ, both, and out of range.
            "epsilon": each_of(good, epsilon=None)
            + each_of(good, rho=1)
            + [lambda: B.Histogram().plan(policy), lambda: B.Histogram().plan(policy, epsilon=1, rho=1)]
            + each_of(good, epsilon=0)
            + each_of(good, epsilon="half"),
            "rho": each_of(good, epsilon=None, rho=-1) + each_of(good, query=B.KMeans(1), epsilon=None, rho=1),
            # Both a table and counts, or nothing at all.
            "counts": [
                lambda: B.Histogram().release([17], policy, counts=good, epsilon=1),
                lambda: release(good, positions=[0]),
                # The wrong length, the wrong form, names of no values, names twice, masked arrays.
                *each_of([1, 2], [1, 2, 3, 4], [[1, 2, 3]], 7, "abc", np.zeros((3, 1)), [], {}, np.array([])),
                *each_of({17: 5, 18: 0}, {**good, 20: 0}, {0: 5, 1: 0, 2: 2}, {"17": 5, "18": 0, "19": 2}),
                *each_of({17: 5, 17.5: 0, 19: 2}, np.ma.array([5, 0, 2], mask=[0, 1, 0]), [True, False, True]),
                *each_of(["5", "0", "2"], [None, 1, 2], [1j, 0, 2], [2**61, 2**61, 0], [0, 0, 0]),
                *each_of({("f", 17): 1}, dict.fromkeys(range(6), 1), [1] * 5, policy=pairs),
                # A ragged list, truth values, and a series with other levels.
                *each_of([[1, 2], [3], 4], [5, True, 2], {17: 5, 18: False, 19: 2}, series_of(good, ["years"])),
                *each_of({True: 1, 0: 2}, {0: 2, True: 1}, policy=Policy.full(Domain({"age": range(2)}))),
                *each_of({True: 1, 0: 2}, policy=Policy.full(Domain({"age": [0, 1]}))),
                *each_of(
                    series_of(dict.fromkeys(itertools.product(range(17, 20), "fm"), 1), ["age", None]), policy=pairs
                ),
                lambda: B.Cumulative().release(policy=policy, counts=[0, 0, 0], epsilon=1),
                lambda: B.Histogram().plan(policy, epsilon=1, counts=[1, 2]),
                lambda: B.Histogram().plan(policy, epsilon=1, counts=[0, 0, 0]),
            ],
            # Negative, fractional and endless counts.
            "counts[1]": [
                *each_of([5, -1, 2], [5, 0.5, 2], [5, NAN, 2], [5, np.inf, 2], {17: 5, 18: -1, 19: 2}),
                lambda: B.Cumulative().plan(policy, epsilon=1, counts=[5, -1, 2]),
            ],
            "constraints[0]": each_of([5, 1, 2], policy=halves),
            "policy": [
                lambda: B.Histogram().release(policy, counts=good, epsilon=1),
                lambda: B.Histogram().release([17], epsilon=1),
                lambda: B.Histogram().release([17], three, epsilon=1),
            ],
            "data": [lambda: B.Histogram().release(None, policy, epsilon=1)],
            "confidence": each_of(good, confidence=1),
            "rng": each_of(good, rng="seed"),
            "together": each_of(good, together=1),
            "ledger": each_of(good, ledger="ledger.json"),
        }
    )


def series_of(counts: dict[Any, int], names: list[str | None]) -> Series:
    """Return a series of counts, whose index has levels with these names."""
    return Series(list(counts.values()), list(counts), "count", names)


def test_counts_travel_by_their_names() -> None:
    three, two = Domain({"age": range(17, 20)}), Domain({"age": range(17, 19), "sex": ["f", "m"]})
    table = {"age": [17, 17, 19], "sex": ["f", "m", "f"]}
    bits, crossed = Domain({"a": range(2), "b": range(2)}), {(0, 0): 0, (0, 1): 0, (1, 0): 2, (1, 1): 1}
    named = {(17, "m"): 1, (17, "f"): 1, (18, "f"): 0, (18, "m"): 2}
    for query, policy, data, counts in (
        (B.Histogram(), Policy.full(three), table["age"], [2, 0, 1]),
        (B.Sum(), Policy.full(three), table["age"], np.array([2.0, 0.0, 1.0])),
        (B.Cumulative(), Policy.full(three), table["age"], {19: 1, 17: 2, 18: 0}),
        (B.Ranges([(17, 18)]), Policy.full(three), table["age"], [2, 0, 1]),
        (B.Linear([1, 2, 4]), Policy.full(three, unbounded=True), table["age"], [2, 0, 1]),
        (prefixes(3), Policy.full(three), table["age"], [2, 0, 1]),
        (B.KMeans(1, iterations=2, initial=[[18]]), Policy.full(three), table["age"], [2, 0, 1]),
        (B.Histogram(), Policy.full(two), [(17, "f"), (18, "m"), (17, "m"), (18, "m")], named),
        (B.Histogram(), Policy.full(bits), [(0, 1), (0, 1), (1, 1)], series_of(crossed, ["b", "a"])),
        (B.Histogram(), Policy.full(bits), [(1, 0), (1, 0), (1, 1)], series_of(crossed, ["a", "b"])),
        (B.Histogram(), Policy.full(bits), [(1, 0), (1, 0), (1, 1)], series_of(crossed, [None, None])),
        (B.Histogram(), Policy.full(three), table["age"], series_of({19: 1, 17: 2, 18: 0}, ["age"])),
        (B.Histogram(), Policy.full(Domain({"x": [False, True]})), [True], {True: 1, False: 0}),
        (B.Sum("age"), Policy.full(two), [(17, "f"), (18, "m"), (17, "m"), (18, "m")], named),
    ):
        given = {"epsilon": 1, "rng": 3}
        one, other = query.release(data, policy, **given), query.release(policy=policy, counts=counts, **given)
        assert one.answers.tolist() == other.answers.tolist(), query
        assert query.plan(policy, epsilon=1, counts=counts) == query.plan(policy, epsilon=1)


def test_optimal_channels() -> None:
    refused(
        {
            "records": each(B.optimal_count, (0, 1), (5000, 1)),
            "epsilon": each(B.optimal_count, (4, 0)),
            "cost": [lambda cost=cost: B.optimal_count(4, 1, cost=cost) for cost in ("cubic", np.ones((3, 3)))],
            "sensitivity": [lambda: B.optimal_count(4, 1, sensitivity=0)],
            "prior": [lambda: B.optimal_count(4, 1, prior=[0.25] * 4)],
        }
    )
