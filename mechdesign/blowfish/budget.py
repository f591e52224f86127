"""The budget of one release: what it buys in noise, and how it is entered in a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from mechdesign.blowfish.query_sensitivity import sensitivity
from mechdesign.certify._exact import exact
from mechdesign.certify._exact import exact_text
from mechdesign.base._errors import InputError
from mechdesign.mechanisms._discrete import DiscreteGaussian
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.mechanisms._discrete import DiscreteNoise

if TYPE_CHECKING:
    from mechdesign.blowfish.policy import Policy

__all__ = ["Budget", "LedgerLike"]


def __dir__() -> list[str]:
    return sorted(__all__)


_LARGEST = Fraction(10) ** 100


class LedgerLike(Protocol):
    """What a release needs of a `mechdesign.leakage.accounting.Ledger`, or of a part of one.

    A ledger that keeps policies apart, and so has an attribute `by_policy`, is also given the keywords `policy`,
    `domain`, `components`, `classes` and `together` of `mechdesign.leakage.accounting.Ledger.spend`, and hears of releases without noise.
    """

    def spend(
        self,
        what: str,
        protects: str,
        epsilon: Any = None,
        rho: Any = None,
    ) -> object:
        """Record what is spent, or raise `mechdesign.base._errors.BudgetExceededError` and record nothing."""
        ...


@dataclass(frozen=True)
class Budget:
    """What one release may spend: exactly one of ε (two-sided geometric noise) and ρ (discrete Gaussian noise).

    >>> Budget.of(epsilon="0.5").laplace(2)
    DiscreteLaplace(scale=Fraction(4, 1))
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    @classmethod
    def of(cls, epsilon: object = None, rho: object = None) -> Budget:
        """Read a budget; raise `InputError` unless exactly one number is given and it is positive."""
        if (epsilon is None) == (rho is None):
            raise InputError(
                "epsilon",
                "is not given" if epsilon is None else "is given beside rho",
                bound="one of epsilon, for two-sided geometric noise, and rho, for discrete Gaussian noise",
            )
        path, value = ("epsilon", epsilon) if rho is None else ("rho", rho)
        amount = exact(value, path)
        if amount <= 0:
            raise InputError(path, "is not positive", value=value, bound="> 0")
        if amount > _LARGEST:
            raise InputError(path, "is out of range", value=value, bound="at most 1e100")
        return cls(epsilon=amount) if rho is None else cls(rho=amount)

    def laplace(self, sensitivity: Fraction | int) -> DiscreteLaplace:
        """Return the noise of scale Δ/ε for integers of ℓ1-sensitivity Δ > 0: it is ε-private."""
        assert self.epsilon is not None
        try:
            return DiscreteLaplace(Fraction(sensitivity) / self.epsilon)
        except InputError as error:
            raise self._too_small() from error

    def gaussian(self, square: Fraction | int) -> DiscreteGaussian:
        """Return the noise with σ² = Δ²/(2ρ) for integers of squared ℓ2-sensitivity Δ² > 0: it is ρ-zCDP.

        After Canonne, Kamath and Steinke 2020.
        """
        assert self.rho is not None
        try:
            return DiscreteGaussian(Fraction(square) / (2 * self.rho))
        except InputError as error:
            raise self._too_small() from error

    def noise(self, policy: Policy, query: Any, step: Fraction, **options: Any) -> DiscreteNoise | None:
        """Return the noise on a query's answers in units of `step`, or None where the policy leaves them exact."""
        power = sensitivity(policy, query, 1 if self.rho is None else 2, **options).power
        if power == 0:
            return None
        return self.laplace(power / step) if self.rho is None else self.gaussian(power / step**2)

    def _too_small(self) -> InputError:
        path, amount = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        return InputError(
            path,
            "is too small or too large for the sensitivity",
            value=exact_text(amount or Fraction(0)),
            bound="so that the noise has a scale above 0 and of at most 2^50 steps",
        )

    def nothing(self) -> Budget:
        """Return a budget of 0 in the same measure: what exact answers spend."""
        return Budget(epsilon=Fraction(0)) if self.rho is None else Budget(rho=Fraction(0))
