"""The leakage T(B) that one step of a chain passes on, pair by pair, between proved ends.

For rows s and t of a stochastic matrix P and a matrix B of bounds of pairs (see `mechdesign.leakage._bounds`),

    T(B)(s, t) = max ln (P_s·x)/(P_t·x) over all x ≥ 0 with x_j ≤ e^{B(j,k)} x_k.

By duality it is the value of a transport with gains, if B is closed along paths:

    e^{T(B)(s, t)} = min over f ≥ 0 of max over k of Σ_j e^{B(j,k)} f_jk / P_t(k), where Σ_k f_jk = P_s(j).

What s has at j is moved to states k of t at the price e^{B(j,k)}. States outside the supports of both rows do not
matter. Every plan f proves an upper bound, and every x a lower one. No number of a solver is a result: its plan is
divided by its sums and evaluated with outward rounding, and so is the x of its multipliers. An inaccurate solver makes
the ends differ, and ends that differ by more than 1e-9 (1 + T) raise an error.

All prices are divided by e^base with base = max_j [ln P_s(j) − ln Σ_k P_t(k) e^{−B(j,k)}]. This is the value of
x_k = e^{−B(j,k)} for the best j, at most ln n below T, so the program is well scaled at any number of nats.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, cast

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._errors import SolverError, SolverInterruptedError
from mechdesign.leakage._bounds import ULP, close_edges
from mechdesign.solve._contract import BackEnd, Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._registry import find

Slopes = list[tuple[Integers, Integers, Integers, Integers, Floats]]
"""Arrays (s, t, j, k, w) of pairs (s, t): w is the share of e^{T(B)(s, t)} that e^{B(j,k)} carries."""

# Largest accepted difference of the ends, relative to 1 + the upper end; a hundredth of it needs no second solve.
_GAP = 1e-9
# Edges at more than this price (relative to e^base) are left out: a plan moves next to nothing along them.
_FAR = 1e11
# Number of edges of a program, which covers several pairs.
_BLOCK = 6000
# Solvers in the order of attempts, with HiGHS's simplex strategy (1 is dual, 4 primal), and the scale of the program.
_ATTEMPTS = (
    ("highs-simplex", 1, 2.0**10),
    ("highs-simplex", 4, 1.0),
    ("highs-simplex", 4, 2.0**10),
    ("highs-ipx", 1, 1.0),
)
_PRIMAL = 4
# Bounds of sensible flows and multipliers, and of prices as factors of lower bounds.
_LARGEST, _HIGHEST = 1e15, 1e300
# Beyond ± so many nats, e to this power is 0 or above the highest price.
_FARTHEST = 750.0
# A bound of the rounding error of each exp, log and sum, in units of the size of their terms.
_FEW_ROUNDINGS = 8 * ULP
# Shifts of the multipliers, which a point of the cone needs because of the solver's tolerance.
_SHIFTS = (0.0, 1e-15, 1e-13, 1e-11)


class Rows:
    """The rows of a checked stochastic matrix by their supports, divided by their exact sums.

    Args:
        matrix: An array or a SciPy sparse matrix of shape (n, n) whose rows are distributions or zeros.

    Attributes:
        n: Number of states.
        ptr: The entries of row s are those from ptr[s] to ptr[s + 1], int64.
        col: The state of each entry, int64.
        log: The logarithm of each entry.
        any: The rows of zeros, which may be any row, int64.
        same: For each row, the first row with the same entries, int64.
        support: The supports, float32 CSR of shape (n, n).
        starts: The edges and the basis of the last program of each block of pairs, from which the next one starts.

    >>> Rows([[0.5, 0.5], [0, 1]]).col.tolist()
    [0, 1, 1]
    """

    def __init__(self, matrix: Any) -> None:
        entries = sparse.csr_array(matrix, dtype=np.float64, copy=True)
        entries.sum_duplicates()
        entries.eliminate_zeros()
        entries.sort_indices()
        self.n = int(entries.shape[0])
        self.ptr, self.col = (np.asarray(each, dtype=np.int64) for each in (entries.indptr, entries.indices))
        parts = [slice(begin, end) for begin, end in zip(self.ptr[:-1].tolist(), self.ptr[1:].tolist(), strict=True)]
        totals = np.array([math.fsum(entries.data[part].tolist()) for part in parts])
        self.log: Floats = np.log(entries.data) - np.log(np.repeat(totals, np.diff(self.ptr)))
        self.any: Integers = np.flatnonzero(totals == 0)
        self.support = sparse.csr_array(
            (np.ones(len(self.col), dtype=np.float32), self.col, self.ptr), shape=entries.shape
        )
        self.starts: dict[tuple[bytes, ...], tuple[Flags, object]] = {}
        first: dict[bytes, int] = {}
        keys = (hashlib.sha256(self.col[part].tobytes() + self.log[part].tobytes()).digest() for part in parts)
        self.same: Integers = np.array([first.setdefault(key, row) for row, key in enumerate(keys)], dtype=np.int64)


def step(
    rows: Rows, bounds: Floats, edges: Integers | None = None, slopes: Slopes | None = None
) -> tuple[Floats, Floats]:
    """Return an upper and a lower bound of T(B) for every pair of states.

    With edges, T(B) is computed for them in both directions and closed along paths. The result is an upper bound of
    T(B), because T(B) is subadditive.

    Args:
        rows: The stochastic matrix.
        bounds: B, closed along paths, shape (n, n).
        edges: Pairs of states, int64 of shape (m, 2); None for all pairs.
        slopes: A list to which the slopes of e^{T(B)} in e^B are added; None without them.

    Returns:
        Two matrices of shape (n, n), ≥ 0 with a diagonal of 0; with edges the second is 0.

    Raises:
        SolverError: The ends of a pair are too far apart.

    >>> step(Rows([[0.8, 0.2], [0.2, 0.8]]), np.array([[0, 1], [1, 0.0]]))[0].round(6).tolist()
    [[0.0, 0.569445], [0.569445, 0.0]]
    """
    n = rows.n
    s: Integers
    t: Integers
    if edges is None:
        s, t = np.nonzero(~np.eye(n, dtype=bool))
    else:
        s, t = np.unique(np.concatenate((edges, edges[:, ::-1])), axis=0).T
    above, below = np.zeros(len(s)), np.zeros(len(s))
    known: Flags = np.ones(n, dtype=bool)
    known[rows.any] = False
    # Equal rows pass nothing on.
    both: Flags = known[s] & known[t] & (rows.same[s] != rows.same[t])
    above[both], below[both] = enclose(rows, s[both], t[both], bounds, None, slopes)
    if len(rows.any):
        from_known, to_known = ends_of_any(rows, bounds, slopes)
        for unknown, values in ((known[s] & ~known[t], from_known[:, s]), (~known[s] & known[t], to_known[:, t])):
            above[unknown], below[unknown] = values[:, unknown]
        above[~known[s] & ~known[t]] = below[~known[s] & ~known[t]] = bounds.max()
    above, below = np.maximum(above, 0.0), np.maximum(below, 0.0)
    if edges is not None:
        return close_edges(above, s, t, n), np.zeros((n, n))
    upper, lower = np.zeros((n, n)), np.zeros((n, n))
    upper[s, t], lower[s, t] = above, below
    return upper, lower


def ends_of_any(rows: Rows, bounds: Floats, slopes: Slopes | None = None) -> tuple[Floats, Floats]:
    """Return both ends of T(B)(s, m) and of T(B)(m, s) for all known s and an unknown row m, each of shape (2, n).

    An unknown row is worst as a unit row: T(s, m) = max_k ln Σ_j P_s(j) e^{B(j,k)}, and
    T(m, s) = −min_j ln Σ_k P_s(k) e^{−B(j,k)}.
    """
    found = np.zeros((2, 2, rows.n))
    for s in np.flatnonzero(np.diff(rows.ptr)).tolist():
        part = slice(rows.ptr[s], rows.ptr[s + 1])
        col, log = rows.col[part], rows.log[part][:, None]
        for way, terms in enumerate((log + bounds[col], log - bounds.T[col])):
            values = np.logaddexp.reduce(terms, axis=0)
            unit = int(values.argmin() if way else values.argmax())
            value = -values[unit] if way else values[unit]
            # Each of the sums has as many roundings as terms.
            size = float(np.where(np.isfinite(value), np.abs(value), 0.0) + np.abs(log).max()) + 8
            slack = _FEW_ROUNDINGS * (len(col) + 8) * size
            found[way, :, s] = value + slack, value - slack
            if slopes is None or not np.isfinite(value):
                continue
            share, here = np.exp(terms[:, unit] - values[unit]), np.full(len(col), unit)
            for m in rows.any.tolist():
                known, unknown = (np.full(len(col), state) for state in (s, m))
                slopes.append((unknown, known, here, col, share) if way else (known, unknown, col, here, share))
    return found[0], found[1]


def enclose(
    rows: Rows,
    s: Integers,
    t: Integers,
    bounds: Floats,
    kept: Flags | None = None,
    slopes: Slopes | None = None,
) -> tuple[Floats, Floats]:
    """Return an upper and a lower bound of T(B)(s[i], t[i]) for known, different rows.

    Args:
        rows: The stochastic matrix.
        s: Rows of the numerators, int64 of shape (m,).
        t: Rows of the denominators, int64 of shape (m,).
        bounds: B, shape (n, n). If it is not closed along paths, the ends enclose the value of the transport.
        kept: The states that count in the numerator of each pair, shape (m, n); None for all. Without any, both ends
            are −inf.
        slopes: A list to which the slopes of e^{T(B)} in e^B are added; None without them.

    Returns:
        The bounds, each of shape (m,).

    Raises:
        SolverError: The ends of a pair differ by more than 1e-9 relative.

    >>> upper, lower = enclose(Rows([[0.8, 0.2], [0.2, 0.8]]), np.array([0]), np.array([1]), np.ones((2, 2)))
    >>> bool(0 <= upper[0] - lower[0] <= 1e-9)
    True
    """
    upper, lower = np.full(len(s), np.inf), np.full(len(s), np.inf)
    slack = np.zeros(len(s))
    size = np.diff(rows.ptr)
    counted: Flags = np.ones(len(s), dtype=bool)
    if kept is not None:
        kept = kept & (rows.support.toarray()[s] > 0)
        counted &= kept.any(axis=1)
        upper[~counted] = lower[~counted] = -np.inf
    left = np.flatnonzero(counted & ~_are_lost(rows, s, t, bounds, kept))
    ends = np.cumsum(size[s[left]] * size[t[left]])
    begin = 0

    def attempt(which: Integers, number: int, slopes: Slopes | None) -> None:
        """Improve the ends of some pairs by one program; every attempt gives valid ends."""
        part = _Transports(rows, s[which], t[which], bounds, None if kept is None else kept[which])
        above, below = _enclose(part, number, slopes)
        upper[which], slack[which] = np.minimum(upper[which], above), part.slack
        lower[which] = below if number == 0 else np.maximum(lower[which], below)

    while begin < len(left):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _BLOCK, side="right")))
        attempt(left[begin:end], 0, slopes)
        begin = end
    for number in range(1, len(_ATTEMPTS)):
        for single in np.flatnonzero(_apart(upper, lower + 2 * slack, 0.01 * _GAP))[:, None]:
            attempt(single, number, None)
    for worst in np.flatnonzero(_apart(upper, lower, _GAP)).tolist():
        raise SolverError(
            f"the leakage of states {int(s[worst])} and {int(t[worst])} lies between {float(lower[worst])!r} and "
            f"{float(upper[worst])!r}, and no solver brought these ends within {_GAP:g} (relative); merge states whose "
            "probabilities are tiny, or bound pairs by fewer nats"
        )
    return upper, lower


def _apart(upper: Floats, lower: Floats, gap: float) -> Flags:
    apart: Flags = np.zeros(len(upper), dtype=bool)
    fine = np.isfinite(upper)
    apart[fine] = ~(upper[fine] - lower[fine] <= gap * (1 + np.abs(upper[fine])))
    return apart


def _are_lost(rows: Rows, s: Integers, t: Integers, bounds: Floats, kept: Flags | None) -> Flags:
    """Return whether some state of s that counts has no bound to any state of t, so that the pair is infinite."""
    finite = np.isfinite(bounds)
    if finite.all():
        return np.zeros(len(s), dtype=bool)
    # Entry (j, t): whether j has no bound to any state of row t.
    cut = (rows.support @ finite.T.astype(np.float32)).T == 0
    lost: Flags = (rows.support @ cut.astype(np.float32))[s, t] > 0 if kept is None else (kept & cut.T[t]).any(axis=1)
    return lost


class _Transports:
    """The transports of several pairs, one after another: sources j of row s, sinks k of row t, and edges j → k.

    Args:
        rows: The stochastic matrix.
        s: Rows of the numerators, int64 of shape (m,).
        t: Rows of the denominators, int64 of shape (m,).
        bounds: B, shape (n, n).
        kept: The states that count in the numerator of each pair, shape (m, n); None for all.

    Attributes:
        pairs: The rows s and t of each pair.
        source_pair: The pair of each source.
        sink_pair: The pair of each sink.
        source_state: The state of each source.
        sink_state: The state of each sink.
        source: The source of each edge; edges of one source are consecutive.
        sink: The sink of each edge.
        first_source: The first source of each pair.
        first_sink: The first sink of each pair.
        first_edge: The first edge of each source.
        gain: B of each edge.
        price: The price of each edge, divided by e^base of its pair.
        cheapest: Whether an edge has the least price of its source.
        base: The logarithm of the factor that scales the program of each pair.
        slack: A bound of the rounding error of either end of each pair.
        starts: Those of the rows.
        key: The key of these pairs in `starts`.
    """

    def __init__(self, rows: Rows, s: Integers, t: Integers, bounds: Floats, kept: Flags | None) -> None:
        size, numbers = np.diff(rows.ptr), np.arange(len(s))
        source_entry, source_pair = _ragged(rows.ptr[s], size[s]), np.repeat(numbers, size[s])
        if kept is not None:
            counts = kept[source_pair, rows.col[source_entry]]
            source_entry, source_pair = source_entry[counts], source_pair[counts]
        sources, sinks = np.bincount(source_pair, minlength=len(s)), size[t]
        sink_entry = _ragged(rows.ptr[t], sinks)
        each = sinks[source_pair]
        self.starts, self.key = rows.starts, tuple(each.tobytes() for each in (s, t, kept) if each is not None)
        self.pairs, self.source_pair, self.sink_pair = (s, t), source_pair, np.repeat(numbers, sinks)
        self.source_state, self.sink_state = rows.col[source_entry], rows.col[sink_entry]
        self.source: Integers = np.repeat(np.arange(len(source_entry)), each)
        self.sink = _ragged(_firsts(sinks)[source_pair], each)
        self.first_source, self.first_sink, self.first_edge = _firsts(sources), _firsts(sinks), _firsts(each)
        a, q = rows.log[source_entry][self.source], rows.log[sink_entry][self.sink]
        self.gain: Floats = bounds[self.source_state[self.source], self.sink_state[self.sink]]
        price = (a + self.gain) - q
        least = np.minimum.reduceat(price, self.first_edge)
        self.cheapest: Flags = price == least[self.source]
        alone = least - np.log(np.add.reduceat(np.exp(least[self.source] - price), self.first_edge))
        self.base: Floats = np.maximum.reduceat(alone, self.first_source)
        base, first = self.base[source_pair][self.source], self.first_edge[self.first_source]
        with np.errstate(over="ignore"):
            self.price: Floats = np.exp(price - base)
        # The size of all terms; with the number of terms, their roundings amount to less than the slack. A larger
        # gain has a price of 0, or one above the highest price: its rounding error does not matter.
        most = np.abs(a) + np.abs(q) + np.abs(base) + _FARTHEST
        finite = np.where(np.isfinite(self.gain), np.minimum(np.abs(self.gain), most), 0.0)
        terms = np.maximum.reduceat(np.abs(a) + np.abs(q) + finite, first) + np.abs(self.base)
        # A matrix that is closed up to rounding has paths that are shorter by n roundings.
        paths = rows.n * ULP * np.maximum.reduceat(finite, first)
        self.slack: Floats = _FEW_ROUNDINGS * (terms + sources + sinks + 16) + paths


def _ragged(begin: Integers, count: Integers) -> Integers:
    """Return the ranges from begin[i] to begin[i] + count[i], one after another."""
    return np.repeat(begin - _firsts(count), count) + np.arange(int(count.sum()))


def _firsts(count: Integers) -> Integers:
    return np.cumsum(count) - count


def _enclose(part: _Transports, number: int, slopes: Slopes | None) -> tuple[Floats, Floats]:
    """Return an upper and a lower bound of each pair from the plan and the multipliers of one program."""
    used = part.cheapest | (part.price <= _FAR)
    start: object = None
    if number == 0 and part.key in part.starts:
        # The last basis of these pairs fits if its edges include all that are used, and none is far too expensive.
        known, basis = part.starts[part.key]
        if (used <= known).all() and (part.price[known] <= 10 * _FAR).all():
            used, start = known, basis
    plan, alpha, beta, basis = _solve(part, np.flatnonzero(used), number, start)
    if number == 0:
        part.starts[part.key] = used, basis
    price, sink = part.price[used], part.sink[used]
    # The repaired plan: shares of each source that sum to 1.
    share = np.zeros(len(used))
    share[used] = plan / np.maximum(price, 1.0)
    share[part.cheapest] += 1e-300
    share /= np.add.reduceat(share, part.first_edge)[part.source]
    paid = np.bincount(sink, share[used] * price, minlength=len(part.sink_pair))
    # The base is a lower end, so that nothing below 1 is lost; it keeps products that vanish harmless.
    worst = np.log(np.maximum(np.maximum.reduceat(paid, part.first_sink), 1.0))
    upper = part.base + worst + part.slack + _FEW_ROUNDINGS * worst
    # The plan that spreads each source over all sinks pays at most the largest gain, without any rounding.
    upper = np.minimum(upper, np.maximum.reduceat(part.gain, part.first_edge[part.first_source]))
    if slopes is not None:
        _add_slopes(part, slopes, np.flatnonzero(used), share[used] * price * beta[sink])
    return upper, part.base + np.log(_best_ratio(part, alpha, beta)) - part.slack


def _best_ratio(part: _Transports, alpha: Floats, beta: Floats) -> Floats:
    """Return the ratio at the best of some points of the cone near the multipliers, at least 1, which is the base's.

    Weights z_k = P_t(k) x_k of the sinks give x_j = min_k e^{B(j,k)} x_k and the ratio Σ_j P_s(j) x_j / Σ_k z_k.
    """
    held = beta.copy()
    bars = part.price >= 1
    np.maximum.at(held, part.sink[bars], alpha[part.source[bars]] / part.price[bars])
    best = np.ones(len(part.base))
    price = np.minimum(part.price, _HIGHEST)
    open_edge = np.isfinite(part.gain)
    for weights in (beta, *(held + shift for shift in _SHIFTS)):
        reached = np.minimum.reduceat(np.where(open_edge, price * weights[part.sink], np.inf), part.first_edge)
        top = np.add.reduceat(reached, part.first_source)
        bottom = np.add.reduceat(weights, part.first_sink)
        # Tiny sums could consist of numbers that underflowed.
        best = np.maximum(best, np.where(bottom > 1e-200, top / np.maximum(bottom, 1e-200), 1.0))
    return best


def _add_slopes(part: _Transports, slopes: Slopes, used: Integers, weight: Floats) -> None:
    pair = part.source_pair[part.source[used]]
    total = np.bincount(pair, weight, minlength=len(part.base))
    counts = weight > 1e-14 * total[pair]
    used, pair, weight = used[counts], pair[counts], weight[counts]
    s, t = part.pairs
    states = part.source_state[part.source[used]], part.sink_state[part.sink[used]]
    slopes.append((s[pair], t[pair], *states, weight / total[pair]))


def _solve(part: _Transports, used: Integers, number: int, start: object) -> tuple[Floats, Floats, Floats, object]:
    """Return a plan (edges,), multipliers of sources and sinks, and the basis; the caller relies on none of them.

    The program minimises the sum over pairs of μ: each source gives 1, and each sink receives at most μ of its pair.
    A variable is the larger of what its source gives and what its sink receives, so that coefficients are at most 1.
    """
    solver, strategy, scale = _ATTEMPTS[number]
    edges, pairs, sources, sinks = len(used), len(part.base), len(part.source_pair), len(part.sink_pair)
    price, places = part.price[used], np.arange(edges)
    row = np.concatenate((part.source[used], sources + part.sink[used], sources + np.arange(sinks)))
    column = np.concatenate((places, places, edges + part.sink_pair))
    values = np.concatenate((1.0 / np.maximum(price, 1.0), np.minimum(price, 1.0), -np.ones(sinks)))
    program = LinearProgram(
        cost=np.concatenate((np.zeros(edges), np.full(pairs, scale))),
        matrix=sparse.csr_array((values, (row, column)), shape=(sources + sinks, edges + pairs)),
        row_lower=np.concatenate((np.full(sources, scale), np.full(sinks, -np.inf))),
        row_upper=np.concatenate((np.full(sources, np.inf), np.zeros(sinks))),
        lower=np.zeros(edges + pairs),
        upper=np.full(edges + pairs, np.inf),
        name="leakage of pairs",
    )
    if start is not None:
        # The dual method can take longer from a basis than without one.
        strategy = _PRIMAL
    extra = {"simplex_strategy": strategy, "simplex_scale_strategy": 0, "presolve": "off"}
    back_end = cast(BackEnd, find(solver).load())
    answer = back_end(program, Options(feasibility=1e-10, extra=extra).begun(), start)
    if answer.status is Status.INTERRUPTED:
        raise SolverInterruptedError("the computation of leakage was stopped; nothing was computed")
    flows = _clean(answer.x, np.full(edges + pairs, scale))[:edges]
    dual = _clean(answer.row_dual, np.repeat([scale, -scale], [sources, sinks]))
    return flows, dual[:sources], dual[sources:], answer.start


def _clean(values: Floats | None, scale: Floats) -> Floats:
    """Return the solver's values divided by their scale and clipped to [0, `_LARGEST`]; missing values become 0."""
    if values is None or len(values) != len(scale):
        return np.zeros(len(scale))
    return np.clip(np.where(np.isfinite(values), values, 0.0) / scale, 0.0, _LARGEST)
