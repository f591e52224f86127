"""Sparse blocks: levels and factors against NumPy, the kernel against the dense one, and solves against HiGHS."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from block_cases import iterates, optimum, random_program, violation
from hypothesis import given, settings
from hypothesis import strategies as st
from long import mostly_long
from rows import each_row

from mechdesign.base._deadline import Progress
from mechdesign.errors import InputError, SolverError
from mechdesign.solve._block_angular import BlockProgram, FloorBlock, WorstBlock, lower_bound
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose, tridiagonal
from mechdesign.solve._blocks.kernels.numpy import NumpyKernel
from mechdesign.solve._blocks.kernels.sparse import SparseKernel
from mechdesign.solve._blocks.kernels.tridiagonal import Factors, Shape, find_levels
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.symmetry import find_symmetry
from mechdesign.solve._contract import Options, Status


def roads(count, seed):
    """Return a random planar graph: a tree of shortest edges, and some further edges between random places."""
    rng = np.random.default_rng(seed)
    places = rng.random((count, 2)) * np.sqrt(count)
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    tree = nx.minimum_spanning_tree(nx.from_numpy_array(apart))
    graph.add_weighted_edges_from((a, b, float(apart[a, b])) for a, b in tree.edges)
    for a, b in zip(*np.nonzero(np.triu(apart < 0.8, 1)), strict=True):
        if rng.random() < 0.5:
            graph.add_edge(int(a), int(b), weight=float(apart[a, b]))
    return graph


def squares(columns, rows):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(columns, rows))
    nx.set_edge_attributes(graph, 1.0, "weight")
    return graph


def two_pieces():
    return nx.disjoint_union(squares(4, 7), roads(25, 3))


GRAPHS = {
    "tree": nx.random_labeled_tree(45, seed=4),
    "path": nx.path_graph(50),
    "squares": squares(8, 6),
    "roads": roads(60, 1),
    "pieces": two_pieces(),
    "star": nx.star_graph(44),
}
for _graph in GRAPHS.values():
    for _, _, _data in _graph.edges(data=True):
        _data.setdefault("weight", 0.7)


def program_on(graph, *, eps=0.6, columns=None, worst=False, seed=0):
    """Return a program with distances along the graph as costs, a random prior, and bounds between neighbours."""
    n = graph.number_of_nodes()
    exponents = np.full((n, n), np.inf)
    for a, b, data in graph.edges(data=True):
        exponents[a, b] = exponents[b, a] = eps * max(data["weight"], 0.05)
    distance = np.asarray(nx.floyd_warshall_numpy(graph, nodelist=range(n)))
    distance = np.where(np.isfinite(distance), distance, 20.0)[:, :columns]
    if worst:
        return BlockProgram(0 * distance, exponents, (), WorstBlock(distance, np.arange(n)))
    prior = np.random.default_rng(seed).dirichlet(np.ones(n))
    return BlockProgram(prior[:, None] * distance, exponents)


def solved(program, arrays, gap=3e-7, **options):
    return solve_by_interior_point(program, Options(extra={"arrays": arrays}, threads=1, **options), gap=gap)


@each_row("name", GRAPHS)
def test_edges_join_a_level_with_itself_or_the_next(name):
    graph = GRAPHS[name]
    ends = np.array(graph.edges)
    levels = find_levels(graph.number_of_nodes(), ends[:, 0], ends[:, 1])
    assert np.array_equal(levels.order[levels.position], np.arange(graph.number_of_nodes()))
    level = np.searchsorted(levels.starts, levels.position, side="right") - 1
    assert np.abs(level[ends[:, 0]] - level[ends[:, 1]]).max() <= 1


def test_levels_of_squares_are_as_wide_as_the_shorter_side():
    ends = np.array(squares(30, 8).edges)
    assert find_levels(240, ends[:, 0], ends[:, 1]).widths.max() <= 9


def matrices(graph, blocks, seed, spread):
    """Return positive definite matrices, their graph's blocks in the order of the levels, and their row sums."""
    ends, n = np.array(graph.edges), graph.number_of_nodes()
    levels = find_levels(n, ends[:, 0], ends[:, 1])
    rng = np.random.default_rng(seed)
    places = levels.position[ends]
    rows, columns = places.max(axis=1), places.min(axis=1)
    entries = 10 ** rng.uniform(-spread, spread, (len(ends), blocks))
    excess = 10 ** rng.uniform(-spread, 0, (n, blocks))
    diagonal = excess.copy()
    np.add.at(diagonal, rows, entries)
    np.add.at(diagonal, columns, entries)
    full = np.zeros((blocks, n, n))
    full[:, rows, columns] = full[:, columns, rows] = -entries.T
    full[:, np.arange(n), np.arange(n)] = diagonal.T
    shape = Shape(levels, rows, columns)
    own, beside = shape.spread(entries, np.empty(blocks * shape.size), np.empty(blocks * shape.size))
    return levels, full, own, beside, excess.T.copy()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(GRAPHS)), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 3.0]))
def test_factors_solve_and_invert(name, blocks, seed, spread):
    levels, full, own, beside, excess = matrices(GRAPHS[name], blocks, seed, spread)
    n = full.shape[1]
    factors, exact = Factors(levels, blocks), seed % 2 == 0
    assert factors.factor(own, beside, excess if exact else np.einsum("bii->bi", full).copy(), exact=exact)
    rng = np.random.default_rng(seed)
    found = rng.random((blocks, n))
    right = np.einsum("bij,bj->bi", full, found)
    factors.solve(right[:, :, None])
    assert np.allclose(right, found, rtol=1e-6, atol=1e-6 * found.max())
    scale = 10 ** rng.uniform(-8, 0, (blocks, n))
    total = np.zeros((n, n))
    widest = int(levels.widths.max())
    factors.add_inverse(scale, total, (np.empty((blocks, widest, n)), np.empty((blocks, widest, n))))
    expected = (np.linalg.inv(full) * scale[:, :, None] * scale[:, None, :]).sum(axis=0)
    assert np.allclose(np.triu(total), np.triu(expected), rtol=1e-6, atol=0)


def test_a_matrix_that_is_not_positive_definite_is_noticed():
    for exact in (True, False):
        levels, full, own, beside, excess = matrices(GRAPHS["squares"], 2, 0, 1.0)
        sums = excess if exact else np.einsum("bii->bi", full).copy()
        sums[0, levels.slices[1]] -= 100
        assert not Factors(levels, 2).factor(own, beside, sums, exact=exact)


@each_row("name", GRAPHS)
def test_a_tight_group_with_loose_bonds_keeps_its_digits(name):
    levels, full, own, beside, excess = matrices(GRAPHS[name], 1, 0, 0.0)
    excess *= 1e-20
    sums, factors = excess[0].copy(), Factors(levels, 1)
    assert factors.factor(own, beside, excess)
    found = np.ones((1, full.shape[1], 1))
    factors.solve(found)
    for piece in nx.connected_components(GRAPHS[name]):
        place = levels.position[list(piece)]
        # All rows of a piece move together: the sum of the right side divided by the sum of the row sums.
        assert np.allclose(found[0, place, 0], place.size / sums[place].sum(), rtol=1e-12)


def factored(program, kernel, steps):
    layout = lay_out(program)
    return iterates(layout, kernel(layout, 1), steps)


@pytest.mark.parametrize(("name", "worst"), list(zip(GRAPHS, [False, True] * 3, strict=True)))
def test_the_kernel_agrees_with_the_dense_one(name, worst):
    program = program_on(GRAPHS[name], columns=30, worst=worst)
    dense, found = (factored(program, kernel, 3) for kernel in (NumpyKernel, SparseKernel))
    assert found.mu == pytest.approx(dense.mu, rel=1e-3)
    assert np.allclose(found.x, dense.x, rtol=1e-3, atol=1e-9)
    assert np.allclose(found.adjoint, dense.adjoint, rtol=1e-3, atol=1e-3 * np.abs(dense.adjoint).max())
    assert np.allclose(found.schur, dense.schur, rtol=1e-2, atol=1e-3 * np.abs(dense.schur).max())
    sources, targets = found.ratios.kernel.pairs
    assert np.allclose(found.ratios.y, dense.ratios.y[:, sources, targets], rtol=1e-2)
    right = np.random.default_rng(2).standard_normal(found.x.shape)
    u, layout = found.solve(right), found.layout
    for block in (0, layout.blocks - 1):
        x = found.x[block]
        y = np.diag(found.ratios.kernel.diagonals()[block])
        y[sources, targets] = found.ratios.y[block]
        s, t = np.nonzero(y)
        rows = np.zeros((s.size, x.size))
        rows[np.arange(s.size), t] = layout.ratios[s, t] * x[t]
        rows[np.arange(s.size), s] -= x[s]
        weights = y[s, t] / rows.sum(axis=1)
        product = rows.T @ (weights * (rows @ u[block]))
        assert np.allclose(product, x * right[block], rtol=1e-5, atol=1e-7 * np.abs(x * right[block]).max())


@pytest.mark.parametrize("exact", [True, False])
@each_row("width", [1, 2, 16, 17, 40, 67])
def test_inverses_by_halves_are_inverses_without_a_negative_entry(width, exact):
    rng = np.random.default_rng(width)
    matrices = -(10.0 ** rng.uniform(-6, 3, (3, width, width)))
    matrices = matrices + matrices.swapaxes(1, 2)
    index = np.arange(width)
    matrices[:, index, index] = 0.0
    matrices[:, index, index] = 1e-3 - matrices.sum(axis=2)
    found = np.empty_like(matrices)
    tridiagonal._invert(-matrices, np.full((3, width), 1e-3) if exact else None, found)
    assert (found >= 0).all()
    expected = np.linalg.inv(matrices)
    assert np.abs(found - expected).max() <= 1e-7 * np.abs(expected).max()
    assert np.allclose(found @ matrices, np.eye(width), atol=1e-6)


@each_row("seed", [0, 2, 4, 5])
def test_no_diagonal_is_raised_and_no_row_sum_drifts_near_the_end(seed):
    tree = nx.random_labeled_tree(60, seed=seed)
    nx.set_edge_attributes(tree, 1.0, "weight")
    program = replace(program_on(tree, eps=0.15), cost=nx.floyd_warshall_numpy(tree, nodelist=range(60)) / 60)
    found = solved(program, "sparse", 1e-6)
    assert found.status is Status.OPTIMAL
    assert max(each.regularisation for each in found.history) == 0
    assert max(each.primal_residual for each in found.history) < 1e-10


def test_a_factor_that_does_not_solve_is_raised():
    # Rounding leaves no digit of the nearly null direction of one block; without the raise, the solve stalls at 5e-8.
    found = solved(program_on(GRAPHS["tree"]), "sparse", 1e-8)
    assert max(each.regularisation for each in found.history) > 0
    assert max(each.primal_residual for each in found.history[3:]) < 1e-8
    assert found.upper - found.lower <= 1e-8 * found.upper


def test_what_is_proved_is_within_the_gap_where_the_iteration_barely_reaches_it():
    program = program_on(GRAPHS["roads"], seed=1)
    last = solved(program, "sparse", 1e-7).history[-1]
    # If the iteration stopped at this iterate, dropping small multipliers would lower the bound below the gap.
    gap = (1 + 1e-6) * (last.upper - last.lower) / last.upper
    found = solved(program, "sparse", gap)
    assert found.upper - found.lower <= gap * found.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("worst", mostly_long([False, True]))
def test_agrees_with_the_dense_method(name, worst):
    program = program_on(GRAPHS[name], columns=33, worst=worst)
    gap = 1e-4
    dense, found = (solved(program, arrays, gap) for arrays in ("numpy", "sparse"))
    assert found.status is Status.OPTIMAL
    assert found.lower <= dense.upper * (1 + 1e-9)
    assert dense.lower <= found.upper * (1 + 1e-9)
    assert found.upper - found.lower <= gap * found.upper
    assert violation(program, found.x) < 1e-7
    assert lower_bound(program, found.multipliers) == found.lower


@pytest.mark.parametrize("first", [0, 20, pytest.param(40, marks=pytest.mark.slow)])
def test_agrees_with_highs_on_random_programs(first):
    for seed in range(first, first + 20):
        program = random_program(seed)
        if program.floors:
            continue
        value = optimum(program)
        found = solved(program, "sparse")
        unit = max(value, 1e-9 * float(program.cost.max(initial=1e-300)))
        assert found.lower <= value + 1e-8 * unit, seed
        assert found.upper >= value - 1e-6 * unit, seed
        assert found.upper - found.lower <= 2e-6 * unit, seed


def test_agrees_with_highs_on_roads():
    program = program_on(GRAPHS["roads"], columns=20)
    found = solved(program, "sparse")
    value = optimum(program)
    assert found.lower <= value * (1 + 1e-8)
    assert found.upper == pytest.approx(value, rel=1e-6)


def test_bounds_in_one_direction():
    program = program_on(GRAPHS["squares"], columns=20)
    exponents = program.exponents.copy()
    s, t = np.nonzero(np.isfinite(exponents))
    exponents[s[s > t][::2], t[s > t][::2]] = np.inf
    program = replace(program, exponents=exponents)
    dense, found = (solved(program, arrays, 1e-5) for arrays in ("numpy", "sparse"))
    assert found.upper == pytest.approx(dense.upper, rel=1e-5)
    assert found.lower == pytest.approx(dense.lower, rel=1e-5)


def test_symmetry_gives_the_same_value_with_fewer_blocks():
    graph = squares(7, 7)
    program = program_on(graph)
    distance = program.cost / program.cost.sum(axis=1, keepdims=True)
    program = replace(program, cost=distance)
    symmetry = find_symmetry(program)
    assert symmetry.order == 8
    plain = solved(program, "sparse", 1e-6)
    folded = solve_by_interior_point(
        program, Options(extra={"arrays": "sparse"}, threads=1), gap=1e-6, symmetry=symmetry
    )
    assert folded.blocks == 10
    assert folded.upper == pytest.approx(plain.upper, rel=2e-6)
    assert folded.lower == pytest.approx(plain.lower, rel=2e-6)


def test_threads_agree():
    program = program_on(squares(7, 7))
    one, two = (solve_by_interior_point(program, Options(threads=count), gap=1e-3) for count in (1, 2))
    assert one.upper == pytest.approx(two.upper, rel=1e-3)


def test_is_chosen_where_few_pairs_have_bounds():
    assert choose(None, 10**9, sparse=True) is SparseKernel
    assert choose("numpy", 0, sparse=True) is NumpyKernel
    assert lay_out(program_on(GRAPHS["squares"])).sparse
    few = program_on(squares(6, 6))
    assert not lay_out(few).sparse
    graph = GRAPHS["squares"]
    every = program_on(graph)
    distance = np.asarray(nx.floyd_warshall_numpy(graph))
    np.fill_diagonal(distance, np.inf)
    assert not lay_out(replace(every, exponents=0.6 * distance)).sparse


def test_floors_stay_with_the_dense_kernels():
    program = program_on(GRAPHS["squares"])
    error = np.ones((2, program.rows)) / program.rows
    joint = replace(program, floors=(FloorBlock(0.5, error),))
    assert not lay_out(joint).sparse
    with pytest.raises(InputError, match="floors"):
        solved(joint, "sparse")


def test_a_time_limit_leaves_a_valid_bracket():
    program = program_on(squares(7, 7))
    best = solved(program, "sparse", 1e-4)
    stopped = solved(program, "sparse", 1e-4, time_limit=0.0)
    assert stopped.status is Status.TIME_LIMIT
    assert stopped.lower <= best.upper
    assert stopped.upper >= best.lower
    assert np.allclose(stopped.x.sum(axis=1), 1.0)


def test_an_interruption_leaves_a_valid_bracket():
    program = program_on(squares(7, 7), columns=20)

    def stop(moment: Progress) -> None:
        if moment.iteration == 4:
            raise KeyboardInterrupt

    stopped = solved(program, "sparse", progress=stop)
    assert stopped.status is Status.INTERRUPTED
    best = solved(program, "sparse")
    assert stopped.lower <= best.upper
    assert stopped.upper >= best.lower


def test_memory_is_refused_with_the_estimate():
    program = program_on(squares(7, 7))
    with pytest.raises(SolverError, match="GB"):
        solve_by_interior_point(program, Options(extra={"memory": 1e5}))
    taken = solve_by_interior_point(program, Options(), gap=0.1).memory
    dense = solve_by_interior_point(program, Options(extra={"arrays": "numpy"}), gap=0.1).memory
    assert 0 < taken < dense
