"""A primal-dual interior-point method for block programs: all ratio rows at once, a Schur complement over the blocks."""

from mechdesign.solvers.block.solve import BlockSolution, Iteration, solve_block

__all__ = ["BlockSolution", "Iteration", "solve_block"]
