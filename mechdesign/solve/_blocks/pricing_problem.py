"""Solve the pricing problems of omitted columns: find the least reduced costs, and multipliers that prove them.

At multipliers λ of the row sums and v of the floors, column o can lower the objective only if this minimum is negative:

    min (c_o − λ)·x − Σ_f v_f w_f   over x with all ratio bounds, w_f <= error_f[h]·x for all h, Σ_s x_s = 1.

Each pricing problem has one block, and is solved by the steps of the main iteration (`step.py`). Its only linking row
is Σ_s x_s = 1, whose multiplier ρ is the reduced cost. Let y >= 0, and q >= 0 with Σ_h q_fh = v_f. The smallest entry
of c_o − λ − Bᵀy − Σ_f error_fᵀ q_f is then a lower bound on the reduced cost.

Theory: block_method, Pricing problems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.solve._blocks.dual import BlockEntries, trim_multipliers
from mechdesign.solve._blocks.iterate import Iterate
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.layout import AuxiliaryRows, BlockLayout
from mechdesign.solve._blocks.newton import NewtonSystem, UnitMass
from mechdesign.solve._blocks.step import BlockSums, SearchDirection, boundary_shares, find_search_direction
from mechdesign.solve._blocks.tuning import TUNING


@dataclass(frozen=True, eq=False)
class PricedColumn:
    """The result of pricing one column: a bracket of its least reduced cost per unit of mass Σ_s x_s.

    A channel has the mass n, so that a column has the mean mass n/m.

    Attributes:
        lower: A lower bound on the reduced cost. If this bound exceeds −tolerance, the multipliers may prove only
            −tolerance.
        upper: The reduced cost of a feasible column. If this reduced cost is negative with all bounds and estimates,
            adding the column improves the objective.
        sources: Rows s of the ratio multipliers that prove the bound.
        targets: Rows t of the ratio multipliers.
        values: The ratio multipliers.
        floors: For each floor, the multipliers (k,) of its estimates, whose sum is v.
        iterations: Number of iterations.
    """

    lower: float
    upper: float
    sources: npt.NDArray[np.integer]
    targets: npt.NDArray[np.integer]
    values: Floats
    floors: tuple[Floats, ...]
    iterations: int


def solve_pricing_problems(
    layout: BlockLayout,
    kernel: Kernel,
    multipliers: Floats,
    weights: Floats,
    tolerance: float,
    deadline: Deadline,
) -> list[PricedColumn]:
    """Solve the pricing problems of all columns of a layout, which has neither a worst cost nor symmetry.

    Args:
        layout: Layout of the columns to price.
        kernel: A kernel for this layout; the caller is worker 0.
        multipliers: The multipliers λ (n,) of the row sums.
        weights: The multipliers v (F,) of the floors.
        tolerance: If the reduced cost of a column is proved to be at least −`tolerance`, the column is not improving.
        deadline: The deadline, after which the current bounds are returned.

    Returns:
        The result of each column.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        return _PricingIteration(layout, kernel, layout.cost - multipliers, weights, tolerance).run(deadline)


class PricingPasses:
    """Passes over the ratio rows of the columns that have not converged, with one system per column.

    Dense kernels process single columns, and sparse kernels process batches of columns.
    """

    def __init__(self, kernel: Kernel, x: Floats) -> None:
        self.kernel, self.x, self.u = kernel, x, np.zeros(x.shape)
        self.unfinished = np.ones(len(x), dtype=np.bool_)
        size = kernel.batch if kernel.SPARSE else 1
        self._batches = [slice(start, min(start + size, len(x))) for start in range(0, len(x), size)]

    def batches(self, chosen: Flags | None = None) -> list[slice]:
        """Return the batches that contain unfinished columns, or with `chosen`, unfinished columns that it flags."""
        going = self.unfinished if chosen is None else self.unfinished & chosen
        return [batch for batch in self._batches if going[batch].any()]

    def affine_ratio_test(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest dz/z."""
        self.u[:] = u
        low, high = np.full(len(u), np.inf), np.full(len(u), -np.inf)
        for batch in self.batches():
            low[batch], high[batch] = self.kernel.affine_ratio_test(0, batch, self.x, self.u)
        return low, high

    def mehrotra(self, u: Floats, centre: Floats) -> Floats:
        """Write the targets of Mehrotra's corrector to slot 0; return their adjoint."""
        adjoint = np.zeros(self.x.shape)
        for batch in self.batches():
            self.kernel.mehrotra(0, batch, self.x, self.u, self._of(centre, batch), adjoint)
        return adjoint

    def ratio_test(
        self, u: Floats, slot: Integers, chosen: Flags | None, *, store_for_corrector: bool
    ) -> tuple[Floats, Floats]:
        """Return the smallest dz/z and dy/y."""
        self.u[:] = u
        primal, dual = np.full(len(u), np.inf), np.full(len(u), np.inf)
        for batch in self.batches(chosen):
            found = self.kernel.ratio_test(
                0, batch, self.x, self.u, int(slot[batch.start]), store_for_corrector=store_for_corrector
            )
            primal[batch], dual[batch] = found
        return primal, dual

    def centrality(
        self, u: Floats, slot: Integers, primal: Floats, dual: Floats, centre: Floats, chosen: Flags
    ) -> Floats:
        """Write Gondzio's correction to the other slot, and return its adjoint; sparse kernels do not support it."""
        adjoint = np.zeros(self.x.shape)
        for batch in self.batches(chosen):
            column = batch.start
            steps = int(slot[column]), float(primal[column]), float(dual[column]), float(centre[column])
            self.kernel.centrality(0, batch, self.x, self.u, *steps, adjoint)
        return adjoint

    def advance(self, u: Floats, slot: Integers, dual: Floats, chosen: Flags) -> None:
        """Move the multipliers of the chosen columns by `dual` times dy."""
        self.u[:] = u
        for batch in self.batches(chosen):
            self.kernel.advance(0, batch, self.x, self.u, int(slot[batch.start]), self._of(dual, batch))

    def _of(self, values: Floats, batch: slice) -> Any:
        """Return the values of a batch in the kernel's form: an array, or a float for a single column."""
        return values[batch] if self.kernel.SPARSE else float(values[batch.start])


class _PricingIteration:
    """The iteration of independent pricing problems, which take their steps together to share vector operations."""

    def __init__(self, layout: BlockLayout, kernel: Kernel, cost: Floats, weights: Floats, tolerance: float) -> None:
        n, blocks = layout.rows, layout.blocks
        self.layout, self.kernel, self.cost, self.weights, self.tolerance = layout, kernel, cost, weights, tolerance
        # Sparse kernels use no correctors, because they could accept or reject a corrector only for a whole batch.
        self.step_tuning = replace(TUNING.pricing_step, max_correctors=0) if kernel.SPARSE else TUNING.pricing_step
        self.tuning = TUNING.pricing
        self.rewards = np.broadcast_to(weights, (blocks, weights.size))
        self.auxiliary = AuxiliaryRows(np.ones(blocks), layout.errors, 0, 1.0, linked=False)
        self.total_weight = float(layout.weights.sum()) + sum(len(error) + 1 for error in layout.errors)
        mu = max(float(np.ptp(cost, axis=1).mean()), 1e-300) / self.total_weight
        x = np.full((blocks, n), 1.0 / n)
        parts = [
            np.full((blocks, 1), (1 - TUNING.interior_point.contribution_margin) * error.mean(axis=1).min())
            for error in layout.errors
        ]
        points = np.hstack([x, *parts])
        self.passes = PricingPasses(kernel, x)
        self.roots, self.edges = np.zeros(blocks, dtype=np.int64), np.empty(points.shape)
        for batch in self.passes.batches():
            kernel.start(0, batch, x, mu)
        z = self.auxiliary.slacks(points, np.zeros(0))
        self.iterate = Iterate(0, points, np.zeros((blocks, 1)), 0.0, z, mu * self.auxiliary.weights / z)

    def run(self, deadline: Deadline) -> list[PricedColumn]:
        """Iterate until the sign of each reduced cost is proved, or until rounding prevents further progress."""
        blocks, passes = self.layout.blocks, self.passes
        found: dict[int, PricedColumn] = {}
        best, before, moved = np.full(blocks, np.inf), np.full(blocks, -np.inf), np.ones(blocks, dtype=bool)
        rounding = self.tuning.rounding * np.abs(np.hstack([self.cost, self.rewards])).max(axis=1)
        for number in range(self.tuning.max_iterations + 1):
            sums, sound = self._factor()
            reduced, floors = self._compute_reduced_costs(sums.adjoint)
            lower = reduced.min(axis=1)
            best = np.minimum(best, self._evaluate_points())
            resolved = (best < -self.tolerance) & (best - lower <= self.tuning.resolved_share * np.abs(lower))
            # When the bracket is as small as rounding errors, the lower bound may start to decrease.
            spent = (best - lower <= rounding) & (lower <= before)
            before = lower
            ends = (lower >= -self.tolerance) | resolved | spent | ~sound | ~moved
            if deadline.stop() is not None or number == self.tuning.max_iterations:
                ends[:] = True
            ended = np.flatnonzero(ends & passes.unfinished)
            budget = reduced - np.minimum(lower, -self.tolerance)[:, None]
            for column, part in zip(ended.tolist(), self._trim(ended, budget), strict=True):
                own = tuple(floor[column].copy() for floor in floors)
                found[column] = PricedColumn(float(lower[column]), float(best[column]), *part, own, number)
            passes.unfinished[ended] = False
            if not passes.unfinished.any():
                break
            moved = self._step(sums)
        return [found[column] for column in range(blocks)]

    def _step(self, sums: BlockSums) -> Flags:
        """Take one primal-dual step of each unfinished column; return flags of the columns that moved."""
        iterate, passes = self.iterate, self.passes
        coupling = UnitMass(self.auxiliary, self.layout.rows, iterate.points, self._solve)
        coupling.unfinished = passes.unfinished
        system = NewtonSystem(coupling, self.auxiliary, iterate, self._solve, self.cost, self.rewards)
        search = find_search_direction(system, passes, sums, self.step_tuning)
        finite = np.isfinite(search.direction.u).all(axis=1) & np.isfinite(search.direction.dmultipliers).all(axis=1)
        moved = finite & (np.maximum(search.primal, search.dual) >= self.tuning.min_step)
        self.iterate = self._advance(coupling, search, passes.unfinished & moved)
        for index in range(self.layout.floors):
            moved &= (self.auxiliary.floor(self.iterate.z, index) > 0).all(axis=1)
        return moved

    def _advance(self, coupling: UnitMass, search: SearchDirection, going: Flags) -> Iterate:
        """Return the next iterate, in which only the columns flagged by `going` have moved."""
        iterate, found, wide = self.iterate, search.direction, going[:, None]
        share = boundary_shares(search.primal, search.dual, self.step_tuning)
        primal, dual = np.where(going, share * search.primal, 0.0), np.where(going, share * search.dual, 0.0)
        self.passes.advance(np.where(wide, found.u_x, 0.0), search.slot, dual, going)
        points = iterate.points * (1 + primal[:, None] * np.where(wide, found.u, 0.0))
        y = iterate.y + coupling.spread(dual) * np.where(coupling.spread(going), found.dy, 0.0)
        multipliers = iterate.multipliers + dual[:, None] * np.where(wide, found.dmultipliers, 0.0)
        z = self.auxiliary.slacks(points, np.zeros(0))
        return Iterate(iterate.number + 1, points, multipliers, 0.0, z, y)

    def _evaluate_points(self) -> Floats:
        """Return the reduced costs (B,) of the points after scaling x to sum 1 and increasing w to its upper limits."""
        x = self.iterate.points[:, : self.layout.rows]
        x = x / x.sum(axis=1, keepdims=True)
        values: Floats = (self.cost * x).sum(axis=1)
        for weight, error in zip(self.weights, self.layout.errors, strict=True):
            values -= weight * (x @ error.T).min(axis=1)
        return values

    def _factor(self) -> tuple[BlockSums, Flags]:
        """Factor the Hessians; return sums over the rows of each block, and flags of the blocks that were factored."""
        kernel, auxiliary, passes, iterate = self.kernel, self.auxiliary, self.passes, self.iterate
        n, blocks = self.layout.rows, self.layout.blocks
        passes.x[:] = iterate.points[:, :n]
        self.roots[:] = passes.x.argmax(axis=1)
        pairs, sound = np.zeros((blocks, n)), np.ones(blocks, dtype=bool)
        work, ratio = iterate.y * iterate.z, iterate.y / iterate.z
        products, adjoint = auxiliary.contributions(work).sum(axis=1), np.zeros(iterate.points.shape)
        for index in range(self.layout.floors):
            products += auxiliary.floor(work, index).sum(axis=1)
        auxiliary.add_adjoint(iterate.y, adjoint)
        for batch in passes.batches():
            sound[batch] = kernel.assemble(0, batch, passes.x, pairs, products)
            for index in range(self.layout.floors):
                own = auxiliary.contributions(ratio)[:, index]
                kernel.add_floor(0, batch, index, iterate.points, auxiliary.floor(ratio, index), own)
            adjoint[batch, :n] += pairs[batch]
            np.multiply(iterate.points[batch], adjoint[batch], out=self.edges[batch])
            if sound[batch].any():
                sound[batch] = bool(np.isfinite(kernel.factor(0, batch, self.roots, self.edges, products)))
        return BlockSums(products, adjoint, self.total_weight), sound

    def _compute_reduced_costs(self, adjoint: Floats) -> tuple[Floats, list[Floats]]:
        """Return c − λ − Bᵀy − Σ error_fᵀ q_f (B, n) without multipliers of x >= 0, and q scaled to sum v."""
        reduced = self.cost - adjoint[:, : self.layout.rows] + self.kernel.diagonals()
        floors = []
        for index, (weight, error) in enumerate(zip(self.weights, self.layout.errors, strict=True)):
            y = self.auxiliary.floor(self.iterate.y, index)
            scaled = y * (weight / y.sum(axis=1, keepdims=True))
            reduced -= (scaled - y) @ error
            floors.append(scaled)
        return reduced, floors

    def _solve(self, right: Floats) -> Floats:
        """Return u (B, N) with H u = ξ∘right for the unfinished columns."""
        steps = self.iterate.points * right
        index = np.arange(len(steps))
        steps[index, self.roots] = steps.sum(axis=1)
        for batch in self.passes.batches():
            self.kernel.solve(0, batch, steps)
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        return steps

    def _trim(self, columns: Integers, budget: Floats) -> list[BlockEntries]:
        """Return the multipliers of the given columns; small ones are dropped while their sums are within `budget`."""
        if not columns.size:
            return []
        return trim_multipliers(self.layout, self.kernel.multipliers()[columns], budget[columns], self.kernel.pairs)
