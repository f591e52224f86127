"""Backward, forward and total leakage of a sequence of releases, and where they end up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.leakage.correlation import Correlation, candidate_functions, step_functions
from mechdesign.leakage.lines import Floats
from mechdesign.leakage.loss import LossFunction
from mechdesign.leakage.numbers import as_not_negative
from mechdesign.leakage.pairing import check_directions
from mechdesign.validation import as_budgets

__all__ = ["backward", "both_ways", "forward", "supremum", "temporal"]


def __dir__() -> list[str]:
    return sorted(__all__)


def backward(epsilons: ArrayLike, P: Correlation) -> Floats:
    """Return the backward privacy leakage BPL_t = L(BPL_{t−1}) + ε_t, BPL_0 = ε_0, in nats, shape (T,).

    Equation (13). `P` is Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` (the
    largest over all of them is returned), or None. An upper bound, tight when the worst pairs of rows of successive
    steps agree.

    >>> backward([0.1, 0.1, 0.1], [[0.8, 0.2], [0.0, 1.0]]).round(4).tolist()
    [0.1, 0.1808, 0.2471]
    """
    budgets = as_budgets(epsilons)
    return _worst(budgets, step_functions(P, len(budgets), "backward"), "backward")


def forward(epsilons: ArrayLike, P: Correlation) -> Floats:
    """Return the forward privacy leakage FPL_t = L(FPL_{t+1}) + ε_t, ε_t at the last t, in nats, shape (T,).

    Equation (15). `P` is Pr(next state | state now), in any form that `backward` takes.
    """
    budgets = as_budgets(epsilons)
    return _worst(budgets, step_functions(P, len(budgets), "forward"), "forward")


def temporal(epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None) -> Floats:
    """Return the temporal privacy leakage TPL_t = BPL_t + FPL_t − ε_t of every release, in nats, shape (T,).

    Equation (10), for one user. With candidates on both sides it is the worst of all combinations.

    >>> temporal([0.1, 0.1], backward=[[1, 0], [0, 1]]).tolist()
    [0.1, 0.2]
    """
    budgets = as_budgets(epsilons)
    before, after = both_ways(budgets, backward, forward)
    # FPL − ε first: without forward correlation it is zero, and TPL is BPL to the last bit.
    leakage: Floats = before + (after - budgets)
    return leakage


def supremum(epsilon: float, backward: Correlation = None, forward: Correlation = None) -> float:
    """Return what the leakage of a release tends to when ε is spent before and after it for ever, or `math.inf`.

    The suprema of backward and forward leakage (Theorem 11) less ε.
    """
    epsilon = as_not_negative(epsilon, "epsilon")
    total = 0.0
    both = candidate_functions(backward, "backward"), candidate_functions(forward, "forward")
    before, after = ([[each] for each in functions] for functions in both)
    check_directions(before, after, stacklevel=3)
    for functions in both:
        total += max(epsilon if loss is None else loss.supremum(epsilon) for loss in functions)
    return total - epsilon


def both_ways(budgets: Floats, backward: Correlation, forward: Correlation) -> tuple[Floats, Floats]:
    """Return BPL and FPL of every release, each of shape (T,), for correlations of the same chain."""
    chains = [step_functions(backward, len(budgets), "backward"), step_functions(forward, len(budgets), "forward")]
    check_directions(chains[0], chains[1])
    return _worst(budgets, chains[0], "backward"), _worst(budgets, chains[1], "forward")


def _worst(budgets: Floats, chains: list[list[LossFunction | None]], path: str) -> Floats:
    """Return the largest leakage over all candidates at every release; forward ones run from the last release on."""
    if path == "forward":
        chains = [chain[::-1] for chain in chains]
        series = [_accumulated(budgets[::-1], chain)[::-1] for chain in chains]
    else:
        series = [_accumulated(budgets, chain) for chain in chains]
    worst: Floats = np.array(series).max(axis=0)
    return worst


def _accumulated(budgets: Floats, chain: list[LossFunction | None]) -> Floats:
    values = budgets.tolist()
    leakage = values[0]
    series = [leakage]
    for loss, epsilon in zip(chain, values[1:], strict=True):
        leakage = epsilon if loss is None else loss.at(leakage) + epsilon
        series.append(leakage)
    return np.array(series)
