"""Intervals of answers decoded from noisy ones, at a stated level whatever the combination."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from mechdesign.mechanisms._discrete import DiscreteGaussian
from mechdesign.mechanisms._discrete import DiscreteNoise
from mechdesign.base._arrays import Floats

__all__ = ["half_widths"]


_FINE = 2.0**20


def half_widths(law: DiscreteNoise, errors: Floats, rows: int, level: Fraction) -> Floats:
    """Return half-widths t of intervals for sums Σ w_i X_i of noise with P(|Σ w_i X_i| ≤ t) at least the level.

    The least of these, with s the standard error and α = 1 − level:

    - Gaussian: √(2 ln(2/α))·s, as the law is sub-Gaussian (Canonne, Kamath and Steinke 2020, Corollary 17); on a fine
      lattice the normal quantile, with the total variation between the discrete Gaussian and a rounded normal variable,
      below 1/(10σ²) a row, taken off α.
    - Laplace: max(2/(3√α), √(8/3))·s, the inequality of Vysochanskij and Petunin, as sums of symmetric unimodal
      variables are unimodal; and Chernoff's bound min_λ (ln(2/α) − ln(1 − λ²))/λ in units of the scale.

    Where a variable stands for its rounding, half a step for each row is added: at most √rows/2 times s in steps.
    """
    outside = float(1 - level)
    deviation = law.standard_deviation
    if deviation == 0:
        return np.zeros_like(errors)
    rounding = math.sqrt(rows) / 2 / deviation
    if isinstance(law, DiscreteGaussian):
        sigma = math.sqrt(law.sigma_squared)
        factor = math.sqrt(2 * math.log(2 / outside)) * sigma / deviation
        left = outside - rows / (10 * sigma**2)
        if law.variance >= _FINE and left > 0:
            factor = min(factor, -NormalDist().inv_cdf(left / 2) + rounding)
    else:
        unimodal = max(2 / (3 * math.sqrt(outside)), math.sqrt(8 / 3))
        factor = unimodal * math.sqrt(1 + 1 / (12 * law.variance)) + rounding
        slopes = np.linspace(0.01, 0.99, 99)
        chernoff = float(((math.log(2 / outside) - np.log1p(-(slopes**2))) / slopes).min())
        factor = min(factor, chernoff * _scale(law) / deviation)
    widths: Floats = errors * factor * (1 + 1e-9)
    return widths


def _scale(law: Any) -> float:
    return float(law.scale)
