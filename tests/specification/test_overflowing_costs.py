"""A cost that overflows would be infinite and forbid an answer, so it is refused with its key."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from rows import each_row
from spec_examples import document, failure, problem

from mechdesign.errors import SpecificationError
from mechdesign.specification._measures import scale_cost
from mechdesign.specification._read import Source


@each_row(
    ("more", "key"),
    [("power = 1000", "power"), ("power = 2e5", "power"), ("scale = 1e308", "scale"), ("scale = 1e101", "scale")],
)
def test_costs_that_overflow_are_refused(more, key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = failure(document(cost=f'[cost]\ndistance = "euclidean"\n{more}', privacy="", rest=PRIVACY))
    assert found.path == f"cost.{key}"
    assert "makes costs too large" in str(found) or "is out of range" in str(found)


COST = Source() / "cost"
PRIVACY = '[[privacy]]\nkind = "metric"\nepsilon = 0.5\ndistance = "hamming"'


def test_the_largest_power_that_does_passes():
    cost = problem(cost='[cost]\ndistance = "euclidean"\npower = 200', privacy="", rest=PRIVACY).cost
    assert np.isfinite(cost).all()
    assert cost.max() == pytest.approx(5.0**100)


def test_just_inside_and_just_outside():
    distance = np.array([[0.0, 10.0]])
    assert scale_cost(distance, 99.0, 1.0, COST).tolist() == [[0.0, 1e99]]
    with pytest.raises(SpecificationError, match="too large"):
        scale_cost(distance, 100.5, 1.0, COST)


def test_costs_that_vanish_are_refused():
    with pytest.raises(SpecificationError, match="makes the costs of some positive distances 0"):
        scale_cost(np.array([[0.0, 0.1]]), 400.0, 1.0, COST)
    assert scale_cost(np.array([[0.0, 0.1]]), 40.0, 1.0, COST)[0, 1] > 0
