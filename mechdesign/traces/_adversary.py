"""Adversaries of a trace: beliefs, expected errors, degrees of protection, adversarial privacy.

Adversaries know the mechanism at every time, the constrained domain, and the surrogates. The Markov chain and the
initial belief of an adversary may differ from the designer's (DPHMM, section 10.6). If an adversary considers fewer
states possible than the designer, the policy still holds among these states. If an adversary considers more states
possible, the policy holds among the states that both consider possible. The first output excludes all other states that
the adversary considers possible. If the constrained domain is a δ-location set, these states are replaced by their
surrogates instead.

Let p be the belief of an adversary. A release is *ε-adversarially private* if Pr(i | z) ≤ e^ε p_i for every output z
and every state i with p_i > 0. This is constrained adversarial privacy, Definition 10.9 of DPHMM (Xiao et al. 2017).
The least such ε depends on the adversary's belief. The least ε is at most the ε for which all states with positive
belief are indistinguishable. The least ε approaches this bound if one state has nearly all the belief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_indices, as_nonnegative, read_only
from mechdesign.base._check import require_kind, require_name
from mechdesign.base._errors import InputError
from mechdesign.base._names import labels_of, named, unless_numbers
from mechdesign.certify._exact import float_up
from mechdesign.certify._exponential import ln_upper
from mechdesign.mechanisms._knorm import KNormMechanism
from mechdesign.model._channel import Channel
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior, as_prior
from mechdesign.traces._composition import stages_of
from mechdesign.traces._hmm import Transition, as_chain, backward, forward
from mechdesign.traces._stage import Release, Stage


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The beliefs of an adversary at the T times of a trace; arrays of shape (T, n), read-only.

    Attributes:
        priors: The beliefs before the outputs of each time.
        posteriors: The beliefs after the outputs of each time.
        smoothed: The beliefs about the state at each time, given all outputs of the trace.
        log_evidence: The logarithm of the probability of the outputs at each time given the earlier outputs, shape
            (T,). The sum over all times is the log-likelihood of the adversary's model.

    >>> import mechdesign as md
    >>> chain, initial = [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, initial, rng=1)
    >>> beliefs = Adversary(chain, initial).watch([trace.step(0), trace.step(0)])
    >>> beliefs.mass([0, 0]).round(4).tolist(), beliefs.expected_error([[0, 1], [1, 0]]).round(4).tolist()
    ([0.6967, 0.4551], [0.3033, 0.4551])
    """

    priors: Floats
    posteriors: Floats
    smoothed: Floats
    log_evidence: Floats

    @in_own_arithmetic
    def mass(self, truth: ArrayLike, which: str = "posteriors") -> Floats:
        """Return the belief in the true state at each time.

        Args:
            truth: The indices of the true states, shape (T,).
            which: The beliefs: "priors", "posteriors" or "smoothed".

        Returns:
            The probabilities of the true states, shape (T,).
        """
        beliefs = self._choose_beliefs(which)
        return beliefs[np.arange(len(beliefs)), self._truth(truth)]

    @in_own_arithmetic
    def expected_error(self, distance: ArrayLike, which: str = "posteriors") -> Floats:
        """Return the least expected error min_ŝ Σ_s b(s) a(ŝ, s) of an estimate ŝ at each time, for its belief b.

        This is Equation 19 of Privacy Games (Shokri 2015).

        Args:
            distance: The error a(ŝ, s) of each estimate for each state, in any unit, shape (k, n).
            which: The beliefs: "priors", "posteriors" or "smoothed".

        Returns:
            The expected errors, shape (T,).
        """
        return expected_error(self._choose_beliefs(which), distance)[0]

    def errors(self, truth: ArrayLike, distance: ArrayLike, which: str = "posteriors") -> Floats:
        """Return the actual error of the best estimate at each time.

        Args:
            truth: The indices of the true states, shape (T,).
            distance: The error of each estimate for each state, shape (k, n).
            which: The beliefs: "priors", "posteriors" or "smoothed".

        Returns:
            The errors, shape (T,).
        """
        estimates = expected_error(self._choose_beliefs(which), distance)[1]
        found: Floats = named(distance, "distance", (), (), np.float64)[estimates, self._truth(truth)]
        return found

    def _choose_beliefs(self, which: str) -> Floats:
        beliefs: Floats = getattr(self, require_name(which, ("priors", "posteriors", "smoothed"), "which"))
        return beliefs

    def _truth(self, truth: ArrayLike) -> Integers:
        return _states(truth, *self.posteriors.shape)


@dataclass(frozen=True, eq=False, init=False)
class Adversary:
    """An adversary, defined by a Markov chain and a belief about the first state; both may differ from the designer's.

    Args:
        transition: The Markov chain that the adversary assumes, (n, n), or one chain for each step.
        initial: The adversary's belief about the first state before any release, (n,).

    >>> Adversary([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]).initial.probabilities.tolist()
    [0.5, 0.5]
    """

    transition: MarkovChain | VaryingChain
    initial: Prior

    def __init__(self, transition: Transition, initial: Prior | ArrayLike) -> None:
        chain = as_chain(transition)
        object.__setattr__(self, "transition", chain)
        object.__setattr__(
            self, "initial", as_prior(initial, "initial", labels_of(chain.names, "transition") or None, chain.size)
        )

    @in_own_arithmetic
    def watch(self, releases: Sequence[Release]) -> Beliefs:
        """Return the beliefs at all times of a trace.

        Args:
            releases: All releases in order of time, from the first time. If a time has several releases, the beliefs
                after it use all of them.

        Returns:
            The beliefs at each time.

        Raises:
            InputError: The releases are not in order or omit a time, or an output is impossible under the adversary's
                model.
        """
        observed = _by_time(releases, self.transition.size)
        labels = releases[0].stage.domain.labels if releases else self.transition.names
        chain = self.transition.arranged(labels, "transition")
        filtered = forward(as_prior(self.initial, "initial", labels), chain, observed, path="releases")
        smoothed = backward(filtered, chain, observed)
        arrays = (filtered.priors, filtered.posteriors, smoothed, filtered.log_evidence)
        return Beliefs(*map(read_only, arrays))


def expected_error(beliefs: ArrayLike, distance: ArrayLike) -> tuple[Floats, Integers]:
    """Return `Beliefs.expected_error` for each belief, and the first estimate that attains it.

    Args:
        beliefs: The beliefs b, shape (T, n).
        distance: The error a(ŝ, s) of each estimate for each state, in any unit, shape (k, n).

    Returns:
        The expected errors and the first best estimates, shape (T,) each.

    >>> expected_error([[0.75, 0.25]], [[0, 1], [1, 0]])
    (array([0.25]), array([0]))
    """
    rows = as_nonnegative(beliefs, "beliefs", 2, columns=())
    error = as_nonnegative(distance, "distance", 2, rows=(), columns=())
    if error.shape[1] != rows.shape[1] or error.shape[0] == 0:
        raise InputError("distance", "does not match the beliefs", value=error.shape, bound=f"(k, {rows.shape[1]})")
    expected = rows @ error.T
    estimates: Integers = expected.argmin(axis=1)
    return expected.min(axis=1), estimates


def degrees_of(releases: Sequence[Release | Stage], truth: ArrayLike) -> Integers:
    """Return the degree of protection of the true state at each release; see `Stage.degrees`.

    Args:
        releases: The T releases or stages.
        truth: The indices of the true states, shape (T,).

    Returns:
        The degrees, shape (T,).

    >>> import mechdesign as md
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, [0.5, 0.5], rng=1)
    >>> degrees_of(trace.table(2), [0, 1]).tolist()
    [2, 2]
    """
    stages = stages_of(releases)
    if not stages:
        return np.zeros(0, dtype=np.int64)
    states = _states(truth, len(stages), stages[0].domain.size)
    return np.array([stage.degrees[state] for stage, state in zip(stages, states, strict=True)], dtype=np.int64)


def _by_time(releases: Sequence[Release], n: int) -> Floats:
    """Return ln Pr(all outputs at time t | s) for each time t and state s, shape (T, n)."""
    observed: list[Floats] = []
    for index, release in enumerate(releases):
        if not isinstance(release, Release):
            raise InputError(f"releases[{index}]", "is not a release", value=release, bound="a Release")
        if len(release.log_likelihood) != n:
            states = len(release.log_likelihood)
            raise InputError(
                f"releases[{index}]", "belongs to another domain", value=f"{states} states", bound=f"{n} states"
            )
        if release.stage.time == len(observed):
            observed.append(release.log_likelihood)
        elif release.stage.time == len(observed) - 1:
            observed[-1] = observed[-1] + release.log_likelihood
        else:
            bound = f"the next time, {len(observed)}"
            raise InputError(f"releases[{index}].stage.time", "is out of order", value=release.stage.time, bound=bound)
    return np.array(observed).reshape(-1, n)


def _states(truth: ArrayLike, count: int, n: int) -> Integers:
    states = as_indices(truth, "truth", n)
    if len(states) != count:
        raise InputError("truth", "has the wrong length", value=len(states), bound=f"{count} states")
    return states


@dataclass(frozen=True)
class AdversarialPrivacy:
    """The least ε of adversarial privacy, with a secret and an observable that attain it.

    Attributes:
        epsilon: The natural logarithm of `factor`, rounded up.
        factor: The largest ratio Pr(s | o) / p(s), exact.
        secret: A secret s that attains the ratio.
        observable: An observable o that attains the ratio, as a column of the channel.

    >>> adversarial_privacy(Channel([[3 * 2**60, 2**60], [2**60, 3 * 2**60]]), [0.5, 0.5])
    AdversarialPrivacy(epsilon=0.4054651081081644, factor=Fraction(3, 2), secret=0, observable=0)
    """

    epsilon: float
    factor: Fraction
    secret: int
    observable: int


@in_own_arithmetic
def adversarial_privacy(channel: Channel, belief: Prior | ArrayLike) -> AdversarialPrivacy:
    """Return the exact least ε for which a channel is ε-adversarially private against a belief.

    Args:
        channel: The channel p(o|s) from n secrets.
        belief: The belief p, shape (n,). Floats are treated as exact numbers and divided by their exact sum.

    Returns:
        The least ε, with a secret and an observable that attain it.

    Raises:
        InputError: The belief is not a distribution over the secrets of the channel.

    >>> found = adversarial_privacy(Channel([[3 * 2**60, 2**60], [2**60, 3 * 2**60]]), [0.5, 0.5])
    >>> found.factor, round(found.epsilon, 6)
    (Fraction(3, 2), 0.405465)
    """
    require_kind(channel, Channel, "channel", "a Channel")
    prior = as_prior(belief, "belief", unless_numbers(channel.secrets), len(channel.numerators))
    return _least(channel.numerators, _exact(prior.probabilities))


@in_own_arithmetic
def adversarial_level(stage: Stage, belief: Prior | ArrayLike) -> float:
    """Return the least ε for which a stage is ε-adversarially private against a belief.

    States outside the constrained domain are treated as their surrogates. Every output excludes the states that the
    designer considers impossible. The result is exact for snapped outputs. For the coordinates of K-norm noise, the
    least ε is

        max over i with p_i > 0 of −ln Σ_j p_j exp(−ε ‖f(s_i) − f(s_j)‖_K),

    where j is in the component of i. If all members share the hull K, the output z = f(s_i) attains the maximum. If
    components have different hulls, this formula is an upper bound.

    Args:
        stage: One time of a trace.
        belief: The adversary's belief before the release, over all states of the domain, shape (n,).

    Returns:
        The least ε in nats, rounded up for snapped outputs. The value is infinite if the adversary considers all states
        impossible that the designer considers possible.

    >>> import mechdesign as md
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, [0.5, 0.5], rng=1)
    >>> round(adversarial_level(trace.table(1)[0], [0.5, 0.5]), 4)
    0.3318
    """
    require_kind(stage, Stage, "stage", "a Stage")
    weights = as_prior(belief, "belief", stage.domain.labels, stage.domain.size).probabilities
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
    """Return the largest N[s,o] · Σ p / Σ_s p_s N[s,o], exactly; `whole` is Σ p if `belief` omits states."""
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
    """Return max_i −ln Σ_j w_j exp(−ε ‖f(s_i) − f(s_j)‖_K) over nodes i, where j has the same hull as i."""
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
