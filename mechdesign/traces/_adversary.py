"""Adversary: beliefs, expected errors, gains.

Adversaries know the mechanism of every time, the constrained domain, and the surrogates. Their chain and belief of the
first state may be others than the designer's (DPHMM, section 10.6). Who holds fewer states for possible still finds the
policy kept among those. Who holds more finds it kept among the states that both hold for possible; the others are ruled
out by the first output or, under a δ-location set, pass for their surrogates.

A release is *ε-adversarially private* against an adversary with belief p when, for every output z and every state i
with p_i > 0, Pr(i | z) ≤ e^ε p_i (constrained adversarial privacy, DPHMM, Xiao et al. 2017, Definition 10.9). The least
such ε depends on the belief. It is at most the ε for which all states that the adversary holds for possible are
indistinguishable, and comes as close to it as one likes where nearly all belief is in one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_amounts, as_array, as_indices, read_only
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import float_up
from mechdesign.certify._exponential import ln_upper
from mechdesign.graphs._exposure import degree_of_protection, hull_level
from mechdesign.mechanisms._knorm import KNormMechanism
from mechdesign.model._channel import Channel
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.traces._composition import stages_of
from mechdesign.traces._hmm import Transition, as_chain, as_initial, backward, forward
from mechdesign.traces._stage import Release, Stage


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What an adversary believes at the T times of a trace; arrays of shape (T, n), read-only.

    Attributes:
        priors: before the outputs of the time.
        posteriors: after them.
        smoothed: after all outputs of the whole trace.
        log_evidence: ln of the probability of the outputs of a time given those before, shape (T,): its sum tells how
            well the adversary's model explains the trace.
    """

    priors: Floats
    posteriors: Floats
    smoothed: Floats
    log_evidence: Floats

    @in_own_arithmetic
    def mass(self, truth: ArrayLike, which: str = "posteriors") -> Floats:
        """Return the belief in the true state of each time, shape (T,); `which` names an attribute."""
        beliefs = self._chosen(which)
        return beliefs[np.arange(len(beliefs)), self._truth(truth)]

    @in_own_arithmetic
    def expected_error(self, distance: ArrayLike, which: str = "posteriors") -> Floats:
        """Return the error that the adversary expects of the best estimate at each time; see `expected_error`."""
        return expected_error(self._chosen(which), distance)[0]

    def errors(self, truth: ArrayLike, distance: ArrayLike, which: str = "posteriors") -> Floats:
        """Return how far the best estimate of each time is from the true state, shape (T,)."""
        estimates = expected_error(self._chosen(which), distance)[1]
        found: Floats = as_array(distance, "distance", np.float64)[estimates, self._truth(truth)]
        return found

    def _chosen(self, which: str) -> Floats:
        if which not in ("priors", "posteriors", "smoothed"):
            raise InputError("which", "is not known", value=which, bound='"priors", "posteriors" or "smoothed"')
        beliefs: Floats = getattr(self, which)
        return beliefs

    def _truth(self, truth: ArrayLike) -> Integers:
        return _states(truth, *self.posteriors.shape)


@dataclass(frozen=True, eq=False, init=False)
class Adversary:
    """Somebody with a Markov chain, or one for each step, and a belief of the first state.

    Neither need be the designer's.
    """

    transition: MarkovChain | VaryingChain
    initial: Prior

    def __init__(self, transition: Transition, initial: Prior | ArrayLike) -> None:
        chain = as_chain(transition)
        object.__setattr__(self, "transition", chain)
        object.__setattr__(self, "initial", as_initial(initial, chain.size))

    @in_own_arithmetic
    def watch(self, releases: Sequence[Release]) -> Beliefs:
        """Return the beliefs at all times of a trace, from its first on; several releases of one time count together.

        Raises `InputError` for releases that are not in order of time without a gap, and for an output that is
        impossible in this adversary's eyes, whose model is wrong then.
        """
        observed = _by_time(releases, self.transition.size)
        filtered = forward(self.initial, self.transition, observed, path="releases")
        smoothed = backward(filtered, self.transition, observed)
        arrays = (filtered.priors, filtered.posteriors, smoothed, filtered.log_evidence)
        return Beliefs(*map(read_only, arrays))


def expected_error(beliefs: ArrayLike, distance: ArrayLike) -> tuple[Floats, Integers]:
    """Return min_ŝ Σ_s b(s) a(ŝ, s) and the first estimate ŝ that reaches it, for beliefs b of shape (T, n): (T,) each.

    `distance` a(ŝ, s) is of shape (k, n), estimates by states, in any unit (Privacy Games, Equation 19).
    """
    rows = as_amounts(beliefs, "beliefs", "(T, n)", "a probability")
    error = as_amounts(distance, "distance", "(k, n)")
    if error.shape[1] != rows.shape[1] or error.shape[0] == 0:
        raise InputError("distance", "does not fit the beliefs", value=error.shape, bound=f"(k, {rows.shape[1]})")
    expected = rows @ error.T
    estimates: Integers = expected.argmin(axis=1)
    return expected.min(axis=1), estimates


def degrees_of(releases: Sequence[Release | Stage], truth: ArrayLike) -> Integers:
    """Return the degree of protection of the true state at each release, shape (T,); see `Stage.degrees`."""
    stages = stages_of(releases)
    if not stages:
        return np.zeros(0, dtype=np.int64)
    states = _states(truth, len(stages), stages[0].domain.size)
    return np.array([stage.degrees[state] for stage, state in zip(stages, states, strict=True)], dtype=np.int64)


def degrees_against(stage: Stage, support: ArrayLike) -> dict[int, int]:
    """Return for each state in `support`, those an adversary holds for possible, how many of these protect it.

    They are counted within the hull of the whole graph of the stage. Where the adversary holds more states for possible
    than the designer did, some may have a degree of 1: they are exposed (DPHMM, section 10.6, Case II).
    """
    require_kind(stage, Stage, "stage", "a Stage")
    possible = as_indices(support, "support", stage.domain.size)
    alone = nx.empty_graph(possible.tolist())
    found = degree_of_protection(stage.domain, alone, hull=stage.hull)
    assert isinstance(found, dict)
    return found


def level_against(stage: Stage, support: ArrayLike) -> float:
    """Return the overall level against an adversary who holds the states in `support` for possible.

    ε max ‖f(s_j) − f(s_k)‖_K over the states that the designer, too, held for possible (DPHMM, section 10.6), with the
    hull of the whole graph.
    """
    require_kind(stage, Stage, "stage", "a Stage")
    possible = as_indices(support, "support", stage.domain.size)
    return hull_level(stage.domain, stage.hull, stage.epsilon, support=np.intersect1d(possible, stage.members))


def _by_time(releases: Sequence[Release], n: int) -> Floats:
    """Return ln Pr(all outputs of time t | s), shape (T, n)."""
    observed: list[Floats] = []
    for index, release in enumerate(releases):
        if not isinstance(release, Release):
            raise InputError(f"releases[{index}]", "is no release", value=release, bound="a Release")
        if len(release.log_likelihood) != n:
            states = len(release.log_likelihood)
            raise InputError(f"releases[{index}]", "is of another domain", value=states, bound=f"one of {n} states")
        if release.time == len(observed):
            observed.append(release.log_likelihood)
        elif release.time == len(observed) - 1:
            observed[-1] = observed[-1] + release.log_likelihood
        else:
            bound = f"of time {len(observed)}, the next one"
            raise InputError(f"releases[{index}].time", "is out of order", value=release.time, bound=bound)
    return np.array(observed).reshape(-1, n)


def _states(truth: ArrayLike, count: int, n: int) -> Integers:
    states = as_indices(truth, "truth", n)
    if len(states) != count:
        raise InputError("truth", "differs in length", value=len(states), bound=f"{count} states")
    return states


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
