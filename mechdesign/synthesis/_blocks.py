"""Reduce a normal form to a block program, which contains the bounds of all pairs, and solve it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError
from mechdesign.base._version import __version__
from mechdesign.solve import _solve as solvers
from mechdesign.solve._block_angular import BlockProgram, BlockSolution, FloorBlock, WorstBlock, combine_solutions
from mechdesign.solve._blocks.symmetry import Symmetry, find_symmetry, generate_group, is_invariant, make_symmetry
from mechdesign.solve._contract import Status
from mechdesign.synthesis._attempts import Attempt
from mechdesign.synthesis._normal import VACUOUS, ChannelCandidate, FormMultipliers, NormalForm, find_few_pairs
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._settings import SolveSettings

# With extreme ε·d, multipliers may be too large to be averaged over symmetries with sufficient accuracy. Then programs
# with at most this number of ratio rows are solved again without symmetries.
_MAX_RETRY_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class BlockInverse:
    """Maps solutions of a block program back to candidates; `pairs` counts the pairs of groups that it bounds."""

    form: NormalForm
    pairs: int

    def __call__(self, solution: BlockSolution) -> ChannelCandidate:
        """Return the candidate of a solution."""
        found, ratios = solution.multipliers, solution.multipliers.ratios
        multipliers = FormMultipliers(
            ratios.sources, ratios.targets, ratios.columns, ratios.values, tuple(found.floors), found.weights
        )
        form = self.form
        summary = SolveSummary(
            solution.status,
            solution.message,
            solver_version=__version__,
            rows_policy="all" if self.pairs == np.isfinite(form.exponents).sum() else "reduced",
            program_rows=self.pairs * form.observables,
            program_columns=form.groups * form.observables,
            blocks=solution.blocks,
            iterations=solution.iterations,
            memory_estimate=solution.memory,
            primal_residual=solution.history[-1].primal_residual if solution.history else 1.0,
            proving_seconds=round(solution.proving, 3),
        )
        # If the solver stops before its first iterate, it returns no channel.
        begun = bool(solution.history) or solution.status is Status.OPTIMAL
        return ChannelCandidate(solution.x if begun else None, multipliers, summary)


@dataclass(frozen=True)
class BlockReduction:
    """Reduction of a normal form to a block program: equations (11) or (12) and (21)–(24) of Shokri 2015."""

    def apply(self, form: NormalForm, deadline: Deadline | None = None) -> tuple[BlockProgram, BlockInverse]:
        """Return the program and its inverse.

        Bounds with exponents above `VACUOUS` are omitted. If few pairs are irreducible, the bounds that they imply are
        omitted, too.
        """
        problem = form.problem
        exponents = np.where(form.exponents <= VACUOUS, form.exponents, np.inf)
        kept = None if form.floors else find_few_pairs(exponents, deadline)
        if kept is not None:
            exponents = np.where(kept, exponents, np.inf)
        floors = tuple(FloorBlock(floor.minimum, floor.error) for floor in form.floors)
        if problem.objective == "worst":
            nothing = np.zeros((form.groups, form.observables))
            program = BlockProgram(nothing, exponents, floors, WorstBlock(problem.cost, form.group))
        else:
            program = BlockProgram(form.gather(problem.prior[:, None] * problem.cost), exponents, floors)
        pairs = np.isfinite(form.exponents if kept is None else exponents).sum()
        return program, BlockInverse(form, int(pairs))


def solve_form_by_blocks(
    attempt: Attempt, settings: SolveSettings, deadline: Deadline, start: object = None
) -> ChannelCandidate:
    """Solve a normal form with a solver of block programs, within the time limit.

    The solver's requested gap is smaller than the tolerance: half of the tolerance, but at most 5e-6, is left for
    rounding. The status STALLED means that the iteration stalled at a gap above 1e-6; its channel and multipliers are
    still valid.

    ``settings.options["symmetry"]`` is true (the default), false, or an array of permutations. The value true requests
    a search for symmetries. The array has shape (k, n): each permutation γ of the n secrets maps secret s to γ[s]. All
    products of the permutations are used. All other options are passed to the solver.

    Args:
        attempt: Normal form and solver.
        settings: Tolerance and options.
        deadline: Deadline of the design.
        start: Ignored; solvers of block programs have no warm start.

    Returns:
        The channel and multipliers, not yet certified.

    Raises:
        SolverError: The estimated memory exceeds the available memory; the message states the estimate.
        InputError: An option is not known, or a given permutation changes the problem.
    """
    form = attempt.form
    program, inverse = BlockReduction().apply(form, deadline)
    options = settings.options_for_blocks(deadline)
    extra = dict(options.extra)
    symmetry = choose_symmetry(form, program, extra.pop("symmetry", True))
    options = replace(options, extra=extra)
    solve = solvers.block_back_end(attempt.solver)
    solution = solve(program, options, gap=options.relative_gap, symmetry=symmetry)
    small = form.groups**2 * form.observables <= _MAX_RETRY_ROWS
    if solution.status is Status.STALLED and symmetry is not None and symmetry.order > 1 and small:
        plain = solve(program, options, gap=options.relative_gap)
        if plain.upper - plain.lower < solution.upper - solution.lower:
            symmetry = None
        solution = combine_solutions(solution, plain)
    return inverse(solution).with_facts(solver=attempt.solver, symmetries=1 if symmetry is None else symmetry.order)


def choose_symmetry(form: NormalForm, program: BlockProgram, choice: Any) -> Symmetry | None:
    """Return the symmetries to use, from a search or, after a check, from the caller; None without symmetries."""
    if isinstance(choice, bool | np.bool_):
        return find_symmetry(program) if choice else None
    path, n = "options.symmetry", form.group.size
    try:
        given = np.asarray(choice)
    except ValueError:
        # The rows have different lengths.
        given = np.zeros(0)
    if given.ndim != 2 or given.shape[1] != n or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            path,
            "is not a list of permutations",
            value=choice,
            bound=f"true, false, or permutations of {n} secrets, shape (k, {n})",
        )
    groups = []
    for index, permutation in enumerate(given.astype(np.int64)):
        if not np.array_equal(np.sort(permutation), np.arange(n)):
            raise InputError(f"{path}[{index}]", "is not a permutation of the secrets", value=permutation.tolist())
        image = np.zeros(form.groups, dtype=np.int64)
        image[form.group] = form.group[permutation]
        together = np.array_equal(image[form.group], form.group[permutation])
        if not together or not is_invariant(program, image):
            raise InputError(
                f"{path}[{index}]",
                "changes the prior, the costs or the requirements, so it is not a symmetry",
                remedy="leave it out, or set symmetry = true to search for symmetries",
            )
        groups.append(image)
    elements = generate_group(np.array(groups, dtype=np.int64).reshape(-1, form.groups))
    if elements is None:
        raise InputError(path, "generates a group that is too large", bound="permutations with at most 64 products")
    return make_symmetry(program, elements)
