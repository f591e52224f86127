"""Cumulative histograms: expected errors match the measured ones, intervals cover the truth, wrong input is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long import mostly_long
from releases import release_counts
from scipy import integrate, stats

import mechdesign as md
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.tables._queries import _cumulative as cumulative
from mechdesign.tables._queries import _trees as range_noise
from mechdesign.tables._queries._cumulative_release import CumulativeRelease, quantile, range_query

SPARSE = np.zeros(64, dtype=np.int64)
SPARSE[[3, 20, 21, 50]] = [100, 40, 7, 500]
DENSE = np.random.default_rng(8).integers(0, 30, 64)


def truths(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["ordered", "ordered-hierarchical"])
def test_inference_helps(mechanism: str) -> None:
    # The projection on a convex set that contains the truth never moves away from it.
    before = after = 0.0
    for seed in range(30):
        release = release_counts(SPARSE, 8, "0.5", mechanism, rng=seed)
        first = ((release.linear - truths(SPARSE)) ** 2).sum()
        second = ((release.answers - truths(SPARSE)) ** 2).sum()
        assert second <= first + 1e-9
        before, after = before + first, after + second
    assert after < 0.7 * before


def test_inference_is_the_nearest_monotone_vector() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        linear = np.append(rng.normal(20, 15, 11), 40.0)
        answers = cumulative._fit_monotone(linear, 40)
        assert (np.diff(answers) >= 0).all()
        assert answers[0] >= 0
        assert answers[-1] == 40
        # The variational inequality of the projection.
        for _ in range(50):
            other = np.append(np.sort(rng.uniform(0, 40, 11)), 40.0)
            assert (linear - answers) @ (other - answers) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "epsilon"), [(1, "0.3"), (4, 1), (64, 1), (8, 10)])
@pytest.mark.parametrize("confidence", mostly_long(["0.95", "0.5"]))
def test_intervals_cover(theta: int, epsilon: object, confidence: str) -> None:
    hits: dict[str, list[float]] = {"ordered": [], "ordered-hierarchical": []}
    ranges = [(0, 10), (5, 30), (17, 17), (20, 63), (0, 63), (8, 15)]
    for name, found in hits.items():
        for seed in range(50):
            release = release_counts(DENSE, theta, epsilon, name, rng=seed, confidence=confidence)
            covered = (release.low <= truths(DENSE)) & (truths(DENSE) <= release.high)
            found.append(covered.mean())
            for low, high in ranges:
                ends = range_query(release, low, high).interval()
                found.append(float(ends[0] <= DENSE[low : high + 1].sum() <= ends[1]))
        assert np.mean(found) >= float(confidence) - 0.03


@pytest.mark.slow
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}])
def test_intervals_of_strategies_cover(budget: dict[str, Any]) -> None:
    domain = md.tables.Domain({"value": range(64)})
    for policy in (md.tables.Policy.full(domain), md.tables.Policy.partition(domain, np.arange(64) // 16)):
        query, found = md.tables.Cumulative(), []
        for seed in range(50):
            release = query.release(policy=policy, counts=DENSE, rng=seed, confidence="0.5", **budget)
            assert (np.diff(release.answers) >= 0).all()
            covered = (release.low <= truths(DENSE)) & (truths(DENSE) <= release.high)
            found.append(covered.mean())
            for low, high in ((0, 10), (5, 30), (17, 17), (20, 63), (8, 15)):
                ends = range_query(release, low, high).interval()
                found.append(float(ends[0] <= DENSE[low : high + 1].sum() <= ends[1]))
        assert np.mean(found) >= 0.47


def test_the_width_for_two_counts_is_exact() -> None:
    for scale in (Fraction(1, 3), Fraction(2), Fraction(15)):
        law = DiscreteLaplace(scale)
        reach = 60 * (int(scale) + 1)
        masses = np.array([float(law.mass(k)[0]) for k in range(-reach, reach + 1)])
        both = np.convolve(masses, masses)
        for outside in (0.5, 0.1, 0.01):
            width = int(range_noise.half_width_of_two(law, outside))
            middle = 2 * reach
            assert 1 - both[middle - width : middle + width + 1].sum() <= outside + 1e-9
            assert width == 0 or 1 - both[middle - width + 1 : middle + width].sum() > outside


@pytest.mark.slow
@pytest.mark.parametrize("outside", [0.5, 0.2, 0.1, 0.08, 0.05, 0.01])
def test_no_mixture_of_laplace_noise_has_a_larger_quantile_than_the_extremes(outside: float) -> None:
    width = max(-np.log(outside) / np.sqrt(2), stats.norm.isf(outside / 2))
    # m equal shares of a unit variance: normal, with a variance that follows a gamma law.
    for m in (1, 2, 3, 5, 10, 50):
        law = stats.gamma(m, scale=1 / m)
        tail, _ = integrate.quad(
            lambda v, law=law: 2 * stats.norm.sf(width / np.sqrt(v)) * law.pdf(v), 0, 60, limit=500
        )
        assert tail <= outside * (1 + 1e-6)
    # Unequal shares, by partial fractions.
    rng = np.random.default_rng(3)
    for _ in range(500):
        shares = np.sort(rng.dirichlet(np.full(rng.integers(2, 6), 0.7)))
        if np.diff(shares).min() < 0.02 or shares[0] < 0.01:
            continue
        tail = sum(
            np.exp(-width * np.sqrt(2 / p)) * np.prod([p / (p - q) for q in shares if q != p]) for p in shares.tolist()
        )
        assert tail <= outside * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("share", ["0.001", "0.5", 1])
def test_quantiles(share: object) -> None:
    true = int(np.searchsorted(truths(DENSE), float(Fraction(str(share))) * DENSE.sum()))
    sharp = quantile(release_counts(DENSE, 1, 10**5, rng=1), share)
    assert sharp.value == int(sharp) == true
    assert sharp.interval() == (true, true)
    for mechanism in ("ordered", "ordered-hierarchical"):
        hits = []
        for seed in range(50):
            found = quantile(release_counts(DENSE, 8, "0.2", mechanism, rng=seed), share)
            assert found.low <= found.value <= found.high
            hits.append(found.low <= true <= found.high)
        assert np.mean(hits) >= 0.86


def test_range_queries() -> None:
    release = release_counts(DENSE, 1, 10**5, rng=1)
    for low, high in itertools.combinations_with_replacement((0, 1, 31, 63), 2):
        answer = range_query(release, low, high)
        assert float(answer) == DENSE[low : high + 1].sum()
        assert answer.interval() == (answer.low, answer.high)
    whole = range_query(release_counts(DENSE, 1, "0.1", rng=1), 0, 63)
    assert (whole.value, whole.standard_error, whole.low, whole.high) == (DENSE.sum(), 0, DENSE.sum(), DENSE.sum())


def test_what_a_release_says() -> None:
    ledger = md.Ledger()
    release = release_counts(DENSE, 8, "0.3", "ordered-hierarchical", fanout=2, ledger=ledger)
    said = release.description
    assert release.epsilon == Fraction(3, 10)
    (entry,) = ledger.entries
    assert (entry.protects, entry.epsilon, entry.rho) == (said.neighbours, Fraction(3, 10), None)
    assert "distance of at most 8" in said.neighbours
    assert "fan-out 2 and height 3" in said.mechanism
    assert said.spent == "ε = 0.3"
    assert not said.rehearsal
    assert release_counts(DENSE, 8, 1, rng=1).description.rehearsal
    assert (
        release.answers.tolist() != release_counts(DENSE, 8, "0.3", "ordered-hierarchical", fanout=2).answers.tolist()
    )


def test_the_whole_budget_and_sensitivity() -> None:
    assert release_counts(DENSE, 7, "0.5", rng=1).noise.node_scale == 14
    # The complete graph on 64 values changes 63 cumulative counts.
    assert release_counts(DENSE, 64, 1, rng=1).noise.node_scale == 63
    assert release_counts(DENSE, 1, "0.5", "ordered-hierarchical", rng=1).noise.node_scale == 2


def test_one_value_is_exact_and_free() -> None:
    ledger = md.Ledger(epsilon="1e-9")
    for release in (
        release_counts([7], 1, 1, ledger=ledger),
        release_counts([7], 1, 1, "ordered-hierarchical", ledger=ledger),
    ):
        assert release.answers.tolist() == [7]
        assert release.epsilon == 0
        assert float(range_query(release, 0, 0)) == 7


def test_saved_and_read_again(tmp_path: Path) -> None:
    threshold = md.tables.Policy.threshold(md.tables.Domain({"value": range(64)}), 8)
    by_strategy = md.tables.Cumulative().release(policy=threshold, counts=DENSE, rho="1/3", rng=1)
    assert by_strategy.block == 0
    both = [release_counts(DENSE, 8, "1/3", mechanism, rng=1) for mechanism in ("ordered", "ordered-hierarchical")]
    for release in (*both, by_strategy):
        md.save(release, tmp_path / "cdf", report=False)
        back = md.tables.load(tmp_path / "cdf")
        assert isinstance(back, CumulativeRelease)
        assert back.description == release.description
        for name in ("answers", "standard_errors", "low", "high", "linear"):
            assert np.array_equal(getattr(back, name), getattr(release, name)), (release, name)
        assert range_query(back, 3, 40) == range_query(release, 3, 40)


def test_intervals_of_sums_of_two_terms_cover() -> None:
    scale = 10**6
    noise = range_noise.RangeNoise(Fraction(scale), Fraction(scale))
    for share, outside in itertools.product(
        (0.3, 0.9, 0.99), ("0.3", "0.1", "0.0955", "0.093", "0.09", "0.05", "0.01")
    ):
        variance = 2 * scale**2 * (1 + share**2)
        width = float(noise.half_widths(np.array(variance), 2, 1 - Fraction(outside))) / scale
        # P(|X + sY| > t) for Laplace variables of unit scale.
        beyond = (np.exp(-width) - share**2 * np.exp(-width / share)) / (1 - share**2)
        assert beyond <= float(outside), (share, outside)
