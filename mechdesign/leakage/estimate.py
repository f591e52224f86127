"""Estimate what an adversary may know: transition matrices from traces, forward and backward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.errors import InputError
from mechdesign.leakage.lines import Integers
from mechdesign.model.markov import MarkovChain, smooth
from mechdesign.model.prior import Prior
from mechdesign.validation import as_indices, as_integer, as_smoothing, read_only

__all__ = ["Correlations", "correlations_from_traces", "smooth"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, eq=False)
class Correlations:
    """Estimated correlations over the states that occur.

    `states` are their indices among all n, ascending, read-only; row and column i of the chains belong to states[i].
    `forward` is Pr(next | now), `backward` Pr(before | now), `initial` the distribution of the state before a step;
    `steps` counts the steps seen.
    """

    forward: MarkovChain
    backward: MarkovChain
    initial: Prior
    states: Integers
    steps: int


class _Visits(Protocol):
    """The part of `mechdesign.data.traces.Visits` that is needed here."""

    @property
    def cells(self) -> tuple[Integers, ...]: ...


def correlations_from_traces(
    traces: _Visits | Iterable[ArrayLike],
    n: int,
    smoothing: float = 0.0,
    initial: Prior | ArrayLike | None = None,
    only_visited: bool = True,
) -> Correlations:
    """Estimate forward and backward correlations from traces of states 0..n−1, each of shape (k,).

    `traces` is what `mechdesign.data.traces.to_grid` returns, or any arrays of consecutive states. `smoothing` is added
    to each count. The backward chain follows from the forward one by Bayes' rule with `initial`, the distribution of
    the state before a step; by default its observed frequency, smoothed alike. With `only_visited` states that no step
    leaves, or none reaches, are left out, again and again until none is; otherwise all n stay, and smoothing must be
    positive if some state has no step. Equation (28)'s smoothing of the result is `smooth(chain, s)`.
    """
    n = as_integer(n, "n", 1)
    smoothing = as_smoothing(smoothing, "smoothing")
    counts = np.zeros((n, n))
    given: Any = traces
    sequences: Iterable[ArrayLike] = getattr(given, "cells", given)
    for index, trace in enumerate(sequences):
        cells = as_indices(trace, f"traces[{index}]", n)
        np.add.at(counts, (cells[:-1], cells[1:]), 1.0)
    total = int(counts.sum())
    if total == 0:
        raise InputError("traces", "hold no step", bound="at least one trace of two states")
    states = np.arange(n)
    while only_visited:
        part = counts[np.ix_(states, states)]
        kept = (part.sum(axis=1) > 0) & (part.sum(axis=0) > 0)
        if kept.all():
            break
        states = states[kept]
    if not len(states):
        raise InputError(
            "traces",
            "never return to a state",
            bound="steps that go on",
            remedy="give only_visited=False and smoothing",
        )
    weights = counts[np.ix_(states, states)] + smoothing
    left = weights.sum(axis=1)
    if not left.all():
        raise InputError(
            "traces",
            f"no trace ever leaves state {int(states[np.argmin(left)])}",
            remedy="give a positive smoothing, or only_visited=True",
        )
    forward = MarkovChain(weights / left[:, None])
    if initial is None:
        first = Prior(left / left.sum())
    else:
        weight = np.asarray(initial, dtype=np.float64)
        if weight.shape == (n,) and len(states) < n:
            weight = weight[states] / weight[states].sum()
        first = Prior(weight)
    read_only(states)
    return Correlations(forward, forward.reverse(first), first, states.astype(np.int64), total)
