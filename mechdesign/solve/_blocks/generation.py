"""Block generation: solve with few columns, price the others, take in what improves, until nothing does.

An optimum uses few columns, and blocks that vanish are what makes the path long: with those that matter alone it takes
half the iterations, each of a fraction of the blocks. A small program like the large one (`aggregation.py`) says with
which columns to begin, where blocks are dense; those that turn out to be empty are merged into others (`merging.py`).
The rest is the decomposition of Dantzig and Wolfe (Operations Research, 1960) with blocks for columns: the multipliers
λ of the row sums and v of the floors price every column left out (`pricing.py`). The multipliers of all together prove
a bound over all columns, so that the last round's bracket is the whole program's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Progress, Stop
from mechdesign.base._errors import SolverError
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    lower_bound,
    objective,
    priced_cost,
    repaired,
)
from mechdesign.solve._blocks import stages
from mechdesign.solve._blocks.aggregation import aggregated
from mechdesign.solve._blocks.choice import CLOSE, NEAR, Choice, beyond
from mechdesign.solve._blocks.correction import corrected
from mechdesign.solve._blocks.estimates import with_close_estimates
from mechdesign.solve._blocks.iterate import EAGER, UNIFORM, State
from mechdesign.solve._blocks.kernels import sparse_kernel
from mechdesign.solve._blocks.memory import FEW, allowed_memory, block_memory, check_merging, few_may_do
from mechdesign.solve._blocks.merging import merged
from mechdesign.solve._blocks.outside import Outside, restricted
from mechdesign.solve._blocks.pricing import Priced
from mechdesign.solve._blocks.solution import BlockSolution, Iteration, free_constant, no_multipliers, no_time
from mechdesign.solve._blocks.solve import Reached, iterate_blocks, solve_block
from mechdesign.solve._blocks.stages import Stage
from mechdesign.solve._contract import Options, Status

_ROUNDS = 20
# Each round is more careful than the one before, which may have merged too much.
_CARE = 0.25
# Short of the gap asked for a round need not be more exact than prices are: about as exact as the gap at which they are
# taken.
_LOOSE, _TENTH = 5e-3, 0.1
# At least so many columns are taken in after a round if there are as many that improve the objective, or as many as
# there are already.
_TAKEN = 16
# How much of the gap the restricted program may take, and what is left out.
_SOLVED, _PRICED = 0.5, 0.25
# Correcting the bound for missing columns leaves an eighth to an eighteenth of what they cost it. It is done where they
# are few, as a part of those in use, or may be enough; and as exactly as these parts of the gap, or of what was lost.
_CORRECTED, _FEW_MISSING, _EXACT, _EXACTLY = 30.0, 0.1, 0.05, 0.01
# The part of a floor's multipliers from which on an estimate matters to a missing column.
_MATTERS = 1e-2
# What columns may cost beyond those in use at a small program's multipliers, as a part of the cost: those in use, to be
# tried, unless these then hold less than this part of the mass, and all others, to be looked at after that.
_LEAN, _CARRYING, _LIKELY = 3e-3, 0.8, 0.01
# And at those of the trial, to be begun with besides the columns that were tried.
_NEARLY = 1e-4
# A trial is worth beginning anew where so many times its time is left.
_AGAIN = 4.0
# By what part of the cost, or of this part of the largest one, rounding may put it below the bound.
_ROUNDING, _UNIT = 1e-6, 1e-9
# Share of the time left, when a round begins, for its restricted programs; the rest is for pricing.
_RESTRICTED_SHARE = 0.6
# Share of the time left for correcting the bound.
_SHARE = 0.6
# Seconds for pricing after Ctrl-C; another Ctrl-C ends it.
_GRACE = 60.0
# Floors whose part of the bound is below this part of the gap do not bind.
_FELT = 1e-2
# Where the small program takes fewer iterations, to its first gap or in all, everything at once is as fast.
_SHORT_PATH, _LONG_PATH = 16, 40


def may_pay(program: BlockProgram, options: Options | None = None) -> bool:
    """Tell whether block generation may be faster than all blocks at once."""
    floors, worst, extra = len(program.floors), program.worst is not None, (options or Options()).extra
    sparse, merges = (
        sparse_kernel(program, extra),
        extra.get("device") in (None, "cpu") and extra.get("arrays") != "torch",
    )
    return few_may_do(program.rows, program.columns, floors, worst=worst, sparse=sparse, merges=merges)


def solve_generated(
    program: BlockProgram, options: Options | None = None, *, gap: float = 3e-7, always: bool = False
) -> BlockSolution | None:
    """Solve `program` until the relative gap over all its columns is `gap`, with few columns at a time.

    Arguments, results and errors are those of `solve_block`; there is no use of symmetry. The history is that of all
    rounds, and the bracket that is reported is over all columns. Without `always`, there is no solution where there is
    memory for all blocks and the small program tells that many columns are in use or that the path is short: all blocks
    at once are faster then.
    """
    options = (options or Options()).begun()
    deadline = options.deadline
    clock = deadline.seconds()
    constant = free_constant(program, deadline.seconds() - clock)
    if constant is not None:
        return constant
    if deadline.left() == 0:
        return no_time(program, deadline.seconds() - clock)
    with deadline.keeping():
        run = _Run(program, options, gap, clock)
        try:
            if not run.begin(always=always):
                return None
            status, message = run.rounds()
        except KeyboardInterrupt:
            status, message = Status.INTERRUPTED, "stopped by the user"
        if deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        return run.solution(status, message)


def _relative(bracket: _Run | BlockSolution) -> float:
    """Return the relative gap of a bracket."""
    return (bracket.upper - bracket.lower) / max(abs(bracket.upper), 1e-300)


@dataclass(frozen=True, eq=False)
class _Proof:
    """A bound over all columns, and the multipliers that give it."""

    lower: float
    multipliers: BlockMultipliers


class _Run:
    """The rounds of a solve, and the best point and the best bound of all of them."""

    def __init__(self, program: BlockProgram, options: Options, gap: float, clock: float) -> None:
        self.program, self.options, self.gap, self.clock = program, options, gap, clock
        self.deadline = options.deadline
        self.pricing = self.deadline.grace(_GRACE)
        # Its end is fixed when a round begins: restricted programs follow each other, and all end then.
        self.round = self.deadline.part(_RESTRICTED_SHARE)
        self.choice = Choice.everything(program)
        self.point: Floats | None = None
        self.upper = np.inf
        self.proof: _Proof | None = None
        # A bound over all columns, to be told: its multipliers are not kept, so that what is proved after Ctrl-C may be
        # less.
        self.seen = -np.inf
        # What a channel costs that is there to be told of, likewise.
        self.costs = np.inf
        self.history: list[Iteration] = []
        self.memory, self.blocks, self.proving = 0, 0, 0.0
        self.sparse = sparse_kernel(program, self.options.extra)
        # It is tried before it is solved, with columns that are chosen by what they cost beyond those in use.
        self.tried = program.worst is None and bool(program.floors) and stages.tried(program.rows, gap)
        # Those that may be worth nearly as much as the columns in use.
        self.likely = np.arange(program.columns)
        # Dense blocks without floors: an eager start, and all columns are begun with.
        self.eager = not (program.floors or self.sparse)
        self.stages = stages.SPARSE if self.sparse else stages.FLOORLESS if self.eager else stages.USUAL
        self.outside = Outside(program, self.options, self._tell, self.pricing)

    @property
    def columns(self) -> Integers:
        """The columns in use."""
        return self.choice.columns

    @property
    def lower(self) -> float:
        """The best bound over all columns."""
        return -np.inf if self.proof is None else self.proof.lower

    def rounds(self) -> tuple[Status, str]:
        """Go on until the bracket is closed, time is up, or a round changes nothing."""
        level = min(_SOLVED * self.gap, max(_LOOSE, _TENTH * self.gap))
        for number in range(_ROUNDS):
            if number:
                self.round = self.deadline.part(_RESTRICTED_SHARE)
            try:
                first = self.tried and not number
                solution, complete = self._first(level) if first else self._solve(level, _CARE**number)
            except SolverError as error:
                # Without room for the columns taken in the bracket of the round before stays.
                if self.point is None:
                    raise
                return Status.STALLED, str(error)
            if solution.status is Status.INTERRUPTED:
                # The bound over all columns is not above that over those in use.
                if solution.lower > self.lower:
                    self._price(solution, _relative(solution))
                return solution.status, solution.message
            priced = self._price(solution, level)
            reached = self._relative()
            if reached <= self.gap:
                return (
                    Status.OPTIMAL,
                    f"relative gap {reached:.1e} after {number + 1} rounds, {self.columns.size} columns",
                )
            if self.deadline.stop() is not None or (solution.status is Status.TIME_LIMIT and not priced):
                return Status.TIME_LIMIT, f"relative gap {reached:.1e} at the time limit"
            tolerance = self._tolerance(level)
            better = sorted((found.upper, column) for column, found in priced.items() if found.upper < -tolerance)
            if not better and complete:
                return Status.STALLED, f"stalled at a relative gap of {reached:.1e}"
            added = [column for _, column in better[: max(_TAKEN, self.columns.size)]]
            self.choice = self.choice.only(np.union1d(self.columns, np.array(added, dtype=np.int64)))
        return Status.ITERATION_LIMIT, f"no end after {_ROUNDS} rounds"

    def begin(self, *, always: bool) -> bool:
        """Choose the columns that small programs like this use; return whether they are few, and the path long.

        Unless they are `always` to be chosen or there is no memory for all, a path that is short at first ends it
        early. With sparse blocks, and without floors, a small program would save too little: all columns are begun
        with, and those that matter least go as the gap falls.
        """
        if self.sparse or self.eager:
            if self.eager:
                check_merging(self.program.rows, self.program.columns, self.gap, self._allowed())
            return True
        always = always or not self._fits_at_once()
        begun, sizes, words = 0, stages.small_sizes(self.program.rows), "a small program like this one"
        for rows in sizes:
            small = self.choice.of(aggregated(self.program, rows))
            last = rows == sizes[-1]
            path = stages.of_small(rows, self.gap, last=last, tried=self.tried)
            begun = len(self.history)
            reached = self._narrow(small, path[:1], words)
            if not always and len(self.history) < _SHORT_PATH:
                return False
            reached = self._narrow(small, path[1:], words, reached)
            if reached is not None:
                before, x = self.choice.estimates, reached.points[:, : small.rows].T
                self.choice = self.choice.closer(small, x, CLOSE if last else 3 * CLOSE)
                if last and self.tried:
                    self._choose_columns(small, reached, before)
        few = self.columns.size <= FEW * self.program.columns
        return always or (few and len(self.history) - begun >= _LONG_PATH)

    def _allowed(self) -> float | None:
        """Return the most bytes that the process may take, where the options say so."""
        limit = self.options.extra.get("memory")
        return limit if isinstance(limit, int | float) else None

    def _fits_at_once(self) -> bool:
        """Tell whether there is memory for all blocks, where they are dense."""
        allowed = allowed_memory(self._allowed())
        rows, columns = self.program.rows, self.program.columns
        return allowed is None or block_memory(rows, columns, columns, len(self.program.floors), self.gap) <= allowed

    def _first(self, level: float) -> tuple[BlockSolution, bool]:
        """Solve roughly with the columns likely to be used, take in those worth nearly as much, and solve with these.

        What is begun with then has few columns that are not needed, and misses few that are. Return what `_solve` does,
        and that of the trial, with its choice, where it is closer than what time, the user or memory leaves of the
        second start, or where there is no time for one.
        """
        clock, program = self.deadline.seconds(), self.choice.of(self.program)
        state, stopped = self._narrowed(program, stages.TRIAL)
        if state is None:
            self.choice = self.choice.only(self.likely)
            return self._solve(level, 1.0)
        left, seconds = self.deadline.left(), self.deadline.seconds() - clock
        if stopped or state.gap > stages.TRIAL[-1][0] or (left is not None and left < _AGAIN * seconds):
            return self._solved(program, level, state, stopped=stopped)
        _, unit = beyond(program, self.columns, state)
        more, estimates = self._worth(program, state, _NEARLY * unit, self.likely), self.choice.estimates
        trial, complete = self._solved(program, level, state, stopped=self.deadline.stop() is Stop.USER, measured=True)
        if trial.status is Status.INTERRUPTED:
            return trial, complete
        chosen, self.choice = self.choice, self.choice.joined(more, estimates)
        # Its multipliers may be large.
        del state
        try:
            found = self._solve(level, 1.0)
        except SolverError as error:
            # There is no room for the columns taken in.
            found = replace(trial, status=Status.STALLED, message=str(error)), complete
            self.choice = chosen
        ended = found[0].status in (Status.TIME_LIMIT, Status.INTERRUPTED)
        if ended and _relative(trial) < _relative(found[0]):
            found = replace(trial, status=found[0].status, message=found[0].message), complete
            self.choice = chosen
        return found

    def _solve(self, level: float, care: float) -> tuple[BlockSolution, bool]:
        """Solve with the chosen columns and estimates to a gap, and keep the point if it is the best.

        Tell also whether these estimates were all that matter; those that were missing are chosen from then on.
        """
        program = self.choice.of(self.program)
        path = [(gap, care * empty) for gap, empty in self.stages if gap > 2 * level]
        start, stopped = self._narrowed(program, path)
        return self._solved(program, level, start, stopped=stopped)

    def _solved(
        self, program: BlockProgram, level: float, start: State | None, *, stopped: bool, measured: bool = False
    ) -> tuple[BlockSolution, bool]:
        """Do so from a state, which is used up; where the user has stopped it, or it is to be, only measure that."""
        near = None if start is None else start.near
        # Where it has been stopped, only what the state proves is measured.
        iterates = not (stopped or measured)
        chosen = restricted(program, self.columns)
        solution = solve_block(chosen, self._options(""), gap=level, start=start, iterates=iterates)
        if stopped:
            solution = replace(solution, status=Status.INTERRUPTED, message="stopped by the user")
        self._note(solution.history)
        self.proving += solution.proving
        self.blocks, self.memory = max(self.blocks, solution.blocks), max(self.memory, solution.memory)
        whole = restricted(self.program, self.columns)
        multipliers = self.choice.full(self.program, solution.multipliers)
        self.choice, complete = self.choice.completed(self.program, solution.x, near)
        point = solution.x if complete else repaired(whole, solution.x)
        upper = objective(whole, point)
        if upper < solution.lower - _ROUNDING * max(abs(upper), _UNIT * float(np.abs(whole.cost).max())):
            # After a stall a point may miss row sums so far that it is not feasible once they are met.
            point = repaired(whole, np.full(point.shape, 1 / self.columns.size))
            upper = objective(whole, point)
        if upper < self.upper:
            x = np.zeros((self.program.rows, self.program.columns))
            x[:, self.columns] = point
            self.point, self.upper = x, upper
        return replace(solution, multipliers=multipliers), complete

    def _choose_columns(self, small: BlockProgram, state: State, estimates: tuple[Integers, ...]) -> None:
        """Choose the columns to be tried of those in use, and those to be looked at after that, merged ones too.

        At the multipliers of a small program, unlike by the mass that a column has left there, all are judged alike.
        `estimates` are those of the small program.
        """
        more_than, unit = beyond(small, self.columns, state)
        more = self._worth(small, state, _LIKELY * unit, self.likely)
        self.deadline.check()
        used, mass = self.columns, state.points[:, : small.rows].sum(axis=1)
        kept = more_than <= _LEAN * unit
        joined = self.choice.joined(more, estimates)
        self.likely = joined.columns
        self.choice = joined.only(used[kept] if mass[kept].sum() >= _CARRYING * mass.sum() else used)

    def _worth(
        self, program: BlockProgram, state: State, most: float, among: Integers
    ) -> dict[int, tuple[Integers, ...]]:
        """Return which columns left out may cost at most this much beyond those in use of a state, with estimates."""
        n = program.rows
        multipliers, v = state.multipliers[:n], state.multipliers[n : n + len(program.floors)]
        outside = Outside(program, self.options, self._tell, self.deadline)
        return outside.worth(self.columns, state.points[:, :n].T, multipliers, v, most, NEAR, among)

    def _narrow(
        self, small: BlockProgram, path: Iterable[Stage], words: str, start: State | None = None
    ) -> State | None:
        """Iterate on a small program to each gap in turn, and merge columns that are all but empty then into others.

        Return the last state, or none where a gap is not reached.
        """
        for gap, empty in path:
            reached = self._iterated(small, gap, words, start)
            if reached.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if reached.status is not Status.OPTIMAL or reached.state is None:
                return None
            start = with_close_estimates(self._merged(small, reached.state, empty), small, NEAR)
        return start

    def _narrowed(self, program: BlockProgram, path: Iterable[Stage]) -> tuple[State | None, bool]:
        """Do so on the program itself; return the state, and whether the user has stopped it there.

        The state is also that at which time is up; none where the iteration stalls, or has no multipliers yet.
        """
        start = None
        for gap, empty in path:
            reached = self._iterated(program, gap, "", start)
            if reached.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
                return reached.state, reached.status is Status.INTERRUPTED
            if reached.status is not Status.OPTIMAL or reached.state is None:
                return None, False
            self._see(reached.state)
            columns = self.columns.size
            start = with_close_estimates(self._merged(program, reached.state, empty), program, NEAR)
            # Its multipliers may be large.
            del reached
            if self.eager and self.columns.size == columns:
                # All may be used, as with Hamming cost: each further stage would take a factorisation for nothing.
                break
        return start, False

    def _iterated(self, program: BlockProgram, gap: float, words: str, start: State | None) -> Reached:
        """Iterate on the chosen columns to a gap, and note what that took."""
        first = EAGER if self.eager else replace(UNIFORM, near=self.choice.flags())
        chosen, options = restricted(program, self.columns), self._options(words)
        reached = iterate_blocks(chosen, options, gap=gap, start=first if start is None else start)
        self._note(reached.history)
        self.memory = max(self.memory, reached.memory)
        return reached

    def _merged(self, program: BlockProgram, state: State, empty: float) -> State:
        """Merge the columns with less than this part of an even share into others."""
        weights = state.multipliers[program.rows + len(program.floors) :]
        # A part of a floor that other estimates do not allow would not stay one of the sum.
        parts, x = state.points[:, program.rows :].T, state.points[:, : program.rows].T
        sound = [w <= (floor.error @ x).min(axis=0) for w, floor in zip(parts, program.floors, strict=True)]
        movable = np.logical_and.reduce(sound) if sound else None
        after, stay = merged(state, priced_cost(program, weights)[:, self.columns], empty, movable)
        self.choice = self.choice.only(self.columns[stay])
        return after

    def _see(self, state: State) -> None:
        """Note what the channel of a state of the program itself costs once it keeps the floors with all estimates."""
        whole = restricted(self.program, self.columns)
        self.costs = min(self.costs, objective(whole, repaired(whole, state.points[:, : whole.rows].T)))

    def _note(self, history: tuple[Iteration, ...]) -> None:
        """Append the lines of a part to the history of the whole."""
        first, ended = len(self.history), self.deadline.seconds() - self.clock
        begun = ended - (history[-1].seconds if history else 0.0)
        self.history += [
            replace(each, iteration=first + index, seconds=begun + each.seconds) for index, each in enumerate(history)
        ]

    def _options(self, words: str) -> Options:
        """Return options for a part of the work, whose progress is told as that of the whole."""
        upper = min(self.upper, self.costs)

        def report(moment: Progress) -> None:
            mine = moment.upper if moment.upper is not None and moment.upper < upper and exact else upper
            text = f"{self.columns.size} of {self.program.columns} columns" + (f", {words}" if words else "")
            known = mine if np.isfinite(mine) else None
            count = len(self.history) + moment.iteration
            if complete and moment.lower is not None:
                self.seen = max(self.seen, moment.lower)
            self.deadline.tell(text, count, max(0.0, self.lower, self.seen), known)

        # With some estimates left out, what a point costs is not what a channel would.
        exact = not words and not self.program.floors
        # With all columns in use there are no others to price, and the bound is that of the whole.
        complete = not words and self.columns.size == self.program.columns
        deadline = self.deadline if complete else self.round
        return replace(self.options, deadline=deadline.part(report=report))

    def solution(self, status: Status, message: str) -> BlockSolution:
        """Return the best of all rounds."""
        program = self.program
        x = self.point
        if x is None:
            x = repaired(program, np.full((program.rows, program.columns), 1 / program.columns))
        self._keep(no_multipliers(program))
        assert self.proof is not None
        seconds = self.deadline.seconds() - self.clock
        return BlockSolution(
            status, x, self.proof.multipliers, self.proof.lower, objective(program, x), message, seconds, self.memory,
            self.blocks, tuple(self.history), self.proving,
        )  # fmt: skip

    def _relative(self) -> float:
        return _relative(self)

    def _tolerance(self, level: float) -> float:
        """Return how far below 0 a column's value may be: all rows together may gain this part of the cost."""
        return _PRICED * max(level, self.gap) * abs(self.upper) / self.program.rows

    def _price(self, solution: BlockSolution, level: float) -> dict[int, Priced]:
        """Price all other columns, and keep the bound over all columns if it is the best."""
        tolerance = self._tolerance(level)
        # Time or the user may end the pricing.
        self._keep(self.outside.without(self.columns, solution.multipliers))
        priced, multipliers = self.outside.price(self.columns, solution, tolerance, _FELT * level * abs(self.upper))
        self._keep(multipliers)
        self._tell("columns priced")
        self.deadline.check()
        missing = [column for column, found in priced.items() if found.lower < -tolerance]
        if missing and self._relative() > self.gap and self.deadline.stop() is None:
            lost = solution.lower - lower_bound(self.program, multipliers)
            if self._correctable(len(missing), lost, solution.lower):
                self._correct(multipliers, np.array(sorted(missing)), lost)
        return priced

    def _correctable(self, missing: int, lost: float, lower: float) -> bool:
        """Tell whether it is worth its time to correct a bound that missing columns have made less than `lower`."""
        # It takes as much of a round's time as columns are missing, and who stops the next round has the better bound.
        few = missing <= _FEW_MISSING * self.columns.size
        enough = lost <= _CORRECTED * (self.gap * abs(self.upper) - (self.upper - lower))
        return few or (enough and missing <= self.columns.size // 2)

    def _correct(self, multipliers: BlockMultipliers, missing: Integers, lost: float) -> None:
        """Keep the bound that is proved once the multipliers are corrected for the columns whose lack has cost it."""
        count, exact = missing.size, max(_EXACT * self.gap, _EXACTLY * lost / max(abs(self.upper), 1e-300))
        self._tell(f"correcting the bound for {count} missing column{'s' if count > 1 else ''}")
        estimates = [
            np.union1d(some, np.flatnonzero((values[:, missing] > _MATTERS * values.sum(axis=0).min()).any(axis=1)))
            for some, values in zip(self.choice.estimates, multipliers.floors, strict=True)
        ]
        options = replace(self.options, deadline=self.deadline.part(_SHARE).quiet())
        try:
            found = corrected(self.program, multipliers, missing, estimates, options, exact)
        except (SolverError, MemoryError) as error:
            # Without room for it the bound stays as it is.
            self._tell(str(error))
            return
        self._keep(found)
        self._tell("bound corrected")

    def _keep(self, multipliers: BlockMultipliers) -> None:
        """Keep the bound over all columns that these multipliers prove if it is the best."""
        lower = lower_bound(self.program, multipliers)
        if lower > self.lower:
            self.proof = _Proof(lower, multipliers)

    def _tell(self, words: str) -> None:
        """Report what is done now, with the bracket over all columns."""
        self.deadline.tell(words, len(self.history), max(0.0, self.lower, self.seen), self.upper)
