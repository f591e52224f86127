"""The sampled law is the stated one to the last bit; masses, variances and quantiles are those of the law."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
import pytest
from long import mostly_long
from scipy import stats

from mechdesign.mechanisms import _discrete as sampling
from mechdesign.mechanisms._discrete import LARGEST_VALUE, DiscreteGaussian, DiscreteLaplace, DiscreteNoise, exp_minus

LAWS = [
    DiscreteLaplace(Fraction(1, 10)),
    DiscreteLaplace(1),
    DiscreteLaplace(Fraction(7, 2)),
    DiscreteLaplace(200),
    DiscreteLaplace(Fraction(100_000, 3)),
    DiscreteGaussian(Fraction(1, 7)),
    DiscreteGaussian(Fraction(5, 3)),
    DiscreteGaussian(200**2),
    DiscreteGaussian(Fraction(10**10, 7)),
]
IDS = [str(law) for law in LAWS]
EXACT = 320


@cache
def exponential(x: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose exp(-x) by its alternating series, which is bounded by its partial sums, and squaring."""
    halvings = 0
    while x > Fraction(1, 2):
        x, halvings = x / 2, halvings + 1
    term, low, high = Fraction(1), Fraction(0), Fraction(1)
    partial = Fraction(1)
    for n in range(1, 400):
        term = Fraction(floor(term * -x / n * 2 ** (EXACT + 64)), 2 ** (EXACT + 64))
        partial += term
        if abs(term) < Fraction(1, 2 ** (EXACT + 40)):
            break
    slack = Fraction(1, 2 ** (EXACT + 30))
    low, high = max(partial - slack, Fraction(0)), partial + slack
    for _ in range(halvings):
        low = Fraction(floor(low * low * 2 ** (EXACT + 60)), 2 ** (EXACT + 60))
        high = Fraction(floor(high * high * 2 ** (EXACT + 60)) + 1, 2 ** (EXACT + 60))
    return low, high


@cache
def cumulative(law: DiscreteNoise) -> list[tuple[Fraction, Fraction]]:
    """Enclose the thresholds by summing far beyond the precision of the words."""
    width = 1 << sampling.block_bits(law)
    first = exponential(law.exponent(width))
    weights = [(Fraction(1), Fraction(1))]
    while weights[-1][1] > Fraction(1, 2**200):
        if isinstance(law, DiscreteLaplace):
            unit = 2**EXACT
            low, high = weights[-1][0] * first[0] * unit, weights[-1][1] * first[1] * unit
            weights.append((Fraction(floor(low), unit), Fraction(floor(high) + 1, unit)))
        else:
            weights.append(exponential(law.exponent(len(weights) * width)))
    # What is left out is below 2**-190 for all laws here: their ratio of neighbours is below 1 - 2**-9.
    rest = Fraction(1, 2**190)
    lows = list(itertools.accumulate(low for low, _ in weights))
    highs = list(itertools.accumulate(high for _, high in weights))
    return [(low / (highs[-1] + rest), high / lows[-1]) for low, high in zip(lows, highs, strict=True)]


def fed(*answers: list[int]) -> Callable[[int], np.ndarray]:
    """Return a source of words that gives the stated ones."""
    queue = [np.array(answer, dtype=np.uint64) for answer in answers]

    def words(n: int) -> np.ndarray:
        given = queue.pop(0)
        assert given.size == n
        return given

    return words


def test_enclosures_of_the_exponential() -> None:
    numbers = (Fraction(0), Fraction(1, 10**30), Fraction(1, 3), Fraction(5), Fraction(44), Fraction(70))
    for x, bits in itertools.product(numbers, (8, 64, 256)):
        low, high = exp_minus(x, bits)
        true_low, true_high = exponential(x)
        assert Fraction(low, 2**bits) <= true_high, (x, bits)
        assert true_low <= Fraction(high, 2**bits), (x, bits)
        assert 0 <= low <= high <= min(low + 2, 2**bits), (x, bits)


@pytest.mark.slow
@pytest.mark.parametrize("law", mostly_long([LAWS[2], LAWS[6], *LAWS[:2], *LAWS[3:6], *LAWS[7:]], 2), ids=str)
@pytest.mark.parametrize("bits", [64, 128])
def test_thresholds_agree_with_the_law_to_the_last_bit(law: DiscreteNoise, bits: int) -> None:
    table = sampling.thresholds(law, bits)
    for (low, high), (true_low, true_high) in zip(
        zip(table.low, table.high, strict=True), cumulative(law), strict=False
    ):
        # Integers next to 2**bits·t on either side, and not a unit more.
        assert low <= true_low * 2**bits
        assert true_high * 2**bits <= high
        assert high - low == 1
    assert table.high[-1] == 2**bits
    assert table.low[-1] >= 2**bits - 3


@pytest.mark.parametrize("law", [law for law in LAWS if law.spread < 2], ids=str)
def test_decisions_satisfy_the_policy(law: DiscreteNoise) -> None:
    # The law that words of any length decide: exp(-g(k)) P(0) lies within what is decided and what is left open, for
    # every k; so P(k)/P(k + d) is exp(g(k + d) - g(k)), which for the geometric law is at most exp(d/b).
    for bits in (64, 256):
        table = sampling.thresholds(law, bits)
        decided = [table.low[0]] + [max(low - high, 0) for low, high in zip(table.low[1:], table.high, strict=False)]
        possible = [table.high[0]] + [high - low for low, high in zip(table.low, table.high[1:], strict=False)]
        for k in range(len(decided) - 1):
            low, high = exponential(law.exponent(k))
            assert decided[k] <= high * possible[0]
            assert low * decided[0] <= possible[k]
            assert possible[k] - decided[k] <= 2
            if isinstance(law, DiscreteLaplace):
                ratio = exponential(1 / law.scale)
                assert ratio[0] * decided[k] <= possible[k + 1]
                assert ratio[0] * decided[k + 1] <= possible[k]


@pytest.mark.parametrize(
    "law", [law if law.spread < 200 or law in LAWS[5:] else pytest.param(law, marks=pytest.mark.slow) for law in LAWS]
)
def test_every_threshold_decides_where_it_should(law: DiscreteNoise) -> None:
    table = sampling.thresholds(law, 64)
    finer = sampling.thresholds(law, 128)
    # All of the first ones, and some of the others, which are alike.
    for j in (*range(min(20, len(table.low) - 1)), *range(20, len(table.low) - 1, 7)):
        low, high = table.low[j], table.high[j]
        if table.low[j + 1] > high and (j == 0 or table.high[j - 1] < low):
            assert sampling._blocks(law, np.array([low - 1, high], dtype=np.uint64), fed()).tolist() == [j, j + 1]
            # A word that meets the enclosure asks for another, and is decided by the finer one.
            assert finer.low[j] >> 64 == low
            rest = finer.low[j] & (2**64 - 1)
            if 0 < rest < 2**64 - 2:
                word = np.array([low], dtype=np.uint64)
                assert sampling._blocks(law, word, fed([rest - 1])).tolist() == [j]
                assert sampling._blocks(law, word, fed([rest + 1])).tolist() == [j + 1]
                assert sampling._blocks(law, word, fed([rest], [0])).tolist() == [j]
                assert sampling._blocks(law, word, fed([rest], [2**64 - 1])).tolist() == [j + 1]


def test_the_tail_is_drawn_too() -> None:
    law = DiscreteLaplace(1)
    last = len(sampling.thresholds(law, 64).low)
    word = np.array([2**64 - 1], dtype=np.uint64)
    far = sampling._blocks(law, word, fed([2**64 - 1], [2**64 - 1], [0]))[0]
    # exp(-k) is near 2**-192 there.
    assert far > last
    assert 130 <= far <= 134


@pytest.mark.parametrize("law", [law for law in LAWS if sampling.block_bits(law)], ids=str)
def test_trials_within_a_block_are_kept_with_the_stated_probability(law: DiscreteNoise) -> None:
    shift = sampling.block_bits(law)
    slopes = sampling._slopes(law)
    for block in {0, 1, 2, 10, len(slopes) // 2, len(slopes) - 1, len(slopes) + 5}:
        for offset in {1, (1 << shift) // 2, (1 << shift) - 1}:
            lost = law.exponent((block << shift) + offset) - law.exponent(block << shift)
            low, high = exponential(lost)
            edge = floor(low * 2**64)
            assert floor(high * 2**64) == edge
            if block < len(slopes) and slopes[block]:
                # The bound that needs no exponential is one.
                assert 2**64 - int(slopes[block]) * offset <= high * 2**64
            blocks = np.array([block] * 2, dtype=np.int64)
            offsets = np.array([offset] * 2, dtype=np.uint64)
            words = np.array([edge - 1, edge + 1], dtype=np.uint64)
            assert sampling._accept(law, blocks, offsets, words, fed()).tolist() == [True, False]
            finer = floor(low * 2**128) & (2**64 - 1)
            word = np.array([edge], dtype=np.uint64)
            assert sampling._accept(law, blocks[:1], offsets[:1], word, fed([finer - 1])).tolist() == [True]
            assert sampling._accept(law, blocks[:1], offsets[:1], word, fed([finer + 1])).tolist() == [False]
        first = np.zeros(1, dtype=np.uint64)
        assert sampling._accept(law, np.array([block]), first, ~first, fed()).tolist() == [True]


def test_signs_and_zero() -> None:
    law = DiscreteLaplace(1)
    zero, one = 0, sampling.thresholds(law, 64).high[0] + 5
    # Trials: +0, -0, +1, -1 and the rest +0; minus zero is no draw.
    padding = [0] * 15
    drawn = sampling.draw(law, 3, fed([zero, zero, one, one, *padding], [0, 1, 0, 1, *padding]))
    assert drawn.tolist() == [0, 1, -1]


@pytest.mark.parametrize("law", LAWS, ids=IDS)
def test_draws_fit_the_law(law: DiscreteNoise) -> None:
    drawn = law.sample(60_000, np.random.default_rng(5))
    edges = np.unique(np.array([law.half_width(c) for c in (0.2, 0.5, 0.8, 0.95, 0.99)]))
    shares = np.searchsorted(edges, np.abs(drawn), side="left")
    observed = np.bincount(shares, minlength=edges.size + 1)
    inside = (
        np.array([float(sum(mass(law, k) for k in range(-int(t), int(t) + 1))) for t in edges])
        if law.spread < 64
        else None
    )
    if inside is not None:
        expected = np.diff(np.concatenate([[0.0], inside, [1.0]])) * drawn.size
        used = expected > 5
        assert (
            stats.chisquare(observed[used], expected[used] * observed[used].sum() / expected[used].sum()).pvalue > 1e-4
        )
    scale = law.standard_deviation / drawn.size**0.5
    assert abs(drawn.mean()) <= 5 * scale
    assert (drawn > 0).sum() == pytest.approx((drawn < 0).sum(), abs=5 * drawn.size**0.5)
    if law.spread >= 64:
        assert drawn.var() == pytest.approx(law.variance, rel=0.02)


def mass(law: DiscreteNoise, k: int) -> Fraction:
    return law.mass(k)[0]


@pytest.mark.parametrize("law", [law for law in LAWS if law.spread < 60], ids=str)
def test_masses(law: DiscreteNoise) -> None:
    brackets = [law.mass(k) for k in range(-20 * law.spread - 50, 20 * law.spread + 51)]
    assert sum(low for low, _ in brackets) <= 1 <= sum(high for _, high in brackets) + Fraction(1, 10**5)
    numbers = np.arange(-(len(brackets) // 2), len(brackets) // 2 + 1)
    middle = np.array([float(low + high) / 2 for low, high in brackets])
    assert (numbers**2 * middle).sum() == pytest.approx(law.variance, rel=1e-5, abs=1e-12)
    if isinstance(law, DiscreteLaplace):
        low, high = exponential(1 / law.scale)
        for k in (0, 1, 5):
            bracket = law.mass(k)
            assert bracket[0] <= (1 - low) / (1 + low) * high**k
            assert (1 - high) / (1 + high) * low**k <= bracket[1]


@pytest.mark.parametrize("law", [law for law in LAWS if law.spread < 300], ids=str)
def test_half_widths_cover_and_are_least(law: DiscreteNoise) -> None:
    for confidence in ("0.5", "0.95", "0.999"):
        t = law.half_width(confidence)
        covered = sum(law.mass(k)[0] for k in range(-t, t + 1))
        assert covered >= Fraction(confidence) - Fraction(1, 10**15), confidence
        if not (isinstance(law, DiscreteGaussian) and law.spread >= 64):
            assert sum(law.mass(k)[1] for k in range(-t + 1, t)) < Fraction(confidence), confidence


def test_wide_laws() -> None:
    law = DiscreteLaplace(2**50)
    drawn = law.sample(1000, 3)
    assert drawn.std() == pytest.approx(2**50.5, rel=0.3)
    assert law.half_width("0.95") == pytest.approx(2**50 * np.log(20), rel=1e-9)
    gauss = DiscreteGaussian(2**100)
    assert gauss.sample(1000, 3).std() == pytest.approx(2**50, rel=0.2)
    assert gauss.half_width(0.95) == pytest.approx(2**50 * 1.959964, rel=1e-6)


def test_narrow_laws() -> None:
    for law in (DiscreteLaplace("1e-400"), DiscreteGaussian("1e-400")):
        assert not law.sample(1000).any()
        assert law.variance == pytest.approx(0, abs=1e-300)
        assert law.half_width(0.95) == 0


def test_sums_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    law = DiscreteLaplace(1)
    values = np.array([LARGEST_VALUE, -LARGEST_VALUE, 0])
    noisy = law.add(values, 1)
    assert np.abs(noisy).max() <= LARGEST_VALUE
    for place in (2**62 // 7 * 7 + 7, 2**70):
        monkeypatch.setattr(sampling, "_refine_block", lambda *_, place=place: place)
        last = np.array([2**64 - 1], dtype=np.uint64)
        assert sampling._blocks(law, last, fed()).tolist() == [sampling.LARGEST_NOISE]


def test_rehearsals_repeat_and_releases_do_not() -> None:
    law = DiscreteLaplace(10)
    assert law.sample(50, 1).tolist() == law.sample(50, np.random.default_rng(1)).tolist()
    assert law.sample(50).tolist() != law.sample(50).tolist()
    assert law.sample(0).size == 0


def test_opendp_draws_the_same_law() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: it only serves as an oracle here")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=3.0)
    theirs = np.array(measurement([0] * 20_000))
    ours = DiscreteLaplace(3).sample(20_000, 7)
    table = np.array([[(np.abs(x) == k).sum() for k in range(10)] + [(np.abs(x) >= 10).sum()] for x in (theirs, ours)])
    assert stats.chi2_contingency(table).pvalue > 1e-4
