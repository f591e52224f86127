"""Price all private columns of an observable together, and prove the lower bound.

This module implements docs/theory/rays.md, "The lower bound". Let c̃ = π∘c, λ the multipliers of the row sums, and v_i
the multiplier of floor i with minimum D_i and errors a_i. The lower bound is Σ_s λ_s + Σ_i v_i D_i if no private column
x of any observable o has a negative value

    Σ_s (c̃_so − λ_s) x_s − Σ_i v_i min_ŝ a_i(ŝ)·x.

Weights q_i >= 0 on the estimates ŝ, with sum v_i, may replace v_i times the minimum; this can only weaken the bound.
For given weights, a transport problem with losses decides whether a negative value exists, and returns the amount by
which λ is too large.

At multipliers λ of the row sums, let a_s be the reduced cost of observable o for secret s without pair multipliers. A
multiplier y of the row ``e^(E(s,t)) x_t − x_s >= 0`` raises a_s by y and lowers a_t by e^(E(s,t)) y. Let
f = e^(E(s,t)) y be the flow that leaves t. Of this flow, the share e^(−E(s,t)) arrives at s.

A secret s with a_s < 0 has the lack lack_s = −a_s, and a secret t with a_t > 0 has the spare amount spare_t = a_t. If
the spares can cover all lacks, no private column has a negative value. As E is a metric, detours never help, so flows
between these two sets suffice:

    minimise Σ_s δ_s   subject to   Σ_t e^(−E(s,t)) f_st + δ_s >= lack_s,   Σ_s f_st <= spare_t,   f, δ >= 0.

A solution of this program proves the multipliers λ_s − δ_s. The prices x_s <= 1 of the constraints on the lacks form
the private column of least value.

With floors, the program also chooses weights q >= 0 with Σ_h q_h = v for each floor. Then the lacks become
lack_s + Σ_h q_h a_h(s), and the spares become spare_t − Σ_h q_h a_h(t). The method is Mehrotra's predictor–corrector.
The normal equations reduce to two matrices: the order of one is the number of lacks, that of the other the number of
weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.synthesis._rays.generators import extend_into_cone

_Five = tuple[Floats, Floats, Floats, Floats, Floats]

_MAX_ITERATIONS = 60
# Share of the distance to the boundary that a step covers.
_BOUNDARY_FRACTION = 0.99
# Largest residual of the constraints, relative to the largest lack.
_MAX_RESIDUAL = 1e-7
# Number that is added to the unit diagonal of a matrix before the matrix is inverted.
_DIAGONAL_SHIFT = 1e-14
# The smallest flows into a secret are dropped while their sum, divided by the lack, is at most this factor times the
# tolerance.
_NEGLIGIBLE_SHARE = 30.0


@dataclass(frozen=True, eq=False)
class Choices:
    """The w weights of estimates that the solution chooses for the floors.

    Attributes:
        lacks: Amount that each weight adds to the lacks, shape (w, r).
        spares: Amount that each weight takes from the spares, shape (w, k).
        member: Matrix with 1 if a weight belongs to a floor, and 0 otherwise, shape (floors, w).
        totals: Sum of the weights of each floor, shape (floors,).
    """

    lacks: Floats
    spares: Floats
    member: Floats
    totals: Floats

    @staticmethod
    def none(lacks: int, spares: int) -> Choices:
        """Return an empty set of weights, for problems without floors."""
        return Choices(np.zeros((0, lacks)), np.zeros((0, spares)), np.zeros((0, 0)), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Transport:
    """A solution of the transport problem.

    Attributes:
        flows: Flows, shape (lacks, spares); their sums do not exceed the spares.
        lacking: Remaining deficits δ, shape (lacks,).
        prices: Multipliers x of the constraints on the lacks.
        weights: Weights of the estimates.
    """

    flows: Floats
    lacking: Floats
    prices: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class _TransportProblem:
    """The data of a transport problem, scaled to a largest lack of 1."""

    lack: Floats
    spare: Floats
    arrives: Floats
    choices: Choices


@dataclass(frozen=True, eq=False)
class _TransportPoint:
    """An iterate, or a step of the iteration.

    Attributes:
        primal: Positive primal variables: flows f, unused spares, deficits δ, surpluses over the lacks, weights.
        dual: Reduced costs of the primal variables.
        x: Prices of the lacks.
        v: Prices of the spares.
        omega: Prices ω of the sums of weights.
    """

    primal: _Five
    dual: _Five
    x: Floats
    v: Floats
    omega: Floats

    def advance(self, step: _TransportPoint, primal: float, dual: float) -> _TransportPoint:
        """Return the point after a step."""
        first = tuple(a + primal * d for a, d in zip(self.primal, step.primal, strict=True))
        second = tuple(a + dual * d for a, d in zip(self.dual, step.dual, strict=True))
        prices = (self.x + dual * step.x, self.v + dual * step.v, self.omega + dual * step.omega)
        return _TransportPoint(first, second, *prices)  # type: ignore[arg-type]

    def products(self) -> float:
        """Return the sum of all complementary products."""
        return sum(float(np.vdot(a, b)) for a, b in zip(self.primal, self.dual, strict=True))


def solve_transport(
    lack: Floats, spare: Floats, arrives: Floats, tolerance: float, choices: Choices | None = None
) -> Transport:
    """Find flows from surpluses to shortfalls that minimise the total remaining shortfall.

    The iteration may end early if a matrix becomes singular. After scaling, the flows and weights of every iterate
    satisfy the constraints.

    Args:
        lack: Lacks of r secrets; they are positive if there are no `choices`.
        spare: Spares of k other secrets; they are positive if there are no `choices`.
        arrives: Share of each flow that arrives, shape (r, k), between 0 and 1.
        tolerance: Optimality gap at which to stop, as a share of the total lack.
        choices: The weights to choose in problems with floors.

    Returns:
        Flows, deficits, prices and weights.
    """
    choices = choices or Choices.none(*arrives.shape)
    unit = float(np.abs(lack).max())
    scaled = Choices(choices.lacks / unit, choices.spares / unit, choices.member, choices.totals)
    given = _TransportProblem(lack / unit, spare / unit, arrives, scaled)
    point = _make_start(given)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        point = _iterate(given, point, tolerance)
    return _extract_flows(given, point, unit, _NEGLIGIBLE_SHARE * tolerance)


def _iterate(given: _TransportProblem, point: _TransportPoint, tolerance: float) -> _TransportPoint:
    """Take steps until the gap and the residuals are small, or until a step fails; return the last point."""
    choices = given.choices
    size = sum(part.size for part in point.primal)
    for _ in range(_MAX_ITERATIONS):
        missing = _compute_residuals(given, point.primal)
        value = given.lack @ point.x - given.spare @ point.v + choices.totals @ point.omega
        near = float(point.primal[2].sum() - value) <= tolerance * float(np.abs(given.lack).sum())
        if near and max(float(np.abs(part).max(initial=0.0)) for part in missing) <= _MAX_RESIDUAL:
            break
        try:
            next_point = _take_step(given, point, missing, size)
        except np.linalg.LinAlgError:
            break
        if not np.isfinite(next_point.products()):
            break
        point = next_point
    return point


def _take_step(
    given: _TransportProblem, point: _TransportPoint, missing: tuple[Floats, Floats, Floats], size: int
) -> _TransportPoint:
    """Return the next iterate; raise LinAlgError if the matrix is singular."""
    system = _TransportSystem(given, point, missing)
    mean = point.products() / size
    step = system.direction(tuple(-a * b for a, b in zip(point.primal, point.dual, strict=True)))
    after = point.advance(step, *_limit_steps(point, step)).products() / size
    target_product = (after / mean) ** 3 * mean
    terms = zip(point.primal, point.dual, step.primal, step.dual, strict=True)
    step = system.direction(tuple(target_product - a * b - da * db for a, b, da, db in terms))
    along_primal, along_dual = _limit_steps(point, step)
    return point.advance(step, _BOUNDARY_FRACTION * along_primal, _BOUNDARY_FRACTION * along_dual)


def _make_start(given: _TransportProblem) -> _TransportPoint:
    """Return a positive starting point with feasible prices."""
    r, k = given.arrives.shape
    choices, middle = given.choices, float(np.abs(given.lack).mean())
    f = np.minimum(np.maximum(given.spare, 0.1 * middle) / (2 * r), middle / max(k, 1)) * np.ones((r, 1))
    count = choices.member.sum(axis=1)
    weights = choices.member.T @ (choices.totals / np.maximum(count, 1.0))
    lacking = np.full(r, middle)
    left = given.spare - f.sum(axis=0) - weights @ choices.spares
    surplus = (given.arrives * f).sum(axis=1) + lacking - given.lack - weights @ choices.lacks
    x = np.full(r, 0.5)
    v = 1.1 * (given.arrives * x[:, None]).max(axis=0) + 1e-3
    losses = choices.lacks @ x + choices.spares @ v
    omega = np.array([0.9 * losses[row > 0].min() for row in choices.member])
    return _TransportPoint(
        (f, np.maximum(left, 0.1 * middle), lacking, np.maximum(surplus, 0.1 * middle), np.maximum(weights, 1e-9)),
        (v - given.arrives * x[:, None], v, 1 - x, x, np.maximum(losses - omega @ choices.member, 1e-12)),
        x,
        v,
        omega,
    )


def _compute_residuals(given: _TransportProblem, primal: tuple[Floats, ...]) -> tuple[Floats, Floats, Floats]:
    """Return the residuals of the constraints on lacks, spares and sums of weights at a point."""
    f, left, lacking, surplus, weights = primal
    choices = given.choices
    return (
        given.lack + weights @ choices.lacks - ((given.arrives * f).sum(axis=1) + lacking - surplus),
        given.spare - weights @ choices.spares - (f.sum(axis=0) + left),
        choices.totals - choices.member @ weights,
    )


class _TransportSystem:
    """Newton's system at a point. Prices are feasible at every iterate, but flows only at the end."""

    def __init__(
        self, given: _TransportProblem, point: _TransportPoint, missing: tuple[Floats, Floats, Floats]
    ) -> None:
        self.given, self.point, self.missing = given, point, missing
        ratios = [a / b for a, b in zip(point.primal, point.dual, strict=True)]
        arrives, choices = given.arrives, given.choices
        self._weighted = arrives * ratios[0]
        self._spares = ratios[0].sum(axis=0) + ratios[1]
        self._part = self._weighted / self._spares
        matrix = -(self._part @ self._weighted.T)
        matrix[np.diag_indices_from(matrix)] += (arrives * self._weighted).sum(axis=1) + ratios[2] + ratios[3]
        self._scale = 1 / np.sqrt(matrix.diagonal())
        matrix *= self._scale * self._scale[:, None]
        np.fill_diagonal(matrix, 1 + _DIAGONAL_SHIFT)
        self._inverse = np.linalg.inv(matrix)
        # The matrix of the weights: their columns, −a for lacks and a for spares, are bordered by the rows of their
        # sums.
        self._solved = [self._prices(-a, b) for a, b in zip(choices.lacks, choices.spares, strict=True)]
        count, floors = len(choices.lacks), len(choices.totals)
        self._border = np.zeros((count + floors, count + floors))
        for column, (x, v) in enumerate(self._solved):
            self._border[:count, column] = -choices.lacks @ x - choices.spares @ v
        self._border[:count, :count][np.diag_indices(count)] += 1 / ratios[4]
        self._border[:count, count:] = -choices.member.T
        self._border[count:, :count] = choices.member

    def _prices(self, at_lacks: Floats, at_spares: Floats) -> tuple[Floats, Floats]:
        """Solve the system without weights for the prices x and v."""
        x = self._scale * (self._inverse @ (self._scale * (at_lacks - self._part @ at_spares)))
        return x, -(at_spares - self._weighted.T @ x) / self._spares

    def direction(self, targets: tuple[Floats, ...]) -> _TransportPoint:
        """Return the step with primal · d(dual) + dual · d(primal) = targets."""
        point, arrives, choices = self.point, self.given.arrives, self.given.choices
        f, left, lacking, surplus, weights = (t / b for t, b in zip(targets, point.dual, strict=True))
        at_lacks = self.missing[0] - ((arrives * f).sum(axis=1) + lacking - surplus)
        at_spares = self.missing[1] - (f.sum(axis=0) + left)
        dx, dv = self._prices(at_lacks, at_spares)
        omega = np.zeros(len(choices.totals))
        if len(weights):
            ratios = point.primal[4] / point.dual[4]
            right = weights / ratios - choices.lacks @ dx - choices.spares @ dv
            found = np.linalg.solve(self._border, np.concatenate([right, self.missing[2]]))
            dq, omega = found[: len(weights)], found[len(weights) :]
            dx = dx - sum(q * x for q, (x, _) in zip(dq, self._solved, strict=True))
            dv = dv - sum(q * v for q, (_, v) in zip(dq, self._solved, strict=True))
        change = choices.lacks @ dx + choices.spares @ dv - omega @ choices.member
        slacks = (dv - arrives * dx[:, None], dv, -dx, dx, change)
        primal = tuple((t - a * ds) / b for t, a, b, ds in zip(targets, point.primal, point.dual, slacks, strict=True))
        return _TransportPoint(primal, slacks, dx, dv, omega)  # type: ignore[arg-type]


def _limit_steps(point: _TransportPoint, step: _TransportPoint) -> tuple[float, float]:
    """Return the longest primal and dual steps, at most 1, that keep all variables nonnegative."""

    def longest(values: tuple[Floats, ...], changes: tuple[Floats, ...]) -> float:
        return 1 / max(1.0, *(float((-d / a).max(initial=0.0)) for a, d in zip(values, changes, strict=True)))

    return longest(point.primal, step.primal), longest(point.dual, step.dual)


def _extract_flows(given: _TransportProblem, point: _TransportPoint, unit: float, share: float) -> Transport:
    """Drop negligible flows, scale the weights to the required sums, and scale down flows that exceed the spares."""
    choices = given.choices
    weights = point.primal[4]
    sums = choices.member @ weights
    weights = weights * (choices.member.T @ np.divide(choices.totals, sums, out=np.zeros_like(sums), where=sums > 0))
    lack = given.lack + weights @ choices.lacks
    spare = np.maximum(given.spare - weights @ choices.spares, 0.0)
    brings = given.arrives * point.primal[0]
    order = np.argsort(brings, axis=1)
    heaped = np.cumsum(np.take_along_axis(brings, order, axis=1), axis=1)
    kept = np.empty(brings.shape, dtype=np.bool_)
    np.put_along_axis(kept, order, heaped > share * lack[:, None], axis=1)
    flows = np.where(kept, point.primal[0], 0.0)
    outflow = flows.sum(axis=0)
    flows *= np.minimum(1.0, np.divide(spare, outflow, out=np.ones_like(outflow), where=outflow > 0))
    lacking = np.maximum(lack - (given.arrives * flows).sum(axis=1), 0.0)
    return Transport(flows * unit, lacking * unit, np.clip(point.x, 0.0, 1.0), weights)


# Largest exponent between the two secrets of a flow: at larger exponents, almost all of the flow is lost.
_MAX_EXPONENT = 8.0
# Number of estimates that may have a weight at first, largest number of retries with new weights, and a share. The
# retries end unless the deficit falls below this share of the least deficit so far.
_FIRST_ESTIMATES, _MAX_RETRIES, _SETTLED_SHARE = 12, 6, 0.98
_ROUNDING_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class PricingData:
    """The constant data of all pricing problems.

    Attributes:
        metric: Exponents, shape (k, k), 0 on the diagonal.
        cost: c̃, shape (k, m).
        errors: Errors of each floor times its prior, shape (estimates, k).
        homes: For each observable, shape (m,), the secret for which it costs least.
    """

    metric: Floats
    cost: Floats
    errors: tuple[Floats, ...]
    homes: Integers


@dataclass(frozen=True, eq=False)
class RayPrices:
    """The multipliers λ of the row sums, shape (k,), and v of the floors."""

    sums: Floats
    floors: Floats


@dataclass(frozen=True, eq=False)
class FloorAttack:
    """Weights on the estimates of a floor, as indices and values; the values sum to the floor's multiplier."""

    estimates: Integers
    weights: Floats


@dataclass(frozen=True, eq=False)
class RayProof:
    """The proof for one observable.

    Attributes:
        observable: The observable.
        sources: Secrets s of the rows e^E(s,t) x_t − x_s >= 0 with a multiplier.
        targets: Secrets t of these rows.
        values: The multipliers of these rows.
        attacks: Weights on the estimates of each floor.
        lacking: Amount by which each λ_s is too large, shape (k,), mostly 0; None if λ is proved.
        ray: Column of least value, shape (k,), with entries of at most 1; None if no secret had a negative value.
    """

    observable: int
    sources: Integers
    targets: Integers
    values: Floats
    attacks: tuple[FloorAttack, ...] = ()
    lacking: Floats | None = None
    ray: Floats | None = None

    @property
    def total(self) -> float:
        """The total amount by which λ is too large."""
        return 0.0 if self.lacking is None else float(self.lacking.sum())


@dataclass(frozen=True, eq=False)
class _Weights:
    """For each floor, the estimates that may have a weight, and the current weights, shape (estimates,)."""

    allowed: list[Integers]
    standing: list[Floats]


def price_observable(scene: PricingData, prices: RayPrices, observable: int, tolerance: float) -> RayProof:
    """Return the proof for one observable; `tolerance` is the relative gap of the transport problem.

    With floors, only a few estimates may have a weight: at first the best estimates for the secret for which the
    observable costs least. The current weights determine which secrets have a lack and which have a spare amount. The
    transport problem is therefore solved again with the weights from its solution.
    """
    value = scene.cost[:, observable] - prices.sums
    home = scene.homes[observable]
    allowed = [np.argsort(error[:, home], kind="stable")[:_FIRST_ESTIMATES] for error in scene.errors]
    standing = [np.zeros(len(error)) for error in scene.errors]
    for weights, indices, total in zip(standing, allowed, prices.floors, strict=True):
        weights[indices[0]] = total
    best, chosen = _serve(scene, value, observable, _Weights(allowed, standing), prices.floors, tolerance)
    for _ in range(_MAX_RETRIES if scene.errors else 0):
        if best.lacking is None:
            break
        found, chosen = _serve(scene, value, observable, chosen, prices.floors, tolerance)
        settled = found.total > _SETTLED_SHARE * best.total
        best = min(best, found, key=lambda proof: proof.total)
        if settled:
            break
    return best


def _serve(
    scene: PricingData, value: Floats, observable: int, given: _Weights, totals: Floats, tolerance: float
) -> tuple[RayProof, _Weights]:
    """Send flows from secrets of positive value to those of negative value; return the proof and the new weights."""
    lowered = value - _compute_floor_terms(scene, given.standing)
    short = np.flatnonzero(lowered < 0)
    if not short.size:
        nothing = np.zeros(0, dtype=np.int64)
        return RayProof(observable, nothing, nothing, np.zeros(0), _make_attacks(given.standing)), given
    distances = scene.metric[short]
    others = np.flatnonzero((lowered > 0) & (distances.min(axis=0) < _MAX_EXPONENT))
    arrives = np.exp(-distances[:, others])
    choices = _make_choices(scene, given.allowed, totals, short, others)
    found = solve_transport(-value[short], value[others], arrives, tolerance, choices)
    standing = [np.zeros(len(error)) for error in scene.errors]
    parts = (
        np.split(found.weights, np.cumsum([len(indices) for indices in given.allowed])[:-1]) if given.allowed else []
    )
    for weights, indices, part in zip(standing, given.allowed, parts, strict=True):
        weights[indices] = part
    s, t = np.nonzero(found.flows)
    flows = found.flows[s, t]
    arriving = flows * arrives[s, t]
    left = value - _compute_floor_terms(scene, standing)
    np.add.at(left, short[s], arriving)
    np.subtract.at(left, others[t], flows)
    ray = extend_into_cone(found.prices, short, scene.metric)
    allowed = [
        np.union1d(indices, (error @ ray).argmin()) for indices, error in zip(given.allowed, scene.errors, strict=True)
    ]
    lacking = np.maximum(-left, 0.0)
    # Deficits of the size of rounding errors are set to 0.
    served = lacking.sum() <= _ROUNDING_ERROR * np.abs(value[short]).sum()
    missing = None if served else lacking
    proof = RayProof(observable, short[s], others[t], arriving, _make_attacks(standing), missing, ray)
    return proof, _Weights(allowed, standing)


def _compute_floor_terms(scene: PricingData, weights: list[Floats]) -> Floats:
    """Return Σ_h q_h a_h(s) over the estimates of all floors, shape (k,)."""
    found = np.zeros(len(scene.metric))
    for weight, error in zip(weights, scene.errors, strict=True):
        indices = np.flatnonzero(weight)
        found += weight[indices] @ error[indices]
    return found


def _make_attacks(weights: list[Floats]) -> tuple[FloorAttack, ...]:
    return tuple(FloorAttack(np.flatnonzero(weight), weight[weight > 0]) for weight in weights)


def _make_choices(
    scene: PricingData, allowed: list[Integers], totals: Floats, short: Integers, others: Integers
) -> Choices:
    member = np.zeros((len(allowed), sum(len(indices) for indices in allowed)))
    start = 0
    for row, indices in zip(member, allowed, strict=True):
        row[start : start + len(indices)] = 1.0
        start += len(indices)
    if not allowed:
        return Choices.none(len(short), len(others))
    errors = np.concatenate([error[indices] for indices, error in zip(allowed, scene.errors, strict=True)])
    return Choices(errors[:, short], errors[:, others], member, totals)
