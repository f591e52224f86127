"""Every search in the kernel ends: signed zeros count as zeros, and what is not found nearby is an error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from certify_examples import line
from test_second_verifier import put, refused, repair, whole, with_array

from mechdesign.base._arrays import as_floats, as_nonnegative
from mechdesign.certify import _exact as exact
from mechdesign.certify import _privacy as privacy
from mechdesign.certify._bundle import CHANNEL
from mechdesign.certify._claims import ExponentBound, PairBound
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError

ONE = 2**62
DIFFERENT = np.array([[ONE // 2, ONE // 2], [ONE // 4, 3 * (ONE // 4)], [ONE // 2, ONE // 2]])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_secrets_at_distance_zero_that_differ_have_no_epsilon(zero: float) -> None:
    metric = PairBound.metric(Fraction(1), [[0, zero, 1], [zero, 0, 1], [1, 1, 0]])
    listed = ExponentBound("near", Fraction(1), [0, 1], [1, 2], np.array([zero, 1]))
    for bound in (metric, listed):
        assert privacy.realised(DIFFERENT, 62, bound) == math.inf
        assert privacy.check(DIFFERENT, 62, bound) is not None


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (0, 0)])
def test_a_bundle_with_a_signed_zero_is_judged_as_one_with_a_zero(tmp_path, place) -> None:
    files = whole(line(3, 0.6))
    distance = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    distance[place] = -0.0
    put(tmp_path, with_array(files, CHANNEL, "requirement_0_distance", distance))
    if place == (0, 0):
        # The diagonal means nothing.
        assert verify(tmp_path).holds
        return
    with pytest.raises(CertificateError, match="does not hold"):
        verify(tmp_path)
    assert "is kept" in refused(tmp_path)


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


@pytest.mark.parametrize("off", [-15, -1, 0, 1, 15])
def test_the_least_float_is_found_from_a_guess_nearby(off: int) -> None:
    assert exact.least_float(steps(0.5, off), lambda number: number >= 0.5) == 0.5


@pytest.mark.parametrize("off", [-17, 17])
def test_a_guess_far_away_is_an_error(off: int) -> None:
    with pytest.raises(ArithmeticError, match="the least sufficient float is more than 16 floats away"):
        exact.least_float(steps(0.5, off), lambda number: number >= 0.5)


def test_infinity_is_the_least_where_no_float_is_enough() -> None:
    assert exact.least_float(math.nextafter(math.inf, 0), lambda _: False) == math.inf


def test_an_exponent_without_end_is_refused_before_a_power_is_made(tmp_path) -> None:
    put(tmp_path, with_array(whole(line(3, 0.6)), CHANNEL, "exponent", 2**50))
    with pytest.raises(CertificateError, match="exponent"):
        verify(tmp_path)
    assert "the exponent is between 1 and 62" in refused(tmp_path)


def test_numbers_without_end_are_refused_by_both(tmp_path) -> None:
    for text in ("1e-99999999", "0e99999999", "1e999", "1" + "0" * 2000 + ".0", "0." + "1" * 2000):
        files = dict(repair(whole(line(3, 0.6)), lambda d: d["metadata"].update(number=12345.5)))
        files["certificate.json"] = files["certificate.json"].replace(b"12345.5", text.encode())
        put(tmp_path, files)
        with pytest.raises(CertificateError):
            verify(tmp_path)
        assert refused(tmp_path)
