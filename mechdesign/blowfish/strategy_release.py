"""Release of a workload's answers through a strategy: exact noise, decoding by least squares, and intervals."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify.exact import exact_text
from mechdesign.errors import InputError
from mechdesign.mechanisms.discrete import LARGEST_VALUE, DiscreteGaussian, DiscreteNoise, as_confidence
from mechdesign.validation import as_generator

from .budget import Budget, LedgerLike
from .linear_release import describe_policy
from .release import Description, Release

if TYPE_CHECKING:
    from .linear_strategy import Strategy

__all__ = ["half_widths", "release_workload"]

_Floats = NDArray[np.float64]

# From this variance on rounding a normal variable is a good stand-in for the discrete law.
_FINE = 2.0**20


def release_workload(
    strategy: Strategy,
    data: object,
    *,
    epsilon: object = None,
    rho: object = None,
    ledger: LedgerLike | None = None,
    rng: np.random.Generator | int | None = None,
    confidence: object = Fraction(19, 20),
) -> Release:
    """Answer the strategy's workload from a table: see `Strategy.release`."""
    law = strategy.law(epsilon=epsilon, rho=rho)
    generator = None if rng is None else as_generator(rng)
    level = as_confidence(confidence)
    policy, workload, space = strategy.policy, strategy.workload, strategy.space
    counts = policy.domain.counts(data)
    if int(np.abs(strategy.rows).sum(axis=0).max(initial=0)) * int(counts.sum()) > LARGEST_VALUE:
        raise InputError("data", "hold too many records for the strategy's lattice", value=int(counts.sum()))
    budget, what = Budget.of(epsilon, rho), f"workload: {workload.phrase}"
    totals = counts - space.histogram(space.paths[:-1].T @ counts)
    if law is None:
        budget = Budget(epsilon=Fraction(0)) if budget.rho is None else Budget(rho=Fraction(0))
        # Of the data nothing but what the policy leaves exact is used.
        histogram, mechanism = totals, "none"
        errors = widths = np.zeros(workload.count)
    else:
        budget.spend(ledger, what, policy.neighbours)
        histogram = strategy.estimate(law.add(strategy.rows @ counts, generator), totals)
        errors = strategy.standard_errors(epsilon=epsilon, rho=rho)
        widths = half_widths(law, errors, len(strategy.rows), level)
        mechanism = (
            f"{strategy.kind} strategy of {len(strategy.rows)} queries, {law} on each in steps of "
            f"{exact_text(strategy.unit)}, decoded by least squares"
        )
    answers = workload.answers(histogram)
    description = Description(
        what=what,
        policy=describe_policy(policy),
        neighbours=policy.neighbours,
        mechanism=mechanism,
        epsilon=budget.epsilon,
        rho=budget.rho,
        step=strategy.unit,
        confidence=level,
        rehearsal=rng is not None,
        remarks=_remarks(strategy, law, budget),
    )
    return Release(description, workload.labels(), answers, errors, answers - widths, answers + widths)


def half_widths(law: DiscreteNoise, errors: _Floats, rows: int, level: Fraction) -> _Floats:
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
    widths: _Floats = errors * factor * (1 + 1e-9)
    return widths


def _scale(law: Any) -> float:
    return float(law.scale)


def _remarks(strategy: Strategy, law: DiscreteNoise | None, budget: Budget) -> tuple[str, ...]:
    if law is None:
        return ("The policy leaves these answers exact: no two neighbouring databases differ in them.",)
    error = strategy.error(epsilon=budget.epsilon, rho=budget.rho)
    limit = strategy.lower_bound(epsilon=budget.epsilon, rho=budget.rho)
    return (
        strategy.exact_part,
        f"Expected total squared error {error:.6g}; no linear unbiased strategy with continuous noise has less than "
        f"{limit:.6g}.",
        "The answers are unbiased and are not rounded to what is possible: counts may be negative.",
    )
