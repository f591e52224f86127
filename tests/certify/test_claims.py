from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechdesign.certify._claims import Floor, PairBound, RatioBound
from mechdesign.certify._stated import Stated

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


def test_factors_of_ratios_are_read_exactly() -> None:
    for factor in ("11/10", 1.1):
        assert RatioBound("near", factor, [0], [1], [1], [1]).factor == Fraction(11, 10)
