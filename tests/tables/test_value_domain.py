from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.tables._domain import Domain

BOX = Domain({"x": range(0, 10, 2), "y": [0.5, 1.0, 4.0]})
PEOPLE = Domain({"age": range(20, 60, 10), "sex": ["f", "m"], "rate": [0.1, 0.2, 0.5]})


class Frame:
    """The least of a data frame."""

    def __init__(self, columns: dict[str, object]) -> None:
        self.columns = list(columns)
        self._data = columns

    def __getitem__(self, name: str) -> object:
        return self._data[name]


def test_values_are_numbered_as_by_itertools_product() -> None:
    everything = list(itertools.product(range(20, 60, 10), ["f", "m"], [0.1, 0.2, 0.5]))
    assert PEOPLE.size == len(PEOPLE) == len(everything) == 24
    assert PEOPLE.shape == (4, 2, 3)
    assert PEOPLE.names == ("age", "sex", "rate")
    assert [PEOPLE.value(index) for index in range(24)] == everything
    assert PEOPLE.indices(everything).tolist() == list(range(24))


def test_every_kind_of_table_gives_the_same_numbers() -> None:
    rows = [(50, "m", 0.2), (20, "f", 0.5), (30, "m", 0.1)]
    ages, sexes, rates = (list(column) for column in zip(*rows, strict=True))
    structured = np.array(rows, dtype=[("age", "i2"), ("sex", "U1"), ("rate", "f8")])
    tables = [
        rows,
        {"age": ages, "sex": sexes, "rate": rates, "other": [1]},
        Frame({"rate": np.array(rates), "age": np.array(ages), "sex": np.array(sexes, dtype=object)}),
        structured,
        structured.view(np.recarray),
    ]
    numbers = [3 * 6 + 1 * 3 + 1, 0 * 6 + 0 + 2, 1 * 6 + 3 + 0]
    for table in tables:
        assert PEOPLE.indices(table).tolist() == numbers
        assert PEOPLE.counts(table).sum() == 3


def test_arrow_and_pandas_tables() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"age": [20, 50], "sex": ["m", "f"], "rate": [0.5, 0.1]})
    assert PEOPLE.indices(table).tolist() == [5, 18]


def test_equality_is_of_the_values() -> None:
    assert Domain({"x": range(3)}) == Domain({"x": range(3)})
    assert Domain({"x": range(3)}) != Domain({"x": range(4)})
    assert Domain({"x": [1, 2]}) == Domain({"x": np.array([1, 2])})


def test_numbers_lie_on_an_exact_lattice() -> None:
    rate = PEOPLE.attribute("rate")
    assert [int(position) * rate.unit for position in rate.positions] == [
        Fraction(1, 10),
        Fraction(1, 5),
        Fraction(1, 2),
    ]
    assert rate.numeric
    assert rate.ascending
    assert not PEOPLE.attribute("sex").numeric
    assert not Domain({"x": range(3, 0, -1)}).attribute("x").ascending
    assert not Domain({"x": [2, 1]}).attribute("x").ascending


def test_a_large_domain_and_a_large_table() -> None:
    domain = Domain({"x": range(10**6)})
    values = np.arange(10**6)[::-1]
    assert domain.counts({"x": values}).tolist() == [1] * 10**6
    assert domain.value(999_999) == (999_999,)


def test_rows_of_an_array_are_records() -> None:
    records = np.array([[0, 0.5], [8, 4.0], [2, 1.0]])
    assert BOX.indices(records).tolist() == BOX.nearest(records).tolist() == [0, 14, 4]
    assert Domain({"x": [3.5]}).nearest(np.array([[3.5]])).tolist() == [0]


@given(
    st.lists(
        st.tuples(st.floats(-1, 9, allow_nan=False), st.floats(0.25, 5.5, allow_nan=False)), min_size=1, max_size=20
    )
)
def test_the_nearest_value_is_nearest(points: list[tuple[float, float]]) -> None:
    for index, (x, y) in zip(BOX.nearest(np.array(points)).tolist(), points, strict=True):
        a, b = BOX.value(index)
        assert abs(x - a) == min(abs(x - value) for value in range(0, 10, 2))
        assert abs(y - b) == min(abs(y - value) for value in (0.5, 1.0, 4.0))


def test_values_in_any_order_are_nearest_by_their_size() -> None:
    asked = np.array([10.0, 29.0, 19.0, 14.9, 15.1, 34.9])
    for values in ([30, 10, 20], [10, 20, 30], [20, 30, 10]):
        nearest = [int(np.abs(np.array(values) - each).argmin()) for each in asked]
        assert Domain({"x": values}).attributes[0].nearest_codes(asked).tolist() == nearest, values
