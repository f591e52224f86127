"""Markov chains over the secrets, constant or varying with time, and chains with unknown rows.

An unknown row is a row of zeros, for a state without observed steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import (
    SUM_TOLERANCE,
    Floats,
    Integers,
    as_indices,
    as_nonnegative,
)
from mechdesign.base._check import as_integer, as_list, as_smoothing, rename_path
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, Named, Names, order_of, settled
from mechdesign.model._claims import label_components
from mechdesign.model._prior import Prior, as_prior

Ends = Literal["any", "stay"]

ENDS: tuple[Ends, ...] = ("any", "stay")

ROW_OF_ZEROS = "is a row of zeros: no observed step leaves the state (or, in a backward matrix, enters it)"

CLOSED = 'count steps with ends = "stay", which puts a 1 on the diagonal'


@dataclass(frozen=True, eq=False, repr=False)
class OpenChain:
    """A transition matrix with unknown rows, which are rows of zeros.

    Functions that compute leakage read a row of zeros as any row. Functions that need a Markov chain reject it.

    Attributes:
        matrix: Float64 of shape (n, n), read-only: a row of zeros for each state without observed steps, and a
            distribution for each other state. Steps leave a state in a forward matrix, and enter it in a backward
            matrix.
        names: The names of the states, if a frame was given; otherwise empty.

    Raises:
        InputError: No row is unknown, all rows are unknown, or a known row is not a distribution.

    >>> OpenChain([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0, 0, 0]])
    OpenChain(3 states, 1 of them with an unknown row)
    """

    matrix: Floats
    names: Names = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check the known rows, and freeze the matrix."""
        given = settled(self.matrix, "matrix", self.names)
        object.__setattr__(self, "matrix", as_rows(given.values, unknown=True))
        object.__setattr__(self, "names", given.rows)

    @property
    def unknown(self) -> Integers:
        """The states with unknown rows, ascending, int64."""
        return np.flatnonzero(~self.matrix.any(axis=1)).astype(np.int64)

    @property
    def size(self) -> int:
        """The number n of states."""
        return len(self.matrix)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"OpenChain({self.size} states, {len(self.unknown)} of them with an unknown row)"

    def stationary(self) -> NoReturn:
        """Raise `InputError`: unknown rows determine no stationary distribution.

        Raises:
            InputError: Always.
        """
        raise self._refusal()

    def reverse(self, initial: ArrayLike) -> NoReturn:
        """Raise `InputError`: a chain with unknown rows cannot be reversed. Count the backward chain instead.

        Args:
            initial: The distribution of the previous state, (n,).

        Raises:
            InputError: Always.
        """
        raise self._refusal()

    def _refusal(self) -> InputError:
        unknown = f"has {len(self.unknown)} unknown rows of {self.size}"
        return InputError("matrix", unknown, bound="a row for each state", remedy=CLOSED)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        # If a copy is requested, return a writable copy instead of the frozen array.
        return np.array(self.matrix, dtype=dtype) if copy else np.asarray(self.matrix, dtype=dtype)


def as_ends(ends: str) -> Ends:
    """Return one of `ENDS`; raise `InputError` for anything else."""
    for known in ENDS:
        if isinstance(ends, str) and ends == known:
            return known
    raise InputError("ends", "is not known", value=ends, bound='"any" or "stay"')


def as_rows(matrix: ArrayLike, unknown: bool = False) -> Floats:
    """Return a read-only float64 matrix (n, n) whose rows are distributions.

    If `unknown` is true, some but not all rows must be zero. Raises InputError for the first invalid row.
    """
    rows = as_nonnegative(matrix, "matrix", 2)
    if rows.shape[0] != rows.shape[1] or rows.size == 0:
        raise InputError("matrix", "has the wrong shape", value=rows.shape, bound="of shape (n, n), n >= 1")
    zero = ~rows.any(axis=1)
    if unknown and (zero.all() or not zero.any()):
        problem = "has no known row" if zero.all() else "has no unknown row"
        raise InputError("matrix", problem, bound="some rows of zeros, and some that sum to 1")
    if not unknown and zero.any():
        raise InputError(
            f"matrix[{int(np.argmax(zero))}]",
            f"{ROW_OF_ZEROS} ({int(zero.sum())} of {len(rows)} rows)",
            bound="a row that sums to 1",
            remedy=f"{CLOSED}; functions that compute leakage read a row of zeros as any row",
        )
    # Sums of entries near the largest float64 may overflow; these rows are rejected below.
    with np.errstate(over="ignore", under="ignore"):
        totals = rows.sum(axis=1)
    wrong = np.flatnonzero((np.abs(totals - 1) > SUM_TOLERANCE) & ~zero)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"matrix[{row}]",
            "does not sum to 1",
            value=totals[row],
            bound=f"within {SUM_TOLERANCE} of 1",
            remedy="rows are current states, columns are next states; normalise each row",
        )
    return rows


@dataclass(frozen=True, eq=False, repr=False)
class MarkovChain:
    """A time-homogeneous Markov chain over n states.

    NumPy functions accept a chain instead of its matrix. Smoothing makes a chain more uniform, and so reduces the
    leakage that is computed from it. A smoothed chain is intended for priors; bounds on leakage need the chain that
    `unsmoothed` returns.

    Attributes:
        matrix: Pr(next = j | now = i) at (i, j), float64 of shape (n, n), read-only; rows sum to 1 within 1e-9.
        smoothing: The number >= 0 that was added to each count.
        counts: Numbers of observed steps from i to j, (n, n), read-only, or None if the chain was not estimated from
            counts. A reversed chain stores weights instead of counts.
        names: The names of the states, if a frame was given; otherwise empty.

    >>> MarkovChain.from_traces([[0, 1, 1, 0]], n=2).matrix.tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """

    matrix: Floats
    smoothing: float = field(default=0.0, kw_only=True)
    counts: Floats | None = field(default=None, kw_only=True)
    names: Names = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check that rows are distributions and counts have the same shape, and freeze both."""
        given = settled(self.matrix, "matrix", self.names)
        matrix = as_rows(given.values)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "names", given.rows)
        object.__setattr__(self, "smoothing", as_smoothing(self.smoothing, "smoothing"))
        if self.counts is None:
            if self.smoothing:
                problem = "is given without counts"
                raise InputError("smoothing", problem, value=self.smoothing, remedy="give counts")
            return
        counts = as_nonnegative(self.counts, "counts", 2, rows=self.names, columns=self.names)
        if counts.shape != matrix.shape:
            raise InputError(
                "counts", "do not match the shape of the matrix", value=counts.shape, bound=str(matrix.shape)
            )
        object.__setattr__(self, "counts", counts)

    def unsmoothed(self) -> MarkovChain:
        """Return the chain of the counts without smoothing; a state without a next step gets a 1 on the diagonal.

        A chain without smoothing is returned unchanged.

        >>> MarkovChain.from_counts([[0, 3], [1, 0]], smoothing=1).unsmoothed().matrix.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        if not self.smoothing or self.counts is None:
            return self
        return MarkovChain.from_counts(Named(self.counts, self.names, self.names), ends="stay")

    @property
    def size(self) -> int:
        """Return the number n of states."""
        return len(self.matrix)

    def __repr__(self) -> str:
        return f"MarkovChain({self.size} states)"

    def __len__(self) -> int:
        return self.size

    def arranged(self, labels: Labels, path: str = "matrix") -> MarkovChain:
        """Return the chain on states in the order of labels, with which its names are matched.

        Args:
            labels: The labels of the states; empty if they have none.
            path: The path of the chain, for messages.

        Returns:
            The chain; this chain itself if it has no names.
        """
        order = order_of(self.names, labels, path)
        if order is None:
            return self
        where = np.ix_(order, order)
        counts = None if self.counts is None else self.counts[where]
        return MarkovChain(self.matrix[where], smoothing=self.smoothing, counts=counts, names=tuple(labels))

    def at(self, step: int) -> MarkovChain:
        """Return the chain for the step from time `step` to `step` + 1, which is always this chain.

        Args:
            step: The time, counted from 0.

        Returns:
            This chain.
        """
        return self

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        # If a copy is requested, return a writable copy instead of the frozen array.
        if copy:
            return np.array(self.matrix, dtype=dtype)
        return np.asarray(self.matrix, dtype=dtype)

    @classmethod
    def from_traces(
        cls, traces: Iterable[ArrayLike], n: int, smoothing: float = 0.0, *, ends: Ends = "any"
    ) -> MarkovChain:
        """Estimate a chain over states 0..n−1 from traces.

        Entry (i, j) is (number of steps from i to j + smoothing) / (number of steps from i + n · smoothing).

        Args:
            traces: Integer arrays of consecutive states, each of shape (k,).
            n: The number of states.
            smoothing: The number >= 0 added to each count.
            ends: "stay" puts a 1 on the diagonal for states that no trace leaves. With "any" their rows are unknown,
                which raises an error unless `smoothing` is positive.

        Returns:
            The chain, with its counts.

        Raises:
            InputError: A state is out of range, or no trace leaves some state and there is no smoothing.
        """
        traces = as_list(traces, "traces", "a list of traces, each a sequence of states, such as the cells of Visits")
        n = as_integer(n, "n", 1)
        if traces and all(isinstance(state, int | np.integer) for state in traces):
            remedy = "put one trace in a list: [trace]"
            raise InputError("traces", "is a single trace", bound="a list of traces", remedy=remedy)
        counts = np.zeros((n, n))
        for index, trace in enumerate(traces):
            states = as_indices(trace, f"traces[{index}]", n)
            np.add.at(counts, (states[:-1], states[1:]), 1.0)
        return cls.from_counts(counts, smoothing, ends=ends)

    @classmethod
    def from_counts(cls, counts: ArrayLike, smoothing: float = 0.0, *, ends: Ends = "any") -> MarkovChain:
        """Estimate a chain from numbers of steps, as `from_traces` does.

        Args:
            counts: The number >= 0 of steps from i to j at (i, j), shape (n, n).
            smoothing: The number >= 0 added to each count.
            ends: "stay" puts a 1 on the diagonal for states without steps. With "any" their rows are unknown, which
                raises an error unless `smoothing` is positive.

        Returns:
            The chain, with its counts.

        Raises:
            InputError: Counts are negative or not square, or a state has no steps and there is no smoothing.

        >>> MarkovChain.from_counts([[1, 3], [0, 0]], ends="stay").matrix.tolist()
        [[0.25, 0.75], [0.0, 1.0]]
        """
        smoothing = as_smoothing(smoothing, "smoothing")
        ends = as_ends(ends)
        given = settled(counts, "counts")
        counts = as_nonnegative(given.values, "counts", 2)
        n = len(counts)
        never_left = np.flatnonzero(counts.sum(axis=1) == 0)
        if never_left.size == 0 or smoothing:
            return cls(_add_smoothing(counts, smoothing), smoothing=smoothing, counts=counts, names=given.rows)
        if ends == "any":
            raise InputError(
                "traces",
                f"no trace ever leaves state {never_left[0]} (no trace leaves {never_left.size} of {n} states)",
                bound="at least one step from each state",
                remedy='give ends="stay", which puts a 1 on the diagonal, or use fewer and larger cells',
            )
        stay = counts.copy()
        stay[never_left, never_left] = 1.0
        return cls(_add_smoothing(stay, smoothing), counts=counts, names=given.rows)

    def reverse(self, initial: Prior | ArrayLike) -> MarkovChain:
        """Return the backward chain: the probability of the previous state given the current state, by Bayes' rule.

        backward[j, i] = Pr(previous = i | now = j) = π_i P[i, j] / Σ_i' π_i' P[i', j], with π = `initial`.

        Args:
            initial: The distribution π of the previous state, (n,).

        Returns:
            The backward chain.

        Raises:
            InputError: Some state j cannot be reached in one step.

        >>> MarkovChain([[0.5, 0.5], [0.0, 1.0]]).reverse([0.5, 0.5]).matrix.round(3).tolist()
        [[1.0, 0.0], [0.333, 0.667]]
        """
        prior = as_prior(initial, "initial", self.names, self.size)
        joint = prior.probabilities[:, None] * self.matrix
        largest = joint.max(axis=0)
        if not largest.all():
            state = int(np.argmin(largest))
            raise InputError(
                "initial",
                f"state {state} cannot be reached, so its previous state is undefined",
                bound="a probability above zero for every next state",
                remedy="leave the state out, or give an initial distribution from which it is reached",
            )
        if self.counts is None:
            return MarkovChain(reversed_rows(joint), names=self.names)
        seen = (prior.probabilities[:, None] * self.unsmoothed().matrix).T
        return MarkovChain(reversed_rows(joint), smoothing=self.smoothing, counts=seen, names=self.names)

    def stationary(self) -> Prior:
        """Return the stationary distribution π = πP, in which transient states have probability zero.

        The elimination of Grassmann, Taksar and Heyman (1985) involves no subtraction. Each probability therefore has a
        small relative error, even if the chain rarely moves.

        Returns:
            The stationary distribution.

        Raises:
            InputError: The chain has several closed sets of states, and therefore several stationary distributions.

        >>> MarkovChain([[0.5, 0.5], [0.25, 0.75]]).stationary().probabilities.round(3).tolist()
        [0.333, 0.667]
        """
        member = label_components(self.size, np.argwhere(self.matrix > 0), strong=True)
        leaves = (self.matrix > 0) & (member[:, None] != member[None, :])
        closed = np.setdiff1d(member, member[leaves.any(axis=1)])
        if closed.size > 1:
            first, second = (int(np.flatnonzero(member == index)[0]) for index in closed[:2])
            raise InputError(
                "matrix",
                f"has {closed.size} closed sets of states, such as the sets that contain states {first} and {second}",
                bound="one closed set",
                remedy="study each closed set separately",
            )
        states = np.flatnonzero(member == closed[0])
        probabilities = np.zeros(self.size)
        probabilities[states] = _eliminate(self.matrix[np.ix_(states, states)])
        return Prior(probabilities, names=self.names)


@dataclass(frozen=True, eq=False)
class VaryingChain:
    """A Markov chain that changes with time.

    Attributes:
        chains: `chains[t]` gives the step from time t to time t + 1, counted from 0; all chains have the same states.
        cyclic: Whether the chains repeat after the last chain, like the hours of the day. Without repetition, a trace
            has at most ``len(chains)`` steps.

    >>> VaryingChain.of([[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]], cyclic=True).at(3).matrix.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    chains: tuple[MarkovChain, ...]
    cyclic: bool = False

    def __post_init__(self) -> None:
        """Check that there is at least one chain, and that all chains have the same states."""
        chains = as_list(self.chains, "chains", "a list of Markov chains")
        if not chains:
            raise InputError("chains", "is empty", bound="at least one Markov chain")
        for step, chain in enumerate(chains):
            if not isinstance(chain, MarkovChain):
                raise InputError(
                    f"chains[{step}]", "is not a Markov chain", value=type(chain).__name__, bound="a MarkovChain"
                )
            chains[step] = chain.arranged(chains[0].names, f"chains[{step}]")
            if chain.size != chains[0].size:
                raise InputError(
                    f"chains[{step}]",
                    "has another number of states",
                    value=chain.size,
                    bound=f"{chains[0].size} states",
                )
        object.__setattr__(self, "chains", tuple(chains))

    @classmethod
    def of(cls, matrices: Iterable[MarkovChain | ArrayLike], cyclic: bool = False) -> VaryingChain:
        """Return the chain with the given matrices.

        Args:
            matrices: Markov chains or transition matrices, each (n, n), in order of time.
            cyclic: Whether the chains repeat after the last chain.

        Returns:
            The chain.
        """
        matrices = as_list(matrices, "chains", "a list of Markov chains or matrices")
        return cls(tuple(as_chain(matrix, f"chains[{step}]") for step, matrix in enumerate(matrices)), cyclic)

    @property
    def size(self) -> int:
        """Return the number n of states."""
        return self.chains[0].size

    @property
    def names(self) -> Names:
        """The names of the states, if they have any."""
        return self.chains[0].names

    def arranged(self, labels: Labels, path: str = "matrix") -> VaryingChain:
        """Return the chain on states in the order of labels, with which its names are matched.

        Args:
            labels: The labels of the states; empty if they have none.
            path: The path of the chain, for messages.

        Returns:
            The chain.
        """
        return VaryingChain(tuple(chain.arranged(labels, path) for chain in self.chains), self.cyclic)

    def __len__(self) -> int:
        return len(self.chains)

    def at(self, step: int) -> MarkovChain:
        """Return the chain for the step from time `step` to `step` + 1; raise `InputError` after the last chain.

        Args:
            step: The time, counted from 0.

        Returns:
            The chain for the step.
        """
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


def as_chain(given: MarkovChain | ArrayLike, path: str = "matrix") -> MarkovChain:
    """Return a Markov chain, or the chain with a given transition matrix; errors name the path.

    >>> as_chain([[1.0]])
    MarkovChain(1 states)
    """
    try:
        return given if isinstance(given, MarkovChain) else MarkovChain(given)  # type: ignore[arg-type]
    except InputError as error:
        raise rename_path(error, path, "matrix") from error


def chain_of(
    weights: Floats, ends: Ends, smoothing: float = 0.0, counts: Floats | None = None
) -> MarkovChain | OpenChain:
    """Return the chain whose rows are proportional to weights; a row of zeros belongs to a state without steps.

    Args:
        weights: Weights >= 0 of steps, (n, n).
        ends: The treatment of rows of zeros: "any" returns an `OpenChain`, "stay" a `MarkovChain` with a 1 on the
            diagonal.
        smoothing: The smoothing that the weights include; a Markov chain stores it.
        counts: The counts from which the weights are computed, (n, n), or None; a Markov chain stores them.

    Returns:
        A Markov chain, or an open chain if there are rows of zeros and `ends` is "any".

    >>> chain_of(np.array([[1.0, 3.0], [0.0, 0.0]]), "stay").matrix.tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """
    totals = weights.sum(axis=1)
    missing = totals == 0
    rows = weights / np.where(missing, 1.0, totals)[:, None]
    if missing.any() and ends == "any":
        return OpenChain(rows)
    return MarkovChain(rows + np.diag(missing), smoothing=smoothing, counts=counts)


def reversed_rows(joint: Floats) -> Floats:
    """Return the matrix with Pr(before = i | now = j) at (j, i); the row of a state that is never entered is zero.

    Args:
        joint: Weights >= 0 of steps from i to j at (i, j), shape (n, n).

    Returns:
        Float64 of shape (n, n); rows sum to 1 or 0.

    >>> reversed_rows(np.array([[1.0, 1.0], [0.0, 3.0]])).tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    # Each column is divided by its largest entry first, because a column of tiny numbers would lose precision.
    largest = joint.max(axis=0)
    backward = (joint / np.where(largest > 0, largest, 1.0)).T
    totals = backward.sum(axis=1, keepdims=True)
    rows: Floats = backward / np.where(totals > 0, totals, 1.0)
    return rows


def smooth(matrix: MarkovChain | OpenChain | ArrayLike, s: float) -> MarkovChain:
    """Return a more uniform chain by Laplacian smoothing, (p_ij + s) / Σ_u (p_iu + s), for s ≥ 0.

    The formula is equation (28) of Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data
    Release under Temporal Correlations (2019). A smaller s means a stronger temporal correlation. If the chain has
    counts, the result keeps them and stores the larger of `s` and `matrix.smoothing`.

    Args:
        matrix: A Markov chain, an open chain, or a transition matrix, (n, n).
        s: The number >= 0 added to each transition probability.

    Returns:
        The smoothed chain.

    >>> smooth([[1.0, 0.0], [0.0, 1.0]], 0.5).matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    s = as_smoothing(s, "s")
    if isinstance(matrix, OpenChain) and s > 0:
        # Smoothing makes an unknown row uniform. Its counts stay zero, so the unsmoothed chain never leaves its state.
        return MarkovChain(_add_smoothing(matrix.matrix, s), smoothing=s, counts=matrix.matrix)
    chain = as_chain(matrix)
    smoothing = chain.smoothing if chain.counts is None or not s else max(s, chain.smoothing)
    return MarkovChain(_add_smoothing(chain.matrix, s), smoothing=smoothing, counts=chain.counts, names=chain.names)


def _add_smoothing(weights: Floats, smoothing: float) -> Floats:
    """Return the smoothed rows (w_ij + s) / Σ_u (w_iu + s)."""
    added = weights + smoothing
    smoothed: Floats = added / added.sum(axis=1, keepdims=True)
    return smoothed


@in_own_arithmetic
def _eliminate(matrix: Floats) -> Floats:
    """Return the stationary distribution of an irreducible chain."""
    reduced = matrix.copy()
    n = len(reduced)
    # Eliminate states in reverse order: a step to an eliminated state becomes a step to its successors.
    for last in range(n - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.ones(n)
    for state in range(1, n):
        weights[state] = weights[:state] @ reduced[:state, state]
        # Ratios between the weights of states may be huge, so the weights are rescaled to a maximum of 1.
        weights[: state + 1] /= weights[: state + 1].max()
    stationary: Floats = weights / weights.sum()
    return stationary
