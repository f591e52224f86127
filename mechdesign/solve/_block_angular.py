"""Block programs, their multipliers and their solutions as data objects; and solutions found without iterating.

Theory: block_method, Lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.solve._contract import Status


@dataclass(frozen=True, eq=False)
class FloorBlock:
    """The constraint Σ_o w_o >= minimum with w_o = min_h Σ_s error[h, s] x[s, o].

    Attributes:
        minimum: The lower bound on Σ_o w_o.
        error: Errors (k, n) >= 0; rows are estimates h.
        rewards: Rewards (m,) >= 0: Σ_o rewards[o] w_o is subtracted from the objective. Rewards are not supported for a
            worst cost.

    >>> import numpy as np
    >>> FloorBlock(0.5, np.eye(2)).minimum
    0.5
    """

    minimum: float
    error: Floats
    rewards: Floats | None = None


@dataclass(frozen=True, eq=False)
class WorstBlock:
    """The objective max_i Σ_o cost[i, o] x[row[i], o].

    Attributes:
        cost: Costs (q, m).
        row: Rows (q,), indices below n.

    >>> import numpy as np
    >>> WorstBlock(np.ones((3, 2)), np.array([0, 1, 1])).row.size
    3
    """

    cost: Floats
    row: Integers


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """A block program: minimise over x (n, m) >= 0 with row sums 1, subject to ratio bounds and floors.

    The objective is Σ_so cost[s, o] x[s, o], or the objective that `worst` defines. The ratio bounds are
    x[s, o] <= exp(exponents[s, t]) x[t, o] for all o.

    Args:
        cost: Costs (n, m), finite; zero if there is a worst cost.
        exponents: Exponents (n, n), positive; infinite on the diagonal and for pairs without a bound.
        floors: The floors, each a `FloorBlock`.
        worst: A worst cost, or None.

    Raises:
        InputError: Shapes do not match, or values are out of range.

    >>> import numpy as np
    >>> BlockProgram(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[np.inf, 1.0], [1.0, np.inf]])).columns
    2
    """

    cost: Floats
    exponents: Floats
    floors: tuple[FloorBlock, ...] = ()
    worst: WorstBlock | None = None

    def __post_init__(self) -> None:
        n, m = self.cost.shape
        if self.exponents.shape != (n, n):
            raise InputError("exponents", "have the wrong shape", value=self.exponents.shape, bound=f"({n}, {n})")
        if not np.isfinite(self.cost).all():
            raise InputError("cost", "must be finite")
        if not (self.exponents > 0).all():
            raise InputError(
                "exponents",
                "must be positive",
                value=float(np.min(self.exponents)),
                remedy="merge rows that an exponent of zero makes equal",
            )
        for index, floor in enumerate(self.floors):
            if floor.error.ndim != 2 or floor.error.shape[1] != n:
                raise InputError(
                    f"floors[{index}].error", "has the wrong shape", value=floor.error.shape, bound=f"(k, {n})"
                )
            if floor.rewards is not None and not (
                floor.rewards.shape == (m,) and np.isfinite(floor.rewards).all() and (floor.rewards >= 0).all()
            ):
                raise InputError(f"floors[{index}].rewards", "must be non-negative numbers", bound=f"({m},)")
            if floor.rewards is not None and self.worst is not None:
                raise InputError(f"floors[{index}].rewards", "are supported for the expected cost only")
        if self.worst is not None and self.worst.cost.shape != (self.worst.row.size, m):
            raise InputError("worst.cost", "has the wrong shape", value=self.worst.cost.shape)

    @property
    def rows(self) -> int:
        """Number n of rows of x."""
        return int(self.cost.shape[0])

    @property
    def columns(self) -> int:
        """Number m of columns of x, the blocks."""
        return int(self.cost.shape[1])


@dataclass(frozen=True, eq=False)
class RatioMultipliers:
    """Multipliers >= 0 of the rows exp(exponents[s, t]) x[t, o] − x[s, o] >= 0, in sparse form.

    Attributes:
        sources: s (k,).
        targets: t (k,).
        columns: o (k,).
        values: The multipliers (k,).

    >>> import numpy as np
    >>> RatioMultipliers(np.array([0]), np.array([1]), np.array([0]), np.array([0.5])).values.sum()
    np.float64(0.5)
    """

    sources: Integers
    targets: Integers
    columns: Integers
    values: Floats


@dataclass(frozen=True, eq=False)
class BlockMultipliers:
    """Multipliers of a block program.

    Attributes:
        ratios: Multipliers of the ratio bounds.
        floors: Multipliers (k, m) of each floor.
        weights: Weights (q,) of the worst cost, or None.

    >>> import numpy as np
    >>> none = np.zeros(0, dtype=np.int64)
    >>> BlockMultipliers(RatioMultipliers(none, none, none, np.zeros(0))).floors
    ()
    """

    ratios: RatioMultipliers
    floors: tuple[Floats, ...] = ()
    weights: Floats | None = None


def objective(program: BlockProgram, x: Floats) -> float:
    """Return the objective at x (n, m)."""
    if program.worst is not None:
        return float((program.worst.cost * x[program.worst.row]).sum(axis=1).max())
    return float(np.vdot(program.cost, x)) - sum(
        float(floor.rewards @ (floor.error @ x).min(axis=0)) for floor in program.floors if floor.rewards is not None
    )


def repair(program: BlockProgram, x: Floats) -> Floats:
    """Normalise the rows of x (n, m), and mix x with the cheapest constant channel such that all floors are met.

    If the row sums of x differ from 1 by at most δ, normalisation violates the ratio bounds by about δ at most.
    """
    x = np.maximum(x, 0.0)
    x = x / x.sum(axis=1, keepdims=True)
    weight = 0.0
    for floor in program.floors:
        reached = float((floor.error @ x).min(axis=0).sum())
        largest = float(floor.error.sum(axis=1).min())
        if reached < floor.minimum:
            weight = max(weight, min(1.0, (floor.minimum - reached) / max(largest - reached, 1e-300)))
    if weight > 0:
        per_column = program.cost.sum(axis=0) if program.worst is None else program.worst.cost.max(axis=0)
        x = (1 - weight) * x
        x[:, int(per_column.argmin())] += weight
    return x


def lower_bound(program: BlockProgram, multipliers: BlockMultipliers) -> float:
    """Return a lower bound on the objective of every feasible x, up to rounding, from any multipliers >= 0.

    Let y be the multipliers of the ratio bounds, and let q be the multipliers of the floors. Let ω be the weights of
    the worst cost, scaled to sum 1. Reduced costs are r = c − Bᵀy − Σ_h q[h] error[h] with
    (Bᵀy)[t] = Σ_s e^{E[s,t]} y[s,t] − Σ_r y[t,r] for each column. The bound is
    Σ_s min_o r[s, o] + Σ minimum · min_o (Σ_h q[h, o] − rewards[o]). If Σ_h q[h, o] < rewards[o], the difference is
    added to q[0, o] first.
    """
    total = sum(
        floor.minimum * float(_beyond_rewards(floor, _cover_rewards(floor, values)).min())
        for floor, values in zip(program.floors, multipliers.floors, strict=True)
    )
    return total + float(compute_reduced_costs(program, multipliers).min(axis=1).sum())


def compute_reduced_costs(program: BlockProgram, multipliers: BlockMultipliers) -> Floats:
    """Return r = c − Bᵀy − Σ_h q[h] error[h] (n, m); min_o r[s, o] is the multiplier of row sum s."""
    reduced = weigh_costs(program, multipliers.weights).copy()
    for floor, values in zip(program.floors, multipliers.floors, strict=True):
        reduced -= floor.error.T @ _cover_rewards(floor, values)
    s, t, o, y = (getattr(multipliers.ratios, name) for name in ("sources", "targets", "columns", "values"))
    m = program.columns
    growth = np.exp(program.exponents[s, t])
    reduced += np.bincount(s * m + o, y, reduced.size).reshape(reduced.shape)
    reduced -= np.bincount(t * m + o, growth * y, reduced.size).reshape(reduced.shape)
    return reduced


def _cover_rewards(floor: FloorBlock, values: Floats) -> Floats:
    """Increase the multipliers (k, m) of a floor until their column sums are at least its rewards."""
    if floor.rewards is None:
        return values
    lacking = floor.rewards - values.sum(axis=0)
    if not (lacking > 0).any():
        return values
    values = values.copy()
    values[0] += np.maximum(lacking, 0.0)
    return values


def _beyond_rewards(floor: FloorBlock, values: Floats) -> Floats:
    """Return the column sums of the multipliers (k, m) of a floor, minus its rewards (m,)."""
    total: Floats = values.sum(axis=0)
    return total if floor.rewards is None else np.maximum(total - floor.rewards, 0.0)


def weigh_costs(program: BlockProgram, weights: Floats | None) -> Floats:
    """Return the costs (n, m), plus the costs of `worst` weighted with ω, scaled to sum 1 (equal weights if None)."""
    if program.worst is None:
        return program.cost
    q = program.worst.row.size
    scaled = np.full(q, 1 / q) if weights is None or not weights.sum() > 0 else weights / weights.sum()
    cost = program.cost.copy()
    np.add.at(cost, program.worst.row, scaled[:, None] * program.worst.cost)
    return cost


_IMPLIED_TOLERANCE = 1e-9


def imply_exponents(exponents: Floats) -> Floats:
    """Return the lengths (n, n) of the shortest paths along finite exponents, with zeros on the diagonal."""
    sources, targets = np.nonzero(np.isfinite(exponents))
    # In a dense matrix SciPy would treat entries below 1e-8 as missing edges.
    graph = sparse.csr_array((exponents[sources, targets], (sources, targets)), shape=exponents.shape)
    paths: Floats = csgraph.shortest_path(graph)
    return paths


def near_exponents(exponents: Floats, count: int) -> Floats:
    """Return the exponents (n, n) of the `count` strictest bounds of each row; infinity for all others.

    A bound is skipped if two stricter bounds imply it, as along a line of a grid. The result is a relaxation, so its
    lower bounds are valid for the program with all exponents.
    """
    n = len(exponents)
    own = exponents.copy()
    np.fill_diagonal(own, np.inf)
    candidates = min(3 * count, n - 1)
    near = np.full((n, n), np.inf)
    first = np.argpartition(own, candidates - 1, axis=1)[:, :candidates]
    for row in range(n):
        some = first[row]
        some = some[np.isfinite(own[row, some])]
        apart = own[row, some]
        through = (apart[:, None] + own[np.ix_(some, some)]).min(axis=0, initial=np.inf)
        direct = np.flatnonzero(through > (1 + _IMPLIED_TOLERANCE) * apart)
        kept = some[direct[np.argsort(apart[direct], kind="stable")[:count]]]
        near[row, kept] = own[row, kept]
    np.fill_diagonal(near, exponents.diagonal())
    return near


def with_columns(program: BlockProgram, columns: Integers) -> BlockProgram:
    """Return the program restricted to the given columns."""
    worst = program.worst
    if worst is not None:
        worst = replace(worst, cost=worst.cost[:, columns])
    floors = tuple(
        floor if floor.rewards is None else replace(floor, rewards=floor.rewards[columns]) for floor in program.floors
    )
    return replace(program, cost=program.cost[:, columns], floors=floors, worst=worst)


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
    of every channel is then at least v times the adversary's error. The largest such v is
    min_o max_h min_s c(s, o) / error(h, s). The bound is the largest v · minimum over all floors.
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
