"""Adversarial privacy: how much an output may raise what somebody believes of a state.

A release is *ε-adversarially private* against an adversary with belief p when, for every output z and every state i
with p_i > 0, Pr(i | z) ≤ e^ε p_i (constrained adversarial privacy, DPHMM, Xiao et al. 2017, Definition 10.9). The least
such ε depends on the belief. It is at most the ε for which all states that the adversary holds for possible are
indistinguishable, and comes as close to it as one likes where nearly all belief is in one state.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.certify._exact import float_up
from mechdesign.certify._exponential import ln_upper
from mechdesign.base._errors import InputError
from mechdesign.mechanisms._knorm import KNormMechanism
from mechdesign.model._channel import Channel
from mechdesign.model._prior import Prior
from mechdesign.release.stage import Stage
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._arrays import as_array
from mechdesign.base._check import require_kind

__all__ = ["AdversarialPrivacy", "adversarial_level", "adversarial_privacy"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class AdversarialPrivacy:
    """The least ε of adversarial privacy, and where it is reached.

    Attributes:
        epsilon: ln of `factor`, rounded up.
        factor: the largest Pr(s | o) / p(s), exact.
        secret: a state whose probability an output raises by this factor.
        observable: that output, as a column of the channel.
    """

    epsilon: float
    factor: Fraction
    secret: int
    observable: int


@in_own_arithmetic
def adversarial_privacy(channel: Channel, belief: Prior | ArrayLike) -> AdversarialPrivacy:
    """Return the least ε with which a channel is adversarially private against a belief, exactly.

    Args:
        channel: p(o|s), from n secrets.
        belief: p, shape (n,); its floats are taken for what they are and divided by their exact sum.

    Raises:
        InputError: The belief is no distribution, or is not one over the secrets of the channel.

    >>> found = adversarial_privacy(Channel([[3 * 2**60, 2**60], [2**60, 3 * 2**60]]), [0.5, 0.5])
    >>> found.factor, round(found.epsilon, 6)
    (Fraction(3, 2), 0.405465)
    """
    require_kind(channel, Channel, "channel", "a Channel")
    return _least(channel.numerators, _exact(_belief(belief, len(channel.numerators))))


@in_own_arithmetic
def adversarial_level(stage: Stage, belief: Prior | ArrayLike) -> float:
    """Return the least ε with which a stage is adversarially private against a belief of its states.

    States outside the constrained domain count as their surrogates; those that the designer rules out are ruled out by
    any output. Exact for snapped outputs. For the coordinates of K-norm noise it is

        max over i with p_i > 0 of −ln Σ_j p_j exp(−ε ‖f(s_i) − f(s_j)‖_K),

    over j in the component of i; it is reached at z = f(s_i), where every other state is as unlikely as it can be,
    if all members share one hull K. Components with hulls of their own may do better than this.

    Args:
        stage: One time of a trace.
        belief: What the adversary believes before the release, shape (n,), over all states of the domain.

    Returns:
        ε in nats, rounded up for snapped outputs; infinite where the belief gives no state a chance that the designer
        holds for possible.
    """
    require_kind(stage, Stage, "stage", "a Stage")
    weights = _belief(belief, stage.domain.size)
    possible = np.flatnonzero(stage.surrogates >= 0)
    members = [Fraction(0)] * len(stage.members)
    parts = _exact(weights)
    for state, row in zip(possible.tolist(), np.searchsorted(stage.members, stage.surrogates[possible]), strict=True):
        members[row] += parts[state]
    if not any(members):
        return float("inf")
    if stage.channel is not None:
        return _least(stage.channel.numerators, members, sum(parts, Fraction(0))).epsilon
    mechanism = stage.fitted.mechanism
    assert isinstance(mechanism, KNormMechanism)
    return _noise_level(mechanism, np.array([float(part / sum(parts)) for part in members]))


def _least(numerators: Integers, belief: list[Fraction], whole: Fraction | None = None) -> AdversarialPrivacy:
    """Find the largest N[s,o] · Σ p / Σ_s p_s N[s,o], in integers; `whole` is Σ p where `belief` is a part of it."""
    scale = max(part.denominator for part in belief)
    weights = np.array([int(part * scale) for part in belief], dtype=object)
    believed = np.flatnonzero(weights > 0)
    occurs = np.flatnonzero(numerators[believed].any(axis=0))
    columns = numerators[np.ix_(believed, occurs)]
    sums = weights[believed] @ columns.astype(object)
    largest = columns.max(axis=0).tolist()
    factors = [Fraction(top * scale, int(below)) for top, below in zip(largest, sums, strict=True)]
    best = max(range(len(factors)), key=factors.__getitem__)
    factor = factors[best] * (sum(belief, Fraction(0)) if whole is None else whole)
    epsilon = float_up(ln_upper(factor.numerator, factor.denominator))
    return AdversarialPrivacy(epsilon, factor, int(believed[columns[:, best].argmax()]), int(occurs[best]))


def _noise_level(mechanism: KNormMechanism, weights: Floats) -> float:
    """Return max_i −ln Σ_j w_j exp(−ε ‖f(s_i) − f(s_j)‖_K) over nodes, for j those that share the body of i."""
    bodies = [mechanism.hull(node) for node in mechanism.nodes.tolist()]
    places = mechanism.points[mechanism.nodes]
    least = 1.0
    for row in np.flatnonzero(weights > 0).tolist():
        alike = np.array([body is bodies[row] for body in bodies])
        norms = bodies[row].norm(places[alike] - places[row])
        least = min(least, float(weights[alike] @ np.exp(-float(mechanism.epsilon) * norms)))
    return float(-np.log(least)) + 0.0


def _exact(weights: Floats) -> list[Fraction]:
    return [Fraction(weight) for weight in weights.tolist()]


def _belief(belief: Prior | ArrayLike, n: int) -> Floats:
    try:
        weights: Floats = Prior(as_array(belief, "prior")).probabilities
    except InputError as error:
        place = "belief" + error.path.removeprefix("prior")
        raise InputError(place, error.problem, value=error.value, bound=error.bound, remedy=error.remedy) from error
    if len(weights) != n:
        raise InputError("belief", "has the wrong length", value=len(weights), bound=f"{n} states")
    return weights
