"""Bounds of pairs at every future step, and the largest scale of a release that keeps a bound.

E is the matrix of bounds of one release and T_i(B) the amount that the releases before it add under the matrix P_i,
see `mechdesign.leakage._transport`. T_i is monotone, so one matrix B ≥ E with E + T_i(B) ≤ B for every i bounds each
pair at every step, in every order of the matrices: an *invariant*. The search for it is not part of the proof.

A *witness* is a set S of pairs and numbers b on S with E + T(b + c) ≥ b + c + a margin for every real c, if all other
pairs have arbitrary bounds. Then the recursion has no finite bound on S. The leakage itself may have one: after m steps
it is at most (m − 1)·max E plus the amount that one step with the matrix P^m reveals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import splu

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Flags, Floats, Integers, read_only
from mechdesign.base._check import as_integer
from mechdesign.base._deadline import Deadline, ProgressCallback
from mechdesign.base._errors import InputError, SolverError
from mechdesign.leakage._bounds import ULP, add, as_bounds, close, up
from mechdesign.leakage._correlations import Correlation, step_functions
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._matrices import bound_pairs, labels_in, rows_of
from mechdesign.leakage._transitions import as_target
from mechdesign.leakage._transport import Rows, Slopes, enclose, ends_of_any, step

# Successive invariants differ by at most this share at the end, and the number of matrices that are tried for it.
_TOLERANCE = 1e-9
_ROUNDS = 120

# Ends of the limit that differ by at most this share are near enough.
_NEAR = 1e-5

# Rounds that bound the limit of the recursion from below, and the number of pairs of rows in the steps of each.
_STEPS = 10
_MOST_PROGRAMS = 6_000

# The growth per step, in nats, that a witness must show: far above the rounding of a step.
_MARGIN = 1e-11

# The search adds the first amount [nats] to E, which absorbs rounding, and raises it up to the second one. Both grow in
# proportion to bounds that exceed the third number [nats].
_RAISED = 1e-11
_MOST_RAISED = 1e-7
_RAISED_ABOVE = 1e4

# Parts of the largest conceivable bound of a pair that can shrink: starting points from above.
_PARTS = (1e-3, 1e-2, 0.1, 0.3, 1.0, 4.0, 16.0)

# A step after the powers is followed by another one only if it lowers some bound by this share.
_WORTHWHILE = 1e-2

# Products of matrices: their number at one length, the lengths, and the least entry of a product.
_MOST_PRODUCTS = 64
_LENGTHS = 64
_LEAST_ENTRY = 1e-250

# The z of a point that stands for 0, in logarithms.
_FAR = 1e300

# The relative error of the largest scale, and the share of its upper end at which the search gives up.
_SCALE_TOLERANCE = 1e-6
_LEAST_SCALE = 1e-30
# The largest bound of a scaled release.
_WIDEST = 1e299
# The logarithm of the ratio of two scales that are tried one after the other is at most this.
_LONGEST_STEP = 14.0


@dataclass(frozen=True, eq=False)
class PairLimits:
    """Bounds of every pair of states that hold at every future step.

    Attributes:
        bounds: Upper bounds in nats, shape (n, n), rounded up; `math.inf` for a pair without a bound.
        lower: Numbers that the limit of the recursion is not below, shape (n, n), rounded down. A power of the matrix
            may bound the leakage itself below them.
        proved: A sentence that says what proves the bounds, and for which sequences of matrices.

    >>> from mechdesign.leakage import supremum
    >>> supremum([[0, 0.2], [0.2, 0]], backward=[[0.8, 0.2], [0.2, 0.8]]).bounds.round(4).tolist()
    [[0.0, 0.4907], [0.4907, 0.0]]
    """

    bounds: Floats
    lower: Floats
    proved: str
    _reasons: dict[str, NDArray[np.object_]] = field(repr=False)

    def reason(self, s: int, t: int) -> str:
        """Return what bounds the pair (s, t) at every future step, or why it has no bound.

        Args:
            s: The state of the numerator.
            t: The state of the denominator.

        Returns:
            A sentence, or one sentence for each direction.

        Raises:
            InputError: A state is none from 0 to n − 1.
        """
        s, t = (as_integer(each, name, 0, len(self.bounds) - 1) for each, name in ((s, "s"), (t, "t")))
        found = (f"{direction}: {reasons[s, t]}" for direction, reasons in self._reasons.items())
        return "; ".join(found) or self.proved


def supremum_of_pairs(
    epsilon: Any, backward: Sequence[LossFunction | None], forward: Sequence[LossFunction | None]
) -> PairLimits:
    """Return bounds of every pair that hold at every future step if every release has the given bounds.

    Args:
        epsilon: Bounds E of one release in nats, shape (n, n).
        backward: The loss functions of the candidates for Pr(state before | state now).
        forward: The loss functions of the candidates for Pr(next state | state now).

    Returns:
        The bounds, numbers that the limit of the recursion is not below, and what was proved.

    Raises:
        InputError: If a correlation has no matrix, or has another number of states.
        SolverError: If neither an invariant nor a witness was found.
    """
    functions = (("backward", backward), ("forward", forward))
    known = [(path, loss) for path, losses in functions for loss in losses if loss is not None]
    labels = labels_in(known)
    E = close(as_bounds(epsilon, "epsilon", labels))
    rows: dict[str, list[Rows]] = {}
    for path, loss in known:
        rows.setdefault(path, []).append(rows_of(loss, labels, path, len(E), "epsilon"))
    upper, lower = E, E
    proved: list[str] = []
    reasons: dict[str, NDArray[np.object_]] = {}
    for path, each in rows.items():
        most, least, said, reasons[path] = _bound_amounts(E, each, path)
        upper, lower = add(upper, most), np.maximum(lower, _round_down(lower + least))
        proved.append(f"{path}: {said}")
    return PairLimits(read_only(upper), read_only(lower), "; ".join(proved) or "the releases are independent", reasons)


def _round_down(values: Floats) -> Floats:
    return np.where(np.isfinite(values) & (values != 0), np.nextafter(values, -np.inf), values)


def _bound_amounts(E: Floats, rows: list[Rows], path: str) -> tuple[Floats, Floats, str, NDArray[np.object_]]:
    """Return both ends of what releases in one direction add to each pair, a sentence about them, and the reasons."""
    reasons = np.full(E.shape, "an invariant bounds it", dtype=object)
    upper, lower = _recursion_limit(E, rows, reasons, path)
    powers = _power_bounds(E, rows)
    # Both bound the leakage, so that a further step of the recursion does.
    while (powers < (1 - _WORTHWHILE) * upper).any():
        reasons[powers < upper] = "a power of the matrix bounds it"
        upper = np.minimum(upper, powers)
        powers = _take_largest(rows, close(add(E, upper))).upper
    reasons[np.isinf(E)] = "one release has no bound"
    off = ~np.eye(len(E), dtype=bool)
    unbounded = int(np.isinf(E + upper)[off].sum())
    by_power = int((reasons[off] == "a power of the matrix bounds it").sum())
    counts = {
        "an invariant": int(off.sum()) - unbounded - by_power,
        "a power of the matrix": by_power,
        "no bound": unbounded,
    }
    said = [f"{what} for {count} pair{'s' * (count > 1)}" for what, count in counts.items() if count]
    order = "the same matrix at every step" if len(rows) == 1 else f"every order of {len(rows)} matrices"
    return upper, lower, f"{', '.join(said) or 'no pairs'}, for {order}", reasons


# ---- the limit of the recursion --------------------------------------------------------------------------------------


class _Largest(NamedTuple):
    """The largest T_i(B) of several matrices: both ends, the number i, and the slopes of e^T in e^B."""

    upper: Floats
    lower: Floats
    number: Integers
    slopes: tuple[Integers, Integers, Integers, Integers, Floats]


def _take_largest(rows: list[Rows], B: Floats) -> _Largest:
    upper, lower = np.zeros_like(B), np.zeros_like(B)
    numbers = np.zeros(B.shape, dtype=np.int64)
    known: list[tuple[int, Slopes]] = []
    for number, matrix in enumerate(rows):
        slopes: Slopes = []
        own_upper, own_lower = step(matrix, B, None, slopes)
        known.append((number, slopes))
        numbers[own_upper > upper] = number
        upper, lower = np.maximum(upper, own_upper), np.maximum(lower, own_lower)
    kept: Slopes = []
    for number, slopes in known:
        for s, t, j, k, share in slopes:
            used = numbers[s, t] == number
            kept.append((s[used], t[used], j[used], k[used], share[used]))
    return _Largest(upper, lower, numbers, _join(kept))


def _join(slopes: Slopes) -> tuple[Integers, Integers, Integers, Integers, Floats]:
    none = np.zeros(0, dtype=np.int64)
    s, t, j, k, share = zip((none, none, none, none, np.zeros(0)), *slopes, strict=True)
    return (*map(np.concatenate, (s, t, j, k)), np.concatenate(share))  # type: ignore[return-value]


def _recursion_limit(E: Floats, rows: list[Rows], reasons: NDArray[np.object_], path: str) -> tuple[Floats, Floats]:
    """Return both ends of what the recursion adds in the limit, and write the reasons of pairs without a bound.

    The matrices that are tried come from Newton's method on e^B, from the recursion, and from above.
    """
    off = ~np.eye(len(E), dtype=bool)
    endless = np.isinf(E)
    _add_escapes(rows, endless, reasons)
    below = X = np.where(endless, np.inf, E)
    proved = carried = None
    raised, searched = _RAISED, False
    starts: Iterator[Floats] = iter(())
    for count in range(1, _ROUNDS + 1):
        found = _take_largest(rows, X)
        if X is below:
            below = np.where(endless, np.inf, np.maximum(below, _round_down(E + found.lower)))
        if (add(E, found.upper) <= X)[off].all():
            last = np.full(E.shape, np.inf) if proved is None else proved
            proved, carried = np.minimum(last, X), found.upper if carried is None else np.minimum(carried, found.upper)
            with np.errstate(invalid="ignore"):
                if not (last - proved > _TOLERANCE * (1 + proved)).any():
                    break
        trial = _newton(_raise(E, raised), X, found) if count % 8 else None
        if trial is None and proved is None and not searched:
            searched = True
            pairs, b = _growing(rows, E, endless)
            starts = _from_above(rows, E, endless, b)
            if pairs.any():
                reasons[pairs] = f"a witness: {int(pairs.sum())} pairs drive each other upward without end"
                endless = endless | pairs
                _add_escapes(rows, endless, reasons)
                below = X = np.where(endless, np.inf, below)
                searched = False
                continue
        if trial is not None:
            X = np.where(endless, np.inf, np.maximum(close(trial), below))
        elif proved is not None and carried is not None:
            X, raised = close(np.minimum(proved, add(E, carried))), min(10 * raised, _MOST_RAISED)
        else:
            X = np.maximum(next(starts, below), below) if count % 3 == 0 else below
    if proved is None or carried is None:
        s, t = np.unravel_index(np.argmax(np.where(endless, -1.0, below)), E.shape)
        raise SolverError(
            f"{path}: not decided whether the pair ({s}, {t}) has a bound at every future step: at least "
            f"{float(below[s, t])!r} nats, and neither an invariant nor a witness was found. The bounds are close to "
            "those that diverge: scale them up or down a little"
        )
    lower = _raise_lower(rows, E, below, np.where(endless, np.inf, proved))
    carried = _from_below(rows, E, lower, np.where(endless, np.inf, proved), carried)
    with np.errstate(invalid="ignore"):
        return np.where(endless, np.inf, carried), np.where(endless, np.inf, np.maximum(_round_down(lower - E), 0))


def _from_below(rows: list[Rows], E: Floats, lower: Floats, proved: Floats, carried: Floats) -> Floats:
    """Return T of an invariant near the lower ends, if `proved` is not near: the search may pass the least fixed point.

    `carried` is T of the invariant `proved`; the least of the amounts that both carry is returned.
    """
    X, raised = lower, _RAISED
    while raised <= _MOST_RAISED and not _are_near(lower, proved):
        trial = _newton(_raise(E, raised), X, _take_largest(rows, X))
        if trial is None:
            break
        X, raised = np.maximum(close(trial), lower), 10 * raised
        upper = _take_largest(rows, X).upper
        if (add(E, upper) <= X)[~np.eye(len(E), dtype=bool)].all():
            proved, carried = np.minimum(proved, X), np.minimum(carried, upper)
    return carried


def _raise(E: Floats, amount: float) -> Floats:
    """Return bounds plus an amount of nats, which is larger for bounds whose rounding would absorb it."""
    return E + amount * max(1.0, float(E[np.isfinite(E)].max()) / _RAISED_ABOVE)


def _add_escapes(rows: list[Rows], endless: Flags, reasons: NDArray[np.object_]) -> None:
    """Add the pairs (s, t) where s may come from a state without a bound to any state before t; write the reasons."""
    while True:
        new: Flags = np.any([_escapes(matrix, ~endless) for matrix in rows], axis=0) & ~endless
        np.fill_diagonal(new, False)
        if not new.any():
            return
        reasons[new] = "the first row has a state without a finite bound to any state of the second row"
        endless |= new


def _newton(E: Floats, B: Floats, found: _Largest) -> Floats | None:
    """Return the fixed point of e^E e^T with T and its slopes as at B; None where these slopes have no finite one."""
    free = np.isfinite(B) & ~np.eye(len(B), dtype=bool)
    number = np.full(B.shape, -1)
    number[free] = np.arange(free.sum())
    s, t, j, k, share = found.slopes
    row, column = number[s, t], number[j, k]
    both = (row >= 0) & (column >= 0)
    size = int(free.sum())
    slopes = sparse.csr_array((share[both], (row[both], column[both])), shape=(size, size))
    # e^(E + T − B): the growth of each pair. A product of e^50 and a share is far above any fixed point.
    growth = np.exp(np.minimum(E[free] + found.upper[free] - B[free], 50))
    system = sparse.csc_array(sparse.eye_array(size) - sparse.diags_array(growth) @ slopes)
    try:
        factor: Floats = splu(system).solve(growth * (1 - slopes.sum(axis=1)))
    except RuntimeError:
        # The matrix is exactly singular.
        return None
    if not (np.isfinite(factor).all() and (factor > 0).all()):
        return None
    fixed = B.copy()
    fixed[free] = np.maximum(B[free] + np.log(factor), E[free])
    return fixed


# ---- pairs that grow without end -------------------------------------------------------------------------------------


def _meets(matrix: Rows, pairs: Flags) -> Flags:
    """Return whether j has one of the pairs (j, k) for a state k before t: shape (n, n), entry (j, t)."""
    met: Flags = pairs.astype(np.float32) @ matrix.support.T > 0
    # A row that may be anything may be the worst state.
    met[:, matrix.any] = np.all(pairs, axis=1, keepdims=True)
    return met


def _escapes(matrix: Rows, pairs: Flags) -> Flags:
    """Return whether s may come from a state j that has none of the pairs (j, k), k before t: shape (n, n)."""
    missed = (~_meets(matrix, pairs)).astype(np.float32)
    escapes: Flags = matrix.support @ missed > 0
    escapes[matrix.any] = missed.any(axis=0)
    return escapes


def _rounds_to_catch(rows: list[Rows], endless: Flags) -> Integers:
    """Return the round in which t has met s whatever s does, shape (n, n); −1 if never.

    Only pairs of the last kind may grow without end, because a met pair costs nothing more.
    """
    caught = np.eye(len(endless), dtype=bool)
    rounds = np.where(caught, 0, -1)
    for count in range(1, caught.size + 1):
        new = ~caught & ~endless & ~np.any([_escapes(matrix, caught) for matrix in rows], axis=0)
        if not new.any():
            break
        rounds[new] = count
        caught |= new
    return rounds


def _from_above(rows: list[Rows], E: Floats, endless: Flags, b: Floats) -> Iterator[Floats]:
    """Yield ever larger matrices; the last ones are invariants if the growth of c + b is less than 0 everywhere."""
    rounds = _rounds_to_catch(rows, endless)
    grows = (rounds < 0) & ~endless
    least = min(float(matrix.log.min()) for matrix in rows)
    most = float(np.where(endless, 0, E).max()) + math.log(len(E)) - least
    offsets = np.where(grows, b, 0) - b[grows].min(initial=0)
    for part in _PARTS:
        above = np.where(grows, part * most * 4 * (1 + rounds.max()) + offsets, part * most * rounds)
        yield close(np.where(endless, np.inf, above))


def _growth(rows: list[Rows], S: Flags, b: Floats, endless: Flags) -> Floats:
    """Return the limit of T(b + c) − c as c rises, rounded down, on S; pairs outside S and `endless` cost nothing."""
    s, t = np.nonzero(S)
    free = ~S & ~endless
    cost = np.where(S, b, np.where(free, -np.inf, np.inf))
    growth = np.full(S.shape, -np.inf)
    for matrix in rows:
        kept = ~_meets(matrix, free)
        unknown = np.isin(s, matrix.any) | np.isin(t, matrix.any)
        a, z = s[~unknown], t[~unknown]
        growth[a, z] = np.maximum(growth[a, z], enclose(matrix, a, z, np.where(S, b, np.inf), kept[:, z].T)[1])
        if len(matrix.any):
            known = np.diff(matrix.ptr) > 0
            (_, ahead), (_, back) = ends_of_any(matrix, cost)
            of_any = np.full(S.shape, cost.max())
            of_any[np.ix_(known, ~known)], of_any[np.ix_(~known, known)] = ahead[known, None], back[known]
            of_any[np.ix_(known, known)] = -np.inf
            growth = np.maximum(growth, of_any)
    return np.where(S, growth, -np.inf)


def _growing(rows: list[Rows], E: Floats, endless: Flags) -> tuple[Flags, Floats]:
    """Return the pairs of a witness and its offsets b; without a witness no pairs, and offsets that shrink.

    The growth is iterated; pairs whose average growth is positive are candidates, and pairs that fail the test leave.
    """
    S = (_rounds_to_catch(rows, endless) < 0) & ~endless
    own = np.where(S, E, 0.0)
    history = [np.where(S, 0.0, -np.inf)]
    # Slow growth shows late, which few states can wait for.
    checks = (4, 2 * min(len(E), 12) + 4, 60 if len(E) <= 12 else 28)
    for count in range(1, checks[-1] + 1 if S.any() else 1):
        history.append(own + _growth(rows, S, history[-1], endless))
        if (history[-1][S] < history[-2][S]).all():
            break
        if count not in checks:
            continue
        half = count // 2
        with np.errstate(invalid="ignore"):
            rate = np.where(S, (history[-1] - history[half]) / (count - half), -np.inf)
        for least in (2 * _MARGIN, rate.max() / 2):
            grows = S & (rate > least)
            b = np.max([each - number * least for number, each in enumerate(history[half:])], axis=0)
            while grows.any():
                keep = grows & (_round_down(own + _growth(rows, grows, b, endless)) >= b + _MARGIN)
                if (keep == grows).all():
                    return grows, b
                grows = keep
    return np.zeros_like(S), history[max(len(history) - 2, 0)]


# ---- lower ends of the limit -----------------------------------------------------------------------------------------


class _Point(NamedTuple):
    """The rows of a pair and a point where T is attained: x on the states of s, z on those of t. All in logarithms.

    `size` bounds the terms, and the number of roundings.
    """

    pair: tuple[int, int]
    J: Integers
    p: Floats
    K: Integers
    q: Floats
    x: Floats
    z: Floats
    size: float

    def amount(self, B: Floats, keeps_x: bool) -> tuple[float, Integers, Integers, Floats]:
        """Return a lower bound of T(B), concave in e^B, and the shares of it that entries (j, k) of B carry.

        Either x is kept and z is as small as the cone allows, or z is kept and x is as large.
        """
        between = B[np.ix_(self.J, self.K)]
        if keeps_x:
            needs = self.x[:, None] - between
            at = needs.argmax(axis=0)
            top, bottom = self.p + self.x, self.q + needs[at, np.arange(len(at))]
            j, k, logs = self.J[at], self.K, bottom
        else:
            # Where z is 0, x is 0 too, even if it has no bound.
            grants = np.where(self.z > -np.inf, between + np.maximum(self.z, -_FAR), -np.inf)
            at = grants.argmin(axis=1)
            top, bottom = self.p + grants[np.arange(len(at)), at], self.q + self.z
            j, k, logs = self.J, self.K[at], top
        above, below = float(np.logaddexp.reduce(top)), float(np.logaddexp.reduce(bottom))
        size = self.size + float(between[between < np.inf].max(initial=0.0)) + abs(above) + abs(below)
        total = below if keeps_x else above
        if not math.isfinite(total):
            return 0.0, j, k, np.zeros(len(j))
        return max(above - below - 8 * ULP * size, 0.0), j, k, np.exp(logs - total)


def _points(rows: list[Rows], B: Floats, found: _Largest) -> list[_Point]:
    """Return a point for each pair from the shares that the entries of B carry."""
    s, t, j, k, share = found.slopes
    order = np.lexsort((t, s))
    s, t, j, k, share = s[order], t[order], j[order], k[order], share[order]
    ends = np.flatnonzero(np.diff(s * len(B) + t, append=-1)) + 1
    points = []
    for first, stop in zip([0, *ends], ends, strict=False):
        pair, part = (int(s[first]), int(t[first])), slice(first, stop)
        matrix = rows[found.number[pair]]
        J, p = _select_row(matrix, pair[0], j[part])
        K, q = _select_row(matrix, pair[1], k[part])
        with np.errstate(divide="ignore"):
            x = np.log(np.bincount(j[part], share[part], minlength=len(B))[J]) - p
        z = (x[:, None] - B[np.ix_(J, K)]).max(axis=0)
        size = 800 + len(J) + len(K) + sum(float(np.abs(each[each > -np.inf]).max()) for each in (x, z))
        points.append(_Point(pair, J, p, K, q, x, z, size))
    return points


def _select_row(matrix: Rows, state: int, used: Integers) -> tuple[Integers, Floats]:
    """Return the states and logarithms of a row; of a row that may be anything, the one state that is used."""
    part = slice(matrix.ptr[state], matrix.ptr[state + 1])
    return (used[:1], np.zeros(1)) if state in matrix.any else (matrix.col[part], matrix.log[part])


def _are_near(below: Floats, above: Floats) -> bool:
    """Return whether lower and upper ends of the limit, both infinite or neither, are near enough."""
    fine = np.isfinite(above)
    return bool((above[fine] - below[fine] <= _NEAR * (1 + above[fine])).all())


def _raise_lower(rows: list[Rows], E: Floats, below: Floats, above: Floats) -> Floats:
    """Return numbers that the limit of the recursion is not below, from `below` upward to `above` at most.

    H is T at fixed points, concave in e^B and at most T. Let b be below the limit and v above b, with E + H(b) > b and
    E + H(v) ≥ v wherever v > b. Then E + H carries each point of the line from e^b to e^v, but its end, strictly above
    itself. So the limit is not below v. The points of H are those of T at b, and b rises in rounds.
    """
    endless = np.isinf(above)
    steps = _MOST_PROGRAMS // (below.size + 100)
    for number in range(_STEPS):
        for _ in range(min(2**number, steps)):
            below = np.where(endless, np.inf, np.maximum(below, _round_down(E + _take_largest(rows, below).lower)))
        found = _take_largest(rows, below)
        chosen = []
        for point in _points(rows, below, found):
            amounts = [point.amount(above, keeps_x)[0] for keeps_x in (False, True)]
            chosen.append((point, amounts[1] > amounts[0]))
        raised = _raise_to(E, chosen, below, above)
        below = np.where(endless, np.inf, np.maximum(raised, _round_down(E + found.lower)))
        if _are_near(below, above):
            break
    return below


def _raise_to(E: Floats, chosen: list[tuple[_Point, bool]], below: Floats, above: Floats) -> Floats:
    """Return the largest v found with the property that `_raise_lower` demands."""
    fine = np.isfinite(above)

    def at(B: Floats) -> _Largest:
        amounts = np.where(fine, below, 0) - np.where(fine, E, 0)
        parts: Slopes = []
        for point, keeps_x in chosen:
            amounts[point.pair], j, k, share = point.amount(B, keeps_x)
            s, t = (np.full(len(j), state) for state in point.pair)
            parts.append((s, t, j, k, share))
        return _Largest(amounts, amounts, np.zeros(0, dtype=np.int64), _join(parts))

    if not chosen:
        return below
    grows = fine & (_round_down(E + at(below).lower) > below)
    for _ in range(_STEPS // 2):
        trial = _newton(E, above, at(above))
        if trial is None:
            break
        above = np.maximum(np.minimum(above, trial), below)
    for share in 10.0 ** np.arange(-12, 0):
        v = below.copy()
        v[grows] = np.maximum(above[grows] + np.log1p(share * np.expm1(below[grows] - above[grows])), below[grows])
        if (_round_down(E + at(v).lower) >= v)[grows].all():
            return v
    return below


# ---- powers of the matrix --------------------------------------------------------------------------------------------


def _power_bounds(E: Floats, rows: list[Rows]) -> Floats:
    """Return the least (m − 1)·max E + max_j ln(P^m_sj / P^m_tj) over m, rounded up: what earlier releases add.

    The last m − 1 releases before this one add at most (m − 1)·max E, and the earlier ones are seen through P^m. Of
    several matrices the largest over their products counts. Rows that may be anything have no powers.
    """
    n, most = len(E), float(E.max())
    best = np.where(np.eye(n, dtype=bool), 0.0, np.inf)
    if any(len(matrix.any) for matrix in rows):
        return best
    factors = [_dense(matrix) for matrix in rows]
    least = min(float(factor[factor > 0].min()) for factor in factors)
    products = [np.eye(n)]
    for m in range(1, max(_LENGTHS, 4 * n) + 1):
        # No product of two entries may underflow.
        smallest = min(float(product[product > 0].min()) for product in products)
        if len(products) * len(factors) > _MOST_PRODUCTS or smallest * least < _LEAST_ENTRY:
            break
        products = [product @ factor for product in products for factor in factors]
        # Each factor errs by n + 1 roundings, and by those of logarithms of at most 745 nats.
        slack = 8 * ULP * m * (n + 800)
        seen = np.max([_log_ratios(product) for product in products], axis=0) + slack
        late = np.full((n, n), math.nextafter((m - 1) * most, math.inf) if m > 1 else 0.0)
        best = np.minimum(best, add(late, seen))
        np.fill_diagonal(best, 0.0)
        if m * most >= best.max():
            break
    return best


def _dense(matrix: Rows) -> Floats:
    return sparse.csr_array((np.exp(matrix.log), matrix.col, matrix.ptr), shape=(matrix.n, matrix.n)).toarray()


def _log_ratios(product: Floats) -> Floats:
    """Return max_j ln(P_sj / P_tj) over the entries P_sj > 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(product)
        return np.array([np.where(row > -np.inf, row - logs, -np.inf).max(axis=1) for row in logs])


# ---- the largest scale -----------------------------------------------------------------------------------------------


@in_own_arithmetic
def largest_scale(
    shape: ArrayLike,
    alpha: float | ArrayLike,
    releases: int,
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    progress: ProgressCallback | None = None,
) -> float:
    """Return the largest c so that releases with the bounds c·shape leak at most α·shape about every pair, at any time.

    The result is rounded down, by about a millionth, and checked with `temporal`: a metric requirement of ε = c times
    the distances keeps a day of releases below α times the distances.

    Args:
        shape: Bounds of pairs, shape (n, n), such as distances. They are closed along paths. Infinite entries are pairs
            without a bound.
        alpha: The limit of each pair as a multiple of its shape, a number > 0; or the limits, shape (n, n).
        releases: The number of releases, at least 1.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.
        progress: Called with a `Progress` before the leakage at each scale is computed, some five times.

    Returns:
        The scale c > 0.

    Raises:
        InputError: An argument is not valid, no pair limits the scale, or no scale > 0 keeps the limits.
        SolverError: The programs of a pair of states do not determine its leakage within 1e-9 relative.

    >>> walk = [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]]
    >>> round(largest_scale([[0, 1, 2], [1, 0, 1], [2, 1, 0]], alpha=2, releases=13, backward=walk, forward=walk), 3)
    0.623
    """
    releases = as_integer(releases, "releases", 1)
    chains = {"backward": step_functions(backward, releases, "backward")}
    chains["forward"] = step_functions(forward, releases, "forward")
    known = [(path, loss) for path, each in chains.items() for chain in each for loss in chain if loss]
    labels = labels_in(known)
    E = close(as_bounds(shape, "shape", labels))
    for path, loss in known:
        rows_of(loss, labels, path, len(E), "shape")
    if np.ndim(alpha) == 0:
        limits = _round_down(np.where(E > 0, E, 0) * as_target(alpha))  # type: ignore[arg-type]
    else:
        limits = as_bounds(alpha, "alpha", labels)
        if len(limits) != len(E):
            raise InputError("alpha", "has another number of states", value=len(limits), bound=f"{len(E)}, as in shape")
    counts = np.isfinite(limits) & (E > 0)
    if not counts.any():
        bound = "a pair with a shape > 0 and a finite limit"
        raise InputError("shape", "does not limit the scale, which is infinite", bound=bound)

    def excess(scale: float) -> tuple[float, float]:
        """Return the logarithm of the largest leakage as a multiple of its limit, and the share of one release in it.

        The first is at most 0 only if no leakage exceeds its limit.
        """
        bounds = np.where(np.isinf(E), np.inf, up(np.where(np.isinf(E), 0.0, E) * scale))
        leaked = bound_pairs([bounds] * releases, {"backward": backward, "forward": forward}, None).max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio: Floats = np.nan_to_num(leaked / limits, nan=0.0, posinf=np.inf)
            shares = bounds / limits
            values = np.log(ratio)
        s, t = np.unravel_index(values.argmax(), values.shape)
        # An infinite leakage, and one above 0, is so at every scale.
        endless = np.isinf(leaked[s, t]) or limits[s, t] == 0
        if values[s, t] > 0 and (endless or scale <= _LEAST_SCALE * most):
            what = "is exceeded at every scale > 0" if endless else f"is exceeded even at the scale {scale:.3g}"
            bound, remedy = f"more than {limits[s, t]:.6g} nats", "give a shape with other pairs, or fewer releases"
            raise InputError(f"alpha[{s},{t}]", what, bound=bound, remedy=remedy)
        return float(values[s, t]), float(shares[s, t])

    # The factor makes up for the roundings of the quotient and of the bounds. No bound overflows.
    with np.errstate(over="ignore"):
        most = max(float((limits[counts] / E[counts]).min()) * (1 - 4 * ULP), _LEAST_ENTRY)
        most = min(most, float(_WIDEST / E[np.isfinite(E)].max()), _WIDEST)
    return _largest_root(excess, most, most / math.sqrt(releases), Deadline(progress=progress))


def _largest_root(
    excess: Callable[[float], tuple[float, float]], most: float, scale: float, deadline: Deadline
) -> float:
    """Return the largest scale up to `most` with an excess of at most 0, less a millionth of it at most.

    The excess rises with the scale, nearly along a line in logarithms. If the scale rises by a share d, e^excess rises
    by d times the second number at least: the release itself leaks so much more, and the others no less.
    """
    below, above, found = -math.inf, math.inf, 0.0
    points: list[tuple[float, float]] = []
    for count in itertools.count(1):
        deadline.tell(f"leakage at a scale of {scale:.7g}", count)
        (value, share), place = excess(scale), math.log(scale)
        if value > 0:
            above = place
        else:
            below, found = place, scale
            if scale == most or value >= -_SCALE_TOLERANCE * share:
                break
        if above - below <= _SCALE_TOLERANCE:
            break
        # The polynomial through the last three points; at first the excess rises as the scale does.
        points = [*points[-2:], (value, place)]
        known = points if len(points) > 1 else [*points, (value + 1, place + 1)]
        goal = -_SCALE_TOLERANCE * share / 2
        guess = sum(
            at * math.prod((goal - other) / (each - other) for other, _ in known if other != each) for each, at in known
        )
        high = min(above, math.log(most))
        low = max(below, high - _LONGEST_STEP)
        if not low < guess < above or count % 8 == 0:
            guess = (low + high) / 2
        guess = min(max(guess, below + _SCALE_TOLERANCE / 2), above - _SCALE_TOLERANCE / 2)
        scale = most if guess >= math.log(most) else math.exp(guess)
    return found
