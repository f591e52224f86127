"""A primal-dual interior-point method for block-angular programs, with all ratio rows at once.

`solve.py` holds the loop, `step.py` one iteration, `newton.py` the linear algebra, `kernels/` the array libraries.
"""

from mechdesign.solvers.ipm.automorphisms import find_symmetry
from mechdesign.solvers.ipm.automorphisms import generated
from mechdesign.solvers.ipm.automorphisms import invariant
from mechdesign.solvers.ipm.automorphisms import symmetry_of
from mechdesign.solvers.ipm.columns import solve_columns
from mechdesign.solvers.ipm.solution import BlockSolution
from mechdesign.solvers.ipm.solution import Iteration
from mechdesign.solvers.ipm.solve import solve_block
from mechdesign.solvers.ipm.symmetry import Symmetry

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
