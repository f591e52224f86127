"""The privacy budget of a release, in ε or ρ, and the noise for this budget."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text, nearest
from mechdesign.mechanisms._discrete import DiscreteGaussian, DiscreteLaplace, DiscreteNoise
from mechdesign.tables._sensitivity._sensitivity import Sensitivity

_LARGEST = Fraction(10) ** 100


@dataclass(frozen=True)
class Budget:
    """The budget of one release: either ε (two-sided geometric noise) or ρ (discrete Gaussian noise).

    Args:
        epsilon: ε in nats, a number or a string, above 0 and at most 1e100; it is stored as a fraction.
        rho: ρ of zero-concentrated differential privacy, above 0 and at most 1e100; it is stored as a fraction.

    Raises:
        InputError: Both arguments are given, neither is given, or the given number is out of range.

    >>> Budget.of(epsilon="0.5").laplace(2)
    DiscreteLaplace(scale=Fraction(4, 1))
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise InputError(
                "epsilon",
                "is not given" if self.epsilon is None else "is given together with rho",
                bound="one of epsilon, for two-sided geometric noise, and rho, for discrete Gaussian noise",
            )
        path, value = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        amount = exact(value, path)
        if amount <= 0:
            raise InputError(path, "is not positive", value=value, bound="> 0")
        if amount > _LARGEST:
            raise InputError(path, "is out of range", value=value, bound="at most 1e100")
        object.__setattr__(self, path, amount)

    @classmethod
    def of(cls, epsilon: object = None, rho: object = None) -> Budget:
        """Return a budget from exactly one number of any type that `Fraction` can represent exactly.

        Args:
            epsilon: ε in nats, or None.
            rho: ρ, or None.

        Returns:
            The budget.
        """
        return cls(epsilon, rho)  # type: ignore[arg-type]

    def laplace(self, sensitivity: Fraction | int) -> DiscreteLaplace:
        """Return two-sided geometric noise of scale Δ/ε, which makes integer answers ε-private.

        Args:
            sensitivity: the ℓ1 sensitivity Δ of the answers, above 0.

        Returns:
            The law of the noise.
        """
        assert self.epsilon is not None
        try:
            return DiscreteLaplace(Fraction(sensitivity) / self.epsilon)
        except InputError as error:
            raise self._too_small() from error

    def gaussian(self, square: Fraction | int) -> DiscreteGaussian:
        """Return discrete Gaussian noise with σ² = Δ²/(2ρ), which makes integer answers ρ-zCDP.

        See Canonne, Kamath and Steinke (2020).

        Args:
            square: the squared ℓ2 sensitivity Δ² of the answers, above 0.

        Returns:
            The law of the noise.
        """
        assert self.rho is not None
        try:
            return DiscreteGaussian(Fraction(square) / (2 * self.rho))
        except InputError as error:
            raise self._too_small() from error

    def noise(self, sensitivity: Sensitivity, step: Fraction) -> DiscreteNoise | None:
        """Return the noise on answers in units of `step`, or None if the sensitivity is 0.

        Args:
            sensitivity: the sensitivity of the answers in the norm `norm`.
            step: the step of the lattice on which the answers lie.

        Returns:
            The law of the noise, or None.
        """
        power = sensitivity.power
        if power == 0:
            return None
        return self.laplace(power / step) if self.rho is None else self.gaussian(power / step**2)

    @property
    def norm(self) -> int:
        """Return the norm in which the noise requires the sensitivity: 1 for a budget in ε, 2 for ρ."""
        return 1 if self.rho is None else 2

    @property
    def law(self) -> Literal["laplace", "gaussian"]:
        """Return the name of the noise, "laplace" or "gaussian", as `Workload.strategy` expects it."""
        return "laplace" if self.rho is None else "gaussian"

    def in_epsilon(self, what: str) -> Fraction:
        """Return ε; raise `InputError` for a budget in ρ.

        Args:
            what: the query in words, for the error message.

        Returns:
            ε.

        Raises:
            InputError: The budget is in ρ.
        """
        if self.epsilon is None:
            problem = f"is not a budget for {what}, whose noise is two-sided geometric"
            raise InputError("rho", problem, value=exact_text(self.rho or Fraction(0)), bound="epsilon")
        return self.epsilon

    def _too_small(self) -> InputError:
        path, amount = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        return InputError(
            path,
            "is too small or too large for the sensitivity",
            value=exact_text(amount or Fraction(0)),
            bound="a value for which the scale of the noise is above 0 and at most 2^50 steps",
        )

    def __str__(self) -> str:
        name, amount = ("ε", self.epsilon) if self.rho is None else ("ρ", self.rho)
        return f"{name} = {exact_text(amount or Fraction(0))}"

    def nothing(self) -> Budget:
        """Return a budget of 0 in the same unit, ε or ρ, for answers without noise."""
        return self._times(0)

    def of_person(self, rows: int) -> Budget:
        """Return the cost of a release for all rows of a person: k·ε, or k²·ρ; see `mechdesign.tables._records`.

        Args:
            rows: the largest number k of rows of one person.

        Returns:
            The cost, in the same unit.

        >>> str(Budget.of(epsilon="0.5").of_person(20)), str(Budget.of(rho="0.5").of_person(20))
        ('ε = 10', 'ρ = 200')
        """
        return self._times(rows if self.rho is None else rows**2)

    def _times(self, factor: int) -> Budget:
        found = copy.copy(self)
        path = "epsilon" if self.rho is None else "rho"
        object.__setattr__(found, path, getattr(self, path) * factor)
        return found


# If a factor is below this bound, multiplying or dividing a number up to 2^62 by it neither overflows nor underflows.
_LARGEST_FACTOR = 1 << 900


def scale_numbers(numbers: ArrayLike, step: Fraction) -> Floats:
    """Return the products numbers × step as a float64 array; every product must be finite.

    >>> scale_numbers([3], Fraction(1, 10)).tolist(), scale_numbers([3], Fraction(5, 10**324)).tolist()
    ([0.3], [1.5e-323])
    """
    array = np.asarray(numbers)
    if max(abs(step.numerator), step.denominator) < _LARGEST_FACTOR:
        # The multiplication comes before the division, so that 3 steps of 1/10 give exactly the float 0.3.
        found: Floats = array * float(step.numerator) / float(step.denominator)
        return found
    flat = [nearest(Fraction(number) * step) for number in array.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)
