"""Distortion privacy: a lower bound on the expected error of an adversary who guesses the secret from an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_nonnegative
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, Names, labels_of, opened, order_of
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model._dithering import anchor_means, between
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, not_negative
from mechdesign.model._prior import Prior, as_prior
from mechdesign.model._requirements._requirement import Requirement, check_stated, with_fields
from mechdesign.model._words import Words, short

# A prior is called uniform if its probabilities differ by at most this share of the largest probability.
_UNIFORM_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DistortionPrivacy(Requirement):
    """Distortion privacy: Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ, s) >= minimum (Privacy Games, equation 21).

    The best attack on the channel has at least the minimum expected error under the adversary's prior π. By default, π
    is the prior of the problem. A different prior describes an adversary who knows more or less than the designer, or
    whose belief is wrong. If several priors are given, for example one for each day, each gives a floor, and all floors
    must hold.

    If the adversary's prior is wrong, the floor bounds the error that the adversary expects. The error under the true
    prior may be larger or smaller. For example, consider a channel that releases no information, with errors measured
    by the Hamming distance. An adversary with the prior (0.6, 0.4) expects an error of 0.4. If the true prior is
    (0.9, 0.1), the error is 0.1.

    Args:
        minimum: The exact minimum of the expected error, >= 0, in the unit of `distance`.
        distance: The error a(ŝ, s) of each estimate for each secret, shape (k, n).
        prior: The adversary's prior, as a `Prior` or an array (n,). Several priors are given as a list or an array
            (r, n). None means the prior of the problem.

    Raises:
        InputError: An argument has the wrong shape or is out of range.

    >>> DistortionPrivacy(0.4, [[0, 1], [1, 0]], prior=[0.6, 0.4])
    DistortionPrivacy(minimum=0.4, 2 secrets, 1 own prior)
    """

    kind: ClassVar[str] = "distortion"
    number: ClassVar[str] = "minimum"
    minimum: Fraction
    distance: Floats
    priors: tuple[Prior, ...]
    names: Names = field(default=(), init=False)

    def __init__(
        self, minimum: Number, distance: ArrayLike, prior: Prior | ArrayLike | Sequence[Prior] | None = None
    ) -> None:
        value = not_negative(minimum, "minimum")
        given = opened(distance, "distance").settled("distance")
        matrix = as_nonnegative(given.values, "distance", 2)
        if 0 in matrix.shape:
            raise InputError("distance", "is empty", value=matrix.shape, bound="of shape (k, n), k >= 1 and n >= 1")
        object.__setattr__(self, "minimum", value)
        object.__setattr__(self, "distance", matrix)
        object.__setattr__(self, "priors", _priors(prior, matrix.shape[1], given.columns))
        object.__setattr__(self, "names", given.columns)

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
        """Return a floor on the error of estimates of raw visits, for a problem on anchors (`Problem.from_visits`).

        The error of an estimate ŝ at the anchor a is Σ_x π(x) w_a(x) d(ŝ, x) / π_a, with the weight w_a(x) of each
        visit x. This error is the mean distance between the estimate and the true places of the visits. Only the given
        estimates are considered. An adversary who can choose any other point reduces the error by at most the distance
        between this point and the nearest given estimate. To allow for this adversary, raise the minimum by the largest
        of these distances.

        Args:
            minimum: The exact minimum of the expected error, >= 0, in the unit of the anchors.
            points: The coordinates of the visits, shape (k, 2), as in `Problem.from_visits`.
            anchors: The domain of anchors.
            estimates: The possible estimates of the adversary; None means the anchors.
            distance: The distance d: "euclidean", "manhattan", "chebyshev" or "haversine".
            weights: The relative weights of the visits, >= 0, shape (k,). None gives all visits equal weight.
            believed: Whether the adversary's prior comes from the given visits; by default, it is the prior of the
                problem.

        Returns:
            The requirement.
        """
        errors = between(anchors, points, anchors if estimates is None else estimates, distance)
        # The problem itself already warns about visits outside the domain.
        prior, means = anchor_means(anchors, points, errors, weights, quiet=not believed)
        return cls(minimum, means.T, prior if believed else None)

    def __repr__(self) -> str:
        own = len(self.priors)
        priors = f", {own} own prior{'s' if own > 1 else ''}" if own else ""
        return f"DistortionPrivacy(minimum={exact_text(self.minimum)}, {self.size} secrets{priors})"

    @property
    def size(self) -> int:
        """The number of secrets."""
        return int(self.distance.shape[1])

    def stated(self) -> tuple[Stated, ...]:
        """Return the floor on the adversary's expected error, or one floor for each given prior."""
        if not self.priors:
            return (Stated.distortion(self.minimum, self.distance),)
        return tuple(
            Stated.floor(self.kind, self.minimum, self.distance, prior.probabilities, part)
            for part, prior in enumerate(self.priors)
        )

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with the given statements.

        Args:
            stated: The floors of the requirement.
            secrets: The number of secrets.

        Returns:
            The requirement.
        """
        stated = check_stated(stated)
        first = stated[0]
        priors = [
            Prior(np.asarray(each.arrays["prior"], dtype=np.float64)) for each in stated if "prior" in each.arrays
        ]
        return cls(first.numbers["minimum"], first.arrays["error"], priors or None)

    def arranged(self, labels: Labels) -> Self:
        """Return the requirement on secrets in the order of labels, with which its names are matched.

        Args:
            labels: The labels of the secrets; empty if they have none.

        Returns:
            The requirement; this requirement itself if neither its errors nor its priors have names.
        """
        order = order_of(self.names, labels, "distance")
        if order is None and not any(prior.names for prior in self.priors):
            return self
        errors = self.distance
        if order is not None:
            square = errors.shape[0] == errors.shape[1]
            errors = errors[np.ix_(order, order)] if square else errors[:, order]
        priors = tuple(as_prior(prior, labels=labels) for prior in self.priors)
        return with_fields(self, distance=errors, priors=priors, names=tuple(labels) if self.names else ())

    def title(self, words: Words) -> str:
        """Return the name of the requirement with its unit and distance.

        Args:
            words: The object that names distances.

        Returns:
            The name for reports.
        """
        found = words.measure(self.distance)
        unit, name = f" in {found.unit}" if found.unit else "", f" ({found.name})" if found.name else ""
        own = {0: "", 1: ", under its own prior"}.get(len(self.priors), f", under its own {len(self.priors)} priors")
        return f"distortion privacy, expected error{unit}{own}{name}"

    def promise(self, words: Words) -> str:
        """Describe the least expected error of a guess and the prior of the adversary.

        Args:
            words: The object that names distances and formats numbers.

        Returns:
            The end of the sentence "Anyone who sees an answer can …".
        """
        least = words.measure(self.distance).with_unit(short(float(self.minimum), 4))
        if not self.priors:
            return f"guess the secret, even knowing the prior, but will then be off by at least {least} on average"
        return (
            f"guess the secret, believing {self._beliefs()}, but then expects to be off by at least {least} on average"
        )

    def _beliefs(self) -> str:
        if len(self.priors) > 1:
            return f"any of {len(self.priors)} priors that were given for it"
        (only,) = self.priors
        uniform = np.ptp(only.probabilities) <= _UNIFORM_TOLERANCE * only.probabilities.max()
        return "all secrets equally likely" if uniform else "another prior than that of the mechanism"


def _priors(given: Prior | ArrayLike | Sequence[Prior] | None, n: int, names: Names) -> tuple[Prior, ...]:
    """Return one or several priors, in the order of names if there are any, as a tuple."""
    if given is None:
        return ()
    several = isinstance(given, list | tuple) and len(given) > 0 and np.ndim(given[0]) > 0
    several = several or (isinstance(given, np.ndarray) and given.ndim == 2)
    found = []
    for index, each in enumerate(list(given) if several else [given]):  # type: ignore[arg-type]
        path = f"prior[{index}]" if several else "prior"
        found.append(as_prior(each, path, labels_of(names, "distance") or None, n))
    if not found:
        raise InputError("prior", "is empty", bound="at least one prior, or None for the prior of the problem")
    return tuple(found)
