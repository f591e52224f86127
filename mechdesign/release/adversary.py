"""The adversary's side: what somebody who knows the algorithm makes of the released outputs.

Adversaries know the mechanism of every time, the constrained domain, and the surrogates. Their chain and belief of the
first state may be others than the designer's (DPHMM, section 10.6). Who holds fewer states for possible still finds the
policy kept among those. Who holds more finds it kept among the states that both hold for possible; the others are ruled
out by the first output or, under a δ-location set, pass for their surrogates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import InputError
from mechdesign.graphs._exposure import degree_of_protection
from mechdesign.model._markov import MarkovChain
from mechdesign.model._markov import VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.graphs._exposure import hull_level
from mechdesign.release.composition import stages_of
from mechdesign.release.filter import Transition
from mechdesign.release.filter import as_chain
from mechdesign.release.filter import as_initial
from mechdesign.release.filter import forward
from mechdesign.release.outcome import Release
from mechdesign.release.smoothing import backward
from mechdesign.release.stage import Stage
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._arrays import as_array
from mechdesign.base._arrays import as_floats
from mechdesign.base._arrays import as_indices
from mechdesign.base._arrays import read_only
from mechdesign.base._arrays import require
from mechdesign.base._check import require_kind

__all__ = ["Adversary", "Beliefs", "degrees_against", "degrees_of", "expected_error", "level_against"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
        for array in arrays:
            read_only(array)
        return Beliefs(*arrays)


def expected_error(beliefs: ArrayLike, distance: ArrayLike) -> tuple[Floats, Integers]:
    """Return min_ŝ Σ_s b(s) a(ŝ, s) and the first estimate ŝ that reaches it, for beliefs b of shape (T, n): (T,) each.

    `distance` a(ŝ, s) is of shape (k, n), estimates by states, in any unit (Privacy Games, Equation 19).
    """
    rows = as_floats(beliefs, "beliefs", "(T, n)")
    require(np.isfinite(rows) & (rows >= 0), rows, "beliefs", "a probability")
    error = as_floats(distance, "distance", "(k, n)")
    if error.shape[1] != rows.shape[1] or error.shape[0] == 0:
        raise InputError("distance", "does not fit the beliefs", value=error.shape, bound=f"(k, {rows.shape[1]})")
    require(np.isfinite(error) & (error >= 0), error, "distance", "a finite number >= 0")
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
