"""Estimation of forward and backward transition matrices from traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_floats, as_indices, read_only
from mechdesign.base._check import as_integer, as_list, as_smoothing
from mechdesign.base._errors import InputError
from mechdesign.model._markov import Ends, MarkovChain, OpenChain, as_ends, chain_of, reversed_rows
from mechdesign.model._prior import Prior

if TYPE_CHECKING:
    from mechdesign.data.trajectories import Visits

Border = Literal["cut", "state"]


def _none() -> Integers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Correlations:
    """Estimated correlations over the states that occur.

    Attributes:
        forward: Pr(next | now); an `OpenChain` with `ends="any"` if a state was never left.
        backward: Pr(before | now); an `OpenChain` with `ends="any"` if a state was never entered.
        initial: The distribution of the state before a step.
        states: Indices of the states among all n, ascending, read-only: row and column i of the chains belong to
            states[i]. Index n is the state outside the box.
        steps: Number of steps counted.
        never_left: States without an observed departure.
        never_entered: States without an observed arrival.
        leaving: Number of steps that lead out of the box, counted or not.

    >>> correlations_from_traces([[0, 1, 0]], 2).steps
    2
    """

    forward: MarkovChain | OpenChain
    backward: MarkovChain | OpenChain
    initial: Prior
    states: Integers
    steps: int
    never_left: Integers = field(default_factory=_none)
    never_entered: Integers = field(default_factory=_none)
    leaving: int = 0


def correlations_from_traces(
    traces: Visits | Iterable[ArrayLike],
    n: int,
    smoothing: float = 0.0,
    initial: Prior | ArrayLike | None = None,
    only_visited: bool = True,
    *,
    ends: Ends = "any",
    border: Border = "cut",
) -> Correlations:
    """Estimate forward and backward correlations from traces of states 0..n−1, each of shape (k,).

    Forward rows count the steps that leave a state, and backward rows the steps that enter it. If a row has no such
    steps, its state keeps its column, and `ends` determines the row. With smoothing every state has a row, and `ends`
    has no effect.

    Both chains keep their counts and the smoothing. Smoothing lowers the leakage below the leakage of the data. Use
    smoothing to model beliefs, not to derive bounds. The function `smooth(chain, s)` smooths a resulting chain by
    Equation (28).

    Args:
        traces: The result of `mechdesign.data.to_grid`, or arrays of consecutive states.
        n: The number of states.
        smoothing: Amount added to each count.
        initial: The distribution of the state before a step, shape (n,). Bayes' rule derives the backward chain from
            this distribution and the forward chain. By default, it consists of the observed frequencies, smoothed by
            the same amount.
        only_visited: Whether to leave out the states that no trace visits.
        ends: The row of states without observed steps. With "any" it is unknown: a row of zeros, which functions that
            compute leakage read as any row. With "stay" it has a 1 on the diagonal, so that both chains are a
            `MarkovChain`.
        border: With "cut" the chain describes people who stay inside, because steps that leave the box are left out.
            With "state" these steps lead to an additional state n outside the box, which has no departures.

    Returns:
        Both chains, the distribution before a step, and the states that occur.

    Raises:
        InputError: If no step is counted, if `initial` has weight on a state without departures, or if it does not
            reach every state that is entered. The same error is raised for `border="state"` if the traces have no box.

    >>> found = correlations_from_traces([[0, 1, 0, 2]], 3)
    >>> found.forward, found.never_left.tolist(), found.backward.matrix.tolist()
    (OpenChain(3 states, 1 of them with an unknown row), [2], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    """
    n = as_integer(n, "n", 1)
    smoothing = as_smoothing(smoothing, "smoothing")
    ends = as_ends(ends)
    counts, visited, leaving = _count(traces, n, border)
    steps = int(counts.sum())
    if steps == 0:
        raise InputError("traces", "hold no step", bound="at least one trace of two states")
    states = np.flatnonzero(visited) if only_visited else np.arange(len(counts))
    counts = counts[np.ix_(states, states)]
    weights = counts + smoothing
    first = _initial(initial, weights.sum(axis=1), states, n, len(visited))
    forward = chain_of(weights, ends, smoothing, counts)
    joint = weights if initial is None else first.probabilities[:, None] * forward.matrix
    unreached = (weights.sum(axis=0) > 0) & ~joint.any(axis=0)
    if unreached.any():
        state = int(states[np.argmax(unreached)])
        raise InputError(
            "initial",
            f"state {state} cannot be reached, so the state before it is undetermined",
            bound="a probability above zero for every state that is entered",
            remedy="leave the initial distribution out",
        )
    seen = counts
    if initial is not None and isinstance(forward, MarkovChain):
        seen = first.probabilities[:, None] * forward.unsmoothed().matrix
    backward = chain_of(reversed_rows(joint), ends, smoothing, seen.T)
    states = states.astype(np.int64)
    never_left, never_entered = (states[counts.sum(axis=axis) == 0] for axis in (1, 0))
    for array in (states, never_left, never_entered):
        read_only(array)
    return Correlations(forward, backward, first, states, steps, never_left, never_entered, leaving)


def _count(traces: Any, n: int, border: Border) -> tuple[Floats, Floats, int]:
    """Count the steps between states (m, m), the visits to each state (m,) and the steps out of the box.

    m is n, or n + 1 if the outside of the box is a state.
    """
    exits: tuple[bool, ...] | None = getattr(traces, "exits", None)
    if hasattr(traces, "require_order"):
        traces.require_order()
    if border not in ("cut", "state"):
        raise InputError("border", "is not known", value=border, bound='"cut" or "state"')
    if border == "state" and not exits:
        raise InputError(
            "border",
            "cannot be a state: the traces do not record steps that leave the box",
            value=border,
            bound='"cut", or traces as to_grid returns them',
        )
    size = n + (border == "state")
    counts, visited = np.zeros((size, size)), np.zeros(size)
    leaving = 0
    given: Iterable[ArrayLike] = as_list(getattr(traces, "cells", traces), "traces", "a list of traces, or Visits")
    for index, trace in enumerate(given):
        cells = as_indices(trace, f"traces[{index}]", n)
        np.add.at(counts, (cells[:-1], cells[1:]), 1.0)
        np.add.at(visited, cells, 1.0)
        if exits and exits[index] and len(cells):
            leaving += 1
            if border == "state":
                counts[cells[-1], n] += 1.0
                visited[n] += 1.0
    return counts, visited, leaving


def _initial(initial: Prior | ArrayLike | None, left: Floats, states: Integers, n: int, size: int) -> Prior:
    """Return the distribution before a step; raise `InputError` for weight on states without departures."""
    if initial is None:
        return Prior(left / left.sum())
    given = as_floats(initial, "initial", "(n,)", ())
    if len(given) not in (n, len(states)):
        raise InputError("initial", "has the wrong shape", value=given.shape, bound=f"({n},) or ({len(states)},)")
    weight, known = np.zeros(size), np.zeros(size, dtype=bool)
    weight[np.arange(n) if len(given) == n else states] = given
    known[states] = left > 0
    wrong = np.flatnonzero((weight != 0) & ~known)
    if wrong.size:
        raise InputError(
            "initial",
            f"has weight on state {int(wrong[0])}, which nobody was seen to leave",
            value=float(weight[wrong[0]]),
            bound="0 there",
            remedy="leave initial out",
        )
    return Prior(weight[states])
