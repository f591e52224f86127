"""Solve a normal form with the block interior-point method: all pairs at once, no reduction and no lazy rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign import __version__
from mechdesign.certify.evidence import Multipliers
from mechdesign.programs.block import BlockProgram, FloorBlock, WorstBlock
from mechdesign.solvers.block import BlockSolution, find_symmetry, solve_block
from mechdesign.solvers.contract import Options
from mechdesign.synthesis.multipliers import problem_multipliers
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.relax import Relaxed

__all__ = ["block_program", "multipliers_of", "relax_block"]

Floats = NDArray[np.float64]

# A relative gap within these comes at a few iterations more; below the least, rounding wins.
_LEAST_GAP = 1e-9
_LARGEST_GAP = 3e-7


def block_program(form: NormalForm) -> BlockProgram:
    """Return the block program of a normal form: equations (11) or (12) with (21)–(24) of Privacy Games."""
    problem = form.problem
    floors = tuple(FloorBlock(floor.minimum, floor.error) for floor in form.floors)
    if problem.objective == "worst":
        nothing = np.zeros((form.groups, form.observables))
        return BlockProgram(nothing, form.exponents, floors, WorstBlock(problem.cost, form.group))
    return BlockProgram(form.gather(problem.prior[:, None] * problem.cost), form.exponents, floors)


def multipliers_of(form: NormalForm, solution: BlockSolution) -> Multipliers:
    """Return the multipliers of the problem's own requirements."""
    found = solution.multipliers
    ratios = found.ratios
    columns = (ratios.sources, ratios.targets, ratios.columns, ratios.values)
    return problem_multipliers(form, columns, found.floors, found.weights)


def relax_block(form: NormalForm, options: Options) -> Relaxed:
    """Solve a normal form within ``options.time_limit`` seconds, to a relative gap of ``options.tolerance``.

    The gap aimed for is kept between 1e-9 and 3e-7. Symmetries are looked for unless ``options.extra["symmetry"]`` is
    false; ``options.extra["memory"]`` is the most memory, in bytes, that the process may take. The status
    STALLED says that the iteration stalled above 1e-6; what it found is valid all the same.
    Raises SolverError, with the estimate, when memory does not suffice.
    """
    program = block_program(form)
    extra = dict(options.extra)
    symmetry = find_symmetry(program) if extra.pop("symmetry", True) else None
    gap = min(_LARGEST_GAP, max(_LEAST_GAP, options.tolerance))
    solution = solve_block(program, replace(options, extra=extra), gap=gap, symmetry=symmetry)
    facts: dict[str, str | int | float] = {
        "solver": "block",
        "solver_version": __version__,
        "rows_policy": "all",
        "program_rows": int(np.isfinite(form.exponents).sum()) * form.observables,
        "program_columns": form.groups * form.observables,
        "blocks": solution.blocks,
        "symmetries": symmetry.order if symmetry is not None else 1,
        "iterations": solution.iterations,
        "memory_estimate": solution.memory,
        "primal_residual": solution.history[-1].lacking if solution.history else 1.0,
    }
    return Relaxed(solution.status, solution.x, multipliers_of(form, solution), solution.message, facts)
