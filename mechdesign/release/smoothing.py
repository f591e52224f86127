"""The backward half of a hidden Markov model: what the whole trace says about each time.

    β_T[i] = 1,    β_t[i] = Σ_j M[i, j] Pr(z_{t+1} | j) β_{t+1}[j],    Pr(s_t = i | z_1, …, z_T) ∝ p⁺_t[i] β_t[i]

(the forward–backward algorithm, to which DPHMM, section 3.3, refers).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.model._markov import MarkovChain
from mechdesign.model._markov import VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.release.filter import Filtered
from mechdesign.release.filter import Transition
from mechdesign.release.filter import as_chain
from mechdesign.release.filter import forward
from mechdesign.release.filter import log_mix
from mechdesign.release.filter import update
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_floats
from mechdesign.base._arrays import read_only

__all__ = ["backward", "smooth"]


@in_own_arithmetic
def smooth(
    initial: Prior | ArrayLike, transition: Transition, log_likelihoods: ArrayLike, path: str = "outputs"
) -> Floats:
    """Return Pr(s_t = i | z_1, …, z_T), float64 of shape (T, n), read-only.

    Arguments and errors are those of `mechdesign.release.filter.forward`.
    """
    chain = as_chain(transition)
    return backward(forward(initial, chain, log_likelihoods, path), chain, log_likelihoods)


@in_own_arithmetic
def backward(filtered: Filtered, chain: MarkovChain | VaryingChain, log_likelihoods: ArrayLike) -> Floats:
    """Return the smoothed beliefs (T, n) from the filtered ones, and the chain and likelihoods that made these."""
    observed = as_floats(log_likelihoods, "log_likelihoods", "(T, n)")
    smoothed = np.empty(observed.shape)
    later = np.zeros(observed.shape[1])
    for t in range(len(observed) - 1, -1, -1):
        posterior, _ = update(filtered.log_posteriors[t], later)
        smoothed[t] = np.exp(posterior)
        # States that the past excludes must not set the scale.
        possible = filtered.log_posteriors[t] > -np.inf
        seen = np.where(possible, observed[t] + later, -np.inf)
        if t:
            later = log_mix(seen - seen.max(), chain.at(t - 1).matrix.T)
    read_only(smoothed)
    return smoothed
