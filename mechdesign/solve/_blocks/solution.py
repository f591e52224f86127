"""The result of the block solver, and solutions that are found without iterating.

Theory: block_method, Lower bound.
"""

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
    repair,
)
from mechdesign.solve._contract import Status

# Upper limit of the relative rounding error of a product or quotient.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Iteration:
    """The record of one iteration.

    Attributes:
        iteration: Number of the iteration.
        lower: Lower bound that the iterate proves.
        upper: Objective of the iterate.
        primal_residual: Largest residual of a linking row.
        mu: Barrier parameter μ.
        primal: Length of the primal step that led to the iterate.
        dual: Length of the dual step that led to the iterate.
        correctors: Number of centrality correctors of the step that led to the iterate.
        regularisation: Largest relative shift of a Hessian's diagonal.
        seconds: Time since the start [s].
    """

    iteration: int
    lower: float
    upper: float
    primal_residual: float
    mu: float
    primal: float
    dual: float
    correctors: int
    regularisation: float
    seconds: float


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """A point and multipliers, with the bracket of the optimum that they prove.

    Attributes:
        status: OPTIMAL, TIME_LIMIT, INTERRUPTED, ITERATION_LIMIT, or STALLED.
        x: Channel (n, m) with row sums 1. The channel may violate bounds by rounding errors, which the certificate
            checks.
        multipliers: Sparse multipliers.
        lower: Lower bound, recomputed from `multipliers`.
        upper: Objective of `x`.
        message: The status in words.
        seconds: Time of the solve [s].
        memory: Estimated peak memory of the process [bytes].
        blocks: Number of blocks.
        history: The records of all iterations.
        proving: Time for making the multipliers sparse and computing their bound [s].
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
        """The relative gap (upper − lower) / |upper|."""
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return len(self.history)


def combine_solutions(first: BlockSolution, second: BlockSolution) -> BlockSolution:
    """Combine the better point and the better bound of two solutions of the same program.

    All other fields are copied from the solution with the smaller bracket.
    """
    best, other = (first, second) if first.upper - first.lower <= second.upper - second.lower else (second, first)
    if other.upper < best.upper:
        best = replace(best, x=other.x, upper=other.upper)
    if other.lower > best.lower:
        best = replace(best, multipliers=other.multipliers, lower=other.lower)
    return best


def find_zero_cost_channel(program: BlockProgram, seconds: float) -> BlockSolution | None:
    """Return a constant channel with cost zero, which is optimal, or None if no constant channel has cost zero."""
    cost = program.cost if program.worst is None else program.worst.cost
    free = np.flatnonzero(~cost.any(axis=0)) if (cost >= 0).all() else np.zeros(0, dtype=np.int64)
    rewarded = any(floor.rewards is not None and floor.rewards.any() for floor in program.floors)
    if not free.size or rewarded or _measure_floor_slack(program) < 0:
        return None
    x = np.zeros((program.rows, program.columns))
    x[:, free[0]] = 1.0
    multipliers = zero_multipliers(program)
    return BlockSolution(
        Status.OPTIMAL, x, multipliers, 0.0, 0.0, "a constant channel costs nothing", seconds, 0, 0, ()
    )


def solve_without_time(program: BlockProgram, seconds: float) -> BlockSolution:
    """Return a solution after an expired time limit: a constant channel, and the bound that a single floor proves."""
    x = repair(program, np.ones((program.rows, program.columns)))
    multipliers = find_floor_multipliers(program)
    bracket = lower_bound(program, multipliers), objective(program, x)
    return BlockSolution(Status.TIME_LIMIT, x, multipliers, *bracket, "no time to start", seconds, 0, 0, ())


def find_floor_multipliers(program: BlockProgram) -> BlockMultipliers:
    """Return multipliers of a single floor that prove a lower bound, or zeros if no floor proves a positive bound.

    Suppose that every observable o has an estimate h(o) with c(s, o) >= v · error(h(o), s) for all secrets s. The cost
    of every channel is then at least v times the adversary's error. The largest such v is min_o max_h min_s c(s,
    o) / error(h, s). The bound is the largest v · minimum over all floors.
    """
    found, best = zero_multipliers(program), 0.0
    if program.worst is not None or any(floor.rewards is not None for floor in program.floors):
        return found
    for index, floor in enumerate(program.floors):
        # A secret with zero error does not limit v.
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
    """Return zero multipliers, and equal weights for a worst cost."""
    none = np.zeros(0, dtype=np.int64)
    floors = tuple(np.zeros((floor.error.shape[0], program.columns)) for floor in program.floors)
    weights = None if program.worst is None else np.full(program.worst.row.size, 1 / program.worst.row.size)
    return BlockMultipliers(RatioMultipliers(none, none, none, np.zeros(0)), floors, weights)


def _measure_floor_slack(program: BlockProgram) -> float:
    """Return the smallest relative slack of all floors, which is the same for every constant channel."""
    reach = (
        float(floor.error.sum(axis=1).min()) / floor.minimum - 1.0 for floor in program.floors if floor.minimum > 0
    )
    return min(reach, default=np.inf)
