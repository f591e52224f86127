"""Answers to many linear queries at once: the strategy of least error, its proven limit, and its exact release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError, SolverError
from mechdesign.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from mechdesign.validation import as_number

from .budget import Budget, LedgerLike
from .classical_strategies import decoder, squared_error
from .edge_space import EdgeSpace, edge_space
from .linear_queries import linear
from .numbers import as_lattice
from .policy import Policy, as_policy
from .release import Release
from .strategy_bound import StrategyBound, certified_bound
from .strategy_candidates import KINDS, Candidate, candidate, program
from .strategy_release import release_workload
from .workload import Workload, as_workload

__all__ = ["Strategy", "strategy"]

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]

_LARGEST_SIZE = 2048
_TOLERANCE = 5e-5
# Rows are rounded so finely that sums of squares of their differences just fit an int64.
_BITS = 61


@dataclass(frozen=True, eq=False)
class Strategy:
    """Queries that are asked with noise, chosen so that the answers to a workload decoded from them have little error.

    Attributes:
        workload: the queries that are to be answered.
        policy: what is protected.
        noise: ``"gaussian"`` or ``"laplace"``.
        kind: which strategy it is, such as ``"optimal"`` or ``"hierarchical"``.
        reason: why this kind was taken.
        candidates: kind, parameters and expected error (relative to the proven limit) of every strategy considered,
            best first.
        rows: the noisy queries as integers, shape (k, |T|), in units of `unit`. They agree with `matrix` on every edge.
        unit: the step of the lattice on which the noisy answers lie.
        power: the exact sensitivity of `rows` in units: Δ for Laplace, Δ² for Gaussian noise.
        bound: τ²/Σμ with the weights that prove it, in units in which Δ and the noise's variance are one.
        space: the span of the edges.
        decoding: (A·unit)⁺ in the coordinates of the spanning forest, shape (d, k).
        trace: tr(M(AᵀA)⁺) for the integer rows A.
    """

    workload: Workload = field(repr=False)
    policy: Policy = field(repr=False)
    noise: Literal["gaussian", "laplace"]
    kind: str
    reason: str
    candidates: tuple[tuple[str, str, float], ...]
    rows: _Integers = field(repr=False)
    unit: Fraction
    power: Fraction
    bound: StrategyBound = field(repr=False)
    space: EdgeSpace = field(repr=False)
    decoding: _Floats = field(repr=False)
    trace: float = field(repr=False)

    def __repr__(self) -> str:
        excess = self.candidates[0][2] if self.candidates else float("nan")
        for kind, _, error in self.candidates:
            if kind == self.kind:
                excess = error
                break
        return f"Strategy({self.kind}, {self.noise} noise, {len(self.rows)} queries, {excess:.4g} × the proven limit)"

    @property
    def matrix(self) -> _Floats:
        """Return the strategy A, shape (k, |T|): the noisy rows only, within the span of the edges."""
        return self.space.centred((self.rows * float(self.unit)).astype(np.float64))

    @property
    def exact_rows(self) -> _Floats:
        """Return the queries that no edge changes and that are released exactly, 0/1 of shape (c, |T|)."""
        return self.space.totals

    @property
    def exact_part(self) -> str:
        """Say what is released without noise, because the policy does not protect it."""
        count = len(self.space.free)
        if count == 0:
            return "Nothing is released exactly."
        if count == 1:
            return "The number of records is not protected by the policy and is released exactly."
        return (
            f"The numbers of records in the {count} components of the policy's graph are not protected and are "
            "released exactly."
        )

    @property
    def sensitivity(self) -> float:
        """Return Δ of `matrix` over all edges: in the ℓ2 norm for Gaussian, in the ℓ1 norm for Laplace noise."""
        power = float(self.power)
        return float(self.unit) * (power if self.noise == "laplace" else math.sqrt(power))

    def law(self, *, epsilon: Any = None, rho: Any = None) -> DiscreteLaplace | DiscreteGaussian | None:
        """Return the law of the noise on each row, in units of `unit`, or None where nothing is noisy.

        Two-sided geometric noise of scale Δ₁/ε is ε-private, a discrete Gaussian with σ² = Δ₂²/(2ρ) is ρ-zCDP (Canonne,
        Kamath and Steinke 2020); both are exact statements about integers.
        """
        budget = self._checked(epsilon, rho)
        if self.power == 0:
            return None
        return budget.laplace(self.power) if self.noise == "laplace" else budget.gaussian(self.power)

    def error(self, *, epsilon: Any = None, rho: Any = None) -> float:
        """Return the expected total squared error over the workload.

        2(Δ₁/ε)²·tr(M(AᵀA)⁺) for Laplace, Δ₂²/(2ρ)·tr(M(AᵀA)⁺) for Gaussian noise. The lattice is so fine that its noise
        has this variance.
        """
        budget = self._budget(epsilon, rho)
        if self.noise == "laplace":
            return 2 * float(self.power / budget) ** 2 * self.trace
        return float(self.power / (2 * budget)) * self.trace

    def lower_bound(self, *, epsilon: Any = None, rho: Any = None) -> float:
        """Return a lower bound on the expected total squared error of linear strategies with continuous noise.

        For Gaussian noise τ²/Σμ/(2ρ): no linear strategy with the same noise on every row has less. For Laplace noise
        2/ε²·τ²/Σμ: none with linear unbiased decoding has less, as the ℓ1 sensitivity is no smaller than the ℓ2
        sensitivity. Decoding that is neither, such as isotonic regression, can pass it; and so can noise on the
        integers themselves where the budget is so large that most of it is zero (`release_histogram` from about ε = 3
        on), because counts are integers.
        """
        budget = self._budget(epsilon, rho)
        scale = 2 / budget**2 if self.noise == "laplace" else 1 / (2 * budget)
        return self.bound.value * float(scale) * (1 - 2**-50)

    def estimate(self, noisy: NDArray[Any], exact_counts: NDArray[Any]) -> _Floats:
        """Return the histogram decoded from noisy answers, in units of `unit`, and exact component totals.

        Args:
            noisy: the noisy answers to `rows`, shape (k,).
            exact_counts: a histogram with the true totals of the components, shape (|T|,).
        """
        result: _Floats = exact_counts + self.space.histogram(self.decoding @ (noisy * float(self.unit)))
        return result

    def standard_errors(self, *, epsilon: Any = None, rho: Any = None) -> _Floats:
        """Return the standard error of each answer, shape (queries,)."""
        law = self.law(epsilon=epsilon, rho=rho)
        if law is None:
            return np.zeros(self.workload.count)
        if self.workload.integral:
            spread = self.space.histogram(self.decoding) * float(self.unit)
            variances = self.workload.variances(spread @ spread.T)
        else:
            # What the coefficients of a query have in common would drown small differences.
            spread = self.space.differences(self.workload.matrix()) @ self.decoding * float(self.unit)
            variances = (spread**2).sum(axis=1)
        result: _Floats = np.sqrt(law.variance * variances)
        return result

    def release(
        self,
        data: object,
        *,
        epsilon: Any = None,
        rho: Any = None,
        ledger: LedgerLike | None = None,
        rng: np.random.Generator | int | None = None,
        confidence: object = Fraction(19, 20),
    ) -> Release:
        """Answer the workload from a table.

        Args:
            data: the table, as for `Domain.indices`.
            epsilon: ε in nats, for Laplace noise.
            rho: ρ under zero-concentrated differential privacy, for Gaussian noise.
            ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
            rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
            confidence: of the interval of each answer on its own.

        Returns:
            The answers with their standard errors and intervals, what was spent and what is protected, in words.

        Raises:
            InputError: a value outside the domain, no record, or a budget of the other kind.
            BudgetExceededError: the ledger refuses.
        """
        return release_workload(self, data, epsilon=epsilon, rho=rho, ledger=ledger, rng=rng, confidence=confidence)

    def _budget(self, epsilon: Any, rho: Any) -> Fraction:
        budget = self._checked(epsilon, rho)
        amount = budget.epsilon if self.noise == "laplace" else budget.rho
        assert amount is not None
        return amount

    def _checked(self, epsilon: Any, rho: Any) -> Budget:
        budget = Budget.of(epsilon, rho)
        if self.noise == "laplace":
            if budget.epsilon is None:
                raise InputError(
                    "rho",
                    "does not measure Laplace noise",
                    value=rho,
                    bound="epsilon",
                    remedy='ε-privacy implies ρ-zCDP with ρ = ε²/2: give epsilon = √(2ρ), or use noise="gaussian"',
                )
        elif budget.rho is None:
            raise InputError(
                "epsilon",
                "does not measure Gaussian noise, which is ε-private for no ε",
                value=epsilon,
                bound="rho",
                remedy='give rho, or use noise="laplace"',
            )
        return budget


def strategy(
    workload: object,
    policy: Policy,
    noise: str = "gaussian",
    kind: str = "auto",
    *,
    tolerance: float = _TOLERANCE,
) -> Strategy:
    """Choose the queries to be asked with noise so that a workload of linear queries is answered with least error.

    The total squared error is compared with a proven limit. For Gaussian noise the best strategy is found, with the
    limit within `tolerance` of it; for Laplace noise the best of several known ones, which may stay above the limit.

    Args:
        workload: a name, "identity", "prefixes", "ranges" or "marginals"; a list of tuples (low, high), ranges of
            numbers of values with both ends included; a matrix of shape (queries, |T|); or a `Workload`.
        policy: what is protected, without count constraints.
        noise: "gaussian" or "laplace".
        kind: "auto" for the one with the least expected error, or one of "optimal", "identity", "prefix",
            "hierarchical", "ordered-hierarchical".
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
            remedy="several records of neighbours then differ: release a histogram",
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
    queries = as_workload(workload, policy.domain)
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


def _on_lattice(best: Candidate, space: EdgeSpace, norm: int) -> tuple[_Integers, Fraction, _Floats]:
    """Return a strategy's rows on the values as integers, their unit, and the integers on the forest."""
    coefficients = best.coefficients
    reach = max(float(np.abs(best.rows @ space.paths.T).max()), float(np.abs(coefficients).max()))
    # Differences are at most twice the largest entry; a factor of two is left for rounding.
    bits = math.floor((_BITS - 4 - math.log2(len(coefficients))) / 2 - math.log2(reach))
    integers = np.rint(np.ldexp(coefficients, bits))
    lattice = integers if best.basis is None else integers @ best.basis
    rows = np.rint(lattice @ space.paths[:-1].T).astype(np.int64)
    return rows, Fraction(2) ** -bits, lattice
