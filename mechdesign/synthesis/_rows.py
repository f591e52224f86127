"""Reduce a normal form to a linear program with privacy rows, and solve it with all rows or with lazy rows.

The program is derived in docs/theory/programs.md. Lazy rows are Kelley's cutting planes (1960). Every round solves a
relaxation, whose multipliers prove a lower bound. The rounds end when the solution violates no missing row, or when
repairing the violated rows costs little.

Rounding needs a channel with slack in every bound and floor. If all answers are permitted, a channel that always gives
the same distribution of answers has slack. If some answers are forbidden, the bounds may be infeasible. The bound
p(o|s) <= g p(o|t) requires p(o|t) >= p(o|s)/g. For one t, these minima may sum to more than 1. A linear program decides
whether a channel with slack exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline, OutOfTimeError
from mechdesign.base._errors import InfeasibleError, InputError, SolverError, TimeLimitError
from mechdesign.solve import _solve as solvers
from mechdesign.solve._column_generation import Bracket
from mechdesign.solve._contract import Options, Solution, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._attempts import MAX_SIMPLEX_ROWS, Attempt, choose_lazy_solver, choose_simplex_solver
from mechdesign.synthesis._normal import (
    ChannelCandidate,
    FormMultipliers,
    NormalForm,
    find_bounded_pairs,
    mark_irreducible,
    measure_dilation,
)
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._rounding import compute_repaired_cost
from mechdesign.synthesis._settings import SolveSettings

# Smallest magnitude of the cost that may determine its scale, as a share of the largest cost.
_MIN_COST_SHARE = 1e-8
# Number of rows after which the listing of rows checks the time limit again.
_ROWS_PER_CHECK = 1_000_000


@dataclass(frozen=True, eq=False)
class Triples:
    """Privacy rows (source group, target group, observable), as three arrays of one length."""

    sources: Integers
    targets: Integers
    observables: Integers

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.sources.size)

    def append(self, other: Triples) -> Triples:
        """Return these rows followed by the rows of `other`."""
        return Triples(
            np.concatenate([self.sources, other.sources]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.observables, other.observables]),
        )


def list_all_rows(pairs: Flags, observables: int) -> Triples:
    """Return a row for every marked pair (k, k) and every observable."""
    sources, targets = np.nonzero(pairs)
    return Triples(
        np.repeat(sources, observables),
        np.repeat(targets, observables),
        np.tile(np.arange(observables), sources.size),
    )


def list_permitted_rows(pairs: Flags, form: NormalForm, deadline: Deadline | None = None) -> Triples:
    """Return a row for every marked pair (k, k) and every observable that is not forbidden to its source.

    Raises OutOfTimeError at the time limit.
    """
    step = max(1, _ROWS_PER_CHECK // (form.groups * form.observables))
    parts: list[tuple[Integers, Integers, Integers]] = []
    for first in range(0, form.groups, step):
        if deadline is not None:
            deadline.check_time()
        every = list_all_rows(pairs[first : first + step], form.observables)
        sources = every.sources + first
        used = ~form.forbidden[sources, every.observables]
        parts.append((sources[used], every.targets[used], every.observables[used]))
    return Triples(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class RowInverse:
    """Maps solutions of a row program back to candidates; see `RowReduction.apply` for its rows and columns.

    Attributes:
        form: The normal form.
        triples: The privacy rows.
        program: The linear program.
        roots: √g of each privacy row.
        scale: Factor of the costs.
        floor_scales: Factor of the errors of each floor.
        magnification: Further factor of the objective.
    """

    form: NormalForm
    triples: Triples
    program: LinearProgram
    roots: Floats
    scale: float
    floor_scales: tuple[float, ...]
    magnification: float

    def __call__(self, solution: Solution) -> ChannelCandidate:
        """Return the candidate of a solution; matrix and multipliers are None if they are not finite."""
        summary = SolveSummary(
            solution.status,
            solution.message,
            solver=solution.solver,
            solver_version=solution.version,
            program_rows=self.program.rows,
            program_columns=self.program.columns,
            iterations=solution.iterations,
            primal_residual=solution.residuals.primal,
            dual_residual=solution.residuals.dual / self.magnification,
        )
        return ChannelCandidate(
            self.channel(solution.x) if np.isfinite(solution.x).all() else None,
            self.multipliers(solution.row_dual) if np.isfinite(solution.row_dual).all() else None,
            summary,
            solution.start,
        )

    def channel(self, x: Floats) -> Floats:
        """Return p(o|group), shape (k, m), from a solution."""
        return x[self.program.column_blocks["p"]].reshape(self.form.groups, self.form.observables)

    def multipliers(self, row_dual: Floats) -> FormMultipliers:
        """Return the multipliers of the normal form's unscaled rows; multipliers of the wrong sign become 0."""
        blocks = self.program.row_blocks
        unscaled = row_dual / self.magnification
        dual = np.maximum(unscaled, 0.0)
        floors = []
        for i, (floor, factor) in enumerate(zip(self.form.floors, self.floor_scales, strict=True)):
            values = dual[blocks[f"floor{i}"]][:-1] * factor / self.scale
            floors.append(values.reshape(floor.error.shape[0], self.form.observables))
        return FormMultipliers(
            self.triples.sources,
            self.triples.targets,
            self.triples.observables,
            dual[blocks["privacy"]] / self.roots / self.scale,
            tuple(floors),
            dual[blocks["worst"]] if self.form.problem.objective == "worst" else None,
            unscaled[blocks["sums"]] / self.scale,
        )

    def bound(self, solution: Solution) -> float:
        """Return the dual objective of a solution in the unit of the cost; dual infeasibility makes it inexact."""
        return solution.residuals.bound / self.scale / self.magnification


@dataclass(frozen=True, eq=False)
class RowReduction:
    """Reduction of a normal form to a linear program with the given privacy rows.

    A program with only some of the privacy rows is a relaxation: its value is a lower bound, which its multipliers
    prove.

    Attributes:
        triples: The privacy rows.
        scaled: Whether costs and floors are scaled for solvers. Otherwise, the objective is the cost itself.
        magnification: Further factor of the objective. The solver's absolute tolerance on reduced costs is then smaller
            in the unit of the cost, which gives better multipliers.
    """

    triples: Triples
    scaled: bool = True
    magnification: float = 1.0

    def apply(self, form: NormalForm) -> tuple[LinearProgram, RowInverse]:
        """Build the program of equations (11)/(12) and (21)–(24) of Privacy Games (Shokri 2015).

        Columns: ``p`` (groups × observables, row-major); ``x0``, ``x1``, … (the adversary's error, for each floor and
        observable); and ``theta`` (the worst cost). Rows: ``sums``, ``floor0``, …, ``worst`` and finally ``privacy``.

        Privacy rows have the form √g p(o|t) − p(o|s)/√g >= 0 with g = exp(ε d(s, t)). Costs and θ are multiplied by one
        scale, and the errors of each floor by another, so that all numbers are of order 1. Forbidden answers have the
        upper bound 0.
        """
        problem, observables = form.problem, form.observables
        costs = form.finite_cost
        worst = problem.objective == "worst"
        starts = np.cumsum([0, form.groups * observables] + [observables] * len(form.floors))
        width = int(starts[-1]) + worst
        column_blocks = {"p": slice(0, int(starts[1]))}
        column_blocks |= {f"x{i}": slice(int(starts[i + 1]), int(starts[i + 2])) for i in range(len(form.floors))}
        column_blocks |= {"theta": slice(width - 1, width)} if worst else {}

        scale = _choose_scale(form) if self.scaled else 1.0
        cost, lower, upper = np.zeros(width), np.zeros(width), np.full(width, np.inf)
        upper[column_blocks["p"]][form.forbidden.ravel()] = 0.0
        if worst:
            cost[-1] = 1.0
        else:
            cost[column_blocks["p"]] = form.gather(problem.prior[:, None] * costs).ravel() * scale
        # The adversary's errors x need no lower bound: the rows bound x from above, and the floor keeps its sum
        # positive. With a lower bound of 0, IPX would stall.
        lower[starts[1] : starts[-1]] = -np.inf

        floor_scales = tuple(observables / floor.minimum if self.scaled else 1.0 for floor in form.floors)
        roots = np.exp(form.exponents[self.triples.sources, self.triples.targets] / 2)
        blocks = [_make_sum_rows(form, width)]
        for i, factor in enumerate(floor_scales):
            blocks.append(_make_floor_rows(form, i, factor, int(starts[i + 1]), width))
        if worst:
            blocks.append(_make_worst_rows(form, costs * scale, width))
        blocks.append(_make_privacy_rows(form, self.triples, roots, width))
        stops = np.cumsum([0] + [block.matrix.shape[0] for block in blocks]).tolist()
        program = LinearProgram(
            cost=cost * self.magnification,
            matrix=sparse.csr_array(sparse.vstack([block.matrix for block in blocks])),
            row_lower=np.concatenate([block.lower for block in blocks]),
            row_upper=np.concatenate([block.upper for block in blocks]),
            lower=lower,
            upper=upper,
            row_blocks={block.name: slice(stops[i], stops[i + 1]) for i, block in enumerate(blocks)},
            column_blocks=column_blocks,
            name=problem.title or "channel",
        )
        return program, RowInverse(form, self.triples, program, roots, scale, floor_scales, self.magnification)


def _choose_scale(form: NormalForm) -> float:
    """Return the factor of the costs: it makes the worst cost of order 1, and the expected cost of order k.

    The expected cost is estimated by the cheapest constant output or, if answers are forbidden, by the mean cost of the
    permitted ones. With a peaked prior, the expected cost can be tiny; without scaling, solvers would treat its terms
    as 0.
    """
    problem = form.problem
    largest = float(form.finite_cost.max())
    if not largest:
        return 1.0
    if problem.objective == "worst":
        return 1.0 / max(largest, 1e-300)
    if form.forbidden.any():
        permitted = np.isfinite(problem.cost).sum(axis=1)
        magnitude = float(problem.prior @ (form.finite_cost.sum(axis=1) / permitted))
    else:
        magnitude = float((problem.prior @ problem.cost).min())
    return form.groups / max(magnitude, _MIN_COST_SHARE * largest, 1e-300)


@dataclass(frozen=True, eq=False)
class _RowBlock:
    """A named block of rows, with lower and upper bounds."""

    name: str
    matrix: sparse.coo_array
    lower: Floats
    upper: Floats


def _make_block(
    name: str, entries: Sequence[tuple[Floats, Integers, Integers]], lower: Floats, upper: float, width: int
) -> _RowBlock:
    """Build a block of rows from entries (values, rows, columns)."""
    values, rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = sparse.coo_array((values, (rows, columns)), shape=(lower.size, width))
    return _RowBlock(name, matrix, lower, np.full(lower.size, upper))


def _make_sum_rows(form: NormalForm, width: int) -> _RowBlock:
    """Return the rows Σ_o p(o|g) = 1."""
    columns = np.arange(form.groups * form.observables)
    entries = (np.ones(columns.size), columns // form.observables, columns)
    return _make_block("sums", [entries], np.ones(form.groups), 1.0, width)


def _make_floor_rows(form: NormalForm, index: int, factor: float, start: int, width: int) -> _RowBlock:
    """Return the rows Σ_g factor·error[ŝ, g] p(o|g) − x_o >= 0 for all ŝ and o, and Σ_o x_o >= factor·minimum.

    The first column of x is `start`.
    """
    floor, observables = form.floors[index], form.observables
    estimates = floor.error.shape[0]
    rows = np.arange(estimates * observables)
    errors = sparse.coo_array(sparse.kron(sparse.coo_array(floor.error * factor), sparse.eye_array(observables)))
    x_columns = np.arange(start, start + observables)
    entries = [
        (errors.data, errors.row.astype(np.int64), errors.col.astype(np.int64)),
        (np.full(rows.size, -1.0), rows, np.tile(x_columns, estimates)),
        (np.ones(observables), np.full(observables, rows.size), x_columns),
    ]
    lower = np.zeros(rows.size + 1)
    lower[-1] = factor * floor.minimum
    return _make_block(f"floor{index}", entries, lower, np.inf, width)


def _make_worst_rows(form: NormalForm, cost: Floats, width: int) -> _RowBlock:
    """Return the rows θ − Σ_o c(s, o) p(o|group of s) >= 0 for every secret, with scaled costs."""
    observables = form.observables
    secrets = np.arange(cost.shape[0])
    columns = (form.group[:, None] * observables + np.arange(observables)).ravel()
    entries = [
        (-cost.ravel(), np.repeat(secrets, observables), columns),
        (np.ones(secrets.size), secrets, np.full(secrets.size, width - 1)),
    ]
    return _make_block("worst", entries, np.zeros(secrets.size), np.inf, width)


def _make_privacy_rows(form: NormalForm, triples: Triples, roots: Floats, width: int) -> _RowBlock:
    """Return the rows √g p(o|t) − p(o|s)/√g >= 0 for every triple; `roots` holds √g."""
    rows = np.arange(triples.size)
    entries = [
        (roots, rows, triples.targets * form.observables + triples.observables),
        (-1 / roots, rows, triples.sources * form.observables + triples.observables),
    ]
    return _make_block("privacy", entries, np.zeros(triples.size), np.inf, width)


NEAR_DILATION = 1.0824
"""Dilation of the spanner of near pairs, 1/cos(π/8): on a grid, the spanner keeps the eight neighbours of each cell."""

_MAX_ROUNDS = 100
# Share of the tolerance that repairing violated rows may cost; rounding may use the rest.
_REPAIR_SHARE = 0.5
# Seconds for building a program and sending it to another process, per privacy row and per error of a floor.
_BUILD_S_PER_ROW, _BUILD_S_PER_ERROR = 5e-7, 2e-7
# A row is treated as violated if its residual exceeds both this amount and this share of the solver's gap.
_MIN_VIOLATION = 1e-11
_MIN_VIOLATION_SHARE = 1e-3


def solve_rows(attempt: Attempt, settings: SolveSettings, deadline: Deadline, start: object = None) -> ChannelCandidate:
    """Solve a normal form with the rows of an attempt, within the time limit.

    ``lazy``: solve with the rows of a spanner, then add violated rows of irreducible pairs. Repeat until no row is
    violated, or until repairing the violated rows costs less than the tolerance allows.
    ``near``: solve with the rows of a spanner at ε, for the multipliers. Then solve at ε divided by the dilation, for a
    channel that meets every bound.

    `start` is the warm start of an earlier solution with the same rows.
    """
    form, run = attempt.form, RowPrograms(attempt, settings.options_for_rows(deadline), settings.tolerance)
    try:
        pairs = find_bounded_pairs(form, attempt.rows, deadline)
        if attempt.rows in ("all", "reduced"):
            found, _, _ = run.solve(form, run.list_rows(pairs, form), start)
            return found.with_facts(rounds=1)
        near = mark_irreducible(form.exponents, NEAR_DILATION, deadline) & find_bounded_pairs(form, "all")
        return _solve_near(form, near, run) if attempt.rows == "near" else _solve_lazily(form, pairs, near, run)
    except OutOfTimeError:
        return _make_late_candidate(attempt)


def _make_late_candidate(attempt: Attempt) -> ChannelCandidate:
    """Return a candidate without matrix and multipliers, if the time limit is reached before a program is built."""
    message = "time limit: no time to build the program"
    return ChannelCandidate(
        None, None, SolveSummary(Status.TIME_LIMIT, message, solver=attempt.solver, rows_policy=attempt.rows)
    )


@dataclass(frozen=True)
class RowPrograms:
    """Builds and solves the programs of an attempt, with common options and tolerance."""

    attempt: Attempt
    options: Options
    tolerance: float

    def solve(
        self, form: NormalForm, triples: Triples, start: object = None
    ) -> tuple[ChannelCandidate, Solution, RowInverse]:
        """Solve one program in the remaining time.

        Raises OutOfTimeError if the remaining time is too short to build the program.
        """
        errors = sum(floor.error.size for floor in form.floors) * form.observables
        left = self.options.deadline.left()
        if left is not None and triples.size * _BUILD_S_PER_ROW + errors * _BUILD_S_PER_ERROR > left:
            raise OutOfTimeError
        program, inverse = RowReduction(triples, magnification=self.attempt.magnification).apply(form)
        solution = solvers.solve(program, self.attempt.solver, self.options, start)
        return inverse(solution).with_facts(rows_policy=self.attempt.rows), solution, inverse

    def list_rows(self, pairs: Flags, form: NormalForm) -> Triples:
        """List the rows of these pairs."""
        return list_permitted_rows(pairs, form, self.options.deadline)


def _solve_near(form: NormalForm, near: Flags, run: RowPrograms) -> ChannelCandidate:
    """Solve with near pairs at ε for the multipliers, and at ε divided by their dilation for the channel."""
    factor = measure_dilation(form.exponents, near, run.options.deadline)
    if not np.isfinite(factor):
        raise InputError(
            "rows",
            "leaves pairs that no path of near pairs connects",
            value="near",
            remedy='use rows = "lazy" or "all"',
        )
    triples = run.list_rows(near, form)
    outer, _, _ = run.solve(form, triples)
    try:
        inner, _, _ = run.solve(replace(form, exponents=form.exponents / factor), triples)
    except OutOfTimeError:
        inner = _make_late_candidate(run.attempt)
    # The potentials are removed so that the multipliers are not polished: the gap comes from the divided ε, not from
    # the multipliers.
    proof = outer.multipliers and replace(outer.multipliers, potentials=None)
    return replace(inner.with_facts(rounds=2, dilation=factor), multipliers=proof)


def _solve_lazily(form: NormalForm, pairs: Flags, near: Flags, run: RowPrograms) -> ChannelCandidate:
    """Solve with near pairs first, and add violated rows of `pairs` round by round."""
    triples = run.list_rows(near & pairs, form)
    loaded = np.zeros((form.groups, form.groups, form.observables), dtype=bool)
    loaded[triples.sources, triples.targets, triples.observables] = True
    sources, targets = np.nonzero(pairs)
    last = ChannelCandidate(None, None, SolveSummary(Status.FAILED, "no round was finished"))
    best: Bracket[Floats, FormMultipliers] = Bracket()
    # The centre of the optimal face violates far fewer missing rows than one of its vertices.
    run = replace(run, options=replace(run.options, vertex=False))
    start: object = None
    for rounds in range(1, _MAX_ROUNDS + 1):
        try:
            found, solution, inverse = run.solve(form, triples, start)
        except OutOfTimeError:
            late = _make_late_candidate(run.attempt)
            kept = late if last.matrix is None else _take_best(last, best)
            return kept.with_facts(status=late.status, message=late.summary.message)
        if solution.status in (Status.FAILED, Status.STALLED) and not run.options.vertex:
            run = replace(run, options=replace(run.options, vertex=True))
            found, solution, inverse = run.solve(form, triples, start)
        found = found.with_facts(rounds=rounds)
        if found.status is not Status.OPTIMAL or found.matrix is None:
            # The point of a stopped solver is seldom better than that of the previous round, so it is used only in
            # round 1.
            kept = found if last.matrix is None else _take_best(last, best)
            return kept.with_facts(status=found.status, message=found.summary.message)
        last, bound = found, inverse.bound(solution)
        if found.multipliers is not None:
            best.offer_bound(bound, found.multipliers)
        least = max(_MIN_VIOLATION, _MIN_VIOLATION_SHARE * run.options.relative_gap, 2 * solution.residuals.primal)
        fresh = _find_violated(form, found.matrix, sources, targets, loaded, least)
        stage = f"round {rounds}: {triples.size} rows, {fresh.size} violated"
        run.options.deadline.tell(stage, rounds, bound)
        if not fresh.size:
            return last
        if not form.forbidden.any():
            best.offer_point(compute_repaired_cost(form, found.matrix), found.matrix)
            if best.gap <= _REPAIR_SHARE * run.tolerance:
                words = f"repairing the {fresh.size} violated rows costs less than the tolerance"
                return _take_best(last, best).with_facts(message=words)
        start = solution.start
        loaded[fresh.sources, fresh.targets, fresh.observables] = True
        triples = triples.append(fresh)
    message = f"rows were still violated after {_MAX_ROUNDS} rounds"
    return _take_best(last, best).with_facts(status=Status.ITERATION_LIMIT, message=message)


def _take_best(last: ChannelCandidate, best: Bracket[Floats, FormMultipliers]) -> ChannelCandidate:
    """Return the last candidate with the best bound of all rounds, and the channel with the least repaired cost."""
    matrix = last.matrix if best.point is None else best.point
    return replace(last, matrix=matrix, multipliers=last.multipliers if best.proof is None else best.proof)


def _find_violated(
    form: NormalForm,
    matrix: Floats,
    sources: Integers,
    targets: Integers,
    loaded: Flags,
    tolerance: float,
) -> Triples:
    """Return the missing rows that `matrix` violates by more than `tolerance`, in the scale of the program."""
    roots = np.exp(form.exponents[sources, targets] / 2)[:, None]
    found: list[Triples] = []
    step = max(1, 2_000_000 // form.observables)
    for start in range(0, sources.size, step):
        part = slice(start, start + step)
        s, t = sources[part], targets[part]
        index, o = np.nonzero(matrix[s] / roots[part] - matrix[t] * roots[part] > tolerance)
        new = ~loaded[s[index], t[index], o]
        found.append(Triples(s[index][new], t[index][new], o[new]))
    empty = np.zeros(0, dtype=np.int64)
    result = Triples(empty, empty, empty)
    for part_found in found:
        result = result.append(part_found)
    return result


# Amount of a floor's slack that counts as one unit, as a share of the floor.
_UNIT_FLOOR_SHARE = 1 / 64
# Accuracy with which solvers meet rows. A problem is infeasible if its largest slack is below minus this accuracy.
_FEASIBILITY_TOLERANCE = 1e-8
# Shortest time limit of the linear program.
_MIN_TIME_LIMIT_S = 1.0


def find_interior_channel(form: NormalForm, deadline: Deadline | None = None) -> Floats:
    """Return the channel with the largest minimal slack in all bounds and floors.

    Args:
        form: Normal form with k groups and m observables.
        deadline: Deadline of the design.

    Returns:
        p(o|group), shape (k, m), 0 for forbidden answers.

    Raises:
        InfeasibleError: Every channel violates some bound or floor.
        TimeLimitError: No channel was found within the remaining time, or within one second if that is longer.
        SolverError: The solver fails.
    """
    triples = list_permitted_rows(find_bounded_pairs(form, "reduced"), form)
    program, inverse = RowReduction(triples).apply(form)
    solver = choose_simplex_solver() if program.rows <= MAX_SIMPLEX_ROWS else choose_lazy_solver()
    # Without an interior channel nothing can be certified, so the solver gets at least a minimal time.
    left = None if deadline is None else deadline.left()
    limit = None if left is None else max(left, _MIN_TIME_LIMIT_S)
    solution = solvers.solve(_maximise_slack(program, inverse), solver, Options(deadline=Deadline(limit)))
    if solution.status is Status.TIME_LIMIT and not solution.residuals.primal <= _FEASIBILITY_TOLERANCE:
        raise TimeLimitError(f"{solver} found no channel that gives only permitted answers within {limit:.3g} s")
    if not np.isfinite(solution.x).all():
        raise SolverError(f"{solver} found no channel with slack in all bounds: {solution.message}")
    room = float(solution.x[-1])
    if room < -_FEASIBILITY_TOLERANCE:
        what = "bounds and floors" if form.floors else "bounds"
        raise InfeasibleError(
            f"no channel that gives only permitted answers meets all {what}; a linear program shows that the best one "
            f"violates one of them by {-room:.2g} of its scale. Forbid fewer answers, or relax the requirements",
            "cost",
        )
    rows = np.where(form.forbidden, 0.0, np.clip(inverse.channel(solution.x[:-1]), 0.0, 1.0))
    found: Floats = rows / rows.sum(axis=1, keepdims=True)
    return found


def _maximise_slack(program: LinearProgram, inverse: RowInverse) -> LinearProgram:
    """Replace the objective by the common slack of all bounds and floors, for which a last column is added."""
    form = inverse.form
    widths = np.zeros(program.rows)
    # The unit of slack in a privacy row √g p(o|t) − p(o|s)/√g >= 0 is the slack of the uniform channel, up to a limit.
    widths[program.row_blocks["privacy"]] = np.minimum(inverse.roots - 1 / inverse.roots, 1.0) / form.observables
    for i in range(len(form.floors)):
        last = program.row_blocks[f"floor{i}"].stop - 1
        widths[last] = program.row_lower[last] * _UNIT_FLOOR_SHARE
    cost = np.zeros(program.columns + 1)
    cost[-1] = -1.0
    return replace(
        program,
        cost=cost,
        matrix=sparse.csr_array(sparse.hstack([program.matrix, sparse.csr_array(-widths[:, None])])),
        lower=np.append(program.lower, -np.inf),
        upper=np.append(program.upper, 1.0),
        column_blocks={**program.column_blocks, "room": slice(program.columns, program.columns + 1)},
    )
