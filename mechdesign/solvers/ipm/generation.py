"""Block generation: solve with few columns, price the others, take in what improves, until nothing does.

An optimum uses few columns, and blocks that vanish are what makes the path long: with those that matter alone it takes
half the iterations, each of a fraction of the blocks. The rounds are the columns of Dantzig and Wolfe's decomposition
(Operations Research, 1960) with blocks for columns: the restricted program's multipliers λ of the row sums and v of the
floors price every column left out (`pricing.py`). The multipliers of all together prove a bound over all columns, so
that the last round's bracket is the whole program's.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechdesign.programs.block_angular import (
    BlockMultipliers,
    BlockProgram,
    RatioMultipliers,
    lower_bound,
    objective,
    priced_cost,
    reduced_costs,
    repaired,
)
from mechdesign.solvers.contract import Options, Progress, Status
from mechdesign.solvers.ipm.iterate import State
from mechdesign.solvers.ipm.kernels import choose
from mechdesign.solvers.ipm.layout import lay_out
from mechdesign.solvers.ipm.parallel import single_threaded
from mechdesign.solvers.ipm.pricing import Priced, price
from mechdesign.solvers.ipm.solution import BlockSolution, Iteration
from mechdesign.solvers.ipm.solve import solve_block

__all__ = ["pays", "solve_generated"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROUNDS = 20
# The part of all columns to begin with, spread evenly over the rows that they suit best.
_FIRST, _LEAST_COLUMNS = 0.25, 24
# The gaps of the first rounds; at most so many columns are taken in after each, or as many as there are.
_ROUND_GAPS, _TAKEN = (1e-2, 1e-3), 16
# The gaps at which columns that are all but empty are taken out.
_GAPS = (0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 1e-4)
# How much of the gap the restricted program may take, and what is left out.
_SOLVED, _PRICED = 0.6, 0.3
# Columns whose mass is below this part of an even share are all but empty.
_EMPTY = 0.02
# Entries (columns × rows²) that are priced at the same time.
_CHUNK = 8_000_000
# Below so many ratio rows everything at once takes a moment.
_WORTH = 2_000_000


def pays(program: BlockProgram) -> bool:
    """Tell whether block generation is faster than all blocks at once, by what was measured.

    It is where floors pull against the cost: then most columns end up empty. Without floors half of all are used.
    """
    return bool(program.floors) and program.columns * program.rows**2 >= _WORTH


def solve_generated(program: BlockProgram, options: Options | None = None, *, gap: float = 3e-7) -> BlockSolution:
    """Solve `program` until the relative gap over all its columns is `gap`, with few columns at a time.

    Arguments, results and errors are those of `solve_block`; there is no use of symmetry. The history is that of all
    rounds. The bracket that is told to `options.progress` is over all columns.
    """
    clock = time.perf_counter()
    run = _Run(program, options or Options(), gap, clock)
    try:
        status, message = run.rounds()
    except KeyboardInterrupt:
        status, message = Status.INTERRUPTED, "stopped by the user"
    return run.solution(status, message)


@dataclass(frozen=True, eq=False)
class _Proof:
    """A bound over all columns, and the multipliers that give it."""

    lower: float
    multipliers: BlockMultipliers


class _Run:
    """The rounds of a solve, and the best point and the best bound of all of them."""

    def __init__(self, program: BlockProgram, options: Options, gap: float, clock: float) -> None:
        self.program, self.options, self.gap, self.clock = program, options, gap, clock
        self.columns = _spread(program, max(_LEAST_COLUMNS, round(_FIRST * program.columns)))
        self.point: Array | None = None
        self.upper = np.inf
        self.proof: _Proof | None = None
        self.history: list[Iteration] = []
        self.memory, self.blocks = 0, 0
        self.start: State | None = None
        self.known: dict[int, Priced] = {}

    @property
    def lower(self) -> float:
        """The best bound over all columns."""
        return -np.inf if self.proof is None else self.proof.lower

    def rounds(self) -> tuple[Status, str]:
        """Go on until the bracket is closed, time is up, or a round changes nothing."""
        final = _SOLVED * self.gap
        levels = [level for level in _ROUND_GAPS if level > 2 * final]
        for number in range(_ROUNDS):
            level = levels.pop(0) if levels else final
            solution = self._solve(level)
            if solution.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                return solution.status, solution.message
            priced = self._price(solution, level)
            reached = self._relative()
            if reached <= self.gap:
                words = f"{number + 1} rounds, {self.columns.size} columns"
                return Status.OPTIMAL, f"relative gap {reached:.1e} after {words}"
            if self._late():
                return Status.TIME_LIMIT, f"relative gap {reached:.1e} at the time limit"
            tolerance = self._tolerance(level)
            better = sorted((found.upper, column) for column, found in priced.items() if found.upper < -tolerance)
            if not better and level == final:
                return Status.STALLED, f"stalled at a relative gap of {reached:.1e}"
            if not better:
                levels = [each for each in levels if each < 0.1 * reached]
            most = max(_TAKEN, self.columns.size)
            added = [column for _, column in better[:most]]
            self.columns, self.start = np.union1d(self.columns, np.array(added, dtype=np.int64)), None
        return Status.ITERATION_LIMIT, f"no end after {_ROUNDS} rounds"

    def _solve(self, level: float) -> BlockSolution:
        """Solve with the chosen columns to a gap, taking out on the way those that are all but empty."""
        for gap in [*(each for each in _GAPS if each > 2 * level), level]:
            solution = self._restricted(gap, last=gap == level)
            if solution.status in (Status.TIME_LIMIT, Status.INTERRUPTED) or solution.state is None:
                break
            self._merge(solution.state)
        return solution

    def solution(self, status: Status, message: str) -> BlockSolution:
        """Return the best of all rounds."""
        program = self.program
        x = self.point
        if x is None:
            x = repaired(program, np.full((program.rows, program.columns), 1 / program.columns))
        if self.proof is None:
            none = np.zeros(0, dtype=np.int64)
            floors = tuple(np.zeros((floor.error.shape[0], program.columns)) for floor in program.floors)
            multipliers = BlockMultipliers(RatioMultipliers(none, none, none, np.zeros(0)), floors)
            self.proof = _Proof(lower_bound(program, multipliers), multipliers)
        seconds = time.perf_counter() - self.clock
        return BlockSolution(
            status, x, self.proof.multipliers, self.proof.lower, objective(program, x), message, seconds, self.memory,
            self.blocks, tuple(self.history),
        )  # fmt: skip

    def _relative(self) -> float:
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)

    def _tolerance(self, level: float) -> float:
        """Return how far below 0 a column's value may be and not matter: all rows together may gain this part of the cost."""
        return _PRICED * level * abs(self.upper) / self.program.rows

    def _left(self) -> float | None:
        limit = self.options.time_limit
        return None if limit is None else max(0.0, limit - (time.perf_counter() - self.clock))

    def _late(self) -> bool:
        left = self._left()
        return left is not None and left <= 0

    def _restricted(self, level: float, *, last: bool) -> BlockSolution:
        """Solve with the chosen columns alone, and keep the point if it is the best."""
        started = time.perf_counter() - self.clock
        told, upper = self.options.progress, self.upper

        def progress(moment: Progress) -> None:
            if told is not None:
                mine = moment.upper if moment.upper is not None and moment.upper < upper else upper
                known = None if not np.isfinite(mine) else mine
                text = f"{self.columns.size} of {self.program.columns} columns"
                told(Progress(text, started + moment.seconds, moment.iteration, max(0.0, self.lower), known))

        options = replace(self.options, time_limit=self._left(), progress=progress)
        program = _restricted(self.program, self.columns)
        solution = solve_block(program, options, gap=level, start=self.start, keep=not last)
        if solution.status is Status.STALLED and self.start is not None:
            solution = solve_block(program, options, gap=level, keep=not last)
        self.history += [
            replace(each, iteration=len(self.history) + index, seconds=started + each.seconds)
            for index, each in enumerate(solution.history)
        ]
        self.memory, self.blocks = max(self.memory, solution.memory), max(self.blocks, solution.blocks)
        if solution.upper < self.upper:
            x = np.zeros((self.program.rows, self.program.columns))
            x[:, self.columns] = solution.x
            self.point, self.upper = x, solution.upper
        return solution

    def _price(self, solution: BlockSolution, level: float) -> dict[int, Priced]:
        """Price all other columns, and keep the bound over all columns if it is the best."""
        program, restricted, found = self.program, _restricted(self.program, self.columns), solution.multipliers
        prices = reduced_costs(restricted, found).min(axis=1)
        weights = np.array([float(values.sum(axis=0).min()) for values in found.floors])
        others = np.setdiff1d(np.arange(program.columns), self.columns)
        tolerance = self._tolerance(level)
        left_out = replace(program, cost=priced_cost(program, found.weights), worst=None)
        priced = self._still_proved(left_out, prices, weights, tolerance, others)
        rest = np.array([column for column in others.tolist() if column not in priced], dtype=np.int64)
        size = max(1, _CHUNK // program.rows**2)
        threads = self.options.threads or os.cpu_count() or 1
        extra = self.options.extra
        with single_threaded(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for start in range(0, rest.size, size):
                chunk = rest[start : start + size]
                layout = lay_out(replace(left_out, cost=left_out.cost[:, chunk]))
                kernel = choose(extra.get("arrays"), extra.get("device"), program.columns * program.rows**2)
                arrays = kernel(layout, min(threads, chunk.size), extra.get("device"))
                values = price(layout, arrays, prices, weights, tolerance, self._late)
                priced |= dict(zip(chunk.tolist(), values, strict=True))
        self.known |= priced
        multipliers = self._joined(found, priced)
        lower = lower_bound(program, multipliers)
        if lower > self.lower:
            self.proof = _Proof(lower, multipliers)
        if self.options.progress is not None:
            seconds = time.perf_counter() - self.clock
            text = f"all columns priced, {rest.size} of them anew"
            self.options.progress(Progress(text, seconds, len(self.history), max(0.0, self.lower), self.upper))
        return priced

    def _still_proved(
        self, program: BlockProgram, prices: Array, weights: Array, tolerance: float, others: Integers
    ) -> dict[int, Priced]:
        """Return what the last round proved of columns and holds at the new multipliers, too."""
        known = [column for column in others.tolist() if column in self.known]
        if not known:
            return {}
        one = replace(program, cost=program.cost[:, known])
        old = [self.known[column] for column in known]
        floors = [
            np.array([each.floors[index] * (weight / max(float(each.floors[index].sum()), 1e-300)) for each in old]).T
            for index, weight in enumerate(weights)
        ]
        sources, targets, columns, values = (
            np.concatenate(each)
            for each in zip(
                *((o.sources, o.targets, np.full(o.values.size, at), o.values) for at, o in enumerate(old)), strict=True
            )
        )
        multipliers = BlockMultipliers(RatioMultipliers(sources, targets, columns, values), tuple(floors))
        lowest = (reduced_costs(one, multipliers) - prices[:, None]).min(axis=0)
        return {
            column: replace(each, lower=float(lower), upper=np.inf, floors=tuple(q[:, at] for q in floors))
            for at, (column, each, lower) in enumerate(zip(known, old, lowest, strict=True))
            if lower >= -tolerance
        }

    def _joined(self, found: BlockMultipliers, priced: dict[int, Priced]) -> BlockMultipliers:
        """Return the multipliers of all columns, those of the restricted program and those that pricing found."""
        ratios = found.ratios
        parts = [(ratios.sources, ratios.targets, self.columns[ratios.columns], ratios.values)]
        floors = [np.zeros((floor.error.shape[0], self.program.columns)) for floor in self.program.floors]
        for full, values in zip(floors, found.floors, strict=True):
            full[:, self.columns] = values
        for column, one in priced.items():
            parts.append((one.sources, one.targets, np.full(one.values.size, column), one.values))
            for full, values in zip(floors, one.floors, strict=True):
                full[:, column] = values
        sources, targets, columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        return BlockMultipliers(RatioMultipliers(sources, targets, columns, values), tuple(floors), found.weights)

    def _merge(self, state: State) -> None:
        """Add each column that is all but empty to the one that serves its rows at the least cost.

        Sums of columns meet every ratio bound that both meet, and w grows by no more than a floor's least error: the
        row sums stay as they are, and the iteration goes on from there with fewer blocks.
        """
        n = self.program.rows
        x = state.points[:, :n]
        mass = x.sum(axis=1) * self.columns.size / n
        empty = np.flatnonzero(mass < _EMPTY)
        stays = np.flatnonzero(mass >= _EMPTY)
        self.start = state
        if not empty.size or not stays.size:
            return
        cost = priced_cost(self.program, self._weights(state))[:, self.columns[stays]]
        points = state.points[stays].copy()
        np.add.at(points, (x[empty] @ cost).argmin(axis=1), state.points[empty])
        self.columns = self.columns[stays]
        self.start = replace(
            state,
            points=points,
            ratio_y=state.ratio_y[stays],
            floor_y=tuple(values[stays] for values in state.floor_y),
            part_y=state.part_y[stays],
        )

    def _weights(self, state: State) -> Array | None:
        return None if self.program.worst is None else state.multipliers[n_links(self.program) :]


def n_links(program: BlockProgram) -> int:
    """Return how many linking rows come before those of the worst cost."""
    return program.rows + len(program.floors)


def _restricted(program: BlockProgram, columns: Integers) -> BlockProgram:
    """Return the program with some columns only."""
    worst = program.worst
    if worst is not None:
        worst = replace(worst, cost=worst.cost[:, columns])
    return replace(program, cost=program.cost[:, columns], worst=worst)


def _spread(program: BlockProgram, count: int) -> Integers:
    """Return columns spread evenly over the rows that they suit best, the cheapest constant first (farthest-first)."""
    cost = program.cost
    if program.worst is not None:
        cost = np.full(cost.shape, np.inf)
        np.minimum.at(cost, program.worst.row, program.worst.cost)
    best = cost.argmin(axis=0)
    apart = np.minimum(program.exponents, program.exponents.T)
    apart = np.where(np.isfinite(apart), apart, 2 * apart[np.isfinite(apart)].max(initial=1.0))
    np.fill_diagonal(apart, 0.0)
    per_column = program.cost.sum(axis=0) if program.worst is None else program.worst.cost.max(axis=0)
    chosen = [int(per_column.argmin())]
    distance = apart[best, best[chosen[0]]].copy()
    distance[chosen[0]] = -1.0
    while len(chosen) < min(count, program.columns):
        chosen.append(int(distance.argmax()))
        np.minimum(distance, apart[best, best[chosen[-1]]], out=distance)
        distance[chosen] = -1.0
    return np.array(sorted(chosen), dtype=np.int64)
