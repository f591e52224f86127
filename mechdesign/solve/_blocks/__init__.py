"""A primal-dual interior-point method for block-angular programs, with all ratio rows at once.

`solve.py` holds the loop, `step.py` one iteration, `newton.py` the linear algebra, `kernels/` the array libraries.
"""

from mechdesign.solve._blocks.automorphisms import find_symmetry
from mechdesign.solve._blocks.automorphisms import generated
from mechdesign.solve._blocks.automorphisms import invariant
from mechdesign.solve._blocks.automorphisms import symmetry_of
from mechdesign.solve._blocks.columns import solve_columns
from mechdesign.solve._blocks.solution import BlockSolution
from mechdesign.solve._blocks.solution import Iteration
from mechdesign.solve._blocks.solve import solve_block
from mechdesign.solve._blocks.symmetry import Symmetry

__all__ = [
    "BlockSolution",
    "Iteration",
    "Symmetry",
    "find_symmetry",
    "generated",
    "invariant",
    "solve_block",
    "solve_columns",
    "symmetry_of",
]
