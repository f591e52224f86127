"""Exact arithmetic on arrays of float64, element by element, by error-free transformations.

An *expansion* is a list of float64 arrays of one shape whose exact sum is the number meant, one number per element.
The components of an element are non-overlapping and grow in magnitude, zeros apart, so that the last one that is not
zero has the sign of the number (J. R. Shewchuk, Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
Predicates, 1997, theorem 10). Everything holds in round-to-nearest double precision as long as nothing overflows and no
product has bits below 2^-1074; the callers see to that by bounding their inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mechdesign.base._arrays import Floats

Expansion = list[Floats]

# Veltkamp's constant for 53 bits: it cuts a number into two halves of at most 26 bits each.
_SPLITTER = float(2**27 + 1)


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return (p, e) with p = fl(a · b) and p + e = a · b exactly (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def exact_sum(terms: Iterable[Floats]) -> Expansion:
    """Return the expansion of the exact sum of arrays of one shape."""
    expansion: Expansion = []
    for term in terms:
        expansion = add(expansion, term)
    return expansion


def add(expansion: Expansion, term: Floats) -> Expansion:
    """Return the expansion of `expansion` + `term` (Shewchuk's Grow-Expansion)."""
    grown: Expansion = []
    carried = term
    for component in expansion:
        carried, rest = two_sum(carried, component)
        # A component that is zero everywhere adds nothing: most are, on a grid.
        if rest.any():
            grown.append(rest)
    grown.append(carried)
    return grown


def is_negative(expansion: Expansion) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return where the exact value is below zero."""
    leading = expansion[-1]
    for component in reversed(expansion[:-1]):
        leading = np.where(leading != 0, leading, component)
    return leading < 0


def _split(a: Floats) -> tuple[Floats, Floats]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
