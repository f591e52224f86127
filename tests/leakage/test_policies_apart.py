"""A ledger adds up what was spent under one policy, and never what was spent under several."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from releases import release_by, release_counts, strategy_of

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.leakage._entries import APART
from mechdesign.specification._table_specification import parse
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy, name_policy

AGES, INCOMES = Domain({"age": range(5)}), Domain({"income": range(5)})


def test_policies_of_the_same_words_are_kept_apart():
    ledger = md.Ledger(epsilon=10)
    # The same sentence on neighbours: other domains, and graphs of as many edges.
    policies = [
        Policy.full(AGES),
        Policy.full(INCOMES),
        Policy.graph(AGES, [(0, 1), (2, 3)]),
        Policy.graph(AGES, [(0, 2), (1, 3)]),
        Policy.partition(AGES, [0, 0, 1, 1, 1]),
        Policy.partition(AGES, [0, 1, 0, 1, 1]),
    ]
    assert len({policy.neighbours for policy in policies}) == 3
    for policy in policies:
        for _ in range(2):
            md.tables.Linear(np.eye(5)).release([1, 3], policy, epsilon="0.5", ledger=ledger)
    lines = ledger.by_policy
    assert [line.policy for line in lines] == [name_policy(policy) for policy in policies]
    assert [line.spent.epsilon for line in lines] == [1] * 6
    assert [line.protects for line in lines] == [(policy.neighbours,) for policy in policies]
    assert ledger.spent.epsilon == 6
    assert ledger.remaining_epsilon == 4


def test_every_release_function_names_its_policy():
    policy, ledger = Policy.threshold(AGES, 1), md.Ledger()
    data = {"data": [1, 2, 3], "policy": policy, "epsilon": 1, "ledger": ledger}
    md.tables.Histogram().release(**data)
    md.tables.Linear(np.arange(5)).release(**data)
    md.tables.Sum().release(**data)
    md.tables.KMeans(1, iterations=1).release([1, 2], policy, epsilon=1, ledger=ledger)
    release_by(strategy_of("identity", policy, "laplace"), [1, 2], epsilon=1, ledger=ledger)
    md.tables.Sum().release([1], policy, epsilon=1, ledger=md.tables.part_of(ledger, policy, "clinics", part="north"))
    head = (
        'table.person = false\ndomain.attributes.age = { range = [0, 4] }\npolicy = { kind = "threshold", theta = 1 }\n'
    )
    given = parse(head + 'release = { kind = "cdf", epsilon = 1 }\n')
    given.release({"age": [1, 2]}, ledger=ledger)
    assert [line.policy for line in ledger.by_policy] == [name_policy(policy)]
    assert ledger.by_policy[0].spent.epsilon == 7
    release_counts([1, 2, 3, 0, 0], 1, 1, ledger=ledger)
    assert len(ledger.by_policy) == 2


def test_a_group_composes_in_parallel_under_its_own_policy_alone():
    free, ledger = Policy.full(AGES), md.Ledger()
    north = md.tables.part_of(ledger, free, "clinics", part="north")
    for other in (Policy.full(AGES, constraints=[[1, 0, 0, 0, 0]]), Policy.threshold(AGES, 1), Policy.full(INCOMES)):
        with pytest.raises(InputError, match="ledger: belongs to a group under another policy"):
            md.tables.Histogram().release([1], other, epsilon=1, ledger=north)
    with pytest.raises(InputError, match="under another policy"):
        release_counts([1, 2, 3, 0, 0], 1, 1, ledger=north)
    assert ledger.entries == ()
    md.tables.Histogram().release([1], Policy.full(Domain({"age": range(5)})), epsilon=1, ledger=north)
    assert ledger.spent.epsilon == 1


def test_names_tell_policies_apart():
    square = Domain({"x": range(3), "y": range(3)})
    policies = [
        Policy.full(AGES),
        Policy.full(AGES, unbounded=True),
        Policy.threshold(AGES, 1),
        Policy.threshold(AGES, 2),
        Policy.full(AGES, constraints=[([1, 0, 0, 0, 0], 1)]),
        Policy.full(AGES, constraints=[([1, 0, 0, 0, 0], 2)]),
        Policy.full(Domain({"age": range(1, 6)})),
        Policy.threshold(square, 1),
        Policy.attribute(square),
        Policy.attribute(square, theta={"x": 1}),
        Policy.attribute(square, theta={"x": 1, "y": 0}),
    ]
    assert len({name_policy(policy) for policy in policies}) == len(policies)

    # A policy that is made twice has one name.
    def made():
        return Policy.attribute(AGES, theta={"age": "next"}, unbounded=True)

    assert name_policy(made()) == name_policy(made())
    # Thresholds that join the same values have one digest.
    alike = [Policy.threshold(AGES, 1), *(Policy.attribute(AGES, theta={"age": theta}) for theta in (1, 1.5, "next"))]
    assert len({name_policy(policy).split("[")[1] for policy in alike}) == 1


def test_texts_say_that_policies_are_kept_apart():
    ledger = md.Ledger(epsilon=2)
    ledger.spend("a", "one person's age", epsilon="0.5")
    assert repr(ledger) == "Ledger(epsilon=2, 1 entries)"
    assert APART not in str(ledger)
    ledger.spend("b", "one person's income", epsilon="0.25")
    for text in (repr(ledger), str(ledger)):
        assert APART in text
    assert "ε = 0.5 in 1 entry under: one person's age" in str(ledger)
    assert "plain sum: ε = 0.75" in str(ledger)


def test_entries_by_hand_belong_together_by_their_words_or_their_policy():
    ledger = md.Ledger()
    ledger.spend("a", "one age", epsilon=1)
    ledger.spend("b", "one age", epsilon=2)
    ledger.spend("c", "one age", epsilon=4, policy="ages")
    ledger.spend("d", "the age of one person", epsilon=8, policy="ages")
    ledger.spend("e", "one age", rho=1)
    # A policy that is called what others protect is another policy.
    ledger.spend("f", "x", epsilon=1, policy="one age")
    lines = ledger.by_policy
    assert [(line.policy, [entry.what for entry in line.entries]) for line in lines] == [
        ("one age", ["a", "b", "e"]),
        ("ages", ["c", "d"]),
        ("one age", ["f"]),
    ]
    assert lines[0].spent.epsilon is None
    assert lines[0].spent.rho == Fraction(7, 2)
    assert lines[1].protects == ("one age", "the age of one person")
    with pytest.raises(InputError, match="policy"):
        ledger.spend("g", "x", epsilon=1, policy=" ")
    assert len(ledger.entries) == 6


def test_parts_of_a_division_cost_the_largest_under_each_policy():
    ledger = md.Ledger()
    for part in ("north", "south"):
        ledger.spend("a", "x", epsilon=1, part=("region", part), policy="P")
        ledger.spend("a", "y", epsilon=2, part=("region", part), policy="Q")
    assert [line.spent.epsilon for line in ledger.by_policy] == [1, 2]


def test_the_steps_of_a_trace_are_under_its_policy_graph():
    ledger = md.Ledger()

    def trace(graph):
        line = md.Domain.grid(4, 1, 4.0, 1.0)
        # Not all states are possible at every step.
        walk = np.array([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0.5, 0.5]])
        return md.traces.Trace(line, graph, 1, walk, [0.5, 0.5, 0, 0], ledger=ledger, rng=1)

    for graph in (nx.path_graph(4), nx.path_graph(4), nx.cycle_graph(4)):
        walk = trace(graph)
        walk.step(0)
        walk.step(1)
    first, second = ledger.by_policy
    assert (len(first.entries), len(second.entries)) == (4, 2)
    assert len(first.protects) == 2
    assert first.policy.startswith("policy graph on 4 states, 3 edges")
    assert first.spent.epsilon == 4
