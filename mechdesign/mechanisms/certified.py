"""From the masses of a mechanism, as floats, to an integer channel that keeps its policy exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._privacy import check
from mechdesign.base._errors import CertificateError
from mechdesign.base._errors import InputError
from mechdesign.model._channel import EXPONENT
from mechdesign.model._components import connected
from mechdesign.base._arrays import Flags
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["certified_numerators"]


_LEAST_GAP = 2.0**-42
_TRIES = 5

# The largest share of the uniform distribution that rounding to integers may cost.
_LARGEST_SHARE = 1e-6


def certified_numerators(
    masses: Callable[[float], Floats],
    bound: ExponentBound,
    observables: int,
    filled: Flags | None = None,
) -> Integers:
    """Return numerators (n, m) over 2**62 that keep `bound` exactly: N[s,o] <= e^{ε w} N[t,o] for its pairs (s, t).

    `masses(ε)` (n, m) are exact up to rounding, which two corrections pay for. Relative errors: masses are taken at an
    ε' below ε, by some 1e-12. Whole numbers: a constant c is added to each entry of a column that a connected set of
    rows uses, and P_s <= g P_t gives N_s <= g N_t for numbers N at most 1 above and 2 below P + c, as
    c >= (2 g + 1) / (g - 1), with g = e^{ε w} for the least positive w. Rows that are `filled` (n,) use all columns,
    also where their masses are too small for a float. Both are proposals: that the bound holds is decided in exact
    arithmetic.

    Raises InputError where ε is so small that c would show, and CertificateError if no proposal holds.
    """
    nominal = float(bound.epsilon)
    shortest = float(bound.weights.min(initial=1.0, where=bound.weights > 0))
    least = 3 * observables / (_LARGEST_SHARE * 2.0**EXPONENT)
    if nominal * shortest < least:
        raise InputError(
            "epsilon",
            f"is too small for a channel of whole numbers over 2**{EXPONENT} with {observables} observables",
            value=nominal * shortest,
            bound=f"at least {least:.1e}",
            remedy="draw coordinates with sample",
        )
    constant = 2 + math.ceil(3 / math.expm1(min(nominal * shortest, 700.0)))
    gap = _LEAST_GAP * (1 + nominal)
    violation = None
    for _ in range(_TRIES):
        rows = masses(nominal - min(gap, nominal / 4))
        numerators = _numerators(
            rows, constant, bound, np.zeros(len(rows), dtype=np.bool_) if filled is None else filled
        )
        violation = check(numerators, EXPONENT, bound)
        if violation is None:
            return numerators
        gap *= 16
    assert violation is not None
    raise CertificateError(f"the masses cannot be rounded to a channel: {violation.sentence}", violation.pair)


def _numerators(rows: Floats, constant: int, bound: ExponentBound, filled: Flags) -> Integers:
    """Round rows to integers that sum to 2**62, each at most 1 above and 2 below its share plus the constant.

    Columns that no row of a connected set uses stay 0 in it; a set that uses only one column needs no constant.
    """
    member = connected(len(rows), np.column_stack((bound.sources, bound.targets)))
    used = np.zeros((int(member.max()) + 1, rows.shape[1]), dtype=np.bool_)
    np.logical_or.at(used, member, (rows > 0) | filled[:, None])
    counts = used.sum(axis=1)
    added = used * np.where(counts > 1, constant, 0)[:, None]
    whole = (1 << EXPONENT) - added.sum(axis=1)[member]
    numerators: Integers = np.floor(rows * whole[:, None]).astype(np.int64)
    # What floors and the rounding of the sum leave over is shared in proportion, and the last units one by one.
    missing = whole - numerators.sum(axis=1)
    numerators += np.floor(rows * missing[:, None]).astype(np.int64)
    missing = whole - numerators.sum(axis=1)
    positive = rows > 0
    number = positive.sum(axis=1)
    share, rest = np.divmod(missing, number)
    numerators += np.where(positive, share[:, None] + (np.cumsum(positive, axis=1) <= rest[:, None]), 0)
    return numerators + added[member]
