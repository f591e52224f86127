"""Strategies: noisy queries, and the decoding of the answers to a workload from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.leakage._partition import Partition
from mechdesign.mechanisms._discrete import DiscreteGaussian, DiscreteLaplace, DiscreteNoise
from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import EXACT, UNBIASED, Terms
from mechdesign.tables._linear_queries import LinearQueries
from mechdesign.tables._optimal_strategies import EdgeSpace, StrategyBound
from mechdesign.tables._policy import Policy
from mechdesign.tables._records import Records, true_answers
from mechdesign.tables._release import Release

_FINE = 2.0**20


def half_widths(law: DiscreteNoise, errors: Floats, rows: int, level: Fraction) -> Floats:
    """Return half-widths t for sums Σ w_i X_i of noise, so that |Σ w_i X_i| ≤ t with at least the given probability.

    Here s is the standard error and α = 1 − level:

    - Gaussian: √(2 ln(2/α))·s, because the law is sub-Gaussian (Canonne, Kamath and Steinke 2020, Corollary 17). On a
      fine lattice, the normal quantile for a reduced α is another bound. The reduction is the total variation between
      the discrete Gaussian and a rounded normal variable, which is at most 1/(10σ²) for each row.
    - Laplace: s·c/√(2(1 − α(1 + c))) with c = ln(1/α) (Barlow and Marshall 1964). A sum Z of Laplace variables has a
      symmetric log-concave density, so ln P(|Z| > x) is concave in x ≥ 0. If P(|Z| > t) = e^(−wt), then P(|Z| > x) is
      at least e^(−wx) for x ≤ t, and s² = 2∫ x P(|Z| > x) dx is at least 2∫₀ᵗ x e^(−wx) dx, which decreases in w.

    Two-sided geometric noise is the difference of two rounded exponential variables, so it is less than a step away
    from a Laplace variable. A rounded variable is half a step away. For r rows, the steps add up to at most √r steps
    times the norm of w.
    """
    outside = float(1 - level)
    deviation = law.standard_deviation
    if deviation == 0:
        return np.zeros_like(errors)
    rounding = math.sqrt(rows) / deviation
    if isinstance(law, DiscreteGaussian):
        sigma = math.sqrt(law.sigma_squared)
        factor = math.sqrt(2 * math.log(2 / outside)) * sigma / deviation
        left = outside - rows / (10 * sigma**2)
        if law.variance >= _FINE and left > 0:
            factor = min(factor, -NormalDist().inv_cdf(left / 2) + rounding / 2)
    else:
        assert isinstance(law, DiscreteLaplace)
        c = -math.log(outside)
        factor = c / math.sqrt(1 - outside * (1 + c)) * float(law.scale) / deviation + rounding
    widths: Floats = errors * factor * (1 + 1e-9)
    return widths


@dataclass(frozen=True, eq=False)
class Layout:
    """The arrays of a strategy: `rows`, `space` and `decoding` of `Strategy`."""

    rows: Integers
    space: EdgeSpace
    decoding: Floats


@dataclass(frozen=True, eq=False)
class Strategy:
    """Noisy queries from which the answers to a workload are decoded with small errors.

    Attributes:
        workload: the queries to be answered.
        policy: the Blowfish policy that the release must satisfy.
        noise: ``"gaussian"`` or ``"laplace"``.
        kind: the kind of strategy, such as ``"optimal"`` or ``"hierarchical"``.
        reason: the reason why this kind was chosen.
        candidates: the kind, the parameters and the expected error of every candidate, in ascending order of error.
            Errors are relative to the lower bound.
        count: the number k of noisy queries.
        unit: the step of the lattice on which the noisy answers lie.
        power: the exact sensitivity of `rows`: Δ for Laplace noise, Δ² for Gaussian noise.
        bound: the lower bound τ²/Σμ for Δ = 1 and noise of variance 1, with what proves it.
        trace: the trace tr(M(AᵀA)⁺) for the integer rows A.
        lay_out: the function that makes the arrays, which a release needs.

    >>> from mechdesign.tables import Domain
    >>> from mechdesign.tables._workload import identity
    >>> found = identity(4).using("identity").strategy(Policy.threshold(Domain({"age": range(4)}), 1), "laplace")
    >>> found.kind, found.rows.shape
    ('identity', (4, 4))
    """

    workload: LinearQueries = field(repr=False)
    policy: Policy = field(repr=False)
    noise: Literal["gaussian", "laplace"]
    kind: str
    reason: str
    candidates: tuple[tuple[str, str, float], ...]
    count: int
    unit: Fraction
    power: Fraction
    bound: StrategyBound = field(repr=False)
    trace: float = field(repr=False)
    lay_out: Callable[[], Layout] = field(repr=False)

    def __repr__(self) -> str:
        excess = self.candidates[0][2] if self.candidates else float("nan")
        for kind, _, error in self.candidates:
            if kind == self.kind:
                excess = error
                break
        return f"Strategy({self.kind}, {self.noise} noise, {self.count} queries, {excess:.4g} × the proven limit)"

    @cached_property
    def _layout(self) -> Layout:
        return self.lay_out()

    @property
    def rows(self) -> Integers:
        """Return the noisy queries as integers, shape (k, |T|), in units of `unit`.

        Along every edge, `rows` × `unit` and `matrix` have the same differences.
        """
        return self._layout.rows

    @property
    def space(self) -> EdgeSpace:
        """Return the span of the edges."""
        return self._layout.space

    @property
    def decoding(self) -> Floats:
        """Return the matrix (A·unit)⁺ in the coordinates of the spanning forest, shape (d, k)."""
        return self._layout.decoding

    @property
    def matrix(self) -> Floats:
        """Return the strategy A, shape (k, |T|): the noisy rows, projected onto the span of the edges."""
        return self.space.centred((self.rows * float(self.unit)).astype(np.float64))

    @property
    def exact_rows(self) -> Floats:
        """Return the queries that are released exactly because no edge changes them, 0/1 of shape (c, |T|)."""
        return self.space.totals

    @property
    def exact_part(self) -> str:
        """Return a sentence about the counts that are released exactly because the policy does not protect them."""
        count = len(self.space.free)
        if count == 0:
            return "Nothing is released exactly."
        if count == 1 and (self.space.component == self.space.free[0]).all():
            return "The policy does not protect the number of records, which is released exactly."
        if count == 1:
            return (
                "One component of the policy's graph has an unprotected number of records, which is released exactly."
            )
        return (
            f"The numbers of records in the {count} components of the policy's graph are not protected and are "
            "released exactly."
        )

    @property
    def sensitivity(self) -> float:
        """Return the sensitivity of `matrix`: in the ℓ2 norm for Gaussian noise, in the ℓ1 norm for Laplace noise."""
        power = float(self.power)
        return float(self.unit) * (power if self.noise == "laplace" else math.sqrt(power))

    def law(self, *, epsilon: Any = None, rho: Any = None) -> DiscreteLaplace | DiscreteGaussian | None:
        """Return the law of the noise on each row, in units of `unit`, or None for exact answers.

        Two-sided geometric noise of scale Δ₁/ε is ε-private. Discrete Gaussian noise with σ² = Δ₂²/(2ρ) is ρ-zCDP
        (Canonne,
        Kamath and Steinke 2020). Both guarantees are exact for integer answers.

        Args:
            epsilon: ε in nats, for Laplace noise.
            rho: ρ of zero-concentrated differential privacy, for Gaussian noise.

        Returns:
            The law, or None.
        """
        budget = self._check_budget(epsilon, rho)
        if self.power == 0:
            return None
        return budget.laplace(self.power) if self.noise == "laplace" else budget.gaussian(self.power)

    def error(self, *, epsilon: Any = None, rho: Any = None) -> float:
        """Return the expected total squared error over the workload.

        The error is 2(Δ₁/ε)²·tr(M(AᵀA)⁺) for Laplace noise and Δ₂²/(2ρ)·tr(M(AᵀA)⁺) for Gaussian noise. The lattice is
        so fine that discrete noise has the variance of the continuous law.

        Args:
            epsilon: ε in nats, for Laplace noise.
            rho: ρ of zero-concentrated differential privacy, for Gaussian noise.

        Returns:
            The error.
        """
        budget = self._budget(epsilon, rho)
        if self.noise == "laplace":
            return 2 * float(self.power / budget) ** 2 * self.trace
        return float(self.power / (2 * budget)) * self.trace

    def lower_bound(self, *, epsilon: Any = None, rho: Any = None) -> float:
        """Return a lower bound on the expected total squared error of linear strategies with continuous noise.

        For Gaussian noise the bound is τ²/Σμ/(2ρ) for all linear strategies with equal noise on every row. For Laplace
        noise the bound is 2/ε²·τ²/Σμ for linear unbiased decoding, because the ℓ1 sensitivity is at least the ℓ2
        sensitivity. The error of nonlinear or biased decoding, such as isotonic regression, can be below the bound.
        So can the error of integer noise that is mostly zero, for example in a `Histogram` for ε of about 3 or
        more.

        Args:
            epsilon: ε in nats, for Laplace noise.
            rho: ρ of zero-concentrated differential privacy, for Gaussian noise.

        Returns:
            The lower bound.
        """
        budget = self._budget(epsilon, rho)
        scale = 2 / budget**2 if self.noise == "laplace" else 1 / (2 * budget)
        return self.bound.value * float(scale) * (1 - 2**-50)

    def estimate(self, noisy: NDArray[Any], exact_counts: NDArray[Any]) -> Floats:
        """Decode a histogram from noisy answers, which are in units of `unit`, and exact totals of the components.

        Args:
            noisy: the noisy answers to `rows`, shape (k,).
            exact_counts: a histogram that contains the true totals of the components, shape (|T|,).

        Returns:
            The estimated histogram, shape (|T|,).
        """
        result: Floats = exact_counts + self.space.histogram(self.decoding @ (noisy * float(self.unit)))
        return result

    def standard_errors(self, *, epsilon: Any = None, rho: Any = None) -> Floats:
        """Return the standard error of each answer.

        Args:
            epsilon: ε in nats, for Laplace noise.
            rho: ρ of zero-concentrated differential privacy, for Gaussian noise.

        Returns:
            The standard errors, shape (queries,).
        """
        law = self.law(epsilon=epsilon, rho=rho)
        if law is None:
            return np.zeros(self.workload.count)
        if self.workload.integral:
            spread = self.space.histogram(self.decoding) * float(self.unit)
            variances = self.workload.variances(spread @ spread.T)
        else:
            # Differences are used, because a large mean of a query's coefficients would cause cancellation.
            spread = self.space.differences(self.workload.matrix()) @ self.decoding * float(self.unit)
            variances = (spread**2).sum(axis=1)
        result: Floats = np.sqrt(law.variance * variances)
        return result

    def answer(
        self, terms: Terms, records: Records, what: str = "", labels: Mapping[str, NDArray[Any]] | None = None
    ) -> Any:
        """Answer the workload from a table.

        Args:
            terms: the terms of the release, with the policy of the strategy.
            records: the records of the table.
            what: the released quantity, in words; by default the workload.
            labels: the labels of the answers; by default those of the workload.

        Returns:
            The release.
        """
        asked = {"epsilon": terms.budget.epsilon, "rho": terms.budget.rho}
        law = self.law(**asked)
        workload, space = self.workload, self.space
        counts = records.checked(self.policy, int(np.abs(self.rows).sum(axis=0).max(initial=0)))
        what = what or f"workload: {workload.phrase}"
        totals = counts - space.histogram(space.paths[:-1].T @ counts)
        errors = widths = np.zeros(workload.count)
        mechanism = "none"
        if law is not None:
            errors = self.standard_errors(**asked)
            widths = half_widths(law, errors, len(self.rows), terms.level)
            mechanism = (
                f"{self.kind} strategy of {len(self.rows)} queries, {law.describe(self.unit)} on each in steps of "
                f"2^{1 - self.unit.denominator.bit_length()}, decoded by least squares"
            )
        remarks = self._remarks(law, terms.budget)
        description = terms.describe(what, mechanism, remarks, step=self.unit, noisy=law is not None)
        named = workload.labels() if labels is None else labels

        def make_release(histogram: NDArray[Any]) -> Release:
            answers = workload.answers(histogram)
            return Release(description, named, answers, errors, answers - widths, answers + widths)

        # Only the totals of the components are used without noise, because the policy does not protect them.
        if law is None:
            return terms.release(what, lambda: make_release(totals), None, workload.classes)
        noise, steps = law, true_answers(self.rows, counts)

        def rehearse() -> Release:
            noise.prepare()
            # The rehearsal uses zeros instead of the true answers, so it does not depend on the data.
            return make_release(self.estimate(np.zeros_like(steps), np.zeros_like(totals)))

        def draw() -> Release:
            return make_release(self.estimate(noise.add(steps, terms.generator), totals))

        return terms.release(what, draw, rehearse, self._classes_of_totals if len(space.free) else None)

    def _classes_of_totals(self) -> Partition:
        """Return the classes of values that exact totals distinguish; no total includes values joined to absence."""
        component, free = self.space.component, self.space.free
        return Partition.of(np.append(np.where(np.isin(component, free), component + 1, 0), 0))

    def _remarks(self, law: DiscreteNoise | None, budget: Budget) -> tuple[str, ...]:
        if law is None:
            return (EXACT,)
        error = self.error(epsilon=budget.epsilon, rho=budget.rho)
        limit = self.lower_bound(epsilon=budget.epsilon, rho=budget.rho)
        return (
            self.exact_part,
            f"Expected total squared error {error:.6g}; no linear unbiased strategy with continuous noise has less "
            f"than {limit:.6g}.",
            UNBIASED,
        )

    def _budget(self, epsilon: Any, rho: Any) -> Fraction:
        budget = self._check_budget(epsilon, rho)
        amount = budget.epsilon if self.noise == "laplace" else budget.rho
        assert amount is not None
        # This call raises an error for a budget that `release` does not accept.
        self.law(epsilon=epsilon, rho=rho)
        return amount

    def _check_budget(self, epsilon: Any, rho: Any) -> Budget:
        budget = Budget.of(epsilon, rho)
        if self.noise == "laplace":
            if budget.epsilon is None:
                raise InputError(
                    "rho",
                    "is not a budget for Laplace noise",
                    value=rho,
                    bound="epsilon",
                    remedy='use noise="gaussian", or epsilon = √(2ρ), because ε-privacy implies zCDP with ρ = ε²/2',
                )
        elif budget.rho is None:
            raise InputError(
                "epsilon",
                "is not a budget for Gaussian noise, which does not satisfy ε-privacy for any ε",
                value=epsilon,
                bound="rho",
                remedy='use noise="laplace"',
            )
        return budget
