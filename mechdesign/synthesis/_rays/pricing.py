"""Price all private columns of an observable together, and prove the lower bound.

This module implements docs/theory/rays.md, "The lower bound". Let c̃ = π∘c, λ the multipliers of the row sums, and v_i
the multiplier of floor i with minimum D_i and errors a_i. The lower bound is Σ_s λ_s + Σ_i v_i D_i if no private column
x of any observable o has a negative value

    Σ_s (c̃_so − λ_s) x_s − Σ_i v_i min_ŝ a_i(ŝ)·x.

Weights q_i >= 0 on the estimates ŝ, with sum v_i, may replace v_i times the minimum; this can only weaken the bound.
For given weights, a transport problem (`transport.py`) decides whether a negative value exists, and returns the amount
by which λ is too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.synthesis._rays.generators import extend_into_cone
from mechdesign.synthesis._rays.transport import Choices, solve_transport

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
