"""Numbers too small for all digits that a processor takes for zero, as libraries can set it, end no loop."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from bundles import flushing

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.certify._exact import as_decimal, float_down, float_up, is_flushing
from mechdesign.leakage._transitions import round_down, round_up
from mechdesign.model._written import _floor
from mechdesign.tables._sensitivity._linear import root_up

LEAST = sys.float_info.min


@pytest.fixture
def flushed() -> Iterator[None]:
    with flushing():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    distance = 1 - np.eye(2)
    design = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)]), solver="scipy")
    folder = tmp_path_factory.mktemp("made") / "city"
    md.save(design, folder, report=False)
    return design, folder


def test_it_is_noticed(flushed):
    assert is_flushing()


def test_ordinarily_the_least_float_is_found_even_among_the_smallest():
    assert not is_flushing()
    for number in (5e-324, 1e-310, LEAST, math.nextafter(LEAST, 0), 0.1):
        assert float_up(as_decimal(number)) == number == float_down(as_decimal(number))
    assert float_up(Fraction(1, 10**400)) == 5e-324
    assert float_down(Fraction(1, 10**400)) == 0.0


def test_rounding_ends_on_the_safe_side(flushed):
    for number in (Fraction(0), Fraction(1, 10**310), Fraction(1, 10**400), Fraction(1, 10**308)):
        up = LEAST if number else 0.0
        assert float_up(number) == round_up(number) == up
        assert float_down(number) == round_down(number) == 0.0
        assert float_up(-number) == 0.0
        assert float_down(-number) == -up
        assert root_up(number**2) == up
        assert _floor(number.numerator, number.denominator, 1) == 0.0
        assert _floor(number.numerator**2, number.denominator**2, 2) == 0.0


def test_other_numbers_are_rounded_as_ever(flushed):
    for number in (LEAST, 0.1, 1e300):
        assert float_up(as_decimal(number)) == number == float_down(as_decimal(number))
    assert root_up(Fraction(2)) ** 2 >= 2
    assert root_up(Fraction(4)) == 2.0
    assert _floor(1, 4, 2) == 0.25


def test_a_design_is_certified_saved_and_verified_as_without(flushed, made, tmp_path):
    before, folder = made
    distance = 1 - np.eye(2)
    again = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)]), solver="scipy")
    md.save(again, tmp_path / "city", report=False)
    for each in (folder, tmp_path / "city"):
        assert md.verify(each).cost == pytest.approx(before.certificate.cost, rel=1e-9)
        assert second_verifier.main([str(each)]) == 0


def test_budgets_are_found_where_they_are_tiny(flushed):
    matrix = [[0.9, 0.1], [0.2, 0.8]]
    assert 0 < md.leakage.constant_budget(1.0, backward=matrix, forward=matrix) < 1
    assert md.leakage.constant_budget(1e-300, backward=matrix) >= 0
    assert all(each >= 0 for each in md.leakage.allocate_budget(1e-300, 4, matrix, matrix))


def test_nothing_is_told_with_epsilon_0_which_is_the_tight_one(flushed):
    numerators = np.array([[2, 2], [2, 2]], dtype=np.int64)
    from mechdesign.measures._audit import audit

    found = audit(numerators / 4, distance=1 - np.eye(2))
    assert found.epsilon == 0
