"""Block programs as values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError


@dataclass(frozen=True, eq=False)
class FloorBlock:
    """The requirement Σ_o w_o >= minimum on the parts w_o = min_h Σ_s error[h, s] x[s, o], error >= 0 of shape (k, n).

    With `rewards` (m,) >= 0 the objective falls by Σ_o rewards[o] w_o besides; not that of a worst cost.
    """

    minimum: float
    error: Floats
    rewards: Floats | None = None


@dataclass(frozen=True, eq=False)
class WorstBlock:
    """The objective max_i Σ_o cost[i, o] x[row[i], o]: `cost` (q, m), and `row` (q,) with entries below n."""

    cost: Floats
    row: Integers


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """Minimise over x (n, m) >= 0 with row sums 1, under ratio bounds and floors.

    The objective is Σ_so cost[s, o] x[s, o], or that of `worst`, and then `cost` is zero. Ratio bounds are
    x[s, o] <= exp(exponents[s, t]) x[t, o] for all o; `exponents` (n, n) is positive, infinite where nothing is
    required and on the diagonal.
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
                raise InputError(f"floors[{index}].rewards", "go with the expected cost only")
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
    """Multipliers >= 0 of the rows exp(exponents[s, t]) x[t, o] − x[s, o] >= 0, sparse: four arrays of one length."""

    sources: Integers
    targets: Integers
    columns: Integers
    values: Floats


@dataclass(frozen=True, eq=False)
class BlockMultipliers:
    """Multipliers of a block program: of its ratio bounds, of each floor (k, m), and the weights (q,) of `worst`."""

    ratios: RatioMultipliers
    floors: tuple[Floats, ...] = ()
    weights: Floats | None = None


def objective(program: BlockProgram, x: Floats) -> float:
    """Return the value of x (n, m)."""
    if program.worst is not None:
        return float((program.worst.cost * x[program.worst.row]).sum(axis=1).max())
    return float(np.vdot(program.cost, x)) - sum(
        float(floor.rewards @ (floor.error @ x).min(axis=0)) for floor in program.floors if floor.rewards is not None
    )


def repaired(program: BlockProgram, x: Floats) -> Floats:
    """Return x (n, m) with its rows normalised and its floors met, by mixing it with the cheapest constant.

    Ratio bounds that x meets with row sums of almost 1 may be missed by as little.
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
    """Return a bound that no feasible x lies below, up to rounding; valid for any multipliers >= 0.

    With y on the ratio bounds, q on the floors and weights ω of the worst cost (scaled to sum 1), reduced costs are
    r = c − Bᵀy − Σ_h q[h] error[h], where (Bᵀy)[t] = Σ_s e^{E[s,t]} y[s,t] − Σ_r y[t,r] column by column, and the
    bound is Σ_s min_o r[s, o] + Σ minimum · min_o (Σ_h q[h, o] − rewards[o]); where Σ_h q[h, o] falls short of
    rewards[o] the difference is first added to q[0, o].
    """
    total = sum(
        floor.minimum * float(_beyond_rewards(floor, _rewarded(floor, values)).min())
        for floor, values in zip(program.floors, multipliers.floors, strict=True)
    )
    return total + float(reduced_costs(program, multipliers).min(axis=1).sum())


def reduced_costs(program: BlockProgram, multipliers: BlockMultipliers) -> Floats:
    """Return r = c − Bᵀy − Σ_h q[h] error[h] (n, m), of which min_o r[s, o] is the multiplier of row sum s."""
    reduced = priced_cost(program, multipliers.weights).copy()
    for floor, values in zip(program.floors, multipliers.floors, strict=True):
        reduced -= floor.error.T @ _rewarded(floor, values)
    s, t, o, y = (getattr(multipliers.ratios, name) for name in ("sources", "targets", "columns", "values"))
    m = program.columns
    growth = np.exp(program.exponents[s, t])
    reduced += np.bincount(s * m + o, y, reduced.size).reshape(reduced.shape)
    reduced -= np.bincount(t * m + o, growth * y, reduced.size).reshape(reduced.shape)
    return reduced


def _rewarded(floor: FloorBlock, values: Floats) -> Floats:
    """Return multipliers (k, m) of a floor whose sums are at least its rewards."""
    if floor.rewards is None:
        return values
    lacking = floor.rewards - values.sum(axis=0)
    if not (lacking > 0).any():
        return values
    values = values.copy()
    values[0] += np.maximum(lacking, 0.0)
    return values


def _beyond_rewards(floor: FloorBlock, values: Floats) -> Floats:
    """Return by how much the multipliers (k, m) of a floor are more than its rewards (m,)."""
    total: Floats = values.sum(axis=0)
    return total if floor.rewards is None else np.maximum(total - floor.rewards, 0.0)


def priced_cost(program: BlockProgram, weights: Floats | None) -> Floats:
    """Return the costs (n, m): as they are, or those of `worst` with weights ω, scaled to sum 1 (equal if none)."""
    if program.worst is None:
        return program.cost
    q = program.worst.row.size
    scaled = np.full(q, 1 / q) if weights is None or not weights.sum() > 0 else weights / weights.sum()
    cost = program.cost.copy()
    np.add.at(cost, program.worst.row, scaled[:, None] * program.worst.cost)
    return cost


_IMPLIED = 1e-9


def implied_exponents(exponents: Floats) -> Floats:
    """Return the exponents (n, n) that chains of finite ones imply: shortest paths, 0 on the diagonal."""
    sources, targets = np.nonzero(np.isfinite(exponents))
    # A dense matrix would not do: there, SciPy takes entries below 1e-8 for absent edges.
    graph = sparse.csr_array((exponents[sources, targets], (sources, targets)), shape=exponents.shape)
    paths: Floats = csgraph.shortest_path(graph)
    return paths


def near_exponents(exponents: Floats, count: int) -> Floats:
    """Return the exponents (n, n) of the `count` strictest bounds on each row, infinity elsewhere.

    Bounds that two stricter ones imply are passed over: on a grid those along a line. What is left out is allowed more:
    a lower bound with these exponents is one with all.
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
        direct = np.flatnonzero(through > (1 + _IMPLIED) * apart)
        kept = some[direct[np.argsort(apart[direct], kind="stable")[:count]]]
        near[row, kept] = own[row, kept]
    np.fill_diagonal(near, exponents.diagonal())
    return near


def with_columns(program: BlockProgram, columns: Integers) -> BlockProgram:
    """Return the program with some columns only."""
    worst = program.worst
    if worst is not None:
        worst = replace(worst, cost=worst.cost[:, columns])
    floors = tuple(
        floor if floor.rewards is None else replace(floor, rewards=floor.rewards[columns]) for floor in program.floors
    )
    return replace(program, cost=program.cost[:, columns], floors=floors, worst=worst)
