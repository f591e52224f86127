"""Records, points, ranges and quantiles are values; positions in the domain are named as such."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from releases import release_by, release_counts, strategy_of

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.specification._table_specification import parse
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy

B = md.tables
AGES = Domain({"age": range(17, 91)})
LINE = Policy.threshold(AGES, 1)
HEIGHTS = Domain({"height": [0.5, 1.0, 1.5, 2.25]})
# So large that the noise is 0.
SURE = 1000
THREE = [30, 31, 60]


class Series:
    """A minimal series: its index does not start at 0, so it must be read as an array."""

    def __init__(self, values):
        self.index, self._values = [f"row {number}" for number in range(len(values))], np.asarray(values)

    def __len__(self):
        return len(self._values)

    def __getitem__(self, name):
        return self._values[self.index.index(name)]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype=dtype)


FORMS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "small integers": lambda values: np.array(values, dtype=np.int8),
    "unsigned": lambda values: np.array(values, dtype=np.uint64),
    "floats": lambda values: np.array(values, dtype=np.float64),
    "list of floats": lambda values: [float(value) for value in values],
    "mixed": lambda values: [values[0], float(values[1]), *map(np.int64, values[2:])],
    "fractions": lambda values: [Fraction(value) for value in values],
    "decimals": lambda values: [Decimal(value) for value in values],
    "objects": lambda values: np.array(values, dtype=object),
    "series": Series,
    "series of floats": lambda values: Series([float(value) for value in values]),
    "column": lambda values: np.array(values)[:, None],
    "tuples": lambda values: [(value,) for value in values],
    "lists": lambda values: [[value] for value in values],
    "rows": lambda values: [np.array([value]) for value in values],
    "named": lambda values: {"age": values},
}


def test_every_form_of_a_table_of_one_attribute_holds_values():
    for domain in (AGES, Domain({"age": [float(age) for age in range(17, 91)]})):
        for name, form in FORMS.items():
            assert domain.indices(form(THREE)).tolist() == [13, 14, 43], name
            assert domain.counts(form(THREE)).sum() == 3, name


def test_an_array_of_arrow_holds_values():
    values = pytest.importorskip("pyarrow").array(THREE)
    assert AGES.indices(values).tolist() == [13, 14, 43]


def test_a_sum_is_that_of_the_values():
    assert B.Sum().release(THREE, LINE, epsilon=SURE, rng=1).answers.tolist() == [121]
    assert B.Sum().release(Series([30.0, 31.0, 60.0]), LINE, epsilon=SURE, rng=1).answers.tolist() == [121]
    assert B.Sum().release([1.5, 0.5], Policy.threshold(HEIGHTS, 1), epsilon=SURE, rng=1).answers.tolist() == [2]


def test_every_release_counts_values():
    release = B.Histogram().release([17, 17, 18, 31, 60], LINE, epsilon=SURE, rng=1)
    assert release.labels["age"][release.answers > 0].tolist() == [17, 18, 31, 60]
    found = release_by(strategy_of("identity", LINE, "laplace"), THREE, epsilon=10**6, rng=1)
    assert found.labels["first"][found.answers > 0.5].tolist() == THREE
    weights = [np.array([value < 31 for value in range(17, 91)], dtype=int)]
    assert B.Linear(weights).release(THREE, LINE, epsilon=SURE, rng=1).answers.tolist() == [1]
    clustered = B.KMeans(2, iterations=3, initial=[[30], [60]]).release(THREE * 50, LINE, epsilon=SURE, rng=1)
    np.testing.assert_allclose(clustered.centroids, [[30.5], [60]], atol=0.05)


def test_positions_are_taken_where_they_are_called_so():
    asked = {
        "histogram": lambda data, **given: B.Histogram().release(data, LINE, epsilon=SURE, rng=1, **given),
        "sum": lambda data, **given: B.Sum().release(data, LINE, epsilon=SURE, rng=1, **given),
        "linear": lambda data, **given: B.Linear(np.arange(74)).release(data, LINE, epsilon=SURE, rng=1, **given),
        "cumulative": lambda data, **given: B.Cumulative(mechanism="ordered").release(
            data, LINE, epsilon=SURE, rng=1, **given
        ),
        "k-means": lambda data, **given: B.KMeans(2, iterations=2).release(data, LINE, epsilon=SURE, rng=1, **given),
        "strategy": lambda data, **given: release_by(prepared, data, rho=SURE, rng=1, **given),
    }
    prepared = strategy_of([(30, 40)], LINE, kind="identity")
    for kind, release in asked.items():
        by_value, by_position = release(THREE), release(None, positions=[13, 14, 43])
        assert by_value.answers.tolist() == by_position.answers.tolist(), kind
        assert {name: column.tolist() for name, column in by_value.labels.items()} == {
            name: column.tolist() for name, column in by_position.labels.items()
        }
        # 13 is a position, and no age.
        for wrong in ([13], [91], [30.5], 30, {30}, None):
            with pytest.raises(InputError, match=r"data|points"):
                release(wrong)
        for wrong in ([74], [-1], [13.0], 13):
            with pytest.raises(InputError, match="position"):
                release(None, positions=wrong)
        with pytest.raises(InputError, match="positions: are given together with data"):
            release(THREE, positions=[13])


def test_texts_are_values_too():
    domain = Domain({"sex": ["f", "m", "1"]})
    for table in (["m", "1"], np.array(["m", "1"]), Series(["m", "1"])):
        assert domain.indices(table).tolist() == [1, 2]
    for wrong in ([1], [0, 1], ["x"], [True]):
        with pytest.raises(InputError, match="outside the domain"):
            domain.indices(wrong)


def test_a_table_without_names_of_its_columns_is_refused():
    class Frame:
        columns = (0, 1)

        def __getitem__(self, name):
            return [30]

    with pytest.raises(InputError, match="no column for the attribute 'age'"):
        AGES.indices(Frame())


def test_whole_floats_of_a_wide_domain_are_looked_up_without_writing_it_out():
    wide = Domain({"x": range(-(10**12), 10**12, 2)})
    assert wide.indices([0.0, 10**12 - 2, -(10.0**12)]).tolist() == [10**12 // 2, 10**12 - 1, 0]
    for wrong in ([1.0], [0.5], [float("nan")], [float("inf")], [1e300], [10**30], ["0"]):
        with pytest.raises(InputError, match="row 0: is outside the domain"):
            wide.indices(wrong)
    large = Domain({"x": range(2**60 - 3, 2**60 + 1)})
    assert large.indices([2**60 - 3, 2.0**60]).tolist() == [0, 3]


# --- reading from a release -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ages():
    return B.Cumulative(mechanism="ordered").release(THREE, LINE, epsilon=SURE, rng=1)


def test_ranges_and_quantiles_are_values(ages):
    assert [float(B.range_query(ages, *ends)) for ends in ((17, 90), (30, 30), (31, 60), (61, 90))] == [3, 1, 2, 0]
    assert B.range_query(ages, np.int64(30), 31.0) == B.range_query(ages, positions=(13, 14))
    found = [B.quantile(ages, share) for share in ("1/3", 0.5, 1)]
    assert [(each.value, each.interval()) for each in found] == [(30, (30, 30)), (31, (31, 31)), (60, (60, 60))]
    assert int(found[1]) == float(found[1]) == 31


def test_values_of_any_step_are_read_also_from_a_file(tmp_path):
    made = B.Cumulative(mechanism="ordered").release([1.5, 1, 2.25], Policy.threshold(HEIGHTS, 1), epsilon=SURE, rng=1)
    md.save(made, tmp_path, report=False)
    for release in (made, B.load(tmp_path)):
        assert [B.quantile(release, share).value for share in ("1/3", "2/3", 1)] == [1, 1.5, 2.25]
        assert float(B.range_query(release, 1, Fraction(3, 2))) == 2
        for wrong in (0, 3, 1.25):
            with pytest.raises(InputError, match="low: is not a value of the domain"):
                B.range_query(release, wrong, 2.25)


def test_a_release_from_counts_has_the_values_from_0_on():
    release = release_counts([5, 0, 0, 7, 1], theta=1, epsilon=SURE, rng=1)
    assert float(B.range_query(release, 1, 3)) == float(B.range_query(release, positions=(1, 3))) == 7
    assert B.quantile(release, 0.5).value == 3


# --- planning ---------------------------------------------------------------------------------------------------------


def test_ranges_of_a_workload_are_values():
    by_value, by_position = strategy_of([(30, 40)], LINE), strategy_of(None, LINE, positions=[(13, 23)])
    assert by_value.workload.matrix().tolist() == by_position.workload.matrix().tolist()
    for found in (by_value, by_position):
        assert {name: column.tolist() for name, column in found.workload.labels().items()} == {
            "first": [30],
            "last": [40],
        }
    assert float(release_by(by_value, THREE, rho=10**9, rng=1).answers[0]) == pytest.approx(2, abs=0.01)
    plans = [asked.plan(LINE, epsilon=1) for asked in (B.Ranges([(30, 40)]), B.Ranges(positions=[[13, 23]]))]
    assert plans[0] == plans[1]


def test_workloads_of_several_attributes_name_values():
    small = Domain({"age": range(17, 19), "sex": ["f", "m"]})
    found = strategy_of([((17, "m"), (18, "f"))], Policy.full(small)).workload
    assert (found.low.tolist(), found.high.tolist()) == ([1], [2])
    assert [column.tolist() for column in found.labels().values()] == [["17, m"], ["18, f"]]
    with pytest.raises(InputError, match=r"a value for each of age, sex.*positions="):
        strategy_of([(1, 2)], Policy.full(small))


# --- specifications ---------------------------------------------------------------------------------------------------


def test_a_specification_takes_a_list_of_values():
    text = (
        "table.person = false\ndomain.attributes.age = { range = [17, 90] }\n"
        'policy = { kind = "threshold", theta = 1 }\n'
    )
    asked = parse(text + 'release = { kind = "quantiles", epsilon = 1000, probabilities = [0.5] }')
    (found,) = asked.release({"age": THREE}, rng=1).quantiles
    assert (found.value, found.low, found.high) == ("31", "31", "31")
    workload = parse(text + 'release = { kind = "ranges", rho = 1000, ranges = [[30, 40]] }')
    released = workload.release({"age": THREE}, rng=1).release
    assert {name: column.tolist() for name, column in released.labels.items()} == {"first": [30], "last": [40]}
    for given in (asked, workload):
        with pytest.raises(InputError, match="outside the domain"):
            given.release({"age": [13]}, rng=1)
