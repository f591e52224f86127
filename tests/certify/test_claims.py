from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign.certify._claims import ExponentBound, Floor, PairBound, RatioBound
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.errors import InputError

E = Fraction(3, 5)
DISTANCE = np.array([[0, 1, math.inf], [1, 9, 2], [math.inf, 2.5, 0]])


def pairs(bound: PairBound) -> dict[tuple[int, int], float]:
    ends = zip(bound.sources.tolist(), bound.targets.tolist(), strict=True)
    return dict(zip(ends, bound.weights.tolist(), strict=True))


def test_metric_lists_finite_pairs_off_the_diagonal() -> None:
    bound = PairBound.metric(E, DISTANCE)
    assert pairs(bound) == {(0, 1): 1, (1, 0): 1, (1, 2): 2, (2, 1): 2.5}
    assert bound.kind == "metric"
    assert len(bound) == 4


def test_threshold_includes_its_radius() -> None:
    assert pairs(PairBound.threshold(E, DISTANCE, Fraction(2))) == {(0, 1): 1, (1, 0): 1, (1, 2): 1}
    just_below = Fraction(np.nextafter(2, 0))
    assert pairs(PairBound.threshold(E, DISTANCE, just_below)) == {(0, 1): 1, (1, 0): 1}
    # The float 0.1 is above 1/10, and yet a distance of 0.1 is within a radius of 0.1.
    assert len(PairBound.threshold(E, [[0, 0.1], [0.1, 0]], Fraction(1, 10))) == 2
    assert len(PairBound.threshold(E, DISTANCE, Fraction(10**400))) == 4


def test_graph_goes_both_ways_once_without_loops() -> None:
    bound = PairBound.graph(E, 4, [[0, 1], [1, 0], [2, 2], [3, 1], [3, 1]])
    assert pairs(bound) == {(0, 1): 1, (1, 0): 1, (1, 3): 1, (3, 1): 1}
    assert len(bound) == 4
    assert len(PairBound.graph(E, 4, np.zeros((0, 2)))) == 0


def test_stated_requirements_become_claims() -> None:
    metric = Stated.metric(E, DISTANCE).claim(3)
    threshold = Stated.threshold(E, DISTANCE, Fraction(2)).claim(3)
    graph = Stated.graph(E, [[0, 2]]).claim(3)
    floor = Stated.distortion(Fraction(1, 3), DISTANCE[:1, :2]).claim(2)
    assert isinstance(metric, PairBound)
    assert pairs(metric) == pairs(PairBound.metric(E, DISTANCE))
    assert isinstance(threshold, PairBound)
    assert pairs(threshold) == pairs(PairBound.threshold(E, DISTANCE, Fraction(2)))
    assert isinstance(graph, PairBound)
    assert pairs(graph) == {(0, 2): 1, (2, 0): 1}
    assert isinstance(floor, Floor)
    assert floor.error.tolist() == [[0, 1]]


def test_numbers_are_taken_as_they_print() -> None:
    assert Stated.metric(0.6, DISTANCE).numbers["epsilon"] == E  # type: ignore[arg-type]
    assert PairBound.metric("0.6", DISTANCE).epsilon == E  # type: ignore[arg-type]
    assert Floor(0.6, DISTANCE[:1, :2]).minimum == E  # type: ignore[arg-type]


def test_arrays_are_read_only_and_not_shared() -> None:
    distance = np.ones((2, 2))
    stated = Stated.metric(E, distance)
    distance[0, 1] = 7
    assert stated.arrays["distance"][0, 1] == 1
    with pytest.raises(ValueError, match="read-only"):
        stated.arrays["distance"][0, 1] = 7


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: ExponentBound("metric", Fraction(0), [0], [1], [1.0]), "epsilon"),
        (lambda: ExponentBound("metric", E, [0, 1], [1], [1.0]), "pairs"),
        (lambda: ExponentBound("metric", E, [-1], [1], [1.0]), r"sources\[0\]"),
        (lambda: ExponentBound("metric", E, [0.5], [1], [1.0]), "sources"),
        (lambda: ExponentBound("metric", E, [0], [1], [-1.0]), r"weights\[0\]"),
        (lambda: ExponentBound("metric", E, [0], [1], [math.nan]), r"weights\[0\]"),
        (lambda: ExponentBound("metric", E, [0], [1], [math.inf]), r"weights\[0\]"),
        (lambda: ExponentBound("metric", E, [[0]], [[1]], [[1.0]]), "sources"),
        (lambda: PairBound.metric(E, [[0, 1]]), "distance"),
        (lambda: PairBound.metric(E, [[0, math.nan], [1, 0]]), r"distance\[0,1\]"),
        (lambda: PairBound.metric(E, [[0, -1], [1, 0]]), r"distance\[0,1\]"),
        (lambda: PairBound.metric(E, [["a"]]), "distance"),
        (lambda: PairBound.graph(E, 2, [[0, 2]]), r"edges\[0,1\]"),
        (lambda: PairBound.graph(E, 2, [[0, 1, 1]]), "edges"),
        (lambda: PairBound.graph(E, 2, np.array([[2**63, 0]], dtype=np.uint64)), r"edges\[0,0\]"),
        (lambda: Floor(Fraction(-1), [[1.0]]), "minimum"),
        (lambda: Floor(Fraction(1), np.zeros((0, 2))), "error"),
        (lambda: Floor(Fraction(1), [[math.inf]]), r"error\[0,0\]"),
        (lambda: Stated("euclid", {"epsilon": E}, {"distance": np.zeros((2, 2))}), "kind"),
        (lambda: Stated("metric", {"epsilon": E, "radius": E}, {"distance": np.zeros((2, 2))}), "numbers"),
        (lambda: Stated.metric(Fraction(0), np.zeros((2, 2))), "epsilon"),
        (lambda: Stated.threshold(E, np.zeros((2, 2)), Fraction(-1)), "radius"),
        (lambda: Stated.metric(E, np.zeros((2, 2))).claim(3), "distance"),
        (lambda: Stated.distortion(E, np.zeros((2, 2))).claim(3), "error"),
    ],
)
def test_wrong_claims_are_refused(make: Any, path: str) -> None:
    with pytest.raises(InputError, match=rf"^{path}: "):
        make()


def evidence(**changes: Any) -> Evidence:
    fields: dict[str, Any] = {
        "numerators": [[1, 3], [2, 2]],
        "exponent": 2,
        "prior": [0.5, 0.5],
        "cost": [[0, 1], [1, 0]],
        "objective": "expected",
        "requirements": (Stated.graph(E, [[0, 1]]), Stated.distortion(E, [[0, 1], [1, 0]])),
        "multipliers": None,
    }
    return Evidence(**{**fields, **changes})


NO_PAIRS = PairMultipliers([], [], [], [])
NO_FLOOR = FloorMultipliers([], [], [])


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"numerators": [[1, 3], [2, 3]]}, r"numerators\[1\]"),
        ({"numerators": [[1, 3], [2, 1]]}, r"numerators\[1\]"),
        ({"numerators": [[-1, 5], [2, 2]]}, r"numerators\[0,0\]"),
        ({"numerators": [[5, 0], [2, 2]]}, "numerators"),
        ({"numerators": [[0.5, 0.5], [0.5, 0.5]]}, "numerators"),
        ({"numerators": np.zeros((0, 2), dtype=np.int64)}, "numerators"),
        # The sum of this row is 4 modulo 2**64.
        ({"numerators": [[1, 3] + [2**62] * 4, [2, 2] + [0] * 4]}, "numerators"),
        ({"exponent": 0}, "exponent"),
        ({"exponent": 63}, "exponent"),
        ({"exponent": True}, "exponent"),
        ({"exponent": 2.0}, "exponent"),
        ({"prior": [0.5, 0.4]}, "prior"),
        ({"prior": [1.5, -0.5]}, r"prior\[1\]"),
        ({"prior": [1.0]}, "prior"),
        ({"prior": [math.nan, 1]}, r"prior\[0\]"),
        ({"cost": [[0, 1]]}, "cost"),
        ({"cost": [[0, 1], [1, math.nan]]}, r"cost\[1,1\]"),
        ({"cost": [[0, 1], [math.inf, math.inf]]}, r"cost\[1\]"),
        ({"cost": [[0, 1], [1, -1]]}, r"cost\[1,1\]"),
        ({"objective": "best"}, "objective"),
        ({"requirements": (Stated.metric(E, np.ones((3, 3))),)}, r"requirements\[0\]\.distance"),
        ({"requirements": (Stated.graph(E, [[0, 2]]),)}, r"requirements\[0\]\.edges\[0,1\]"),
        ({"multipliers": Multipliers((NO_PAIRS,))}, r"multipliers\.requirements"),
        ({"multipliers": Multipliers((NO_FLOOR, NO_FLOOR))}, r"multipliers\.requirements\[0\]"),
        ({"multipliers": Multipliers((NO_PAIRS, NO_PAIRS))}, r"multipliers\.requirements\[1\]"),
        ({"multipliers": Multipliers((NO_PAIRS, NO_FLOOR), [1.0])}, r"multipliers\.weights"),
        (
            {"multipliers": Multipliers((PairMultipliers([0], [1], [2], [1.0]), NO_FLOOR))},
            r"multipliers\.requirements\[0\]\.observables\[0\]",
        ),
        (
            {"multipliers": Multipliers((PairMultipliers([0], [2], [0], [1.0]), NO_FLOOR))},
            r"multipliers\.requirements\[0\]\.targets\[0\]",
        ),
        (
            {"multipliers": Multipliers((NO_PAIRS, FloorMultipliers([2], [0], [1.0])))},
            r"multipliers\.requirements\[1\]\.estimates\[0\]",
        ),
    ],
)
def test_wrong_evidence_is_refused(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError, match=rf"^{path}: "):
        evidence(**changes)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: PairMultipliers([0], [1], [0], [-1e-9]), r"values\[0\]"),
        (lambda: PairMultipliers([0], [1], [0], [math.nan]), r"values\[0\]"),
        (lambda: PairMultipliers([0], [1], [0], []), "multipliers"),
        (lambda: FloorMultipliers([0], [0, 1], [1.0]), "multipliers"),
        (lambda: Multipliers((), [0.0, 0.0]), "weights"),
        (lambda: Multipliers((), [-1.0, 2.0]), r"weights\[0\]"),
    ],
)
def test_wrong_multipliers_are_refused(make: Any, path: str) -> None:
    with pytest.raises(InputError, match=rf"^{path}: "):
        make()


def test_largest_exponent() -> None:
    half = 2**61
    found = evidence(numerators=[[2**62, 0], [half, half]], exponent=62)
    assert (found.secrets, found.observables) == (2, 2)
    with pytest.raises(InputError, match="probability distribution"):
        evidence(numerators=[[2**62, 1], [half, half]], exponent=62)


def test_factors_of_ratios_are_read_exactly() -> None:
    for factor in ("11/10", 1.1):
        assert RatioBound("near", factor, [0], [1], [1], [1]).factor == Fraction(11, 10)
    with pytest.raises(InputError, match="factor"):
        RatioBound("near", "much", [0], [1], [1], [1])


def test_numbers_out_of_range_are_refused_with_the_bound_that_they_miss() -> None:
    with pytest.raises(InputError, match=r"epsilon: is not positive; found '0'; must be above 0"):
        Stated.metric(Fraction(0), np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"minimum: is negative; found '-1'; must be at least 0"):
        Stated.distortion(Fraction(-1), np.zeros((2, 2)))


def test_what_holds_for_no_number_of_secrets_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"pairs\[0\]: has a factor below 1"):
        Stated.ratios("near", Fraction(1), [[0, 1]], [1], [2])


def test_errors_are_made_for_as_many_secrets_as_they_have_columns() -> None:
    with pytest.raises(InputError, match="error: has 2 secrets"):
        Stated.distortion(Fraction(1), np.ones((3, 2))).claim(4)
