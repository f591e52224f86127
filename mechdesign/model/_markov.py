"""Markov chains over the secrets, closed or with ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import (
    Floats,
    as_array,
    as_indices,
    as_nonnegative,
)
from mechdesign.base._check import as_integer, as_list, as_smoothing, renamed
from mechdesign.base._display import card, picture
from mechdesign.base._errors import InputError
from mechdesign.model._components import label_components
from mechdesign.model._open_chain import CLOSED, Ends, OpenChain, as_ends, as_rows
from mechdesign.model._prior import Prior

"""What the row of an end may be."""


"""How an open chain becomes a Markov chain."""


@dataclass(frozen=True, eq=False, repr=False)
class MarkovChain:
    """A time-homogeneous Markov chain over n states.

    `matrix` is float64 of shape (n, n), read-only: entry (i, j) is Pr(next = j | now = i), and each row sums to 1
    within 1e-9; it is kept as given. NumPy functions accept a chain in place of the matrix.

    A chain that was counted keeps its `counts`, (n, n), read-only, and the `smoothing` that was added to each of them;
    those of a reversed chain are weights of steps. Smoothing makes a chain closer to uniform, and so the leakage that
    is computed from it smaller: it is for beliefs, and no bound rests on it. `unsmoothed` is what was seen.
    """

    matrix: Floats
    smoothing: float = field(default=0.0, kw_only=True)
    counts: Floats | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check that every row is a distribution, that counts fit, and freeze both."""
        matrix = as_rows(self.matrix)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "smoothing", as_smoothing(self.smoothing, "smoothing"))
        if self.counts is None:
            if self.smoothing:
                problem = "is given without the counts that it was added to"
                raise InputError("smoothing", problem, value=self.smoothing, remedy="give counts")
            return
        counts = as_nonnegative(self.counts, "counts", 2)
        if counts.shape != matrix.shape:
            raise InputError("counts", "differ in shape from the matrix", value=counts.shape, bound=str(matrix.shape))
        object.__setattr__(self, "counts", counts)

    def unsmoothed(self) -> MarkovChain:
        """Return the chain of the counts alone, where a state that nobody was seen to leave has a 1 on the diagonal.

        A chain that was not smoothed is returned itself.

        >>> MarkovChain.from_counts([[0, 3], [1, 0]], smoothing=1).unsmoothed().matrix.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        if not self.smoothing or self.counts is None:
            return self
        return MarkovChain.from_counts(self.counts, ends="stay")

    @property
    def size(self) -> int:
        """Return the number n of states."""
        return len(self.matrix)

    def __repr__(self) -> str:
        return f"MarkovChain({self.size} states)"

    def _repr_html_(self) -> str:
        facts = [("states", str(self.size)), ("transitions", str(int((self.matrix > 0).sum())))]
        return card("Markov chain", facts, picture("heat_map", self.matrix, "Probability of each next state"))

    def __len__(self) -> int:
        return self.size

    def at(self, step: int) -> MarkovChain:
        """Return the chain of the step from time `step` to the next: itself, at every time."""
        return self

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        # A request for a copy must not be answered with the frozen array itself.
        if copy:
            return np.array(self.matrix, dtype=dtype)
        return np.asarray(self.matrix, dtype=dtype)

    @classmethod
    def from_traces(
        cls, traces: Iterable[ArrayLike], n: int, smoothing: float = 0.0, *, ends: Ends | None = None
    ) -> MarkovChain:
        """Estimate a chain over states 0..n−1 from traces, integer arrays of shape (k,) of consecutive states.

        Entry (i, j) is (number of steps from i to j + smoothing) / (number of steps from i + n · smoothing); the last
        state of a trace is followed by nothing. Where nothing is added, a state that is never left has a 1 on the
        diagonal with `ends` "stay". Otherwise it raises `InputError`: see `OpenChain`.
        """
        traces = as_list(traces, "traces", "a list of traces, each of states, such as the cells of Visits")
        n = as_integer(n, "n", 1)
        if traces and all(isinstance(state, int | np.integer) for state in traces):
            remedy = "put one trace in a list: [trace]"
            raise InputError("traces", "holds states and no traces", bound="a list of traces", remedy=remedy)
        counts = np.zeros((n, n))
        for index, trace in enumerate(traces):
            states = as_indices(trace, f"traces[{index}]", n)
            np.add.at(counts, (states[:-1], states[1:]), 1.0)
        return cls.from_counts(counts, smoothing, ends=ends)

    @classmethod
    def from_counts(cls, counts: ArrayLike, smoothing: float = 0.0, *, ends: Ends | None = None) -> MarkovChain:
        """Estimate a chain from the numbers (n, n) of steps from each state to each, as `from_traces` does."""
        smoothing = as_smoothing(smoothing, "smoothing")
        ends = None if ends is None else as_ends(ends)
        counts = as_nonnegative(counts, "counts", 2)
        n = len(counts)
        never_left = np.flatnonzero(counts.sum(axis=1) == 0)
        if never_left.size and smoothing == 0:
            which = f"no trace ever leaves state {never_left[0]} ({never_left.size} such states of {n})"
            if ends is None:
                raise InputError(
                    "traces",
                    which,
                    bound="at least one step from each state",
                    remedy='give ends="stay", which puts a 1 on the diagonal, or fewer and larger cells',
                )
            if ends != "stay":
                raise InputError("ends", f"gives no Markov chain: {which}", value=ends, remedy=CLOSED)
            stay = counts.copy()
            stay[never_left, never_left] = 1.0
            return cls(_add_smoothing(stay, smoothing), counts=counts)
        return cls(_add_smoothing(counts, smoothing), smoothing=smoothing, counts=counts)

    def reverse(self, initial: Prior | ArrayLike) -> MarkovChain:
        """Return the chain backwards in time: the state before, given the state now, by Bayes' rule.

        backward[j, i] = Pr(previous = i | now = j) = π_i P[i, j] / Σ_i' π_i' P[i', j], with π = `initial` the
        distribution of the previous state, shape (n,). Raises `InputError` for a state j that cannot be reached.
        """
        prior = initial if isinstance(initial, Prior) else Prior(as_array(initial, "initial"))
        if len(prior) != self.size:
            raise InputError("initial", "differs in number of states", value=len(prior), bound=f"{self.size} states")
        joint = prior.probabilities[:, None] * self.matrix
        largest = joint.max(axis=0)
        if not largest.all():
            state = int(np.argmin(largest))
            raise InputError(
                "initial",
                f"state {state} cannot be reached, so nothing can be said of the state before it",
                bound="a probability above zero for every next state",
                remedy="leave the state out, or give an initial distribution from which it is reached",
            )
        if self.counts is None:
            return MarkovChain(reversed_rows(joint))
        seen = (prior.probabilities[:, None] * self.unsmoothed().matrix).T
        return MarkovChain(reversed_rows(joint), smoothing=self.smoothing, counts=seen)

    def stationary(self) -> Prior:
        """Return the stationary distribution π = πP; states that the chain leaves for ever get zero.

        Raises `InputError` when there are several, that is when the chain can end in more than one set of states.

        By the elimination of Grassmann, Taksar and Heyman (1985), which subtracts nothing: each probability is accurate
        to a small relative error, even if the chain hardly ever moves.
        """
        member = label_components(self.size, np.argwhere(self.matrix > 0), strong=True)
        leaves = (self.matrix > 0) & (member[:, None] != member[None, :])
        closed = np.setdiff1d(member, member[leaves.any(axis=1)])
        if closed.size > 1:
            first, second = (int(np.flatnonzero(member == index)[0]) for index in closed[:2])
            raise InputError(
                "matrix",
                f"has {closed.size} sets of states that are never left, such as those of states {first} and {second}",
                bound="one such set",
                remedy="study each set by itself",
            )
        states = np.flatnonzero(member == closed[0])
        probabilities = np.zeros(self.size)
        probabilities[states] = _eliminate(self.matrix[np.ix_(states, states)])
        return Prior(probabilities)


@dataclass(frozen=True, eq=False)
class VaryingChain:
    """A Markov chain that changes with time: `chains[t]` leads from time t to time t + 1, counted from 0.

    All have the same states. With `cyclic` they start again after the last one, like the hours of the day; a trace may
    otherwise have at most one time more than there are chains.
    """

    chains: tuple[MarkovChain, ...]
    cyclic: bool = False

    def __post_init__(self) -> None:
        """Check that there are chains, all over the same states."""
        object.__setattr__(self, "chains", tuple(as_list(self.chains, "chains", "a list of Markov chains")))
        chains = tuple(self.chains)
        if not chains:
            raise InputError("chains", "are empty", bound="at least one Markov chain")
        for step, chain in enumerate(chains):
            if not isinstance(chain, MarkovChain):
                raise InputError(f"chains[{step}]", "is no Markov chain", value=chain)
            if chain.size != chains[0].size:
                raise InputError(
                    f"chains[{step}]", "differs in number of states", value=chain.size, bound=f"{chains[0].size} states"
                )
        object.__setattr__(self, "chains", chains)

    @classmethod
    def of(cls, matrices: Iterable[MarkovChain | ArrayLike], cyclic: bool = False) -> VaryingChain:
        """Return the chain with these matrices, each (n, n)."""
        matrices = as_list(matrices, "chains", "a list of Markov chains or matrices")
        made: list[MarkovChain] = []
        for step, matrix in enumerate(matrices):
            try:
                made.append(matrix if isinstance(matrix, MarkovChain) else MarkovChain(as_array(matrix, "matrix")))
            except InputError as error:
                raise renamed(error, f"chains[{step}]", "matrix") from error
        return cls(tuple(made), cyclic)

    @property
    def size(self) -> int:
        """Return the number n of states."""
        return self.chains[0].size

    def __len__(self) -> int:
        return len(self.chains)

    def at(self, step: int) -> MarkovChain:
        """Return the chain of the step from time `step` to the next; raise `InputError` beyond the last one."""
        if self.cyclic:
            return self.chains[step % len(self.chains)]
        if step >= len(self.chains):
            raise InputError(
                "transition",
                "ends before the trace",
                value=len(self.chains),
                bound=f"a matrix for step {step}, counted from 0",
            )
        return self.chains[step]


def chain_of(
    weights: Floats, ends: Ends, smoothing: float = 0.0, counts: Floats | None = None
) -> MarkovChain | OpenChain:
    """Return the chain with rows in proportion to `weights` (n, n); a row of zeros is an end.

    A Markov chain keeps `smoothing` and `counts`, from which the weights were made.
    """
    totals = weights.sum(axis=1)
    missing = totals == 0
    rows = weights / np.where(missing, 1.0, totals)[:, None]
    if missing.any() and ends != "stay":
        return OpenChain(rows, ends)
    return MarkovChain(rows + np.diag(missing), smoothing=smoothing, counts=counts)


def reversed_rows(joint: Floats) -> Floats:
    """Return Pr(before = i | now = j) at (j, i), from weights (n, n) of steps; zeros for a state never entered."""
    # Scaled to a largest entry of 1, a column of tiny numbers keeps its precision.
    largest = joint.max(axis=0)
    backward = (joint / np.where(largest > 0, largest, 1.0)).T
    totals = backward.sum(axis=1, keepdims=True)
    rows: Floats = backward / np.where(totals > 0, totals, 1.0)
    return rows


def smooth(matrix: MarkovChain | OpenChain | ArrayLike, s: float) -> MarkovChain:
    """Return the chain made more uniform by Laplacian smoothing, (p_ij + s) / Σ_u (p_iu + s), for s ≥ 0.

    Equation (28) of Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release under
    Temporal Correlations (2019); the smaller s, the stronger the temporal correlation. A chain that was counted keeps
    its counts, and is a smoothed one from then on.

    >>> smooth([[1.0, 0.0], [0.0, 1.0]], 0.5).matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    s = as_smoothing(s, "s")
    if isinstance(matrix, OpenChain) and s > 0:
        # The row of an end becomes uniform; nobody was seen to leave it, and by what was seen it stays.
        return MarkovChain(_add_smoothing(matrix.matrix, s), smoothing=s, counts=matrix.matrix)
    chain = matrix if isinstance(matrix, MarkovChain) else MarkovChain(as_array(matrix, "matrix"))
    if chain.counts is None or not s:
        return MarkovChain(_add_smoothing(chain.matrix, s), smoothing=chain.smoothing, counts=chain.counts)
    return MarkovChain(_add_smoothing(chain.matrix, s), smoothing=max(s, chain.smoothing), counts=chain.counts)


def _add_smoothing(weights: Floats, smoothing: float) -> Floats:
    """Return (w_ij + s) / Σ_u (w_iu + s)."""
    added = weights + smoothing
    smoothed: Floats = added / added.sum(axis=1, keepdims=True)
    return smoothed


@in_own_arithmetic
def _eliminate(matrix: Floats) -> Floats:
    """Return the stationary distribution of an irreducible chain."""
    reduced = matrix.copy()
    n = len(reduced)
    # Leave out the last state again and again: a step to it becomes a step to where it leads next.
    for last in range(n - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.ones(n)
    for state in range(1, n):
        weights[state] = weights[:state] @ reduced[:state, state]
        # Ratios between states may be huge: keep the largest at 1.
        weights[: state + 1] /= weights[: state + 1].max()
    stationary: Floats = weights / weights.sum()
    return stationary
