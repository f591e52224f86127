"""Labels and known counts with the names of values are matched with them; weights with such names are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from refusals import assert_refused_at
from series import Series

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.tables._charges import parallel_composition
from mechdesign.tables._sensitivity._sensitivity import sensitivity

T = md.tables
KINDS = T.Domain({"kind": ["pub", "gym", "home", "work"]})
AGES = T.Domain({"age": [20, 10, 30]})
# By name, as pandas sorts.
BLOCKS = Series(["a", "b", "a", "b"], ["gym", "home", "pub", "work"])
IN_ORDER = ["a", "a", "b", "b"]


def test_a_partition_is_matched_by_its_names():
    wanted = T.Policy.partition(KINDS, IN_ORDER)
    for given in (BLOCKS, dict(zip(BLOCKS.index, BLOCKS.values, strict=True)), Series(IN_ORDER), IN_ORDER):
        found = T.Policy.partition(KINDS, given)
        assert found.secret_graph.edges().tolist() == wanted.secret_graph.edges().tolist() == [[0, 1], [2, 3]]
    full, table = T.Policy.full(KINDS), ["pub", "gym", "gym", "work"]
    one, other = (T.Histogram(each).release(table, full, epsilon=1000, rng=1) for each in (BLOCKS, IN_ORDER))
    assert one.answers.tolist() == other.answers.tolist() == [3, 1]
    assert one.labels["block"].tolist() == ["a", "b"]
    assert T.Histogram(BLOCKS).release(table, wanted, epsilon=1).answers.tolist() == [3, 1]
    assert wanted.sensitivity("histogram", partition=BLOCKS) == 0
    assert parallel_composition(wanted, BLOCKS)
    by_number = Series(["x", "y", "y"], [10, 20, 30], None, ["age"])
    assert T.Policy.partition(AGES, by_number).secret_graph.edges().tolist() == [[0, 2]]


def test_known_counts_are_matched_by_their_names():
    counted = Series([0, 0, 1, 1], ["gym", "home", "pub", "work"])
    for given in (counted, (counted, 3)):
        (found,) = T.Policy.full(KINDS, constraints=[given]).constraints
        assert found.counted.tolist() == [True, False, False, True]


def test_names_that_do_not_fit_are_refused():
    places = ["partition", "constraints[0]"]
    uses = [
        lambda given: T.Histogram(given).ask(T.Policy.full(KINDS)),
        lambda given: T.Policy.full(KINDS, constraints=[given]),
    ]
    wrong = {
        "a foreign name": Series([0, 1, 0, 1], ["gym", "home", "pub", "zoo"]),
        "a name twice": Series([0, 1, 0, 1], ["gym", "home", "pub", "pub"]),
        "too few": Series([0, 1, 0], ["gym", "home", "pub"]),
        "too many": Series([0, 1, 0, 1, 1], ["gym", "home", "pub", "work", "zoo"]),
        "numbers in another order": Series([0, 1, 0, 1], [3, 2, 1, 0]),
        "another level": Series([0, 1, 0, 1], ["gym", "home", "pub", "work"], None, ["place"]),
        "pairs": Series([0, 1, 0, 1], list(itertools.product("ab", "cd"))),
        "capitals": Series([0, 1, 0, 1], ["Gym", "home", "pub", "work"]),
    }
    rows = [
        (lambda use=use, given=given: use(given), place)
        for given in wrong.values()
        for use, place in zip(uses, places, strict=True)
    ]
    weights = Series([1, 2, 3, 4], ["gym", "home", "pub", "work"])
    rows += [
        (lambda: T.Linear(weights), "queries", "have names"),
        (lambda: T.MatrixQueries(weights), "coefficients", "have names"),
        (lambda: sensitivity(T.Policy.full(KINDS), weights), "query", "have names"),
        (lambda: T.Linear(Series([1, 2, 3, 4], [3, 2, 1, 0])), "queries", "have names"),
    ]
    assert_refused_at(rows)
    assert len(rows) == 20
    downwards = T.Domain({"age": [2, 1, 0]})
    with pytest.raises(InputError, match="in another order"):
        T.Policy.partition(downwards, Series(["x", "x", "y"]))
    assert T.Linear(Series([1, 2, 3, 4])).rows.tolist() == [[1, 2, 3, 4]]
    assert T.MatrixQueries(np.eye(4)).count == 4
