"""Expected errors of range queries before any data are touched: the best split of the budget, the best fan-out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from scipy.optimize import minimize_scalar

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.blowfish.range_noise import RangeNoise
from mechdesign.blowfish.range_tree import RangeTree
from mechdesign.blowfish.range_tree import height
from mechdesign.certify._exact import exact
from mechdesign.certify._exact import exact_text
from mechdesign.base._errors import InputError
from mechdesign.base._check import as_integer

__all__ = ["RangePlan", "budget_split", "ordered_error", "plan_ranges"]


def __dir__() -> list[str]:
    return sorted(__all__)


# The error that this many blocks have on average is that of any larger number of them, nearly.
_BLOCKS = 64
# Shares of the budget are multiples of 2**-20 of it.
_SHARES = 2**20
# Within these all errors are floats, and all scales of the noise what `DiscreteLaplace` accepts.
_LEAST_EPSILON = Fraction(1, 10**6)
_LARGEST_EPSILON = 10**100
_LARGEST_FANOUT = 2**31
# Fan-outs whose error without least squares is larger by this factor than the best one's are not looked at.
_WORTH_A_LOOK = 2.0


@dataclass(frozen=True)
class RangePlan:
    """How the ordered hierarchical mechanism is to be run.

    Attributes:
        size: the number |T| of values.
        theta: θ.
        fanout: f.
        epsilon_nodes: ε_S, for the cumulative counts at the ends of blocks; 0 where there is one block only.
        epsilon_tree: ε_H, for the trees within blocks; 0 where θ = 1.
    """

    size: int
    theta: int
    fanout: int
    epsilon_nodes: Fraction
    epsilon_tree: Fraction

    @property
    def levels(self) -> int:
        """Return the number h of measured levels of the trees."""
        return height(self.theta, self.fanout)

    @property
    def noise(self) -> RangeNoise:
        """Return the noise: of scale 1/ε_S on cumulative counts, and 2h/ε_H on nodes of trees."""
        return RangeNoise(
            1 / self.epsilon_nodes if self.epsilon_nodes and self.size > self.theta else None,
            2 * self.levels / self.epsilon_tree if self.epsilon_tree else None,
        )

    @property
    def structure(self) -> RangeTree:
        """Return the structure with the variances of the noise."""
        return self.noise.structure(self.size, self.theta, self.fanout)

    @property
    def error(self) -> float:
        """Return the expected squared error of a range query by least squares, averaged over all ranges.

        It is exact for the discrete noise. Isotonic regression, which comes after, does not raise the total squared
        error of the cumulative counts.
        """
        return self.structure.mean_range_error()


@in_own_arithmetic
def budget_split(size: int, theta: int, fanout: int, epsilon: object) -> tuple[float, float, float]:
    """Return (ε_S, ε_H, expected squared error) of the ordered hierarchical mechanism by its formula.

    The average squared error of a range query, without least squares, is about

        E = c₁/ε_S² + c₂/ε_H²,   c₁ = 4(|T| − θ)/(|T| + 1),   c₂ = 8(f − 1)(log_f θ)³ |T|/(|T| + 1)

    (Blowfish, He et al. 2014, Theorem 7.2), which is least for ε_S = ε c₁^⅓/(c₁^⅓ + c₂^⅓) and ε_H = ε − ε_S, with the
    value (c₁^⅓ + c₂^⅓)³/ε².

    Args:
        size: the number |T| of values.
        theta: θ, from 1 to |T|.
        fanout: f, at least 2.
        epsilon: ε in nats.

    Raises:
        InputError: an argument out of range.

    >>> [round(number, 4) for number in budget_split(1024, 16, 4, 1)]
    [0.2149, 0.7851, 396.3685]
    """
    size, theta, fanout, budget = _checked(size, theta, fanout, epsilon)
    c1 = 4 * (size - theta) / (size + 1)
    c2 = 8 * (fanout - 1) * math.log(theta, fanout) ** 3 * size / (size + 1)
    if size == 1:
        # The only count is the public number of records.
        return float(budget), 0.0, 0.0
    first, second = c1 ** (1 / 3), c2 ** (1 / 3)
    nodes = float(budget) * first / (first + second)
    return nodes, float(budget) - nodes, (first + second) ** 3 / float(budget) ** 2


@in_own_arithmetic
def ordered_error(size: int, theta: int, epsilon: object) -> float:
    """Return the expected squared error of a range query by the ordered mechanism, averaged over all ranges.

    A range within the domain is a difference of two cumulative counts with noise of scale Δ/ε, Δ = min(θ, |T| − 1):
    4Δ²/ε² for continuous noise, whatever |T| (Blowfish, He et al. 2014, Theorem 7.1, for θ = 1). Ranges from the first
    value or to the last one need a single count. This is before isotonic regression, which can only help.
    """
    size, theta, _, budget = _checked(size, theta, 2, epsilon)
    sensitivity = min(theta, size - 1)
    if sensitivity == 0:
        return 0.0
    return RangeNoise(sensitivity / budget, None).structure(size, 1, 2).mean_range_error()


@in_own_arithmetic
def plan_ranges(size: int, theta: int, epsilon: object, fanout: int | None = None) -> RangePlan:
    """Plan the ordered hierarchical mechanism: the fan-out and split of the budget of least expected error.

    The error is that of least squares on the structure, averaged over all ranges and exact, but for at most 64 blocks.

    Raises:
        InputError: an argument out of range.
    """
    size, theta, given, budget = _checked(size, theta, 2 if fanout is None else fanout, epsilon)
    if theta == 1 or size == 1:
        return RangePlan(size, theta, given, budget, Fraction(0))
    candidates = [given] if fanout is not None else _fanouts(size, theta)
    blocks = min(size, theta * _BLOCKS)

    def shared(f: int, share: float) -> RangePlan:
        part = Fraction(min(max(round(share * _SHARES), 1), _SHARES - 1), _SHARES) if size > theta else Fraction(0)
        return RangePlan(blocks, theta, f, budget * part, budget * (1 - part))

    def by_formula(f: int) -> RangePlan:
        nodes, tree, _ = budget_split(blocks, theta, f, budget)
        return shared(f, nodes / (nodes + tree))

    best = candidates[0] if len(candidates) == 1 else min(candidates, key=lambda f: by_formula(f).error)
    found = by_formula(best)
    if size > theta:
        search = minimize_scalar(
            lambda share: shared(best, share).error, bounds=(0.01, 0.99), method="bounded", options={"xatol": 2e-3}
        )
        found = min(found, shared(best, float(search.x)), key=lambda plan: plan.error)
    return RangePlan(size, theta, best, found.epsilon_nodes, found.epsilon_tree)


def _fanouts(size: int, theta: int) -> list[int]:
    """Return the least fan-out for each height of the trees, without those that are hopeless."""
    errors = {}
    for levels in range(1, theta.bit_length() + 1):
        fanout = max(2, math.floor(theta ** (1 / levels)))
        while fanout**levels < theta:
            fanout += 1
        errors[fanout] = (fanout - 1) * height(theta, fanout) ** 3
    least = min(errors.values())
    return [fanout for fanout, error in errors.items() if error <= _WORTH_A_LOOK * least]


def _checked(size: int, theta: int, fanout: int, epsilon: object) -> tuple[int, int, int, Fraction]:
    number = as_integer(size, "size", 1)
    threshold = as_integer(theta, "theta", 1)
    if threshold > number:
        raise InputError("theta", "is above the number of values", value=theta, bound=f"from 1 to {number}")
    budget = exact(epsilon, "epsilon")
    if not _LEAST_EPSILON <= budget <= _LARGEST_EPSILON:
        problem = "is not positive" if budget <= 0 else "is out of range"
        raise InputError("epsilon", problem, value=exact_text(budget), bound="between 1e-6 and 1e100")
    branches = as_integer(fanout, "fanout", 2)
    if branches > _LARGEST_FANOUT:
        raise InputError("fanout", "is too large", value=fanout, bound=f"an integer from 2 to {_LARGEST_FANOUT}")
    return number, threshold, branches, budget
