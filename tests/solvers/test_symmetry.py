"""Symmetries: what is found, what is refused, and that they change nothing but the work."""

from __future__ import annotations

import numpy as np
import pytest
from block_cases import grid, optimum

from mechdesign.programs.block import BlockProgram, WorstBlock
from mechdesign.solvers.block import find_symmetry, solve_block, symmetry_of
from mechdesign.solvers.contract import Status


@pytest.mark.parametrize(
    ("program", "order"),
    [
        (grid(5, 5), 8),
        (grid(5, 4), 4),
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
    plain, folded = solve_block(program), solve_block(program, symmetry=symmetry)
    assert folded.blocks < plain.blocks
    assert folded.status is Status.OPTIMAL
    assert folded.upper == pytest.approx(plain.upper, rel=1e-6)
    assert folded.lower == pytest.approx(plain.lower, rel=1e-6)
    assert folded.lower <= optimum(program) * (1 + 1e-9)


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
    assert symmetry_of(program, wrong).order == 1
    right = np.arange(12)[None, ::-1]
    assert symmetry_of(program, right).order == 2


def test_more_symmetry_than_can_be_listed_is_left_alone():
    exponents = np.full((12, 12), 0.5)
    np.fill_diagonal(exponents, np.inf)
    program = BlockProgram((1 - np.eye(12)) / 12, exponents)
    assert find_symmetry(program).order == 1
    value = 11 / (11 + np.exp(0.5))
    assert solve_block(program).upper == pytest.approx(value, rel=1e-6)


def test_fewer_columns_than_rows():
    program = grid(5, 5)
    part = BlockProgram(np.ascontiguousarray(program.cost[:, [12, 7, 11, 13, 17]]), program.exponents)
    symmetry = find_symmetry(part)
    assert symmetry.order == 8
    found = solve_block(part, symmetry=symmetry)
    assert found.blocks == 2
    assert found.upper == pytest.approx(optimum(part), rel=1e-6)


def test_members_of_merged_rows_are_left_alone():
    program = grid(3, 3, worst=True)
    row = np.concatenate([program.worst.row, [0]])
    cost = np.vstack([program.worst.cost, program.worst.cost[:1]])
    assert find_symmetry(BlockProgram(program.cost, program.exponents, (), WorstBlock(cost, row))).order == 1
