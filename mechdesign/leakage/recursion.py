"""Backward, forward and total leakage of a sequence of releases, and where they end up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.leakage.correlation import Correlation
from mechdesign.leakage.correlation import candidate_functions
from mechdesign.leakage.correlation import step_functions
from mechdesign.leakage.loss import LossFunction
from mechdesign.leakage.numbers import as_not_negative
from mechdesign.leakage.pairing import check_directions
from mechdesign.leakage.upwards import Amount
from mechdesign.leakage.upwards import advance
from mechdesign.leakage.upwards import first
from mechdesign.leakage.upwards import that_count
from mechdesign.leakage.upwards import total
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_budgets

__all__ = ["backward", "both_ways", "forward", "supremum", "temporal"]


def __dir__() -> list[str]:
    return sorted(__all__)


@in_own_arithmetic
def backward(epsilons: ArrayLike, P: Correlation) -> Floats:
    """Return the backward privacy leakage BPL_t = L(BPL_{t−1}) + ε_t, BPL_0 = ε_0, in nats, shape (T,).

    Equation (13). `P` is Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` (the
    largest over all of them is returned), or None. An upper bound, not always reached, and rounded up; where L is 0 or
    the identity it is the sum of the decimals that budgets print.

    >>> backward([0.1, 0.1, 0.1], [[0.8, 0.2], [0.0, 1.0]]).round(4).tolist()
    [0.1, 0.1808, 0.2471]
    >>> backward([0.1, 0.1, 0.1], [[1, 0], [0, 1]]).tolist()
    [0.1, 0.2, 0.3]
    """
    budgets = as_budgets(epsilons)
    carried = _carried(budgets.tolist(), step_functions(P, len(budgets), "backward"))
    return _totals(carried, [0.0] * len(budgets), budgets)


@in_own_arithmetic
def forward(epsilons: ArrayLike, P: Correlation) -> Floats:
    """Return the forward privacy leakage FPL_t = L(FPL_{t+1}) + ε_t, ε_t at the last t, in nats, shape (T,).

    Equation (15). `P` is Pr(next state | state now), in any form that `backward` takes. Rounded as there.
    """
    budgets = as_budgets(epsilons)
    carried = _carried_back(budgets.tolist(), step_functions(P, len(budgets), "forward"))
    return _totals([0.0] * len(budgets), carried, budgets)


@in_own_arithmetic
def temporal(epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None) -> Floats:
    """Return the temporal privacy leakage TPL_t = BPL_t + FPL_t − ε_t of every release, in nats, shape (T,).

    Equation (10), for one user. With candidates on both sides it is the worst of all combinations. Rounded up; where
    each L is 0 or the identity it is the sum of the decimals that budgets print.

    >>> temporal([0.1, 0.1], backward=[[1, 0], [0, 1]]).tolist()
    [0.1, 0.2]
    """
    budgets = as_budgets(epsilons)
    before, after = both_ways(budgets, backward, forward)
    return _totals(before, after, budgets)


@in_own_arithmetic
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


def both_ways(budgets: Floats, backward: Correlation, forward: Correlation) -> tuple[list[Amount], list[Amount]]:
    """Return what is carried to every release from before and from after it, T each: L_B(BPL_{t−1}), L_F(FPL_{t+1}).

    The correlations are those of the same chain. With ε_t the two add up to TPL_t.
    """
    chains = [step_functions(backward, len(budgets), "backward"), step_functions(forward, len(budgets), "forward")]
    check_directions(chains[0], chains[1])
    values = budgets.tolist()
    return _carried(values, chains[0]), _carried_back(values, chains[1])


def _carried_back(budgets: list[float], chains: list[list[LossFunction | None]]) -> list[Amount]:
    return _carried(budgets[::-1], [chain[::-1] for chain in chains])[::-1]


def _carried(budgets: list[float], chains: list[list[LossFunction | None]]) -> list[Amount]:
    """Return the largest over all candidates of what the releases before each one add to it."""
    if all(len(set(map(id, chain))) <= 1 for chain in chains) and len(budgets) > 1:
        steps = len(budgets) - 1
        chains = [[loss] * steps for loss in that_count(chain[0] for chain in chains)] or [[None] * steps]
    series = []
    for chain in chains:
        step = first(budgets[0])
        carried = [step.carried]
        for loss, spent, epsilon in zip(chain, budgets[:-1], budgets[1:], strict=True):
            step = advance(loss, step, spent, epsilon)
            carried.append(step.carried)
        series.append(carried)
    return series[0] if len(series) == 1 else [max(amounts) for amounts in zip(*series, strict=True)]


def _totals(before: list[Amount], after: list[Amount], budgets: Floats) -> Floats:
    return np.array([total(*each) for each in zip(before, after, budgets.tolist(), strict=True)])
