"""Requirements as statements for storage: exact numbers and arrays that determine the claim to prove.

| kind | numbers | arrays |
|---|---|---|
| metric | epsilon | distance, (n, n) float64 |
| threshold | epsilon, radius | distance, (n, n) float64 |
| graph | epsilon | edges, (k, 2) int64 |
| distortion | minimum | error, (estimates, n) float64 |
| pairs | epsilon | pairs, (k, 2) int64; weights, (k,) float64 |
| ratios | factor | pairs, (k, 2) int64; numerators and denominators, (k,) int64 |
| floor | minimum | error, (estimates, n) float64; prior, (n,) float64, unless it is the prior of the problem |
| dithered | epsilon, norm, columns, rows, step_x, step_y | |

The last four kinds are explicit claims (`ExponentBound`, `RatioBound`, `Floor`, `Dithered`): their stored numbers and
arrays suffice to prove them, without the requirement class. An explicit claim has the `name` of its requirement. If a
requirement makes several claims, `part` numbers them from 0. Distortion privacy under other priors than the problem's
is stored as one floor for each prior, with the name "distortion".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import (
    Floats,
    Integers,
    as_distribution,
    as_nonnegative,
    as_whole_numbers,
    require_below,
)
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._claims import Claim, ExponentBound, Floor, PairBound, RatioBound, pairs, square
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._exact import exact

Array = Floats | Integers
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True, eq=False)
class Stated:
    """A requirement as a statement for storage: its kind, its exact numbers and its arrays.

    Args:
        kind: The kind of the statement, such as "metric".
        numbers: The exact numbers of the kind.
        arrays: The arrays of the kind.
        name: The name of the requirement, for explicit claims only.
        part: The number of the claim within its requirement, from 0.

    Raises:
        InputError: The kind is unknown, numbers or arrays are missing, superfluous or out of range, or the name is not
            allowed.

    >>> from fractions import Fraction
    >>> Stated.metric(Fraction(1), [[0, 1], [1, 0]]).claim(2).nominal
    Fraction(1, 1)
    """

    kind: str
    numbers: Mapping[str, Fraction]
    arrays: Mapping[str, Array]
    name: str = ""
    part: int = 0

    def __post_init__(self) -> None:
        if self.kind not in FORMS:
            raise InputError("kind", "is unknown", value=self.kind, bound="one of " + ", ".join(FORMS))
        form = FORMS[self.kind]
        if set(self.numbers) != set(form.numbers):
            bound = ", ".join(form.numbers)
            raise InputError("numbers", "do not match the kind", value=sorted(self.numbers), bound=bound)
        if not set(form.arrays) <= set(self.arrays) <= {*form.arrays, *form.optional}:
            bound = ", ".join(form.arrays)
            raise InputError("arrays", "do not match the kind", value=sorted(self.arrays), bound=bound)
        self._check_name(form)
        numbers = {name: exact(self.numbers[name], name) for name in form.numbers}
        for name, number in numbers.items():
            if number < 0 or (not number and name in ("epsilon", "factor")):
                positive = name in ("epsilon", "factor")
                problem, bound = ("is not positive", "above 0") if positive else ("is negative", "at least 0")
                raise InputError(name, problem, value=str(number), bound=bound)
        object.__setattr__(self, "numbers", MappingProxyType(numbers))
        checked = {name: ARRAYS[name].check(values, name) for name, values in self.arrays.items()}
        object.__setattr__(self, "arrays", MappingProxyType(checked))
        if form.named:
            # Detect errors that do not depend on the number of secrets, such as a factor below 1.
            form.claim(self, 0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the fields for pickling and copying, which mapping views do not support."""
        return Stated, (self.kind, dict(self.numbers), dict(self.arrays), self.name, self.part)

    @staticmethod
    def metric(epsilon: Fraction, distance: ArrayLike) -> Stated:
        """State p(o|s) <= exp(ε·d(s,t)) p(o|t).

        Args:
            epsilon: ε, above 0.
            distance: d (n, n).

        Returns:
            The statement.
        """
        return Stated("metric", {"epsilon": epsilon}, {"distance": named(distance, "distance")})

    @staticmethod
    def threshold(epsilon: Fraction, distance: ArrayLike, radius: Fraction) -> Stated:
        """State p(o|s) <= exp(ε) p(o|t) for all pairs with d(s,t) <= radius.

        Args:
            epsilon: ε, above 0.
            distance: d (n, n).
            radius: The radius.

        Returns:
            The statement.
        """
        return Stated("threshold", {"epsilon": epsilon, "radius": radius}, {"distance": named(distance, "distance")})

    @staticmethod
    def graph(epsilon: Fraction, edges: ArrayLike) -> Stated:
        """State p(o|s) <= exp(ε) p(o|t) in both directions of every edge.

        Args:
            epsilon: ε, above 0.
            edges: Pairs of secrets (k, 2).

        Returns:
            The statement.
        """
        return Stated("graph", {"epsilon": epsilon}, {"edges": named(edges, "edges")})

    @staticmethod
    def distortion(minimum: Fraction, error: ArrayLike) -> Stated:
        """State that no attack has an expected error below `minimum`.

        Args:
            minimum: The floor.
            error: Errors (estimates, n).

        Returns:
            The statement.
        """
        return Stated("distortion", {"minimum": minimum}, {"error": named(error, "error")})

    @staticmethod
    def pairs(name: str, epsilon: Fraction, ordered: ArrayLike, weights: ArrayLike, part: int = 0) -> Stated:
        """State p(o|s) <= exp(ε·w) p(o|t) for ordered pairs.

        Args:
            name: The name of the requirement.
            epsilon: ε, above 0.
            ordered: The pairs (s, t), shape (k, 2).
            weights: w (k,).
            part: The number of the claim within its requirement.

        Returns:
            The statement.
        """
        arrays = {"pairs": named(ordered, "pairs"), "weights": named(weights, "weights")}
        return Stated("pairs", {"epsilon": epsilon}, arrays, name, part)

    @staticmethod
    def ratios(
        name: str,
        factor: Fraction,
        ordered: ArrayLike,
        numerators: ArrayLike | None = None,
        denominators: ArrayLike | None = None,
        part: int = 0,
    ) -> Stated:
        """State B·p(o|s) <= factor·A·p(o|t) for ordered pairs.

        Args:
            name: The name of the requirement.
            factor: The common factor.
            ordered: The pairs (s, t), shape (k, 2).
            numerators: A (k,), int64; by default all entries are 1.
            denominators: B (k,), int64; by default all entries are 1.
            part: The number of the claim within its requirement.

        Returns:
            The statement.
        """
        array = named(ordered, "pairs")
        ones = np.ones(len(array), dtype=np.int64)
        tops = ones if numerators is None else named(numerators, "numerators")
        bottoms = ones if denominators is None else named(denominators, "denominators")
        arrays = {"pairs": array, "numerators": tops, "denominators": bottoms}
        return Stated("ratios", {"factor": factor}, arrays, name, part)

    @staticmethod
    def floor(name: str, minimum: Fraction, error: ArrayLike, prior: ArrayLike | None = None, part: int = 0) -> Stated:
        """State that no attack of an adversary with a given prior has an expected error below `minimum`.

        Args:
            name: The name of the requirement.
            minimum: The floor.
            error: Errors (estimates, n).
            prior: The adversary's prior (n,), or None for the prior of the problem.
            part: The number of the claim within its requirement.

        Returns:
            The statement.
        """
        arrays = {"error": named(error, "error")}
        if prior is not None:
            arrays["prior"] = named(prior, "prior")
        return Stated("floor", {"minimum": minimum}, arrays, name, part)

    @staticmethod
    def dithered(
        name: str,
        epsilon: Fraction,
        norm: int,
        shape: tuple[int, int],
        steps: tuple[Fraction, Fraction],
    ) -> Stated:
        """State p(o|x) <= exp(ε·d(x, x')) p(o|x') between all points of a grid of anchors; see `Dithered`.

        Args:
            name: The name of the requirement.
            epsilon: ε, above 0.
            norm: The norm of the distance: 2 Euclidean, 1 Manhattan, 0 Chebyshev.
            shape: Columns and rows.
            steps: The distances between neighbours along x and y.

        Returns:
            The statement.
        """
        counts = {"norm": Fraction(norm), "columns": Fraction(shape[0]), "rows": Fraction(shape[1])}
        numbers = {"epsilon": epsilon, **counts, "step_x": steps[0], "step_y": steps[1]}
        return Stated("dithered", numbers, {}, name)

    def claim(self, n: int) -> Claim:
        """Return the claim to prove.

        Args:
            n: Number of secrets.

        Returns:
            The claim.

        Raises:
            InputError: An array has the wrong number of secrets.
        """
        for name, array in self.arrays.items():
            if name in ("edges", "pairs"):
                require_below(np.asarray(array), n, name)
            elif name in ("distance", "error", "prior") and array.shape[-1] != n:
                found = array.shape[-1]
                raise InputError(name, f"has {found} secrets", value=array.shape, bound=f"{n}")
        return FORMS[self.kind].claim(self, n)

    def _check_name(self, form: Form) -> None:
        if not form.named:
            if self.name or self.part:
                raise InputError("name", f"is given to {self.kind} privacy, which has a fixed name", value=self.name)
            return
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            bound = "a lower-case letter, followed by lower-case letters, digits, - or _"
            raise InputError("name", "is malformed", value=self.name, bound=bound)
        if self.name in FORMS and self.name != form.extends:
            raise InputError("name", "is the name of another kind", value=self.name, bound="another name")
        if type(self.part) is not int or self.part < 0:
            raise InputError("part", "is not the number of a claim", value=self.part, bound="a whole number >= 0")


@dataclass(frozen=True)
class _Shape:
    """The type and number of axes that an array in a file must have, and a function that checks its entries."""

    dtype: str
    axes: int
    check: Callable[[Any, str], Array]


ARRAYS: Mapping[str, _Shape] = MappingProxyType(
    {
        "distance": _Shape("<f8", 2, lambda values, _: square(values)),
        "edges": _Shape("<i8", 2, pairs),
        "error": _Shape("<f8", 2, lambda values, path: as_nonnegative(values, path, 2)),
        "pairs": _Shape("<i8", 2, pairs),
        "weights": _Shape("<f8", 1, lambda values, path: as_nonnegative(values, path, 1)),
        "numerators": _Shape("<i8", 1, lambda values, path: as_whole_numbers(values, path, 1, minimum=1)),
        "denominators": _Shape("<i8", 1, lambda values, path: as_whole_numbers(values, path, 1, minimum=1)),
        "prior": _Shape("<f8", 1, as_distribution),
    }
)
"""The arrays of statements, by name."""


@dataclass(frozen=True)
class Form:
    """The numbers and arrays that a kind of statement has, and the claim that it makes.

    Attributes:
        numbers: The names of the numbers.
        arrays: The names of the arrays.
        claim: A function that returns the claim for a statement and the number of secrets.
        optional: The names of optional arrays.
        named: Whether the kind is an explicit claim, which stores the name of its requirement.
        extends: A kind whose name a claim of this kind may have instead: a floor of distortion privacy is called
            "distortion".

    >>> Form(("epsilon",), ("distance",), lambda stated, n: None).named
    False
    """

    numbers: tuple[str, ...]
    arrays: tuple[str, ...]
    claim: Callable[[Stated, int], Claim]
    optional: tuple[str, ...] = ()
    named: bool = False
    extends: str = ""


def _metric(stated: Stated, n: int) -> Claim:
    return PairBound.metric(stated.numbers["epsilon"], stated.arrays["distance"])


def _threshold(stated: Stated, n: int) -> Claim:
    return PairBound.threshold(stated.numbers["epsilon"], stated.arrays["distance"], stated.numbers["radius"])


def _graph(stated: Stated, n: int) -> Claim:
    return PairBound.graph(stated.numbers["epsilon"], n, stated.arrays["edges"])


def _distortion(stated: Stated, n: int) -> Claim:
    return Floor(stated.numbers["minimum"], np.asarray(stated.arrays["error"], dtype=np.float64))


def _pairs(stated: Stated, n: int) -> Claim:
    sources, targets = _ends(stated)
    weights = np.asarray(stated.arrays["weights"], dtype=np.float64)
    return ExponentBound(stated.name, stated.numbers["epsilon"], sources, targets, weights)


def _ratios(stated: Stated, n: int) -> Claim:
    terms = (np.asarray(stated.arrays[name], dtype=np.int64) for name in ("numerators", "denominators"))
    return RatioBound(stated.name, stated.numbers["factor"], *_ends(stated), *terms)


def _floor(stated: Stated, n: int) -> Claim:
    error = np.asarray(stated.arrays["error"], dtype=np.float64)
    prior = stated.arrays.get("prior")
    return Floor(
        stated.numbers["minimum"], error, stated.name, None if prior is None else np.asarray(prior, dtype=np.float64)
    )


def _claim_dithered(stated: Stated, n: int) -> Claim:
    numbers = stated.numbers
    counts = [numbers[name] for name in ("norm", "columns", "rows")]
    for name, count in zip(("norm", "columns", "rows"), counts, strict=True):
        if count.denominator != 1:
            raise InputError(name, "is not a whole number", value=str(count), bound="a whole number")
    norm, columns, rows = map(int, counts)
    # If n is 0, the number of secrets is unknown, and only the numbers themselves are checked.
    if n and columns * rows != n:
        raise InputError("columns", f"does not match: columns times rows is {columns * rows}", bound=f"{n} secrets")
    return Dithered(stated.name, numbers["epsilon"], norm, columns, rows, numbers["step_x"], numbers["step_y"])


def _ends(stated: Stated) -> tuple[Integers, Integers]:
    array = np.asarray(stated.arrays["pairs"], dtype=np.int64)
    return array[:, 0], array[:, 1]


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "metric": Form(("epsilon",), ("distance",), _metric),
        "threshold": Form(("epsilon", "radius"), ("distance",), _threshold),
        "graph": Form(("epsilon",), ("edges",), _graph),
        "distortion": Form(("minimum",), ("error",), _distortion),
        "pairs": Form(("epsilon",), ("pairs", "weights"), _pairs, named=True),
        "ratios": Form(("factor",), ("pairs", "numerators", "denominators"), _ratios, named=True),
        "floor": Form(("minimum",), ("error",), _floor, optional=("prior",), named=True, extends="distortion"),
        "dithered": Form(("epsilon", "norm", "columns", "rows", "step_x", "step_y"), (), _claim_dithered, named=True),
    }
)
"""The kinds of statement that the verifier can prove."""
