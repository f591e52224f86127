"""Claims in the open: bounds with rational factors, and floors with a prior of their own."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from bundles import NO_FLOOR, NO_PAIRS, ONE, claims
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import certify
from mechdesign.certify._claims import ExponentBound, RatioBound
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._exact import exact
from mechdesign.certify._privacy import check, realised
from mechdesign.certify._stated import Stated
from mechdesign.certify._verify import verify

INTEGERS = st.integers(1, 2**62)


def ratio(factor: Fraction, tops: list[int], bottoms: list[int]) -> RatioBound:
    pairs = range(len(tops))
    return RatioBound("ratio", factor, list(pairs), [place + 1 for place in pairs], tops, bottoms)


@given(INTEGERS, INTEGERS, st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_rational_bound_is_decided_as_fractions_are(above: int, below: int, a: int, b: int) -> None:
    a, b = max(a, b), min(a, b)
    channel = np.array([[above], [below]], dtype=np.int64)
    bound = ratio(Fraction(1), [a], [b])
    assert (check(channel, 62, bound) is None) == (Fraction(above) <= Fraction(a, b) * below)


@given(st.lists(st.integers(0, 5), min_size=6, max_size=6), st.integers(1, 7), st.integers(1, 7))
def test_the_least_factor_is_that_of_brute_force(entries: list[int], a: int, b: int) -> None:
    channel = np.array(entries, dtype=np.int64).reshape(3, 2) * 2**55
    bound = RatioBound("ratio", Fraction(max(b, 1)), [0, 1, 2], [1, 2, 0], [a] * 3, [1] * 3)
    worst = Fraction(0)
    for (s, t), o in itertools.product([(0, 1), (1, 2), (2, 0)], range(2)):
        if channel[s, o] and not channel[t, o]:
            worst = None  # type: ignore[assignment]
            break
        if channel[t, o]:
            worst = max(worst, Fraction(int(channel[s, o]), int(channel[t, o])) / a)
    found = realised(channel, 62, bound)
    if worst is None:
        assert found == math.inf
        return
    assert exact(found) >= worst
    assert exact(math.nextafter(found, 0)) < worst or found == 0
    if exact(found) * a >= 1:
        assert check(channel, 62, replace(bound, factor=exact(found))) is None


def test_just_inside_and_just_outside() -> None:
    third = ONE // 3
    bound = ratio(Fraction(2), [1], [1])
    assert check(np.array([[2 * third], [third]]), 62, bound) is None
    violation = check(np.array([[2 * third + 1], [third]]), 62, bound)
    assert violation is not None
    assert violation.sentence.startswith("p(0 | 0) exceeds 2 · p(0 | 1) by a factor of 1 + ")
    assert "distinguishes them" in check(np.array([[1], [0]]), 62, bound).sentence  # type: ignore[union-attr]


def test_factors_above_are_not_below() -> None:
    bound = ratio(Fraction(1, 3), [10, 3, 2**62], [1, 1, 3])
    for number, factor in zip(bound.factors_above(), [Fraction(10, 3), Fraction(1), Fraction(2**62, 9)], strict=True):
        assert factor <= Fraction(number) <= factor * (1 + Fraction(1, 2**51))


def evidence(**changes: Any) -> Evidence:
    """Return claims with multipliers for the ratios alone, which prove the optimum."""
    ratios = PairMultipliers([0, 1], [1, 0], [0, 1], [1 / 6, 1 / 6])
    return claims(**{"multipliers": Multipliers((NO_PAIRS, ratios, NO_FLOOR, NO_FLOOR)), **changes})


def test_the_certificate_of_claims_in_the_open() -> None:
    found = certify(evidence())
    assert found.holds, found.reason
    near, both, own, shared = found.requirements
    assert (near.kind, near.number, near.at_least) == ("near", "epsilon", False)
    assert (both.kind, both.number, both.symbol) == ("ratio", "factor", "factor")
    assert both.realised == pytest.approx(1, rel=1e-12)
    assert (own.number, own.at_least, own.realised) == ("minimum", True, 0.25)
    assert shared.realised == pytest.approx(1 / 3, rel=1e-12)
    # The optimum is 1/3, and these multipliers prove it.
    assert found.lower_bound == pytest.approx(1 / 3, rel=1e-12)
    assert found.lower_bound <= 1 / 3
    assert found.epsilon == (near.realised,)
    assert found.distortion == (own.realised, shared.realised)


def test_just_outside_a_claim_does_not_hold() -> None:
    error, table = 1.0 - np.eye(2), list(evidence().requirements)
    for place, changed, reason in (
        (1, Stated.ratios("ratio", Fraction(1), [[0, 1], [1, 0]], [2, 19], [1, 10]), "least factor that holds is 1.05"),
        (2, Stated.floor("doubt", Fraction(251, 1000), error, [0.25, 0.75]), "under the prior of this"),
        (0, Stated.pairs("near", Fraction(69, 100), [[0, 1]], [1.0]), "least epsilon that holds is 0.693"),
    ):
        told = (*table[:place], changed, *table[place + 1 :])
        found = certify(evidence(requirements=told, multipliers=None))
        assert not found.holds
        assert reason in found.reason


def test_they_are_exported_and_come_back(tmp_path: Any) -> None:
    before = evidence()
    files = bundle.encode(before, certify(before))
    document = json.loads(files[bundle.CERTIFICATE])
    assert document["schema"] == "mechdesign-certificate/2"
    assert document["requirements"] == [
        {"kind": "pairs", "name": "near", "epsilon": "0.7"},
        {"kind": "ratios", "name": "ratio", "factor": "1"},
        {"kind": "floor", "name": "doubt", "minimum": "0.25"},
        {"kind": "floor", "name": "doubt", "minimum": "1/3", "part": 1},
    ]
    assert [entry["number"] for entry in document["certificate"]["requirements"]] == [
        "epsilon", "factor", "minimum", "minimum",
    ]  # fmt: skip
    bundle.write(tmp_path, files)
    assert verify(tmp_path).holds
    again = bundle.read(tmp_path).evidence
    assert bundle.encode(again, certify(again)) == files
    for one, other in zip(before.requirements, again.requirements, strict=True):
        assert (one.kind, one.numbers, one.name, one.part) == (other.kind, other.numbers, other.name, other.part)
        assert {name: array.tolist() for name, array in one.arrays.items()} == {
            name: array.tolist() for name, array in other.arrays.items()
        }


def test_the_bound_takes_the_prior_of_the_floor() -> None:
    """Σ T·D + Σ_s min_o r[s,o], with π of the floor: worked by hand for one secret that the prior excludes."""
    error = 1.0 - np.eye(2)
    claims = (Stated.floor("doubt", Fraction(1, 2), error, [0.5, 0.5]),)
    pulls = Multipliers((FloorMultipliers([0, 1, 0, 1], [0, 0, 1, 1], [0.5] * 4),))
    found = certify(
        Evidence(np.full((2, 2), ONE // 2), 62, np.array([1.0, 0.0]), 3.0 * error, "expected", claims, pulls)
    )
    # r[0] = (0 - 1/4, 3 - 1/4), r[1] = (-1/4, -1/4), T·D = 1/2.
    assert found.lower_bound == pytest.approx(0, abs=1e-12)
    assert found.holds


def test_an_exponent_and_a_ratio_are_each_compared_with_themselves() -> None:
    two = ExponentBound("near", exact(math.log(2)), [0], [1], [1.0])
    assert two.exponents[0] == pytest.approx(ratio(Fraction(2), [1], [1]).exponents[0], rel=1e-15)


def test_exponents_beyond_the_largest_float_are_infinite() -> None:
    bound = ExponentBound("near", Fraction(10**399), [0, 0], [1, 1], [0.0, 1.0])
    assert bound.exponents.tolist() == [0.0, math.inf]
    violation = check(np.array([[2], [1]]), 62, bound)
    assert violation is not None
    assert "exceeds exp(1e399 · 0.0)" in violation.sentence
