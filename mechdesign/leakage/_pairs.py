"""Bounds of pairs: what one release tells about each pair of secrets, as an array (n, n)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, read_only
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import opened
from mechdesign.certify._claims import ExponentBound, PairBound, RatioBound
from mechdesign.certify._exact import float_above
from mechdesign.certify._exponential import ln_upper
from mechdesign.leakage._bounds import as_bounds, close, up
from mechdesign.model._channel import Channel
from mechdesign.model._requirements._requirement import Requirement

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
    up. The bounds of a requirement are those that it states. The bounds of a channel are tight: they exceed the
    largest ln p(o|s)/p(o|s') by less than a relative 2e-15. `MetricPrivacy(1, E)` requires the bounds E.

    Args:
        bounds: A requirement, such as `MetricPrivacy` or `GraphPrivacy`; a list of requirements, of which the least
            bound of each pair counts; a channel, a design, or the path of a bundle; or a matrix (n, n) of bounds in
            nats, with a diagonal of 0. Bounds may be infinite, and may differ for (s, s') and (s', s). Continuous
            privacy bounds the pairs of its anchors.

    Returns:
        E in nats, float64 (n, n), read-only, in the order of the secrets. It is 0 on the diagonal, and infinite for a
        pair without a bound.

    Raises:
        InputError: A requirement bounds no pairs, such as a floor on the adversary's error, or a matrix has another
            shape, or an entry that is no bound.

    >>> from mechdesign import MetricPrivacy
    >>> pairs(MetricPrivacy(0.5, [[0, 1, 2], [1, 0, 1], [2, 1, 0]])).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]]
    """
    if isinstance(bounds, Requirement):
        found = _required({"bounds": bounds})
    elif isinstance(bounds, list | tuple) and any(isinstance(each, Requirement) for each in bounds):
        found = _required({f"bounds[{index}]": each for index, each in enumerate(bounds)})
    elif (channel := _channel_of(bounds)) is not None:
        found = _tight(channel)
    else:
        found = _given(bounds)
    return read_only(close(found))


def _given(values: Any) -> Floats:
    """Return the bounds of a matrix that a user gives; raise `InputError` for what is no matrix of bounds."""
    for name, what, remedy in _NOT_BOUNDS:
        if hasattr(type(values), name):
            raise InputError("bounds", f"are {what}", value=type(values).__name__, bound=_ACCEPTED, remedy=remedy)
    given = opened(values, "bounds", object).settled("bounds").values
    if given.ndim == 2 and given.dtype.kind == "f" and given.diagonal().any() and np.allclose(given.sum(axis=1), 1):
        remedy = "give md.Channel.from_matrix(matrix), whose bounds are tight"
        raise InputError("bounds", "are probabilities", value=given.shape, bound=_ACCEPTED, remedy=remedy)
    return as_bounds(given, "bounds")


def _required(requirements: Mapping[str, Any]) -> Floats:
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


def _tight(channel: Channel) -> Floats:
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
