"""Algorithms 7 and 8 of the paper by bisection, as it states them; checks of `mechdesign.leakage.budgets`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.leakage.lines import Floats
from mechdesign.leakage.numbers import as_target
from mechdesign.leakage.oracle import algorithm2, algorithm3, algorithm6
from mechdesign.validation import as_integer

__all__ = ["algorithm7", "algorithm8"]

_STEPS = 200


def algorithm7(alpha: float, P_B: Any, P_F: Any) -> float:
    """Return the constant ε with sup BPL + sup FPL − ε = α by bisection on ε, with Algorithm 6; 0.0 if there is none.

    Mended: a relative stopping rule, which here is that the interval no longer shrinks, and an end to the loop.
    """
    alpha = as_target(alpha)
    tables_B, tables_F = algorithm2(P_B), algorithm2(P_F)
    low, high = 0.0, alpha
    for _ in range(_STEPS):
        epsilon = (low + high) / 2
        if not low < epsilon < high:
            break
        total = algorithm6(P_B, epsilon, tables_B) + algorithm6(P_F, epsilon, tables_F) - epsilon
        low, high = (epsilon, high) if total <= alpha else (low, epsilon)
    return low


def algorithm8(alpha: float, steps: int, P_B: Any, P_F: Any) -> Floats:
    """Return budgets, shape (steps,), from L_B(α_B) + α_F = α and L_F(α_F) + α_B = α by bisection on α_B.

    A root lies in [0, α], because L is non-decreasing and 1-Lipschitz. Mended: budgets between run over [2, T − 1], and
    a single release gets α.
    """
    alpha, steps = as_target(alpha), as_integer(steps, "steps", 1)
    if steps == 1:
        return np.array([alpha])
    tables_B, tables_F = algorithm2(P_B), algorithm2(P_F)
    low, high = 0.0, alpha
    for _ in range(_STEPS):
        alpha_B = (low + high) / 2
        if not low < alpha_B < high:
            break
        alpha_F = alpha - float(algorithm3(P_B, alpha_B, tables_B))
        excess = float(algorithm3(P_F, alpha_F, tables_F)) + alpha_B - alpha
        low, high = (alpha_B, high) if excess <= 0 else (low, alpha_B)
    alpha_B = low
    between = alpha_B - float(algorithm3(P_B, alpha_B, tables_B))
    budgets = np.full(steps, between)
    budgets[0], budgets[-1] = alpha_B, alpha - float(algorithm3(P_B, alpha_B, tables_B))
    return budgets
