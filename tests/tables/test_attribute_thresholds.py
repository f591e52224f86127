"""The attribute policy with a threshold for each attribute, against its definition, edge by edge and table by table."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from database_oracle import edges_by_rule, histogram, largest_change, neighbours

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._sensitivity._sensitivity import sensitivity

PEOPLE = Domain({"age": range(100), "diagnosis": ["flu", "cold", "none"]})


def drawn(seed):
    """Return a domain of at most three attributes, thresholds for some of them, and the rule of the edges."""
    dice = np.random.default_rng(seed)
    number = int(dice.integers(1, 4))
    values, theta = {}, {}
    for axis in range(number):
        size = int(dice.integers(2, (9, 5, 4)[number - 1]))
        steps = np.cumsum(dice.integers(1, 4, size)).tolist()
        listed = [
            range(20, 20 + size),
            steps,
            [step / 10 for step in steps],
            [Fraction(step, 3) for step in steps],
            [f"v{step}" for step in steps],
        ][int(dice.integers(5 if axis else 4))]
        values[f"a{axis}"] = listed
        numeric = not isinstance(listed[0], str)
        kinds = ["number", "next", 0, None] if numeric else [0, None]
        kind = kinds[int(dice.integers(len(kinds)))] if axis else "number"
        exact = [Fraction(str(value)) for value in listed] if numeric else []
        if kind == "number":
            gap, width = min(b - a for a, b in itertools.pairwise(exact)), exact[-1] - exact[0]
            theta[f"a{axis}"] = str(gap + (width - gap) * Fraction(int(dice.integers(5)), 4))
        elif kind is not None:
            theta[f"a{axis}"] = kind

    def near(x, y):
        changed = [axis for axis in range(number) if x[axis] != y[axis]]
        if len(changed) != 1:
            return False
        axis = changed[0]
        limit = theta.get(f"a{axis}")
        if limit is None or limit == 0:
            return limit is None
        if limit == "next":
            places = [list(values[f"a{axis}"]).index(end[axis]) for end in (x, y)]
            return abs(places[0] - places[1]) == 1
        return abs(Fraction(str(x[axis])) - Fraction(str(y[axis]))) <= Fraction(limit)

    return Domain(values), theta, near, dice


def by_rule(domain, near, **more):
    """Return the policy whose edges are listed, one by one, by the rule."""
    edges = edges_by_rule([domain.value(index) for index in range(domain.size)], near)
    return Policy.graph(domain, [tuple(edge) for edge in edges], **more)


def asked(domain, dice):
    """Yield names and options of queries."""
    yield "histogram", {}
    yield "histogram", {"partition": dice.integers(0, 3, domain.size)}
    yield dice.integers(-9, 10, domain.size), {}
    yield dice.integers(-3, 4, (3, domain.size)), {}
    for attribute in domain.attributes:
        if attribute.numeric:
            yield "sum", {"attribute": attribute.name}
    yield "kmeans-sum", {}
    yield "kmeans-size", {}
    yield "kmeans-sum", {"clusters": dice.integers(0, min(3, domain.size), domain.size)}
    if len(domain.names) == 1:
        yield "cumulative", {}


def sensitivities_are_those_of_the_definition(seeds):
    for seed in seeds:
        domain, theta, near, dice = drawn(seed)
        more = {"unbounded": seed % 4 == 0}
        policy, listed = Policy.attribute(domain, theta=theta, **more), by_rule(domain, near, **more)
        wanted = {tuple(edge) for edge in listed.secret_graph.edges().tolist()}
        assert {tuple(edge) for edge in policy.secret_graph.edges().tolist()} == wanted, (seed, theta)
        for (query, options), norm in itertools.product(asked(domain, dice), (1, 2)):
            found = sensitivity(policy, query, norm, **options)
            assert found.exact, (seed, theta, query)
            assert found.power == sensitivity(listed, query, norm, **options).power, (seed, theta, query, norm)
            assert found.witness is None or found.witness in wanted, (seed, theta, query)


def test_sensitivities_are_those_of_the_definition():
    sensitivities_are_those_of_the_definition(range(12))


@pytest.mark.slow
def test_sensitivities_of_many_policies_are_those_of_the_definition():
    sensitivities_are_those_of_the_definition(range(12, 600))


def test_all_pairs_of_tables_of_two_records():
    for theta, known in itertools.product(({"x": 1}, {"x": "next", "y": 0}, {"y": 2}), ([], [[1, 1, 0, 0, 0, 0]])):
        domain = Domain({"x": [0, 1], "y": [0, 2, 5]})
        policy = Policy.attribute(domain, theta=theta, constraints=known)
        pairs = list(neighbours({frozenset(e) for e in policy.secret_graph.edges().tolist()}, 6, 2, known))
        answers = {"histogram": histogram(6), "sum": lambda table: [sum((0, 2, 5)[value % 3] for value in table)]}
        for name, answer in answers.items():
            truth = largest_change(answer, iter(pairs), 1)
            options = {"attribute": "y"} if name == "sum" else {}
            assert policy.sensitivity(name, **options) == truth, (theta, known, name)


def releases_are_those_of_the_definition(seeds):
    for seed in seeds:
        domain, theta, near, dice = drawn(seed)
        policy, listed = Policy.attribute(domain, theta=theta), by_rule(domain, near)
        records = dice.integers(0, domain.size, 30)
        labels, weights = dice.integers(0, 3, domain.size), dice.integers(-3, 4, (3, domain.size))
        # A histogram may take a strategy, whose rounding depends on the order of the edges.
        blocks = labels == np.arange(3)[:, None]
        queries = [md.tables.Linear(rows) for rows in (np.eye(domain.size), blocks.astype(int), weights)]
        queries += [md.tables.Sum(each.name) for each in domain.attributes if each.numeric]
        for query, (name, amount) in itertools.product(queries, (("epsilon", 1), ("rho", "0.5"))):
            asked = {"positions": records, "rng": seed, name: amount}
            one, other = (query.release(policy=each, **asked) for each in (policy, listed))
            assert one.answers.tolist() == other.answers.tolist(), (seed, theta, query)
            assert one.standard_errors.tolist() == other.standard_errors.tolist(), (seed, theta, query)


def test_releases_are_those_of_the_definition():
    releases_are_those_of_the_definition(range(4))


@pytest.mark.slow
def test_releases_under_many_policies_are_those_of_the_definition():
    releases_are_those_of_the_definition(range(4, 110))


def test_an_age_within_five_years_and_any_diagnosis_are_both_protected():
    policy = Policy.attribute(PEOPLE, theta={"age": 5})
    diagnoses = np.tile(np.arange(3), 100)
    assert policy.sensitivity("sum", attribute="age") == 5
    assert Policy.attribute(PEOPLE).sensitivity("sum", attribute="age") == 99
    assert policy.sensitivity("histogram", partition=diagnoses) == policy.sensitivity("histogram") == 2
    # Exact releases of either attribute are refused to a policy that protects the other one exactly.
    age_alone = Policy.attribute(PEOPLE, theta={"age": 5, "diagnosis": 0})
    assert age_alone.sensitivity("histogram", partition=diagnoses) == 0


def test_neighbouring_values_take_the_ordered_mechanism():
    domain = Domain({"x": [0, 1, 10]})
    policy = Policy.attribute(domain, theta={"x": "next"})
    assert policy.sensitivity("sum") == 9
    assert policy.sensitivity("cumulative") == 1
    assert md.tables.Cumulative().plan(policy, epsilon=1).taken.name == "ordered"


def test_the_remedy_of_a_threshold_protects_every_pair_that_it_asks_for():
    def near(x, y):
        return sum(abs(a - b) for a, b in zip(x, y, strict=True) if not isinstance(a, str)) <= 3

    text = {"sex": ["f", "m"]}
    for numbers in ({}, {"x": range(4)}, {"x": range(4), "y": range(4)}):
        domain = Domain(numbers | text)
        with pytest.raises(InputError, match="sex is not a numeric attribute") as refused:
            Policy.threshold(domain, 3)
        named = [kind for kind in ("attribute", "graph", "full") if f'"{kind}"' in refused.value.remedy]
        assert named == (["attribute"] if len(numbers) == 1 else ["graph", "full"]), numbers
        theta = dict.fromkeys(numbers, 3) if len(numbers) == 1 else None
        policy = Policy.attribute(domain, theta=theta) if named == ["attribute"] else Policy.full(domain)
        kept = {tuple(edge) for edge in policy.secret_graph.edges().tolist()}
        values = [domain.value(index) for index in range(domain.size)]
        for a, b in edges_by_rule(values, lambda x, y: x[-1] == y[-1] and near(x, y)):
            assert tuple(sorted((int(a), int(b)))) in kept, (numbers, values[a], values[b])
    for kind, given in (("attribute", {"x": 1}), ("ascending order", 1)):
        with pytest.raises(InputError) as refused:
            Policy.threshold(Domain({"x": [2, 1]}), given)
        assert kind in refused.value.remedy


def test_large_domains_need_no_list_of_values():
    domain = Domain({f"a{i}": range(10) for i in range(15)})
    policy = Policy.attribute(domain, theta={"a3": "2.5", "a4": "next", "a5": 0})
    for name, largest in (("a0", 9), ("a3", 2), ("a4", 1), ("a5", 0)):
        assert policy.sensitivity("sum", attribute=name) == largest, name
    assert policy.secret_graph.edge_count == 10**14 * (12 * 45 + 17 + 9)
    assert policy.secret_graph.has_edge([0, 0, 0], [10**14, 10**9, 3 * 10**11]).tolist() == [True, False, False]
