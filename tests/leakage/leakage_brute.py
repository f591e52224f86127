"""A 60-digit check of the loss function that shares nothing with the package: exact fractions, then Decimal."""

from __future__ import annotations

import itertools
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

DIGITS = Context(prec=60)


def _decimal(value: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def best_of(points: set[tuple[Fraction, Fraction]], alpha: float) -> float:
    """Return max ln[(QA + 1)/(DA + 1)] over points (Q, D)."""
    with localcontext(DIGITS):
        A = Decimal(alpha).exp() - 1
        ratio = max(((_decimal(Q) * A + 1) / (_decimal(D) * A + 1) for Q, D in points), default=Decimal(1))
        return float(max(ratio, Decimal(1)).ln())


def subset_points(P: np.ndarray) -> set[tuple[Fraction, Fraction]]:
    """Return (Q, D) of every subset of columns of every ordered pair of rows."""
    rows = [[Fraction(value) for value in row] for row in np.asarray(P, dtype=float).tolist()]
    n = len(rows[0])
    points = set()
    for q, d in itertools.permutations(rows, 2):
        for chosen in itertools.product((0, 1), repeat=n):
            points.add((sum(itertools.compress(q, chosen)), sum(itertools.compress(d, chosen))))
    return points


def prefix_points(P: np.ndarray, normalised: bool = False) -> set[tuple[Fraction, Fraction]]:
    """Return (Q, D) of every prefix, by falling exact ratio q_j/d_j, of every ordered pair of rows.

    Rows of floats sum to 1 only after rounding; `normalised` divides that out, which matters where 1 − Q does.
    """
    rows = [[Fraction(value) for value in row] for row in np.asarray(P, dtype=float).tolist()]
    if normalised:
        rows = [[value / sum(row) for value in row] for row in rows]
    points = set()
    for q, d in itertools.permutations(rows, 2):
        pairs = [(a, b) for a, b in zip(q, d, strict=True) if a > b]
        pairs.sort(key=lambda pair: (pair[1] / pair[0], pair[0]))
        Q = D = Fraction(0)
        for a, b in pairs:
            Q, D = Q + a, D + b
            points.add((Q, D))
    return points


def limit_of(points: set[tuple[Fraction, Fraction]], epsilon: float) -> float:
    """Return the largest fixed point of x = ln[(QA + 1)/(DA + 1)] + ε over points (Q, D), from the quadratic in A."""
    with localcontext(DIGITS):
        factor = Decimal(epsilon).exp()
        best = factor - 1
        for exact_Q, exact_D in points:
            Q, D = _decimal(exact_Q), _decimal(exact_D)
            b = 1 + D - factor * Q
            if D == 0:
                if b <= 0:
                    return float("inf")
                best = max(best, (factor - 1) / b)
            else:
                best = max(best, ((b * b + 4 * D * (factor - 1)).sqrt() - b) / (2 * D))
        return float((best + 1).ln())


def close(value: float, truth: float) -> bool:
    """Whether a value is as accurate as promised: 1e-12 relative or 1e-15 absolute."""
    return value == truth or abs(value - truth) <= max(1e-15, 1e-12 * abs(truth))
