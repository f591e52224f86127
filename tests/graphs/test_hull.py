from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_examples import ANSWERS, POLICY, norm_by_program, under
from scipy import spatial, stats

import mechdesign as md
from mechdesign import graphs
from mechdesign.errors import InputError
from mechdesign.graphs._builders import components
from mechdesign.graphs._exposure import component_hulls
from mechdesign.graphs._hull import TOLERANCE, simplex_volumes

SensitivityHull = graphs.SensitivityHull

CASES = {
    "a point in the plane": [[0.0, 0.0]],
    "a segment on the line": [[2.0], [-1.0], [0.5]],
    "a segment in the plane": [[1.0, -1.0], [0.5, -0.5]],
    "a segment in space": [[1.0, 2.0, 2.0]],
    "the running example": [[-1.0, 1.0], [-4.0, -1.0], [-1.0, -1.0], [3.0, 0.0]],
    "a square with points on its sides": list(itertools.product([-1.0, 0.0, 1.0], repeat=2)),
    "a hexagon in space": [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, -1.0]],
    "a cube with points all over": list(itertools.product([-1.0, 0.0, 1.0], repeat=3)),
    "an octahedron in four dimensions": [[3.0, 0, 0, 1], [0, 2.0, 0, 0], [0, 0, 1.0, 0]],
    "a cross-polytope in five dimensions": np.eye(5).tolist(),
}
DIMENSIONS = dict(zip(CASES, (0, 1, 1, 1, 2, 2, 2, 3, 3, 5), strict=True))
VOLUMES = dict(
    zip(
        CASES,
        (0, 4, 2 * math.sqrt(2), 6, 11, 4, 3 * math.sqrt(3), 8, 8 / 6 * 2 * math.sqrt(10), 2**5 / math.factorial(5)),
        strict=True,
    )
)


def hull_of(case: str, scale: float = 1.0) -> tuple[np.ndarray, graphs.SensitivityHull]:
    generators = np.array(CASES[case]) * scale
    return generators, SensitivityHull.of(generators)


# The papers' examples


def test_example_5_1_the_hull_and_the_l1_sensitivity() -> None:
    """DPHMM, Example 5.1 and Figure 7(b); the area is ½|Σ det|, not Σ det over clockwise corners."""
    K = graphs.sensitivity_hull(ANSWERS, POLICY)
    assert sorted(K.vertices.tolist()) == sorted([[-1, 1], [1, -1], [-4, -1], [4, 1], [3, 0], [-3, 0]])
    following = np.roll(K.vertices, -1, axis=0)
    turns = K.vertices[:, 0] * following[:, 1] - K.vertices[:, 1] * following[:, 0]
    assert (turns > 0).all()
    assert K.volume == pytest.approx(turns.sum() / 2, rel=1e-15) == 11
    assert np.abs(K.vertices).sum(axis=1).max() == 5
    cross_polytope = SensitivityHull.of(5 * np.eye(2))
    assert cross_polytope.contains(K.vertices).all(), "Corollary 5.1"


def test_example_5_2_the_hull_of_the_constrained_graph_is_a_segment() -> None:
    K = graphs.sensitivity_hull(ANSWERS, under(2, 3, 5))
    assert K.dimension == 1
    assert K.norm(ANSWERS[2] - ANSWERS[1]) == 1
    assert K.norm(ANSWERS[4] - ANSWERS[2]) == np.inf
    # With Laplace noise of sensitivity 2 the ratio is e^{3ε/2}.
    assert SensitivityHull.of(2 * np.eye(2)).norm(ANSWERS[4] - ANSWERS[2]) == 1.5


def test_example_5_3_the_levels_of_unbounded_privacy() -> None:
    """DPHMM, Example 5.3 and Figure 14: adding s1, …, s6 to a table is protected at ε·{1, 0, 1, 2, 1, 2}."""
    counts = np.array([[1, 0], [0, 0], [1, 0], [0, 1], [1, 0], [0, 1]], dtype=float)
    K = graphs.sensitivity_hull(counts, graphs.from_edges(6, [[0, 1], [2, 3]]))
    assert sorted(K.vertices.tolist()) == [[-1, 0], [-1, 1], [1, -1], [1, 0]]
    np.testing.assert_allclose(K.norm(counts), [1, 0, 1, 2, 1, 2], rtol=1e-15)
    # Theorem 5.3: the overall level.
    assert K.norm(counts[:, None] - counts[None, :]).max() == pytest.approx(2)


# The body


def test_dimension_and_volume() -> None:
    for case in CASES:
        hold_dimension_and_volume(case)


def hold_dimension_and_volume(case: str) -> None:
    for scale in (1.0, 1e-9, 1e5, 1 / 3):
        _, K = hull_of(case, scale)
        r = DIMENSIONS[case]
        assert K.dimension == r
        assert K.volume == pytest.approx(VOLUMES[case] * scale**r if r else 0.0, rel=1e-12)
        np.testing.assert_allclose(K.basis @ K.basis.T, np.eye(r), atol=1e-14)
        volumes = simplex_volumes(K.vertices[K._simplices] @ K.basis.T) if r else np.zeros(0)
        assert volumes.sum() == pytest.approx(K.volume, rel=1e-12), "the simplices fill K"


def test_norm_against_its_definition_as_a_linear_program() -> None:
    for case in CASES:
        hold_norm_against_its_definition_as_a_linear_program(case)


def hold_norm_against_its_definition_as_a_linear_program(case: str) -> None:
    generators, K = hull_of(case)
    rng = np.random.default_rng(5)
    inside = rng.normal(size=(6, len(generators))) @ generators
    outside = rng.normal(size=(3, generators.shape[1]))
    for v in np.concatenate((inside, outside, generators)):
        assert K.norm(v) == pytest.approx(norm_by_program(generators, v), rel=1e-9)


def test_generators_vertices_and_facets_are_inside_and_just_beyond_is_not() -> None:
    for case in CASES:
        hold_generators_vertices_and_facets_are_inside_and_just_beyond_is_not(case)


def hold_generators_vertices_and_facets_are_inside_and_just_beyond_is_not(case: str) -> None:
    for scale in (1.0, 1e-9, 1e5, 1 / 3):
        generators, K = hull_of(case, scale)
        assert K.contains(generators).all()
        assert K.contains(np.zeros(generators.shape[1]))
        if K.dimension == 0:
            assert not K.contains(np.full(generators.shape[1], 1e-300))
            continue
        assert K.contains(K.vertices).all()
        np.testing.assert_allclose(K.norm(K.vertices), 1, rtol=1e-12)
        middles = K.vertices[K._simplices].mean(axis=1)
        assert K.contains(middles).all()
        for points in (K.vertices, middles):
            assert not K.contains(points * (1 + 3 * TOLERANCE)).any()
            assert K.contains(points * (1 - TOLERANCE)).all()
        assert len(K.facets) == len(np.unique(np.round(K.facets * K.radius, 9), axis=0)), "no facet comes twice"
        assert (K.norm(K.vertices[:, None] - K.vertices[None, :]) <= 2 + 1e-12).all()


def test_off_the_span_the_norm_is_infinite() -> None:
    K = SensitivityHull.of([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    assert K.dimension == 2
    assert K.norm([0.0, 0.0, 1e-6]) == np.inf
    assert K.norm([1.0, 1.0, 1e-12]) == pytest.approx(1)
    assert not K.contains([0.5, 0.0, 1e-7])


def test_symmetry_and_shape_of_the_arrays() -> None:
    for case in CASES:
        hold_symmetry_and_shape_of_the_arrays(case)


def hold_symmetry_and_shape_of_the_arrays(case: str) -> None:
    _, K = hull_of(case)
    for array in (K.vertices, K.facets):
        np.testing.assert_array_equal(array[: len(array) // 2], -array[len(array) // 2 :])
        assert not array.flags.writeable
    d = K.basis.shape[1]
    assert K.vertices.shape[1] == K.facets.shape[1] == d
    assert K.norm(np.zeros((4, 3, d))).tolist() == np.zeros((4, 3)).tolist()
    if K.dimension == d:
        np.testing.assert_array_equal(K.basis, np.eye(d))
        v = np.random.default_rng(0).normal(size=(50, d))
        np.testing.assert_allclose(K.norm(v), (v @ K.facets.T).max(axis=1), rtol=1e-12)
    with pytest.raises(dataclasses.FrozenInstanceError):
        K.volume = 1.0


vectors = st.lists(st.lists(st.integers(-4, 4), min_size=3, max_size=3), min_size=1, max_size=8)


@given(vectors, st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([1.0, 0.1, 1e-9, 1e5]))
@settings(max_examples=40, deadline=None)
def test_the_norm_is_a_norm(rows: list[list[int]], d: int, seed: int, scale: float) -> None:
    generators = np.array(rows, dtype=float)[:, :d] * scale
    K = SensitivityHull.of(generators)
    assert K.contains(generators).all()
    weights = np.random.default_rng(seed).normal(size=(2, len(generators)))
    u, v = weights @ generators
    np.testing.assert_allclose(K.norm(-u), K.norm(u), rtol=0)
    np.testing.assert_allclose(K.norm(7 * u), 7 * K.norm(u), rtol=1e-9)
    assert K.norm(u + v) <= (K.norm(u) + K.norm(v)) * (1 + 1e-9)
    assert K.norm(u) <= np.abs(weights[0]).sum() * (1 + 1e-9)
    for t in (0.5, 1 + 1e-6, 2.0):
        if 0 < K.norm(u) < np.inf:
            assert K.contains(u / K.norm(u) * t) == (t <= 1)
    assert K.volume >= 0
    assert (K.dimension == 0) == (not generators.any())
    assert K.dimension == np.linalg.matrix_rank(generators)


@given(vectors, st.integers(1, 3), st.lists(st.integers(-9, 9), min_size=3, max_size=3))
@settings(max_examples=40, deadline=None)
def test_grown_is_the_volume_of_the_larger_hull(rows: list[list[int]], d: int, more: list[int]) -> None:
    generators, v = np.array(rows, dtype=float)[:, :d] / 7, np.array(more[:d], dtype=float) / 7
    larger = SensitivityHull.of(np.concatenate((generators, v[None])))
    dimension, volume = SensitivityHull.of(generators).grown(v)
    assert dimension == larger.dimension
    assert volume == pytest.approx(larger.volume, rel=1e-9)


def test_rounding_of_equal_differences_changes_nothing() -> None:
    rng = np.random.default_rng(8)
    for case, noise in itertools.product(CASES, (1e-16, 1e-14, 1e-12, 1e-11)):
        generators = np.repeat(np.array(CASES[case]), 40, axis=0)
        noisy = generators * (1 + noise * rng.normal(size=generators.shape))
        K, clean = SensitivityHull.of(noisy), SensitivityHull.of(generators)
        assert K.dimension == clean.dimension
        assert K.volume == pytest.approx(clean.volume, rel=1e-9)
        if K.dimension <= 2 and noise <= 1e-12:
            assert len(K.vertices) == len(clean.vertices)
        assert K.contains(noisy).all()


def test_points_far_from_the_origin_and_in_unlike_directions() -> None:
    line = 1e6 + np.column_stack((np.arange(5.0), np.arange(5.0) / 3))
    K = graphs.sensitivity_hull(line, graphs.complete(5))
    assert K.dimension == 1
    thin = SensitivityHull.of([[1.0, 0.0], [1.0, 1e-6]])
    assert thin.dimension == 2
    assert thin.volume == pytest.approx(2e-6)
    assert SensitivityHull.of([[1.0, 0.0], [1.0, 1e-11]]).dimension == 1


def test_coincident_points() -> None:
    points = [[1.0, 2.0], [1.0, 2.0], [4.0, 2.0]]
    alone = graphs.sensitivity_hull(points, graphs.from_edges(3, [[0, 1]]))
    assert (alone.dimension, alone.volume, alone.vertices.shape, alone.radius) == (0, 0.0, (0, 2), 0.0)
    assert alone.norm([[0.0, 0.0], [1e-300, 0.0]]).tolist() == [0, np.inf]
    assert alone.sample(3, 1).tolist() == [[0, 0]] * 3
    both = graphs.sensitivity_hull(points, graphs.complete(3))
    assert (both.dimension, both.volume) == (1, 6.0)


def test_component_hulls() -> None:
    domain = md.Domain.grid(6, 3, 6.0, 3.0)
    graph = graphs.constrain(graphs.blocks(domain, 3), [0, 1, 6, 3, 4, 9, 17, 2])
    parts, hulls = components(graph), component_hulls(domain, graph)
    assert [part.tolist() for part in parts] == [[0, 1, 2, 6], [3, 4, 9, 17]]
    for part, hull in zip(parts, hulls, strict=True):
        alone = graphs.sensitivity_hull(domain, graphs.constrain(graph, part))
        np.testing.assert_array_equal(hull.vertices, alone.vertices)
    whole = component_hulls(domain, graphs.blocks(domain, 3))
    assert whole[0] is whole[1], "the same differences, the same hull"
    bare = component_hulls(domain, graphs.from_edges(18, []))
    assert len(bare) == 18
    assert {hull.dimension for hull in bare} == {0}


def test_thousands_of_edges_leave_few_corners() -> None:
    """The differences of a convex polygon and itself have at most two corners for each of its sides."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(200, 2))
    K = graphs.sensitivity_hull(points, graphs.complete(200))
    assert K.contains(points[:, None] - points[None, :]).all()
    assert len(K.vertices) <= 2 * len(spatial.ConvexHull(points).vertices)


# Uniform samples


def test_samples_are_uniform_in_radius_and_direction() -> None:
    for case in (name for name, r in DIMENSIONS.items() if 1 <= r <= 3):
        _, K = hull_of(case)
        points = K.sample(10_000, np.random.default_rng(11))
        norms = K.norm(points)
        assert np.isfinite(norms).all()
        # The share of K within tK is t^r.
        assert stats.kstest(norms**K.dimension, "uniform").pvalue > 1e-3, case
        # Each cone over a facet has its share of the volume.
        hits = np.bincount((points @ K.facets.T).argmax(axis=1), minlength=len(K.facets))
        shares = np.concatenate((K._cones, K._cones)) / K.volume
        assert stats.chisquare(hits, shares * len(points)).pvalue > 1e-3, case


def test_samples_of_a_cube_and_a_segment_have_the_moments_of_the_uniform_distribution() -> None:
    cube = SensitivityHull.of(list(itertools.product([-2.0, 2.0], repeat=3)))
    points = cube.sample(30_000, 4)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(3) * 4 / 3, atol=0.04)
    counts, _ = np.histogramdd(points, bins=[np.linspace(-2, 2, 4)] * 3)
    assert stats.chisquare(counts.ravel()).pvalue > 1e-3
    segment = SensitivityHull.of([[3.0, 4.0]])
    along = segment.sample((100, 20), 4) @ np.array([0.6, 0.8])
    assert along.shape == (100, 20)
    assert stats.kstest(along.ravel(), "uniform", (-5, 10)).pvalue > 1e-3


def test_sampling_is_reproducible() -> None:
    _, K = hull_of("the running example")
    np.testing.assert_array_equal(K.sample(5, 7), K.sample(5, np.random.default_rng(7)))
    assert K.sample(0).shape == (0, 2)
    assert K.sample(3).shape == (3, 2)
    assert (K.sample(3) != K.sample(3)).any()


# Wrong input


def test_wrong_input_is_refused() -> None:
    for build in (
        lambda: SensitivityHull.of([[np.nan, 1.0]]),
        lambda: SensitivityHull.of([[np.inf, 1.0]]),
        lambda: SensitivityHull.of([[1e200, 1.0]]),
        lambda: SensitivityHull.of([1.0, 2.0]),
        lambda: SensitivityHull.of(np.zeros((3, 0))),
        lambda: SensitivityHull.of([["a", "b"]]),
        lambda: graphs.sensitivity_hull([[0.0, np.nan], [1.0, 1.0]], graphs.line(2)),
        lambda: graphs.sensitivity_hull([[0.0, 1.0]], graphs.line(2)),
        lambda: graphs.sensitivity_hull(md.Domain.from_labels("ab"), graphs.line(2)),
        lambda: graphs.sensitivity_hull(np.zeros((0, 2)), graphs.line(2)),
        lambda: graphs.sensitivity_hull([0.0, 1.0], graphs.line(2)),
        lambda: SensitivityHull.of(np.eye(2)).norm([1.0, 2.0, 3.0]),
        lambda: SensitivityHull.of(np.eye(2)).norm(1.0),
        lambda: SensitivityHull.of(np.eye(2)).norm([np.nan, 0.0]),
        lambda: SensitivityHull.of(np.eye(2)).contains("ab"),
        lambda: SensitivityHull.of(np.eye(2)).grown([np.inf, 0.0]),
        lambda: SensitivityHull.of(np.eye(2)).sample(-1),
        lambda: SensitivityHull.of(np.eye(2)).sample((2, 1.5)),
        lambda: SensitivityHull.of(np.eye(2)).sample(2, "seed"),
        lambda: SensitivityHull.of(np.eye(2)).sample(2, -1),
        lambda: SensitivityHull.of(np.eye(2)).sample(1.0),
        lambda: SensitivityHull.of(np.eye(2)).norm([1.0, 1j]),
    ):
        with pytest.raises(InputError):
            build()


def test_a_hull_too_flat_for_floats_is_refused_not_wrong() -> None:
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(60):
        generators = rng.normal(size=(30, 1)) * rng.normal(size=2) + 1e-9 * rng.normal(size=(30, 2))
        try:
            K = SensitivityHull.of(generators)
        except InputError:
            refused += 1
        else:
            assert K.contains(generators).all()
    assert refused
