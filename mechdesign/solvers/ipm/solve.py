"""Solve a block program: set up, iterate, watch the clock, and hand back the best with what it proves."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechdesign.errors import InputError, SolverError
from mechdesign.programs.block_angular import (
    BlockMultipliers,
    BlockProgram,
    RatioMultipliers,
    lower_bound,
    objective,
    repaired,
)
from mechdesign.solvers.contract import Options, Progress, Status
from mechdesign.solvers.ipm.bound import bound
from mechdesign.solvers.ipm.directions import Point
from mechdesign.solvers.ipm.kernel import Kernel, choose
from mechdesign.solvers.ipm.layout import Layout, lay_out
from mechdesign.solvers.ipm.memory import COPIED, available, needed, resident
from mechdesign.solvers.ipm.method import Iterator
from mechdesign.solvers.ipm.multipliers import sparsify, unfold
from mechdesign.solvers.ipm.parallel import Workers, single_threaded_blas
from mechdesign.solvers.ipm.stall import StallError
from mechdesign.solvers.ipm.symmetry import Symmetry

__all__ = ["BlockSolution", "Iteration", "solve_block"]

Array = npt.NDArray[np.float64]

_EXTRA = {"arrays", "device", "memory"}
# From so many ratio rows on several threads are faster than one.
_WORTH_THREADS = 500_000
# Floors and a cost that pull apart take 160 iterations at n = 300; stalls are noticed long before this.
_LARGEST_ITERATION = 500
# What rows may lack before the objective counts as an upper bound, and before the iteration may stop.
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
# What a unit of what rows lack costs to repair, in units of the cost.
_PRICE = 4.0
# The part of the gap that dropping small multipliers may cost.
_DROPPED = 0.1


@dataclass(frozen=True)
class Iteration:
    """One line of the history: bounds, what the linking rows lack, μ, step lengths, corrections, seconds."""

    iteration: int
    lower: float
    upper: float
    lacking: float
    mu: float
    primal: float
    dual: float
    corrections: int
    raised: float
    seconds: float


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """What the solver says: x (n, m) with rows of sum 1, multipliers, and the bracket they give.

    `lower` is recomputed from the sparse `multipliers`, `upper` is the objective of x, which may violate its bounds by
    rounding: a certificate decides. `status` is OPTIMAL, TIME_LIMIT, INTERRUPTED, ITERATION_LIMIT, or STALLED,
    and `message` says more.
    """

    status: Status
    x: Array
    multipliers: BlockMultipliers
    lower: float
    upper: float
    message: str
    seconds: float
    memory: int
    blocks: int
    history: tuple[Iteration, ...]

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return len(self.history)


def solve_block(
    program: BlockProgram,
    options: Options | None = None,
    *,
    gap: float = 3e-7,
    symmetry: Symmetry | None = None,
) -> BlockSolution:
    """Solve `program` until the relative gap is `gap`; with `symmetry`, one block for each orbit of columns.

    Time limit, threads and reports are those of `options`; `options.extra` may hold "memory", the most bytes that the
    process may take (all that is free, without it), "arrays", the library that does the work ("numpy", "numba" or
    "torch"), and "device", where torch does it ("cpu", "cuda"). After Ctrl-C the best so far is returned.
    Raises InputError for options that are not known or no numbers, and SolverError before anything is done when the
    estimated memory exceeds what there is.
    """
    options = options or Options()
    unknown = set(options.extra) - _EXTRA
    if unknown:
        bound = "symmetry, memory (bytes), arrays (numpy, numba or torch) or device"
        raise InputError(f"options.extra.{min(unknown)}", "is not known to the block solver", bound=bound)
    clock = time.perf_counter()
    constant = _constant(program, clock)
    if constant is not None:
        return constant
    layout = lay_out(program, symmetry)
    arrays, device = options.extra.get("arrays"), options.extra.get("device")
    entries = layout.blocks * layout.rows**2
    chosen = choose(arrays, device, entries)
    cores = (os.cpu_count() or 1) if entries >= _WORTH_THREADS else 1
    threads = min(options.threads or cores, layout.blocks)
    memory = _check_memory(layout, options, threads, chosen)
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        kernel = chosen(layout, threads, device)
        workers = Workers(kernel.threads, layout.blocks, kernel.batch)
        try:
            return _iterate(Iterator(layout, workers, kernel), options, gap, clock, memory)
        finally:
            workers.close()


def _check_memory(layout: Layout, options: Options, threads: int, kernel: type[Kernel]) -> int:
    estimate = needed(layout, threads, kernel)
    limit, free = options.extra.get("memory"), available()
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, int | float | np.integer) or not limit > 0
    ):
        raise InputError("options.extra.memory", "is no number of bytes", value=limit, bound="greater than 0")
    most = limit if limit is not None else None if free is None else resident() + free
    if most is not None and estimate > most:
        raise SolverError(
            f"the block solver needs about {estimate / 1e9:.1f} GB for {layout.blocks} blocks of {layout.rows}, but "
            f"{most / 1e9:.1f} GB {'are allowed' if limit is not None else 'are free'}. Use symmetry or fewer cells, "
            "or another solver with lazy rows"
        )
    if options.progress is not None:
        options.progress(
            Progress(f"block solver: {layout.blocks} blocks of {layout.rows} rows, about {estimate / 1e9:.2f} GB", 0.0)
        )
    return estimate


def _iterate(state: Iterator, options: Options, gap: float, clock: float, memory: int) -> BlockSolution:
    layout = state.layout
    program = layout.program
    history: list[Iteration] = []
    # The best x and the best multipliers need not be those of one iterate.
    best: tuple[float, Array] | None = None
    proof: tuple[Point, Array] | None = None
    copied = layout.blocks * layout.rows**2 <= COPIED
    best_lower, best_gap = -np.inf, np.inf
    # Relative and absolute gap when there was progress last, and for how many iterations there has been none.
    marked, since = (np.inf, np.inf), 0
    status, message = Status.ITERATION_LIMIT, f"no end after {_LARGEST_ITERATION} iterations"
    unit = _UNIT * _largest_cost(program)
    steps = (1.0, 1.0, 0)
    try:
        for iteration in range(_LARGEST_ITERATION):
            lacking = state.measure()
            # The bound is better without the multipliers of x >= 0: their rows have the coefficient g_ss − 1 = 1.
            pulled = state.blocks.pulled.copy()
            pulled[:, : layout.rows] -= state.pairs.diagonals
            lower = bound(layout, state.small, state.point, pulled)
            upper = objective(program, unfold(layout, state.x))
            best_lower = max(best_lower, lower)
            seconds = time.perf_counter() - clock
            raised = state.blocks.raised
            history.append(Iteration(iteration, lower, upper, lacking, state.mu, *steps, raised, seconds))
            linked = lacking <= _LINKED
            if options.progress is not None:
                options.progress(
                    Progress(
                        "block interior point", seconds, iteration, max(0.0, best_lower), upper if linked else None
                    )
                )
            if lower >= best_lower and copied:
                proof = state.point, state.pairs.y.copy()
            if linked and upper - lower <= _NEAR * max(abs(upper), unit):
                candidate = repaired(program, unfold(layout, state.x))
                # What rows still lack is paid for in the end.
                worth = objective(program, candidate) * (1 + _PRICE * lacking)
                best = (worth, candidate) if best is None or worth < best[0] else best
                upper = objective(program, best[1])
            relative = abs(upper - best_lower) / max(abs(upper), unit)
            if linked and relative <= _ACCEPTABLE and lower >= best_lower and not copied:
                state.keep()
            if linked and relative <= gap:
                status, message = Status.OPTIMAL, f"relative gap {relative:.1e}"
                break
            if relative < _PROGRESS * marked[0] or upper - lower < _PROGRESS * marked[1]:
                marked, since = (relative, upper - lower), -1
            since += 1
            best_gap = min(best_gap, relative)
            patience = next(count for level, count in _PATIENCE if best_gap > level)
            if since >= patience or max(steps[:2]) < _SHORT:
                status, message = Status.STALLED, f"stalled at a relative gap of {relative:.1e}"
                break
            if options.time_limit is not None and seconds >= options.time_limit:
                status, message = Status.TIME_LIMIT, f"relative gap {relative:.1e} at the time limit"
                break
            steps = state.step(corrections=copied or best_gap > _ACCEPTABLE)
    except StallError as stall:
        status, message = Status.STALLED, f"stalled at a relative gap of {best_gap:.1e}: {stall}"
    except KeyboardInterrupt:
        status, message = Status.INTERRUPTED, "stopped by the user"
    x = repaired(program, unfold(layout, state.x)) if best is None else best[1]
    upper = objective(program, x)
    allowance = _DROPPED * gap * max(upper, unit)
    state.restore()
    point, y = (state.point, state.pairs.y) if proof is None else proof
    multipliers = sparsify(layout, state.small, point, y, allowance)
    lower = lower_bound(program, multipliers)
    reached = (upper - lower) / max(abs(upper), unit)
    if status in (Status.STALLED, Status.OPTIMAL):
        status = Status.OPTIMAL if reached <= max(_ACCEPTABLE, gap) else Status.STALLED
    seconds = time.perf_counter() - clock
    return BlockSolution(status, x, multipliers, lower, upper, message, seconds, memory, layout.blocks, tuple(history))


def _constant(program: BlockProgram, clock: float) -> BlockSolution | None:
    """Return a constant x that costs nothing, which nothing beats, if there is one."""
    cost = program.cost if program.worst is None else program.worst.cost
    free = np.flatnonzero(~cost.any(axis=0)) if (cost >= 0).all() else np.zeros(0, dtype=np.int64)
    if not free.size or _room(program) < 0:
        return None
    x = np.zeros((program.rows, program.columns))
    x[:, free[0]] = 1.0
    none = np.zeros(0, dtype=np.int64)
    floors = tuple(np.zeros((floor.error.shape[0], program.columns)) for floor in program.floors)
    weights = None if program.worst is None else np.full(program.worst.row.size, 1 / program.worst.row.size)
    multipliers = BlockMultipliers(RatioMultipliers(none, none, none, np.zeros(0)), floors, weights)
    seconds = time.perf_counter() - clock
    return BlockSolution(Status.OPTIMAL, x, multipliers, 0.0, 0.0, "a constant costs nothing", seconds, 0, 0, ())


def _room(program: BlockProgram) -> float:
    """Return by how much, relative to itself, the tightest floor lies below what a constant x reaches."""
    reach = (
        float(floor.error.sum(axis=1).min()) / floor.minimum - 1.0 for floor in program.floors if floor.minimum > 0
    )
    return min(reach, default=np.inf)


def _largest_cost(program: BlockProgram) -> float:
    cost = program.cost if program.worst is None else program.worst.cost
    return float(np.abs(cost).max(initial=0.0))
