"""Correlations that the adversary is assumed to have, and checks that both directions belong to one chain."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike
from scipy.sparse import csgraph

from mechdesign.base._arrays import Flags, Floats, Integers, read_only
from mechdesign.base._check import as_integer
from mechdesign.base._errors import CorrelationWarning, InputError
from mechdesign.base._names import labels_of, order_of
from mechdesign.base._warnings import warn
from mechdesign.leakage._loss import LossFunction
from mechdesign.model._markov import MarkovChain, as_chain, reversed_rows
from mechdesign.model._prior import Prior, as_prior

# A matrix (array, MarkovChain, OpenChain, SciPy sparse), LossFunction, Varying, Candidates, or None: no correlation.
Correlation: TypeAlias = Any

# Steps with a smaller probability are refused: ratios of larger probabilities do not underflow.
_LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True, eq=False, init=False)
class Varying:
    """Correlations that change over time: entry t relates releases t and t + 1, counted from 0.

    There are T − 1 entries for T releases. Backward and forward correlations are both listed in the order of time.
    Equal entries are precomputed only once. Releases at irregular times have powers of the matrix of one time step.

    Args:
        steps: Matrices, loss functions or None (no correlation), one for each step.

    Attributes:
        steps: The loss function of each step, or None for a step without correlation.
        missing: For each step, the states after it that have probability 0, ascending, int64; see `from_start`.

    >>> len(Varying([[[0.8, 0.2], [0.2, 0.8]], None]).steps)
    2
    >>> hourly = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> times = [8, 9, 12]
    >>> Varying([np.linalg.matrix_power(hourly, gap) for gap in np.diff(times)]).steps[1].matrix.round(3).tolist()
    [[0.608, 0.392], [0.392, 0.608]]
    """

    steps: tuple[LossFunction | None, ...]
    missing: tuple[Integers, ...]

    def __init__(self, steps: Iterable[Any]) -> None:
        functions = _functions(steps, "steps")
        object.__setattr__(self, "steps", functions)
        object.__setattr__(self, "missing", (read_only(np.zeros(0, dtype=np.int64)),) * len(functions))

    @classmethod
    def from_start(cls, chain: MarkovChain | ArrayLike, initial: Prior | ArrayLike, steps: int) -> Varying:
        """Return the backward correlations of a chain whose first release has a known law.

        Let π_t be the law of the state at release t. Bayes' rule gives entry t of the result, Pr(before = i | now = j)
        = π_t[i] P[i, j] / π_{t+1}[j], with π_{t+1} = π_t P. The entries are all equal only if `initial` is the
        stationary law; then `chain.reverse(initial)` is enough. The forward correlation of the chain is the chain.

        A state j with π_{t+1}[j] = 0 has no such row. The step names it in `missing`: nothing is claimed about its
        pairs, whose bounds are infinite there. A budget for all pairs bounds those of the other states. The matrix
        repeats the row of another state, so that a missing state changes no leakage.

        Args:
            chain: Pr(next = j | now = i), (n, n).
            initial: The law π_0 of the state at the first release, (n,).
            steps: The number of entries, at least 1: one less than the number of releases. One release has
                none: its correlation is None.

        Returns:
            The correlations.

        Raises:
            InputError: An argument is not valid, or a step is too improbable for floats.

        >>> found = Varying.from_start([[0.5, 0.5], [0.0, 1.0]], [1.0, 0.0], 2)
        >>> [each.matrix.round(3).tolist() for each in found.steps]
        [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.333, 0.667]]]
        >>> Varying.from_start([[0.0, 1.0], [0.0, 1.0]], [1.0, 0.0], 1).missing
        (array([0]),)
        """
        chain = as_chain(chain, "chain")
        law = as_prior(initial, "initial", chain.names, chain.size).probabilities
        counted = chain.unsmoothed().matrix
        matrices: list[MarkovChain] = []
        missing: list[Integers] = []
        for step in range(as_integer(steps, "steps", 1)):
            joint = law[:, None] * chain.matrix
            _require_normal(joint, law, chain, step)
            rows, reached = reversed_rows(joint), joint.any(axis=0)
            rows[~reached] = rows[int(np.argmax(reached))]
            missing.append(read_only(np.flatnonzero(~reached).astype(np.int64)))
            weights = (law[:, None] * counted).T if chain.smoothing else None
            matrices.append(MarkovChain(rows, smoothing=chain.smoothing, counts=weights, names=chain.names))
            law = joint.sum(axis=0) / joint.sum()
        made = cls(matrices)
        object.__setattr__(made, "missing", tuple(missing))
        return made


def _require_normal(joint: Floats, law: Floats, chain: MarkovChain, step: int) -> None:
    """Raise `InputError` if a possible step is so improbable that its probability or a ratio of it may underflow."""
    low = (joint < _LEAST_PROBABILITY) & (law[:, None] > 0) & (chain.matrix > 0)
    if low.any():
        before, after = np.argwhere(low)[0]
        raise InputError(
            f"chain[{before},{after}]",
            f"is too improbable at step {step}",
            value=float(joint[before, after]),
            bound=f"a step of probability 0, or at least {_LEAST_PROBABILITY:.0e}",
            remedy="replace the entry by 0, or give a law of the first release that makes its state less improbable",
        )


@dataclass(frozen=True, eq=False, init=False)
class Candidates:
    """Alternative correlations of an adversary; the leakage is the largest over all of them.

    The adversary has one of these correlations, and the designer does not need to know which one.

    Args:
        options: Matrices, loss functions, `Varying` or None (no correlation); at least one.

    Attributes:
        options: The loss function or `Varying` of each option, or None for an option without correlation.

    >>> len(Candidates([[[0.8, 0.2], [0.2, 0.8]], None]).options)
    2
    """

    options: tuple[LossFunction | Varying | None, ...]

    def __init__(self, options: Iterable[Any]) -> None:
        functions: list[LossFunction | Varying | None] = []
        if isinstance(options, str) or not isinstance(options, Iterable):
            raise InputError("candidates", "are not several", value=options, bound="a list of matrices or None values")
        for index, option in enumerate(options):
            known = isinstance(option, Varying)
            functions.append(option if known else as_loss(option, f"candidates[{index}]"))
        if not functions:
            raise InputError(
                "candidates", "are empty", bound="at least one correlation", remedy="give None without a correlation"
            )
        object.__setattr__(self, "options", tuple(functions))


def as_loss(correlation: Any, path: str) -> LossFunction | None:
    """Return the loss function of a matrix; without a matrix return None, which stands for a loss of 0."""
    if correlation is None or isinstance(correlation, LossFunction):
        return correlation
    if isinstance(correlation, Varying | Candidates):
        raise InputError(path, "is not a single matrix", value=type(correlation).__name__, bound="a matrix or None")
    return LossFunction(correlation, path=path)


def step_functions(correlation: Correlation, steps: int, path: str) -> list[list[LossFunction | None]]:
    """Return, for each candidate, the steps − 1 loss functions between successive releases.

    Raises `InputError` if a `Varying` has a different number of entries.
    """
    options = correlation.options if isinstance(correlation, Candidates) else (correlation,)
    chains = []
    for option in options:
        if isinstance(option, Varying):
            if len(option.steps) != steps - 1:
                raise InputError(
                    path,
                    "differs in length",
                    value=len(option.steps),
                    bound=f"{steps - 1} matrices for {steps} releases",
                    remedy="give one matrix for each step from a release to the next",
                )
            chains.append(list(option.steps))
        else:
            chains.append([as_loss(option, path)] * (steps - 1))
    return chains


def candidate_functions(correlation: Correlation, path: str) -> list[LossFunction | None]:
    """Return the loss functions of a correlation over an infinite horizon; raise `InputError` for `Varying`."""
    options = correlation.options if isinstance(correlation, Candidates) else (correlation,)
    for option in options:
        if isinstance(option, Varying):
            raise InputError(
                path,
                "changes with time, but the horizon is infinite",
                bound="a matrix, Candidates or None",
                remedy="give Candidates of the matrices that may occur: their bound holds for every order",
            )
    return [as_loss(option, path) for option in options]


def functions_of_both(
    backward: Correlation, forward: Correlation
) -> tuple[list[LossFunction | None], list[LossFunction | None]]:
    """Return the loss functions of both directions over an infinite horizon, after checking that they fit."""
    both = candidate_functions(backward, "backward"), candidate_functions(forward, "forward")
    # The correlations of one step hold at every step.
    before, after = ([[each] * 2 for each in functions] for functions in both)
    check_directions(before, after)
    return both


def require_same_states(backward: Iterable[LossFunction | None], forward: Iterable[LossFunction | None]) -> None:
    """Raise `InputError` unless all correlations of both directions have the same number of states."""
    known: tuple[str, int] | None = None
    for path, functions in (("backward", backward), ("forward", forward)):
        for loss in functions:
            if loss is None:
                continue
            if known is not None and loss.n != known[1]:
                raise InputError(
                    path,
                    "has another number of states",
                    value=loss.n,
                    bound=f"{known[1]}, as in {known[0]}",
                    remedy="give correlations of the same chain",
                )
            known = path, loss.n


def _functions(steps: Iterable[Any], path: str) -> tuple[LossFunction | None, ...]:
    known: dict[int, LossFunction | None] = {}
    functions = []
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise InputError(path, "are not several matrices", value=steps, bound="a list of matrices or None values")
    # The list keeps every matrix alive, because the id of a deleted matrix could be reused for another matrix.
    for index, step in enumerate(list(steps)):
        if id(step) not in known:
            known[id(step)] = as_loss(step, f"{path}[{index}]")
        functions.append(known[id(step)])
    return tuple(functions)


# Largest deviations that are attributed to rounding or estimation: between both directions, and between π and μ.
_TOLERANCE = 0.01
_DRIFT = 0.1

# Ratios of matrices with more entries are not compared: the spanning tree would take longer than the loss function.
_MOST_ENTRIES = 2**22

_Losses = Sequence[LossFunction | None]


class _Fit(NamedTuple):
    """The deviations between both directions, for the best-fitting distribution of the state before a step.

    Attributes:
        misfit: Total variation between the reversed forward chain and the backward chain.
        drift: Total variation between the distributions before and after the step; None if the matrices do not
            determine them.
    """

    misfit: float
    drift: float | None


def check_directions(backward: Sequence[_Losses], forward: Sequence[_Losses], stacklevel: int = 4) -> None:
    """Check whether the loss functions of both directions fit together, step by step.

    Raises `InputError` if the numbers of states differ. With a single candidate in each direction, the function warns
    with `CorrelationWarning` if no chain can have both correlations. Loss functions without their matrices are skipped.
    Matrices that hold at two successive steps must have a common stationary law; others may relate two laws.
    """
    require_same_states((each for chain in backward for each in chain), (each for chain in forward for each in chain))
    if len(backward) != 1 or len(forward) != 1:
        return
    steps = list(zip(backward[0], forward[0], strict=True))
    repeated = {one for one, following in itertools.pairwise(steps) if one == following}
    for each in dict.fromkeys(steps):
        before, after = each
        if before is None or after is None or before.matrix is None or after.matrix is None:
            continue
        labels = labels_of(before.names, "backward")
        order = order_of(after.names, labels, "forward") if labels else None
        constant = each in repeated
        ahead, key = after.matrix, f"{after.digest} {constant}"
        if order is not None:
            ahead, key = ahead[order][:, order], f"{key} {order.tolist()}"
        found = before.misfits.get(key)
        if found is None:
            found = before.misfits[key] = mismatch(before.matrix, ahead, constant=constant)
        if found:
            which = f" at step {steps.index(each)}" if len(set(map(id, backward[0]))) > 1 else ""
            warn(
                f"backward and forward{which} cannot both be correlations of one chain: {found}. Leakage is computed "
                "for both as given; the backward one of a chain is chain.reverse(chain.stationary()) if the first "
                "release has the stationary law, and Varying.from_start(chain, initial, steps) for any law of it",
                CorrelationWarning,
                stacklevel=stacklevel,
            )


def mismatch(backward: Floats | sparse.csr_array, forward: Floats | sparse.csr_array, *, constant: bool = True) -> str:
    """Return the reason why no chain has both Pr(before | now) and Pr(next | now), or an empty text if one has.

    Bayes' rule, π_i F[i, j] = μ_j B[j, i], connects the distributions π before and μ after a step. Therefore B must
    have the support of the transpose of F, and the ratios F[i, j]/B[j, i] must be consistent around every cycle. The
    most probable steps determine π and μ. If both correlations are constant, π and μ are the stationary distribution.
    Otherwise π and μ may differ, and states are left out that no row of B comes from, and then those that no row of F
    leads to: their probability is 0.

    Deviations up to 1 per cent of probability, and up to 10 per cent between π and μ, are attributed to rounding or
    estimation. Ratios are compared in matrices of up to four million entries. States without an observed departure or
    without an observed arrival are left out. If states are left out, π and μ are not compared.
    """
    ahead, back = sparse.csr_array(forward), sparse.csr_array(backward).T.tocsr()
    if ahead.shape != back.shape:
        return ""
    never_left, never_entered = _unseen(ahead, back), _unseen(back.T.tocsr(), ahead.T.tocsr())
    if not constant:
        never_left |= np.diff(back.indptr) == 0
        never_entered |= np.diff(ahead[~never_left].tocsc().indptr) == 0
    seen = np.flatnonzero(~never_left), np.flatnonzero(~never_entered)
    ahead, back = (sparse.csr_array(each[seen[0]][:, seen[1]]) for each in (ahead, back))
    lone = sparse.coo_array((ahead > 0).astype(np.int8) - (back > 0).astype(np.int8))
    lone.eliminate_zeros()
    if lone.nnz:
        now, following, sign = seen[0][lone.row[0]], seen[1][lone.col[0]], lone.data[0]
        possible, other = ("forward", "backward") if sign > 0 else ("backward", "forward")
        return (
            f"a step from state {now} to state {following} is possible in the {possible} matrix, not in the "
            f"{other} matrix"
        )
    if ahead.nnz > _MOST_ENTRIES:
        return ""
    fit = _fit(ahead, back, forward.shape[0])
    if fit.misfit > _TOLERANCE:
        return (
            f"no distribution of the states relates the matrices by Bayes' rule ({fit.misfit:.1%} of the probability "
            "is elsewhere)"
        )
    if constant and fit.drift is not None and fit.drift > _DRIFT:
        return (
            "they have no common stationary distribution: if one matrix reverses the other, the states before and "
            f"after a step are distributed differently, by {fit.drift:.1%}"
        )
    return ""


def _unseen(ahead: sparse.csr_array, back: sparse.csr_array) -> Flags:
    """Return the uninformative rows of F (n, n): zero rows, and 1 on the diagonal where Bᵀ has no entry."""
    entries = np.diff(ahead.indptr)
    stays = (entries == 1) & (ahead.diagonal() > 0)
    unseen: Flags = (entries == 0) | (stays & (np.diff(back.indptr) == 0))
    return unseen


def _fit(ahead: sparse.csr_array, back: sparse.csr_array, states: int) -> _Fit:
    """Return the fit of F and the transpose of B, both of shape (n, m) with the same support, for `states` states."""
    n, m = ahead.shape
    steps = sparse.coo_array(ahead)
    # Both matrices have entries at the same places, stored in the same order.
    ratio = np.log(ahead.data) - np.log(back.data)
    # A graph of states before (0..n-1) and after (n..n+m-1); a tree of its most probable steps fixes π and μ.
    lengths = 1.0 - np.log(ahead.data) - np.log(back.data)
    graph = sparse.csr_array((lengths, (steps.row, steps.col + n)), shape=(n + m, n + m))
    tree = csgraph.minimum_spanning_tree(graph)
    count, label = csgraph.connected_components(tree, directed=False)
    known = sparse.csr_array((ratio, (steps.row, steps.col)), shape=(n, m))
    logarithm = np.zeros(n + m)
    for component in range(count):
        root = int(np.argmax(label == component))
        order, parent = csgraph.breadth_first_order(tree, root, directed=False)
        for node in order[1:].tolist():
            origin = int(parent[node])
            # ln μ_j = ln π_i + ln F_ij − ln B_ji
            forwards = node >= n
            step = known[origin, node - n] if forwards else -known[node, origin - n]
            logarithm[node] = logarithm[origin] + step
        own = label == component
        if own[:n].any():
            logarithm[own] -= logarithm[:n][own[:n]].max()
    before = np.exp(logarithm[:n])
    totals = np.bincount(label[:n], weights=before, minlength=count)
    # The weight of a component is undetermined, so it is set to the component's share of the states.
    before *= np.bincount(label[:n], minlength=count)[label[:n]] / totals[label[:n]] / n
    joint = sparse.csr_array(ahead.multiply(before[:, None]))
    # Without the states that are left out, the rows of B may not sum to 1.
    share = np.asarray(back.sum(axis=0)).ravel()
    after = np.asarray(joint.sum(axis=0)).ravel() / np.where(share > 0, share, 1.0)
    misfit = float(abs(joint - back.multiply(after[None, :])).sum()) / 2
    drift = float(np.abs(after - before).sum()) / 2 if count == 1 and n == m == states else None
    return _Fit(misfit, drift)
