"""Solve a block program by the interior-point method; return the best point and the bound that its multipliers prove.

Theory: block_method, Start and stopping.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline, OutOfTimeError, Stop
from mechdesign.base._errors import InputError
from mechdesign.base._machine import count_processors
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    BlockSolution,
    Iteration,
    find_floor_multipliers,
    find_zero_cost_channel,
    lower_bound,
    objective,
    repair,
    solve_without_time,
)
from mechdesign.solve._blocks.dual import dual_bound, sparsify
from mechdesign.solve._blocks.iterate import (
    DISTANCE_START,
    UNIFORM_START,
    BlockState,
    Iterate,
    Start,
    primal_residual,
    resume_iterate,
    save_state,
    start_iterate,
)
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.layout import BlockLayout, lay_out
from mechdesign.solve._blocks.memory import MAX_COPIED_ROWS, MemoryBudget, check_memory
from mechdesign.solve._blocks.newton import FactoredBlocks, RatioRows, StallError, factor_blocks
from mechdesign.solve._blocks.step import take_step
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._blocks.tuning import TUNING, InteriorPointTuning
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._threads import Workers, blas_threads

_EXTRA = {"arrays", "memory"}
_STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class _CheckedOptions:
    """The checked options of a solve."""

    gap: float
    deadline: Deadline
    threads: int | None
    arrays: object
    budget: MemoryBudget
    tuning: InteriorPointTuning = TUNING.interior_point


def solve_by_interior_point(
    program: BlockProgram,
    options: Options | None = None,
    *,
    gap: float = 3e-7,
    symmetry: Symmetry | None = None,
    start: BlockState | None = None,
    iterates: bool = True,
    budget: MemoryBudget | None = None,
) -> BlockSolution:
    """Solve `program` to the relative gap `gap`. With `symmetry`, one block represents each orbit of columns.

    After Ctrl-C, the best solution so far is returned.

    Args:
        program: The program to minimise.
        options: Deadline, threads, and further keys in `extra`. The key "memory" is the memory budget of the process in
            bytes, by default all free memory. The key "arrays" is "numpy", "numba", or "sparse" for programs with few
            ratio bounds.
        gap: Relative gap at which to stop; it overrides `options.gap`.
        symmetry: Symmetries of the program to exploit.
        start: The state from which to continue, without symmetry; its arrays are overwritten. By default, the solve
            starts from a point well inside all bounds.
        iterates: Whether to iterate. If false, only the cost and the bound of `start` are evaluated.
        budget: The memory budget of the process; by default, the budget in `options`.

    Returns:
        The best point, multipliers that prove the bound, and the history.

    Raises:
        InputError: If an option is unknown or not a number.
        SolverError: If the estimated memory exceeds the budget. The estimate is checked before the solve starts.
    """
    settings = _check_options((options or Options()).begun(), gap, budget)
    began = settings.deadline.seconds()
    constant = find_zero_cost_channel(program, settings.deadline.seconds() - began)
    if constant is not None:
        return constant
    if settings.deadline.left() == 0 and start is None:
        return solve_without_time(program, settings.deadline.seconds() - began)
    first = DISTANCE_START if start is None else start
    with _open_interior_point(program, settings, began, symmetry, first, iterates=iterates) as method:
        return method.solution(*method.run())


@dataclass(frozen=True, eq=False)
class IterationEnd:
    """The result of `iterate_blocks`.

    Attributes:
        status: Reason for the end.
        message: The status in words.
        state: Last state, or None if the multipliers were not initialised before the end.
        history: The records of all iterations.
        memory: Estimated memory [bytes].
    """

    status: Status
    message: str
    state: BlockState | None
    history: tuple[Iteration, ...]
    memory: int


def iterate_blocks(
    program: BlockProgram,
    options: Options,
    *,
    gap: float,
    start: BlockState | Start = UNIFORM_START,
    budget: MemoryBudget | None = None,
) -> IterationEnd:
    """Iterate until the relative gap is at most `gap`, and return the last state without a proof of its bound.

    If the program has few columns, the uniform start takes fewer iterations than the default start of
    `solve_by_interior_point`.

    Args:
        program: The program to minimise.
        options: Options of `solve_by_interior_point`.
        gap: Relative gap at which to stop; it overrides `options.gap`.
        start: A start, or a state from which to continue; the arrays of the state are overwritten.
        budget: The memory budget of the process; by default, the budget in `options`.

    Returns:
        The last state and the history.

    Raises:
        InputError: If an option is unknown or not a number.
        SolverError: If the estimated memory exceeds the budget.
    """
    settings = _check_options(options, gap, budget)
    with _open_interior_point(program, settings, settings.deadline.seconds(), None, start, proves=False) as method:
        return method.as_iteration_end(*method.run())


@contextlib.contextmanager
def _open_interior_point(
    program: BlockProgram,
    settings: _CheckedOptions,
    began: float,
    symmetry: Symmetry | None,
    start: BlockState | Start,
    *,
    proves: bool = True,
    iterates: bool = True,
) -> Iterator[InteriorPoint]:
    """Set up a solve with its threads and memory, and release them afterwards.

    The argument `proves` states whether memory for a final proof is reserved.
    """
    layout = lay_out(program, symmetry, start.active)
    entries = layout.blocks * layout.rows**2
    left = settings.deadline.left() if iterates else 0.0
    kernel_class = choose(settings.arrays, entries, layout.sparse, left)
    cores = count_processors() if entries >= settings.tuning.threads_min_rows else 1
    threads = min(settings.threads or cores, layout.blocks)
    # If a state is only evaluated, its arrays are in memory already.
    budget = settings.budget if iterates else replace(settings.budget, allowed=None)
    memory = check_memory(layout, threads, kernel_class, budget, settings.gap, proves=proves)
    settings.deadline.tell(f"block solver: {layout.blocks} blocks of {layout.rows} rows, about {memory / 1e9:.2f} GB")
    with (
        settings.deadline.keeping(),
        blas_threads(1),
        np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"),
    ):
        kernel = kernel_class(layout, threads)
        workers = Workers(kernel.threads, layout.blocks, kernel.batch, settings.deadline)
        try:
            yield InteriorPoint(
                layout, RatioRows(layout, workers, kernel), settings, began, memory, start, iterates=iterates
            )
        finally:
            workers.close()


def _check_options(options: Options, gap: float, budget: MemoryBudget | None) -> _CheckedOptions:
    """Return the checked options of a solve."""
    unknown = set(options.extra) - _EXTRA
    if unknown:
        bound = "symmetry, memory (bytes) or arrays (numpy, numba or sparse)"
        raise InputError(f"options.extra.{min(unknown)}", "is not known to the block solver", bound=bound)
    arrays = options.extra.get("arrays")
    if not 0 < gap < np.inf:
        raise InputError("gap", "must be a positive number", value=gap, bound="greater than 0")
    if arrays is not None:
        choose(arrays, 0)
    stated = MemoryBudget.of_options(options.extra) if budget is None else budget
    return _CheckedOptions(gap, options.deadline, options.threads, arrays, stated)


class _LastStep(NamedTuple):
    """The step lengths and the number of correctors of the last step; the defaults hold before the first step."""

    primal: float = 1.0
    dual: float = 1.0
    correctors: int = 0


class InteriorPoint:
    """A running solve with its iterate, its best point and its best bound, which may come from different iterates."""

    def __init__(
        self,
        layout: BlockLayout,
        ratios: RatioRows,
        settings: _CheckedOptions,
        began: float,
        memory: int,
        start: BlockState | Start,
        *,
        iterates: bool,
    ) -> None:
        self.layout, self.ratios, self.settings, self.began, self.memory = layout, ratios, settings, began, memory
        self.deadline, self.iterates, self.tuning = settings.deadline, iterates, settings.tuning
        self.program = layout.program
        # The smallest denominator of relative gaps.
        self.unit = self.tuning.cost_unit * largest_cost(self.program)
        # A small array of multipliers is copied at every new best bound. A large array of multipliers is copied only
        # near the end, to memory that is no longer needed.
        self.copies_multipliers = ratios.kernel.SPARSE or layout.blocks * layout.rows**2 <= MAX_COPIED_ROWS
        # Whether the multipliers of the ratio rows are initialised.
        self.has_multipliers = isinstance(start, BlockState)
        if isinstance(start, Start):
            self.iterate, self.mu = start_iterate(layout, start)
        else:
            self.iterate, self.mu = resume_iterate(layout, start), start.mu
            ratios.resume(start.ratio_y, start.mu)
        self.blocks: FactoredBlocks
        self.history: list[Iteration] = []
        # The cost of the best channel, including the price of its repair, and the channel.
        self.best: tuple[float, Floats] | None = None
        # The iterate of the best bound, and a function that returns its multipliers y.
        self.proof: tuple[Iterate, Callable[[], Floats]] | None = None
        self.lower, self.gap = -np.inf, np.inf
        # The relative gap for which the arithmetic precision must suffice. The value decreases with the gap, and is set
        # to 0 after a stall.
        self.precision_gap = start.gap if isinstance(start, BlockState) else np.inf
        # The relative gap of the state from which the iteration starts.
        self.start_gap = self.precision_gap

    def run(self) -> tuple[Status, str]:
        """Iterate until a stopping condition holds; return the status and a message."""
        try:
            if not self.has_multipliers:
                x = np.ascontiguousarray(self.iterate.points[:, : self.layout.rows])
                self.ratios.start(x, self.mu)
                self.has_multipliers = True
            if not self.iterates or self.deadline.stop() is Stop.TIME:
                return Status.TIME_LIMIT, "no time to iterate" if self.iterates else "evaluated without iterating"
            patience, last = _Patience(self.tuning), _LastStep()
            for number in range(self.tuning.max_iterations):
                # A step of length α leaves about the share 1 − α of the gap.
                self.blocks = self._factor(1 - min(last.primal, last.dual) if number else 1.0)
                end = self._check_end(number, last, patience)
                if end is not None:
                    return end
                allow_correctors = self.copies_multipliers or self.gap > self.tuning.acceptable_gap
                try:
                    step = take_step(self.blocks, allow_correctors=allow_correctors)
                except StallError:
                    if not self._use_double_precision():
                        raise
                    step = take_step(self._factor(1.0, ends=False), allow_correctors=allow_correctors)
                self.iterate, last = step.iterate, _LastStep(step.primal, step.dual, step.correctors)
            return Status.ITERATION_LIMIT, f"gap not reached after {self.tuning.max_iterations} iterations"
        except StallError as stall:
            return Status.STALLED, f"stalled at a relative gap of {self.gap:.1e}: {stall}"
        except OutOfTimeError:
            return Status.TIME_LIMIT, f"relative gap {self.gap:.1e} at the time limit"
        except KeyboardInterrupt:
            return Status.INTERRUPTED, "stopped by the user"

    def _check_end(self, number: int, last: _LastStep, patience: _Patience) -> tuple[Status, str] | None:
        """Record the iterate; return the status and a message if the iteration ends here, otherwise None.

        The blocks may be factored again, in double precision.
        """
        relative, absolute, residual = self._record_iterate(number, last)
        if relative <= self._stop:
            if residual <= self.tuning.feasibility:
                return Status.OPTIMAL, f"relative gap {relative:.1e}"
            # Inverses in single precision may prevent feasibility of the linking rows.
            self.precision_gap = 0.0
        if patience.is_spent(relative, absolute, self.gap) or max(last.primal, last.dual) < self.tuning.min_step:
            if not self._use_double_precision():
                return Status.STALLED, f"stalled at a relative gap of {relative:.1e}"
            self.blocks, patience.since = self._factor(1.0, ends=False), 0
        if self.deadline.stop() is Stop.TIME:
            return Status.TIME_LIMIT, f"relative gap {relative:.1e} at the time limit"
        self.deadline.check()
        if not self.blocks.has_factors:
            # The factorisation was skipped because Bᵀy seemed to prove the gap, but the gap of the repaired point is
            # too large.
            self.blocks = self._factor(1.0, ends=False)
        return None

    def solution(self, status: Status, message: str) -> BlockSolution:
        """Return the best point and the best multipliers after `run` has ended with this status and message."""
        x = repair(self.program, self._channel()) if self.best is None else self.best[1]
        upper = objective(self.program, x)
        self.ratios.kernel.release()
        proof_began = self.deadline.seconds()
        multipliers, lower = self._proof(upper, stopped=status in _STOPPED)
        proving = self.deadline.seconds() - proof_began
        if status in (Status.STALLED, Status.OPTIMAL):
            reached, acceptable = (upper - lower) / max(abs(upper), self.unit), self.tuning.acceptable_gap
            # If the cost of a point is below the lower bound, the point is infeasible.
            sound = -acceptable <= reached <= max(acceptable, self.settings.gap)
            status = Status.OPTIMAL if sound else Status.STALLED
        if self.deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        seconds, history = self.deadline.seconds() - self.began, tuple(self.history)
        return BlockSolution(
            status, x, multipliers, lower, upper, message, seconds, self.memory, self.layout.blocks, history, proving
        )

    def as_iteration_end(self, status: Status, message: str) -> IterationEnd:
        """Return the last state after `run` has ended with this status and message."""
        if self.deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        mu = self.history[-1].mu if self.history else self.mu
        gap = min(self.gap, self.start_gap)
        state = (
            save_state(self.layout, self.iterate, self.ratios.kernel.export_multipliers(), mu, gap)
            if self.has_multipliers
            else None
        )
        return IterationEnd(status, message, state, tuple(self.history), self.memory)

    def _proof(self, upper: float, *, stopped: bool) -> tuple[BlockMultipliers, float]:
        """Return sparse multipliers and their bound. After an early stop, a single floor may prove a better bound."""
        found: list[BlockMultipliers] = [find_floor_multipliers(self.program)] if stopped else []
        rewarded = any(floor.rewards is not None for floor in self.program.floors)
        if not stopped or (self.has_multipliers and (rewarded or min(self.gap, self.start_gap) < 1)):
            iterate, y = self.proof if self.proof is not None else (self.iterate, lambda: self.ratios.y)
            allowance = self.tuning.dropped_share * self.settings.gap * max(upper, self.unit)
            found.append(sparsify(self.layout, iterate, y(), allowance, self.ratios.kernel.pairs))
        bounds = [lower_bound(self.program, each) for each in found]
        best = int(np.argmax(bounds))
        return found[best], bounds[best]

    def _factor(self, remaining_share: float, *, ends: bool = True) -> FactoredBlocks:
        """Factor the blocks in the precision that the gap `remaining_share` · `self.gap` requires.

        If single precision fails, double precision is used. If `ends` is true and Bᵀy alone proves that the gap is
        small enough, the blocks are not factored.
        """
        self.precision_gap = min(self.precision_gap, max(remaining_share * self.gap, self._stop))
        self.ratios.kernel.set_precision(self.precision_gap)
        may_end = self._may_end if ends else None
        try:
            return factor_blocks(self.layout, self.ratios, self.iterate, may_end)
        except StallError:
            if not self._use_double_precision():
                raise
            return factor_blocks(self.layout, self.ratios, self.iterate, may_end)

    def _may_end(self, blocks: FactoredBlocks) -> bool:
        """Return whether Bᵀy alone, without factored blocks, proves that the gap is small enough."""
        residual = primal_residual(self.layout, self.iterate)
        upper, lower = objective(self.program, self._channel()), max(self.lower, dual_bound(blocks))
        close = abs(upper - lower) <= self._stop * max(abs(upper), self.unit)
        return close and residual <= self.tuning.feasibility

    def _use_double_precision(self) -> bool:
        """Switch to double precision for the rest of the solve; return whether the precision changes."""
        self.precision_gap = 0.0
        return self.ratios.kernel.set_precision(0.0)

    def _record_iterate(self, number: int, last: _LastStep) -> tuple[float, float, float]:
        """Append the iterate to the history, and keep the best point and bound.

        Args:
            number: Number of the iteration.
            last: The step that led to the iterate.

        Returns:
            The relative gap between the iterate and the best bound, the absolute gap of the iterate, and its primal
            residual.
        """
        residual, blocks = primal_residual(self.layout, self.iterate), self.blocks
        lower, upper = dual_bound(blocks), objective(self.program, self._channel())
        seconds = self.deadline.seconds() - self.began
        self.history.append(Iteration(number, lower, upper, residual, blocks.mu, *last, blocks.regularisation, seconds))
        self.lower, tuning = max(self.lower, lower), self.tuning
        linked = residual <= tuning.feasibility
        self.deadline.tell("block interior point", number, max(0.0, self.lower), upper if linked else None)
        if linked and upper - lower <= tuning.repair_gap * max(abs(upper), self.unit):
            candidate = repair(self.program, self._channel())
            # The final repair of the primal residual increases the cost.
            worth = objective(self.program, candidate) * (1 + tuning.residual_price * residual)
            self.best = (worth, candidate) if self.best is None or worth < self.best[0] else self.best
            upper = objective(self.program, self.best[1])
        relative = abs(upper - self.lower) / max(abs(upper), self.unit)
        if lower >= self.lower and (self.copies_multipliers or (linked and relative <= tuning.acceptable_gap)):
            self.proof = self.iterate, self.ratios.keep(spare=not self.copies_multipliers)
        self.gap = min(self.gap, relative)
        return relative, upper - lower, residual

    def _channel(self) -> Floats:
        """Return the channel x of the iterate as a full matrix (n, m)."""
        return self.layout.unfold(self.iterate.points[:, : self.layout.rows])

    @property
    def _stop(self) -> float:
        """The relative gap at which to stop. Dropping multipliers may use up the rest of the target gap."""
        return (1 - self.tuning.dropped_share) * self.settings.gap


class _Patience:
    """The gaps at the last sufficient decrease, and the number of iterations since then."""

    def __init__(self, tuning: InteriorPointTuning) -> None:
        self.tuning, self.since = tuning, 0
        self._marked = (np.inf, np.inf)

    def is_spent(self, relative: float, absolute: float, gap: float) -> bool:
        """Count an iteration with these gaps; return whether too many iterations have passed since a gap decreased."""
        factor = self.tuning.progress_factor
        if relative < factor * self._marked[0] or absolute < factor * self._marked[1]:
            self._marked, self.since = (relative, absolute), -1
        self.since += 1
        return self.since >= next(count for level, count in self.tuning.patience if gap > level)


def largest_cost(program: BlockProgram) -> float:
    """Return the largest absolute coefficient of the cost."""
    cost = program.cost if program.worst is None else program.worst.cost
    return float(np.abs(cost).max(initial=0.0))
