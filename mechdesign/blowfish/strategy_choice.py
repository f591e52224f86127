"""The choice of queries to be asked with noise: the strategy of least error beside its proven limit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import InputError
from mechdesign.base._errors import SolverError
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_number

from mechdesign.blowfish.classical_strategies import decoder
from mechdesign.blowfish.classical_strategies import squared_error
from mechdesign.blowfish.edge_space import EdgeSpace
from mechdesign.blowfish.edge_space import edge_space
from mechdesign.blowfish.linear_queries import linear
from mechdesign.blowfish.linear_strategy import Strategy
from mechdesign.blowfish.numbers import as_lattice
from mechdesign.blowfish.policy import Policy
from mechdesign.blowfish.policy import as_policy
from mechdesign.blowfish.strategy_bound import StrategyBound
from mechdesign.blowfish.strategy_bound import certified_bound
from mechdesign.blowfish.strategy_candidates import KINDS
from mechdesign.blowfish.strategy_candidates import Candidate
from mechdesign.blowfish.strategy_candidates import candidate
from mechdesign.blowfish.strategy_candidates import program
from mechdesign.blowfish.workload import Workload
from mechdesign.blowfish.workload import as_workload

__all__ = ["strategy"]


_LARGEST_SIZE = 2048
_TOLERANCE = 5e-5
# Rows are rounded so finely that sums of squares of their differences just fit an int64.
_BITS = 61


@in_own_arithmetic
def strategy(
    workload: object,
    policy: Policy,
    noise: str = "gaussian",
    kind: str = "auto",
    *,
    positions: object = None,
    tolerance: float = _TOLERANCE,
) -> Strategy:
    """Choose the queries to be asked with noise so that a workload of linear queries is answered with least error.

    The total squared error is compared with a proven limit. For Gaussian noise the best strategy is found, with the
    limit within `tolerance` of it; for Laplace noise the best of several known ones, which may stay above the limit.

    Args:
        workload: a name, "identity", "prefixes", "ranges" or "marginals"; a list of tuples (low, high), ranges of
            values with both ends included; a matrix of shape (queries, |T|); or a `Workload`.
        policy: what is protected, without count constraints.
        noise: "gaussian" or "laplace".
        kind: "auto" for the one with the least expected error, or one of "optimal", "identity", "prefix",
            "hierarchical", "ordered-hierarchical".
        positions: instead of `workload`, which is None then, ranges of numbers of values, pairs (low, high).
        tolerance: the relative gap at which the search for the best Gaussian strategy ends.

    Returns:
        The strategy, with `error`, `lower_bound`, `matrix` and `release`.

    >>> from mechdesign.blowfish import Domain, Policy
    >>> found = strategy("ranges", Policy.line(Domain({"age": range(64)})))
    >>> found.kind, found.matrix.shape
    ('optimal', (63, 64))
    >>> round(found.error(rho="0.5") / found.lower_bound(rho="0.5"), 4)
    1.0
    >>> round((found.error(rho="0.5") / found.workload.count) ** 0.5, 4)
    1.3848

    Raises:
        InputError: an unknown name, a workload of another width or without queries, count constraints, or a domain of
            more than 2,048 values.
    """
    if noise not in ("gaussian", "laplace"):
        raise InputError("noise", "is unknown", value=noise, bound='"gaussian" or "laplace"')
    if kind not in ("auto", *KINDS):
        raise InputError("kind", "is unknown", value=kind, bound=f'"auto", {", ".join(map(repr, KINDS))}')
    if as_policy(policy).constraints:
        raise InputError(
            "policy",
            "has count constraints",
            value=len(policy.constraints),
            bound="none for a strategy",
            remedy="ask for these queries by release_linear, which puts noise on each of them",
        )
    if policy.domain.size > _LARGEST_SIZE:
        raise InputError(
            "policy",
            "has too many values",
            value=policy.domain.size,
            bound=f"at most {_LARGEST_SIZE} for a strategy",
            remedy="release an ordered hierarchical histogram, or group values",
        )
    if not 0 < as_number(tolerance, "tolerance") < 1:
        raise InputError("tolerance", "is not accepted", value=tolerance, bound="above 0 and below 1")
    queries = as_workload(workload, policy.domain, positions=positions)
    space = edge_space(policy.domain.size, policy.secret_graph.edges())
    law: Literal["gaussian", "laplace"] = "laplace" if noise == "laplace" else "gaussian"
    norm = 1 if noise == "laplace" else 2
    if not _protected(queries, space):
        return _exact_strategy(queries, policy, law, space)
    programme = program(queries, space, policy.domain.shape, tolerance)
    bound = certified_bound(queries, space, programme.best.weights)
    # The Gaussian optimum leaves the others no more than the tolerance: their budgets need no optimising.
    balance = noise == "laplace" or kind != "auto"
    kinds = KINDS if kind == "auto" else (kind,)
    found = [one for name in kinds if (one := candidate(name, programme, norm, balance=balance)) is not None]
    if not found:
        raise InputError(
            "kind",
            "does not fit the policy",
            value=kind,
            bound="edges between values more than one number apart",
        )
    found.sort(key=lambda one: one.error)
    best = found[0]
    rows, unit, lattice = _on_lattice(best, space, norm)
    largest = linear(policy.secret_graph, as_lattice(rows, space.size), norm)
    if not largest.exact:
        raise SolverError("the strategy's sensitivity could not be computed exactly; its rows are too large")
    decoding = decoder(lattice * float(unit))
    ratios = tuple((one.kind, one.detail, one.error / bound.value if bound.value else math.inf) for one in found)
    reason = "it was asked for"
    if kind == "auto":
        reason = f"it has the least expected error of {len(found)} candidates"
    reason += f": {ratios[0][2]:.6g} times the proven limit"
    trace = squared_error(decoding, programme.gram) * float(unit) ** 2
    return Strategy(
        queries, policy, law, best.kind, reason, ratios, rows, unit, largest.power, bound, space, decoding, trace
    )


def _protected(queries: Workload, space: EdgeSpace) -> bool:
    """Say whether any edge changes the answer to any query, however little.

    The Gram matrix of integers is exact. That of other coefficients is not, and may hide a difference; but two floats
    differ if and only if their difference is not zero.
    """
    if space.rank == 0:
        return False
    changes = space.congruence(queries.gram()).diagonal() if queries.integral else space.differences(queries.matrix())
    return bool((changes != 0).any())


def _exact_strategy(queries: Workload, policy: Policy, noise: Any, space: EdgeSpace) -> Strategy:
    rank, size = space.rank, space.size
    bound = StrategyBound(0.0, np.zeros(len(space.edges)), np.zeros((rank, rank)))
    reason = "the policy protects nothing of the workload: all answers are exact"
    rows, decoding = np.zeros((0, size), dtype=np.int64), np.zeros((rank, 0))
    return Strategy(
        queries, policy, noise, "exact", reason, (), rows, Fraction(1), Fraction(0), bound, space, decoding, 0.0
    )


def _on_lattice(best: Candidate, space: EdgeSpace, norm: int) -> tuple[Integers, Fraction, Floats]:
    """Return a strategy's rows on the values as integers, their unit, and the integers on the forest."""
    coefficients = best.coefficients
    reach = max(float(np.abs(best.rows @ space.paths.T).max()), float(np.abs(coefficients).max()))
    # Differences are at most twice the largest entry; a factor of two is left for rounding.
    bits = math.floor((_BITS - 4 - math.log2(len(coefficients))) / 2 - math.log2(reach))
    integers = np.rint(np.ldexp(coefficients, bits))
    lattice = integers if best.basis is None else integers @ best.basis
    rows = np.rint(lattice @ space.paths[:-1].T).astype(np.int64)
    return rows, Fraction(2) ** -bits, lattice
