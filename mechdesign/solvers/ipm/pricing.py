"""Price columns that a block program leaves out: the least reduced cost that each can have, with what proves it.

At multipliers λ of the row sums and v of the floors, a column o can lower the objective only if

    min (c_o − λ)·x − Σ_f v_f w_f   over x with all ratio bounds, w_f <= error_f[h]·x for all h, Σ_s x_s = 1

is negative. Each is a program of one block, solved by the same weighted path as the whole, without a Schur complement:
the only linking row has the multiplier ρ, which is the value. At any y >= 0, and q >= 0 with Σ_h q_fh = v_f, the least
entry of c_o − λ − Bᵀy − Σ_f error_fᵀ q_f bounds the value from below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.ipm.kernels import Kernel
from mechdesign.solvers.ipm.kernels.contract import FARTHEST, NEAREST
from mechdesign.solvers.ipm.layout import Layout
from mechdesign.solvers.ipm.parallel import Workers

__all__ = ["Priced", "price"]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ITERATIONS = 80
_LARGEST_SIGMA = 0.1
_CORRECTIONS = 2
_LONG_ENOUGH, _WORTHWHILE, _KEPT = 0.9, 0.02, 0.9
_STEP, _LAST_STEP = 0.9, 0.99
_SHORT = 1e-6
# Parts of a floor start this share below what the column gives.
_BELOW = 0.05
# An improving column is priced well enough once the bracket of its value is this part of the value.
_RESOLVED = 0.5


@dataclass(frozen=True, eq=False)
class Priced:
    """What one column is worth.

    Attributes:
        lower: A proved lower bound of its value.
        upper: The value of a point, so that a negative one improves the objective.
        sources: Rows s of the ratio multipliers that prove `lower`.
        targets: Their rows t.
        values: The multipliers.
        floors: For each floor its multipliers (k,), of sum v.
        iterations: How many it took.
    """

    lower: float
    upper: float
    sources: Integers
    targets: Integers
    values: Array
    floors: tuple[Array, ...]
    iterations: int


def price(
    layout: Layout,
    arrays: Kernel,
    multipliers: Array,
    weights: Array,
    tolerance: float,
    stopped: Callable[[], bool],
) -> list[Priced]:
    """Price all columns of a layout without worst cost and symmetry, several at the same time.

    Args:
        layout: the columns to price, with their costs.
        arrays: a kernel of that layout.
        multipliers: λ (n,).
        weights: v (F,).
        tolerance: a column whose value is proved to be at least minus this does not improve the objective.
        stopped: asked before each iteration; once it says so, what is known by then is returned.
    """
    workers = Workers(arrays.threads, layout.blocks, 1)
    try:
        shared = _Shared(layout, arrays, layout.cost - multipliers, weights, tolerance, stopped)
        workers.run(lambda worker, blocks: arrays.start(worker, blocks, shared.x, shared.mu))
        results = workers.run(lambda worker, blocks: (blocks.start, _Column(shared, worker, blocks).priced()))
        return [found for _, found in sorted(results, key=lambda result: result[0])]
    finally:
        workers.close()


class _Shared:
    """What kernels read and write for all columns: each thread touches the rows of its own column only."""

    def __init__(
        self,
        layout: Layout,
        kernel: Kernel,
        cost: Array,
        weights: Array,
        tolerance: float,
        stopped: Callable[[], bool],
    ) -> None:
        n, blocks, width = layout.rows, layout.blocks, layout.width
        self.layout, self.kernel, self.cost, self.weights = layout, kernel, cost, weights
        self.tolerance, self.stopped = tolerance, stopped
        self.row_weight = float(layout.weights.sum()) + sum(len(error) + 1 for error in layout.errors)
        self.mu = max(float(np.ptp(cost, axis=1).mean()), 1e-300) / self.row_weight
        self.x, self.u = np.full((blocks, n), 1.0 / n), np.zeros((blocks, n))
        self.points = np.hstack([self.x, np.empty((blocks, layout.floors))])
        for index, error in enumerate(layout.errors):
            self.points[:, n + index] = (1 - _BELOW) * error.mean(axis=1).min()
        self.pairs, self.added, self.products = np.zeros((blocks, n)), np.zeros((blocks, n)), np.zeros(blocks)
        self.edges, self.steps = np.empty((blocks, width)), np.empty((blocks, width))
        self.roots = np.zeros(blocks, dtype=np.int64)
        self.ratios = [np.ones((blocks, len(error))) for error in layout.errors]
        self.own = [np.ones(blocks) for _ in layout.errors]


@dataclass(frozen=True, eq=False)
class _Targets:
    """Targets T/z: where the kernel has those of the ratio rows, their adjoint, and those of the floors' rows."""

    slot: int | None
    adjoint: Array
    rows: list[Array]
    parts: Array


@dataclass(frozen=True, eq=False)
class _Direction:
    """Relative steps u (N,), dρ, and for the floors' rows q = dz/z and dy."""

    u: Array
    rho: float
    q: list[Array]
    dy: list[Array]
    parts_dy: Array


class _Column:
    """One column under way: its point ξ = (x, w), ρ, and slacks and multipliers of its floors' rows."""

    def __init__(self, shared: _Shared, worker: int, blocks: slice) -> None:
        layout = shared.layout
        self.shared, self.worker, self.blocks, self.block = shared, worker, blocks, blocks.start
        self.n, self.errors = layout.rows, layout.errors
        self.point = shared.points[self.block]
        self.cost = np.concatenate([shared.cost[self.block], -shared.weights])
        self.rho = 0.0
        self.link = np.zeros(layout.width)
        self.link[: self.n] = 1.0
        self.z = self._slacks()
        self.y = [shared.mu / z for z in self.z]
        self.parts_y = shared.mu / self.point[self.n :]

    def priced(self) -> Priced:
        """Iterate until the sign of the value is proved, or nothing moves any more; return what is proved."""
        shared = self.shared
        best = np.inf
        for number in range(_ITERATIONS + 1):
            adjoint, products, factored = self._factor()
            reduced, floors = self._reduced(adjoint)
            lower = float(reduced.min())
            best = min(best, self._value())
            resolved = best < -shared.tolerance and best - lower <= _RESOLVED * abs(lower)
            ends = lower >= -shared.tolerance or resolved or not factored or shared.stopped()
            if ends or number == _ITERATIONS or not self._step(adjoint, products):
                break
        if not ends:
            # The multipliers have moved since.
            adjoint, _, _ = self._factor()
            reduced, floors = self._reduced(adjoint)
            lower = float(reduced.min())
        sources, targets, values = self._sparse(reduced - min(lower, -shared.tolerance))
        return Priced(lower, best, sources, targets, values, tuple(floors), number)

    def _slacks(self) -> list[Array]:
        x, w = self.point[: self.n], self.point[self.n :]
        return [error @ x - part for error, part in zip(self.errors, w, strict=True)]

    def _value(self) -> float:
        """Return the value of the point: x scaled to sum 1, w as large as it may be."""
        x = self.point[: self.n] / self.point[: self.n].sum()
        kept = sum(
            weight * float((error @ x).min()) for weight, error in zip(self.shared.weights, self.errors, strict=True)
        )
        return float(self.cost[: self.n] @ x) - kept

    def _factor(self) -> tuple[Array, float, bool]:
        """Factor the Hessian at the point; return Bᵀy (N,), Σ y z, and whether rounding allowed it."""
        shared, blocks, block, n = self.shared, self.blocks, self.block, self.n
        kernel, w = shared.kernel, self.point[self.n :]
        shared.x[block] = self.point[:n]
        shared.pairs[block], shared.products[block] = 0.0, 0.0
        sound = kernel.assemble(self.worker, blocks, shared.x, shared.pairs, shared.products)
        for index, (z, y) in enumerate(zip(self.z, self.y, strict=True)):
            shared.ratios[index][block], shared.own[index][block] = y / z, self.parts_y[index] / w[index]
            kernel.add_floor(self.worker, blocks, index, shared.points, shared.ratios[index], shared.own[index])
        adjoint = self._adjoint(shared.pairs[block], self.y, self.parts_y)
        products = shared.products[block] + float(self.parts_y @ w)
        products += sum(float(y @ z) for y, z in zip(self.y, self.z, strict=True))
        shared.products[block] = products
        shared.roots[block] = int(self.point[:n].argmax())
        shared.edges[block] = self.point * adjoint
        if sound:
            sound = bool(np.isfinite(kernel.factor(self.worker, blocks, shared.roots, shared.edges, shared.products)))
        return adjoint, products, sound

    def _adjoint(self, pairs: Array, rows: list[Array], parts: Array) -> Array:
        """Return the transpose of all rows applied to values of them (N,)."""
        result = np.concatenate([pairs, parts])
        for index, (error, values) in enumerate(zip(self.errors, rows, strict=True)):
            result[: self.n] += values @ error
            result[self.n + index] -= values.sum()
        return result

    def _reduced(self, adjoint: Array) -> tuple[Array, list[Array]]:
        """Return c − λ − Bᵀy − Σ error_fᵀ q_f (n,) without the multipliers of x >= 0, and q, scaled to sum to v."""
        reduced = self.cost[: self.n] - adjoint[: self.n] + self.shared.kernel.diagonals()[self.block]
        floors = []
        for weight, error, y in zip(self.shared.weights, self.errors, self.y, strict=True):
            scaled = y * (weight / y.sum())
            reduced -= (scaled - y) @ error
            floors.append(scaled)
        return reduced, floors

    def _solve(self, right: Array) -> Array:
        """Return u (N,) with H u = ξ∘right, around the ray through the root."""
        shared, root = self.shared, int(self.shared.roots[self.block])
        steps = shared.steps[self.block]
        np.multiply(self.point, right, out=steps)
        steps[root] = steps.sum()
        shared.kernel.solve(self.worker, self.blocks, shared.steps)
        shift = float(steps[root])
        u: Array = steps + shift
        u[root] = shift
        return u

    def _direction(self, targets: _Targets, along: Array) -> _Direction:
        """Solve the Newton system for targets; `along` is the solution for the linking row."""
        x = self.point[: self.n]
        right = self.rho * self.link - self.cost + self._adjoint(targets.adjoint, targets.rows, targets.parts)
        u, rho = self._solve(right), 0.0
        per = float(x @ along[: self.n])
        for _ in range(2):
            change = (1.0 - float(x.sum()) - float(x @ u[: self.n])) / per
            u, rho = u + change * along, rho + change
        q, dy = [], []
        for index, (error, z, y, f) in enumerate(zip(self.errors, self.z, self.y, targets.rows, strict=True)):
            shift = u[self.n + index]
            q.append((error @ (x * (u[: self.n] - shift))) / z + shift)
            dy.append(f - y * (1.0 + q[-1]))
        return _Direction(u, rho, q, dy, targets.parts - self.parts_y * (1.0 + u[self.n :]))

    def _step(self, adjoint: Array, products: float) -> bool:
        """Take one primal-dual step; return whether it moved."""
        shared, n, w = self.shared, self.n, self.point[self.n :]
        kernel, worker, blocks, u = shared.kernel, self.worker, self.blocks, shared.u
        along = self._solve(self.link)
        none = _Targets(None, np.zeros(n), [np.zeros(y.size) for y in self.y], np.zeros(w.size))
        predictor = self._direction(none, along)
        if not np.isfinite(predictor.u).all():
            return False
        u[self.block] = predictor.u[:n]
        low, high = kernel.affine_ratio_test(worker, blocks, shared.x, u)
        centre = self._centring(predictor, low, high, adjoint, products) * products / shared.row_weight
        shared.added[self.block] = 0.0
        kernel.mehrotra(worker, blocks, shared.x, u, centre, shared.added)
        rows = [centre / z - q * dy for z, q, dy in zip(self.z, predictor.q, predictor.dy, strict=True)]
        targets = _Targets(0, shared.added[self.block].copy(), rows, centre / w - predictor.u[n:] * predictor.parts_dy)
        found = self._direction(targets, along)
        lengths = self._lengths(targets, found)
        for _ in range(_CORRECTIONS):
            if min(lengths) >= _LONG_ENOUGH:
                break
            trial = self._corrected(targets, found, lengths, centre)
            other = self._direction(trial, along)
            longer = self._lengths(trial, other)
            if not sum(longer) >= sum(lengths) + _WORTHWHILE or min(longer) < _KEPT * min(lengths):
                break
            targets, found, lengths = trial, other, longer
        if not (np.isfinite(found.u).all() and np.isfinite(found.rho)) or max(lengths) < _SHORT:
            return False
        share = _LAST_STEP if min(lengths) >= _LONG_ENOUGH else _STEP
        primal, dual = share * lengths[0], share * lengths[1]
        u[self.block] = found.u[:n]
        assert targets.slot is not None
        kernel.advance(worker, blocks, shared.x, u, targets.slot, dual)
        self.point *= 1 + primal * found.u
        self.rho += dual * found.rho
        self.y = [y + dual * dy for y, dy in zip(self.y, found.dy, strict=True)]
        self.parts_y = self.parts_y + dual * found.parts_dy
        self.z = self._slacks()
        return all((z > 0).all() for z in self.z)

    def _centring(self, predictor: _Direction, low: float, high: float, adjoint: Array, products: float) -> float:
        """Return σ = (μ_aff/μ)³, at most 0.1; as in `step.py` no pass over the rows is needed."""
        least = min([low, *(float(q.min()) for q in predictor.q), *predictor.u[self.n :].tolist()])
        most = max([high, *(float(q.max()) for q in predictor.q), *predictor.u[self.n :].tolist()])
        primal, dual = 1.0 / max(1.0, -least), 1.0 / max(1.0, 1.0 + most)
        steps = self.point * predictor.u
        first = float(steps @ adjoint)
        second = float(steps @ ((self.rho + predictor.rho) * self.link - self.cost))
        reached = products * (1 - dual) + (primal * (1 - dual) - dual) * first - primal * dual * second
        return min((max(0.0, reached) / products) ** 3, _LARGEST_SIGMA)

    def _lengths(self, targets: _Targets, found: _Direction) -> tuple[float, float]:
        """Return the longest steps up to 1 that keep z and y positive."""
        shared = self.shared
        shared.u[self.block] = found.u[: self.n]
        assert targets.slot is not None
        primal, dual = shared.kernel.ratio_test(
            self.worker, self.blocks, shared.x, shared.u, targets.slot, corrected=True
        )
        primal = min([primal, *(float(q.min()) for q in found.q), *found.u[self.n :].tolist()])
        falls = [float((dy / y).min()) for dy, y in zip(found.dy, self.y, strict=True)]
        dual = min([dual, *falls, *(found.parts_dy / self.parts_y).tolist()])
        return 1.0 / max(1.0, -primal), 1.0 / max(1.0, -dual)

    def _corrected(self, targets: _Targets, found: _Direction, lengths: tuple[float, float], centre: float) -> _Targets:
        """Return the targets with Gondzio's correction for somewhat longer steps."""
        shared = self.shared
        primal, dual = (min(1.0, 1.8 * length + 0.3) for length in lengths)
        shared.added[self.block] = 0.0
        assert targets.slot is not None
        steps = shared.x, shared.u, targets.slot, primal, dual, centre
        shared.kernel.centrality(self.worker, self.blocks, *steps, shared.added)
        rows = [
            f + _clipped((z * (1 + primal * q)) * (y + dual * dy), centre) / z
            for f, z, y, q, dy in zip(targets.rows, self.z, self.y, found.q, found.dy, strict=True)
        ]
        w, u = self.point[self.n :], found.u[self.n :]
        parts = _clipped((w * (1 + primal * u)) * (self.parts_y + dual * found.parts_dy), centre) / w
        return _Targets(1 - targets.slot, shared.added[self.block].copy(), rows, targets.parts + parts)

    def _sparse(self, budget: Array) -> tuple[Integers, Integers, Array]:
        """Return the multipliers y without the smallest of each row, whose sum is at most the row's `budget` >= 0.

        Dropping y_st lowers the reduced cost of s by as much and raises that of t.
        """
        layout = self.shared.layout
        values = self.shared.kernel.multipliers()[self.block].copy()
        np.fill_diagonal(values, 0.0)
        if layout.free is not None:
            values[layout.free] = 0.0
        ordered = np.sort(values, axis=1)
        dropped = (np.cumsum(ordered, axis=1) <= budget[:, None]).sum(axis=1)
        least = ordered[np.arange(self.n), np.minimum(dropped, self.n - 1)]
        s, t = np.nonzero((values >= least[:, None]) & (values > 0) & (dropped < self.n)[:, None])
        return s, t, values[s, t]


def _clipped(product: Array, aim: float) -> Array:
    """Return clip(v, 0.1 aim, 10 aim) − min(v, 20 aim)."""
    return np.clip(product, NEAREST * aim, FARTHEST * aim) - np.minimum(product, 2 * FARTHEST * aim)
