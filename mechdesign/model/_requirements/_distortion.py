"""Distortion privacy: whoever guesses the secret from an answer errs by at least so much on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_amounts, as_array
from mechdesign.base._check import rename_path, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model._dithering import anchor_means, between
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Distance, GraphTable, MatrixFile, PriorTable, Table, says
from mechdesign.model._numbers import Number, not_negative
from mechdesign.model._prior import Prior
from mechdesign.model._requirements._kind import Reading, RequirementKind, check_stated
from mechdesign.model._words import Words

# Probabilities that differ by no more than rounding make a uniform prior.
_EQUAL = 1e-12


class DistortionTable(Table, frozen=True, tag_field="kind", tag="distortion"):
    """Distortion privacy: an adversary who knows prior and channel errs by at least the minimum on average."""

    alternatives: ClassVar = ("distance", "matrix", "graph")

    minimum: Annotated[Fraction, says("the least expected error of the best attack, in the unit of the error, exact.")]
    prior: Annotated[
        PriorTable | list[PriorTable] | None,
        says(
            "what the adversary believes, where that is not the prior of the specification; a list of several means "
            "that each of these adversaries errs by the minimum."
        ),
    ] = None
    distance: Annotated[Distance | None, says("the error of an estimate as a distance by its name.")] = None
    matrix: Annotated[
        MatrixFile | None, says("the error of every estimate from a file; rows are estimates, columns are secrets.")
    ] = None
    graph: Annotated[GraphTable | None, says("the error as lengths of shortest paths.")] = None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DistortionPrivacy(RequirementKind):
    """Distortion privacy: Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ, s) >= minimum (Privacy Games, equation 21).

    The best attack on the channel has at least this expected error, as an adversary expects it who believes π. That is
    the prior of the problem or, where one is given, another one: that of an adversary who knows more or less than the
    designer, or who is wrong. Several priors, such as those of single days, make as many floors, and all of them hold
    at once.

    Where an adversary is wrong, the floor bounds the error that they expect; under the true prior their error may be
    larger or smaller. A channel that tells nothing leaves an adversary who believes (0.6, 0.4) expecting an error of
    0.4, Hamming distance; where (0.9, 0.1) is true, it is 0.1.

    Args:
        minimum: The least expected error, in the unit of `distance`, exact.
        distance: The error a(ŝ, s) of every estimate, (k, n): estimates by secrets.
        prior: What the adversary believes: a `Prior` or an array (n,), several of them in a list or an array (r, n);
            None for the prior of the problem.

    Raises:
        InputError: An argument has the wrong shape or is out of range.

    >>> DistortionPrivacy(0.4, [[0, 1], [1, 0]], prior=[0.6, 0.4])
    DistortionPrivacy(minimum=0.4, 2 secrets, 1 prior of its own)
    """

    kind: ClassVar[str] = "distortion"
    number: ClassVar[str] = "minimum"
    table: ClassVar[type[Table]] = DistortionTable
    minimum: Fraction
    distance: Floats
    priors: tuple[Prior, ...]

    def __init__(
        self, minimum: Number, distance: ArrayLike, prior: Prior | ArrayLike | Sequence[Prior] | None = None
    ) -> None:
        value = not_negative(minimum, "minimum")
        matrix = as_amounts(distance, "distance", "(k, n)")
        if 0 in matrix.shape:
            raise InputError("distance", "is empty", value=matrix.shape)
        object.__setattr__(self, "minimum", value)
        object.__setattr__(self, "distance", matrix)
        object.__setattr__(self, "priors", _priors(prior, matrix.shape[1]))

    @classmethod
    def from_visits(
        cls,
        minimum: Number,
        points: ArrayLike,
        anchors: Domain,
        estimates: Domain | None = None,
        distance: str = "euclidean",
        weights: ArrayLike | None = None,
        believed: bool = False,
    ) -> Self:
        """State a floor on the error about raw visits, for a problem on anchors (`Problem.from_visits`).

        The error of an estimate ŝ is Σ_x π(x) w_a(x) d(ŝ, x) / π_a at anchor a, with the weights w_a(x) of a visit x:
        what the adversary errs by about where the visit really was. Estimates are those listed. Who may name any point
        errs less, by at most the distance from that point to the nearest one listed: list them densely, or ask for that
        much more.

        Args:
            minimum: The least expected error, in the unit of the anchors, exact.
            points: Visits, (k, 2), as in `Problem.from_visits`.
            anchors: The anchors.
            estimates: The places that the adversary may name; the anchors unless given.
            distance: "euclidean", "manhattan", "chebyshev" or "haversine".
            weights: How often each visit counts, (k,).
            believed: Whether these visits are what the adversary believes, while the problem is stated for others.
        """
        errors = between(anchors, points, anchors if estimates is None else estimates, distance)
        # Of its own visits the problem says how many lie outside.
        prior, means = anchor_means(anchors, points, errors, weights, quiet=not believed)
        return cls(minimum, means.T, prior if believed else None)

    def __repr__(self) -> str:
        own = len(self.priors)
        priors = f", {own} prior{'s' if own > 1 else ''} of its own" if own else ""
        return f"DistortionPrivacy(minimum={exact_text(self.minimum)}, {self.size} secrets{priors})"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[1])

    def stated(self) -> tuple[Stated, ...]:
        """State the floor on the adversary's expected error; one for each prior, where it has its own."""
        if not self.priors:
            return (Stated.distortion(self.minimum, self.distance),)
        return tuple(
            Stated.floor(self.kind, self.minimum, self.distance, prior.probabilities, part)
            for part, prior in enumerate(self.priors)
        )

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement that was stated."""
        stated = check_stated(stated)
        first = stated[0]
        priors = [
            Prior(np.asarray(each.arrays["prior"], dtype=np.float64)) for each in stated if "prior" in each.arrays
        ]
        return cls(first.numbers["minimum"], first.arrays["error"], priors or None)

    @classmethod
    def from_table(cls, table: DistortionTable, reading: Reading) -> Self:
        """Return the requirement that a specification states."""
        require_kind(table, cls.table, "table", cls.table.__name__)
        error = reading.measure(table, any_rows=True)
        if isinstance(table.prior, list):
            return cls(table.minimum, error, [reading.prior(raw, f"prior[{i}]") for i, raw in enumerate(table.prior)])
        return cls(table.minimum, error, None if table.prior is None else reading.prior(table.prior, "prior"))

    def title(self, words: Words) -> str:
        """Name the requirement, its unit and its distance."""
        found = words.measure(self.distance)
        unit, name = f" in {found.unit}" if found.unit else "", f" ({found.name})" if found.name else ""
        own = {0: "", 1: ", under a prior of its own"}.get(
            len(self.priors), f", under {len(self.priors)} priors of its own"
        )
        return f"distortion privacy, expected error{unit}{own}{name}"

    def promise(self, words: Words) -> str:
        """Say how far off the best guess is, and who guesses."""
        least = words.measure(self.distance).with_unit(words.number(float(self.minimum), 4))
        if not self.priors:
            return f"guess the secret, even knowing the prior, but will then be off by at least {least} on average"
        return (
            f"guess the secret, believing {self._beliefs()}, but then expects to be off by at least {least} on average"
        )

    def _beliefs(self) -> str:
        if len(self.priors) > 1:
            return f"any of {len(self.priors)} priors that were given for it"
        (only,) = self.priors
        uniform = np.ptp(only.probabilities) <= _EQUAL * only.probabilities.max()
        return "all secrets equally likely" if uniform else "another prior than that of the mechanism"


def _priors(given: Prior | ArrayLike | Sequence[Prior] | None, n: int) -> tuple[Prior, ...]:
    """Return the priors that were given, one or several; raise `InputError` for a wrong one."""
    if given is None:
        return ()
    several = isinstance(given, list | tuple) and len(given) > 0 and np.ndim(given[0]) > 0
    several = several or (isinstance(given, np.ndarray) and given.ndim == 2)
    found = []
    for index, each in enumerate(list(given) if several else [given]):  # type: ignore[arg-type]
        path = f"prior[{index}]" if several else "prior"
        try:
            prior = each if isinstance(each, Prior) else Prior(as_array(each, "prior"))
        except InputError as error:
            raise rename_path(error, path, "prior") from error
        if len(prior) != n:
            raise InputError(path, "is made for another number of secrets", value=len(prior), bound=f"{n}")
        found.append(prior)
    if not found:
        raise InputError("prior", "is empty", bound="at least one prior, or None for that of the problem")
    return tuple(found)
