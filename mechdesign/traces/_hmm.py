"""The filter and the smoother of a hidden Markov model.

    p⁻_1 = initial,    p⁻_t[j] = Σ_i p⁺_{t-1}[i] M[i, j],    p⁺_t[i] = Pr(z_t | i) p⁻_t[i] / Σ_j Pr(z_t | j) p⁻_t[j]

The filter follows Equation 2 and section 3.3 of DPHMM, and section 5.1 of PGLP. All computations use logarithms, so
tiny probabilities do not underflow to zero, and the constrained domain {p⁻ > 0} is exact.

    β_T[i] = 1,    β_t[i] = Σ_j M[i, j] Pr(z_{t+1} | j) β_{t+1}[j],    Pr(s_t = i | z_1, …, z_T) ∝ p⁺_t[i] β_t[i]

The smoother is the forward–backward algorithm, which section 3.3 of DPHMM mentions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_floats, read_only, require
from mechdesign.base._check import rename_path
from mechdesign.base._errors import InputError
from mechdesign.base._names import labels_of, named
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior, as_prior

# Terms below 2e-308 underflow. For sums above this bound, the loss of such terms is negligible.
_SAFE_SUM = 1e-250


Transition = MarkovChain | VaryingChain | ArrayLike
"""Transition probabilities: one matrix (n, n) for all steps, or one matrix for each step, (T − 1, n, n)."""


@dataclass(frozen=True, eq=False)
class Filtered:
    """Beliefs over n states at T times, as natural logarithms; float64, read-only, -inf for impossible states.

    `log_priors` and `log_posteriors` have the shape (T, n), before and after the observation at each time.
    `log_evidence` is ln Pr(z_t | z_1, …, z_{t-1}), shape (T,).
    """

    log_priors: Floats
    log_posteriors: Floats
    log_evidence: Floats

    @property
    @in_own_arithmetic
    def priors(self) -> Floats:
        """The beliefs before each observation, as probabilities (T, n)."""
        return np.exp(self.log_priors)

    @property
    @in_own_arithmetic
    def posteriors(self) -> Floats:
        """The beliefs after each observation, as probabilities (T, n)."""
        return np.exp(self.log_posteriors)


@in_own_arithmetic
def forward(
    initial: Prior | ArrayLike, transition: Transition, log_likelihoods: ArrayLike, path: str = "outputs"
) -> Filtered:
    """Compute the beliefs before and after each of T observations.

    Args:
        initial: The belief before the first observation, (n,).
        transition: The Markov chain (n, n), or one chain for each step (`VaryingChain`).
        log_likelihoods: The logarithms of Pr(z_t | s_t = i), which may be densities, (T, n).
        path: The name of the observations in errors.

    Returns:
        The filtered beliefs.

    Raises:
        InputError: An observation is impossible given the earlier observations; the path of the error is ``path[t]``.
    """
    chain = as_chain(transition)
    first = as_prior(initial, "initial", labels_of(chain.names, "transition") or None, chain.size)
    log_prior = logarithm(first.probabilities)
    observed = _as_log_likelihoods(log_likelihoods, chain.size)
    shape = observed.shape
    priors, posteriors, evidence = np.empty(shape), np.empty(shape), np.empty(shape[0])
    for t, log_likelihood in enumerate(observed):
        if t:
            log_prior = predict(posteriors[t - 1], chain.at(t - 1))
        priors[t] = log_prior
        posteriors[t], evidence[t] = update(log_prior, log_likelihood, f"{path}[{t}]")
    return Filtered(read_only(priors), read_only(posteriors), read_only(evidence))


def predict(log_belief: Floats, chain: MarkovChain) -> Floats:
    """Return ln(p M) for a belief ln p of shape (n,), where p M is normalised."""
    mixed = log_mix(log_belief, chain.matrix)
    return mixed - _log_sum(mixed)


@in_own_arithmetic
def update(log_prior: Floats, log_likelihood: Floats, path: str = "output") -> tuple[Floats, float]:
    """Return the posterior by Bayes' rule, as logarithms (n,), and the logarithm of the evidence Σ_i p[i] Pr(z | i).

    Raises `InputError` if every possible state excludes the observation.
    """
    joint = log_prior + log_likelihood
    evidence = _log_sum(joint)
    if evidence == -np.inf:
        raise InputError(
            path,
            "is impossible: every possible state excludes it",
            bound="an output of positive probability",
            remedy="check the chain, the initial belief and the mechanism, since another model produced the output",
        )
    return joint - evidence, evidence


@in_own_arithmetic
def log_mix(log_weights: Floats, matrix: Floats) -> Floats:
    """Return ln Σ_i exp(w_i) matrix[i, j] for each column j of a nonnegative matrix (n, m), exact up to rounding.

    One matrix product suffices, except for columns whose sum nearly underflows.
    """
    possible = np.flatnonzero(log_weights > -np.inf)
    weights, rows = log_weights[possible], matrix[possible]
    largest = weights.max(initial=-np.inf)
    mixed = np.full(matrix.shape[1], -np.inf)
    if largest == -np.inf:
        return mixed
    sums = np.exp(weights - largest) @ rows
    safe = sums > _SAFE_SUM
    mixed[safe] = np.log(sums[safe]) + largest
    rest = np.flatnonzero(~safe)
    rest = rest[(rows[:, rest] > 0).any(axis=0)]
    if rest.size:
        mixed[rest] = logsumexp(weights[:, None] + logarithm(rows[:, rest]), axis=0)
    return mixed


def logarithm(probabilities: Floats) -> Floats:
    """Return the natural logarithms of probabilities, -inf for zero."""
    with np.errstate(divide="ignore", under="ignore"):
        return np.log(probabilities)


def as_chain(transition: Transition) -> MarkovChain | VaryingChain:
    """Return the checked chain, or a `VaryingChain` for several matrices."""
    if isinstance(transition, MarkovChain | VaryingChain):
        return transition
    several = isinstance(transition, Sequence) and any(isinstance(each, MarkovChain) for each in transition)
    try:
        if several or np.ndim(named(transition, "matrix")) == 3:
            return VaryingChain.of(transition)  # type: ignore[arg-type]
        return MarkovChain(transition)  # type: ignore[arg-type]
    except InputError as error:
        raise rename_path(error, "transition", error.path.split("[")[0]) from error


def _as_log_likelihoods(values: ArrayLike, n: int) -> Floats:
    observed = as_floats(values, "log_likelihoods", "(T, n)", columns=())
    if observed.shape[1] != n:
        raise InputError("log_likelihoods", "has the wrong shape", value=observed.shape, bound=f"(T, {n})")
    # This comparison is false for NaN, so NaN is an error, too.
    require(observed < np.inf, observed, "log_likelihoods", "a number, or -inf if the observation is impossible")
    return observed


def _log_sum(logarithms: Floats) -> float:
    largest = float(logarithms.max())
    if largest == -np.inf:
        return largest
    return largest + float(np.log(np.exp(logarithms - largest).sum()))


@in_own_arithmetic
def smooth(
    initial: Prior | ArrayLike, transition: Transition, log_likelihoods: ArrayLike, path: str = "outputs"
) -> Floats:
    """Return the smoothed beliefs Pr(s_t = i | z_1, …, z_T), float64 of shape (T, n), read-only.

    The docstring of `forward` explains the arguments and errors.
    """
    chain = as_chain(transition)
    return backward(forward(initial, chain, log_likelihoods, path), chain, log_likelihoods)


@in_own_arithmetic
def backward(filtered: Filtered, chain: MarkovChain | VaryingChain, log_likelihoods: ArrayLike) -> Floats:
    """Return the smoothed beliefs (T, n); `chain` and `log_likelihoods` must be the arguments of the filter."""
    observed = as_floats(log_likelihoods, "log_likelihoods", "(T, n)", columns=())
    smoothed = np.empty(observed.shape)
    later = np.zeros(observed.shape[1])
    for t in range(len(observed) - 1, -1, -1):
        posterior, _ = update(filtered.log_posteriors[t], later)
        smoothed[t] = np.exp(posterior)
        # States that earlier observations exclude must not affect the scaling.
        possible = filtered.log_posteriors[t] > -np.inf
        seen = np.where(possible, observed[t] + later, -np.inf)
        if t:
            later = log_mix(seen - seen.max(), chain.at(t - 1).matrix.T)
    return read_only(smoothed)
