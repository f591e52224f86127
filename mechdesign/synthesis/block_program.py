"""Solve a normal form with the block interior-point method: all pairs at once, no reduction and no lazy rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign import __version__
from mechdesign.certify.evidence import Multipliers
from mechdesign.errors import InputError
from mechdesign.programs.block_angular import BlockProgram, FloorBlock, WorstBlock
from mechdesign.solvers.contract import Options, Status
from mechdesign.solvers.ipm import (
    BlockSolution,
    Symmetry,
    find_symmetry,
    generated,
    invariant,
    solve_block,
    symmetry_of,
)
from mechdesign.synthesis.exponents import VACUOUS
from mechdesign.synthesis.multipliers import problem_multipliers
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.row_generation import Relaxed
from mechdesign.synthesis.summary import SolveSummary

__all__ = ["block_program", "multipliers_of", "relax_block"]

Floats = NDArray[np.float64]

# Below this relative gap rounding wins.
_LEAST_GAP = 1e-9
# Where ε·d is extreme, multipliers may be too large to be folded by symmetry: up to so many ratio rows we try without.
_SMALL = 1_000_000


def block_program(form: NormalForm) -> BlockProgram:
    """Return the block program of a normal form: equations (11) or (12) with (21)–(24) of Privacy Games."""
    problem = form.problem
    exponents = np.where(form.exponents <= VACUOUS, form.exponents, np.inf)
    floors = tuple(FloorBlock(floor.minimum, floor.error) for floor in form.floors)
    if problem.objective == "worst":
        nothing = np.zeros((form.groups, form.observables))
        return BlockProgram(nothing, exponents, floors, WorstBlock(problem.cost, form.group))
    return BlockProgram(form.gather(problem.prior[:, None] * problem.cost), exponents, floors)


def multipliers_of(form: NormalForm, solution: BlockSolution) -> Multipliers:
    """Return the multipliers of the problem's own requirements."""
    found = solution.multipliers
    ratios = found.ratios
    columns = (ratios.sources, ratios.targets, ratios.columns, ratios.values)
    return problem_multipliers(form, columns, found.floors, found.weights)


def relax_block(form: NormalForm, options: Options) -> Relaxed:
    """Solve a normal form within ``options.time_limit`` seconds, to the relative gap of ``options``, at least 1e-9.

    ``options.extra["symmetry"]`` is true (the default: symmetries are
    looked for), false, or the symmetries themselves: permutations γ of the secrets (k, n), secret s going to γ[s], of
    which all products are taken; ``options.extra["memory"]`` is the most memory, in bytes, that the process may take.
    The status STALLED says that the iteration stalled above 1e-6; what it found is valid all the same.
    Raises SolverError, with the estimate, when memory does not suffice, and InputError for a given permutation that
    does not leave the problem as it is.
    """
    program = block_program(form)
    extra = dict(options.extra)
    symmetry = _symmetry(form, program, extra.pop("symmetry", True))
    gap = max(_LEAST_GAP, options.relative_gap)
    asked = replace(options, extra=extra)
    solution = solve_block(program, asked, gap=gap, symmetry=symmetry)
    small = form.groups**2 * form.observables <= _SMALL
    if solution.status is Status.STALLED and symmetry is not None and symmetry.order > 1 and small:
        left = None if options.time_limit is None else max(0.0, options.time_limit - solution.seconds)
        plain = solve_block(program, replace(asked, time_limit=left), gap=gap)
        if plain.upper - plain.lower < solution.upper - solution.lower:
            solution, symmetry = plain, None
    summary = SolveSummary(
        solution.status,
        solution.message,
        solver="block",
        solver_version=__version__,
        rows_policy="all",
        program_rows=int(np.isfinite(form.exponents).sum()) * form.observables,
        program_columns=form.groups * form.observables,
        blocks=solution.blocks,
        symmetries=symmetry.order if symmetry is not None else 1,
        iterations=solution.iterations,
        memory_estimate=solution.memory,
        primal_residual=solution.history[-1].primal_residual if solution.history else 1.0,
    )
    return Relaxed(solution.x, multipliers_of(form, solution), summary)


def _symmetry(form: NormalForm, program: BlockProgram, asked: object) -> Symmetry | None:
    """Return the symmetries to use: those found, none, or those given, checked."""
    if isinstance(asked, bool | np.bool_):
        return find_symmetry(program) if asked else None
    path, n = "options.symmetry", form.group.size
    try:
        given = np.asarray(asked)
    except ValueError:
        # Rows of different lengths.
        given = np.zeros(0)
    if given.ndim != 2 or given.shape[1] != n or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            path,
            "is no list of permutations",
            value=asked,
            bound=f"true, false, or permutations of {n} secrets, (k, {n})",
        )
    groups = []
    for index, permutation in enumerate(given.astype(np.int64)):
        if not np.array_equal(np.sort(permutation), np.arange(n)):
            raise InputError(f"{path}[{index}]", "is no permutation of the secrets", value=permutation.tolist())
        image = np.zeros(form.groups, dtype=np.int64)
        image[form.group] = form.group[permutation]
        together = np.array_equal(image[form.group], form.group[permutation])
        if not together or not invariant(program, image):
            raise InputError(
                f"{path}[{index}]",
                "changes the problem: prior, costs or requirements are not the same after it",
                remedy="leave it out, or give symmetry = true to have the symmetries found",
            )
        groups.append(image)
    elements = generated(np.array(groups, dtype=np.int64).reshape(-1, form.groups))
    if elements is None:
        raise InputError(path, "generates too large a group", bound="permutations with at most 64 products")
    return symmetry_of(program, elements)
