"""The primal-dual iteration: predictor, corrector, centrality corrections, on a weighted central path."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.ipm.directions import Direction, Point, direction, link_residuals
from mechdesign.solvers.ipm.kernel import Kernel
from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.parallel import Workers
from mechdesign.solvers.ipm.rows import PairRows, recentred
from mechdesign.solvers.ipm.schur import Blocks, LinkSystem
from mechdesign.solvers.ipm.small import SmallRows
from mechdesign.solvers.ipm.stall import StallError
from mechdesign.solvers.ipm.start import first_point, total_weight

__all__ = ["Iterator"]

Array = npt.NDArray[np.float64]

_LARGEST_SIGMA = 0.02
_CORRECTIONS = 6
_LONG_ENOUGH = 0.95
_WORTHWHILE = 0.01
_KEPT = 0.9
_STEP = 0.9
_LAST_STEP = 0.99


class Iterator:
    """The iterate with all its arrays, and one step at a time."""

    def __init__(self, layout: Layout, workers: Workers, kernel: Kernel) -> None:
        self.layout, self.workers = layout, workers
        self.small = SmallRows(layout)
        self.pairs = PairRows(layout, workers, kernel)
        self.blocks = Blocks(layout, workers, self.pairs, self.small)
        self.weight = total_weight(layout, self.small)
        self.point, mu = first_point(layout, self.small)
        self.pairs.start(self.x, mu)
        self.mu = mu
        self._kept: Point | None = None
        # What the linking rows lack is measured in units of a row sum, of a floor, of the largest cost.
        floors = np.where(layout.minima > 0, layout.minima, 1.0)
        costs = np.full(layout.members, max(float(np.abs(layout.member_cost).max(initial=0.0)), 1e-300))
        self._units = np.concatenate([np.ones(layout.rows), floors, costs])

    @property
    def x(self) -> Array:
        """The blocks' entries of the matrix, contiguous, (B, n)."""
        return np.ascontiguousarray(self.point.points[:, : self.layout.rows])

    def measure(self) -> float:
        """Assemble the blocks here, which `step` needs, and return what the linking rows lack."""
        layout, point = self.layout, self.point
        self.blocks.assemble(point.points, point.z, point.y)
        linked = point.z[self.small.linking] @ point.y[self.small.linking]
        self.mu = (float(layout.counts @ self.blocks.products) + float(linked)) / self.weight
        if not np.isfinite(self.blocks.raised):
            raise StallError("a block cannot be factored")
        return float((np.abs(link_residuals(layout, self.small, point)) / self._units).max())

    def keep(self) -> None:
        """Remember this iterate, in the memory that corrections would use: there are none after this."""
        self._kept = self.point
        self.pairs.keep()

    def restore(self) -> None:
        """Return to the iterate that was kept last, if one was."""
        if self._kept is not None:
            self.point, self._kept = self._kept, None
            self.pairs.restore()

    def step(self, *, corrections: bool = True) -> tuple[float, float, int]:
        """Move to the next iterate; return both step lengths and the number of corrections kept."""
        small, pairs, point = self.small, self.pairs, self.point
        system = LinkSystem(self.blocks, point.z, point.y)
        predictor = direction(
            self.layout, small, self.blocks, system, point, np.zeros_like(pairs.x), np.zeros(small.size)
        )
        centre = self._centre(predictor)
        f = centre * small.weights / point.z - predictor.q * predictor.dy
        pulled = pairs.aim(self._rows_of(predictor), centre)
        found = direction(self.layout, small, self.blocks, system, point, pulled, f)
        steps = self._lengths(found)
        kept = 0
        for _ in range(_CORRECTIONS if corrections and self._kept is None else 0):
            if min(steps) >= _LONG_ENOUGH:
                break
            primal, dual = (min(1.0, 1.8 * step + 0.3) for step in steps)
            pulled = pairs.recentre(self._rows_of(found), primal, dual, centre)
            product = (point.z * (1 + primal * found.q)) * (point.y + dual * found.dy)
            changed = f + recentred(product, centre * small.weights) / point.z
            other = direction(self.layout, small, self.blocks, system, point, pulled, changed)
            pairs.accept()
            lengths = self._lengths(other)
            if sum(lengths) < sum(steps) + _WORTHWHILE or min(lengths) < _KEPT * min(steps):
                pairs.accept()
                break
            found, f, steps = other, changed, lengths
            kept += 1
        if not (np.isfinite(found.u).all() and np.isfinite(found.dy).all() and np.isfinite(found.multipliers).all()):
            raise StallError("a direction is not finite")
        share = _LAST_STEP if min(steps) >= _LONG_ENOUGH else _STEP
        self._advance(found, share * steps[0], share * steps[1])
        return share * steps[0], share * steps[1], kept

    def _rows_of(self, found: Direction) -> Array:
        return np.ascontiguousarray(found.u[:, : self.layout.rows])

    def _centre(self, predictor: Direction) -> float:
        """Return t = σ μ, with Mehrotra's σ = (μ_aff/μ)³ but at most 0.02."""
        layout, small, point = self.layout, self.small, self.point
        low, high = self.pairs.predict(self._rows_of(predictor))
        primal = 1.0 / max(1.0, low, -float(predictor.q.min(initial=0.0)))
        dual = 1.0 / max(1.0, high, -float((predictor.dy / point.y).min(initial=0.0)))
        # Over the blocks' rows dy = −y (1 + q), Σ y z q = u·ΞBᵀy and Σ y z q² = uᵀHu: no pass is needed.
        steps = point.points * predictor.u
        right = layout.pull(point.multipliers + predictor.multipliers)
        right[:, : layout.rows] -= layout.cost
        products = float(layout.counts @ self.blocks.products)
        first = float(layout.counts @ (steps * self.blocks.pulled).sum(axis=1))
        second = float(layout.counts @ (steps * right).sum(axis=1))
        reached = products * (1 - dual) + (primal * (1 - dual) - dual) * first - primal * dual * second
        z, y = point.z[small.linking], point.y[small.linking]
        linked = z * (1 + primal * predictor.q[small.linking]) * (y + dual * predictor.dy[small.linking])
        total = products + float(z @ y)
        return min((max(0.0, reached + float(linked.sum())) / total) ** 3, _LARGEST_SIGMA) * self.mu

    def _lengths(self, found: Direction) -> tuple[float, float]:
        """Return the longest steps up to 1 that keep z and y non-negative."""
        primal, dual = self.pairs.ratios(self._rows_of(found))
        primal = max(1.0, primal, -float(found.q.min(initial=0.0)))
        dual = max(1.0, dual, -float((found.dy / self.point.y).min(initial=0.0)))
        return 1.0 / primal, 1.0 / dual

    def _advance(self, found: Direction, primal: float, dual: float) -> None:
        point, linking = self.point, self.small.linking
        self.pairs.advance(self._rows_of(found), dual)
        points = point.points * (1 + primal * found.u)
        slack = point.z[linking] * (1 + primal * found.q[linking])
        y = point.y + dual * found.dy
        multipliers = point.multipliers + dual * found.multipliers
        multipliers[self.layout.rows :] = y[linking]
        theta = point.theta + primal * found.theta
        self.point = Point(points, multipliers, theta, self.small.slacks(points, slack), y)
