"""Every search in the kernel ends: signed zeros count as zeros, and what is not found nearby is an error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.base._arrays import as_floats, as_nonnegative
from mechdesign.certify import _exact as exact
from mechdesign.certify import _privacy as privacy
from mechdesign.certify._claims import ExponentBound, PairBound
from mechdesign.errors import CertificateError

ONE = 2**62
DIFFERENT = np.array([[ONE // 2, ONE // 2], [ONE // 4, 3 * (ONE // 4)], [ONE // 2, ONE // 2]])


def test_secrets_at_distance_zero_that_differ_have_no_epsilon() -> None:
    for zero in (0.0, -0.0):
        metric = PairBound.metric(Fraction(1), [[0, zero, 1], [zero, 0, 1], [1, 1, 0]])
        listed = ExponentBound("near", Fraction(1), [0, 1], [1, 2], np.array([zero, 1]))
        for bound in (metric, listed):
            assert privacy.realised(DIFFERENT, 62, bound) == math.inf
            assert privacy.check(DIFFERENT, 62, bound) is not None


def test_arrays_lose_the_sign_of_their_zeros_and_nothing_else() -> None:
    given = np.array([-0.0, 0.0, 1.5, np.inf, 5e-324])
    given.setflags(write=False)
    for made in (as_nonnegative(given, "x", 1, infinite=True), as_floats(given, "x", "(n,)")):
        assert not np.signbit(made).any()
        assert made.tolist() == given.tolist()
    positive = np.array([0.0, 2.0])
    positive.setflags(write=False)
    assert as_nonnegative(positive, "x", 1) is positive
    assert np.signbit(as_floats([-1.0], "x", "(n,)")).all()


def test_a_least_epsilon_that_is_not_found_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = PairBound.graph(Fraction(1), 2, [[0, 1]])
    assert privacy.realised(DIFFERENT[:2], 62, bound) == pytest.approx(math.log(2))
    monkeypatch.setattr(privacy, "check", lambda *_: "never")
    with pytest.raises(CertificateError, match="the least epsilon was not found"):
        privacy.realised(DIFFERENT[:2], 62, bound)


def steps(number: float, count: int) -> float:
    for _ in range(abs(count)):
        number = math.nextafter(number, math.copysign(math.inf, count))
    return number


def test_the_least_float_is_found_from_a_guess_nearby() -> None:
    for off in (-15, -1, 0, 1, 15):
        assert exact.least_float(steps(0.5, off), lambda number: number >= 0.5) == 0.5


def test_a_guess_far_away_is_an_error() -> None:
    for off in (-17, 17):
        with pytest.raises(ArithmeticError, match="the least sufficient float is more than 16 floats away"):
            exact.least_float(steps(0.5, off), lambda number: number >= 0.5)


def test_infinity_is_the_least_where_no_float_is_enough() -> None:
    assert exact.least_float(math.nextafter(math.inf, 0), lambda _: False) == math.inf
