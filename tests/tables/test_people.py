"""Several rows of one person: what a release costs a person, by the definition, and how the rows are counted."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from database_oracle import Database
from refusals import assert_refused_at

import mechdesign as md
from mechdesign.errors import BudgetExceededError, InputError
from mechdesign.tables._budget import Budget
from mechdesign.tables._sensitivity._sensitivity import Sensitivity
from mechdesign.tables._workload import identity, prefixes

T = md.tables
AGES = T.Domain({"age": range(4)})
PAIR = T.Domain({"sex": ["f", "m"], "ill": [0, 1]})
# Each policy has its edges in plain words, the number of records, and the weights of its known counts.
STEP = {frozenset((x, x + 1)) for x in range(3)}
ALL = {frozenset(pair) for pair in itertools.combinations(range(4), 2)}
ONE = {frozenset(pair) for pair in ((0, 1), (2, 3), (0, 2), (1, 3))}
BLOCKS = {frozenset((0, 1)), frozenset((2, 3))}
GONE = {frozenset((x, 4)) for x in range(4)}
SEX = [0, 0, 1, 1]
POLICIES = {
    "full": (T.Policy.full(AGES), ALL, 3, []),
    "threshold": (T.Policy.threshold(AGES, 1), STEP, 3, []),
    "attribute": (T.Policy.attribute(PAIR), ONE, 3, []),
    "partition": (T.Policy.partition(AGES, [0, 0, 1, 1]), BLOCKS, 3, []),
    "graph": (T.Policy.graph(AGES, [(0, 3)]), {frozenset((0, 3))}, 3, []),
    "full, unbounded": (T.Policy.full(AGES, unbounded=True), ALL | GONE, 3, []),
    "threshold, unbounded": (T.Policy.threshold(AGES, 1, unbounded=True), STEP | GONE, 3, []),
    "full, a known count": (T.Policy.full(AGES, constraints=[SEX]), ALL, 4, [SEX]),
    "threshold, a known count": (T.Policy.threshold(AGES, 1, constraints=[SEX]), STEP, 4, [SEX]),
    "attribute, a known count": (T.Policy.attribute(PAIR, constraints=[SEX]), ONE, 4, [SEX]),
    "attribute, two known counts": (
        T.Policy.attribute(PAIR, constraints=[SEX, [0, 1, 0, 1]]),
        ONE,
        4,
        [SEX, [0, 1] * 2],
    ),
    "unbounded, a known count": (T.Policy.threshold(AGES, 1, constraints=[SEX], unbounded=True), STEP | GONE, 3, [SEX]),
}
ROWS = {
    "histogram": (T.Histogram(), np.eye(4, dtype=int)),
    "blocks": (T.Histogram([0, 1, 1, 0]), np.array([[1, 0, 0, 1], [0, 1, 1, 0]])),
    "sum": (T.Linear([0, 1, 2, 3]), np.array([[0, 1, 2, 3]])),
    "upto": (T.Linear(np.tril(np.ones((4, 4), dtype=int))), np.tril(np.ones((4, 4), dtype=int))),
}


@functools.cache
def differences(name: str, rows: int) -> frozenset[tuple[int, ...]]:
    """Return the differences of the histograms of all pairs of databases that differ in the rows of one person.

    The first `rows` records are those of the person, and all that change do so along an edge. Under known counts the
    other records change so that all counts stay, and no smaller change with that of the person would keep them.
    """
    policy, edges, records, known = POLICIES[name]
    weights = [[*row, 0] for row in known]

    def counts(database: Database) -> tuple[int, ...]:
        return tuple(sum(row[x] for x in database) for row in weights)

    groups: dict[tuple[int, ...], list[Database]] = {}
    for database in itertools.product(range(4 + policy.unbounded), repeat=records):
        groups.setdefault(counts(database), []).append(database)
    found = set()
    for one, other in itertools.chain.from_iterable(itertools.permutations(group, 2) for group in groups.values()):
        changed = [i for i in range(records) if one[i] != other[i]]
        own, others = [i for i in changed if i < rows], [i for i in changed if i >= rows]
        if not own or (others and not known) or not all(frozenset((one[i], other[i])) in edges for i in own):
            continue
        smaller = (set(part) for size in range(len(others)) for part in itertools.combinations(others, size))
        kept = (tuple(other[i] if i in own or i in part else x for i, x in enumerate(one)) for part in smaller)
        if not any(counts(database) == counts(one) for database in kept):
            found.add(tuple(other.count(x) - one.count(x) for x in range(4)))
    return frozenset(found)


def loss(budget: Budget, sensitivity: Sensitivity, difference: list[int]) -> Fraction:
    """Return the largest logarithm of a ratio of probabilities, or ρ, between two databases; both laws are exact."""
    law = budget.noise(sensitivity, Fraction(1))
    if law is None:
        assert not any(difference)
        return Fraction(0)
    if budget.rho is None:
        return sum(map(abs, difference)) / law.scale
    return sum(step**2 for step in difference) / (2 * law.sigma_squared)


@pytest.mark.parametrize("name", POLICIES)
def test_what_a_release_costs_a_person_bounds_the_loss_of_all_pairs_that_differ_in_the_rows_of_a_person(name):
    policy, _, _, known = POLICIES[name]
    for rows, (asked, (query, weights)) in itertools.product((1, 2, 3), ROWS.items()):
        for budget in (Budget.of("0.7"), Budget.of(rho="0.3")):
            sensitivity = query.sensitivity(policy, budget.norm)
            cost = budget.of_person(rows)
            worst = max(loss(budget, sensitivity, (weights @ pair).tolist()) for pair in differences(name, rows))
            assert worst <= (cost.epsilon or cost.rho), (asked, rows, str(budget))
            # The cost of several rows is the least that can be stated.
            if not known and not policy.unbounded and name != "attribute" and sensitivity.value and asked != "blocks":
                assert worst == (cost.epsilon or cost.rho), (asked, rows, str(budget))


@pytest.mark.parametrize("kind", ["identity", "prefix", "hierarchical", "optimal"])
def test_strategies_cost_a_person_no_more_than_is_stated(kind):
    for name, budget in itertools.product(
        ("full", "threshold", "full, unbounded"), (Budget.of("0.7"), Budget.of(rho=1))
    ):
        strategy = T.all_ranges(4).using(kind).strategy(POLICIES[name][0], budget.law)
        power = Sensitivity(0, budget.norm, strategy.power, True, None)
        worst = max(loss(budget, power, (strategy.rows @ pair).tolist()) for pair in differences(name, 2))
        assert worst <= (budget.of_person(2).epsilon or budget.of_person(2).rho), name


TABLE = {"age": [0, 1, 1, 3], "who": ["a", "b", "b", "c"]}
FULL = T.Policy.full(AGES)


def test_the_ledger_is_charged_what_a_person_loses():
    ledger = md.Ledger(epsilon=10)
    charges = [
        (T.Histogram(), {"epsilon": "0.5"}, 3, Fraction(3, 2)),
        (T.Sum(), {"epsilon": "1/3"}, 1, Fraction(1, 3)),
        (T.Cumulative(), {"epsilon": "0.1"}, 7, Fraction(7, 10)),
        (T.KMeans(2, iterations=2), {"epsilon": 1}, 2, Fraction(2)),
        (prefixes(4).using("optimal"), {"epsilon": "0.1"}, 2, Fraction(1, 5)),
    ]
    for query, budget, rows, cost in charges:
        found = query.release([0, 1, 1, 3], FULL, **budget, rows_per_person=rows, ledger=ledger)
        entry = ledger.entries[-1]
        assert (entry.epsilon, entry.rho, found.epsilon) == (cost, None, Fraction(budget["epsilon"])), query
        assert (f"at most {rows} records" in entry.protects) == (rows > 1)
    assert ledger.spent.epsilon == sum(cost for *_, cost in charges)
    (group,) = ledger.by_policy
    assert group.spent.epsilon == ledger.spent.epsilon
    with pytest.raises(BudgetExceededError):
        T.Histogram().release([0], FULL, epsilon=1, rows_per_person=6, ledger=ledger)
    zcdp = md.Ledger(rho=100)
    for query, rows in ((T.Histogram(), 3), (T.all_ranges(4), 5)):
        query.release([0, 1, 1, 3], FULL, rho="0.5", rows_per_person=rows, ledger=zcdp)
    T.Histogram().release(policy=FULL, counts=[1, 0, 2, 9], epsilon=1, rows_per_person=4, ledger=zcdp)
    assert [entry.rho for entry in zcdp.entries] == [Fraction(9, 2), Fraction(25, 2), None]
    # ε = 4 for a person is ρ = 8.
    assert zcdp.spent.rho == Fraction(9, 2) + Fraction(25, 2) + 8
    assert zcdp.by_policy[0].spent.rho == 25


def test_an_exact_release_costs_a_person_nothing():
    public = T.Policy.attribute(PAIR, theta={"sex": 0})
    ledger = md.Ledger(epsilon=0)
    by_sex = T.Histogram(["f", "f", "m", "m"])
    found = by_sex.release(
        policy=public, positions=[0, 1, 3], person=[1, 1, 2], rows_per_person=2, epsilon=1, ledger=ledger
    )
    assert found.answers.tolist() == [2, 1]
    assert ledger.spent.epsilon == 0
    assert found.description.people == "At most 2 rows per person, checked by their keys."
    assert by_sex.plan(public, epsilon=1, rows_per_person=2).spends == "nothing"


def test_a_release_states_the_cost_per_row_and_per_person(tmp_path):
    found = T.Histogram().release(
        TABLE, FULL, rho="0.5", person=TABLE["who"], rows_per_person=2, ledger=md.Ledger(rho=2), rng=None
    )
    assert (
        found.description.people
        == "At most 2 rows per person, checked by their keys. ρ = 0.5 per row is ρ = 2 per person."
    )
    assert found.description.is_spent == "ρ = 2 is spent"
    md.save(found, tmp_path / "out", report=False)
    assert md.tables.load(tmp_path / "out").description == found.description
    plan = T.Histogram().plan(FULL, rho="0.5", rows_per_person=2)
    assert plan.spends == "ρ = 0.5 per row and ρ = 2 per person"
    declared = T.Histogram().release(TABLE, FULL, epsilon=1).description
    assert (declared.people, declared.spent_per_person) == ("One row per person, as declared.", "ε = 1")


def test_a_damaged_cost_of_a_person_is_not_loaded(tmp_path):
    found = T.Histogram().release(TABLE, FULL, epsilon=1, rows_per_person=20)
    md.save(found, tmp_path, report=False)
    header = tmp_path / "release.json"
    header.write_text(header.read_text("utf-8").replace('"ε = 20"', '"ε = 2"'), "utf-8")
    with pytest.raises(InputError, match="20 rows"):
        md.tables.load(tmp_path)


def test_parts_of_values_are_not_disjoint_for_a_person_with_several_rows():
    blocks = T.Policy.partition(AGES, [0, 0, 1, 1])
    ledger = md.Ledger(epsilon=2)
    young, old = (T.part_of(ledger, blocks, "ages", part=part, parts=[0, 0, 1, 1]) for part in ("young", "old"))
    T.Histogram().release(policy=blocks, positions=[0, 1], epsilon=1, ledger=young)
    T.Histogram().release(policy=blocks, positions=[2, 3], epsilon=1, ledger=old)
    assert ledger.spent.epsilon == 1
    for part in (young, old):
        with pytest.raises(InputError, match="may lie in several groups"):
            T.Histogram().release(policy=blocks, positions=[2, 3], epsilon=1, rows_per_person=2, ledger=part)
    clinics = md.Ledger(epsilon=2)
    for name in ("north", "south"):
        part = T.part_of(clinics, FULL, "clinics", part=name)
        T.Histogram().release([0, 1], FULL, epsilon=1, person=["a", "a"], rows_per_person=2, ledger=part)
    assert clinics.spent.epsilon == 2


def test_rows_are_counted_before_anything_is_charged():
    ledger = md.Ledger(epsilon=10)
    for keys, rows, most in (
        (["a", "b", "b", "c"], 1, 2),
        ([7, 7, 7, 7], 3, 4),
        (["é", "é ", "e\u0301", "b"], 2, 3),
        (np.array([1.0, 1.0, 2.0, 3.0]), 1, 2),
        (np.array(["x", "x", "x", "y"], dtype=object), 2, 3),
    ):
        for query in (T.Histogram(), T.Cumulative(), T.KMeans(2, iterations=1), identity(4)):
            with pytest.raises(InputError, match=f"found {most}; must be at most {rows}") as refused:
                query.release(TABLE, FULL, epsilon=1, person=keys, rows_per_person=rows, ledger=ledger)
            assert refused.value.path == "person"
        T.Histogram().release(TABLE, FULL, epsilon=1, person=keys, rows_per_person=most, rng=1)
    assert not ledger.entries


def test_wrong_people_are_refused():
    def release(person, rows=1, **how):
        given = how or {"data": TABLE}
        return lambda: T.Histogram().release(policy=FULL, epsilon=1, person=person, rows_per_person=rows, **given)

    masked = np.ma.array([1, 2, 3, 4], mask=[0, 0, 0, 1])
    rows = [
        (release("who"), "person", "Give the column itself"),
        (release(b"who"), "person", "is not a column"),
        (release({"a": 1}), "person", "is not a column"),
        (release({"a", "b", "c", "d"}), "person", "is not a column"),
        (release(iter("abcd")), "person", "is not a column"),
        (release(7), "person", "is not a column"),
        (release(np.array(7)), "person", "one key in each row"),
        (release(np.zeros((4, 2))), "person", "one key in each row"),
        (release([["a"], ["b"], ["c"], ["d"]]), "person", "one key in each row"),
        (release([("a", 1), ("b", 1), ("c", 1), ("d", 1)]), "person", "of another kind"),
        (release(["a", "b", "c"]), "person", "wrong length"),
        (release([]), "person", "wrong length"),
        (release(["a", "b", "c", "d", "e"]), "person", "wrong length"),
        (release(["a", "b", "c", ""]), "person", "missing"),
        (release(["a", "b", "c", " "]), "person", "missing"),
        (release(["a", "b", "c", None]), "person", "missing"),
        (release([1.0, 2.0, 3.0, float("nan")]), "person", "missing"),
        (release([1, 2, 3, "1"]), "person", "of another kind"),
        (release([1.5, 2, 3, 4]), "person", "of another kind"),
        (release([True, False, 3, 4]), "person", "of another kind"),
        (release(np.array([True, False, True, False])), "person", "of another kind"),
        (release(masked), "person", "masked"),
        (release([1, 2], positions=[0]), "person", "wrong length"),
        (release([1, 2, 3, 4], counts=[1, 1, 1, 1]), "person", "given together with counts"),
        (release(None, 0), "rows_per_person", "too small"),
        (release(None, True), "rows_per_person", "not a whole number"),
        (release(None, "2"), "rows_per_person", "not a whole number"),
        (release(None, 2.0), "rows_per_person", "not a whole number"),
        (release(None, 2**41), "rows_per_person", "too large"),
        (release(None, -1, counts=[1, 1, 1, 1]), "rows_per_person", "too small"),
        (lambda: T.Histogram().plan(FULL, epsilon=1, rows_per_person=0), "rows_per_person", "too small"),
    ]
    assert_refused_at(rows)
