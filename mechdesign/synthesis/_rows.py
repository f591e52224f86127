"""Row programs: reduction, all rows, lazy rows.

The last is row generation, the method of cutting planes (Kelley 1960): every round is a relaxation, whose value and
multipliers are lower bounds; it ends when no row that was left out is violated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline, OutOfTimeError
from mechdesign.base._errors import InputError
from mechdesign.solve import _solve as solvers
from mechdesign.solve._column_generation import Bracket
from mechdesign.solve._contract import Options, Solution, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._attempts import Attempt
from mechdesign.synthesis._normal import Candidate, FormMultipliers, NormalForm
from mechdesign.synthesis._pairs import bounded_pairs, dilation, irreducible
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._rounding import repaired_cost
from mechdesign.synthesis._settings import SolveSettings

_LEAST_MAGNITUDE = 1e-8
# Rows that are listed before the clock is looked at.
_AT_A_TIME = 1_000_000


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
        """Return these rows followed by those of `other`."""
        return Triples(
            np.concatenate([self.sources, other.sources]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.observables, other.observables]),
        )


def all_triples(pairs: Flags, observables: int) -> Triples:
    """Return a row for every marked pair (k, k) and every observable."""
    sources, targets = np.nonzero(pairs)
    return Triples(
        np.repeat(sources, observables),
        np.repeat(targets, observables),
        np.tile(np.arange(observables), sources.size),
    )


def permitted_triples(pairs: Flags, form: NormalForm, deadline: Deadline | None = None) -> Triples:
    """Return a row for every marked pair (k, k) and every observable that is not forbidden to its source.

    Raises OutOfTimeError at the time limit.
    """
    step = max(1, _AT_A_TIME // (form.groups * form.observables))
    parts: list[tuple[Integers, Integers, Integers]] = []
    for first in range(0, form.groups, step):
        if deadline is not None:
            deadline.check_time()
        every = all_triples(pairs[first : first + step], form.observables)
        sources = every.sources + first
        used = ~form.forbidden[sources, every.observables]
        parts.append((sources[used], every.targets[used], every.observables[used]))
    return Triples(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class RowInverse:
    """The way back from a program of rows: `apply` of `RowReduction` says what its rows and columns are."""

    form: NormalForm
    triples: Triples
    program: LinearProgram
    roots: Floats
    scale: float
    floor_scales: tuple[float, ...]
    magnification: float

    def __call__(self, solution: Solution) -> Candidate:
        """Turn a solution into a candidate; numbers that are missing are left out."""
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
        return Candidate(
            self.channel(solution.x) if np.isfinite(solution.x).all() else None,
            self.multipliers(solution.row_dual) if np.isfinite(solution.row_dual).all() else None,
            summary,
            solution.start,
        )

    def channel(self, x: Floats) -> Floats:
        """Read p(o|group) (k, m) out of a solution."""
        return x[self.program.column_blocks["p"]].reshape(self.form.groups, self.form.observables)

    def multipliers(self, row_dual: Floats) -> FormMultipliers:
        """Return the multipliers of the normal form's own rows; those of the wrong sign become zero."""
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
        """Return the dual objective of a solution in the unit of the cost, up to its dual infeasibility."""
        return solution.residuals.bound / self.scale / self.magnification


@dataclass(frozen=True, eq=False)
class RowReduction:
    """From a normal form to a linear program with the given privacy rows, and back.

    Leaving rows out gives a relaxation: its value is a lower bound, and its multipliers are valid for the problem.

    Attributes:
        triples: The privacy rows.
        scaled: Whether costs, floors and rows are scaled for solvers; otherwise the objective is the cost itself.
        magnification: A further factor of the objective. Solvers accept reduced costs down to an absolute tolerance,
            which a larger objective makes smaller in the unit of the cost: better multipliers, at the same rows.
    """

    triples: Triples
    scaled: bool = True
    magnification: float = 1.0

    def apply(self, form: NormalForm) -> tuple[LinearProgram, RowInverse]:
        """Build the program of equations (11)/(12) and (21)–(24) of Privacy Games (Shokri 2015).

        Columns: ``p`` (groups × observables, row-major), ``x0``, ``x1``, … (one per floor and observable: the
        adversary's error there), ``theta`` (worst cost). Rows: ``sums``, ``floor0``, …, ``worst`` and, last,
        ``privacy``. Privacy rows read √g p(o|t) − p(o|s)/√g >= 0 with g = exp(ε d(s, t)). Costs and θ are multiplied by
        one scale, the errors of floor i by another; that makes all of order one. Forbidden answers get the upper bound
        0.
        """
        problem, observables = form.problem, form.observables
        costs = form.finite_cost
        worst = problem.objective == "worst"
        starts = np.cumsum([0, form.groups * observables] + [observables] * len(form.floors))
        width = int(starts[-1]) + worst
        column_blocks = {"p": slice(0, int(starts[1]))}
        column_blocks |= {f"x{i}": slice(int(starts[i + 1]), int(starts[i + 2])) for i in range(len(form.floors))}
        column_blocks |= {"theta": slice(width - 1, width)} if worst else {}

        scale = _scale(form) if self.scaled else 1.0
        cost, lower, upper = np.zeros(width), np.zeros(width), np.full(width, np.inf)
        upper[column_blocks["p"]][form.forbidden.ravel()] = 0.0
        if worst:
            cost[-1] = 1.0
        else:
            cost[column_blocks["p"]] = form.gather(problem.prior[:, None] * costs).ravel() * scale
        # The rows bound x from above and keep it positive where it counts; a bound of 0 of its own makes IPX stall.
        lower[starts[1] : starts[-1]] = -np.inf

        floor_scales = tuple(observables / floor.minimum if self.scaled else 1.0 for floor in form.floors)
        roots = np.exp(form.exponents[self.triples.sources, self.triples.targets] / 2)
        blocks = [_sums(form, width)]
        for i, factor in enumerate(floor_scales):
            blocks.append(_floor(form, i, factor, int(starts[i + 1]), width))
        if worst:
            blocks.append(_worst(form, costs * scale, width))
        blocks.append(_privacy(form, self.triples, roots, width))
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


def _scale(form: NormalForm) -> float:
    """Return what makes the optimum of order one, or of the order of the groups where every group has its own cost.

    The cheapest constant output bounds the optimum; where answers are forbidden, the mean of the permitted ones stands
    for it. Where a peaked prior makes that tiny, solvers would otherwise take all that matters for zero.
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
    return form.groups / max(magnitude, _LEAST_MAGNITUDE * largest, 1e-300)


@dataclass(frozen=True, eq=False)
class _Block:
    name: str
    matrix: sparse.coo_array
    lower: Floats
    upper: Floats


def _block(
    name: str, entries: Sequence[tuple[Floats, Integers, Integers]], lower: Floats, upper: float, width: int
) -> _Block:
    """Gather entries (values, rows, columns) into a block of rows."""
    values, rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = sparse.coo_array((values, (rows, columns)), shape=(lower.size, width))
    return _Block(name, matrix, lower, np.full(lower.size, upper))


def _sums(form: NormalForm, width: int) -> _Block:
    """Σ_o p(o|g) = 1."""
    columns = np.arange(form.groups * form.observables)
    entries = (np.ones(columns.size), columns // form.observables, columns)
    return _block("sums", [entries], np.ones(form.groups), 1.0, width)


def _floor(form: NormalForm, index: int, factor: float, start: int, width: int) -> _Block:
    """Σ_g factor·error[ŝ, g] p(o|g) − x_o >= 0 for all ŝ, o; last Σ_o x_o >= factor·minimum; x begins at `start`."""
    floor, observables = form.floors[index], form.observables
    estimates = floor.error.shape[0]
    rows = np.arange(estimates * observables)
    errors = sparse.coo_array(sparse.kron(sparse.coo_array(floor.error * factor), sparse.eye_array(observables)))
    taken = np.arange(start, start + observables)
    entries = [
        (errors.data, errors.row.astype(np.int64), errors.col.astype(np.int64)),
        (np.full(rows.size, -1.0), rows, np.tile(taken, estimates)),
        (np.ones(observables), np.full(observables, rows.size), taken),
    ]
    lower = np.zeros(rows.size + 1)
    lower[-1] = factor * floor.minimum
    return _block(f"floor{index}", entries, lower, np.inf, width)


def _worst(form: NormalForm, cost: Floats, width: int) -> _Block:
    """θ − Σ_o c(s, o) p(o|group of s) >= 0 for every secret, with scaled costs."""
    observables = form.observables
    secrets = np.arange(cost.shape[0])
    columns = (form.group[:, None] * observables + np.arange(observables)).ravel()
    entries = [
        (-cost.ravel(), np.repeat(secrets, observables), columns),
        (np.ones(secrets.size), secrets, np.full(secrets.size, width - 1)),
    ]
    return _block("worst", entries, np.zeros(secrets.size), np.inf, width)


def _privacy(form: NormalForm, triples: Triples, roots: Floats, width: int) -> _Block:
    """√g p(o|t) − p(o|s)/√g >= 0 for every triple, with `roots` √g."""
    rows = np.arange(triples.size)
    entries = [
        (roots, rows, triples.targets * form.observables + triples.observables),
        (-1 / roots, rows, triples.sources * form.observables + triples.observables),
    ]
    return _block("privacy", entries, np.zeros(triples.size), np.inf, width)


NEAR_DILATION = 1.0824
"""The spanner keeps pairs that no detour longer by this factor replaces: on a grid eight neighbours, at 1/cos(π/8)."""

_ROUNDS = 100
# Share of the tolerance that the cost of meeting violated rows may take; the rest is for rounding.
_REPAIR_SHARE = 0.5
# Seconds that building a program and sending it to another process takes for each privacy row, and for each error in a
# floor's rows.
_BUILDING, _BUILDING_ERRORS = 5e-7, 2e-7
# Rows that are violated by less than the first are met; by the second, of the gap that the solver stops at.
_VIOLATED = 1e-11
_VIOLATED_SHARE = 1e-3


def solve_rows(attempt: Attempt, settings: SolveSettings, deadline: Deadline, start: object = None) -> Candidate:
    """Solve a normal form as planned, within the time limit in all.

    ``lazy``: solve on a spanner, add the violated rows of the irreducible pairs, repeat until none is violated, or
    until meeting them costs less than the tolerance.
    ``near``: solve on a spanner at ε for the multipliers, and at ε divided by its dilation for the channel, which then
    meets every bound. A `start` is the earlier answer's of the same rows.
    """
    form, run = attempt.form, RowPrograms(attempt, settings.options_for_rows(deadline), settings.tolerance)
    try:
        pairs = bounded_pairs(form, attempt.rows, deadline)
        if attempt.rows in ("all", "reduced"):
            found, _, _ = run.solve(form, run.listed(pairs, form), start)
            return found.noted(rounds=1)
        near = irreducible(form.exponents, NEAR_DILATION, deadline) & bounded_pairs(form, "all")
        return _near(form, near, run) if attempt.rows == "near" else _lazy(form, pairs, near, run)
    except OutOfTimeError:
        return _nothing(attempt)


def _nothing(attempt: Attempt) -> Candidate:
    """Return what there is where time is over before a program is built: no channel, and nothing proved."""
    message = "time limit: no time to build the program"
    return Candidate(
        None, None, SolveSummary(Status.TIME_LIMIT, message, solver=attempt.solver, rows_policy=attempt.rows)
    )


@dataclass(frozen=True)
class RowPrograms:
    """The programs of an attempt, which share options and tolerance."""

    attempt: Attempt
    options: Options
    tolerance: float

    def solve(self, form: NormalForm, triples: Triples, start: object = None) -> tuple[Candidate, Solution, RowInverse]:
        """Solve one program in the time that is left.

        Raises OutOfTimeError where the time left is too short to build it.
        """
        errors = sum(floor.error.size for floor in form.floors) * form.observables
        left = self.options.deadline.left()
        if left is not None and triples.size * _BUILDING + errors * _BUILDING_ERRORS > left:
            raise OutOfTimeError
        program, inverse = RowReduction(triples, magnification=self.attempt.magnification).apply(form)
        solution = solvers.solve(program, self.attempt.solver, self.options, start)
        return inverse(solution).noted(rows_policy=self.attempt.rows), solution, inverse

    def listed(self, pairs: Flags, form: NormalForm) -> Triples:
        """List the rows of these pairs."""
        return permitted_triples(pairs, form, self.options.deadline)


def _near(form: NormalForm, near: Flags, run: RowPrograms) -> Candidate:
    factor = dilation(form.exponents, near, run.options.deadline)
    if not np.isfinite(factor):
        raise InputError("rows", "the near set does not join all pairs", value="near", remedy="use lazy or all rows")
    triples = run.listed(near, form)
    outer, _, _ = run.solve(form, triples)
    try:
        inner, _, _ = run.solve(replace(form, exponents=form.exponents / factor), triples)
    except OutOfTimeError:
        inner = _nothing(run.attempt)
    # The gap is that of the rows, and none that better multipliers could close.
    proof = outer.multipliers and replace(outer.multipliers, potentials=None)
    return replace(inner.noted(rounds=2, dilation=factor), multipliers=proof)


def _lazy(form: NormalForm, pairs: Flags, near: Flags, run: RowPrograms) -> Candidate:
    triples = run.listed(near & pairs, form)
    loaded = np.zeros((form.groups, form.groups, form.observables), dtype=bool)
    loaded[triples.sources, triples.targets, triples.observables] = True
    sources, targets = np.nonzero(pairs)
    last = Candidate(None, None, SolveSummary(Status.FAILED, "no round was finished"))
    best: Bracket[Floats, FormMultipliers] = Bracket()
    # The centre of the optimal face violates far fewer of the rows left out than a vertex of it does.
    run = replace(run, options=replace(run.options, vertex=False))
    start: object = None
    for rounds in range(1, _ROUNDS + 1):
        try:
            found, solution, inverse = run.solve(form, triples, start)
        except OutOfTimeError:
            late = _nothing(run.attempt)
            kept = late if last.matrix is None else _with_best(last, best)
            return kept.noted(status=late.status, message=late.summary.message)
        if solution.status in (Status.FAILED, Status.STALLED) and not run.options.vertex:
            run = replace(run, options=replace(run.options, vertex=True))
            found, solution, inverse = run.solve(form, triples, start)
        found = found.noted(rounds=rounds)
        if found.status is not Status.OPTIMAL or found.matrix is None:
            # What a stopped solver holds is seldom better than the round before; without one it is all there is.
            kept = found if last.matrix is None else _with_best(last, best)
            return kept.noted(status=found.status, message=found.summary.message)
        last, bound = found, inverse.bound(solution)
        if found.multipliers is not None:
            best.offer_bound(bound, found.multipliers)
        least = max(_VIOLATED, _VIOLATED_SHARE * run.options.relative_gap, 2 * solution.residuals.primal)
        fresh = _violated(form, found.matrix, sources, targets, loaded, least)
        stage = f"round {rounds}: {triples.size} rows, {fresh.size} violated"
        run.options.deadline.tell(stage, rounds, bound)
        if not fresh.size:
            return last
        if not form.forbidden.any():
            best.offer_point(repaired_cost(form, found.matrix), found.matrix)
            if best.gap <= _REPAIR_SHARE * run.tolerance:
                words = f"meeting the {fresh.size} rows that are violated costs less than asked for"
                return _with_best(last, best).noted(message=words)
        start = solution.start
        loaded[fresh.sources, fresh.targets, fresh.observables] = True
        triples = triples.append(fresh)
    message = f"rows were still violated after {_ROUNDS} rounds"
    return _with_best(last, best).noted(status=Status.ITERATION_LIMIT, message=message)


def _with_best(last: Candidate, best: Bracket[Floats, FormMultipliers]) -> Candidate:
    """Return the last candidate with the cheapest channel, once it is repaired, and the best bound of all rounds."""
    matrix = last.matrix if best.point is None else best.point
    return replace(last, matrix=matrix, multipliers=last.multipliers if best.proof is None else best.proof)


def _violated(
    form: NormalForm,
    matrix: Floats,
    sources: Integers,
    targets: Integers,
    loaded: Flags,
    tolerance: float,
) -> Triples:
    """Return the rows of the given pairs that `matrix` violates by more than `tolerance`, scaled as in the program."""
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
