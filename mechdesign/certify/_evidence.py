"""Everything that a certificate rests on: the channel, the problem, and the multipliers of the lower bound."""

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

# Numerators of at most 2**62, and so their differences, fit int64.
LARGEST_EXPONENT = 62


@dataclass(frozen=True, eq=False, repr=False)
class PairMultipliers:
    """Multipliers y >= 0 of the rows g p(o|t) - p(o|s) >= 0 of a `PairBound` with factors g, in sparse form.

    Arrays of shape (k,): `sources` (s), `targets` (t), `observables` (o), int64, and `values` (y), finite float64.
    Entries for the same row add up.
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
    """Multipliers q >= 0 of the rows Σ_s π_s p(o|s) a(ŝ,s) - x_o >= 0 of a `Floor`, in sparse form.

    Arrays of shape (k,): `estimates` (ŝ), `observables` (o), int64, and `values` (q), finite float64. Entries for the
    same row add up.
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
    """One entry for each requirement, in order, and `weights` (n,) >= 0 of the secrets when the worst cost counts.

    Without weights the prior serves. Weights need not sum to 1, but not all may be 0.
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

    `numerators` is int64 of shape (n, m) with p(o|s) = numerators[s,o] / 2**exponent: every row sums to 2**exponent
    exactly. `prior` (n,) and `cost` (n, m) are float64, taken exactly and not negative; the prior is finite and sums to
    1 within 1e-9. An infinite cost says that the answer is forbidden to that secret; every secret has one at a finite
    cost. `objective` is "expected" (Σ_s π_s Σ_o p(o|s) c(s,o)) or "worst" (max_s Σ_o p(o|s) c(s,o)). Raises
    `InputError` when anything does not fit together.
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
            raise InputError("prior", "is not made for the channel", value=self.prior.shape, bound=f"({self.secrets},)")
        if self.cost.shape != self.numerators.shape:
            raise InputError("cost", "is not made for the channel", value=self.cost.shape, bound=f"{self._shape}")
        nothing = np.isinf(self.cost).all(axis=1)
        if nothing.any():
            raise InputError(f"cost[{int(nothing.argmax())}]", "forbids every answer", bound="finite for at least one")
        claims = self.claims()
        if self.multipliers is not None:
            self._check_multipliers(self.multipliers, claims)

    @property
    def secrets(self) -> int:
        """The number n of secrets, the channel's rows."""
        return int(self.numerators.shape[0])

    @property
    def observables(self) -> int:
        """The number m of observables, the channel's columns."""
        return int(self.numerators.shape[1])

    @property
    def _shape(self) -> tuple[int, int]:
        return self.secrets, self.observables

    def claims(self) -> tuple[Claim, ...]:
        """Return what is to be proved, one claim for each requirement, in order."""
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
            raise InputError("multipliers.weights", "do not fit", value=found, bound=f"({self.secrets},)")
        if len(multipliers.requirements) != len(claims):
            count = len(multipliers.requirements)
            raise InputError("multipliers.requirements", "do not fit", value=count, bound=f"{len(claims)} entries")
        for index, (entry, claim) in enumerate(zip(multipliers.requirements, claims, strict=True)):
            path = f"multipliers.requirements[{index}]"
            require_below(entry.observables, self.observables, f"{path}.observables")
            if isinstance(entry, PairMultipliers):
                if isinstance(claim, Dithered):
                    if len(entry.values):
                        raise InputError(path, "has multipliers", bound=f"none for {claim.kind} privacy")
                    continue
                if not isinstance(claim, PairBound):
                    raise InputError(path, "is for pairs", bound=f"FloorMultipliers, for {claim.kind} privacy")
                require_below(entry.sources, self.secrets, f"{path}.sources")
                require_below(entry.targets, self.secrets, f"{path}.targets")
            else:
                if not isinstance(claim, Floor):
                    raise InputError(path, "is for estimates", bound=f"PairMultipliers, for {claim.kind} privacy")
                require_below(entry.estimates, len(claim.error), f"{path}.estimates")


def _inside(path: str, error: InputError) -> InputError:
    return InputError(f"{path}.{error.path}", error.problem, value=error.value, bound=error.bound, remedy=error.remedy)
