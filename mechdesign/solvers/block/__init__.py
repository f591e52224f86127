"""A primal-dual interior-point method for block programs: all ratio rows at once, a Schur complement couples blocks."""

from mechdesign.solvers.block.automorphisms import find_symmetry, symmetry_of
from mechdesign.solvers.block.solve import BlockSolution, Iteration, solve_block
from mechdesign.solvers.block.symmetry import Symmetry

__all__ = ["BlockSolution", "Iteration", "Symmetry", "find_symmetry", "solve_block", "symmetry_of"]
