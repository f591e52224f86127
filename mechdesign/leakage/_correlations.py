"""Correlations that an adversary knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Flags, Floats
from mechdesign.base._errors import CorrelationWarning, InputError
from mechdesign.base._warnings import warn
from mechdesign.leakage._ends import end_states
from mechdesign.leakage._loss import LossFunction

# A matrix (array, MarkovChain, OpenChain, SciPy sparse), LossFunction, Varying, Candidates, or None: no correlation.
Correlation: TypeAlias = Any


@dataclass(frozen=True, eq=False, init=False)
class Varying:
    """Correlations that change: entry t is that between the releases t and t + 1, counted from 0; None means none.

    For T releases there are T − 1 entries, in order of time for backward and for forward correlations alike. They are
    matrices or loss functions; equal ones share their precomputation.
    """

    steps: tuple[LossFunction | None, ...]

    def __init__(self, steps: Iterable[Any]) -> None:
        object.__setattr__(self, "steps", _functions(steps, "steps"))


@dataclass(frozen=True, eq=False, init=False)
class Candidates:
    """Correlations of which the adversary knows one, nobody knows which: leakage is that of the worst.

    Entries are matrices, loss functions, `Varying` or None; at least one.
    """

    options: tuple[LossFunction | Varying | None, ...]

    def __init__(self, options: Iterable[Any]) -> None:
        functions: list[LossFunction | Varying | None] = []
        if isinstance(options, str) or not isinstance(options, Iterable):
            raise InputError("candidates", "are not several", value=options, bound="a list of matrices, or of None")
        for index, option in enumerate(options):
            known = isinstance(option, Varying)
            functions.append(option if known else as_loss(option, f"candidates[{index}]"))
        if not functions:
            raise InputError("candidates", "are empty", bound="at least one correlation", remedy="give None for none")
        object.__setattr__(self, "options", tuple(functions))


def as_loss(correlation: Any, path: str) -> LossFunction | None:
    """Return the loss function of one matrix, or None for None, whose loss is 0."""
    if correlation is None or isinstance(correlation, LossFunction):
        return correlation
    if isinstance(correlation, Varying | Candidates):
        raise InputError(path, "is not a single matrix", value=type(correlation).__name__, bound="a matrix or None")
    return LossFunction(correlation, path=path)


def step_functions(correlation: Correlation, steps: int, path: str) -> list[list[LossFunction | None]]:
    """Return, for each candidate, the loss functions between `steps` releases, steps − 1 in all.

    Raises `InputError` when a `Varying` has another number of entries.
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
    """Return the loss functions that must hold for ever; raise `InputError` for `Varying`, whose future is unknown."""
    options = correlation.options if isinstance(correlation, Candidates) else (correlation,)
    for option in options:
        if isinstance(option, Varying):
            raise InputError(
                path,
                "changes with time, and no end is given",
                bound="a matrix, Candidates or None",
                remedy="give Candidates of the matrices that may occur: what holds for them holds in any order",
            )
    return [as_loss(option, path) for option in options]


def functions_of_both(
    backward: Correlation, forward: Correlation
) -> tuple[list[LossFunction | None], list[LossFunction | None]]:
    """Return the loss functions of both directions that must hold for ever, checked against each other."""
    both = candidate_functions(backward, "backward"), candidate_functions(forward, "forward")
    before, after = ([[each] for each in functions] for functions in both)
    check_directions(before, after)
    return both


def require_same_states(backward: Iterable[LossFunction | None], forward: Iterable[LossFunction | None]) -> None:
    """Raise `InputError` unless all correlations, of whatever direction, are about the same number of states."""
    known: tuple[str, int] | None = None
    for path, functions in (("backward", backward), ("forward", forward)):
        for loss in functions:
            if loss is None:
                continue
            if known is not None and loss.n != known[1]:
                raise InputError(
                    path,
                    "is about another number of states",
                    value=loss.n,
                    bound=f"{known[1]}, as in {known[0]}",
                    remedy="give correlations of the same chain",
                )
            known = path, loss.n


def _functions(steps: Iterable[Any], path: str) -> tuple[LossFunction | None, ...]:
    known: dict[int, LossFunction | None] = {}
    functions = []
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise InputError(path, "are not several matrices", value=steps, bound="a list of matrices, or of None")
    # The list keeps every matrix alive, so that no two of them share an id.
    for index, step in enumerate(list(steps)):
        if id(step) not in known:
            known[id(step)] = as_loss(step, f"{path}[{index}]")
        functions.append(known[id(step)])
    return tuple(functions)


# Shares of probability that rounding in files, and estimates from data, may be off by.
_TOLERANCE = 0.01
_DRIFT = 0.1

# Beyond it the spanning tree takes longer than the loss function.
_MOST_ENTRIES = 2**22

_Losses = Sequence[LossFunction | None]


class _Fit(NamedTuple):
    """How well the directions fit with the best distribution of the state before a step, as total variations.

    `misfit` is that of the reversed forward chain from the backward one; `drift` that of the distributions before and
    after the step, None where the matrices leave them open.
    """

    misfit: float
    drift: float | None


def check_directions(backward: Sequence[_Losses], forward: Sequence[_Losses], stacklevel: int = 4) -> None:
    """Check each candidate's loss functions of both directions, step by step.

    Raises `InputError` where they are about different numbers of states, and warns with `CorrelationWarning` where
    there is one candidate in each direction and no chain can have both. Matrices that a loss function no longer knows
    are not looked at.
    """
    require_same_states((each for chain in backward for each in chain), (each for chain in forward for each in chain))
    if len(backward) != 1 or len(forward) != 1:
        return
    seen: set[tuple[int, int]] = set()
    for step, (before, after) in enumerate(zip(backward[0], forward[0], strict=True)):
        if before is None or after is None or before.matrix is None or after.matrix is None:
            continue
        if (id(before), id(after)) in seen:
            continue
        seen.add((id(before), id(after)))
        found = before.misfits.get(after.digest)
        if found is None:
            found = before.misfits[after.digest] = mismatch(before.matrix, after.matrix)
        if found:
            which = f" at step {step}" if len(set(map(id, backward[0]))) > 1 else ""
            warn(
                f"backward and forward{which} cannot both be correlations of one chain: {found}. Leakage is computed "
                "for both as given; the backward one of a chain is chain.reverse(chain.stationary())",
                CorrelationWarning,
                stacklevel=stacklevel,
            )


def mismatch(backward: Floats | sparse.csr_array, forward: Floats | sparse.csr_array) -> str:
    """Return why no Markov chain has these correlations, Pr(before | now) and Pr(next | now), or an empty text.

    Bayes' rule, π_i F[i, j] = μ_j B[j, i], ties the distributions π before and μ after a step. So B must be positive
    just where the transpose of F is, and the ratios around every cycle must agree; π and μ are found along the most
    probable steps. Where both correlations hold at every step, π and μ are the same, the stationary distribution.
    Deviations up to 1 per cent of probability, and 10 per cent between π and μ, count as rounding or estimation. Ratios
    are looked at in matrices of up to four million entries. A state that the data show nobody to leave has π = 0, and
    no row that could be judged; neither has one that nobody enters. Then π and μ differ, and are not compared.
    """
    ahead, back = sparse.csr_array(forward), sparse.csr_array(backward).T.tocsr()
    if ahead.shape != back.shape:
        return ""
    never_left, never_entered = _unseen(ahead, back), _unseen(back.T.tocsr(), ahead.T.tocsr())
    seen = np.flatnonzero(~never_left), np.flatnonzero(~never_entered)
    ahead, back = (sparse.csr_array(each[seen[0]][:, seen[1]]) for each in (ahead, back))
    lone = sparse.coo_array((ahead > 0).astype(np.int8) - (back > 0).astype(np.int8))
    lone.eliminate_zeros()
    if lone.nnz:
        now, following, sign = seen[0][lone.row[0]], seen[1][lone.col[0]], lone.data[0]
        possible, other = ("forward", "backward") if sign > 0 else ("backward", "forward")
        return (
            f"a step from state {now} to state {following} is possible in the {possible} matrix, not in the {other} one"
        )
    if ahead.nnz > _MOST_ENTRIES:
        return ""
    fit = _fit(ahead, back, forward.shape[0])
    if fit.misfit > _TOLERANCE:
        return (
            f"with no distribution of the states is one the other reversed by Bayes' rule ({fit.misfit:.1%} of the "
            "probability is elsewhere)"
        )
    if fit.drift is not None and fit.drift > _DRIFT:
        return (
            "they have no common stationary distribution: as the one reverses the other, the states before and after a "
            f"step are distributed differently, by {fit.drift:.1%}"
        )
    return ""


def _unseen(ahead: sparse.csr_array, back: sparse.csr_array) -> Flags:
    """Return which rows of F, (n, n), say nothing: rows of zeros, and a 1 on the diagonal where Bᵀ has no entry."""
    ends = np.zeros(ahead.shape[0], dtype=bool)
    ends[end_states(ahead)] = True
    unseen: Flags = (np.diff(ahead.indptr) == 0) | (ends & (np.diff(back.indptr) == 0))
    return unseen


def _fit(ahead: sparse.csr_array, back: sparse.csr_array, states: int) -> _Fit:
    """Return the fit of F and the transpose of B, of shape (n, m) and with the same support, of so many states."""
    n, m = ahead.shape
    steps = sparse.coo_array(ahead)
    # In row order both have the same entries.
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
    # Every component counts as much as it has states: its own weight is open.
    before *= np.bincount(label[:n], minlength=count)[label[:n]] / totals[label[:n]] / n
    joint = sparse.csr_array(ahead.multiply(before[:, None]))
    after = np.asarray(joint.sum(axis=0)).ravel()
    misfit = float(abs(joint - back.multiply(after[None, :])).sum()) / 2
    drift = float(np.abs(after - before).sum()) / 2 if count == 1 and n == m == states else None
    return _Fit(misfit, drift)
