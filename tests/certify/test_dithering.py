"""Privacy between all points of a rectangle: against fractions at every corner, and between points drawn there."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign.certify._certificate import certify
from mechdesign.certify._dithering import CHEBYSHEV, EUCLIDEAN, MANHATTAN, Dithered, Slope, _round_up
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._exact import as_decimal
from mechdesign.certify._stated import Stated
from mechdesign.errors import CertificateError, InputError

NORMS = (CHEBYSHEV, MANHATTAN, EUCLIDEAN)
STEPS = Fraction(1, 2), Fraction(3, 7)


def claim(norm: int = EUCLIDEAN, columns: int = 3, rows: int = 2, epsilon: Fraction = Fraction(1)) -> Dithered:
    return Dithered("x", epsilon, norm, columns, rows, *STEPS)


def grid(seed: int, columns: int, rows: int, m: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    shares = random.random((columns * rows, m)) * 2.0**60
    numerators = shares.astype(np.int64) + 1
    numerators[:, 0] += 2**62 - numerators.sum(axis=1)
    return numerators


def power(norm: int, x: Fraction, y: Fraction) -> Fraction:
    return {CHEBYSHEV: x + y, MANHATTAN: max(x, y), EUCLIDEAN: x * x + y * y}[norm]


def test_distances_keep_their_numbers() -> None:
    """Certificates state them."""
    assert (CHEBYSHEV, MANHATTAN, EUCLIDEAN) == (0, 1, 2)


def steepest(found: Dithered, numerators: np.ndarray) -> Fraction | None:
    """Return the power of the steepest corner, from all corners of all patches, in fractions."""
    c = found.columns
    best = Fraction(0)
    for place in range(c * found.rows):
        x, y = place % c, place // c
        for dx in (-1, 1):
            for dy in (-1, 1):
                if not (0 <= x + dx < c and 0 <= y + dy < found.rows):
                    continue
                for o, own in enumerate(numerators[place].tolist()):
                    across = abs(int(numerators[place + dx, o]) - own)
                    up = abs(int(numerators[place + dy * c, o]) - own)
                    if not own and (across or up):
                        return None
                    if own:
                        slopes = Fraction(across, own) / STEPS[0], Fraction(up, own) / STEPS[1]
                        best = max(best, power(found.norm, *slopes))
    return best


def test_the_steepest_corner_is_found_exactly() -> None:
    for norm, seed in itertools.product(NORMS, range(12)):
        columns, rows = (3, 2) if seed % 2 else (2, 4)
        found = claim(norm, columns, rows)
        numerators = grid(seed, columns, rows, 3)
        slope = found.steepest(numerators)
        assert slope.power == steepest(found, numerators)
        # The place that is named has that slope along the axis of the neighbour that is named, or less beside it.
        assert abs(slope.anchor - slope.neighbour) in (1, columns)
        own = int(numerators[slope.anchor, slope.observable])
        change = Fraction(abs(int(numerators[slope.neighbour, slope.observable]) - own), own)
        one = change / STEPS[0 if abs(slope.anchor - slope.neighbour) == 1 else 1]
        assert power(norm, one, Fraction(0)) <= (slope.power or 0) <= power(norm, one, one)


def test_a_claim_holds_from_the_least_epsilon_on() -> None:
    for norm, seed in itertools.product(NORMS, range(6)):
        numerators = grid(seed, 3, 2, 3)
        slope = claim(norm).steepest(numerators)
        assert slope.power is not None
        least = claim(norm).least(slope)
        square = norm == EUCLIDEAN
        for epsilon, holds in ((as_decimal(least), True), (as_decimal(math.nextafter(least, 0)), False)):
            assert claim(norm, epsilon=epsilon).holds(slope) is holds
            assert ((epsilon**2 if square else epsilon) >= slope.power) is holds
        if not square:
            # To the last digit.
            assert claim(norm, epsilon=slope.power).holds(slope)
            below = claim(norm, epsilon=slope.power * (1 - Fraction(1, 10**12)))
            assert not below.holds(slope)
            assert "changes faster than exp(" in below.sentence(slope)
            assert f"between anchors {slope.anchor} and {slope.neighbour} " in below.sentence(slope)


@pytest.mark.parametrize("norm", NORMS)
def test_points_between_anchors_keep_what_is_proved_and_come_close_to_it(norm: int) -> None:
    """Interpolate exactly at points drawn in the rectangle, many of them close together."""
    random = np.random.default_rng(3)
    numerators = grid(5, 3, 2, 2)
    found = claim(norm)
    least = found.least(found.steepest(numerators))
    width, height = 2 * float(STEPS[0]), float(STEPS[1])
    largest = 0.0
    for _ in range(2000):
        corner = np.array([random.integers(0, 3) * float(STEPS[0]), random.integers(0, 2) * height])
        a = np.clip(corner + random.normal(size=2) * 1e-6, 0, [width, height])
        b = np.clip(a + random.normal(size=2) * 10.0 ** random.integers(-6, 1), 0, [width, height])
        p, q = (interpolated(numerators, *point.tolist()) for point in (a, b))
        dx, dy = np.abs(a - b).tolist()
        length = {CHEBYSHEV: max(dx, dy), MANHATTAN: dx + dy, EUCLIDEAN: math.hypot(dx, dy)}[norm]
        if length > 1e-7:
            largest = max(largest, float(np.abs(np.log(p / q)).max()) / length)
    assert largest <= least * (1 + 1e-6)
    assert largest >= 0.9 * least


def interpolated(numerators: np.ndarray, x: float, y: float) -> np.ndarray:
    u, v = x / float(STEPS[0]), y / float(STEPS[1])
    i, j = min(int(u), 1), min(int(v), 0)
    u, v = u - i, v - j
    at = [numerators[place] / 2.0**62 for place in (3 * j + i, 3 * j + i + 1, 3 * j + i + 3, 3 * j + i + 4)]
    return np.array((1 - v) * ((1 - u) * at[0] + u * at[1]) + v * ((1 - u) * at[2] + u * at[3]))


def test_a_zero_beside_what_is_not_has_no_epsilon() -> None:
    for place, neighbour in ((0, 1), (0, 3), (4, 3), (5, 2)):
        numerators = np.tile([2**61, 2**61], (6, 1))
        numerators[:, 1] = 0
        numerators[:, 0] = 2**62
        assert claim().steepest(numerators).power == 0
        numerators[neighbour] = 2**61
        slope = claim().steepest(numerators)
        assert slope.power is None
        assert numerators[slope.anchor, 1] == 0
        assert numerators[slope.neighbour, 1] == 2**61
        assert slope.observable == 1
        assert claim().least(slope) == math.inf
        assert not claim(epsilon=Fraction(10**300)).holds(slope)
        assert "has probability 0 at anchor" in claim().sentence(slope)
        assert abs(slope.anchor - slope.neighbour) in (1, 3)
        assert place != neighbour


def test_the_first_of_several_zeros_is_named() -> None:
    numerators = np.tile([2**60, 2**60, 2**61], (6, 1))
    numerators[3:, 0] = 0
    slope = claim().steepest(numerators)
    assert (slope.anchor, slope.neighbour, slope.observable) == (3, 0, 0)


def test_the_neighbour_that_differs_most_is_named() -> None:
    numerators = np.tile([2**59, 2**60], (6, 1))
    # Anchors 1, 3 and 5 stand beside anchor 4.
    numerators[4, 0] = 2**58
    numerators[5, 0] = numerators[3, 0] = numerators[4, 0] + 2**50
    slope = claim(MANHATTAN).steepest(numerators)
    assert (slope.anchor, slope.neighbour, slope.observable) == (4, 1, 0)


def test_the_neighbour_that_differs_most_may_be_the_lower_one() -> None:
    """Steps along y are shorter, so that the steepest edge is not that of the largest difference."""
    units = np.array([0, -105, -105, 100, -10, -10]) * 2**40
    numerators = np.stack([2**60 + units, 2**61 - units], axis=1)
    slope = claim(MANHATTAN).steepest(numerators)
    assert slope.power == steepest(claim(MANHATTAN), numerators)
    assert (slope.anchor, slope.neighbour, slope.observable) == (0, 1, 0)


@pytest.mark.parametrize(("apart", "compared"), [(2.0**-39, 1), (1.5 * 2.0**-41, 2)])
def test_slopes_that_are_close_are_compared_exactly(
    monkeypatch: pytest.MonkeyPatch, apart: float, compared: int
) -> None:
    found: list[Fraction] = []
    exactly = Dithered._power
    monkeypatch.setattr(Dithered, "_power", lambda self, x, y: (found.append(x), exactly(self, x, y))[1])
    step = 2**57
    numerators = np.tile([2**59, 2**59, 3 * 2**60], (6, 1))
    numerators[[1, 4]] += [step, int(step * (1 - apart)), -step - int(step * (1 - apart))]
    claim(MANHATTAN).steepest(numerators)
    assert len(found) == compared


def test_equal_rows_keep_every_epsilon() -> None:
    slope = claim().steepest(np.tile([2**60, 3 * 2**60], (6, 1)))
    assert slope == Slope(Fraction(0), 0, 0, 0)
    assert claim().least(slope) == 0
    assert claim(epsilon=Fraction(1, 10**300)).holds(slope)


def test_an_observable_that_does_not_vary_does_not_hide_the_others() -> None:
    for norm in NORMS:
        numerators = np.tile([2**60, 2**60, 2**61], (6, 1))
        numerators[2] += [0, 2**50, -(2**50)]
        found = claim(norm).steepest(numerators)
        assert found.power == steepest(claim(norm), numerators) != 0
        assert found.observable == 1


def test_the_least_probability_is_not_taken_for_0() -> None:
    for norm in NORMS:
        numerators = np.tile([2**10, 2**61, 2**61 - 2**10], (6, 1))
        numerators[4] = [1, 2**61, 2**61 - 1]
        found = claim(norm).steepest(numerators)
        assert found.power == steepest(claim(norm), numerators) > 1000
        assert (found.anchor, found.observable) == (4, 0)


def test_corners_that_floats_cannot_tell_apart_are_compared_exactly() -> None:
    """Two observables differ by one unit of 2**-62 in their slope."""
    base = 2**59
    for unit in (-1, 0, 1):
        rows = [[base, base, 6 * base]] * 6
        numerators = np.array(rows)
        step = 2**55
        numerators[1] += [step, step + unit, -2 * step - unit]
        numerators[4] = numerators[1]
        found = claim(MANHATTAN).steepest(numerators)
        assert found.power == steepest(claim(MANHATTAN), numerators)
        assert found.observable == (1 if unit > 0 else 0)


def test_square_roots_are_round_up() -> None:
    for value in (Fraction(1, 3), Fraction(2), Fraction(10**30), Fraction(1, 10**30), Fraction(49, 4)):
        root = claim(EUCLIDEAN).least(Slope(value))
        assert as_decimal(root) ** 2 >= value > as_decimal(math.nextafter(root, 0)) ** 2


def test_what_is_a_float_is_not_rounded() -> None:
    for norm in NORMS:
        for root in (0.5, 0.7, 3.0):
            value = Fraction(str(root))
            assert claim(norm).least(Slope(value**2 if norm == EUCLIDEAN else value)) == root


def test_a_guess_is_corrected_either_way() -> None:
    for value in (0.3, 1.0, 40.0):
        for towards in (0.0, math.inf):
            guess = value
            for _ in range(5):
                guess = math.nextafter(guess, towards)
            assert _round_up(guess, lambda number, value=value: number >= Fraction(str(value))) == value
        assert _round_up(5e-324, lambda _: True) == 0
        assert _round_up(math.inf, lambda _: False) == math.inf


def test_the_largest_and_the_smallest_steps() -> None:
    for norm, step in itertools.product(NORMS, (Fraction(1, 10**100), Fraction(10**100))):
        found = Dithered("x", Fraction(1), norm, 2, 2, step, step)
        for numerators in ([[1, 2**62 - 1], [2**62 - 1, 1]] * 2, [[2**61, 2**61], [2**61 + 1, 2**61 - 1]] * 2):
            slope = found.steepest(np.array(numerators))
            assert slope.power is not None
            least = as_decimal(found.least(slope))
            assert 0 < slope.power <= (least**2 if norm == EUCLIDEAN else least)


def test_numbers_may_be_given_as_texts() -> None:
    made = Dithered("x", "1/3", "1", "3", 4.0, 0.1, 1)  # type: ignore[arg-type]
    assert (made.epsilon, made.step_x, made.step_y) == (Fraction(1, 3), Fraction(1, 10), 1)
    assert (made.norm, made.columns, made.rows) == (1, 3, 4)
    assert {type(number) for number in (made.norm, made.columns, made.rows)} == {int}


def evidence(epsilon: Fraction, numerators: np.ndarray, entry: Any = None) -> Evidence:
    n, m = numerators.shape
    stated = Stated.dithered("own", epsilon, EUCLIDEAN, (3, 2), STEPS)
    multipliers = None if entry is None else Multipliers((entry,))
    return Evidence(numerators, 62, np.full(n, 1 / n), np.ones((n, m)), "expected", (stated,), multipliers)


def test_certificates_say_what_holds_and_where_it_fails() -> None:
    numerators = grid(1, 3, 2, 3)
    slope = claim().steepest(numerators)
    least = claim().least(slope)
    good = certify(evidence(as_decimal(least), numerators))
    assert (good.holds, good.epsilon, good.pair) == (True, (least,), None)
    bad = certify(evidence(as_decimal(math.nextafter(least, 0)), numerators))
    assert (bad.holds, bad.epsilon, bad.pair) == (False, (least,), (slope.neighbour, slope.anchor))
    with pytest.raises(CertificateError, match="changes faster"):
        bad.require()


def test_no_multipliers_stand_for_it() -> None:
    numerators = grid(1, 3, 2, 3)
    nothing = PairMultipliers([], [], [], [])
    assert (
        certify(evidence(Fraction(100), numerators, nothing)).lower_bound
        == certify(evidence(Fraction(100), numerators)).lower_bound
    )
    for entry in (PairMultipliers([0], [1], [0], [1.0]), FloorMultipliers([], [], [])):
        with pytest.raises(InputError, match=r"multipliers.requirements\[0\]"):
            evidence(Fraction(100), numerators, entry)


def test_statements_need_whole_numbers_that_fit_the_secrets() -> None:
    stated = Stated.dithered("own", Fraction(1), EUCLIDEAN, (3, 2), STEPS)
    assert stated.claim(6) == Dithered("own", Fraction(1), EUCLIDEAN, 3, 2, *STEPS)
    assert stated.part == 0
