"""What one observable adds to the proof of a lower bound: a transport problem with losses.

At multipliers λ of the row sums let a_s be the reduced cost of observable o for secret s before any pair's multiplier. A
multiplier y of the row e^(E(s,t)) x_t − x_s >= 0 raises a_s by y and lowers a_t by e^(E(s,t)) y: of a flow f = e^E y that
t gives, the part e^(−E) arrives at s. If the secrets with a_s < 0, which lack −a_s, can be served by those with
a_t > 0, which have a_t to give, then no private column has a negative value. As E is a metric, detours gain nothing, and
flows between these two sets suffice:

    minimise Σ_s δ_s   where   Σ_t e^(−E(s,t)) f_st + δ_s >= lack_s,   Σ_s f_st <= spare_t,   f, δ >= 0.

λ_s less δ_s is then proved; and the multipliers x_s of the lacks, at most 1, are the private column that costs least.
The method is Mehrotra's predictor–corrector; normal equations reduce to a matrix as large as there are lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as linalg
from numpy.typing import NDArray

__all__ = ["Transport", "transport"]

Floats = NDArray[np.float64]

_ITERATIONS = 60
_TO_BOUNDARY = 0.99
# What arrives may miss what is asked by this part of the largest lack.
_RESIDUAL = 1e-7
# The least flows are left out, as long as they bring less than this part of a lack, times the tolerance.
_NEGLIGIBLE = 0.1


@dataclass(frozen=True, eq=False)
class Transport:
    """Flows (lacks, spares), nowhere more than is spare; what is left lacking (lacks,); and prices x of the lacks."""

    flows: Floats
    lacking: Floats
    prices: Floats


@dataclass(frozen=True, eq=False)
class _Point:
    """An iterate, or a step of one: flows f, unused h, lacking δ and surplus e, and the slacks of their prices."""

    f: Floats
    h: Floats
    lacking: Floats
    surplus: Floats
    x: Floats
    v: Floats
    slack_f: Floats
    slack_h: Floats
    slack_lacking: Floats
    slack_surplus: Floats

    @property
    def primal(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Everything that is to stay positive, of the flows."""
        return self.f, self.h, self.lacking, self.surplus

    @property
    def dual(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Everything that is to stay positive, of the prices."""
        return self.slack_f, self.slack_h, self.slack_lacking, self.slack_surplus

    def moved(self, step: _Point, primal: float, dual: float) -> _Point:
        """Return the point after a step."""
        names = ("f", "h", "lacking", "surplus")
        first = (getattr(self, name) + primal * getattr(step, name) for name in names)
        names = ("x", "v", "slack_f", "slack_h", "slack_lacking", "slack_surplus")
        return _Point(*first, *(getattr(self, name) + dual * getattr(step, name) for name in names))

    def products(self) -> float:
        """Return the sum of all complementary products."""
        return sum(float(np.vdot(a, b)) for a, b in zip(self.primal, self.dual, strict=True))


def transport(lack: Floats, spare: Floats, arrives: Floats, tolerance: float) -> Transport:
    """Serve as much of what is lacking as can be served.

    Args:
        lack: What each of r secrets lacks, positive.
        spare: What each of k others has to give, positive.
        arrives: The part of a flow that arrives (r, k), between 0 and 1.
        tolerance: The optimality gap, as a part of all that is lacking, at which to stop.
    """
    if not spare.size:
        return Transport(np.zeros(arrives.shape), lack, np.ones(len(lack)))
    unit = float(lack.max())
    lack, spare = lack / unit, spare / unit
    point = _start(lack, spare, arrives)
    size = point.f.size + len(spare) + 2 * len(lack)
    for _ in range(_ITERATIONS):
        missing = lack - ((arrives * point.f).sum(axis=1) + point.lacking - point.surplus)
        unused = spare - (point.f.sum(axis=0) + point.h)
        gap = float(point.lacking.sum() - (lack @ point.x - spare @ point.v))
        if gap <= tolerance * lack.sum() and np.abs(missing).max() <= _RESIDUAL:
            break
        system = _System(arrives, point, missing, unused)
        mean = point.products() / size
        step = system.direction(tuple(-a * b for a, b in zip(point.primal, point.dual, strict=True)))
        after = point.moved(step, *_longest(point, step)).products() / size
        aim = (after / mean) ** 3 * mean
        terms = zip(point.primal, point.dual, step.primal, step.dual, strict=True)
        step = system.direction(tuple(aim - a * b - da * db for a, b, da, db in terms))
        along_primal, along_dual = _longest(point, step)
        moved = point.moved(step, _TO_BOUNDARY * along_primal, _TO_BOUNDARY * along_dual)
        if not np.isfinite(moved.f).all() or not np.isfinite(moved.x).all():
            break
        point = moved
    return _kept(lack, spare, arrives, point, unit, _NEGLIGIBLE * tolerance)


def _start(lack: Floats, spare: Floats, arrives: Floats) -> _Point:
    r, k = arrives.shape
    f = np.minimum(spare / (2 * r), lack.mean() / k) * np.ones((r, 1))
    lacking = np.full(r, lack.mean())
    surplus = np.maximum((arrives * f).sum(axis=1) + lacking - lack, 0.1 * lack.mean())
    x = np.full(r, 0.5)
    v = 1.1 * (arrives * x[:, None]).max(axis=0) + 1e-3
    return _Point(f, spare - f.sum(axis=0), lacking, surplus, x, v, v - arrives * x[:, None], v, 1 - x, x)


class _System:
    """Newton's system at a point; prices are feasible throughout, flows in the end."""

    def __init__(self, arrives: Floats, point: _Point, missing: Floats, unused: Floats) -> None:
        self.arrives, self.point, self.missing, self.unused = arrives, point, missing, unused
        ratios = [a / b for a, b in zip(point.primal, point.dual, strict=True)]
        self._weighted = arrives * ratios[0]
        self._spares = ratios[0].sum(axis=0) + ratios[1]
        self._part = self._weighted / self._spares
        matrix = -(self._part @ self._weighted.T)
        matrix[np.diag_indices_from(matrix)] += (arrives * self._weighted).sum(axis=1) + ratios[2] + ratios[3]
        scale = 1 / np.sqrt(matrix.diagonal())
        self._scale = scale
        self._inverse = linalg.inv(matrix * scale * scale[:, None], check_finite=False, overwrite_a=True)

    def direction(self, targets: tuple[Floats, ...]) -> _Point:
        """Return the step with primal · d(dual) + dual · d(primal) = targets."""
        point, arrives = self.point, self.arrives
        f, h, lacking, surplus = (t / b for t, b in zip(targets, point.dual, strict=True))
        at_lacks = self.missing - ((arrives * f).sum(axis=1) + lacking - surplus)
        at_spares = self.unused - (f.sum(axis=0) + h)
        dx = self._scale * (self._inverse @ (self._scale * (at_lacks - self._part @ at_spares)))
        dv = -(at_spares - self._weighted.T @ dx) / self._spares
        slacks = (dv - arrives * dx[:, None], dv, -dx, dx)
        primal = ((t - a * ds) / b for t, a, b, ds in zip(targets, point.primal, point.dual, slacks, strict=True))
        return _Point(*primal, dx, dv, *slacks)


def _longest(point: _Point, step: _Point) -> tuple[float, float]:
    """Return the longest steps, at most 1, of flows and of prices."""

    def longest(values: tuple[Floats, ...], changes: tuple[Floats, ...]) -> float:
        return 1 / max(1.0, *(float((-d / a).max()) for a, d in zip(values, changes, strict=True)))

    return longest(point.primal, step.primal), longest(point.dual, step.dual)


def _kept(lack: Floats, spare: Floats, arrives: Floats, point: _Point, unit: float, share: float) -> Transport:
    """Leave out what brings next to nothing, and scale flows to what is spare."""
    brings = arrives * point.f
    order = np.argsort(brings, axis=1)
    heaped = np.cumsum(np.take_along_axis(brings, order, axis=1), axis=1)
    kept = np.empty(arrives.shape, dtype=np.bool_)
    np.put_along_axis(kept, order, heaped > share * lack[:, None], axis=1)
    flows = np.where(kept, point.f, 0.0)
    given = flows.sum(axis=0)
    flows *= np.minimum(1.0, np.divide(spare, given, out=np.ones_like(given), where=given > 0))
    lacking = np.maximum(lack - (arrives * flows).sum(axis=1), 0.0)
    return Transport(flows * unit, lacking * unit, np.clip(point.x, 0.0, 1.0))
