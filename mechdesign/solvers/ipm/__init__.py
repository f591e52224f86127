"""A primal-dual interior-point method for block programs: all ratio rows at once, a Schur complement couples blocks."""

from mechdesign.solvers.ipm.automorphisms import find_symmetry, generated, invariant, symmetry_of
from mechdesign.solvers.ipm.solve import BlockSolution, Iteration, solve_block
from mechdesign.solvers.ipm.symmetry import Symmetry

__all__ = [
    "BlockSolution",
    "Iteration",
    "Symmetry",
    "find_symmetry",
    "generated",
    "invariant",
    "solve_block",
    "symmetry_of",
]
