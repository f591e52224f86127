"""Bounds of pairs of states: what one release reveals about each pair. Bounds are closed along paths and rounded up.

A matrix B of shape (n, n) in nats stands for all x ≥ 0 with x_j ≤ e^{B(j,k)} x_k. Its diagonal is 0, an infinite entry
is no bound, and B(j,k) may differ from B(k,j). Shortest paths leave this set unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, read_only, require
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, named, opened
from mechdesign.certify._claims import ExponentBound, PairBound, RatioBound
from mechdesign.certify._exact import exact, float_above
from mechdesign.certify._exponential import ln_upper
from mechdesign.model._channel import Channel
from mechdesign.model._requirements._requirement import Requirement

# The distance from 1 to the next float.
ULP = 2.0**-52
# Sums of larger bounds [nats] over many releases may exceed all floats.
_MOST_NATS = 1e300
# Larger integers may lie between floats.
_MOST_INTEGER = 2**53
# Rounding to floats, the quotient and the logarithm have a relative error below 2**-50 together.
_SLACK = 2.0**-50
_ACCEPTED = "a requirement, a channel, a design, the path of a bundle, or a matrix (n, n) of bounds"
# Values that are given as bounds by mistake, by an attribute of their class: what they are, and the remedy.
_NOT_BOUNDS = (
    ("edges", "a graph without ε", "give md.GraphPrivacy(epsilon, graph)"),
    ("stationary", "a chain", "chains are correlations, the arguments backward and forward"),
    ("pair_bounds", "a problem", "give problem.requirements, or the channel of its design"),
)


@in_own_arithmetic
def pairs(bounds: Any) -> Floats:
    """Return bounds E with ln p(o|s)/p(o|s') <= E[s, s'] for all observables o, closed along paths.

    The sum of bounds along a path from s to s' bounds the pair, too: E has the least sum. Entries and sums are rounded
    up. A requirement states its bounds. Those of a channel are tight: they exceed the
    largest ln p(o|s)/p(o|s') by less than a relative 2e-15. `MetricPrivacy(1, E)` requires the bounds E.

    Args:
        bounds: A requirement, such as `MetricPrivacy` or `GraphPrivacy`; a list of requirements, whose least bound
            counts for each pair; a channel, a design, or the path of a bundle; or a matrix (n, n) of bounds in
            nats, with a diagonal of 0. Bounds may be infinite, and may differ for (s, s') and (s', s). Continuous
            privacy bounds the pairs of its anchors.

    Returns:
        E in nats, float64 (n, n), read-only, in the order of the secrets. It is 0 on the diagonal, and infinite for a
        pair without a bound.

    Raises:
        InputError: A requirement bounds no pairs, such as a floor on the adversary's error, or a matrix has another
            shape, or a negative or NaN entry.

    >>> from mechdesign import MetricPrivacy
    >>> pairs(MetricPrivacy(0.5, [[0, 1, 2], [1, 0, 1], [2, 1, 0]])).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]]
    """
    if isinstance(bounds, Requirement):
        found = _take_least({"bounds": bounds})
    elif isinstance(bounds, list | tuple) and any(isinstance(each, Requirement) for each in bounds):
        found = _take_least({f"bounds[{index}]": each for index, each in enumerate(bounds)})
    elif (channel := _channel_of(bounds)) is not None:
        found = _measure(channel)
    else:
        found = _read_matrix(bounds)
    return read_only(close(found))


def _read_matrix(values: Any) -> Floats:
    """Return the bounds in a matrix of the user; raise `InputError` for any other value."""
    for name, what, remedy in _NOT_BOUNDS:
        if hasattr(type(values), name):
            raise InputError("bounds", f"are {what}", value=type(values).__name__, bound=_ACCEPTED, remedy=remedy)
    given = opened(values, "bounds", object).settled("bounds").values
    if given.ndim == 2 and given.dtype.kind == "f" and given.diagonal().any() and np.allclose(given.sum(axis=1), 1):
        remedy = "give md.Channel.from_matrix(matrix), whose bounds are tight"
        raise InputError("bounds", "are probabilities", value=given.shape, bound=_ACCEPTED, remedy=remedy)
    return as_bounds(given, "bounds")


def _take_least(requirements: Mapping[str, Any]) -> Floats:
    """Return the least bound of each pair that requirements state, by their paths; other pairs have none."""
    least: Floats | None = None
    for path, each in requirements.items():
        require_kind(each, Requirement, path, "a requirement, like the others of the list")
        if not each.pair_bounds:
            raise InputError(
                path,
                "bounds no pairs of secrets",
                value=each.kind,
                bound="a requirement with bounds of pairs, such as MetricPrivacy",
                remedy="leave it out, or give the channel that meets it, whose own bounds are tight",
            )
        if least is None:
            least = np.where(np.eye(each.size, dtype=np.bool_), 0.0, np.inf)
        if each.size != len(least):
            bound = f"{len(least)}, as in bounds[0]"
            raise InputError(path, "has another number of secrets", value=each.size, bound=bound)
        for bound_of_pairs in each.pair_bounds:
            places = bound_of_pairs.sources, bound_of_pairs.targets
            np.minimum.at(least, places, _exponents_above(bound_of_pairs))
    assert least is not None
    return least


def _exponents_above(bound: PairBound) -> Floats:
    """Return the logarithms of factors, rounded up, float64 (k,)."""
    exact: list[Fraction]
    if isinstance(bound, ExponentBound):
        weights, places = np.unique(bound.weights, return_inverse=True)
        exact = [bound.epsilon * Fraction(weight) for weight in weights.tolist()]
    else:
        assert isinstance(bound, RatioBound)
        terms, places = np.unique(np.stack([bound.numerators, bound.denominators]), axis=1, return_inverse=True)
        factors = [bound.factor * Fraction(*each) for each in terms.T.tolist()]
        exact = [ln_upper(factor.numerator, factor.denominator) for factor in factors]
    above = np.array([float_above(each) for each in exact])
    return above[places.ravel()] if len(above) else np.zeros(0)


def _channel_of(value: Any) -> Channel | None:
    """Return a channel, that of a design, or that of the bundle at a path; None for other values."""
    if isinstance(value, str | os.PathLike):
        return Channel.load(value)
    found = getattr(value, "channel", value)
    return found if isinstance(found, Channel) else None


def _measure(channel: Channel) -> Floats:
    """Return the largest ln p(o|s)/p(o|t) over the observables o of each pair, rounded up."""
    numerators = channel.numerators
    found = np.zeros((len(numerators), len(numerators)))
    for secret, row in enumerate(numerators):
        # a/b − 1 = (a − b)/b is accurate for rows that are nearly equal, because a − b is exact.
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = (row - numerators).astype(np.float64) / numerators
        largest = np.nan_to_num(excess, nan=0.0, posinf=np.inf, neginf=0.0).max(axis=1)
        found[secret] = np.log1p(largest) * (1 + _SLACK)
    return up(found)


def up(values: Floats) -> Floats:
    """Return the next float above each finite positive entry; other entries stay.

    >>> up(np.array([0.0, 1.0, np.inf])).tolist()
    [0.0, 1.0000000000000002, inf]
    """
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(values) & (values > 0), np.nextafter(values, np.inf), values)


def add(first: Floats, second: Floats) -> Floats:
    """Return the least floats that are at least the sums of entries ≥ 0; the arguments broadcast.

    >>> add(np.array([0.5, 0.1]), np.array([0.5, 0.7])).tolist()
    [1.0, 0.8]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = first + second
        # The error of each sum, exact (Knuth, TwoSum); NaN for infinite sums.
        part = total - first
        error = (first - (total - part)) + (second - part)
        return np.where(error > 0, np.nextafter(total, np.inf), total)


def close(bounds: Floats) -> Floats:
    """Return the lengths of shortest paths among the states, with sums rounded up (Floyd and Warshall).

    Args:
        bounds: Bounds of the pairs, shape (n, n).

    Returns:
        A new matrix, at most `bounds`.

    >>> close(np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [np.inf, 1.0, 0.0]])).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    closed = np.array(bounds, dtype=np.float64)
    np.fill_diagonal(closed, 0.0)
    with np.errstate(over="ignore"):
        for k in range(len(closed)):
            shorter = closed[:, [k]] + closed[[k], :] < closed
            if shorter.any():
                # Most matrices are closed already, so that few sums need an exact rounding.
                i, j = np.nonzero(shorter)
                closed[i, j] = np.minimum(closed[i, j], add(closed[i, k], closed[k, j]))
    return closed


def close_edges(values: Floats, rows: Integers, cols: Integers, n: int) -> Floats:
    """Return the lengths of shortest paths along given edges, rounded up (Dijkstra from every state).

    A path has at most as many edges as the least value fits into its length. Each sum has one rounding, of at most
    2⁻⁵³ of the sum.

    Args:
        values: Lengths ≥ 0 of the edges, shape (m,).
        rows: The states at which the edges start; no edge occurs twice.
        cols: The states at which the edges end.
        n: Number of states.

    Returns:
        The lengths, shape (n, n); infinite without a path.

    >>> close_edges(np.array([0.5, 0.5]), np.array([0, 1]), np.array([1, 2]), 3)[0].round(9).tolist()
    [0.0, 0.5, 1.0]
    """
    fine = np.isfinite(values)
    values, rows, cols = values[fine], rows[fine], cols[fine]
    # SciPy takes an explicit zero as an edge of length 0.
    lengths: Floats = csgraph.dijkstra(sparse.csr_array((values, (rows, cols)), shape=(n, n)))
    least = float(values.min(initial=np.inf))
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.minimum(np.floor(lengths / least * (1 + n * ULP)), n) if least > 0 else np.full((n, n), float(n))
        factor = np.where(edges > 1, 1 + edges * ULP, 1.0)
        return np.where(np.isfinite(lengths), lengths * factor, np.inf)


def as_bounds(values: Any, path: str, names: Labels = ()) -> Floats:
    """Return bounds of pairs as a new float64 matrix of shape (n, n), not closed along paths.

    Args:
        values: Bounds from 0 to 1e300, or infinite, with a diagonal of 0: an array, nested lists or a frame. Floats
            stand for themselves; other numbers are rounded up.
        path: The path of the matrix, for messages.
        names: The names of the states, in the order of the result.

    Returns:
        The matrix.

    Raises:
        InputError: The matrix is not square, an entry is negative or NaN, or the diagonal is not 0.

    >>> as_bounds([[0, 1], [2, 0]], "bounds").tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    refuse_source(values, path)
    given = named(values, path, names, names, object)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.size == 0:
        bound, remedy = "of shape (n, n), n >= 1", "give one row and one column for each state"
        raise InputError(path, "is not a square matrix", value=given.shape, bound=bound, remedy=remedy)
    if given.dtype.kind == "O" or (given.dtype.kind in "iu" and given.max() > _MOST_INTEGER):
        given = np.array(
            [
                [_as_bound(value, f"{path}[{i},{j}]") for j, value in enumerate(row)]
                for i, row in enumerate(given.tolist())
            ]
        )
    if given.dtype.kind not in "iuf":
        raise InputError(path, f"holds {given.dtype}", bound="an array of real numbers")
    bounds = given.astype(np.float64)
    # A long double may lie above the nearest float.
    bounds = np.where(bounds < given, np.nextafter(bounds, np.inf), bounds)
    good = (bounds >= 0) & ((bounds <= _MOST_NATS) | np.isinf(bounds))
    remedy = "a bound is a privacy loss in nats; inf: no bound"
    require(good, bounds, path, f"a number >= 0, at most {_MOST_NATS:.0e} or infinity", remedy)
    diagonal = np.diagonal(bounds)
    # np.nextafter, which rounds a sum of bounds up, turns 0 into the least float.
    wrong = np.flatnonzero(diagonal > np.nextafter(0.0, 1.0))
    if wrong.size:
        at = int(wrong[0])
        remedy = "no state differs from itself: set the diagonal to 0"
        raise InputError(f"{path}[{at},{at}]", "is not 0", value=float(diagonal[at]), bound="0", remedy=remedy)
    np.fill_diagonal(bounds, 0.0)
    return bounds + 0.0


def refuse_source(value: Any, path: str) -> None:
    """Raise `InputError` for a requirement, a channel or a design in place of its bounds."""
    if hasattr(value, "pair_bounds") or isinstance(getattr(value, "channel", value), Channel):
        bound, remedy = "the bounds themselves", "give leakage.pairs of the requirement, channel or design"
        raise InputError(path, "stands for bounds", value=type(value).__name__, bound=bound, remedy=remedy)


def _as_bound(value: object, path: str) -> float:
    if isinstance(value, float):
        return value
    number = exact(value, path)
    size = float_above(abs(number))
    return size if number >= 0 else -size
