"""Secrets that no bound on pairs ties to another, or none that can be noticed: an answer may reveal them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechdesign.certify._claims import Claim
from mechdesign.certify._claims import Floor
from mechdesign.certify._claims import PairBound
from mechdesign.certify._dithering import Dithered
from mechdesign.model.channel import EXPONENT
from mechdesign.base._arrays import Integers

__all__ = ["bounds_pairs", "loose", "untied"]

# The logarithm of a factor from which on a bound between multiples of 2^-62 only says that zero goes with zero, less
# what the logarithms of claims may be rounded down by.
_VACUOUS = EXPONENT * math.log(2) * (1 - 2**-40)


def bounds_pairs(claims: Sequence[Claim]) -> bool:
    """Tell whether any of the claims is about pairs of secrets, be it none of them: a floor is about the adversary."""
    return any(not isinstance(claim, Floor) for claim in claims)


def untied(n: int, claims: Sequence[Claim]) -> Integers:
    """Return the secrets, of n, that no bound on a pair ties to another one, in either direction; ascending.

    Nothing keeps an answer from telling them for certain.
    """
    tied = np.zeros(n, dtype=np.bool_)
    for claim in claims:
        if isinstance(claim, Dithered):
            # It is about all points between the anchors.
            tied[:] = True
        elif isinstance(claim, PairBound):
            others = claim.sources != claim.targets
            tied[claim.sources[others]] = True
            tied[claim.targets[others]] = True
    return np.flatnonzero(~tied)


def loose(n: int, claims: Sequence[Claim]) -> Integers:
    """Return the secrets s, of n, that are tied to others, but by no bound p(o|s) <= g p(o|t) with g < 2^62; ascending.

    Between numerators over 2^62 a larger g only says that zero goes with zero, and a bound in the other direction says
    nothing of how much likelier an answer may be for s: it may tell s all but for certain.
    """
    tied = ~np.isin(np.arange(n), untied(n, claims))
    bounded = np.zeros(n, dtype=np.bool_)
    for claim in claims:
        if isinstance(claim, Dithered):
            bounded[:] = True
        elif isinstance(claim, PairBound):
            others, exponents = claim.sources != claim.targets, claim.exponents
            bounded[claim.sources[others & (exponents < _VACUOUS)]] = True
            # Rows sum to 1: where no entry of one exceeds that of the other, both are equal.
            bounded[claim.targets[others & (exponents <= 0)]] = True
    return np.flatnonzero(tied & ~bounded)
