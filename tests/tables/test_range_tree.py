"""Least squares in linear time agrees with dense linear algebra, and the structure's noise protects every edge."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mechdesign.tables._queries._trees import RangePlan, RangeTree, budget_split, choose_tree, height

SHAPES = [(8, 8, 2), (9, 4, 2), (13, 5, 2), (20, 7, 3), (16, 1, 2), (12, 12, 12), (5, 2, 2), (30, 10, 4), (7, 3, 5)]
SHAPES += [(2, 2, 2), (2, 1, 2), (1, 1, 2), (11, 10, 2), (27, 9, 3)]


def measured(tree: RangeTree, histogram: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[list[NDArray[np.int64]]]]:
    """Return the measurements of the structure without noise."""
    ends = np.cumsum(histogram)[tree.theta - 1 : -1 : tree.theta]
    if tree.levels == 0:
        return ends, []
    parts = zip(tree.shapes, tree.pieces(histogram), strict=True)
    return ends, [block.counts(rows) for (block, _), rows in parts]


def flat(ends: NDArray[np.int64], trees: list[list[NDArray[np.int64]]]) -> NDArray[np.int64]:
    return np.concatenate([ends, *(level.ravel() for levels in trees for level in levels)])


def unflat(tree: RangeTree, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[list[NDArray[np.float64]]]]:
    ends, trees = measured(tree, np.zeros(tree.size, dtype=np.int64))
    place = len(ends)
    filled = []
    for levels in trees:
        rows = []
        for level in levels:
            rows.append(values[place : place + level.size].reshape(level.shape))
            place += level.size
        filled.append(rows)
    return values[: len(ends)], filled


def dense(tree: RangeTree) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the matrix of all measurements and the variances of their noise."""
    matrix = np.array([flat(*measured(tree, unit)) for unit in np.eye(tree.size, dtype=np.int64)]).T
    ends = tree.block_count - 1
    return matrix, np.array([tree.node_variance] * ends + [tree.tree_variance] * (len(matrix) - ends))


def test_least_squares_agrees_with_dense_algebra() -> None:
    for shape in SHAPES:
        agree_with_dense_algebra(*shape)


def agree_with_dense_algebra(size: int, theta: int, fanout: int) -> None:
    tree = RangeTree(size, theta, fanout, 1.7, 3.1)
    rng = np.random.default_rng(size)
    counts = rng.integers(0, 10, size)
    matrix, variances = dense(tree)
    noisy = matrix @ counts + rng.normal(size=len(matrix)) * 5
    # The number of records is known: eliminate the last count.
    basis = np.vstack([np.eye(size - 1), -np.ones(size - 1)]) if size > 1 else np.zeros((1, 0))
    start = np.zeros(size)
    start[-1] = counts.sum()
    reduced = matrix @ basis
    inside = np.linalg.inv(reduced.T @ (reduced / variances[:, None])) if size > 1 else np.zeros((0, 0))
    expected = start + basis @ inside @ (reduced.T @ ((noisy - matrix @ start) / variances))
    covariance = basis @ inside @ basis.T
    fitted = tree.fit(*unflat(tree, noisy), int(counts.sum()))
    np.testing.assert_allclose(fitted, np.cumsum(expected), atol=1e-8)
    prefix = np.tri(size)
    np.testing.assert_allclose(tree.prefix_variances(), np.diag(prefix @ covariance @ prefix.T), atol=1e-9)
    total = 0.0
    for low, high in itertools.combinations_with_replacement(range(size), 2):
        weights = np.zeros(size)
        weights[low : high + 1] = 1
        total += weights @ covariance @ weights
        assert tree.variance(low, high) == pytest.approx(weights @ covariance @ weights, abs=1e-9)
    assert tree.mean_range_error() == pytest.approx(total / (size * (size + 1) / 2), abs=1e-9)
    weights = rng.normal(size=size)
    assert tree.variance_of(weights) == pytest.approx(weights @ covariance @ weights, abs=1e-8)


def test_exact_measurements_are_reproduced() -> None:
    tree = RangeTree(37, 10, 3, 1.0, 2.0)
    counts = np.random.default_rng(1).integers(0, 5, 37)
    ends, trees = measured(tree, counts)
    fitted = tree.fit(ends.astype(float), [[level.astype(float) for level in one] for one in trees], int(counts.sum()))
    np.testing.assert_allclose(fitted, np.cumsum(counts), atol=1e-9)


def test_noise_is_private_at_epsilon_and_not_below() -> None:
    for shape in SHAPES:
        if shape[0] > 1:
            be_private(*shape)


def be_private(size: int, theta: int, fanout: int) -> None:
    # Every edge of the threshold policy, in exact arithmetic: the loss Σ |change|/scale of the released measurements.
    epsilon = Fraction(7, 5)
    plan = choose_tree(size, theta, epsilon, fanout=fanout)
    tree = plan.structure
    nodes = tree.block_count - 1
    losses = {}
    units = np.eye(size, dtype=np.int64)
    for x, y in itertools.combinations(range(size), 2):
        change = np.abs(flat(*measured(tree, units[x])) - flat(*measured(tree, units[y]))).tolist()
        loss = Fraction(0)
        if nodes:
            assert plan.noise.node_scale is not None
            loss += sum(change[:nodes]) / plan.noise.node_scale
        if plan.noise.tree_scale is not None:
            loss += sum(change[nodes:]) / plan.noise.tree_scale
        losses[x, y] = loss
    largest = max(loss for (x, y), loss in losses.items() if y - x <= theta)
    assert largest == epsilon
    # Farther values are protected less: two ends of blocks may lie between them.
    farther = [loss for (x, y), loss in losses.items() if y - x > theta]
    if theta * 2 < size:
        assert max(farther) > epsilon


def test_the_formula_of_the_paper() -> None:
    assert budget_split(1000, 1, 16, epsilon="0.5")[:2] == (0.5, 0.0)
    nodes, tree, _ = budget_split(256, 256, 16, epsilon=2)
    assert (nodes, tree) == (0.0, 2.0)
    for size, theta, fanout, epsilon in [(1024, 16, 4, 1.0), (4357, 100, 16, 0.1), (400, 7, 2, 3.0)]:
        nodes, tree, least = budget_split(size, theta, fanout, epsilon=epsilon)
        c1 = 4 * (size - theta) / (size + 1)
        c2 = 8 * (fanout - 1) * np.log(theta) ** 3 / np.log(fanout) ** 3 * size / (size + 1)
        assert nodes + tree == pytest.approx(epsilon)
        assert least == pytest.approx(c1 / nodes**2 + c2 / tree**2)
        for share in np.linspace(0.01, 0.99, 99):
            assert c1 / (share * epsilon) ** 2 + c2 / ((1 - share) * epsilon) ** 2 >= least * (1 - 1e-12)


@pytest.mark.parametrize(("size", "theta", "fanout"), [(256, 16, 4), (1024, 16, 16), (512, 64, 8), (729, 27, 3)])
def test_the_formula_against_enumerated_decompositions(size: int, theta: int, fanout: int) -> None:
    # Both ends of a range are cumulative counts: the end of a block, and the nodes that a tree needs from there on.
    levels = height(theta, fanout)
    ends = np.arange(size + 1)
    blocks, rest = np.divmod(ends, theta)
    nodes = sum((rest // fanout**level) % fanout for level in range(levels))
    tops = ((blocks > 0) & (ends < size)).astype(int)
    share_nodes, share_tree, formula = budget_split(size, theta, fanout, epsilon=1)
    error = tops * 2 / share_nodes**2 + nodes * 2 * (2 * levels / share_tree) ** 2
    # The sum over all pairs of ends of the errors at both: each end has `size` partners.
    exact = error.sum() * size / (size * (size + 1) / 2)
    assert 0.95 <= exact / formula <= 1.03
    # Least squares gives more weight to precise measurements.
    assert choose_tree(size, theta, 1, fanout=fanout).error < exact


@pytest.mark.parametrize(("size", "theta"), [(64, 8), (100, 30), (300, 5)])
def test_the_plan_has_the_least_error(size: int, theta: int) -> None:
    plan = choose_tree(size, theta, 1)
    assert plan.epsilon_nodes + plan.epsilon_tree == 1
    for share in (0.5, 0.8, 1.25, 2):
        nodes = min(plan.epsilon_nodes * Fraction(share), Fraction(99, 100))
        other = RangePlan(size, theta, plan.fanout, nodes, 1 - nodes)
        assert other.error > plan.error
    for fanout in range(2, min(theta, 20) + 1):
        assert choose_tree(size, theta, 1, fanout=fanout).error >= plan.error * (1 - 1e-9)


def test_the_ends_of_the_scale_of_policies() -> None:
    # The ordered mechanism: 9,900 noisy counts in 5,050 ranges, each with the variance of discrete Laplace noise.
    alpha = math.exp(-2)
    assert choose_tree(100, 1, 2).error == pytest.approx(9900 / 5050 * 2 * alpha / (1 - alpha) ** 2)
    assert choose_tree(100, 1, 2).epsilon_nodes == 2
    whole = choose_tree(100, 100, 2)
    assert (whole.epsilon_nodes, whole.epsilon_tree) == (0, 2)
    assert choose_tree(1, 1, 1).error == 0
