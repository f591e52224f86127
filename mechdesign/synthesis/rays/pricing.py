"""Price all private columns of an observable at once, and prove what the multipliers are worth.

The lower bound is Σ_s λ_s + Σ_i v_i D_i where no private column x of any observable o has a negative value

    Σ_s (c̃_so − λ_s) x_s − Σ_i min_ŝ Σ_q v_i a_i(ŝ)·x,

c̃ = π∘c, v_i the multiplier of floor i. Whatever weights q_i of sum v_i on the estimates take the place of the minimum,
they prove no more than is true. A transport problem (`transport.py`) decides for given weights, and says by how much
λ is too large where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.synthesis.rays.generators import closed
from mechdesign.synthesis.rays.transport import transport

__all__ = ["Attack", "Prices", "Proof", "Scene", "price"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Of a flow over a larger exponent less than a thousandth arrives: nothing worth it.
_REACH = 8.0
# Weights on estimates are tried in turn, each the best answer to the column that the last ones leave cheapest.
_ANSWERS = 6
_SETTLED = 1e-3


@dataclass(frozen=True, eq=False)
class Scene:
    """What stays the same.

    Attributes:
        metric: Exponents (k, k), 0 on the diagonal.
        cost: c̃ (k, m).
        errors: The error (estimates, k) of each floor, times its prior.
        homes: Of each observable (m,) the secret for which it costs least.
    """

    metric: Floats
    cost: Floats
    errors: tuple[Floats, ...]
    homes: Integers


@dataclass(frozen=True, eq=False)
class Prices:
    """Multipliers: λ (k,) of the row sums, and v of each floor."""

    sums: Floats
    floors: Floats


@dataclass(frozen=True, eq=False)
class Attack:
    """Weights on the estimates of a floor: indices and values, whose sum is the floor's multiplier."""

    estimates: Integers
    weights: Floats


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved of one observable.

    Attributes:
        observable: Which.
        sources: Secrets s of the rows e^E(s,t) x_t − x_s >= 0 that have a multiplier.
        targets: Their secrets t.
        values: The multipliers.
        attacks: One for each floor.
        lacking: By how much λ is too large (k,), 0 almost everywhere; None where it is not.
        ray: The column (k,) of least value, with the largest entry at most 1; None where nothing was lacking at first.
    """

    observable: int
    sources: Integers
    targets: Integers
    values: Floats
    attacks: tuple[Attack, ...] = ()
    lacking: Floats | None = None
    ray: Floats | None = None


def price(scene: Scene, prices: Prices, observable: int, tolerance: float) -> Proof:
    """Prove what can be proved of one observable; `tolerance` is that of the transport problem."""
    value = scene.cost[:, observable] - prices.sums
    if not scene.errors:
        return _served(scene, value, observable, (), tolerance)
    home = scene.homes[observable]
    weights = [np.zeros(len(error)) for error in scene.errors]
    for weight, error, total in zip(weights, scene.errors, prices.floors, strict=True):
        weight[error[:, home].argmin()] = total
    best: Proof | None = None
    for answer in range(_ANSWERS):
        lowered = value - sum(weight @ error for weight, error in zip(weights, scene.errors, strict=True))
        attacks = tuple(Attack(np.flatnonzero(weight), weight[weight > 0]) for weight in weights)
        found = _served(scene, lowered, observable, attacks, tolerance)
        if best is None or _total(found) < _total(best):
            best = found
        if found.ray is None or found.lacking is None:
            return found
        settled = True
        for index, (error, total) in enumerate(zip(scene.errors, prices.floors, strict=True)):
            losses = error @ found.ray
            chosen = int(losses.argmin())
            settled &= bool(total * losses[chosen] >= (1 - _SETTLED) * (weights[index] @ losses))
            turned = np.zeros(len(error))
            turned[chosen] = total
            weights[index] = weights[index] + (turned - weights[index]) / (answer + 2)
        if settled:
            break
    assert best is not None
    return best


def _total(proof: Proof) -> float:
    return 0.0 if proof.lacking is None else float(proof.lacking.sum())


def _served(
    scene: Scene, value: Floats, observable: int, attacks: tuple[Attack, ...], tolerance: float
) -> Proof:
    """Serve the secrets of negative value by those of positive value."""
    short = np.flatnonzero(value < 0)
    nothing = np.zeros(0, dtype=np.int64)
    if not short.size:
        return Proof(observable, nothing, nothing, np.zeros(0), attacks)
    distances = scene.metric[short]
    others = np.flatnonzero((value > 0) & (distances.min(axis=0) < _REACH))
    arrives = np.exp(-distances[:, others])
    found = transport(-value[short], value[others], arrives, tolerance)
    s, t = np.nonzero(found.flows)
    lacking = None
    if found.lacking.any():
        lacking = np.zeros(len(value))
        lacking[short] = found.lacking
    multipliers = found.flows[s, t] * arrives[s, t]
    return Proof(observable, short[s], others[t], multipliers, attacks, lacking, closed(found.prices, short, scene.metric))
