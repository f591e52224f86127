"""ε by distance is that of brute force in exact rationals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
from matplotlib.lines import Line2D
from refusals import Mistake, assert_refused

import mechdesign as md

LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
TWO = np.array([[0.0, 1.0], [1.0, 0.0]])


def rows_of(matrix: np.ndarray) -> list[list[Fraction]]:
    rows = [[Fraction(value) for value in row] for row in matrix.tolist()]
    return [[value / sum(row) for value in row] for row in rows]


def brute_epsilon(matrix: np.ndarray, distance: np.ndarray, radius: float) -> Decimal | None:
    """Return the least ε of all pairs within the radius, to 50 digits; None where no ε holds."""
    rows, worst = rows_of(matrix), Fraction(1)
    for s, above in enumerate(rows):
        for t, below in enumerate(rows):
            if s == t or distance[s, t] > radius:
                continue
            for a, b in zip(above, below, strict=True):
                if a > b == 0:
                    return None
                if b:
                    worst = max(worst, a / b)
    with localcontext(prec=60):
        return (Decimal(worst.numerator) / Decimal(worst.denominator)).ln()


def random_channel(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    matrix = rng.dirichlet(np.full(m, 10 ** rng.uniform(-1, 1)), n)
    kind = rng.integers(0, 4)
    if kind == 0:
        matrix[rng.random((n, m)) < 0.15] = 0.0
        matrix[:, 0] += matrix.sum(axis=1) == 0
    elif kind == 1:
        matrix = matrix[:1] * (1 + rng.integers(-3, 4, (n, m)) * 2.0**-52)
    elif kind == 2:
        matrix = np.round(matrix * 8) / 8 + 2.0**-20
    places = rng.integers(0, 4, (n, 2)).astype(float)
    distance = md.distances.manhattan(md.Domain.from_points(places)).copy()
    if rng.random() < 0.2:
        distance[0, -1] = distance[-1, 0] = np.inf
    return matrix, distance


def compare(matrix: np.ndarray, distance: np.ndarray) -> int:
    """Compare with brute force; return the number of infinite ε."""
    found, infinite = md.audit(matrix, distance, weights=True), 0
    for each in found.epsilon_by_distance([0.5, 1, 2.5, 6]):
        truth = brute_epsilon(matrix, distance, each.radius)
        near = (distance <= each.radius) & ~np.eye(len(distance), dtype=bool)
        assert each.pairs == near.sum()
        if truth is None:
            assert each.epsilon == math.inf
            infinite += 1
            continue
        assert truth <= Decimal(repr(each.epsilon))
        assert truth == each.epsilon == 0 or Decimal(repr(math.nextafter(each.epsilon, 0))) < truth
        assert (each.witness is None) == (each.epsilon == 0)
        if each.witness is not None:
            (s, t), o = each.witness
            assert near[s, t]
            rows = rows_of(matrix)
            assert math.log(rows[s][o] / rows[t][o]) == pytest.approx(each.epsilon, rel=1e-9, abs=1e-15)
    return infinite


def compare_many(count: int) -> int:
    """Compare random channels with brute force; return the number of infinite ε."""
    rng = np.random.default_rng(41)
    return sum(compare(*random_channel(rng)) for _ in range(count))


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_random_channels_against_brute_force_in_rationals(count: int) -> None:
    assert count / 10 < compare_many(count) < 2 * count


def test_known_values() -> None:
    response = md.audit([[0.75, 0.25], [0.25, 0.75]], TWO)
    assert response.epsilon_by_distance([1])[0].epsilon == response.epsilon
    # Pairs at distance 0 count at every radius.
    same = md.audit([[0.5, 0.5], [0.25, 0.75]], np.zeros((2, 2)))
    assert same.epsilon_by_distance([0.1])[0].epsilon == pytest.approx(math.log(2))
    assert same.epsilon_by_distance() == ()


def test_a_certified_channel_keeps_ε_times_the_distance() -> None:
    made = md.design(md.Problem(md.Prior.uniform(4), LINE, [md.MetricPrivacy("0.7", LINE)]))
    found = md.audit(made.channel, LINE)
    losses = found.epsilon_by_distance([1, 2, 3])
    assert [each.pairs for each in losses] == [6, 10, 12]
    assert all(each.epsilon <= 0.7 * each.radius * (1 + 1e-15) for each in losses)


def test_the_radii_by_default_are_the_distances_of_pairs() -> None:
    for name, distance, radii in (
        ("a line", LINE, [1, 2, 3]),
        ("steps of rounded length", LINE * 0.1, [0.1, 0.2, 0.1 * 3]),
        ("equal up to rounding", TWO + np.array([[0, 0], [2**-50, 0]]), [1 + 2**-50]),
        ("a pair without bound", np.where(LINE == 3, np.inf, LINE), [1, 2]),
        ("one place", 0 * LINE, []),
    ):
        found = md.audit(np.full((len(distance), 1), 1.0), distance)
        assert [each.radius for each in found.epsilon_by_distance()] == radii, name
    far = np.abs(np.subtract.outer(np.arange(80.0), np.arange(80.0)))
    losses = md.audit(np.full((80, 1), 1.0), far).epsilon_by_distance()
    assert (len(losses), losses[0].radius, losses[-1].radius) == (50, 1, 79)


def test_pairs_at_the_radius_count_whatever_rounding_did() -> None:
    distance = TWO * (0.1 + 0.2)
    assert md.audit(np.eye(2), distance).epsilon_by_distance([0.3])[0].epsilon == math.inf


FOUND = md.audit([[0.75, 0.25], [0.25, 0.75]], TWO)


def test_wrong_radii() -> None:
    radii = [
        *([0], [-1], [1, 1], [2, 1], [math.nan], [math.inf], [[1, 2]], 3, "far", ["a"], [None], {"a": 1}),
        *([True, True], [1, math.nan], [1, -2], [1e400], [1j], object(), [[]], [0.0, 1.0]),
    ]
    assert_refused(Mistake(repr(each), partial(FOUND.epsilon_by_distance, each), "radii") for each in radii)


def test_edges_of_a_policy_graph_have_the_distance_1() -> None:
    found = md.audit([[0.75, 0.25], [0.25, 0.75]], graph=nx.path_graph(2))
    half, one = found.epsilon_by_distance([0.5, 1])
    assert (half.pairs, half.epsilon) == (0, 0.0)
    assert (one.pairs, one.epsilon) == (2, found.epsilon)


def test_the_figure_sets_infinite_ε_apart() -> None:
    rounded = md.audit(np.eye(2), TWO)
    figure = md.figures.epsilon_by_distance({"rounded": rounded, "response": FOUND}, [1, 2])
    lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].lines if len(line.get_xdata())}
    assert lines["response"][-1] == FOUND.epsilon
    # Above a dashed line, infinite values stand at the top.
    assert "rounded" not in lines
    assert [text.get_text() for text in figure.axes[0].texts] == ["∞"]
    assert not md.figures.epsilon_by_distance({"response": FOUND}).axes[0].texts


def heights(line: Line2D, places: np.ndarray) -> np.ndarray:
    """Return the heights of a line at places, as it is drawn; at a step, the lower one."""
    return np.interp(places - 1e-9, *line.get_path().vertices.T)


def test_the_figure_is_never_below_the_least_ε() -> None:
    rng = np.random.default_rng(6)
    distance = md.distances.euclidean(md.Domain.grid(4, 3, 4.0, 3.0, unit="km"))
    found = md.audit(rng.dirichlet(np.full(12, 9.0), 12), distance)
    places = np.linspace(0.05, 5.0, 200)
    truth = [found.epsilon_by_distance([place])[0].epsilon for place in places]
    for radii in (None, [1, 2.5, 5], [5]):
        [line] = md.figures.epsilon_by_distance({"noise": found}, radii).axes[0].lines
        assert (heights(line, places) >= truth).all(), radii
    [line] = md.figures.epsilon_by_distance({"noise": found}).axes[0].lines
    apart = np.unique(distance[distance > 0])
    assert heights(line, apart).tolist() == [found.epsilon_by_distance([each])[0].epsilon for each in apart]


def test_infinite_ε_begin_where_the_finite_ones_end() -> None:
    matrix = [[1, 0, 0], [0.75, 0.25, 0], [0.25, 0.75, 0], [0.25, 0.25, 0.5]]
    for name, radii, finite, infinite in (
        ("at once", [1, 2, 3], [], [0, 1, 2, 3]),
        ("later", [0.5, 1, 2], [0, 0.5], [0.5, 1, 2]),
    ):
        lines = md.figures.epsilon_by_distance({"": md.audit(matrix, LINE)}, radii).axes[0].lines
        assert [list(line.get_xdata()) for line in lines[:2]] == [finite, infinite], name


def test_wrong_audits() -> None:
    wrong = ({}, [], FOUND, None, {"a": 1}, {1: FOUND}, dict.fromkeys("abcdef", FOUND), {"a": None}, "text")
    assert_refused(Mistake(repr(audits), partial(md.figures.epsilon_by_distance, audits), "audits") for audits in wrong)
    # Edges have no lengths; hops do.
    graph = nx.path_graph(3)
    policy = {"policy": md.audit(np.full((3, 1), 1.0), graph=graph)}
    draw = partial(md.figures.epsilon_by_distance, policy)
    assert_refused([Mistake("a policy graph", draw, "audits['policy']", "md.distances.shortest_path(graph)")])
    hops = md.audit(np.full((3, 1), 1.0), md.distances.shortest_path(graph))
    assert [each.radius for each in hops.epsilon_by_distance()] == [1, 2]
