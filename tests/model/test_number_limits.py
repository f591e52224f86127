"""Numbers that end where floats do are refused with a typed error, whatever requirement they are in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.model._numbers import not_negative, positive

LINE = np.abs(np.subtract.outer(range(3), range(3))).astype(float)
KINDS = {
    "epsilon": lambda number: md.MetricPrivacy(number, LINE),
    "epsilon of a threshold": lambda number: md.ThresholdPrivacy(number, LINE, 1),
    "radius": lambda number: md.ThresholdPrivacy(1, LINE, number),
    "epsilon of a graph": lambda number: md.GraphPrivacy(number, nx.path_graph(3)),
    "minimum": lambda number: md.DistortionPrivacy(number, LINE),
}


@each_row("number", ["1e309", "1e-400", "1.0001e100", "9.999e-101", Fraction(10) ** 300, 5e-324, 1e308])
@each_row("kind", KINDS)
def test_numbers_beyond_the_limits_are_refused(kind: str, number: Any) -> None:
    with pytest.raises(md.errors.InputError, match=r"is out of range; found .*; must be 0 or between") as caught:
        KINDS[kind](number)
    assert caught.value.path == kind.split()[0]


@each_row("number", ["1e100", "1e-100", 1e100, 1e-100])
def test_numbers_at_the_limits_are_taken(number: Any) -> None:
    assert positive(number, "epsilon") == not_negative(number, "minimum") == Fraction(str(number))
    assert not_negative(0, "minimum") == 0


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("epsilon", ["1e-100", "1e-17", "1e100"])
def test_bounds_at_the_limits_are_designed(epsilon: str) -> None:
    problem = md.Problem([0.5, 0.25, 0.25], LINE, [md.MetricPrivacy(epsilon, LINE)])
    assert md.design(problem, solver="highs-simplex").certificate.holds


@each_row("epsilon", ["1e-100", "1e-17"])
def test_factors_of_1_are_too_much_for_the_block_method(epsilon: str) -> None:
    problem = md.Problem([0.5, 0.25, 0.25], LINE, [md.MetricPrivacy(epsilon, LINE)])
    with pytest.raises(md.errors.SolverError, match="use another solver"):
        md.design(problem, solver="block", options={"arrays": "numpy"})


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_floors_at_the_limits() -> None:
    def problem(minimum: str) -> md.Problem:
        return md.Problem([0.5, 0.25, 0.25], LINE, [md.DistortionPrivacy(minimum, LINE)])

    assert md.design(problem("1e-100")).certificate.holds
    with pytest.raises(md.errors.InfeasibleError, match=r"expected error at 1e\+100"):
        problem("1e100")
