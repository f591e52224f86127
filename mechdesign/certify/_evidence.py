"""The evidence for a certificate: the channel, the problem, and the multipliers of the lower bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import (
    Floats,
    Integers,
    as_distribution,
    as_nonnegative,
    as_whole_numbers,
    require_below,
    require_same_length,
)
from mechdesign.base._errors import InputError
from mechdesign.certify._claims import Claim, Floor, PairBound
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._stated import Stated

# Numerators of at most 2**62 and their differences fit in int64.
LARGEST_EXPONENT = 62


@dataclass(frozen=True, eq=False, repr=False)
class PairMultipliers:
    """Sparse multipliers y >= 0 of the rows g p(o|t) - p(o|s) >= 0 of a `PairBound` with factors g.

    Entries with the same indices are added.

    Args:
        sources: The secrets s (k,), int64.
        targets: The secrets t (k,), int64.
        observables: The observables o (k,), int64.
        values: y (k,), finite float64 >= 0.

    Raises:
        InputError: A value is out of range, or lengths differ.

    >>> PairMultipliers([0], [1], [0], [0.5])
    PairMultipliers(1 entries)
    """

    sources: Integers
    targets: Integers
    observables: Integers
    values: Floats

    def __post_init__(self) -> None:
        for name in ("sources", "targets", "observables"):
            object.__setattr__(self, name, as_whole_numbers(getattr(self, name), name, 1))
        object.__setattr__(self, "values", as_nonnegative(self.values, "values", 1))
        require_same_length(
            "multipliers",
            sources=self.sources,
            targets=self.targets,
            observables=self.observables,
            values=self.values,
        )

    def __repr__(self) -> str:
        return f"PairMultipliers({len(self.values)} entries)"


@dataclass(frozen=True, eq=False, repr=False)
class FloorMultipliers:
    """Sparse multipliers q >= 0 of the rows Σ_s π_s p(o|s) a(ŝ,s) - x_o >= 0 of a `Floor`.

    Entries with the same indices are added.

    Args:
        estimates: The estimates ŝ (k,), int64.
        observables: The observables o (k,), int64.
        values: q (k,), finite float64 >= 0.

    Raises:
        InputError: A value is out of range, or lengths differ.

    >>> FloorMultipliers([0], [1], [0.5])
    FloorMultipliers(1 entries)
    """

    estimates: Integers
    observables: Integers
    values: Floats

    def __post_init__(self) -> None:
        for name in ("estimates", "observables"):
            object.__setattr__(self, name, as_whole_numbers(getattr(self, name), name, 1))
        object.__setattr__(self, "values", as_nonnegative(self.values, "values", 1))
        require_same_length("multipliers", estimates=self.estimates, observables=self.observables, values=self.values)

    def __repr__(self) -> str:
        return f"FloorMultipliers({len(self.values)} entries)"


@dataclass(frozen=True, eq=False, repr=False)
class Multipliers:
    """The multipliers of all requirements.

    Args:
        requirements: The multipliers of each requirement, in the order of the requirements.
        weights: Weights (n,) >= 0 of the secrets for the worst cost, not all 0; None means the prior.

    Raises:
        InputError: Weights are negative, or all are 0.

    >>> from mechdesign.certify import Multipliers
    >>> Multipliers(())
    Multipliers(0 requirements)
    """

    requirements: tuple[PairMultipliers | FloorMultipliers, ...]
    weights: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", tuple(self.requirements))
        if self.weights is not None:
            object.__setattr__(self, "weights", as_nonnegative(self.weights, "weights", 1))
            if not self.weights.any():
                raise InputError("weights", "are all zero", bound="above 0 for at least one secret")

    def __repr__(self) -> str:
        return f"Multipliers({len(self.requirements)} requirements{', with weights' * (self.weights is not None)})"


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """A channel of integers, the problem that it solves, and multipliers that bound the cost from below.

    Args:
        numerators: The channel (n, m), int64, with p(o|s) = numerators[s,o] / 2**exponent; rows sum to 2**exponent.
        exponent: An integer from 1 to 62.
        prior: π (n,), finite float64, used as exact binary numbers; it sums to 1 within 1e-9.
        cost: c (n, m), float64 >= 0, used as exact binary numbers. An infinite cost forbids an answer; every secret has
            a finite cost.
        objective: "expected" for Σ_s π_s Σ_o p(o|s) c(s,o), or "worst" for max_s Σ_o p(o|s) c(s,o).
        requirements: The stated requirements.
        multipliers: The multipliers of the requirements, or None.

    Raises:
        InputError: An argument is out of range, or the sizes of the arguments do not match.

    >>> half = 1 << 61
    >>> Evidence([[half, half]] * 2, 62, [0.5, 0.5], [[0, 1], [1, 0]], "expected", ())
    Evidence(2 secrets, 2 observables, 0 requirements, None)
    """

    numerators: Integers
    exponent: int
    prior: Floats
    cost: Floats
    objective: str
    requirements: tuple[Stated, ...]
    multipliers: Multipliers | None = None

    def __repr__(self) -> str:
        n, m = self.numerators.shape
        return f"Evidence({n} secrets, {m} observables, {len(self.requirements)} requirements, {self.multipliers!r})"

    def __post_init__(self) -> None:
        if isinstance(self.exponent, bool) or not isinstance(self.exponent, int):
            raise InputError("exponent", "is not an integer", value=self.exponent, bound="an integer")
        if not 1 <= self.exponent <= LARGEST_EXPONENT:
            raise InputError("exponent", "is out of range", value=self.exponent, bound="between 1 and 62")
        if self.objective not in ("expected", "worst"):
            raise InputError("objective", "is unknown", value=self.objective, bound='"expected" or "worst"')
        object.__setattr__(self, "numerators", as_whole_numbers(self.numerators, "numerators", 2))
        object.__setattr__(self, "prior", as_distribution(self.prior, "prior"))
        object.__setattr__(self, "cost", as_nonnegative(self.cost, "cost", 2, infinite=True))
        object.__setattr__(self, "requirements", tuple(self.requirements))
        self._check_channel()
        if self.prior.shape != self.numerators.shape[:1]:
            raise InputError("prior", "does not match the channel", value=self.prior.shape, bound=f"({self.secrets},)")
        if self.cost.shape != self.numerators.shape:
            raise InputError("cost", "does not match the channel", value=self.cost.shape, bound=f"{self._shape}")
        nothing = np.isinf(self.cost).all(axis=1)
        if nothing.any():
            raise InputError(
                f"cost[{int(nothing.argmax())}]", "forbids every answer", bound="finite for at least one answer"
            )
        claims = self.claims()
        if self.multipliers is not None:
            self._check_multipliers(self.multipliers, claims)

    @property
    def secrets(self) -> int:
        """The number n of secrets, the rows of the channel."""
        return int(self.numerators.shape[0])

    @property
    def observables(self) -> int:
        """The number m of observables, the columns of the channel."""
        return int(self.numerators.shape[1])

    @property
    def _shape(self) -> tuple[int, int]:
        return self.secrets, self.observables

    def claims(self) -> tuple[Claim, ...]:
        """Return the claims to prove, one for each requirement, in order."""
        found: list[Claim] = []
        for index, requirement in enumerate(self.requirements):
            try:
                found.append(requirement.claim(self.secrets))
            except InputError as error:
                raise _inside(f"requirements[{index}]", error) from error
        return tuple(found)

    def _check_channel(self) -> None:
        if not self.numerators.size:
            raise InputError("numerators", "is empty", value=self._shape, bound="at least one row and one column")
        one = 1 << self.exponent
        if int(self.numerators.max()) > one:
            raise InputError("numerators", "has an entry above 1", value=int(self.numerators.max()), bound=f"<= {one}")
        # Sums of 31-bit halves cannot overflow.
        high = (self.numerators >> 31).sum(axis=1)
        low = (self.numerators & (2**31 - 1)).sum(axis=1)
        for row, (upper, lower) in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
            total = (upper << 31) + lower
            if total != one:
                raise InputError(f"numerators[{row}]", "is not a probability distribution", value=total, bound=f"{one}")

    def _check_multipliers(self, multipliers: Multipliers, claims: tuple[Claim, ...]) -> None:
        if multipliers.weights is not None and len(multipliers.weights) != self.secrets:
            found = multipliers.weights.shape
            raise InputError("multipliers.weights", "do not match the secrets", value=found, bound=f"({self.secrets},)")
        if len(multipliers.requirements) != len(claims):
            count = len(multipliers.requirements)
            raise InputError(
                "multipliers.requirements", "do not match the requirements", value=count, bound=f"{len(claims)} entries"
            )
        for index, (entry, claim) in enumerate(zip(multipliers.requirements, claims, strict=True)):
            path = f"multipliers.requirements[{index}]"
            require_below(entry.observables, self.observables, f"{path}.observables")
            if isinstance(entry, PairMultipliers):
                if isinstance(claim, Dithered):
                    if len(entry.values):
                        raise InputError(path, "has multipliers", bound=f"empty for {claim.kind} privacy")
                    continue
                if not isinstance(claim, PairBound):
                    raise InputError(
                        path, "belongs to a pair bound", bound=f"FloorMultipliers for {claim.kind} privacy"
                    )
                require_below(entry.sources, self.secrets, f"{path}.sources")
                require_below(entry.targets, self.secrets, f"{path}.targets")
            else:
                if not isinstance(claim, Floor):
                    raise InputError(path, "belongs to a floor", bound=f"PairMultipliers for {claim.kind} privacy")
                require_below(entry.estimates, len(claim.error), f"{path}.estimates")


def _inside(path: str, error: InputError) -> InputError:
    return InputError(f"{path}.{error.path}", error.problem, value=error.value, bound=error.bound, remedy=error.remedy)
