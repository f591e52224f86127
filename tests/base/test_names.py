"""Names travel: one function takes every array, and brings its rows and columns into the order of labels."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sparse
from frames import Frame, Grid, Table
from refusals import assert_refused_at

from mechdesign.base._names import Named, named, opened, order_of
from mechdesign.errors import InputError, InputWarning

ABC = ("a", "b", "c")
SQUARE = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 3.0], [5.0, 3.0, 0.0]])
CHAIN = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])


def shuffled(values, order):
    return np.asarray(values)[np.ix_(order, order)]


def test_every_order_of_names_gives_the_order_of_the_labels():
    for order in itertools.permutations(range(3)):
        names = [ABC[each] for each in order]
        for found in (
            Named(shuffled(SQUARE, order), names, names),
            Frame(shuffled(SQUARE, order), names, names),
            Grid(shuffled(SQUARE, order), here=names, there=names),
        ):
            assert (named(found, "cost", ABC, ABC) == SQUARE).all(), (order, found)
        for series in (Named(SQUARE[0][list(order)], names), Frame(SQUARE[0][list(order)], names)):
            assert (named(series, "prior", ABC) == SQUARE[0]).all()


def test_integers_are_positions():
    for order in itertools.permutations(range(3)):
        found = Frame(shuffled(SQUARE, order), order, order)
        for labels in ((), ABC, ("0", "1", "2"), ("10", "11", "12")):
            assert (named(found, "cost", labels, labels) == SQUARE).all(), (order, labels)


def test_an_index_in_order_is_no_name():
    found = named(Frame(SQUARE), "cost", ABC, ABC)
    assert (found == SQUARE).all()
    assert (named(Table(SQUARE, ABC), "cost", ABC, ABC) == SQUARE).all()


def test_names_of_rows_alone_count_where_the_columns_have_other_labels():
    cost = np.arange(6.0).reshape(3, 2)
    assert (named(Frame(cost[[2, 0, 1]], "cab"), "cost", ABC, ("yes", "no")) == cost).all()
    assert (named(Frame(cost[:, ::-1], columns=["no", "yes"]), "cost", ABC, ("yes", "no")) == cost).all()


def test_names_of_coordinates_do_not_matter():
    places = Frame(SQUARE[[2, 1, 0], :2], "cba", ["x", "y"])
    assert (named(places, "points", ABC) == SQUARE[:, :2]).all()
    assert (named(places, "points") == SQUARE[[2, 1, 0], :2]).all()


def test_axes_named_secret_and_observable_are_taken_by_their_names():
    cost = np.arange(6.0).reshape(3, 2)
    answers = ("yes", "no")
    assert (named(Grid(cost.T, observable=answers, secret=ABC), "cost", ABC, answers) == cost).all()
    frame = Frame(cost.T, answers, ABC, ("observable", "secret"))
    assert (named(frame, "cost", ABC, answers) == cost).all()


def noted(value):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        named(value, "cost", ABC, getattr(value, "columns", ABC))
    return [each.category for each in said]


def test_a_note_says_where_rows_and_columns_may_be_exchanged():
    lopsided = SQUARE + np.triu(SQUARE)
    assert noted(Frame(lopsided, ABC, ABC)) == [InputWarning]
    assert noted(Frame(np.roll(np.eye(3), 1, axis=0), ABC, ABC)) == [InputWarning]
    for clear in (
        Frame(lopsided, ABC, ABC, ("secret", "observable")),
        Frame(shuffled(SQUARE, [2, 0, 1]), "cab", "cab"),
        Frame(SQUARE[:, [2, 0, 1]], ABC, "cab"),
        Frame(CHAIN, ABC, ABC),
        Frame(lopsided, ABC, "xyz"),
        Frame(lopsided),
        lopsided,
    ):
        assert noted(clear) == []


def test_arrays_without_names_are_not_copied():
    for value in (SQUARE, Named(SQUARE, ABC, ABC)):
        assert np.shares_memory(named(value, "cost", ABC, ABC, dtype=np.float64), SQUARE)


def test_exact_fractions_of_a_list_become_the_nearest_floats():
    assert named([Fraction(1, 3), 1], "prior").tolist() == [1 / 3, 1.0]


def test_order_of_returns_a_position_for_each_label():
    assert order_of(["c", "a", "b"], ABC, "prior").tolist() == [1, 2, 0]
    for in_order in ((), ABC, (0, 1, 2)):
        assert order_of(in_order, ABC, "prior") is None


def test_what_has_other_names_is_refused():
    digits = ("2", "0", "1")
    wrong = {
        "foreign": Frame([1, 2, 3], "abd"),
        "missing": Frame([1, 2], "ab"),
        "repeated": Frame([1, 2, 3, 4], "abca"),
        "counted from 1": Frame([1, 2, 3], [1, 2, 3]),
        "identifiers": Frame([1, 2, 3], [102, 7, 55]),
        "a position twice": Frame([1, 2, 3], [0, 0, 1]),
        "fewer positions": Frame([1, 2], [1, 0]),
        "numbers with a point": Frame([1, 2, 3], [0.5, 1.5, 2.5]),
        "truth values": Frame([1, 2, 3], [True, False, True]),
        "mixed": Frame([1, 2, 3], ["a", 1, "c"]),
        "pairs": Frame([1, 2, 3], [("a", 1), ("b", 1), ("c", 1)]),
        "no name": Frame([1, 2, 3], ["a", None, "c"]),
        "padded": Frame([1, 2, 3], ["a", "b", "c "]),
        "coordinates": Grid([1, 2, 3], place=["a", "b", "d"]),
    }
    assert_refused_at(
        [(lambda value=value: named(value, "prior", ABC), "prior", "") for value in wrong.values()]
        + [
            (lambda: named(Frame([1, 2, 3], [2, 0, 1]), "prior", digits), "prior", "in another order"),
            (lambda: named(Frame([1, 2, 3]), "prior", digits), "prior", "in another order"),
            (lambda: named(Frame([1, 2, 3], "cab"), "prior", ()), "prior", "no labels to match"),
            (lambda: named(Frame(SQUARE, "cba"), "cost", ABC, ABC), "cost", "its columns have none"),
            (lambda: named(Frame(SQUARE, columns="cba"), "cost", ABC, ABC), "cost", "its rows have none"),
            (lambda: named(Frame(SQUARE, ABC), "cost", (), ABC), "cost", "no labels to match"),
            (lambda: named(Frame(SQUARE, "xyz", ABC), "cost", ABC, ABC), "cost", "is no label"),
            (lambda: named(Table(SQUARE, "bca"), "cost", ABC, ABC), "cost", "its rows have none"),
        ]
    )


def test_what_is_no_array_of_real_numbers_is_refused():
    masked = np.ma.array(SQUARE, mask=np.eye(3))
    wrong = [
        (masked, "masked"),
        ([masked, masked], "masked"),
        (sparse.csr_array(SQUARE), "toarray()"),
        (sparse.coo_matrix(SQUARE), "toarray()"),
        (SQUARE.astype(object), "object"),
        (Frame(SQUARE.astype(object), ABC, ABC), "object"),
        ([[0, None], [1, 0]], "object"),
        ([["0", "1"], ["1", "0"]], "<U1"),
        ([[0, 1], [1]], "is not an array"),
        (SQUARE + 0j, "complex"),
        ({"a": 1.0}, "object"),
        (None, "object"),
        ("0.5", "<U3"),
        ([10**400], "too large"),
    ]
    assert_refused_at([(lambda value=value: named(value, "cost", ABC, ABC), "cost", says) for value, says in wrong])


def test_names_are_kept_until_the_labels_are_known():
    order = [2, 0, 1]
    for columns in itertools.permutations(range(3)):
        frame = Frame(SQUARE[np.ix_(order, columns)], [ABC[each] for each in order], [ABC[each] for each in columns])
        kept = opened(frame, "distance").settled("distance")
        assert (kept.values == shuffled(SQUARE, order)).all()
        assert kept.rows == kept.columns == ("c", "a", "b")
    positions = opened(Frame(shuffled(SQUARE, order), order, order), "distance").settled("distance")
    assert (positions.values == SQUARE).all()
    assert positions.rows == positions.columns == (0, 1, 2)
    assert opened(Frame(SQUARE[0], "abc"), "prior").settled("prior").rows == ABC
    wrong = {
        "rows alone": Frame(SQUARE, ABC),
        "columns alone": Frame(SQUARE, columns=ABC),
        "other columns": Frame(SQUARE, ABC, "abd"),
        "a name twice": Frame(SQUARE, "aab", "aab"),
        "numbers": Frame(SQUARE, [0.5, 1.5, 2.5], [0.5, 1.5, 2.5]),
        "identifiers": Frame(SQUARE, [7, 8, 9], [7, 8, 9]),
        "lists": Named(SQUARE, [[1], [2], [3]], [[1], [2], [3]]),
    }
    assert_refused_at(
        [(lambda each=each: opened(each, "distance").settled("distance"), "distance") for each in wrong.values()]
    )


def test_names_have_the_length_of_their_axis():
    assert_refused_at(
        [
            (lambda: Named([1.0, 2.0], "ab"), "rows", "not a list"),
            (lambda: Named([1.0, 2.0], 5), "rows", "not a list"),
            (lambda: Named([1.0, 2.0], {"a", "b"}), "rows", "not a list"),
            (lambda: named(Named([1.0, 2.0], ["a", "a"]), "prior", ["a", "a"]), "prior", "more than once"),
            (lambda: Named([1.0, 2.0], ["a"]), "rows", "another length"),
            (lambda: Named([1.0, 2.0], (), ["a"]), "columns", "another length"),
            (lambda: Named(SQUARE, ABC, "ab"), "columns", "not a list"),
            (lambda: Named(np.ma.array([1.0]), ["a"]), "values", "masked"),
        ]
    )


def test_frames_of_pandas_polars_and_xarray():
    order = [2, 0, 1]
    names = [ABC[each] for each in order]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(shuffled(SQUARE, order), names, names)
    assert (named(frame, "cost", ABC, ABC) == SQUARE).all()
    assert (named(frame.iloc[:, 0], "prior", ABC) == SQUARE[2]).all()
    assert (named(frame.astype("category"), "cost", ABC, ABC) == SQUARE).all()
    with pytest.raises(InputError, match="no labels"):
        named(frame, "cost", (), ())
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="its rows have none"):
        named(polars.DataFrame(frame.to_numpy(), names), "cost", ABC, ABC)
    xarray = pytest.importorskip("xarray")
    found = xarray.DataArray(frame, dims=("here", "there"))
    assert (named(found, "cost", ABC, ABC) == SQUARE).all()
