"""Arguments of another kind or another shape than was meant."""

import pytest

import mechdesign as md
from mechdesign.errors import InputError, SpecificationError

AGES = md.tables.Domain({"age": range(17, 91)})
FULL = md.tables.Policy.full(AGES)
PLACES = md.tables.Domain({"x": range(4), "y": range(4)})


class Counted:
    """A series like the result of pandas' `value_counts()`: its index has the name of the column."""

    def __init__(self, name):
        self.name, self.index = name, type("Index", (), {"name": "age"})()

    def __array__(self, dtype=None, copy=None):
        import numpy as np

        return np.array([20, 18, 17])


def test_counts_by_value_are_not_records():
    with pytest.raises(InputError, match=r"contains a count for each value of 'age', as value_counts\(\) returns"):
        md.tables.release_histogram(Counted("count"), FULL, 1)
    assert md.tables.release_histogram(Counted("age"), FULL, 1, rng=1).answers.shape == (74,)


@pytest.mark.parametrize("column", [{39: 10}, "39", 39])
def test_a_column_is_a_list_of_values(column):
    with pytest.raises(InputError, match=r"data\['age'\]: is not a column"):
        md.tables.release_histogram({"age": column}, FULL, 1)


def test_a_class_is_no_ledger():
    with pytest.raises(InputError, match="ledger: is not a ledger"):
        md.tables.release_histogram([39], FULL, 1, ledger=md.Ledger)


@pytest.mark.parametrize("width", [1, 3])
def test_points_are_assigned_with_the_attributes_of_the_clusters(width):
    found = md.tables.kmeans([(0, 0), (3, 3)], 2, md.tables.Policy.full(PLACES), epsilon=1, iterations=1, rng=1)
    assert found.assign([[0.0, 0.0]]).shape == (1,)
    with pytest.raises(InputError, match="points: has the wrong number of columns"):
        found.assign([[0.0] * width])


def test_a_prior_of_a_count_has_a_probability_for_each():
    with pytest.raises(InputError, match="prior: has the wrong length; found 4; must be one for each of 5 values"):
        md.tables.optimal_count(4, 1, prior=[0.25] * 4)


def test_queries_and_known_counts_say_how_they_are_written():
    with pytest.raises(InputError, match=r"queries: are a text.*strategy\(\)"):
        md.tables.release_linear([39], FULL, "ranges", epsilon=1)
    with pytest.raises(InputError, match=r"write constraints=\[\(array, count\)\]|Write constraints="):
        md.tables.Policy.full(AGES, constraints=([1] * 74, 5))


def test_files_that_are_none_are_named(tmp_path):
    wrong = tmp_path / "ages.csv"
    wrong.write_text("age,name\n3,x\n")
    with pytest.raises(SpecificationError, match=r"ages.csv: is not valid TOML.*key = value"):
        md.specification.read(wrong)
    with pytest.raises(InputError, match="a folder in which a release was saved"):
        md.tables.load(tmp_path)
