"""Exact elementwise arithmetic on float64 arrays, by error-free transformations.

An *expansion* is a list of float64 arrays of one shape, the components; it represents the exact sum of its components.
The components of an element do not overlap, and nonzero components grow in magnitude. The last nonzero component
therefore has the sign of the exact sum (Shewchuk, Adaptive Precision Floating-Point Arithmetic and Fast Robust
Geometric Predicates, 1997, theorem 10). The results assume round-to-nearest double precision, no overflow, and no
product with bits below 2^-1074. Callers limit the magnitude of their inputs so that these assumptions hold.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mechdesign.base._arrays import Floats

Expansion = list[Floats]

# Veltkamp's constant for 53 bits: it splits a number into two halves of at most 26 bits each.
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
        # Skip components that are zero everywhere, as most components are on a grid.
        if rest.any():
            grown.append(rest)
    grown.append(carried)
    return grown


def is_negative(expansion: Expansion) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return a mask of the elements whose exact value is below zero."""
    leading = expansion[-1]
    for component in reversed(expansion[:-1]):
        leading = np.where(leading != 0, leading, component)
    return leading < 0


def _split(a: Floats) -> tuple[Floats, Floats]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
