"""Each step of the rounding separately, against plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import SolverError
from mechdesign.synthesis import _rounding as rounding
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._rounding import (
    _apportion,
    _clean,
    _clean_permitted,
    _compute_common,
    _compute_shortage,
    _compute_weights,
    _meet_floors,
    _mix,
    _mix_nearly_private,
    _Mixing,
    _raise_along_bounds,
    _raise_along_paths,
    compute_cost,
    compute_repaired_cost,
    find_cheapest_constant,
    has_tight_floor,
    round_channel,
)

ONE = 2**62
UNIT = 2.0**-62


@each_row("seed", range(20))
def test_units_go_to_the_largest_remainders(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.random((4, 7)) ** random.integers(1, 30) * (random.random((4, 7)) < 0.8)
    rows[:, 2] += 1e-3
    for row, found in zip(rows.tolist(), _apportion(rows).tolist(), strict=True):
        shares = [math.floor(value / max(row) * 2.0**62) for value in row]
        whole = [share * ONE // sum(shares) for share in shares]
        rest = [Fraction(share * ONE, sum(shares)) - each for share, each in zip(shares, whole, strict=True)]
        given = [one - each for one, each in zip(found, whole, strict=True)]
        assert sum(found) == ONE
        assert set(given) <= {0, 1}
        least = min((each for each, unit in zip(rest, given, strict=True) if unit), default=Fraction(1))
        most = max((each for each, unit in zip(rest, given, strict=True) if not unit), default=Fraction(0))
        assert least >= most - Fraction(1, 2**50)


def test_equal_remainders_are_rounded_up_from_the_left() -> None:
    assert _apportion(np.array([[1.0, 1.0, 1.0]])).tolist() == [[ONE // 3 + 1, ONE // 3, ONE // 3]]
    assert _apportion(np.array([[0.0, 5.0, 0.0]])).tolist() == [[0, ONE, 0]]


def test_mixing() -> None:
    rows, common = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.25, 0.75], [0.0, 1.0]])
    assert _mix(rows, common, np.array([0.5, 0.25])).tolist() == [[0.625, 0.375], [0.375, 0.625]]


def test_the_common_distribution_of_each_connected_set() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.25, 0.0, 0.75], [0.0, 0.0, 1.0]])
    found = _compute_common(rows, np.array([4, 4, 9]))
    assert found[0].tolist() == found[1].tolist() == [0.5 / 1.75, 0.5 / 1.75, 0.75 / 1.75]
    assert found[2].tolist() == [0.0, 0.0, 1.0]


def test_negligible_columns_are_emptied_within_a_connected_set() -> None:
    matrix = np.array([[2.0, 1e-7, 0.25], [1.0, 0.0, -1.0], [0.25, 1e-7, 1e-7], [0.0, 0.0, 0.0]])
    labels = np.array([0, 0, 1, 2])
    found = _clean(matrix, 1e-7, labels)
    assert found.tolist() == [[0.8, 0.0, 0.2], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    kept = _clean(matrix, 0.9e-7, labels)
    assert kept[0, 1] == pytest.approx(1e-7 / 1.25, rel=1e-6)
    assert kept[2].tolist() == pytest.approx([1, 4e-7, 4e-7], rel=1e-6)
    # A row with only negligible entries gets the columns of the other rows in its set.
    emptied = _clean(np.array([[0.5, 0.0, 0.5], [0.0, 1e-9, 0.0]]), 1e-8, np.array([0, 0]))
    assert emptied[1].tolist() == [0.5, 0.0, 0.5]


def test_forbidden_or_negligible_entries_are_emptied() -> None:
    matrix = np.array([[2.0, 0.5, 0.25, 1e-7], [-1.0, 1e-7, 0.5, 0.5], [0.0, 1.0, 0.0, 0.0]])
    forbidden = np.array([[False, False, True, False], [False, False, False, True], [False, True, False, False]])
    interior = np.array([[0.25] * 4, [0.25] * 4, [0.5, 0.0, 0.25, 0.25]])
    found = _clean_permitted(matrix, 1e-7, forbidden, interior)
    # Entries above 1 count as 1, and an empty row is replaced by the interior channel's row.
    assert found.tolist() == [[2 / 3, 1 / 3, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.5, 0.0, 0.25, 0.25]]
    kept = _clean_permitted(matrix, 0.0, forbidden, interior)
    assert kept[0].tolist() == pytest.approx([1 / 1.5, 0.5 / 1.5, 0, 1e-7 / 1.5], rel=1e-6)


def test_entries_are_raised_as_bounds_require() -> None:
    rows = np.array([[0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])
    paths = np.array([[0.0, 1.0, math.inf], [2.0, 0.0, math.inf], [math.inf, math.inf, 0.0]])
    raised = np.array([[0.9, max(0.1, 0.9 * math.exp(-2))], [max(0.1, 0.9 * math.exp(-1)), 0.9], [0.0, 1.0]])
    np.testing.assert_allclose(_raise_along_paths(rows, paths), raised / raised.sum(axis=1, keepdims=True), rtol=1e-15)
    assert rows.tolist() == [[0.9, 0.1], [0.1, 0.9], [0.0, 1.0]]


@each_row("seed", range(6))
def test_raising_bound_by_bound_equals_raising_along_paths(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.random((12, 5)) ** random.integers(1, 12)
    exponents = np.where(random.random((12, 12)) < 0.15, 0.05 + random.random((12, 12)), math.inf)
    np.fill_diagonal(exponents, math.inf)
    graph = nx.DiGraph([(s, t, {"weight": exponents[s, t]}) for s, t in np.argwhere(np.isfinite(exponents)).tolist()])
    graph.add_nodes_from(range(12))
    paths = np.asarray(nx.floyd_warshall_numpy(graph, nodelist=range(12)))
    found, before = _raise_along_bounds(rows, exponents), rows.copy()
    assert np.allclose(found, _raise_along_paths(rows, paths), rtol=1e-13)
    assert (rows == before).all()
    # The bounds change the rows.
    assert not np.allclose(found, rows / rows.sum(axis=1, keepdims=True), rtol=1e-3)


def test_rows_are_apportioned_alike_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).random((9, 5))
    whole = _apportion(rows)
    monkeypatch.setattr(rounding, "_ENTRIES_PER_BATCH", 11)
    assert np.array_equal(_apportion(rows), whole)


def test_the_weight_for_a_relative_error_covers_violation_and_rounding() -> None:
    """By the definition in the theory: Σ M · ((error + mixing) / (g − 1) + unit · (1 + 2 / (g − 1)) / min M)."""
    matrix, mixing = np.array([[1.5, 0.25, 0.0], [0.5, 0.5, -1.0]]), 8 * 2.0**-53
    largest = [0.8, 0.5, 0.0]
    for exponent, error in ((math.log(2), 0.0), (math.log(2), 1e-6), (0.25, 1e-9), (3.0, 0.125), (100.0, 1e-3)):
        form = form_of(groups=2, exponents=np.array([[math.inf, exponent], [2 * exponent, math.inf]]))
        found = _mix_nearly_private(form, matrix, error)
        excess = math.expm1(min(exponent, 62 * math.log(2)))
        weight = 1.3 * ((error + mixing) / excess + UNIT * (1 + 2 / excess) / 0.5)
        assert found.weights.tolist() == pytest.approx([min(1.0, weight)] * 2, rel=1e-12, abs=0)
        assert found.common.tolist() == [[each / 1.3 for each in largest]] * 2
        assert found.rows.tolist() == [[0.8, 0.2, 0.0], [0.5, 0.5, 0.0]]
    tiny = form_of(groups=2, exponents=np.full((2, 2), 1e-300))
    assert _mix_nearly_private(tiny, matrix, 1e-9).weights.tolist() == [1.0, 1.0]
    # A single group has no bounds; only rounding counts.
    alone = _mix_nearly_private(form_of(groups=1, exponents=np.full((1, 1), math.inf)), matrix[:1], 1e-3)
    assert alone.weights.tolist() == pytest.approx([UNIT / 0.2], rel=1e-12, abs=0)


def test_the_cost_of_a_repair_is_infinite_if_it_misses_a_floor() -> None:
    form = line(3, Fraction(1, 2))
    apart, alike = np.eye(3), np.full((3, 3), 1 / 3)
    assert compute_repaired_cost(form, alike) == pytest.approx(float(form.problem.cost.mean()), rel=1e-12)
    near = compute_repaired_cost(line(3), apart)
    rows = _raise_along_paths(apart, form.implied)
    common = _compute_common(rows, form.components)
    weights = _compute_weights(form.exponents, rows, common, form.components)
    assert near == pytest.approx(compute_cost(form, _mix(rows, common, weights)), rel=1e-12)
    # At ε = 1, the raised identity has an error below 1/2; a second floor that is met does not change this.
    (missed,) = form.floors
    assert compute_repaired_cost(form, apart) == math.inf
    met = replace(missed, claim=replace(missed.claim, minimum=Fraction(0)))
    for floors in ((missed, met), (met, missed)):
        assert compute_repaired_cost(replace(form, floors=floors), apart) == math.inf
    assert compute_repaired_cost(replace(form, floors=(met, met)), apart) == near
    # An answer counts with its least error over all estimates: here the second one, with 1 in all.
    error = np.array([[0.5, 0.5, 0.5], [0.5, 0.25, 0.25]])
    for minimum, cost in ((Fraction(7, 8), 8 / 9), (Fraction(17, 16), math.inf)):
        floors = (replace(missed, error=error, claim=replace(missed.claim, minimum=minimum)),)
        assert compute_repaired_cost(replace(form, floors=floors), alike) == pytest.approx(cost)


def least_weight(p: float, q: float, u: float, exponent: float) -> float:
    g = math.exp(exponent)
    violation = p * (1 + 8 * 2.0**-53) - g * q * (1 - 8 * 2.0**-53) + (1 + g) * UNIT
    return violation / (violation + u * math.expm1(exponent)) if violation > 0 and u > 0 else 0.0


@each_row("seed", range(10))
def test_the_weight_covers_violation_and_rounding(seed: int) -> None:
    random = np.random.default_rng(seed)
    k, m = 4, 3
    rows, common = random.random((k, m)), random.random((k, m))
    # The bounds are tight to the last digits, so the allowance for rounding matters.
    exponents = np.log(np.max(rows[:, None] / rows[None], axis=2)) if seed % 2 else random.random((k, k))
    exponents[exponents <= 0] = math.inf
    np.fill_diagonal(exponents, math.inf)
    exponents[3] = exponents[:, 3] = math.inf
    labels = np.array([0, 0, 0, 1])
    common[:3] = common[0]
    common[:3, 1] = 0
    found = _compute_weights(exponents, rows, common, labels)
    expected = max(
        least_weight(rows[s, o], rows[t, o], common[s, o], exponents[s, t])
        for s in range(3)
        for t in range(3)
        if math.isfinite(exponents[s, t])
        for o in range(m)
    )
    assert found[:3].tolist() == [found[0]] * 3
    assert found[3] == 0
    assert found[0] == pytest.approx(expected, rel=1e-2 if seed % 2 else 1e-9)


def test_tight_rows_cost_a_few_roundings_and_equal_rows_nothing() -> None:
    g = math.exp(0.5)
    rows = np.array([[g / (1 + g), 1 / (1 + g)], [1 / (1 + g), g / (1 + g)]])
    exponents = np.array([[math.inf, 0.5], [0.5, math.inf]])
    common = np.full((2, 2), 0.5)
    found = _compute_weights(exponents, rows, common, np.zeros(2, dtype=int))
    noise = 16 * 2.0**-53 * g / (1 + g)
    assert found[0] == found[1] == pytest.approx(noise / (0.5 * (g - 1)), rel=0.2)
    assert _compute_weights(exponents, rows[[0, 0]], common, np.zeros(2, dtype=int)).tolist() == [0.0, 0.0]
    # One unit of rounding matters for entries of that size.
    tiny = np.array([[1.0, 0.0], [1.0, UNIT]])
    expected = (UNIT - 0 + (1 + g) * UNIT) / (UNIT + (1 + g) * UNIT + 0.5 * (g - 1))
    found = _compute_weights(np.array([[math.inf, math.inf], [0.5, math.inf]]), tiny, common, np.zeros(2, dtype=int))
    assert found[0] == pytest.approx(expected, rel=1e-6, abs=0)


def form_of(objective: str = "expected", **fields: Any) -> Any:
    problem = SimpleNamespace(
        cost=np.array([[0.0, 4.0, 2.0], [8.0, 0.0, 3.0]]), prior=np.array([0.75, 0.25]), objective=objective
    )
    known = {"finite_cost": problem.cost, "group": np.array([0, 1]), "floors": ()}
    return SimpleNamespace(problem=problem, observables=3, **known, **fields)


def test_costs_and_the_cheapest_constant() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    assert compute_cost(form_of(), rows) == 0.75 * 2 + 0.25 * 3.5
    assert compute_cost(form_of("worst"), rows) == 3.5
    assert find_cheapest_constant(form_of()).tolist() == [1.0, 0.0, 0.0]
    assert find_cheapest_constant(form_of("worst")).tolist() == [0.0, 0.0, 1.0]


def floor(minimum: Fraction, error: list[list[float]]) -> Any:
    return SimpleNamespace(
        claim=SimpleNamespace(minimum=minimum), minimum=float(minimum), error=np.array(error, dtype=np.float64)
    )


def with_floors(*floors: Any) -> Any:
    form = form_of()
    form.floors = floors
    return form


HALF = floor(Fraction(1, 2), [[0.5, 0.5], [1.0, 1.0]])


def test_the_shortage_of_floors() -> None:
    form = with_floors(HALF)
    assert _compute_shortage(form, (Fraction(1, 2),), 0.25) == 0.0
    assert _compute_shortage(form, (Fraction(3, 4),), 0.25) == 0.0
    # A constant answer reaches 1, the least sum of errors. The floor is a third of the way from 1/4 to 1.
    assert _compute_shortage(form, (Fraction(1, 4),), 0.0) == pytest.approx(1 / 3, rel=1e-15)
    assert _compute_shortage(form, (Fraction(1, 4),), 0.25) == pytest.approx(0.25 + 0.75 / 3, rel=1e-15)
    assert _compute_shortage(form, (Fraction(1, 2) - Fraction(1, 2**80),), 0.0) == 2.0**-50
    # If a constant answer does not suffice, the weight is 1.
    beyond = with_floors(floor(Fraction(2), [[0.5, 0.5]]))
    for value in (Fraction(1, 2), Fraction(1), Fraction(3, 2)):
        assert _compute_shortage(beyond, (value,), 0.5) == 1.0
    both = with_floors(HALF, floor(Fraction(1, 4), [[0.5, 0.5]]))
    assert _compute_shortage(both, (Fraction(1, 4), Fraction(1, 8)), 0.0) == pytest.approx(1 / 3, rel=1e-15)
    assert _compute_shortage(both, (Fraction(1, 2), Fraction(1, 8)), 0.0) == pytest.approx(1 / 7, rel=1e-15)


def test_floors_close_to_the_largest_are_tight() -> None:
    for minimum, close in ((1 - 1e-5, True), (1 - 0.9e-5, True), (1 - 1.1e-5, False), (1.0, True), (0.5, False)):
        assert has_tight_floor(with_floors(floor(Fraction(minimum), [[0.5, 0.5], [1.0, 1.0]]))) is close
    assert not has_tight_floor(with_floors())
    assert has_tight_floor(with_floors(HALF, floor(Fraction(1), [[0.5, 0.5]])))


ROWS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
MEAN = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
CONSTANT = np.array([0.0, 0.0, 1.0])


def judge(*answers: Any) -> tuple[Callable[[Any], Any], list[np.ndarray]]:
    """Return a function that returns these answers in turn, repeating the last one, and the list of its arguments."""
    asked: list[np.ndarray] = []

    def answer(numerators: np.ndarray) -> Any:
        asked.append(numerators)
        return answers[min(len(asked), len(answers)) - 1]

    return answer, asked


def mixed(weights: list[float], floor_weight: float = 0.0, constant: np.ndarray = CONSTANT) -> np.ndarray:
    return _apportion((1 - floor_weight) * _mix(ROWS, MEAN, np.array(weights)) + floor_weight * constant)


def test_weights_are_doubled_until_the_bounds_hold() -> None:
    holds, asked = judge(False, False, False, True)
    found = _meet_floors(form_of(), _Mixing(ROWS, MEAN, np.array([0.0, 0.25])), CONSTANT, holds, judge(())[0])
    assert found is not None
    assert (found.privacy_weight, found.floor_weight) == (1.0, 0.0)
    weights = [[0.0, 0.25], [2 * UNIT, 0.5], [4 * UNIT, 1.0], [8 * UNIT, 1.0]]
    for each, numerators in zip(weights, asked, strict=True):
        np.testing.assert_array_equal(numerators, mixed(each))
    np.testing.assert_array_equal(found.numerators, mixed(weights[-1]))


def test_a_refused_common_distribution_has_no_rounding() -> None:
    holds, asked = judge(False)
    assert _meet_floors(form_of(), _Mixing(ROWS, MEAN, np.array([0.3, 1.0])), CONSTANT, holds, judge(())[0]) is None
    assert len(asked) == 3


def test_doubling_ends_after_as_many_trials_as_a_unit_has_bits() -> None:
    """A weight that grows more slowly also ends, by the limit on the trials."""
    none, always = _Mixing(ROWS, MEAN, np.zeros(2)), [(Fraction(1, 2) - Fraction(1, 2**80),)]
    holds, asked = judge(False)
    assert _meet_floors(form_of(), none, CONSTANT, holds, judge(())[0]) is None
    # The first trial is without a weight, the others are with 2**-61 to 1.
    assert len(asked) == 63
    for constant, trials in ((CONSTANT, 51), (np.array([0.5, 0.0, 0.5]), 19)):
        distortions, asked = judge(*always)
        assert _meet_floors(with_floors(HALF), none, constant, lambda _: True, distortions) is None
        assert len(asked) == trials


def test_the_number_of_trials_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "_MAX_TRIALS", 7)
    short = judge((Fraction(1, 2) - Fraction(1, 2**40),))[0]
    for answer in (False, True):
        holds, asked = judge(answer)
        with pytest.raises(SolverError, match="after 7 trials"):
            _meet_floors(with_floors(HALF), _Mixing(ROWS, MEAN, np.zeros(2)), CONSTANT, holds, short)
        assert len(asked) == 7


def met_with_floor(constant: np.ndarray, *values: Fraction) -> tuple[Any, list[np.ndarray]]:
    distortions, asked = judge(*((value,) for value in values))
    given = _Mixing(ROWS, MEAN, np.array([0.0, 0.0]))
    return _meet_floors(with_floors(HALF), given, constant, lambda _: True, distortions), asked


def test_floors_are_met_with_the_weight_of_a_constant() -> None:
    found, asked = met_with_floor(CONSTANT, Fraction(1, 4), Fraction(1, 2))
    weight = 1 / 3 * (1 + 1e-9) + 2.0**-50
    assert found.floor_weight == pytest.approx(weight, rel=1e-15, abs=0)
    assert found.privacy_weight == 0
    np.testing.assert_array_equal(asked[0], mixed([0, 0]))
    np.testing.assert_array_equal(found.numerators, mixed([0, 0], found.floor_weight))
    # The second increase at least doubles the weight.
    found, asked = met_with_floor(CONSTANT, Fraction(1, 4), Fraction(1, 2) - Fraction(1, 10**6), Fraction(1, 2))
    assert found.floor_weight == pytest.approx(2 * weight, rel=1e-15)
    assert len(asked) == 3
    found, _ = met_with_floor(CONSTANT, Fraction(1, 2) - Fraction(1, 2**80), Fraction(1, 4), Fraction(1, 2))
    assert found.floor_weight == pytest.approx(1 / 3, rel=1e-8)


def test_floors_are_met_with_the_weight_of_an_interior_channel() -> None:
    """The interior channel reaches 5/8; the floor of 1/2 is two thirds of the way from 1/4 to it."""
    interior = np.array([[0.0, 0.25, 0.75], [0.25, 0.25, 0.5]])
    found, asked = met_with_floor(interior, Fraction(5, 8), Fraction(1, 4), Fraction(1, 2))
    assert found.floor_weight == pytest.approx(2 / 3 * (1 + 1e-9), rel=1e-12)
    np.testing.assert_array_equal(asked[0], _apportion(interior))
    np.testing.assert_array_equal(asked[1], mixed([0, 0]))
    np.testing.assert_array_equal(found.numerators, mixed([0, 0], found.floor_weight, interior))


def test_floors_are_met_with_increasing_weights_of_a_distribution() -> None:
    found, asked = met_with_floor(np.array([0.5, 0.0, 0.5]), *[Fraction(1, 4)] * 3, Fraction(1, 2))
    assert found.floor_weight == 64 * 2.0**-50
    assert len(asked) == 4
    np.testing.assert_array_equal(asked[1], mixed([0, 0], 2.0**-50, np.array([0.5, 0.0, 0.5])))


@each_row("constant", [CONSTANT, np.array([0.5, 0.0, 0.5])])
def test_an_unreachable_floor_ends_the_search(constant: np.ndarray) -> None:
    found, asked = met_with_floor(constant, Fraction(0))
    assert found is None
    np.testing.assert_array_equal(asked[-1], mixed([0, 0], 1.0, constant))
    assert asked[-1].tolist() == [(constant * ONE).astype(np.int64).tolist()] * 2


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Record the tried thresholds, and the distributions that are used to meet floors."""
    calls: dict[str, list[Any]] = {"thresholds": [], "constants": []}
    clean, met = rounding._clean, rounding._meet_floors
    monkeypatch.setattr(
        rounding, "_clean", lambda m, t, labels: (calls["thresholds"].append(t), clean(m, t, labels))[1]
    )
    monkeypatch.setattr(rounding, "_meet_floors", lambda *all: (calls["constants"].append(all[2]), met(*all))[1])
    return calls


def line(n: int, floor_at: Fraction | None = None) -> Any:
    d = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    requirements = [md.MetricPrivacy(1, d)] + ([] if floor_at is None else [md.DistortionPrivacy(floor_at, d)])
    return normalise(md.Problem(np.full(n, 1 / n), d, requirements))


def test_one_threshold_suffices_for_a_nearly_private_matrix(spied: dict[str, list[Any]]) -> None:
    form = line(3)
    matrix = np.exp(-0.5 * form.problem.cost)
    found = round_channel(form, matrix / matrix.sum(axis=1, keepdims=True), lambda _: True, lambda _: ())
    assert found is not None
    assert found.privacy_weight <= 1e-12
    assert spied["thresholds"] == [0.0]
    assert [each.tolist() for each in spied["constants"]] == [[0.0, 1.0, 0.0]]


def test_all_thresholds_are_tried_and_the_cheapest_is_kept(spied: dict[str, list[Any]]) -> None:
    form = line(3)
    matrix = np.array([[1.0, 1e-15, 1e-7], [1.0, 0.0, 1e-9], [1.0, 0.0, 0.0]])
    found = round_channel(form, matrix, lambda _: True, lambda _: ())
    tried = spied["thresholds"]
    assert len(tried) > 1
    assert tried == [0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6][: len(tried)]
    costs = []
    for threshold in tried:
        rows = _raise_along_paths(_clean(matrix, threshold, form.components), form.implied)
        common = _compute_common(rows, form.components)
        weights = _compute_weights(form.exponents, rows, common, form.components)
        costs.append((compute_cost(form, _mix(rows, common, weights)[form.group]), weights.max()))
    assert found is not None
    assert compute_cost(form, found.numerators / 2.0**62) == pytest.approx(min(cost for cost, _ in costs), abs=1e-15)
    # The search continues until the weight is negligible.
    assert all(weight > 1e-12 for _, weight in costs[:-1])
    assert costs[-1][1] <= 1e-12 or len(tried) == 7


@pytest.mark.parametrize(
    ("minimum", "tries"), [(None, 1), (Fraction(1, 2), 1), (Fraction(2, 3) - Fraction(1, 10**6), 2)]
)
def test_a_second_distribution_is_tried_for_floors_that_are_tight(
    spied: dict[str, list[Any]], minimum: Fraction | None, tries: int
) -> None:
    """The largest floor on a line of three places is 2/3, the error of guessing the middle one."""
    form = line(3, minimum)
    short = [(Fraction(0),)] * 1 + [(Fraction(2, 3),)] * 99
    answers = iter([*short, *short])
    found = round_channel(form, np.eye(3), lambda _: True, lambda _: next(answers)[: len(form.floors)])
    assert found is not None
    assert len(spied["constants"]) == tries
    if tries == 2:
        np.testing.assert_allclose(spied["constants"][1], np.full(3, 1 / 3), atol=0.2)
        assert spied["constants"][1].sum() == pytest.approx(1, rel=1e-15)


def test_thresholds_are_tried_while_one_connected_set_needs_weight(spied: dict[str, list[Any]]) -> None:
    """Of two unconnected pairs of secrets, one already meets its bounds."""
    graph = nx.Graph([(0, 1), (2, 3)])
    form = normalise(md.Problem(np.full(4, 0.25), 1 - np.eye(4), [md.GraphPrivacy(1, graph)]))
    matrix = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 1e-7, 1, 1e-15], [0, 1e-9, 1, 0]])
    assert round_channel(form, matrix, lambda _: True, lambda _: ()) is not None
    assert len(spied["thresholds"]) > 1


@pytest.mark.parametrize(("weight", "tries"), [(0.0, 1), (1e-9, 1), (1.1e-9, 2)])
def test_a_small_floor_weight_needs_no_second_attempt(
    monkeypatch: pytest.MonkeyPatch, weight: float, tries: int
) -> None:
    made = []
    numerators = _apportion(np.eye(3))
    monkeypatch.setattr(
        rounding, "_meet_floors", lambda *_: (made.append(1), rounding.Rounded(numerators, 0.0, weight))[1]
    )
    found = round_channel(line(3, Fraction(2, 3) - Fraction(1, 10**6)), np.eye(3), lambda _: True, lambda _: ())
    assert found is not None
    assert len(made) == tries


def test_the_second_distribution_is_that_of_the_largest_entries(spied: dict[str, list[Any]]) -> None:
    form = line(3, Fraction(2, 3) - Fraction(1, 10**6))
    answers = iter([(Fraction(0),), *[(Fraction(2, 3),)] * 99])
    matrix = np.array([[0.75, 0.25, 0.0], [0.625, 0.375, 0.0], [0.5, 0.5, 0.0]])
    assert round_channel(form, matrix, lambda _: True, lambda _: next(answers)) is not None
    np.testing.assert_allclose(spied["constants"][1], [0.6, 0.4, 0], rtol=1e-12)


def test_the_cheaper_of_two_ways_to_meet_a_floor_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap, dear = (rounding.Rounded(_apportion(np.array(rows)), 0.0, 0.5) for rows in (np.eye(3), np.eye(3)[::-1]))
    for made, expected in (([cheap, dear], cheap), ([dear, cheap], cheap), ([None, dear], dear), ([dear, None], dear)):
        answers = iter(made)
        monkeypatch.setattr(rounding, "_meet_floors", lambda *_, answers=answers: next(answers))
        form = line(3, Fraction(2, 3) - Fraction(1, 10**6))
        assert round_channel(form, np.eye(3), lambda _: True, lambda _: ()) is expected


def test_matrices_that_are_not_finite_have_no_rounding() -> None:
    for wrong in (math.nan, math.inf, -math.inf):
        matrix = np.eye(3)
        matrix[0, 1] = wrong
        assert round_channel(line(3), matrix, lambda _: True, lambda _: ()) is None


def test_rows_may_be_mixed_with_different_distributions() -> None:
    """Each row is mixed with its own distribution: the remaining slack is 2 · 0.6 − 0.4 = 0.8."""
    exponents = np.array([[math.inf, math.log(2)], [math.inf, math.inf]])
    rows, common = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([[0.4, 0.6], [0.6, 0.4]])
    found = _compute_weights(exponents, rows, common, np.zeros(2, dtype=int))
    assert found[0] == pytest.approx(0.1 / (0.1 + 0.8))
    mixed = _mix(rows, common, found)
    assert mixed[0, 0] == pytest.approx(2 * mixed[1, 0])
