"""Bounds of pairs: from requirements, channels and matrices, closed along paths, never rounded below."""

from __future__ import annotations

import itertools
import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import MetricWarning
from mechdesign.leakage._bounds import pairs
from mechdesign.model._requirements._kinds import ClaimedPrivacy

INF = math.inf
LINE = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)

Exact = list[list[Fraction | float]]


def floyd_warshall(bounds: Exact) -> Exact:
    """Return the least sums along paths, exactly."""
    least = [list(row) for row in bounds]
    n = len(least)
    for k, i, j in itertools.product(range(n), repeat=3):
        if math.inf not in (least[i][k], least[k][j]):
            least[i][j] = min(least[i][j], least[i][k] + least[k][j])
    return least


def assert_just_above(found: np.ndarray, exact: Exact, ulps: float) -> None:
    """Demand floats that are not below exact numbers, and at most some units in the last place above."""
    for (i, j), value in np.ndenumerate(found):
        if exact[i][j] == INF:
            assert value == INF, (i, j)
        else:
            assert exact[i][j] <= Fraction(value) <= exact[i][j] * (1 + Fraction(ulps) / 2**52), (i, j)


def exact_matrix(values: np.ndarray, scale: Fraction = Fraction(1)) -> Exact:
    return [[INF if math.isinf(value) else scale * Fraction(value) for value in row] for row in values.tolist()]


def ln(ratio: Fraction) -> Fraction:
    """Return ln of a fraction to 80 digits."""
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


def tight(channel: md.Channel) -> Exact:
    """Return the largest ln p(o|s)/p(o|t), by brute force in exact numbers."""
    rows = [[int(entry) for entry in row] for row in channel.numerators]
    found: Exact = []
    for row in rows:
        found.append([])
        for other in rows:
            ratios = [INF if b == 0 else Fraction(a, b) for a, b in zip(row, other, strict=True) if a > 0]
            found[-1].append(INF if INF in ratios else ln(max(ratios)))
    return found


def test_a_metric_a_graph_and_a_threshold() -> None:
    assert pairs(md.MetricPrivacy(0.5, LINE)).tolist() == (LINE / 2).tolist()
    assert pairs(md.GraphPrivacy(0.5, nx.path_graph(4))).tolist() == (LINE / 2).tolist()
    assert pairs(md.ThresholdPrivacy(0.5, LINE, 2)).tolist() == [
        [0, 0.5, 0.5, 1], [0.5, 0, 0.5, 0.5], [0.5, 0.5, 0, 0.5], [1, 0.5, 0.5, 0]
    ]  # fmt: skip
    apart = pairs(md.GraphPrivacy("0.5", nx.Graph([(0, 1), (2, 3)])))
    assert apart.tolist() == [[0, 0.5, INF, INF], [0.5, 0, INF, INF], [INF, INF, 0, 0.5], [INF, INF, 0.5, 0]]
    # 0.3 is 3/10, and the float below it would be no bound.
    assert pairs(md.GraphPrivacy(0.3, nx.path_graph(2)))[0, 1] == math.nextafter(0.3, 1) > 0.3


def test_distances_that_are_no_metric_are_closed() -> None:
    given = np.array([[0, 1, 5], [2, 0, 1], [INF, 3, 0]])
    with pytest.warns(MetricWarning):
        requirement = md.MetricPrivacy("0.1", given)
    exact = floyd_warshall(exact_matrix(given, Fraction(1, 10)))
    assert exact[0][2] == Fraction(2, 10)
    assert exact[2][0] == Fraction(5, 10)
    assert_just_above(pairs(requirement), exact, 4)


def test_of_several_requirements_the_least_bound_counts() -> None:
    near, far = md.ThresholdPrivacy("0.25", LINE, 1), md.MetricPrivacy(0.5, np.minimum(LINE, 2))
    assert pairs([near, far])[0].tolist() == [0, 0.25, 0.5, 0.75]
    assert pairs((far, near)).tolist() == pairs([near, far]).tolist()
    # Together they bound a pair that each alone bounds by more.
    one, two = (md.GraphPrivacy(1, graph_of(edge)) for edge in ((0, 1), (1, 2)))
    assert pairs([one, two])[0, 2] == 2
    assert pairs(one)[0, 2] == INF


def graph_of(edge: tuple[int, int]) -> nx.Graph:
    graph = nx.empty_graph(3)
    graph.add_edge(*edge)
    return graph


def test_a_continuous_requirement_bounds_its_anchors() -> None:
    requirement = md.ContinuousPrivacy(0.5, md.Domain.anchors(columns=3, rows=2, width=2.0, height=3.0))
    along_x, along_y = (bound.factor for bound in requirement.pair_bounds)
    found = pairs(requirement)
    steps = [(place % 3, place // 3) for place in range(6)]
    exact: Exact = [
        [abs(a - c) * ln(along_x) + abs(b - d) * ln(along_y) for c, d in steps] for a, b in steps
    ]  # fmt: skip
    assert_just_above(found, exact, 6)
    # The bounds of neighbours imply those of all points, and so are not above ε times the distance.
    apart = md.distances.euclidean(requirement.domain)
    assert (found <= 0.5 * apart).all()
    claimed = ClaimedPrivacy(requirement.stated(), 6)
    assert (pairs(claimed) == found).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_bounds_of_a_channel_are_tight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(5, 4)) ** (1 + 3 * seed)
    weights[rng.random((5, 4)) < 0.1 * (seed % 3)] = 0
    weights[:, 0] += 1e-12
    weights[4] = weights[0]
    channel = md.Channel.from_matrix(weights / weights.sum(axis=1, keepdims=True))
    assert_just_above(pairs(channel), tight(channel), 8)


def test_rows_that_are_equal_or_nearly_so() -> None:
    half = 2**61
    channel = md.Channel([[half, half], [half + 1, half - 1], [half, half], [2**62, 0]])
    found = pairs(channel)
    assert found[0, 2] == found[2, 0] == 0
    assert found[3].tolist() == [found[3, 0], found[3, 1], found[3, 0], 0]
    assert found[0, 3] == found[1, 3] == INF
    assert_just_above(found, tight(channel), 8)
    assert Fraction(found[0, 1]) >= ln(Fraction(half, half - 1)) > Fraction(found[0, 1]) * (1 - Fraction(1, 10**14))


def test_a_channel_a_design_and_its_bundle_say_the_same(tmp_path: Path) -> None:
    design = md.design(md.Problem([0.25] * 4, LINE, [md.MetricPrivacy(0.5, LINE)]))
    found = pairs(design.channel)
    assert found.tolist() == pairs(design).tolist()
    md.save(design, tmp_path / "bundle", report=False)
    assert found.tolist() == pairs(tmp_path / "bundle").tolist() == pairs(str(tmp_path / "bundle")).tolist()
    # What is tight is not above what was required.
    assert (found <= pairs(design.problem.requirements) * (1 + 1e-15)).all()
    assert found.max() == pytest.approx(md.audit(design.channel, np.ones((4, 4)) - np.eye(4)).epsilon, rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_is_closed_and_never_rounded_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = rng.exponential(size=(6, 6)) * 10.0 ** rng.integers(-8, 3, size=(6, 6))
    given[rng.random((6, 6)) < 0.3] = INF
    np.fill_diagonal(given, 0)
    found = pairs(given)
    assert_just_above(found, floyd_warshall(exact_matrix(given)), 12)
    assert (np.diagonal(found) == 0).all()
    assert not found.flags.writeable
    # Entries that no path undercuts are unchanged, to the bit.
    assert ((found == given) | (found < given)).all()
    assert pairs(given.tolist()).tolist() == found.tolist()
    # Renaming the secrets renames the bounds, up to the order of sums.
    order = rng.permutation(6)
    assert np.allclose(pairs(given[np.ix_(order, order)]), found[np.ix_(order, order)], rtol=1e-14)


def test_fractions_are_rounded_up() -> None:
    third = pairs([[0, Fraction(1, 3)], [Fraction(2, 3), 0]])
    assert third[0, 1] == math.nextafter(1 / 3, 1)
    assert third[1, 0] == math.nextafter(2 / 3, 1)
    # The float 0.3 stands for itself, and 3/10 is above it.
    assert pairs([[0, Fraction(3, 10)], [0.3, 0]]).tolist() == [[0, math.nextafter(0.3, 1)], [0.3, 0]]


def test_bounds_are_distances_of_a_requirement() -> None:
    one_way = np.array([[0, 1, INF], [0.5, 0, INF], [3, 3, 0]])
    bounds = pairs(one_way)
    with pytest.warns(MetricWarning, match="is not symmetric"):
        requirement = md.MetricPrivacy(1, bounds)
    assert (pairs(requirement) == bounds).all()
    apart = 1 - np.eye(3)
    design = md.design(md.Problem([0.3, 0.3, 0.4], apart, [requirement]))
    tightest = pairs(design)
    assert (tightest <= bounds * (1 + 1e-14)).all()
    # One answer nearly rules the secret 2 out, and none tells 2 from 0 by more than 3.
    assert tightest[0, 2] > 30
    assert tightest[2, 0] == pytest.approx(3, rel=1e-6)
    # Symmetric bounds give no warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        md.MetricPrivacy(1, pairs(md.GraphPrivacy("0.7", nx.cycle_graph(5))))


def test_two_releases_add_up() -> None:
    first, second = pairs(md.MetricPrivacy(0.5, LINE)), pairs(md.ThresholdPrivacy(1, LINE, 1))
    total = pairs(np.nextafter(first + second, INF))
    assert_just_above(total, floyd_warshall(exact_matrix(LINE, Fraction(3, 2))), 8)
