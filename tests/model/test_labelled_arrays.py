"""Series and data frames have labels: numbers in another order than the secrets are refused, not taken by position."""

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError


class Labelled:
    """What a pandas series or data frame is to this package; pandas itself need not be installed."""

    def __init__(self, values, index, columns=None):
        self.values, self.index = np.array(values, dtype=float), index
        if columns is not None:
            self.columns = columns

    @property
    def T(self):  # noqa: N802 - the name of pandas
        return Labelled(self.values.T, self.columns, self.index)

    def to_numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


ABC = md.Domain.from_labels(["a", "b", "c"])
APART = md.distances.hamming(3)
ASKED = [md.MetricPrivacy(1, APART)]


def test_a_prior_in_the_order_of_the_labels_is_taken_and_no_other():
    given = md.Problem(Labelled([0.2, 0.3, 0.5], ["a", "b", "c"]), APART, ASKED, secrets=ABC)
    assert given.prior.tolist() == [0.2, 0.3, 0.5]
    with pytest.raises(InputError, match=r"prior: has labels in another order: label 0 is 'c'.*'a' there"):
        md.Problem(Labelled([0.5, 0.2, 0.3], ["c", "a", "b"]), APART, ASKED, secrets=ABC)


def test_a_prior_with_positions_in_another_order_is_refused():
    with pytest.raises(InputError, match="labels in another order"):
        md.Prior(Labelled([0.5, 0.3, 0.2], [2, 0, 1]))
    assert md.Prior(Labelled([0.5, 0.3, 0.2], [0, 1, 2])).probabilities.tolist() == [0.5, 0.3, 0.2]


@each_row(
    ("index", "columns"),
    [(["c", "b", "a"], ["c", "b", "a"]), (["a", "b", "c"], ["a", "c", "b"]), (["b", "a", "c"], [0, 1, 2])],
)
def test_costs_in_another_order_are_refused(index, columns):
    with pytest.raises(InputError, match=r"cost: has .* in another order"):
        md.Problem([0.2, 0.3, 0.5], Labelled(APART, index, columns), ASKED, secrets=ABC, observables=ABC)


def test_costs_in_the_order_of_the_labels_are_taken():
    for labels in (["a", "b", "c"], [0, 1, 2]):
        cost = Labelled(APART, labels, labels)
        assert (md.Problem([0.2, 0.3, 0.5], cost, ASKED, secrets=ABC, observables=ABC).cost == APART).all()


@each_row("index", [[2, 0, 1], [0, 2, 3], ["bar", "home", "work"]])
def test_counts_in_the_order_of_frequency_are_refused(index):
    with pytest.raises(InputError, match="counts: has labels in another order"):
        md.Prior.from_counts(Labelled([9, 4, 1], index))
    assert md.Prior.from_counts(Labelled([9, 4, 2], [0, 1, 2])).probabilities.tolist() == [0.6, 4 / 15, 2 / 15]


def test_a_chain_counted_with_columns_in_another_order_than_its_rows_is_refused():
    with pytest.raises(InputError, match="columns in another order than its rows: column 0 is 'b'"):
        md.MarkovChain.from_counts(Labelled([[1, 2], [3, 4]], ["a", "b"], ["b", "a"]))
    assert md.MarkovChain.from_counts(Labelled([[1, 1], [1, 3]], ["a", "b"], ["a", "b"])).matrix[1, 1] == 0.75
