"""What the solver says, and the programs whose answer is known without iterating."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    RatioMultipliers,
    lower_bound,
    objective,
    repaired,
)
from mechdesign.solve._contract import Status

# Relative rounding of a product or a quotient, with room.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Iteration:
    """One line of the history: bounds, primal residual, μ, the step that led here, regularisation, seconds."""

    iteration: int
    lower: float
    upper: float
    primal_residual: float
    mu: float
    primal: float
    dual: float
    corrections: int
    regularisation: float
    seconds: float


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """What the solver says: x (n, m) with rows of sum 1, multipliers, and the bracket they give.

    `lower` is recomputed from the sparse `multipliers`, `upper` is the objective of x, which may violate its bounds by
    rounding: a certificate decides. `status` is OPTIMAL, TIME_LIMIT, INTERRUPTED, ITERATION_LIMIT, or STALLED,
    and `message` says more. Of the `seconds`, `proving` went into making the multipliers sparse and into their bound.
    """

    status: Status
    x: Floats
    multipliers: BlockMultipliers
    lower: float
    upper: float
    message: str
    seconds: float
    memory: int
    blocks: int
    history: tuple[Iteration, ...]
    proving: float = 0.0

    @property
    def gap(self) -> float:
        """The relative gap, (upper − lower) / upper."""
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return len(self.history)


def combine_solutions(first: BlockSolution, second: BlockSolution) -> BlockSolution:
    """Return the better point and the better bound of two solutions of one program.

    Status, history and the rest are those of the solution with the smaller bracket.
    """
    best, other = (first, second) if first.upper - first.lower <= second.upper - second.lower else (second, first)
    if other.upper < best.upper:
        best = replace(best, x=other.x, upper=other.upper)
    if other.lower > best.lower:
        best = replace(best, multipliers=other.multipliers, lower=other.lower)
    return best


def find_free_constant(program: BlockProgram, seconds: float) -> BlockSolution | None:
    """Return a constant x that costs nothing, which nothing beats, if there is one."""
    cost = program.cost if program.worst is None else program.worst.cost
    free = np.flatnonzero(~cost.any(axis=0)) if (cost >= 0).all() else np.zeros(0, dtype=np.int64)
    rewarded = any(floor.rewards is not None and floor.rewards.any() for floor in program.floors)
    if not free.size or rewarded or _measure_floor_slack(program) < 0:
        return None
    x = np.zeros((program.rows, program.columns))
    x[:, free[0]] = 1.0
    multipliers = zero_multipliers(program)
    return BlockSolution(Status.OPTIMAL, x, multipliers, 0.0, 0.0, "a constant costs nothing", seconds, 0, 0, ())


def solve_without_time(program: BlockProgram, seconds: float) -> BlockSolution:
    """Return what there is where no time is left: a constant x, and the bound that costs alone prove."""
    x = repaired(program, np.ones((program.rows, program.columns)))
    multipliers = find_floor_multipliers(program)
    bracket = lower_bound(program, multipliers), objective(program, x)
    return BlockSolution(Status.TIME_LIMIT, x, multipliers, *bracket, "no time to begin", seconds, 0, 0, ())


def find_floor_multipliers(program: BlockProgram) -> BlockMultipliers:
    """Return multipliers that prove a bound from one floor alone, without iterating; 0 where floors prove none.

    If an answer o costs at least v times the error of an estimate h(o), whoever the secret, then a channel costs at
    least v times the adversary's error: v = min_o max_h min_s c(s, o) / error(h, s). The bound is the best v · minimum.
    """
    found, best = zero_multipliers(program), 0.0
    if program.worst is not None or any(floor.rewards is not None for floor in program.floors):
        return found
    for index, floor in enumerate(program.floors):
        # If the adversary cannot be wrong about a secret, its cost is not counted.
        inverse = np.divide(1.0, floor.error, out=np.full(floor.error.shape, np.inf), where=floor.error > 0)
        with np.errstate(invalid="ignore"):
            ratios = [np.nanmin(column * inverse, axis=1) for column in program.cost.T]
        estimates = np.array([each.argmax() for each in ratios])
        price = float(min(each.max() for each in ratios)) * (1 - _ROUNDING)
        if np.isfinite(price) and price * floor.minimum > best:
            best = price * floor.minimum
            floors = [np.zeros(values.shape) for values in found.floors]
            floors[index][estimates, np.arange(program.columns)] = price
            found = replace(found, floors=tuple(floors))
    return found


def zero_multipliers(program: BlockProgram) -> BlockMultipliers:
    """Return multipliers that are 0, and equal weights of the worst cost."""
    none = np.zeros(0, dtype=np.int64)
    floors = tuple(np.zeros((floor.error.shape[0], program.columns)) for floor in program.floors)
    weights = None if program.worst is None else np.full(program.worst.row.size, 1 / program.worst.row.size)
    return BlockMultipliers(RatioMultipliers(none, none, none, np.zeros(0)), floors, weights)


def _measure_floor_slack(program: BlockProgram) -> float:
    """Return by how much, relative to itself, the tightest floor lies below what a constant x reaches."""
    reach = (
        float(floor.error.sum(axis=1).min()) / floor.minimum - 1.0 for floor in program.floors if floor.minimum > 0
    )
    return min(reach, default=np.inf)
