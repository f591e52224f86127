from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.certify import _privacy as privacy
from mechdesign.certify._claims import ExponentBound, PairBound, RatioBound
from mechdesign.certify._exact import exact, float_up
from mechdesign.certify._exponential import ln_upper
from mechdesign.certify._privacy import check, realised
from mechdesign.errors import InputError

CAREFUL = decimal.Context(prec=150, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
ONE = 2**62


def exponential(power: Fraction) -> Fraction:
    return Fraction(CAREFUL.exp(CAREFUL.divide(Decimal(power.numerator), Decimal(power.denominator))))


def largest_allowed(epsilon: Fraction, weight: float, below: int) -> int:
    """Return the largest numerator that exp(epsilon * weight) allows beside `below`, at most 2**62."""
    power = epsilon * Fraction(weight)
    if power > 43:
        return ONE if below else 0
    return min(ONE, math.floor(exponential(power) * below))


def one_pair(epsilon: Fraction, weight: float) -> PairBound:
    return ExponentBound("metric", epsilon, [0], [1], [weight])


def column(above: int, below: int) -> np.ndarray:
    return np.array([[above], [below]], dtype=np.int64)


def some_numerator(random: np.random.Generator) -> int:
    """Return any numerator, a power of two, a small or a large one."""
    sort, small = int(random.integers(4)), int(random.integers(0, 1001))
    return [int(random.integers(0, ONE + 1)), 2 ** (small % 63), small, ONE - small][sort]


def some_epsilon(random: np.random.Generator) -> Fraction:
    power = Fraction(10.0 ** random.uniform(-6, 2)).limit_denominator(10**6)
    return Fraction(3, 5) if random.random() < 0.5 else max(power, Fraction(1, 10**6))


def some_weight(random: np.random.Generator) -> float:
    return [0.0, 1.0, 10.0 ** random.uniform(-12, 4), 10.0 ** (random.integers(-40, 14) / 3)][random.integers(4)]


def test_one_unit_decides() -> None:
    moved = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        epsilon, weight, below = some_epsilon(random), some_weight(random), some_numerator(random)
        allowed = largest_allowed(epsilon, weight, below)
        bound = one_pair(epsilon, weight)
        assert check(column(allowed, below), 62, bound) is None, seed
        if allowed < ONE:
            violation = check(column(allowed + 1, below), 62, bound)
            assert violation is not None, seed
            assert (violation.pair, violation.observable) == ((0, 1), 0), seed
            assert violation.excess > 0, seed
            moved += 1
    assert moved > 150


def test_realised_is_the_least_float_that_passes() -> None:
    least = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        weight, above, below = some_weight(random) or 2.0, some_numerator(random), some_numerator(random)
        channel = column(above, below)
        found = realised(channel, 62, one_pair(Fraction(1), weight))
        if above <= below:
            assert found == 0, seed
        elif not below:
            assert found == math.inf, seed
        else:
            assert check(channel, 62, one_pair(exact(found), weight)) is None, seed
            before = math.nextafter(found, 0)
            assert before == 0 or check(channel, 62, one_pair(exact(before), weight)) is not None, seed
            least += 1
    assert least > 40


def channels(count: int) -> Iterator[tuple[int, np.ndarray, PairBound]]:
    """Yield a seed, a channel and a bound: few different values make ties, a narrow range makes ratios close to 1."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        n, m = random.integers((2, 1), (5, 5)).tolist()
        sorts = random.integers(0, 3, (n, m))
        near = random.integers(2**61, 2**61 + 4, (n, m))
        channel = np.choose(sorts, [random.integers(0, 6, (n, m)), near, random.integers(0, ONE + 1, (n, m))])
        weights = random.choice([0.0, 1.0, 2.0, 1e-12, 1e-3, 50.0, 1e4], (n, n))
        weights = np.where(random.random((n, n)) < 0.5, weights, random.random((n, n)) * 10.0 ** random.integers(-3, 5))
        yield seed, channel, PairBound.metric(some_epsilon(random), weights)


def brute_force(channel: np.ndarray, bound: PairBound) -> float:
    """Return the largest excess N_s / (g N_t) - 1, at most 0 if the bound holds."""
    worst = Fraction(-1)
    for s, t, weight in zip(bound.sources.tolist(), bound.targets.tolist(), bound.weights.tolist(), strict=True):
        power = bound.epsilon * Fraction(weight)
        for above, below in zip(channel[s].tolist(), channel[t].tolist(), strict=True):
            if above and not below:
                return math.inf
            if above:
                worst = max(worst, Fraction(above, below) / exponential(min(power, Fraction(100))) - 1)
    return float(worst)


def test_whole_channels_against_brute_force() -> None:
    kept = 0
    for seed, channel, bound in channels(150):
        worst = brute_force(channel, bound)
        violation = check(channel, 62, bound)
        assert (violation is None) == (worst <= 0), seed
        kept += violation is None
        if violation is not None:
            assert violation.excess == pytest.approx(worst, rel=1e-9), seed
            weight = _weight(bound, violation)
            one = replace(bound, sources=[violation.source], targets=[violation.target], weights=[weight])
            assert brute_force(channel[:, [violation.observable]], one) == pytest.approx(worst, rel=1e-9), seed
    assert 10 < kept < 140


def test_realised_of_whole_channels() -> None:
    for seed, channel, bound in channels(60):
        found = realised(channel, 62, bound)
        if found == 0:
            # No ε is small enough to break the bound.
            assert check(channel, 62, replace(bound, epsilon=Fraction(1, 10**300))) is None, seed
        elif found == math.inf:
            assert check(channel, 62, replace(bound, epsilon=Fraction(10**300))) is not None, seed
        else:
            assert check(channel, 62, replace(bound, epsilon=exact(found))) is None, seed
            before = math.nextafter(found, 0)
            assert before == 0 or check(channel, 62, replace(bound, epsilon=exact(before))) is not None, seed


def _weight(bound: PairBound, violation: privacy.Violation) -> float:
    return float(bound.weights[(bound.sources == violation.source) & (bound.targets == violation.target)][0])


def test_results_do_not_depend_on_how_pairs_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    distance = random.random((12, 12)) * 3
    channel = random.integers(1, 2**40, (12, 9))
    for epsilon in (Fraction(1, 10), Fraction(20)):
        bound = PairBound.metric(epsilon, distance)
        whole = check(channel, 62, bound), realised(channel, 62, bound)
        for size in (1, 9, 100):
            monkeypatch.setattr(privacy, "_BLOCK_ENTRIES", size)
            assert (check(channel, 62, bound), realised(channel, 62, bound)) == whole
            # All cores share the work.
            monkeypatch.setattr(privacy, "_MIN_SHARED_ENTRIES", 0)
            assert (check(channel, 62, bound), realised(channel, 62, bound)) == whole
        monkeypatch.undo()


def test_a_single_unit_in_a_large_channel_is_found() -> None:
    """All rows of a geometric mechanism on a line are tight to less than one unit; then one numerator moves by one."""
    n, epsilon = 60, Fraction(1, 50)
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    values = [ONE]
    for _ in range(n):
        # The smallest that one step allows; what several steps allow follows.
        below = math.ceil(values[-1] / exponential(epsilon))
        assert largest_allowed(epsilon, 1.0, below) >= values[-1]
        values.append(below)
    whole = np.array(values)[steps + 1]
    bound = PairBound.metric(epsilon, steps.astype(float))
    assert check(whole, 62, bound) is None
    assert realised(whole, 62, bound) == 0.02
    for seed in range(3):
        channel = whole.copy()
        row, observable = np.random.default_rng(seed).integers(1, n - 1, 2).tolist()
        row = row + 1 if row == observable else row
        channel[row, observable] -= 1
        violation = check(channel, 62, bound)
        assert violation is not None
        assert (violation.target, violation.observable) == (row, observable)
        assert violation.excess < 1e-17
    assert realised(channel, 62, bound) > 0.02


def test_observables_that_never_occur_do_not_matter() -> None:
    random = np.random.default_rng(3)
    bound = PairBound.metric(Fraction(1, 2), random.random((8, 8)) * 3)
    channel = random.integers(1, 2**40, (8, 5))
    wide = np.zeros((8, 9), dtype=np.int64)
    wide[:, [1, 2, 5, 7, 8]] = channel
    narrow, found = check(channel, 62, bound), check(wide, 62, bound)
    assert narrow is not None
    assert found is not None
    assert (found.source, found.target, found.excess) == (narrow.source, narrow.target, narrow.excess)
    assert found.observable == [1, 2, 5, 7, 8][narrow.observable]
    assert realised(wide, 62, bound) == realised(channel, 62, bound)
    nothing = np.zeros((8, 9), dtype=np.int64)
    assert check(nothing, 62, bound) is None
    assert realised(nothing, 62, bound) == 0


def test_weight_zero_means_equal() -> None:
    bound = ExponentBound("metric", Fraction(1), [0, 1], [1, 0], [0.0, 0.0])
    assert check(column(7, 7), 62, bound) is None
    assert realised(column(7, 7), 62, bound) == 0
    for channel in (column(ONE, ONE - 1), column(ONE - 1, ONE), column(0, 1)):
        assert check(channel, 62, bound) is not None
        assert realised(channel, 62, bound) == math.inf


def test_a_huge_bound_still_asks_zero_to_go_with_zero() -> None:
    bound = ExponentBound("metric", Fraction(10**4), [0, 1], [1, 0], [1e300, 1e300])
    assert check(column(ONE, 1), 62, bound) is None
    violation = check(column(ONE, 0), 62, bound)
    assert violation is not None
    assert violation.excess == math.inf
    assert "secret 0 gives observable 0 and secret 1 never does" in violation.sentence


def test_sentence_names_pair_and_bound() -> None:
    violation = check(column(3, 1), 62, one_pair(Fraction(3, 5), 1.0))
    assert violation is not None
    assert violation.sentence == "p(0 | 0) exceeds exp(0.6 · 1.0) · p(0 | 1) by a factor of 1 + 0.646"


def test_no_pairs_ask_nothing() -> None:
    bound = ExponentBound("graph", Fraction(1), [], [], [])
    assert check(column(1, 0), 62, bound) is None
    assert realised(column(1, 0), 62, bound) == 0


@pytest.mark.parametrize("ask", [check, realised])
def test_what_is_no_channel_is_refused(ask: object) -> None:
    bound = one_pair(Fraction(1), 1.0)
    for channel, exponent in [
        (np.array([[0.5], [0.5]]), 62),
        (np.array([5, 5]), 62),
        (np.zeros((2, 0), dtype=np.int64), 62),
        (column(-1, 5), 62),
        (column(5, 5), 2),
        (column(5, 5), 63),
        (np.array([[5]]), 62),
    ]:
        with pytest.raises(InputError):
            ask(channel, exponent, bound)  # type: ignore[operator]


def test_weights_one_step_apart_are_compared_exactly() -> None:
    """The quotients of logarithm and weight differ by a few floats."""
    a, b = 2**61, 2**61 - 2**55
    below = 1.0
    for _ in range(20):
        below = math.nextafter(below, 0)
    for weights in ([1.0, below], [below, 1.0]):
        bound = ExponentBound("metric", Fraction(1), [0, 0], [1, 2], weights)
        channel = np.array([[a], [b], [b]])
        assert realised(channel, 62, bound) == float_up(ln_upper(a, b) / Fraction(below))


def test_ratios_that_floats_hardly_tell_apart_are_compared_exactly() -> None:
    below = 2**61
    for differences in ([2**60, 2**60 + 2**11], [2**60 + 2**11, 2**60]):
        channel = np.array([[below + difference for difference in differences], [below, below]])
        found = realised(channel, 62, ExponentBound("metric", Fraction(1), [0], [1], [1.0]))
        assert found == float_up(ln_upper(below + max(differences), below))
        factor = realised(channel, 62, RatioBound("near", Fraction(2), [0], [1], [1], [1]))
        assert factor == float_up(Fraction(below + max(differences), below))


def test_a_ratio_that_floats_put_second_is_the_largest() -> None:
    """273 · fl(1/182) is above 3/2; the other ratio is above 3/2, and its float is not."""
    tops, bottoms = [273, 486913481456759629], [182, 324608987637839752]
    bound = RatioBound("near", Fraction(2), [0], [1], [1], [1])
    assert realised(np.array([tops, bottoms]), 62, bound) == math.nextafter(1.5, 2)
    assert realised(np.array([tops[:1], bottoms[:1]]), 62, bound) == 1.5


def test_channels_may_have_any_exponent_from_1_to_62() -> None:
    bound = ExponentBound("metric", Fraction(1), [0], [1], [1.0])
    for exponent in (1, 62):
        assert check(column(1, 1), exponent, bound) is None
    with pytest.raises(InputError, match="numerators: has entries out of range"):
        check(column(3, 1), 1, bound)
    for exponent in (0, 63):
        with pytest.raises(InputError, match="numerators: has entries out of range"):
            check(column(1, 1), exponent, bound)


def test_the_factor_of_the_pair_at_fault_is_named() -> None:
    bound = RatioBound("near", Fraction(1), [0, 0, 1], [1, 2, 2], [2, 3, 5], [1, 1, 1])
    violation = check(np.array([[40], [20], [10]]), 62, bound)
    assert violation is not None
    assert violation.pair == (0, 2)
    assert "p(0 | 0) exceeds 3 · p(0 | 2)" in violation.sentence


def test_the_first_of_equally_broken_bounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = RatioBound("near", Fraction(1), [0, 1], [2, 2], [2, 2], [1, 1])
    monkeypatch.setattr(privacy, "_BLOCK_ENTRIES", 1)
    violation = check(np.array([[40], [40], [10]]), 62, bound)
    assert violation is not None
    assert violation.pair == (0, 2)


def test_least_factors_of_the_smallest_numbers() -> None:
    bound = RatioBound("near", Fraction(4), [0, 1], [1, 0], [1, 2], [2, 1])
    # Factors are those of 4 · 1/2 and 4 · 2/1; zero goes with zero.
    assert realised(np.array([[5, 0], [1, 0]]), 62, bound) == 10
    assert realised(np.array([[1, 0], [1, 0]]), 62, bound) == 2
    assert realised(np.array([[1, 0], [5, 0]]), 62, bound) == 2.5
    assert realised(np.array([[5, 8], [1, 2]]), 62, bound) == 10
    assert realised(np.array([[1, 1], [1, 0]]), 62, bound) == math.inf
    # Numerators of 2 and 1 ask for less than equality.
    assert realised(np.array([[7], [7]]), 62, RatioBound("near", Fraction(1), [0], [1], [2], [1])) == 0.5


def test_least_epsilons_of_the_smallest_numbers() -> None:
    bound = ExponentBound("metric", Fraction(1), [0], [1], [1.0])
    assert realised(np.array([[5, 8], [1, 2]]), 62, bound) == float_up(ln_upper(5, 1))
    # Zero goes with zero.
    assert realised(np.array([[0, 6], [0, 3]]), 62, bound) == float_up(ln_upper(2, 1))


def test_the_largest_quotient_of_logarithm_and_weight_decides() -> None:
    """Neither the largest ratio nor the least weight does."""
    bound = ExponentBound("metric", Fraction(1), [0, 1], [1, 2], [1.0, 25.0])
    channel = np.array([[121 * 10**6], [110 * 10**6], [10**7]])
    assert realised(channel, 62, bound) == float_up(ln_upper(11, 1) / 25)
    channel = np.array([[122 * 10**6], [110 * 10**6], [10**7]])
    assert realised(channel, 62, bound) == float_up(ln_upper(122, 110))


def test_ratios_that_floats_put_close_together_are_compared_exactly() -> None:
    """The floats may rank a smaller ratio first."""
    bound = ExponentBound("metric", Fraction(1), [0], [1], [1.0])
    channel = np.array([[2**41 + 1, 2**41], [2**40, 2**40]])
    for apart, found in ((0.0, 2**41 + 1), (1.5 * 2.0**-49, 2**41 + 1), (2.0**-47, 2**41)):
        inverse = np.array([[1.0, 1.0], [(1 - apart) / (2**40 + 1), 2.0**-40]])
        growth = privacy._growth(channel, inverse, bound, slice(0, 1)).max(axis=1)
        assert list(privacy._candidates(channel, inverse, bound, growth)) == [(1.0, found, 2**40)], apart


def test_a_ratio_on_the_edge_is_compared_too() -> None:
    bound = ExponentBound("metric", Fraction(1), [0], [1], [1.0])
    channel = np.array([[2**41 + 2**40, 2**41], [2**40, 2**40]])
    inverse = np.array([[1.0, 1.0], [(1 - 2.0**-48) * 2.0**-41, 2.0**-40]])
    assert privacy._growth(channel, inverse, bound, slice(0, 1)).tolist() == [[1 - 2.0**-48, 1.0]]
    assert list(privacy._candidates(channel, inverse, bound, np.ones(1))) == [(1.0, 3 * 2**40, 2**40)]
    two = ExponentBound("metric", Fraction(1), [0, 0], [1, 2], [1.0, 1.0])
    channel = np.array([[2**41], [2**40], [2**39]])
    inverse = np.array([[1.0], [2.0**-40], [(1 - 2.0**-48) / (3 * 2**39)]])
    growth = np.array([1.0, 1 - 2.0**-48])
    assert (privacy._growth(channel, inverse, two, slice(0, 2))[:, 0] == growth).all()
    assert list(privacy._candidates(channel, inverse, two, growth)) == [(1.0, 2**41, 2**39)]


def test_a_bound_of_another_form_has_no_least_number() -> None:
    class Another(RatioBound):
        pass

    class Stray(PairBound):
        number = "x"
        nominal = exponents = terms = None
        factors_below = factors_above = sentence = None

        def __init__(self) -> None:
            for name in ("sources", "targets"):
                object.__setattr__(self, name, np.zeros(1, dtype=np.int64))

    assert realised(column(7, 7), 62, Another("near", Fraction(1), [0], [1], [1], [1])) == 1
    with pytest.raises(InputError, match="has an unknown type; found 'Stray'"):
        realised(column(7, 7), 62, Stray())


@pytest.mark.parametrize(
    ("pairs", "observables", "parts"),
    [(5, 2**15, [(0, 2), (2, 4), (4, 5)]), (3, 2**17, [(0, 1), (1, 2), (2, 3)]), (5, 1, [(0, 5)]), (0, 1, [])],
)
def test_so_many_entries_are_worked_on_at_a_time(pairs: int, observables: int, parts: list[tuple[int, int]]) -> None:
    assert privacy._BLOCK_ENTRIES == 2**16
    assert [(part.start, part.stop) for part in privacy._blocks(pairs, observables)] == parts


def test_a_least_epsilon_that_were_too_small_is_enlarged_until_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps grow, so that logarithms could be far off."""
    channel, bound = column(3, 1), ExponentBound("metric", Fraction(1), [0], [1], [1.0])
    least = realised(channel, 62, bound)
    monkeypatch.setattr(privacy, "ln_upper", lambda a, b: ln_upper(a, b) * (1 - Fraction(1, 2**45)))
    found = realised(channel, 62, bound)
    assert check(channel, 62, replace(bound, epsilon=exact(found))) is None
    steps, low = 0, float_up(ln_upper(3, 1) * (1 - Fraction(1, 2**45)))
    while low < found:
        low, steps = math.nextafter(low, math.inf), steps + 1
    assert found > least
    assert steps in {2**k - 1 for k in range(2, 12)}


@pytest.mark.parametrize("weight", [Fraction(1, 10**30), Fraction(1, 10**3), 1])
def test_a_zero_under_a_number_is_infinite_beside_any_steep_pair(weight: Fraction) -> None:
    channel = np.array([[0, 1 << 62], [1, (1 << 62) - 1], [1 << 61, 1 << 61]])
    bound = PairBound.metric(1, np.array([[0.0, 2.0, 2.0], [2.0, 0.0, float(weight)], [2.0, float(weight), 0.0]]))
    assert realised(channel, 62, bound) == math.inf
