"""What a mechanism claims: bounds between pairs of secrets, and floors on what an attacker can do.

There are two forms that proofs work with, `PairBound` and `Floor`, and one form in which requirements are stated and
stored, `Stated`, from which the other two follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.certify.exact import exact, nearest
from mechdesign.errors import InputError
from mechdesign.validation import Floats, Integers, as_nonnegative, as_whole_numbers, require_below, require_same_length

__all__ = ["KINDS", "Claim", "Floor", "PairBound", "Stated"]

# Each kind of requirement: the exact numbers that it states, and the name of its array.
KINDS: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "metric": (("epsilon",), "distance"),
        "threshold": (("epsilon", "radius"), "distance"),
        "graph": (("epsilon",), "edges"),
        "distortion": (("minimum",), "error"),
    }
)


@dataclass(frozen=True, eq=False)
class PairBound:
    """The claim p(o|s) <= exp(ε·w) p(o|t) for all observables o and all listed ordered pairs (s, t) of weight w.

    Arrays of shape (k,): `sources` (s) and `targets` (t), int64, and `weights` (w), finite float64 >= 0 taken exactly.
    `epsilon` is positive. Raises `InputError` for anything else.
    """

    kind: str
    epsilon: Fraction
    sources: Integers
    targets: Integers
    weights: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact(self.epsilon, "epsilon"))
        if self.epsilon <= 0:
            raise InputError("epsilon", "is not positive", value=str(self.epsilon), bound="above 0")
        object.__setattr__(self, "sources", as_whole_numbers(self.sources, "sources", 1))
        object.__setattr__(self, "targets", as_whole_numbers(self.targets, "targets", 1))
        object.__setattr__(self, "weights", as_nonnegative(self.weights, "weights", 1))
        require_same_length("pairs", sources=self.sources, targets=self.targets, weights=self.weights)

    def __len__(self) -> int:
        return len(self.sources)

    @staticmethod
    def metric(epsilon: Fraction, distance: ArrayLike) -> PairBound:
        """Bound every ordered pair of different secrets at a finite distance by ε times that distance.

        `distance` has shape (n, n); its diagonal is ignored, and an infinite distance asks for nothing.
        """
        array = _square(distance)
        sources, targets = np.nonzero(np.isfinite(array) & ~np.eye(len(array), dtype=np.bool_))
        return PairBound("metric", epsilon, sources, targets, array[sources, targets])

    @staticmethod
    def threshold(epsilon: Fraction, distance: ArrayLike, radius: Fraction) -> PairBound:
        """Bound every ordered pair of different secrets at a distance of at most `radius` by ε.

        Distances are compared with the float64 nearest to `radius`: a stored distance of 0.1 is within a radius of 0.1.
        """
        array = _square(distance)
        within = np.isfinite(array) & (array <= nearest(radius))
        sources, targets = np.nonzero(within & ~np.eye(len(array), dtype=np.bool_))
        return PairBound("threshold", epsilon, sources, targets, np.ones(len(sources)))

    @staticmethod
    def graph(epsilon: Fraction, n: int, edges: ArrayLike) -> PairBound:
        """Bound the two ends of every edge, in both directions, by ε.

        `edges` has shape (k, 2) with indices below `n`; self-loops are ignored and repeated edges count once.
        """
        array = _edges(edges)
        require_below(array, n, "edges")
        keys = np.unique(np.concatenate([array[:, 0] * n + array[:, 1], array[:, 1] * n + array[:, 0]]))
        sources, targets = keys // n, keys % n
        proper = sources != targets
        return PairBound("graph", epsilon, sources[proper], targets[proper], np.ones(int(proper.sum())))


@dataclass(frozen=True, eq=False)
class Floor:
    """The claim Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ,s) >= minimum: no attack has a smaller expected error.

    `error` holds a, float64 of shape (k, n): rows are estimates ŝ, columns secrets s; finite, not negative, taken
    exactly. `minimum` is not negative. Raises `InputError` for anything else.
    """

    minimum: Fraction
    error: Floats
    kind: str = "distortion"

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", exact(self.minimum, "minimum"))
        if self.minimum < 0:
            raise InputError("minimum", "is negative", value=str(self.minimum), bound="at least 0")
        object.__setattr__(self, "error", as_nonnegative(self.error, "error", 2))
        if not len(self.error):
            raise InputError("error", "has no rows", value=self.error.shape, bound="at least one estimate")


Claim = PairBound | Floor


@dataclass(frozen=True, eq=False)
class Stated:
    """A requirement as stated and stored: its kind, its exact numbers and its array.

    | kind | numbers | array |
    |---|---|---|
    | metric | epsilon | distance, (n, n) float64 |
    | threshold | epsilon, radius | distance, (n, n) float64 |
    | graph | epsilon | edges, (k, 2) int64 |
    | distortion | minimum | error, (estimates, n) float64 |

    Raises `InputError` when the kind is unknown, when numbers are missing or too many, or when one is out of range.
    """

    kind: str
    numbers: Mapping[str, Fraction]
    array: NDArray[np.float64] | NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError("kind", "is unknown", value=self.kind, bound="one of " + ", ".join(KINDS))
        names, _ = KINDS[self.kind]
        if set(self.numbers) != set(names):
            raise InputError("numbers", "are not those of the kind", value=sorted(self.numbers), bound=", ".join(names))
        numbers = {name: exact(self.numbers[name], name) for name in names}
        object.__setattr__(self, "numbers", MappingProxyType(numbers))
        if "radius" in self.numbers and self.numbers["radius"] < 0:
            raise InputError("radius", "is negative", value=str(self.numbers["radius"]), bound="at least 0")
        if self.kind == "distortion":
            checked: Floats | Integers = Floor(self.numbers["minimum"], np.asarray(self.array)).error
        elif self.numbers["epsilon"] <= 0:
            raise InputError("epsilon", "is not positive", value=str(self.numbers["epsilon"]), bound="above 0")
        else:
            checked = _edges(self.array) if self.kind == "graph" else _square(self.array)
        object.__setattr__(self, "array", checked)

    @staticmethod
    def metric(epsilon: Fraction, distance: ArrayLike) -> Stated:
        """State p(o|s) <= exp(ε·d(s,t)) p(o|t)."""
        return Stated("metric", {"epsilon": epsilon}, np.asarray(distance))

    @staticmethod
    def threshold(epsilon: Fraction, distance: ArrayLike, radius: Fraction) -> Stated:
        """State p(o|s) <= exp(ε) p(o|t) wherever d(s,t) <= radius."""
        return Stated("threshold", {"epsilon": epsilon, "radius": radius}, np.asarray(distance))

    @staticmethod
    def graph(epsilon: Fraction, edges: ArrayLike) -> Stated:
        """State p(o|s) <= exp(ε) p(o|t) in both directions of every edge."""
        return Stated("graph", {"epsilon": epsilon}, np.asarray(edges))

    @staticmethod
    def distortion(minimum: Fraction, error: ArrayLike) -> Stated:
        """State that no attack has an expected error below `minimum`."""
        return Stated("distortion", {"minimum": minimum}, np.asarray(error))

    def claim(self, n: int) -> Claim:
        """Return what is to be proved for `n` secrets; raise `InputError` when the array is made for another number."""
        secrets = n if self.kind == "graph" else self.array.shape[1]
        if secrets != n:
            raise InputError(
                KINDS[self.kind][1], f"is made for {secrets} secrets", value=self.array.shape, bound=f"{n}"
            )
        if self.kind == "distortion":
            return Floor(self.numbers["minimum"], np.asarray(self.array, dtype=np.float64))
        epsilon = self.numbers["epsilon"]
        if self.kind == "graph":
            return PairBound.graph(epsilon, n, self.array)
        if self.kind == "threshold":
            return PairBound.threshold(epsilon, self.array, self.numbers["radius"])
        return PairBound.metric(epsilon, self.array)


def _square(distance: ArrayLike) -> Floats:
    array = as_nonnegative(distance, "distance", 2, infinite=True)
    if array.shape[0] != array.shape[1]:
        raise InputError("distance", "is not square", value=array.shape, bound="an array of shape (n, n)")
    return array


def _edges(edges: ArrayLike) -> Integers:
    array = as_whole_numbers(edges, "edges", 2)
    if array.shape[1] != 2:
        raise InputError("edges", "are not pairs", value=array.shape, bound="an array of shape (k, 2)")
    return array
