"""The loss function by linear-fractional programs: a proved bracket of L(α), for any back end of linear programs.

For rows q ≠ d the program (19)–(21) of Cao et al. (2019) maximises q·x / d·x over the box e^(−α/2) ≤ x_j ≤ e^(α/2).
A ratio λ is an upper bound of this maximum if and only if

    h(λ) = Σ_j max(e^(α/2) (q_j − λ d_j), e^(−α/2) (q_j − λ d_j)) ≤ 0,

because h(λ) is the largest value of (q − λd)·x on the box (Dinkelbach, 1967). `_heights` computes an upper bound of
e^(α/2) h(λ) with outward rounding. Therefore no number of a solver is trusted: its point x gives the lower end, and h
proves the upper end.

Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations
(2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_distribution, read_only
from mechdesign.base._check import as_number, as_truth, rename_path, require_kind, require_name
from mechdesign.base._errors import InfeasibleError, InputError, SolverError, UnboundedError
from mechdesign.leakage._transitions import as_alphas, as_transition, distinct_rows
from mechdesign.solve._contract import Options
from mechdesign.solve._fractional import FractionalProgram, solve_fractional
from mechdesign.solve._registry import find

Method = Literal["charnes-cooper", "dinkelbach"]

# e^20 is 4.9e8: larger bounds cannot be separated from the tolerances of LP solvers in double precision.
LARGEST_ALPHA = 20.0
# Ends further apart raise SolverError [nats].
_MAX_BRACKET = 1e-9
_UNIT_ROUNDOFF = 2.0**-53
# Feasibility tolerance of the solvers. Their defaults of about 1e-7 lose small coefficients for large α.
_TIGHT = 1e-10
# A bound of the relative error of a few roundings, also of exp and log.
_FEW_ROUNDINGS = 2.0**-49
# Added to heights, because products may underflow.
_UNDERFLOW = 1e-300
# Size of the temporary arrays of `_heights` [entries].
_BLOCK_ENTRIES = 1 << 18


def row_pair_program(q: ArrayLike, d: ArrayLike, alpha: float) -> FractionalProgram:
    """Return the program (19)–(21): maximise q·x / d·x if entries of x differ by at most a factor e^α.

    The ratio does not depend on the scale of x. Therefore the n bounds e^(−α/2) ≤ x_j ≤ e^(α/2) replace n² constraints.

    Args:
        q: Row of the numerator, a distribution of shape (n,).
        d: Row of the denominator, a distribution of shape (n,).
        alpha: Leakage of the adjacent release in nats, from 0 to `LARGEST_ALPHA`. Larger values exceed the precision of
            LP solvers.

    Returns:
        The linear-fractional program.

    Raises:
        InputError: If the rows differ in length, if a row is not a distribution, or if α is out of range.

    >>> row_pair_program([0.8, 0.2], [0.2, 0.8], 1.0).upper.round(4).tolist()
    [1.6487, 1.6487]
    """
    q, d = _as_row(q, "q"), _as_row(d, "d")
    if len(q) != len(d):
        raise InputError("d", "differs in length from q", value=len(d), bound=f"{len(q)} entries")
    alpha = as_number(alpha, "alpha")
    if not 0 <= alpha <= LARGEST_ALPHA:
        raise InputError(
            "alpha",
            "is out of the range of linear programs",
            value=alpha,
            bound=f"between 0 and {LARGEST_ALPHA:g}",
            remedy="use LossFunction or algorithm1, which are exact for every alpha",
        )
    n = len(q)
    return FractionalProgram(
        numerator=q,
        denominator=d,
        matrix=sparse.csr_array((0, n)),
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
        lower=np.full(n, math.exp(-alpha / 2)),
        upper=np.full(n, math.exp(alpha / 2)),
        name="temporal privacy leakage",
    )


def fractional(
    q: ArrayLike,
    d: ArrayLike,
    alpha: float,
    method: str = "charnes-cooper",
    solver: str = "highs",
    options: Options | None = None,
) -> float:
    """Return max ln(q·x / d·x) for one ordered pair of rows by linear programming, accurate to about 1e-7.

    Args:
        q: Row of the numerator, a distribution of shape (n,).
        d: Row of the denominator, a distribution of shape (n,).
        alpha: Leakage of the adjacent release in nats, from 0 to `LARGEST_ALPHA`.
        method: "charnes-cooper" (one program of n + 1 variables) or "dinkelbach" (a few programs of n variables).
        solver: Name of a solver.
        options: Options of the solver; None for a feasibility tolerance of 1e-10.

    Returns:
        The maximum in nats.

    >>> round(fractional([0.8, 0.2], [0.2, 0.8], 1.0), 6)
    0.569445
    """
    program = row_pair_program(q, d, alpha)
    found = solve_fractional(program, method, solver, options or Options(feasibility=_TIGHT))
    return math.log(found.value)


def _as_row(values: ArrayLike, path: str) -> Floats:
    return as_distribution(values, path, "normalise the row")


@dataclass(frozen=True, eq=False)
class LossByPrograms:
    """The loss function at k values of α, from linear-fractional programs. Arrays are read-only.

    Attributes:
        alphas: The values of α in nats, shape (k,).
        values: Lower ends of L(α) in nats, shape (k,): ln(q·x / d·x) at the points `x`, rounded down.
        upper: Proved upper ends of L(α) in nats, shape (k,); at most 1e-9 above `values`.
        pairs: Rows (q, d) that attain `values`, int64 of shape (k, 2); (−1, −1) if all rows are equal.
        x: Points that attain `values`, shape (k, n), with entries from e^(−α/2) to e^(α/2).
        programs: Number of linear programs solved for each α, int64 of shape (k,).
        left_out: Number of ordered pairs of distinct rows proved without a program, int64 of shape (k,).
        polished: Number of pairs whose point became better by the final Dinkelbach step, int64 of shape (k,).
        method: "charnes-cooper" or "dinkelbach".
        solver: Name of the back end.

    >>> loss_by_programs([[0.8, 0.2], [0.2, 0.8]], [1.0]).pairs.tolist()
    [[0, 1]]
    """

    alphas: Floats
    values: Floats
    upper: Floats
    pairs: Integers
    x: Floats
    programs: Integers
    left_out: Integers
    polished: Integers
    method: str
    solver: str

    def __repr__(self) -> str:
        return f"LossByPrograms({len(self.alphas)} values of α, {int(self.programs.sum())} programs by {self.solver})"


def loss_by_programs(
    P: Any,
    alphas: ArrayLike,
    method: Method = "charnes-cooper",
    solver: str = "highs",
    prune: bool = True,
    *,
    options: Options | None = None,
) -> LossByPrograms:
    """Return L(α) by linear-fractional programs over all ordered pairs of rows, with a proof of each value.

    The loss is L(α) = max over rows q ≠ d of P, and over x with e^(−α/2) ≤ x_j ≤ e^(α/2), of ln(q·x / d·x); see
    Equations (18)–(21) of Cao et al. (2019). One step of Dinkelbach's method first moves the point of each solved
    program to bounds of the box. The lower end is the logarithm of the ratio there, rounded down. The upper end is ln λ
    for a λ with h(λ) = Σ_j max(e^(α/2) (q_j − λd_j), e^(−α/2) (q_j − λd_j)) ≤ 0, evaluated with outward rounding.
    Therefore an inaccurate solver cannot cause a wrong value.

    With `prune`, the pair with the largest h at the best lower end is solved next, until h proves all other pairs.

    Args:
        P: Row-stochastic matrix of shape (n, n): an array, a SciPy sparse matrix or a `MarkovChain`.
        alphas: Values of α in nats from 0 to 20, a number or shape (k,).
        method: "charnes-cooper" (one program of n + 1 variables for a pair) or "dinkelbach" (a few of n variables).
        solver: Name of any solver of linear programs.
        prune: Whether to leave out pairs that h proves; False to solve a program for every pair of distinct rows.
        options: Options of each solve; None for a feasibility tolerance of 1e-10. A time limit covers all solves.

    Returns:
        The brackets, pairs, points and counts.

    Raises:
        InputError: If P is not row-stochastic, if an α is out of range, or if the method or solver is unknown.
        SolverError: If a solve fails, or if the ends of a pair are more than 1e-9 apart; the message names the pair.

    >>> result = loss_by_programs([[0.8, 0.2], [0.2, 0.8]], [0.0, 1.0])
    >>> result.values.round(6).tolist()
    [0.0, 0.569445]
    """
    rows, numbers = _as_rows(P)
    values = _as_bounded_alphas(alphas)
    require_name(method, get_args(Method), "method")
    if not isinstance(solver, str):
        raise InputError("solver", "is not the name of a solver", value=solver, bound='a name such as "highs"')
    found, prune = find(solver), as_truth(prune, "prune")
    if found.takes != "rows":
        raise InputError("solver", "does not take linear programs", value=solver, bound="a solver of linear programs")
    if options is not None:
        require_kind(options, Options, "options", "an Options or None")
    options = (Options(feasibility=_TIGHT) if options is None else options).begun()
    task = _Task(rows, numbers, method, solver, options)
    maxima = [_maximise(task, alpha, prune) for alpha in values.tolist()]
    columns = [np.array(column) for column in zip(*maxima, strict=True)]
    lower, upper, pairs, x, programs, left_out, polished = (read_only(column) for column in columns)
    return LossByPrograms(read_only(values), lower, upper, pairs, x, programs, left_out, polished, method, found.name)


class _Task(NamedTuple):
    """The distinct rows (m, n) of a matrix, their numbers in it (m,), and how to solve the program of a pair."""

    rows: Floats
    numbers: Integers
    method: str
    solver: str
    options: Options


class _Maximum(NamedTuple):
    """The bracket of the largest loss at one α, the pair and the point that attain its lower end, and the counts."""

    lower: float
    upper: float
    pair: tuple[int, int]
    x: Floats
    programs: int = 0
    left_out: int = 0
    polished: int = 0


def _as_rows(P: Any) -> tuple[Floats, Integers]:
    """Return the distinct rows of a matrix as float64 of shape (m, n), and their numbers."""
    matrix = as_transition(P, "P")
    numbers = distinct_rows(matrix)
    rows = matrix[numbers].toarray() if sparse.issparse(matrix) else matrix[numbers]
    return np.ascontiguousarray(rows), numbers


def _as_bounded_alphas(alphas: ArrayLike) -> Floats:
    """Return values of α from 0 to `LARGEST_ALPHA`, of shape (k,)."""
    try:
        values = as_alphas(alphas)
    except InputError as error:
        raise rename_path(error, "alphas", "alpha") from error
    if values.ndim > 1 or values.size == 0:
        raise InputError(
            "alphas", "has the wrong shape", value=values.shape, bound="a number, or of shape (k,) with k >= 1"
        )
    values = values.reshape(-1).copy()
    for number, value in enumerate(values.tolist()):
        if not value <= LARGEST_ALPHA:
            raise InputError(
                f"alphas[{number}]",
                "is out of the range of linear programs",
                value=value,
                bound=f"between 0 and {LARGEST_ALPHA:g}",
                remedy="use LossFunction, which is exact for every alpha",
            )
    return values


def _maximise(task: _Task, alpha: float, prune: bool) -> _Maximum:
    """Solve and prove pairs of rows until all are proved; return the largest loss."""
    m, n = task.rows.shape
    best = _Maximum(0.0, 0.0, (-1, -1), np.ones(n))
    q, d = np.nonzero(~np.eye(m, dtype=bool))
    if not prune:
        for pair in zip(q.tolist(), d.tolist(), strict=True):
            best = _combine(best, _solve_pair(task, pair, alpha))
        return best
    # Without the slack, rounding would leave pairs unproved that tie with the best one.
    slack = (n + 64) * 4 * _UNIT_ROUNDOFF
    while len(q):
        ratio = math.exp(best.lower) * (1 + slack)
        heights = _heights(task.rows, q, d, ratio, alpha)
        # One pair is solved in any case, so that a point attains the value.
        if best.programs:
            proved = heights <= 0
            left_out = best.left_out + int(np.count_nonzero(proved))
            best = best._replace(left_out=left_out, upper=max(best.upper, _log_up(ratio)))
            q, d, heights = q[~proved], d[~proved], heights[~proved]
        if len(q):
            highest = int(np.argmax(heights))
            best = _combine(best, _solve_pair(task, (int(q[highest]), int(d[highest])), alpha))
            q, d = np.delete(q, highest), np.delete(d, highest)
    return best


def _combine(best: _Maximum, other: _Maximum) -> _Maximum:
    """Return the larger of two maxima, with the larger upper end and the sums of the counts."""
    larger = other if other.lower > best.lower or best.pair == (-1, -1) else best
    return larger._replace(
        upper=max(best.upper, other.upper),
        programs=best.programs + other.programs,
        left_out=best.left_out + other.left_out,
        polished=best.polished + other.polished,
    )


def _solve_pair(task: _Task, pair: tuple[int, int], alpha: float) -> _Maximum:
    """Solve the program of a pair of distinct rows, and prove a bracket of its maximum."""
    q, d = task.rows[pair[0]], task.rows[pair[1]]
    named = (int(task.numbers[pair[0]]), int(task.numbers[pair[1]]))
    place = f"rows {named[0]} and {named[1]} at alpha = {alpha!r}"
    try:
        solution = solve_fractional(row_pair_program(q, d, alpha), task.method, task.solver, task.options)
    except (SolverError, InfeasibleError, UnboundedError) as error:
        raise SolverError(f"{place}: {error}") from error
    if solution.x is None:
        raise SolverError(f"{place}: {solution.solver} returned no point")
    x, lower, polished = _polish(q, d, solution.x, alpha)
    upper = _prove_upper(task.rows, pair, lower, alpha)
    if not upper - lower <= _MAX_BRACKET:
        raise SolverError(
            f"{place}: the point of {task.solver} has a loss of {lower!r}, but no upper bound within {_MAX_BRACKET:g} "
            "of it is proved; use another solver"
        )
    return _Maximum(lower, upper, named, x, solution.programs, 0, int(polished))


def _polish(q: Floats, d: Floats, x: Floats, alpha: float) -> tuple[Floats, float, bool]:
    """Move a point to bounds of the box by one step of Dinkelbach's method.

    Return the better of both points, its loss rounded down, and whether the step improved the point.
    """
    # For a tiny α only the point of equal entries is certain to lie in the box.
    low = min(math.exp(-alpha / 2) * (1 + _FEW_ROUNDINGS), 1.0)
    high = max(math.exp(alpha / 2) * (1 - _FEW_ROUNDINGS), 1.0) if low < 1.0 else 1.0
    x = np.clip(x, low, high)
    before = _loss_down(q, d, x)
    ratio = math.fsum((q * x).tolist()) / math.fsum((d * x).tolist())
    moved = np.where(q - ratio * d > 0, high, low)
    after = _loss_down(q, d, moved)
    return (moved, after, True) if after > before else (x, before, False)


def _loss_down(q: Floats, d: Floats, x: Floats) -> float:
    """Return a lower bound of ln(q·x / d·x), at least 0, which the point of equal entries attains."""
    ratio = math.fsum((q * x).tolist()) / math.fsum((d * x).tolist()) * (1 - _FEW_ROUNDINGS)
    return max(math.nextafter(math.log(ratio), -math.inf), 0.0)


def _log_up(ratio: float) -> float:
    """Return an upper bound of ln λ for λ ≥ 1."""
    return math.nextafter(math.log(ratio) * (1 + _FEW_ROUNDINGS), math.inf)


def _prove_upper(rows: Floats, pair: tuple[int, int], lower: float, alpha: float) -> float:
    """Return a proved upper bound of the loss of a pair near `lower`, or infinity if there is none within reach."""
    q, d = np.array([pair[0]]), np.array([pair[1]])
    share = 8 * _UNIT_ROUNDOFF
    while share <= _MAX_BRACKET:
        ratio = math.exp(lower) * (1 + share)
        if _heights(rows, q, d, ratio, alpha)[0] <= 0:
            return _log_up(ratio)
        share *= 2
    return math.inf


def _heights(rows: Floats, q: Integers, d: Integers, ratio: float, alpha: float) -> Floats:
    """Return upper bounds of e^(α/2) h(λ) for the pairs (q, d) of rows and the ratio λ ≥ 1, of the shape of `q`.

    A term is t = q_j − λd_j, multiplied by e^α if it is positive. Each computed t is increased by a bound of its
    rounding error, so that its sign is safe. The sums of positive and of negative terms are then rounded outwards.
    """
    factor = math.exp(alpha) * (1 + _FEW_ROUNDINGS)
    sum_error = (rows.shape[1] + 8) * _UNIT_ROUNDOFF * (1 + _FEW_ROUNDINGS)
    heights = np.empty(len(q))
    with np.errstate(under="ignore"):
        for part in _blocks(len(q), rows.shape[1]):
            numerator, denominator = rows[q[part]], ratio * rows[d[part]]
            terms = numerator - denominator + 4 * _UNIT_ROUNDOFF * (numerator + denominator)
            above = np.maximum(terms, 0.0).sum(axis=1) * (1 + sum_error)
            below = np.maximum(-terms, 0.0).sum(axis=1) * (1 - sum_error)
            # The last difference has one rounding, of at most this share of its larger term.
            heights[part] = factor * above - below + 2 * _UNIT_ROUNDOFF * below + _UNDERFLOW
    return heights


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Yield slices of rows of the given width that fit into `_BLOCK_ENTRIES`."""
    step = max(1, _BLOCK_ENTRIES // width)
    yield from (slice(start, start + step) for start in range(0, count, step))
