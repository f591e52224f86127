"""Secrets that no bound on pairs ties to another, or none that can be noticed: an answer may reveal them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify.claims import Claim, Floor, PairBound
from mechdesign.certify.dithering import Dithered
from mechdesign.model.channel import EXPONENT
from mechdesign.validation import Integers

__all__ = ["bounds_pairs", "loose", "untied"]

# The logarithm of a factor from which on a bound between multiples of 2^-62 only says that zero goes with zero.
_VACUOUS = EXPONENT * math.log(2)


def bounds_pairs(claims: Sequence[Claim]) -> bool:
    """Tell whether any of the claims is about pairs of secrets, be it none of them: a floor is about the adversary."""
    return any(not isinstance(claim, Floor) for claim in claims)


def untied(n: int, claims: Sequence[Claim]) -> Integers:
    """Return the secrets, of n, that no bound on a pair ties to another one, in either direction; ascending.

    Nothing keeps an answer from telling them for certain.
    """
    return np.flatnonzero(~_tied(n, claims, math.inf))


def loose(n: int, claims: Sequence[Claim]) -> Integers:
    """Return the secrets, of n, that bounds tie to others, but all by a factor of 2^62 or more; ascending.

    Between numerators over 2^62 such a bound only says that zero goes with zero: an answer may tell them all but for
    certain.
    """
    return np.flatnonzero(_tied(n, claims, math.inf) & ~_tied(n, claims, _VACUOUS))


def _tied(n: int, claims: Sequence[Claim], below: float) -> NDArray[np.bool_]:
    """Tell of each secret whether a bound of which the exponent is below a limit ties it to another one."""
    found = np.zeros(n, dtype=np.bool_)
    for claim in claims:
        if isinstance(claim, Dithered):
            # It is about all points between the anchors.
            found[:] = True
        elif isinstance(claim, PairBound):
            counts = claim.sources != claim.targets
            if below < math.inf:
                counts &= claim.exponents < below
            found[claim.sources[counts]] = True
            found[claim.targets[counts]] = True
    return found
