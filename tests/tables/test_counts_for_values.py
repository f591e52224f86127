"""Counts given where values are wanted are refused with counts= as the remedy; counts= are matched by their labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from refusals import assert_refused_at
from series import Series

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.tables._workload import prefixes

T = md.tables
AGES = [3, 3, 3, 5, 5, 7]
POLICY = T.Policy.full(T.Domain({"age": range(10)}))
TWO = T.Policy.full(T.Domain({"age": range(10), "sex": ["f", "m"]}))
RIGHT = np.bincount(AGES, minlength=10)


class Frame(dict):
    """What this package reads of a frame."""

    columns = property(tuple)


class Array(Series):
    """What this package reads of an array of xarray: the names of its axes, and their coordinates."""

    def __init__(self, values, labels, dim):
        super().__init__(values)
        del self.index
        self.dims, self.coords = (dim,), {dim: SimpleNamespace(values=np.array(labels))}


def release(data=None, policy=POLICY, **how):
    return T.Histogram().release(data, policy, epsilon=1000, rng=1, **how).answers.tolist()


def counted(name, by=None, labels=(3, 5, 7), values=(3, 2, 1)):
    return Series(values, labels, name, [by])


# What value_counts(), groupby().size() and their like return.
COUNTS = {
    "value_counts()": counted("count", "age"),
    "value_counts() of a series without a name": counted("count"),
    "value_counts().sort_index()": counted("count", labels=(7, 5, 3), values=(1, 2, 3)),
    "value_counts(normalize=True)": counted("proportion", "age", values=(0.5, 0.3, 0.2)),
    "value_counts() as values that are values of the domain": counted("proportion", values=(1, 2, 3)),
    "groupby(age).size()": counted(None, "age"),
    "groupby(age).size() of a series without a name": counted(None),
    "groupby(age)[age].count()": counted("age", "age"),
    "groupby(age)[id].count()": counted("id", "age"),
    "a column of crosstab()": counted("f", "age"),
    "a renamed series": counted("people", "age"),
    "texts as labels": counted("count", None, ("3", "5", "7")),
    "an array of xarray": Array([3, 2, 1], [3, 5, 7], "age"),
}


def test_counts_are_no_values():
    rows = [(lambda given=given: release(given), "data", "Give counts as counts=") for given in COUNTS.values()]
    rows.append((lambda: release(positions=COUNTS["value_counts()"]), "positions", "counts="))
    levels = [(3, "f"), (5, "m")]
    rows += [
        (lambda: release(Series([2, 1], levels, None, ["age", "sex"]), TWO), "data", "counts="),
        (lambda: release(Series([2, 1], levels, None, [None, None]), TWO), "data", "counts="),
        (lambda: release(Series([2, 1], levels, "count", [None, None]), TWO), "data", "counts="),
        (lambda: release(Frame(age=[3, 5], count=[2, 1])), "data", "as counts="),
        (lambda: release(Frame(age=[3, 5], sex=["f", "m"], size=[2, 1]), TWO), "data", "as counts="),
        (lambda: release({"age": [3, 5], "n": [2, 1]}), "data", "as counts="),
        (lambda: release({"age": [3, 5], 0: [2, 1]}), "data", "as counts="),
        (lambda: release({3: 2, 5: 1}), "data", "as counts="),
        (lambda: release(Frame(count=[2, 1])), "data", "as counts="),
        # A row for each value is a table of counts whatever its other columns are called.
        (lambda: release(Frame(age=range(9, -1, -1), people=RIGHT)), "data", "as counts="),
        (lambda: release(Frame(age=range(10), men=RIGHT, women=RIGHT)), "data", "as counts="),
    ]
    for query in (T.Sum(), T.Cumulative(), T.KMeans(2), prefixes(10)):
        rows.append((lambda query=query: query.release(COUNTS["value_counts()"], POLICY, epsilon=1), "data", "counts="))
    assert_refused_at(rows)
    assert len(rows) > 20


def test_values_are_values():
    """Columns with other indices are taken, and what is no series at all."""
    assert release(Frame(age=range(10))) == [1] * 10
    assert release(Frame(age=[*range(9), 8], id=range(10))) == [1] * 8 + [2, 0]
    for given in (
        AGES,
        np.array(AGES),
        Series(AGES),
        Series(AGES, name="age"),
        Series(AGES, [10, 11, 12, 13, 14, 15], "age"),
        Series(AGES, [3, 5, 7, 0, 1, 2], "age", ["id"]),
        Series(AGES, list("abcdef")),
        Series(AGES, [1, 1, 2, 2, 3, 3]),
        Series(AGES, range(100, 106)),
        Frame(age=AGES, count=range(6), id=range(6)),
        Array(AGES, range(6), "row"),
    ):
        assert release(given) == RIGHT.tolist()
    sizes = T.Policy.full(T.Domain({"count": range(10)}))
    assert release(Series(AGES, name="count"), sizes) == release({"count": AGES}, sizes) == RIGHT.tolist()


def test_counts_are_matched_by_their_labels():
    order = [7, 2, 9, 4, 0, 1, 3, 8, 6, 5]
    pairs = [(age, sex) for sex in "mf" for age in order]
    found = {(age, sex): RIGHT[age] if sex == "f" else 0 for age, sex in pairs}
    by_pair = [found[pair] for pair in pairs]
    for given, policy in (
        (Series(RIGHT[order], order, "count", ["age"]), POLICY),
        (Series(RIGHT[order], order), POLICY),
        (Series(RIGHT[order], np.array(order) * 1.0), POLICY),
        (Series(RIGHT), POLICY),
        (Array(RIGHT[order], order, "age"), POLICY),
        (dict(zip(order, RIGHT[order].tolist(), strict=True)), POLICY),
        (Series(by_pair, pairs, None, ["age", "sex"]), TWO),
        (Series(by_pair, [pair[::-1] for pair in pairs], None, ["sex", "age"]), TWO),
    ):
        answers = release(policy=policy, counts=given)
        assert (answers if policy is POLICY else answers[::2]) == RIGHT.tolist()
    kinds = T.Policy.full(T.Domain({"kind": ["c", "a", "b"]}))
    assert release(policy=kinds, counts=Series([5, 1, 9], list("abc"))) == [9, 5, 1]
    # Rows in order have numbers, and no value is a number.
    assert release(policy=kinds, counts=Series([5, 1, 9])) == [5, 1, 9]


def test_labels_that_do_not_fit_are_refused():
    down = T.Policy.full(T.Domain({"age": [2, 1, 0]}))
    kinds = T.Policy.full(T.Domain({"kind": ["c", "a", "b"]}))

    def wrong(counts, policy=POLICY):
        return lambda: release(policy=policy, counts=counts)

    masked = np.ma.array(RIGHT, mask=[True] + [False] * 9)
    rows = [
        (wrong(counted("count", "age")), "counts", "reindex(values, fill_value=0)"),
        (wrong(Series(RIGHT, [*range(9), 99])), "counts", "not a value of the domain"),
        (wrong(Series(RIGHT, [*range(9), 8])), "counts", "name a value twice"),
        (wrong(Series(RIGHT, map_to(str))), "counts", "not a value of the domain"),
        (wrong(Series(RIGHT, range(10), None, ["years"])), "counts", "other levels"),
        (wrong(Series(RIGHT, range(1, 11))), "counts", "not a value of the domain"),
        (wrong(Series(RIGHT[:2], [True, False]), T.Policy.full(T.Domain({"age": [0, 1]}))), "counts", "truth value"),
        (wrong(Series([5, 1, 9]), down), "counts", "in another order"),
        (wrong(Series([5, 1, 9], [2, 1, 0]), kinds), "counts", "not a value of the domain"),
        (wrong(Series([5, 1, 9], list("abd")), kinds), "counts", "not a value of the domain"),
        (wrong(Series([5, 1], list("ab")), kinds), "counts", "wrong length"),
        (wrong(Series([[5, 1, 9]])), "counts", "wrong shape"),
        (wrong(Series([5, -1, 9], list("abc")), kinds), "counts[2]", "not a count"),
        (wrong(Series([5, 0.5, 9], list("abc")), kinds), "counts[2]", "not a count"),
        (wrong(Series([5.0, np.nan, 9.0], list("abc")), kinds), "counts[2]", "not a count"),
        (wrong(Series(["5", "1", "9"], list("abc")), kinds), "counts", "must be"),
        (wrong(Series([True, False, True], list("abc")), kinds), "counts[0]", "truth value"),
        (wrong(np.array([5, 1, 9], dtype=object), kinds), "counts", "astype"),
        (wrong(masked), "counts", "masked"),
        (wrong(SimpleNamespace(toarray=RIGHT.copy, __array__=RIGHT.copy)), "counts", "toarray()"),
        (wrong(Frame(age=AGES, count=AGES)), "counts", ""),
    ]
    assert_refused_at(rows)
    assert release(policy=down, counts=Series([5, 1, 9], range(3), None, ["age"])) == [9, 1, 5]


def map_to(kind):
    return [kind(age) for age in range(10)]


def test_a_release_of_counts_is_that_of_the_records():
    counts = Series(RIGHT, range(10), "count", ["age"])
    for query in (T.Histogram(), T.Sum(), T.Cumulative(), T.KMeans(2, iterations=2)):
        one = query.release(AGES, POLICY, epsilon=1, rng=5)
        assert query.release(policy=POLICY, counts=counts, epsilon=1, rng=5).answers.tolist() == one.answers.tolist()
    with pytest.raises(InputError, match="counts="):
        T.Histogram().release(counts, POLICY, epsilon=1)
