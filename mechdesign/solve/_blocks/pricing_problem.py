"""Price columns that a block program leaves out: the least reduced cost that each can have, with what proves it.

At multipliers λ of the row sums and v of the floors, a column o can lower the objective only if

    min (c_o − λ)·x − Σ_f v_f w_f   over x with all ratio bounds, w_f <= error_f[h]·x for all h, Σ_s x_s = 1

is negative. Each is a program of one block, solved by the steps of the main iteration (`step.py`): its only linking row
has the multiplier ρ, which is the value. At any y >= 0, and q >= 0 with Σ_h q_fh = v_f, the least
entry of c_o − λ − Bᵀy − Σ_f error_fᵀ q_f bounds the value from below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.solve._blocks.auxiliary import AuxiliaryRows
from mechdesign.solve._blocks.coupling import UnitMass
from mechdesign.solve._blocks.dual import Part, trim_multipliers
from mechdesign.solve._blocks.iterate import Iterate
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.newton import NewtonSystem
from mechdesign.solve._blocks.step import BlockSums, SearchDirection, boundary_shares, find_search_direction
from mechdesign.solve._blocks.tuning import TUNING


@dataclass(frozen=True, eq=False)
class PricedColumn:
    """What one column is worth.

    Attributes:
        lower: A lower bound on its value. The multipliers prove it, or minus the tolerance where that is less.
        upper: The reduced cost at a point. With all bounds and estimates a negative one improves the objective.
        sources: Rows s of the ratio multipliers that prove that.
        targets: Their rows t.
        values: The multipliers.
        floors: For each floor its multipliers (k,), of sum v.
        iterations: How many it took.
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
    arrays: Kernel,
    multipliers: Floats,
    weights: Floats,
    tolerance: float,
    deadline: Deadline,
) -> list[PricedColumn]:
    """Price all columns of a layout without worst cost and symmetry, one step of each at a time.

    Args:
        layout: the columns to price, with their costs.
        arrays: a kernel of that layout, of which the caller is worker 0.
        multipliers: λ (n,).
        weights: v (F,).
        tolerance: a column whose value is proved to be at least minus this does not improve the objective.
        deadline: when to stop; what is known by then is returned.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        return _PricingIteration(layout, arrays, layout.cost - multipliers, weights, tolerance).run(deadline)


class PricingPasses:
    """Passes over the ratio rows of the active columns, one kernel batch at a time, with one system per column.

    Dense kernels take one column at a time, sparse ones batches.
    """

    def __init__(self, kernel: Kernel, x: Floats) -> None:
        self.kernel, self.x, self.u = kernel, x, np.zeros(x.shape)
        self.unfinished = np.ones(len(x), dtype=np.bool_)
        size = kernel.batch if kernel.SPARSE else 1
        self._batches = [slice(start, min(start + size, len(x))) for start in range(0, len(x), size)]

    def batches(self, chosen: Flags | None = None) -> list[slice]:
        """Return the batches that contain active columns or, if `chosen` is given, active chosen ones."""
        going = self.unfinished if chosen is None else self.unfinished & chosen
        return [batch for batch in self._batches if going[batch].any()]

    def affine_ratio_test(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest dz/z."""
        self.u[:] = u
        low, high = np.full(len(u), np.inf), np.full(len(u), -np.inf)
        for batch in self.batches():
            low[batch], high[batch] = self.kernel.affine_ratio_test(0, batch, self.x, self.u)
        return low, high

    def mehrotra(self, u: Floats, centre: Floats) -> Floats:
        """Put the targets of Mehrotra's corrector into slot 0."""
        adjoint = np.zeros(self.x.shape)
        for batch in self.batches():
            self.kernel.mehrotra(0, batch, self.x, self.u, self._of(centre, batch), adjoint)
        return adjoint

    def ratio_test(self, u: Floats, slot: Integers, chosen: Flags | None, *, corrected: bool) -> tuple[Floats, Floats]:
        """Return the least dz/z and dy/y."""
        self.u[:] = u
        primal, dual = np.full(len(u), np.inf), np.full(len(u), np.inf)
        for batch in self.batches(chosen):
            found = self.kernel.ratio_test(0, batch, self.x, self.u, int(slot[batch.start]), corrected=corrected)
            primal[batch], dual[batch] = found
        return primal, dual

    def centrality(
        self, u: Floats, slot: Integers, primal: Floats, dual: Floats, centre: Floats, chosen: Flags
    ) -> Floats:
        """Put Gondzio's correction into the other slot; dense kernels only."""
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
        """Return the numbers of a batch as its kernel wants them: one for each column, or the only one."""
        return values[batch] if self.kernel.SPARSE else float(values[batch.start])


class _PricingIteration:
    """Active columns, each solved independently; they take steps together, so that they share vector operations."""

    def __init__(self, layout: BlockLayout, kernel: Kernel, cost: Floats, weights: Floats, tolerance: float) -> None:
        n, blocks = layout.rows, layout.blocks
        self.layout, self.kernel, self.cost, self.weights, self.tolerance = layout, kernel, cost, weights, tolerance
        # Sparse kernels take batches of columns; correctors would have to be kept or undone for all of a batch.
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
        """Iterate until the sign of the value of each column is proved, or nothing moves any more."""
        blocks, passes = self.layout.blocks, self.passes
        found: dict[int, PricedColumn] = {}
        best, before, moved = np.full(blocks, np.inf), np.full(blocks, -np.inf), np.ones(blocks, dtype=bool)
        rounding = self.tuning.rounding * np.abs(np.hstack([self.cost, self.rewards])).max(axis=1)
        for number in range(self.tuning.max_iterations + 1):
            measured, sound = self._factor()
            reduced, floors = self._compute_reduced_costs(measured.adjoint)
            lower = reduced.min(axis=1)
            best = np.minimum(best, self._evaluate_points())
            resolved = (best < -self.tolerance) & (best - lower <= self.tuning.resolved_share * np.abs(lower))
            # Where only rounding is left, the lower bound may fall again without an end.
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
            moved = self._step(measured)
        return [found[column] for column in range(blocks)]

    def _step(self, measured: BlockSums) -> Flags:
        """Take one primal-dual step of each column under way; return which moved."""
        iterate, passes = self.iterate, self.passes
        coupling = UnitMass(self.auxiliary, self.layout.rows, iterate.points, self._solve)
        coupling.unfinished = passes.unfinished
        system = NewtonSystem(coupling, self.auxiliary, iterate, self._solve, self.cost, self.rewards)
        aim = find_search_direction(system, passes, measured, self.step_tuning)
        finite = np.isfinite(aim.found.u).all(axis=1) & np.isfinite(aim.found.multipliers).all(axis=1)
        moved = finite & (np.maximum(aim.primal, aim.dual) >= self.tuning.min_step)
        self.iterate = self._advance(coupling, aim, passes.unfinished & moved)
        for index in range(self.layout.floors):
            moved &= (self.auxiliary.floor(self.iterate.z, index) > 0).all(axis=1)
        return moved

    def _advance(self, coupling: UnitMass, aim: SearchDirection, going: Flags) -> Iterate:
        """Return the next iterate: the columns that go move, the others stay where they are."""
        iterate, found, wide = self.iterate, aim.found, going[:, None]
        share = boundary_shares(aim.primal, aim.dual, self.step_tuning)
        primal, dual = np.where(going, share * aim.primal, 0.0), np.where(going, share * aim.dual, 0.0)
        self.passes.advance(np.where(wide, found.u_x, 0.0), aim.slot, dual, going)
        points = iterate.points * (1 + primal[:, None] * np.where(wide, found.u, 0.0))
        y = iterate.y + coupling.spread(dual) * np.where(coupling.spread(going), found.dy, 0.0)
        multipliers = iterate.multipliers + dual[:, None] * np.where(wide, found.multipliers, 0.0)
        z = self.auxiliary.slacks(points, np.zeros(0))
        return Iterate(iterate.number + 1, points, multipliers, 0.0, z, y)

    def _evaluate_points(self) -> Floats:
        """Return the values (B,) of the points: x scaled to sum 1, w as large as it may be."""
        x = self.iterate.points[:, : self.layout.rows]
        x = x / x.sum(axis=1, keepdims=True)
        values: Floats = (self.cost * x).sum(axis=1)
        for weight, error in zip(self.weights, self.layout.errors, strict=True):
            values -= weight * (x @ error.T).min(axis=1)
        return values

    def _factor(self) -> tuple[BlockSums, Flags]:
        """Factor the Hessians at the points; return what that measures, and where rounding allowed it."""
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
        """Return c − λ − Bᵀy − Σ error_fᵀ q_f (B, n) without the multipliers of x >= 0, and q, scaled to sum to v."""
        reduced = self.cost - adjoint[:, : self.layout.rows] + self.kernel.diagonals()
        floors = []
        for index, (weight, error) in enumerate(zip(self.weights, self.layout.errors, strict=True)):
            y = self.auxiliary.floor(self.iterate.y, index)
            scaled = y * (weight / y.sum(axis=1, keepdims=True))
            reduced -= (scaled - y) @ error
            floors.append(scaled)
        return reduced, floors

    def _solve(self, right: Floats) -> Floats:
        """Return u (B, N) with H u = ξ∘right for the columns under way."""
        steps = self.iterate.points * right
        index = np.arange(len(steps))
        steps[index, self.roots] = steps.sum(axis=1)
        for batch in self.passes.batches():
            self.kernel.solve(0, batch, steps)
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        return steps

    def _trim(self, columns: Integers, budget: Floats) -> list[Part]:
        """Return the multipliers y of some columns without the smallest, whose sums are within the budgets (B, n)."""
        if not columns.size:
            return []
        return trim_multipliers(self.layout, self.kernel.multipliers()[columns], budget[columns], self.kernel.pairs)
