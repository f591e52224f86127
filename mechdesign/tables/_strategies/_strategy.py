"""Strategy: decoded answers, errors, release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.leakage._partition import Partition
from mechdesign.mechanisms._discrete import DiscreteGaussian, DiscreteLaplace, DiscreteNoise
from mechdesign.tables._answers import check_table, true_answers
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._charges import CONFIDENCE, EXACT, UNBIASED, Rng, Terms
from mechdesign.tables._linear_queries import LinearQueries
from mechdesign.tables._policy import Policy
from mechdesign.tables._release import Release
from mechdesign.tables._strategies._bound import StrategyBound
from mechdesign.tables._strategies._gaussian import EdgeSpace

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


@dataclass(frozen=True, eq=False)
class Strategy:
    """Queries that are asked with noise, chosen so that the answers to a workload decoded from them have little error.

    Attributes:
        workload: the queries that are to be answered.
        policy: the Blowfish policy that the release must keep.
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

    workload: LinearQueries = field(repr=False)
    policy: Policy = field(repr=False)
    noise: Literal["gaussian", "laplace"]
    kind: str
    reason: str
    candidates: tuple[tuple[str, str, float], ...]
    rows: Integers = field(repr=False)
    unit: Fraction
    power: Fraction
    bound: StrategyBound = field(repr=False)
    space: EdgeSpace = field(repr=False)
    decoding: Floats = field(repr=False)
    trace: float = field(repr=False)

    def __repr__(self) -> str:
        excess = self.candidates[0][2] if self.candidates else float("nan")
        for kind, _, error in self.candidates:
            if kind == self.kind:
                excess = error
                break
        return f"Strategy({self.kind}, {self.noise} noise, {len(self.rows)} queries, {excess:.4g} × the proven limit)"

    @property
    def matrix(self) -> Floats:
        """Return the strategy A, shape (k, |T|): the noisy rows only, within the span of the edges."""
        return self.space.centred((self.rows * float(self.unit)).astype(np.float64))

    @property
    def exact_rows(self) -> Floats:
        """Return the queries that no edge changes and that are released exactly, 0/1 of shape (c, |T|)."""
        return self.space.totals

    @property
    def exact_part(self) -> str:
        """Say what is released without noise, because the policy does not protect it."""
        count = len(self.space.free)
        if count == 0:
            return "Nothing is released exactly."
        if count == 1 and (self.space.component == self.space.free[0]).all():
            return "The number of records is not protected by the policy and is released exactly."
        if count == 1:
            return (
                "The number of records in one component of the policy's graph is not protected and is released exactly."
            )
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
        budget = self._check_budget(epsilon, rho)
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

    def estimate(self, noisy: NDArray[Any], exact_counts: NDArray[Any]) -> Floats:
        """Return the histogram decoded from noisy answers, in units of `unit`, and exact component totals.

        Args:
            noisy: the noisy answers to `rows`, shape (k,).
            exact_counts: a histogram with the true totals of the components, shape (|T|,).
        """
        result: Floats = exact_counts + self.space.histogram(self.decoding @ (noisy * float(self.unit)))
        return result

    def standard_errors(self, *, epsilon: Any = None, rho: Any = None) -> Floats:
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
        result: Floats = np.sqrt(law.variance * variances)
        return result

    def release(
        self,
        data: object = None,
        *,
        positions: ArrayLike | None = None,
        epsilon: Any = None,
        rho: Any = None,
        ledger: LedgerLike | None = None,
        rng: Rng = None,
        confidence: object = CONFIDENCE,
        together: bool = False,
    ) -> Release:
        """Answer the workload from a table.

        Args:
            data: the table, in any form that `Domain.indices` accepts.
            positions: instead of `data` the numbers of the values of the records.
            epsilon: ε in nats, for Laplace noise.
            rho: ρ under zero-concentrated differential privacy, for Gaussian noise.
            ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
            rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating
                system's randomness.
            confidence: the confidence level of each answer's interval, in (0, 1).
            together: whether to release even if this and an earlier release, one of them exact, together distinguish
                protected values. The ledger records this choice.

        Returns:
            The answers with their standard errors and intervals, what was spent and what is protected, in words.

        Raises:
            InputError: a value outside the domain, a budget of the other kind, or no record where their number is
                public.
            BudgetExceededError: the ledger has too little budget left.
            ExactReleaseError: this and an earlier release, one of them exact, together distinguish protected values.
        """
        budget = self._check_budget(epsilon, rho)
        return self.answer(Terms(self.policy, budget, rng, ledger, confidence, together), data, positions)

    def answer(self, terms: Terms, data: object, positions: ArrayLike | None) -> Release:
        """Answer the workload from a table, on terms with the policy of the strategy: see `release`."""
        asked = {"epsilon": terms.budget.epsilon, "rho": terms.budget.rho}
        law = self.law(**asked)
        workload, space = self.workload, self.space
        counts = self.policy.domain.counts(data, positions=positions)
        check_table(self.policy, counts, int(np.abs(self.rows).sum(axis=0).max(initial=0)))
        what = f"workload: {workload.phrase}"
        totals = counts - space.histogram(space.paths[:-1].T @ counts)
        errors = widths = np.zeros(workload.count)
        mechanism = "none"
        if law is not None:
            errors = self.standard_errors(**asked)
            widths = half_widths(law, errors, len(self.rows), terms.level)
            mechanism = (
                f"{self.kind} strategy of {len(self.rows)} queries, {law} on each in steps of "
                f"2^{1 - self.unit.denominator.bit_length()}, decoded by least squares"
            )
        remarks = self._remarks(law, terms.budget)
        description = terms.describe(what, mechanism, remarks, step=self.unit, noisy=law is not None)
        labels = workload.labels()

        def make_release(histogram: NDArray[Any]) -> Release:
            answers = workload.answers(histogram)
            return Release(description, labels, answers, errors, answers - widths, answers + widths)

        # Of the data nothing but what the policy leaves exact is used without noise.
        if law is None:
            return terms.release(what, lambda: make_release(totals), None, workload.classes)
        noise, steps = law, true_answers(self.rows, counts)

        def rehearse() -> None:
            noise.prepare()
            # That nothing of it depends on the answers, the zeros show.
            make_release(self.estimate(np.zeros_like(steps), np.zeros_like(totals)))

        def draw() -> Release:
            return make_release(self.estimate(noise.add(steps, terms.generator), totals))

        return terms.release(what, draw, rehearse, self._classes_of_totals if len(space.free) else None)

    def _classes_of_totals(self) -> Partition:
        """Return the classes that the exact totals tell apart; values joined to absence are in no total."""
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
        # A budget that no release takes has no error either.
        self.law(epsilon=epsilon, rho=rho)
        return amount

    def _check_budget(self, epsilon: Any, rho: Any) -> Budget:
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
