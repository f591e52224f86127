"""The Gaussian optimum against an independent conic solver and published figures, and its bound in exact arithmetic."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategy_examples import independent_optimum, projected, space_of, threshold_space

from mechdesign.tables._optimal_strategies import StrategyBound, _Orbits, certified_bound, optimal_gram, symmetries
from mechdesign.tables._workload import MatrixQueries, all_ranges, identity, prefixes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "theta", "root_mean_square"),
    [
        (all_ranges(64), 1, 1.3848),
        (all_ranges(64), 4, 2.1156),
        (all_ranges(64), 63, 2.9093),
        (all_ranges(256), 0, 2.90144),
    ],
    ids=["line", "threshold 4", "complete", "no policy"],
)
def test_published_errors(workload, theta, root_mean_square):
    space = threshold_space(workload.size, theta)
    inside = projected(workload.gram(), space)
    mirrors = symmetries(inside, space, (workload.size,))
    assert len(mirrors) == 1
    found = optimal_gram(inside, space, mirrors, tolerance=5e-5)
    bound = certified_bound(workload, space, found.weights)
    assert found.upper <= bound.value * (1 + 1e-4)
    assert np.sqrt(bound.value / workload.count) == pytest.approx(root_mean_square, abs=1e-4)


def test_threshold_of_sixteen_lies_in_the_known_bracket():
    workload, space = all_ranges(64), threshold_space(64, 16)
    inside = projected(workload.gram(), space)
    found = optimal_gram(inside, space, symmetries(inside, space, (64,)), tolerance=5e-5)
    low = np.sqrt(certified_bound(workload, space, found.weights).value / workload.count)
    assert 2.7234 < low <= np.sqrt(found.upper / workload.count) < 2.7249


_GRAPHS = {
    "path": [(0, 1), (1, 2), (2, 3)],
    "threshold": [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)],
    "star": [(0, 3), (1, 3), (2, 3)],
    "two components": [(0, 1), (2, 3)],
    "null node": [(0, 4), (1, 4), (2, 4), (3, 4)],
    "null node and line": [(0, 4), (1, 4), (2, 4), (3, 4), (0, 1), (1, 2), (2, 3)],
    "null node for some": [(0, 4), (2, 3)],
}


@pytest.mark.parametrize("edges", _GRAPHS.values(), ids=_GRAPHS)
def test_the_bracket_holds_an_independent_optimum(edges):
    space = space_of(4, edges)
    for workload in (all_ranges(4), prefixes(4), identity(4)):
        inside = projected(workload.gram(), space)
        found = optimal_gram(inside, space, symmetries(inside, space, (4,)), tolerance=1e-6)
        bound = certified_bound(workload, space, found.weights)
        optimum = independent_optimum(workload.matrix(), space)
        assert bound.value <= optimum * (1 + 1e-5), workload
        assert optimum <= found.upper * (1 + 1e-5), workload
        assert found.upper <= bound.value * (1 + 1e-5), workload
        changes = [vector @ found.gram @ vector for vector in _edge_vectors(space)]
        assert max(changes) == pytest.approx(1, abs=1e-9), workload
        assert np.trace(np.linalg.pinv(found.gram, rcond=1e-9) @ inside) == pytest.approx(found.upper, rel=1e-6)


def test_reflections_change_nothing_but_the_time():
    workload, space = all_ranges(12), threshold_space(12, 5)
    inside = projected(workload.gram(), space)
    plain = optimal_gram(inside, space, (), tolerance=1e-6)
    mirrored = optimal_gram(inside, space, symmetries(inside, space, (12,)), tolerance=1e-6)
    assert mirrored.upper == pytest.approx(plain.upper, rel=3e-6)


def test_reflections_of_several_attributes():
    size, shape = 12, (3, 4)
    rows = np.kron(np.tril(np.ones((3, 3))), np.tril(np.ones((4, 4))))
    space = space_of(size, [(x, y) for x in range(size) for y in range(x + 1, size)])
    gram = rows.T @ rows + np.flip(rows, 1).T @ np.flip(rows, 1)
    assert symmetries(projected(rows.T @ rows, space), space, shape) == []
    both = identity(size).gram()
    mirrors = symmetries(projected(both, space), space, shape)
    assert len(mirrors) == 2
    found = optimal_gram(projected(both, space), space, mirrors, tolerance=1e-9)
    # The complete graph: A = I/√2 is optimal by symmetry, with error 2·(size − 1).
    assert found.upper == pytest.approx(2 * (size - 1), rel=1e-8)
    assert gram.shape == (size, size)


def test_orbits_of_many_attributes_need_the_memory_of_the_edges():
    size, shape = 256, (2,) * 8
    edges = np.stack(np.triu_indices(size, 1), axis=1)
    space = space_of(size, edges)
    mirrors = symmetries(np.eye(size), space, shape)
    assert len(mirrors) == 8
    tracemalloc.start()
    orbits = _Orbits(space, mirrors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All 256 images of the edges together take 134 MB.
    assert peak < 20 * edges.nbytes
    # A flip of attributes keeps in which attributes the ends of an edge differ, and nothing else.
    assert orbits.multiplicities.tolist() == [128] * 255
    weights = np.arange(1.0, 256.0)
    differing = edges[:, 0] ^ edges[:, 1]
    assert orbits.spread(weights).tolist() == (weights / 128)[differing - 1].tolist()


def test_only_true_symmetries_are_used():
    space = threshold_space(5, 1)
    lopsided = space_of(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)])
    gram = identity(5).gram()
    assert len(symmetries(projected(gram, space), space, (5,))) == 1
    assert symmetries(projected(gram, lopsided), lopsided, (5,)) == []
    assert symmetries(np.diag([1.0, 0, 0, 0, 0]), space, (5,)) == []


def test_weights_of_zero_bound_nothing_outside_their_range():
    # M = I, edges e₁ and e₂ and μ = (1, 0): the bound is 1, the optimum 2.
    space = threshold_space(2, 0)
    lame = certified_bound(identity(2), space, np.array([1.0, 0.0]))
    assert lame.value == pytest.approx(1, rel=1e-3)
    found = optimal_gram(identity(2).gram(), space)
    assert found.upper == pytest.approx(2, rel=1e-9)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 1000), min_size=5, max_size=5).filter(any), st.sampled_from(["ranges", "prefixes", "real"])
)
def test_every_weighting_gives_a_bound_that_exact_arithmetic_confirms(weights, name):
    space = threshold_space(4, 2)
    workload = {
        "ranges": all_ranges(4),
        "prefixes": prefixes(4),
        "real": MatrixQueries(sparse.csr_array(np.random.default_rng(3).normal(size=(5, 4)))),
    }[name]
    _confirm(certified_bound(workload, space, np.array(weights, dtype=float)), workload, space)


def test_the_exact_check_of_a_bound_can_fail():
    workload, space = all_ranges(4), threshold_space(4, 2)
    bound = certified_bound(workload, space, np.ones(5))
    _confirm(bound, workload, space)
    with pytest.raises(AssertionError, match="positive"):
        _confirm(StrategyBound(bound.value, bound.weights, bound.multiplier * (1 + 1e-6)), workload, space)
    with pytest.raises(AssertionError, match="value"):
        _confirm(StrategyBound(bound.value * (1 + 1e-6), bound.weights, bound.multiplier), workload, space)


def _confirm(bound, workload, space):
    """Check H·M·Hᵀ ⪯ E and the value in rational arithmetic."""
    rank = space.rank
    rows = [[Fraction(entry) for entry in row] for row in workload.matrix().tolist()]
    ends = [(int(child), int(parent)) for child, parent in zip(space.children, space.parents, strict=True)]
    differences = [[row[child] - (row[parent] if parent < space.size else 0) for child, parent in ends] for row in rows]
    gram = [[sum(row[i] * row[j] for row in differences) for j in range(rank)] for i in range(rank)]
    multiplier = [[Fraction(entry) for entry in row] for row in bound.multiplier.tolist()]
    vectors = [
        [int(entry) for entry in vector] for vector in (space.paths[space.edges[:, 0]] - space.paths[space.edges[:, 1]])
    ]
    inner = [
        [sum(int(w) * c[i] * c[j] for w, c in zip(bound.weights, vectors, strict=True)) for j in range(rank)]
        for i in range(rank)
    ]
    product = _times(_times(multiplier, gram), [list(column) for column in zip(*multiplier, strict=True)])
    assert _semidefinite([[inner[i][j] - product[i][j] for j in range(rank)] for i in range(rank)]), "not positive"
    trace = sum(multiplier[i][j] * gram[j][i] for i in range(rank) for j in range(rank))
    total = sum(int(w) for w in bound.weights)
    assert bound.value == 0 or Fraction(bound.value) * total <= max(trace, 0) ** 2, "value above tr(HM)²/Σw"


def _times(left, right):
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True)] for row in left
    ]


def _semidefinite(matrix):
    """Eliminate exactly; a zero pivot needs a zero row."""
    size = len(matrix)
    for k in range(size):
        if matrix[k][k] < 0 or (matrix[k][k] == 0 and any(matrix[k][j] for j in range(k, size))):
            return False
        for i in range(k + 1, size):
            if matrix[i][k]:
                factor = matrix[i][k] / matrix[k][k]
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[k], strict=True)]
    return True


def _edge_vectors(space):
    unit = np.vstack([np.eye(space.size), np.zeros(space.size)])
    return [unit[x] - unit[y] for x, y in space.edges]
