"""Solve a block-angular program: set up, iterate, and return the best point with the bound that it proves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline, OutOfTimeError, Stop
from mechdesign.base._errors import InputError
from mechdesign.base._machine import count_processors
from mechdesign.solve._block_angular import BlockProgram, lower_bound, objective, repaired
from mechdesign.solve._blocks.coupling import StallError
from mechdesign.solve._blocks.dual import dual_bound, sparsify
from mechdesign.solve._blocks.iterate import (
    SPREAD,
    UNIFORM,
    Iterate,
    Start,
    State,
    first_iterate,
    primal_residual,
    resumed_iterate,
    state_of,
)
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.layout import Layout, lay_out
from mechdesign.solve._blocks.memory import COPIED, MemoryBudget, check_memory
from mechdesign.solve._blocks.newton import FactoredBlocks, factor_blocks
from mechdesign.solve._blocks.parallel import Workers, single_threaded
from mechdesign.solve._blocks.ratios import RatioRows
from mechdesign.solve._blocks.solution import BlockSolution, Iteration, floor_multipliers, free_constant, no_time
from mechdesign.solve._blocks.step import Step, take_step
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._contract import Options, Status

_EXTRA = {"arrays", "device", "memory"}
# From so many ratio rows on several threads are faster than one.
_WORTH_THREADS = 500_000
# Floors and a cost that pull apart take 160 iterations at n = 300; stalls are noticed long before this.
_LARGEST_ITERATION = 500
# The primal residual up to which the objective counts as an upper bound, and the iteration may stop.
_LINKED = 1e-8
# Relative gaps are relative to the cost, or to this part of the largest coefficient where that is more.
_UNIT = 1e-9
# A stall this close is as good as the end: the certificate says what the gap is.
_ACCEPTABLE = 1e-6
# From here on the upper bound is that of the repaired iterate.
_NEAR = 1e-4
# How many iterations without progress are borne, by the gap that is left: near the end rounding soon undoes more.
_PATIENCE = ((1e-6, 15), (1e-8, 5), (-1.0, 1))
_PROGRESS = 0.9
_SHORT = 1e-4
# What a unit of the primal residual costs to repair, in units of the cost.
_PRICE = 4.0
_STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED)
# The part of the gap that dropping small multipliers may cost.
_DROPPED = 0.1


@dataclass(frozen=True)
class _Settings:
    """What the caller asks for, checked."""

    gap: float
    deadline: Deadline
    threads: int | None
    arrays: object
    device: object
    budget: MemoryBudget


def solve_block(
    program: BlockProgram,
    options: Options | None = None,
    *,
    gap: float = 3e-7,
    symmetry: Symmetry | None = None,
    start: State | None = None,
    iterates: bool = True,
    budget: MemoryBudget | None = None,
) -> BlockSolution:
    """Solve `program` until the relative gap is `gap`; with `symmetry`, one block for each orbit of columns.

    After Ctrl-C the best so far is returned.

    Args:
        program: what to minimise.
        options: the deadline and the threads. Its `extra` may hold "memory", the most bytes that the process may take
            (default: all free memory); "arrays", the library that does the work ("numpy", "numba", "torch", or "sparse"
            for few bounds); and "device", where PyTorch does it ("cpu", "cuda").
        gap: the relative gap at which to stop.
        symmetry: symmetries of the program, to be used.
        start: where to start, without symmetry, used up by that; else well inside all bounds.
        iterates: whether to iterate; otherwise only what the start proves is measured.
        budget: the memory that the process may take; that of `options` without it.

    Raises:
        InputError: for options that are not known or no numbers.
        SolverError: before anything is done, when the estimated memory exceeds what there is.
    """
    settings = _settings((options or Options()).begun(), gap, budget)
    clock = settings.deadline.seconds()
    constant = free_constant(program, settings.deadline.seconds() - clock)
    if constant is not None:
        return constant
    if settings.deadline.left() == 0 and start is None:
        return no_time(program, settings.deadline.seconds() - clock)
    first = SPREAD if start is None else start
    with _running(program, settings, clock, symmetry, first, iterates=iterates) as run:
        return run.solution()


@dataclass(frozen=True, eq=False)
class Reached:
    """Where an iteration ended: why, its state, the lines of its history, and the estimated memory in bytes.

    There is no state where that was before the first iterate had its multipliers.
    """

    status: Status
    message: str
    state: State | None
    history: tuple[Iteration, ...]
    memory: int


def iterate_blocks(
    program: BlockProgram,
    options: Options,
    *,
    gap: float,
    start: State | Start = UNIFORM,
    budget: MemoryBudget | None = None,
) -> Reached:
    """Iterate until the relative gap is `gap`, from a state, which is used up, or a start, and prove nothing.

    Arguments and errors are those of `solve_block`. With few columns the uniform x is the better start.
    """
    settings = _settings(options, gap, budget)
    with _running(program, settings, settings.deadline.seconds(), None, start, proves=False) as run:
        return run.reached()


@contextlib.contextmanager
def _running(
    program: BlockProgram,
    settings: _Settings,
    clock: float,
    symmetry: Symmetry | None,
    start: State | Start,
    *,
    proves: bool = True,
    iterates: bool = True,
) -> Iterator[_Run]:
    """Set a solve up, with its threads and the memory that it takes, and clear away after it."""
    layout = lay_out(program, symmetry, start.near)
    entries = layout.blocks * layout.rows**2
    left = settings.deadline.left() if iterates else 0.0
    kernel = choose(settings.arrays, settings.device, entries, layout.sparse, left)
    cores = count_processors() if entries >= _WORTH_THREADS else 1
    threads = min(settings.threads or cores, layout.blocks)
    # A state that is only measured is in memory already.
    budget = settings.budget if iterates else replace(settings.budget, allowed=None)
    memory = check_memory(layout, threads, kernel, budget, settings.gap, proves=proves)
    settings.deadline.tell(f"block solver: {layout.blocks} blocks of {layout.rows} rows, about {memory / 1e9:.2f} GB")
    with (
        settings.deadline.keeping(),
        single_threaded(),
        np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"),
    ):
        arrays = kernel(layout, threads, settings.device)
        workers = Workers(arrays.threads, layout.blocks, arrays.batch, settings.deadline)
        try:
            yield _Run(layout, RatioRows(layout, workers, arrays), settings, clock, memory, start, iterates=iterates)
        finally:
            workers.close()


def _settings(options: Options, gap: float, budget: MemoryBudget | None) -> _Settings:
    unknown = set(options.extra) - _EXTRA
    if unknown:
        bound = "symmetry, memory (bytes), arrays (numpy, numba, torch or sparse) or device"
        raise InputError(f"options.extra.{min(unknown)}", "is not known to the block solver", bound=bound)
    arrays, device = options.extra.get("arrays"), options.extra.get("device")
    stated = MemoryBudget.of_options(options) if budget is None else budget
    return _Settings(gap, options.deadline, options.threads, arrays, device, stated)


class _Run:
    """A solve under way: its iterates, and the best found so far.

    The best x and the best multipliers need not be those of one iterate.
    """

    def __init__(
        self,
        layout: Layout,
        ratios: RatioRows,
        settings: _Settings,
        clock: float,
        memory: int,
        start: State | Start,
        *,
        iterates: bool,
    ) -> None:
        self.layout, self.ratios, self.settings, self.clock, self.memory = layout, ratios, settings, clock, memory
        self.deadline, self.iterates = settings.deadline, iterates
        self.program = layout.program
        self.unit = _UNIT * _largest_cost(self.program)
        # Multipliers of few rows are copied whenever the bound is the best; of many, into spare memory near the end.
        self.copied = ratios.kernel.SPARSE or layout.blocks * layout.rows**2 <= COPIED
        # Whether the ratio rows have their multipliers.
        self.begun = isinstance(start, State)
        if isinstance(start, Start):
            self.iterate, self.mu = first_iterate(layout, start)
        else:
            self.iterate, self.mu = resumed_iterate(layout, start), start.mu
            ratios.resume(start.ratio_y, start.mu)
        self.history: list[Iteration] = []
        self.best: tuple[float, Floats] | None = None
        self.proof: tuple[Iterate, Callable[[], Floats]] | None = None
        self.lower, self.gap = -np.inf, np.inf
        # The relative gap that the precision is for: it follows the gap down, until a stall asks for all there is.
        self.precise = start.gap if isinstance(start, State) else np.inf
        # That of the state which was started from.
        self.known = self.precise

    def solution(self) -> BlockSolution:
        """Iterate to the end and return the best."""
        status, message = self._ended()
        gap = self.settings.gap
        x = repaired(self.program, self._channel()) if self.best is None else self.best[1]
        upper = objective(self.program, x)
        self.ratios.kernel.release()
        clock = self.deadline.seconds()
        if status in _STOPPED and not self._proves_something:
            multipliers = floor_multipliers(self.program)
        else:
            iterate, y = self.proof if self.proof is not None else (self.iterate, lambda: self.ratios.y)
            allowance = _DROPPED * gap * max(upper, self.unit)
            multipliers = sparsify(self.layout, iterate, y(), allowance, self.ratios.kernel.pairs)
        lower = lower_bound(self.program, multipliers)
        proving = self.deadline.seconds() - clock
        if status in (Status.STALLED, Status.OPTIMAL):
            reached = (upper - lower) / max(abs(upper), self.unit)
            # An x of less than the bound is not feasible.
            sound = -_ACCEPTABLE <= reached <= max(_ACCEPTABLE, gap)
            status = Status.OPTIMAL if sound else Status.STALLED
        if self.deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        seconds, history = self.deadline.seconds() - self.clock, tuple(self.history)
        return BlockSolution(
            status, x, multipliers, lower, upper, message, seconds, self.memory, self.layout.blocks, history, proving
        )

    @property
    def _proves_something(self) -> bool:
        """Whether the multipliers are known to prove a bound that costs of 0 or more do not."""
        rewarded = any(floor.rewards is not None for floor in self.program.floors)
        return self.begun and (rewarded or min(self.gap, self.known) < 1)

    def reached(self) -> Reached:
        """Iterate to the end and return where that is."""
        status, message = self._ended()
        if self.deadline.acknowledge():
            status, message = Status.INTERRUPTED, "stopped by the user"
        mu = self.history[-1].mu if self.history else self.mu
        gap = min(self.gap, self.known)
        state = state_of(self.layout, self.iterate, self.ratios.kernel.saved(), mu, gap) if self.begun else None
        return Reached(status, message, state, tuple(self.history), self.memory)

    def _ended(self) -> tuple[Status, str]:
        """Iterate to the end, whatever brings it about; return what it is."""
        try:
            if not self.begun:
                x = np.ascontiguousarray(self.iterate.points[:, : self.layout.rows])
                self.ratios.start(x, self.mu)
                self.begun = True
            if not self.iterates or self.deadline.stop() is Stop.TIME:
                return Status.TIME_LIMIT, "no time to iterate"
            return self._iterate()
        except StallError as stall:
            return Status.STALLED, f"stalled at a relative gap of {self.gap:.1e}: {stall}"
        except OutOfTimeError:
            return Status.TIME_LIMIT, f"relative gap {self.gap:.1e} at the time limit"
        except KeyboardInterrupt:
            return Status.INTERRUPTED, "stopped by the user"

    def _iterate(self) -> tuple[Status, str]:
        """Iterate until a rule says stop; return what it says."""
        # Relative and absolute gap when there was progress last, and for how many iterations there has been none.
        marked, since = (np.inf, np.inf), 0
        lengths = (1.0, 1.0, 0)
        for number in range(_LARGEST_ITERATION):
            blocks = self._factored(1 - min(lengths[:2]) if number else 1.0)
            residual = primal_residual(self.layout, self.iterate)
            lower, upper = dual_bound(blocks), objective(self.program, self._channel())
            seconds = self.deadline.seconds() - self.clock
            self.history.append(
                Iteration(number, lower, upper, residual, blocks.mu, *lengths, blocks.regularisation, seconds)
            )
            relative, absolute = self._measure(number, lower, upper, residual)
            self.gap = min(self.gap, relative)
            if relative <= self._stop:
                if residual <= _LINKED:
                    return Status.OPTIMAL, f"relative gap {relative:.1e}"
                # Rough inverses may be what keeps the linking rows from being met.
                self.precise = 0.0
            if relative < _PROGRESS * marked[0] or absolute < _PROGRESS * marked[1]:
                marked, since = (relative, absolute), -1
            since += 1
            patience = next(count for level, count in _PATIENCE if self.gap > level)
            if since >= patience or max(lengths[:2]) < _SHORT:
                if not self._sharpened():
                    return Status.STALLED, f"stalled at a relative gap of {relative:.1e}"
                blocks, since = self._factored(1.0), 0
            if self.deadline.stop() is Stop.TIME:
                return Status.TIME_LIMIT, f"relative gap {relative:.1e} at the time limit"
            self.deadline.check()
            step = self._step(blocks)
            self.iterate, lengths = step.iterate, (step.primal, step.dual, step.corrections)
        return Status.ITERATION_LIMIT, f"no end after {_LARGEST_ITERATION} iterations"

    def _factored(self, left: float) -> FactoredBlocks:
        """Factor the blocks as precisely as the gap requires of which this part is left, or as can be after a stall."""
        self.precise = min(self.precise, max(left * self.gap, self._stop))
        self.ratios.kernel.tune(self.precise)
        try:
            return factor_blocks(self.layout, self.ratios, self.iterate, self._is_closed)
        except StallError:
            if not self._sharpened():
                raise
            return factor_blocks(self.layout, self.ratios, self.iterate, self._is_closed)

    def _is_closed(self, blocks: FactoredBlocks) -> bool:
        """Tell from Bᵀy alone whether the iteration may end here."""
        residual = primal_residual(self.layout, self.iterate)
        upper, lower = objective(self.program, self._channel()), max(self.lower, dual_bound(blocks))
        return residual <= _LINKED and abs(upper - lower) <= self._stop * max(abs(upper), self.unit)

    def _step(self, blocks: FactoredBlocks) -> Step:
        corrections = self.copied or self.gap > _ACCEPTABLE
        try:
            return take_step(blocks, corrections=corrections)
        except StallError:
            if not self._sharpened():
                raise
            return take_step(factor_blocks(self.layout, self.ratios, self.iterate), corrections=corrections)

    def _sharpened(self) -> bool:
        """Compute in double precision from now on; return whether that is something new."""
        self.precise = 0.0
        return self.ratios.kernel.tune(0.0)

    def _measure(self, number: int, lower: float, upper: float, residual: float) -> tuple[float, float]:
        """Note what the iterate is worth; return the relative gap to the best bound, and its own absolute gap."""
        self.lower = max(self.lower, lower)
        linked = residual <= _LINKED
        self.deadline.tell("block interior point", number, max(0.0, self.lower), upper if linked else None)
        if linked and upper - lower <= _NEAR * max(abs(upper), self.unit):
            candidate = repaired(self.program, self._channel())
            # The primal residual is paid for in the end.
            worth = objective(self.program, candidate) * (1 + _PRICE * residual)
            self.best = (worth, candidate) if self.best is None or worth < self.best[0] else self.best
            upper = objective(self.program, self.best[1])
        relative = abs(upper - self.lower) / max(abs(upper), self.unit)
        if lower >= self.lower and (self.copied or (linked and relative <= _ACCEPTABLE)):
            self.proof = self.iterate, self.ratios.keep(spare=not self.copied)
        return relative, upper - lower

    def _channel(self) -> Floats:
        """Return the iterate's x as a full matrix (n, m)."""
        return self.layout.unfold(self.iterate.points[:, : self.layout.rows])

    @property
    def _stop(self) -> float:
        """The relative gap to stop at: of a loose one, what dropping multipliers may cost is set aside."""
        gap = self.settings.gap
        return gap if gap <= _ACCEPTABLE else (1 - _DROPPED) * gap


def _largest_cost(program: BlockProgram) -> float:
    cost = program.cost if program.worst is None else program.worst.cost
    return float(np.abs(cost).max(initial=0.0))
