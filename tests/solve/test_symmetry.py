"""Symmetries: which ones are found, which ones are refused, and that they only change the amount of work."""

from __future__ import annotations

from functools import partial

import networkx as nx
import numpy as np
import pytest
from block_cases import ARRAYS, grid, iterates, optimum
from refusals import Mistake, assert_refused
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.solve._block_angular import BlockProgram, WorstBlock
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.layout import BlockLayout, lay_out
from mechdesign.solve._blocks.symmetry import find_symmetry, generate_group, make_symmetry
from mechdesign.solve._contract import Options, Status


@pytest.mark.parametrize(
    ("program", "order"),
    [
        (grid(4, 4), 8),
        (grid(4, 3), 4),
        (grid(7, 1), 2),
        (grid(4, 4, cost="hamming", floor=0.8), 8),
        (grid(4, 4, floor=0.5, masked=lambda distance: distance >= 0), 8),
        (grid(4, 3, worst=True), 4),
    ],
    ids=["square", "rectangle", "line", "joint", "distortion", "worst"],
)
def test_grids(program, order):
    symmetry = find_symmetry(program)
    assert symmetry.order == order
    assert (symmetry.rows[0] == np.arange(program.rows)).all()
    for rows, columns in zip(symmetry.rows, symmetry.columns, strict=True):
        assert np.allclose(program.cost[np.ix_(rows, columns)], program.cost, atol=1e-9)
        same = program.exponents[np.ix_(rows, rows)]
        assert np.array_equal(np.isinf(same), np.isinf(program.exponents))
    plain, folded = solve_by_interior_point(program), solve_by_interior_point(program, symmetry=symmetry)
    assert folded.blocks < plain.blocks
    assert folded.status is Status.OPTIMAL
    assert folded.upper == pytest.approx(plain.upper, rel=1e-6)
    assert folded.lower == pytest.approx(plain.lower, rel=1e-6)
    assert folded.lower <= optimum(program) * (1 + 1e-9)


def test_hundreds_of_columns_are_told_apart():
    assert find_symmetry(grid(18, 18, cost="hamming", floor=0.8)).order == 8


def test_rows_of_little_weight_count_as_much_as_others():
    program = grid(4, 4, cost="hamming")
    speckled = np.where(np.arange(16) % 3 == 0, 1e-12, 1.0)[:, None] * program.cost
    program = BlockProgram(speckled, program.exponents)
    symmetry = find_symmetry(program)
    for rows, columns in zip(symmetry.rows, symmetry.columns, strict=True):
        assert np.allclose(speckled[np.ix_(rows, columns)], speckled, rtol=1e-9, atol=0.0)
    found = solve_by_interior_point(program, gap=1e-8, symmetry=symmetry)
    assert found.status is Status.OPTIMAL
    assert found.upper == pytest.approx(optimum(program), rel=1e-8)


KINDS = [({"eps": 2.0}, 1e-9), ({"eps": 0.1}, 1e-9), ({"eps": 5.0}, 1e-9), ({"worst": True}, 3e-8)]


@pytest.mark.parametrize("arrays", ARRAYS)
@each_row(("kind", "gap"), KINDS)
def test_symmetric_runs_get_as_close_as_others(kind, gap, arrays):
    """The smallest gap for the worst cost depends on the processor's rounding: 1e-10 to 7e-9."""
    pytest.importorskip(arrays)
    program = grid(5, 5, **kind)
    found = solve_by_interior_point(
        program, Options(extra={"arrays": arrays}), gap=1e-9, symmetry=find_symmetry(program)
    )
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= 1.2 * gap * found.upper


def asymmetry(arrays, kind, steps):
    """Return the largest relative difference of multipliers and their images within a block."""
    program = grid(5, 5, **kind)
    layout = lay_out(program, find_symmetry(program))
    ratios = iterates(layout, choose(arrays, 0)(layout, 1), steps).ratios
    return max(
        float(np.abs(ratios.y[block][np.ix_(image, image)] / ratios.y[block] - 1).max())
        for blocks, moved in layout.stabilisers
        for block, images in zip(blocks, moved[:, :, : layout.rows], strict=True)
        for image in images
    )


@pytest.mark.parametrize("arrays", ARRAYS)
@each_row("kind", [kind for kind, _ in KINDS])
def test_multipliers_within_a_block_stay_symmetric(kind, arrays, monkeypatch):
    """Otherwise they would drift in directions that symmetric steps cannot correct; the gap would end near 1e-8."""
    pytest.importorskip(arrays)
    assert asymmetry(arrays, kind, 7) <= 1e-14
    with monkeypatch.context() as patched:
        patched.setattr(BlockLayout, "symmetrise", lambda self, steps: None)
        assert asymmetry(arrays, kind, 7) > 1e-13


def test_groups_are_generated():
    quarter = np.rot90(np.arange(9).reshape(3, 3)).ravel()
    assert generate_group(quarter[None]).shape == (4, 9)
    assert generate_group(np.stack([quarter, np.arange(9).reshape(3, 3).T.ravel()])).shape == (8, 9)
    assert generate_group(np.zeros((0, 9), dtype=np.int64)).tolist() == [list(range(9))]
    assert generate_group(np.roll(np.arange(65), 1)[None]) is None


def test_given_permutations_are_used():
    problem = square(4)
    flip, turn = np.arange(16).reshape(4, 4)[::-1].ravel(), np.rot90(np.arange(16).reshape(4, 4)).ravel()
    for given, order in (([flip], 2), ([turn], 4), ([flip, turn], 8), ([list(range(16))], 1)):
        made = md.design(problem, solver="block", tolerance=1e-8, options={"symmetry": given})
        assert made.certificate.provenance["symmetries"] == order
        assert made.certificate.relative_gap <= 1e-8
    assert md.design(problem, solver="block", options={"symmetry": True}).certificate.provenance["symmetries"] == 8
    assert md.design(problem, solver="block", options={"symmetry": False}).certificate.provenance["symmetries"] == 1


def test_permutations_that_do_not_fit_are_refused():
    problem, listed = square(4), "is not a list of permutations"
    tilted = md.Problem(np.arange(1, 17) / 136, problem.cost, problem.requirements)
    # Each connected set of secrets is a separate program with renumbered secrets.
    graph = md.GraphPrivacy(1, nx.Graph([(0, 1), (1, 2), (3, 4), (4, 5)]))
    two_sets = md.Problem(np.full(6, 1 / 6), 1 - np.eye(6), [graph])
    cases = [
        (problem, [[1, 0, *range(2, 16)]], "[0]", "changes the prior"),
        (tilted, [np.arange(16)[::-1]], "[0]", "changes the prior, the costs or the requirements"),
        (problem, [list(range(16)), [0, *range(15)]], "[1]", "is not a permutation of the secrets"),
        *[(problem, given, "", listed) for given in ([list(range(15))], [[0.5] * 16], "all", [[1, 2], [3]])],
        *[(two_sets, given, "", "parts that are designed separately") for given in ([[5, 4, 3, 2, 1, 0]], [[2, 1, 0]])],
    ]
    assert_refused(
        Mistake(
            f"{number}: {says}",
            partial(md.design, given_problem, solver="block", options={"symmetry": given}),
            f"options.symmetry{place}",
            says,
            InputError,
        )
        for number, (given_problem, given, place, says) in enumerate(cases)
    )
    assert md.design(two_sets, solver="block", options={"symmetry": True}).certificate.relative_gap <= 1e-6


def square(side):
    d = md.distances.euclidean(md.Domain.grid(side, side, float(side), float(side)))
    return md.Problem(np.full(side * side, 1 / side**2), d, [md.MetricPrivacy(0.6, d)])


def test_a_lopsided_prior_has_none():
    program = grid(4, 4)
    tilted = program.cost * np.linspace(1, 2, 16)[:, None]
    assert find_symmetry(BlockProgram(tilted, program.exponents)).order == 1


def test_a_slightly_broken_symmetry_is_not_used():
    program = grid(4, 4)
    cost = program.cost.copy()
    cost[0] *= 1 + 1e-7
    assert find_symmetry(BlockProgram(cost, program.exponents)).order == 2


def test_wrong_permutations_are_refused():
    program = grid(4, 3)
    wrong = np.arange(12)[None, ::-1].copy()
    wrong[0, :2] = wrong[0, 1::-1]
    assert make_symmetry(program, wrong).order == 1
    right = np.arange(12)[None, ::-1]
    assert make_symmetry(program, right).order == 2


def test_more_symmetry_than_can_be_listed_is_left_alone():
    exponents = np.full((12, 12), 0.5)
    np.fill_diagonal(exponents, np.inf)
    program = BlockProgram((1 - np.eye(12)) / 12, exponents)
    assert find_symmetry(program).order == 1
    value = 11 / (11 + np.exp(0.5))
    assert solve_by_interior_point(program).upper == pytest.approx(value, rel=1e-6)


def test_fewer_columns_than_rows():
    program = grid(5, 5)
    part = BlockProgram(np.ascontiguousarray(program.cost[:, [12, 7, 11, 13, 17]]), program.exponents)
    symmetry = find_symmetry(part)
    assert symmetry.order == 8
    found = solve_by_interior_point(part, symmetry=symmetry)
    assert found.blocks == 2
    assert found.upper == pytest.approx(optimum(part), rel=1e-6)


def test_members_of_merged_rows_are_left_alone():
    program = grid(3, 3, worst=True)
    row = np.concatenate([program.worst.row, [0]])
    cost = np.vstack([program.worst.cost, program.worst.cost[:1]])
    assert find_symmetry(BlockProgram(program.cost, program.exponents, (), WorstBlock(cost, row))).order == 1
