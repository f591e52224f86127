"""Price columns that a block program leaves out: the least reduced cost that each can have, with what proves it.

At multipliers λ of the row sums and v of the floors, a column o can lower the objective only if

    min (c_o − λ)·x − Σ_f v_f w_f   over x with all ratio bounds, w_f <= error_f[h]·x for all h, Σ_s x_s = 1

is negative. Each is a program of one block, solved by the same weighted path as the whole, without a Schur complement:
the only linking row has the multiplier ρ, which is the value. At any y >= 0, and q >= 0 with Σ_h q_fh = v_f, the least
entry of c_o − λ − Bᵀy − Σ_f error_fᵀ q_f bounds the value from below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.solve._blocks.dual import Part, trimmed
from mechdesign.solve._blocks.kernels.contract import FARTHEST, NEAREST, Kernel
from mechdesign.solve._blocks.layout import Layout

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
# A bracket of this part of the largest cost is near what rounding allows.
_FINE = 1e-9


@dataclass(frozen=True, eq=False)
class Priced:
    """What one column is worth.

    Attributes:
        lower: A lower bound of its value. The multipliers prove it, or minus the tolerance where that is less.
        upper: The value of a point, so that a negative one improves the objective.
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


def price(
    layout: Layout,
    arrays: Kernel,
    multipliers: Floats,
    weights: Floats,
    tolerance: float,
    deadline: Deadline,
) -> list[Priced]:
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
        return _Columns(layout, arrays, layout.cost - multipliers, weights, tolerance).priced(deadline)


@dataclass(frozen=True, eq=False)
class _Targets:
    """Targets T/z: the adjoint of those of the ratio rows, which the kernel has, and those of the floors' rows."""

    adjoint: Floats
    rows: list[Floats]
    parts: Floats

    def where(self, chosen: Flags, other: _Targets) -> _Targets:
        """Return these targets in the columns `chosen`, and others elsewhere."""
        rows = [np.where(chosen[:, None], a, b) for a, b in zip(self.rows, other.rows, strict=True)]
        adjoint = np.where(chosen[:, None], self.adjoint, other.adjoint)
        return _Targets(adjoint, rows, np.where(chosen[:, None], self.parts, other.parts))


@dataclass(frozen=True, eq=False)
class _Direction:
    """Relative steps u (B, N), dρ (B,), and for the floors' rows q = dz/z and dy."""

    u: Floats
    rho: Floats
    q: list[Floats]
    dy: list[Floats]
    parts_dy: Floats

    def where(self, chosen: Flags, other: _Direction) -> _Direction:
        """Return this direction in the columns `chosen`, and another one elsewhere."""
        wide = chosen[:, None]
        return _Direction(
            np.where(wide, self.u, other.u),
            np.where(chosen, self.rho, other.rho),
            [np.where(wide, a, b) for a, b in zip(self.q, other.q, strict=True)],
            [np.where(wide, a, b) for a, b in zip(self.dy, other.dy, strict=True)],
            np.where(wide, self.parts_dy, other.parts_dy),
        )


class _Columns:
    """Columns under way, each for itself: points ξ = (x, w), ρ, and slacks and multipliers of their floors' rows.

    They take their steps together, so that work on vectors is done once for all of them. `slots` says in which of the
    kernel's two sets the targets of each column are; columns that are done stay where they are.
    Dense kernels take one column at a time. Sparse ones take batches, in which each column has its own centre and step
    length, but none has corrections: they would have to be kept or undone for all.
    """

    def __init__(self, layout: Layout, kernel: Kernel, cost: Floats, weights: Floats, tolerance: float) -> None:
        n, blocks, width = layout.rows, layout.blocks, layout.width
        self.layout, self.kernel, self.weights, self.tolerance = layout, kernel, weights, tolerance
        self.n, self.errors = n, layout.errors
        self.cost = np.hstack([cost, np.broadcast_to(-weights, (blocks, weights.size))])
        self.row_weight = float(layout.weights.sum()) + sum(len(error) + 1 for error in layout.errors)
        mu = max(float(np.ptp(cost, axis=1).mean()), 1e-300) / self.row_weight
        self.x, self.u = np.full((blocks, n), 1.0 / n), np.zeros((blocks, n))
        self.points = np.hstack([self.x, np.empty((blocks, layout.floors))])
        for index, error in enumerate(layout.errors):
            self.points[:, n + index] = (1 - _BELOW) * error.mean(axis=1).min()
        self.rho = np.zeros(blocks)
        self.link = np.zeros(width)
        self.link[:n] = 1.0
        self.z = self._slacks()
        self.y = [mu / z for z in self.z]
        self.parts_y = mu / self.points[:, n:]
        self.pairs, self.products = np.zeros((blocks, n)), np.zeros(blocks)
        self.edges, self.roots = np.empty((blocks, width)), np.zeros(blocks, dtype=np.int64)
        self.slots = np.zeros(blocks, dtype=np.int64)
        self.active = np.arange(blocks)
        size = kernel.batch if kernel.SPARSE else 1
        self.batches = [slice(first, min(first + size, blocks)) for first in range(0, blocks, size)]
        for batch in self.batches:
            kernel.start(0, batch, self.x, mu)

    def priced(self, deadline: Deadline) -> list[Priced]:
        """Iterate until of each column the sign of its value is proved, or nothing moves any more."""
        blocks = self.layout.blocks
        found: dict[int, Priced] = {}
        best, before, moved = np.full(blocks, np.inf), np.full(blocks, -np.inf), np.ones(blocks, dtype=bool)
        fine = _FINE * np.abs(self.cost).max(axis=1)
        for number in range(_ITERATIONS + 1):
            adjoint, sound = self._factor()
            reduced, floors = self._reduced(adjoint)
            lower = reduced.min(axis=1)
            best = np.minimum(best, self._values())
            resolved = (best < -self.tolerance) & (best - lower <= _RESOLVED * np.abs(lower))
            # Where only rounding is left, what is proved may fall again without an end.
            spent = (best - lower <= fine) & (lower <= before)
            before = lower
            ends = (lower >= -self.tolerance) | resolved | spent | ~sound | ~moved
            if deadline.stop() is not None or number == _ITERATIONS:
                ends[:] = True
            kept = self._kept(self.active[ends[self.active]], reduced - np.minimum(lower, -self.tolerance)[:, None])
            for column, (sources, targets, values) in kept:
                mine = tuple(floor[column].copy() for floor in floors)
                bounds = float(lower[column]), float(best[column])
                found[column] = Priced(*bounds, sources, targets, values, mine, number)
            self.active = self.active[~ends[self.active]]
            if not self.active.size:
                break
            moved = self._step(adjoint)
        return [found[column] for column in range(blocks)]

    def _each(self, chosen: Flags | None = None) -> list[slice]:
        """Return the batches of the columns under way, or of those `chosen` among them."""
        going = np.zeros(self.layout.blocks, dtype=bool)
        going[self.active] = True
        if chosen is not None:
            going &= chosen
        return [batch for batch in self.batches if going[batch].any()]

    def _per_column(self, values: Floats, batch: slice) -> Any:
        """Return the numbers of a batch as its kernel wants them: one for each column, or the only one."""
        return values[batch] if self.kernel.SPARSE else float(values[batch.start])

    def _slacks(self) -> list[Floats]:
        x, w = self.points[:, : self.n], self.points[:, self.n :]
        return [x @ error.T - w[:, index, None] for index, error in enumerate(self.errors)]

    def _values(self) -> Floats:
        """Return the values (B,) of the points: x scaled to sum 1, w as large as it may be."""
        x = self.points[:, : self.n] / self.points[:, : self.n].sum(axis=1, keepdims=True)
        values: Floats = (self.cost[:, : self.n] * x).sum(axis=1)
        for weight, error in zip(self.weights, self.errors, strict=True):
            values -= weight * (x @ error.T).min(axis=1)
        return values

    def _factor(self) -> tuple[Floats, Flags]:
        """Factor the Hessians at the points; return Bᵀy (B, N), and where rounding allowed it."""
        kernel, n, w = self.kernel, self.n, self.points[:, self.n :]
        self.x[:] = self.points[:, :n]
        self.pairs[:], self.products[:] = 0.0, 0.0
        sound = np.ones(len(self.points), dtype=bool)
        ratios = [y / z for y, z in zip(self.y, self.z, strict=True)]
        own = [self.parts_y[:, index] / w[:, index] for index in range(len(self.errors))]
        self.roots[:] = self.x.argmax(axis=1)
        self.products += (self.parts_y * w).sum(axis=1)
        self.products += sum((y * z).sum(axis=1) for y, z in zip(self.y, self.z, strict=True))
        adjoint = self._adjoint(self.pairs, self.y, self.parts_y)
        for block in self._each():
            sound[block] = kernel.assemble(0, block, self.x, self.pairs, self.products)
            for index, (ratio, part) in enumerate(zip(ratios, own, strict=True)):
                kernel.add_floor(0, block, index, self.points, ratio, part)
            adjoint[block, :n] += self.pairs[block]
            np.multiply(self.points[block], adjoint[block], out=self.edges[block])
            if sound[block].any():
                sound[block] = bool(np.isfinite(kernel.factor(0, block, self.roots, self.edges, self.products)))
        return adjoint, sound

    def _adjoint(self, pairs: Floats, rows: list[Floats], parts: Floats) -> Floats:
        """Return the transpose of all rows applied to values of them (B, N)."""
        result = np.hstack([pairs, parts])
        for index, (error, values) in enumerate(zip(self.errors, rows, strict=True)):
            result[:, : self.n] += values @ error
            result[:, self.n + index] -= values.sum(axis=1)
        return result

    def _reduced(self, adjoint: Floats) -> tuple[Floats, list[Floats]]:
        """Return c − λ − Bᵀy − Σ error_fᵀ q_f (B, n) without the multipliers of x >= 0, and q, scaled to sum to v."""
        reduced = self.cost[:, : self.n] - adjoint[:, : self.n] + self.kernel.diagonals()
        floors = []
        for weight, error, y in zip(self.weights, self.errors, self.y, strict=True):
            scaled = y * (weight / y.sum(axis=1, keepdims=True))
            reduced -= (scaled - y) @ error
            floors.append(scaled)
        return reduced, floors

    def _solve(self, right: Floats, chosen: Flags | None = None) -> Floats:
        """Return u (B, N) with H u = ξ∘right, around the ray through the root, in the columns `chosen`."""
        steps = self.points * right
        index = np.arange(len(steps))
        steps[index, self.roots] = steps.sum(axis=1)
        for block in self._each(chosen):
            self.kernel.solve(0, block, steps)
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        return steps

    def _direction(self, targets: _Targets, along: Floats, chosen: Flags | None = None) -> _Direction:
        """Solve the Newton systems of the columns `chosen`; `along` are the solutions for the linking row."""
        n = self.n
        x = self.points[:, :n]
        right = self.rho[:, None] * self.link - self.cost
        right += self._adjoint(targets.adjoint, targets.rows, targets.parts)
        u, rho = self._solve(right, chosen), np.zeros(len(x))
        per = (x * along[:, :n]).sum(axis=1)
        for _ in range(2):
            change = (1.0 - x.sum(axis=1) - (x * u[:, :n]).sum(axis=1)) / per
            u += change[:, None] * along
            rho += change
        q, dy = [], []
        for index, (error, z, y, f) in enumerate(zip(self.errors, self.z, self.y, targets.rows, strict=True)):
            shift = u[:, n + index, None]
            q.append(((x * (u[:, :n] - shift)) @ error.T) / z + shift)
            dy.append(f - y * (1.0 + q[-1]))
        return _Direction(u, rho, q, dy, targets.parts - self.parts_y * (1.0 + u[:, n:]))

    def _step(self, adjoint: Floats) -> Flags:
        """Take one primal-dual step of each column under way; return which moved."""
        n, w, kernel = self.n, self.points[:, self.n :], self.kernel
        blocks = len(self.points)
        along = self._solve(np.broadcast_to(self.link, self.points.shape))
        none = _Targets(np.zeros((blocks, n)), [np.zeros(y.shape) for y in self.y], np.zeros(w.shape))
        predictor = self._direction(none, along)
        self.u[:] = predictor.u[:, :n]
        low, high = np.full(blocks, np.inf), np.full(blocks, -np.inf)
        for block in self._each():
            low[block], high[block] = kernel.affine_ratio_test(0, block, self.x, self.u)
        centre = self._centring(predictor, low, high, adjoint) * self.products / self.row_weight
        added = np.zeros((blocks, n))
        for block in self._each():
            kernel.mehrotra(0, block, self.x, self.u, self._per_column(centre, block), added)
        self.slots[:] = 0
        rows = [centre[:, None] / z - q * dy for z, q, dy in zip(self.z, predictor.q, predictor.dy, strict=True)]
        targets = _Targets(added, rows, centre[:, None] / w - predictor.u[:, n:] * predictor.parts_dy)
        found = self._direction(targets, along)
        primal, dual = self._lengths(found, self.slots)
        trying = np.minimum(primal, dual) < _LONG_ENOUGH
        for _ in range(0 if kernel.SPARSE else _CORRECTIONS):
            trying &= np.minimum(primal, dual) < _LONG_ENOUGH
            if not trying[self.active].any():
                break
            trial = self._corrected(targets, found, primal, dual, centre, trying)
            other = self._direction(trial, along, trying)
            longer_primal, longer_dual = self._lengths(other, 1 - self.slots, trying)
            better = trying & (longer_primal + longer_dual >= primal + dual + _WORTHWHILE)
            better &= np.minimum(longer_primal, longer_dual) >= _KEPT * np.minimum(primal, dual)
            targets, found = trial.where(better, targets), other.where(better, found)
            primal, dual = np.where(better, longer_primal, primal), np.where(better, longer_dual, dual)
            self.slots[better] = 1 - self.slots[better]
            trying = better
        finite = np.isfinite(found.u).all(axis=1) & np.isfinite(found.rho) & np.isfinite(predictor.u).all(axis=1)
        moved = finite & (np.maximum(primal, dual) >= _SHORT)
        share = np.where(np.minimum(primal, dual) >= _LONG_ENOUGH, _LAST_STEP, _STEP)
        under_way = np.zeros(blocks, dtype=bool)
        under_way[self.active] = True
        going = moved & under_way
        primal, dual = np.where(going, share * primal, 0.0), np.where(going, share * dual, 0.0)
        self.u[:] = found.u[:, :n]
        for block in self._each(going):
            kernel.advance(0, block, self.x, self.u, int(self.slots[block.start]), self._per_column(dual, block))
        found = found.where(going, _still(found))
        self.points *= 1 + primal[:, None] * found.u
        self.rho += dual * found.rho
        self.y = [y + dual[:, None] * dy for y, dy in zip(self.y, found.dy, strict=True)]
        self.parts_y = self.parts_y + dual[:, None] * found.parts_dy
        self.z = self._slacks()
        for z in self.z:
            moved &= (z > 0).all(axis=1)
        return moved

    def _centring(self, predictor: _Direction, low: Floats, high: Floats, adjoint: Floats) -> Floats:
        """Return σ = (μ_aff/μ)³, at most 0.1 (B,); as in `step.py` no pass over the rows is needed."""
        ends = [*predictor.q, predictor.u[:, self.n :]]
        least = np.minimum.reduce([low, *(q.min(axis=1, initial=np.inf) for q in ends)])
        most = np.maximum.reduce([high, *(q.max(axis=1, initial=-np.inf) for q in ends)])
        primal, dual = 1.0 / np.maximum(1.0, -least), 1.0 / np.maximum(1.0, 1.0 + most)
        steps = self.points * predictor.u
        first = (steps * adjoint).sum(axis=1)
        second = (steps * ((self.rho + predictor.rho)[:, None] * self.link - self.cost)).sum(axis=1)
        reached = self.products * (1 - dual) + (primal * (1 - dual) - dual) * first - primal * dual * second
        sigma: Floats = np.minimum((np.maximum(0.0, reached) / self.products) ** 3, _LARGEST_SIGMA)
        return sigma

    def _lengths(self, found: _Direction, slots: Integers, chosen: Flags | None = None) -> tuple[Floats, Floats]:
        """Return the longest steps (B,) up to 1 that keep z and y positive, for the targets in `slots`."""
        self.u[:] = found.u[:, : self.n]
        primal, dual = np.full(len(slots), np.inf), np.full(len(slots), np.inf)
        for block in self._each(chosen):
            slot = int(slots[block.start])
            primal[block], dual[block] = self.kernel.ratio_test(0, block, self.x, self.u, slot, corrected=True)
        for q in [*found.q, found.u[:, self.n :]]:
            np.minimum(primal, q.min(axis=1, initial=np.inf), out=primal)
        falls = zip([*found.dy, found.parts_dy], [*self.y, self.parts_y], strict=True)
        for dy, y in falls:
            np.minimum(dual, (dy / y).min(axis=1, initial=np.inf), out=dual)
        return 1.0 / np.maximum(1.0, -primal), 1.0 / np.maximum(1.0, -dual)

    def _corrected(
        self, targets: _Targets, found: _Direction, primal: Floats, dual: Floats, centre: Floats, trying: Flags
    ) -> _Targets:
        """Return the targets with Gondzio's correction for somewhat longer steps, in the other slots."""
        primal, dual = (np.minimum(1.0, 1.8 * length + 0.3) for length in (primal, dual))
        added = np.zeros(self.x.shape)
        for block in self._each(trying):
            column = block.start
            steps = int(self.slots[column]), float(primal[column]), float(dual[column]), float(centre[column])
            self.kernel.centrality(0, block, self.x, self.u, *steps, added)
        longer, aim = (primal[:, None], dual[:, None]), centre[:, None]
        rows = [
            f + _clipped((z * (1 + longer[0] * q)) * (y + longer[1] * dy), aim) / z
            for f, z, y, q, dy in zip(targets.rows, self.z, self.y, found.q, found.dy, strict=True)
        ]
        w, u = self.points[:, self.n :], found.u[:, self.n :]
        parts = _clipped((w * (1 + longer[0] * u)) * (self.parts_y + longer[1] * found.parts_dy), aim) / w
        return _Targets(added, rows, targets.parts + parts)

    def _kept(self, columns: Integers, budget: Floats) -> list[tuple[int, Part]]:
        """Return the multipliers y of some columns without the smallest, whose sums are within the budgets (B, n)."""
        if not columns.size:
            return []
        parts = trimmed(self.layout, self.kernel.multipliers()[columns], budget[columns], self.kernel.pairs)
        return list(zip(columns.tolist(), parts, strict=True))


def _still(found: _Direction) -> _Direction:
    """Return no step."""
    q, dy = ([np.zeros(values.shape) for values in some] for some in (found.q, found.dy))
    return _Direction(np.zeros(found.u.shape), np.zeros(found.rho.shape), q, dy, np.zeros(found.parts_dy.shape))


def _clipped(product: Floats, aim: Floats) -> Floats:
    """Return clip(v, 0.1 aim, 10 aim) − min(v, 20 aim)."""
    lifted = np.minimum(np.maximum(product, NEAREST * aim), FARTHEST * aim)
    clipped: Floats = lifted - np.minimum(product, 2 * FARTHEST * aim)
    return clipped
