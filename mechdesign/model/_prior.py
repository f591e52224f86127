"""Priors: distributions over the secrets before an answer is observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mechdesign.base._arrays import Floats, Integers, as_distribution, as_floats, require
from mechdesign.base._check import LARGEST_COUNT, as_generator, as_integer, as_smoothing, rename_path
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, Named, Names, order_of, settled, unless_numbers


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """A distribution π over n secrets.

    NumPy functions accept a prior instead of its array.

    Attributes:
        probabilities: π, float64 of shape (n,), read-only, >= 0; the sum is within 1e-9 of 1, and the values are not
            normalised.
        names: The names of the secrets, if a series was given; otherwise empty. They are matched
            with the labels of a domain where the prior meets one.

    >>> Prior([0.25, 0.75])
    Prior(secrets: 2, most likely: 1 (75%))
    """

    probabilities: Floats
    names: Names = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check that the probabilities form a distribution, and make them read-only."""
        given = settled(self.probabilities, "prior", self.names)
        remedy = "divide it by its sum, or build a prior from counts with Prior.from_counts"
        probabilities = as_distribution(given.values, "prior", remedy)
        object.__setattr__(self, "probabilities", probabilities)
        object.__setattr__(self, "names", given.rows)

    @property
    def zeros(self) -> Integers:
        """Return the indices of the secrets with probability zero, in ascending order."""
        return np.flatnonzero(self.probabilities == 0)

    def __repr__(self) -> str:
        """Return the number of secrets and the most likely secret, without the array."""
        zeros = f", of probability 0: {self.zeros.size}" if self.zeros.size else ""
        most = int(self.probabilities.argmax())
        return f"Prior(secrets: {len(self)}{zeros}, most likely: {most} ({100 * self.probabilities[most]:.3g}%))"

    def __len__(self) -> int:
        return len(self.probabilities)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        # If a copy is requested, return a writable copy instead of the frozen array.
        if copy:
            return np.array(self.probabilities, dtype=dtype)
        return np.asarray(self.probabilities, dtype=dtype)

    @classmethod
    def uniform(cls, n: int) -> Prior:
        """Return the prior that gives each of n secrets the probability 1/n.

        Args:
            n: The number of secrets, at least 1.

        Returns:
            The uniform prior.
        """
        n = as_integer(n, "n", 1)
        return cls(np.full(n, 1 / n))

    @classmethod
    def from_counts(cls, counts: ArrayLike, smoothing: float = 0.0) -> Prior:
        """Return the prior that is proportional to counts + smoothing.

        Args:
            counts: Counts or weights of the secrets, (n,), >= 0.
            smoothing: The number >= 0 added to each count.

        Returns:
            The prior.

        Raises:
            InputError: A count is out of range, or all counts are zero and there is no smoothing.

        >>> Prior.from_counts([1, 3]).probabilities.tolist()
        [0.25, 0.75]
        """
        given = settled(counts, "counts")
        array = as_floats(given.values, "counts", "(n,)")
        if array.size == 0:
            raise InputError("counts", "is empty", bound="at least one count")
        require((array >= 0) & (array <= LARGEST_COUNT), array, "counts", f"between 0 and {LARGEST_COUNT}")
        smoothed = array + as_smoothing(smoothing, "smoothing")
        total = math.fsum(smoothed)
        if total == 0:
            raise InputError(
                "counts",
                "are all zero",
                bound="at least one positive count",
                remedy="give a positive count, or a positive smoothing",
            )
        return cls(smoothed / total, names=given.rows)

    @classmethod
    def bootstrap(
        cls, counts: ArrayLike, samples: int, rng: np.random.Generator | int | None = None
    ) -> tuple[Prior, ...]:
        """Return priors from bootstrap samples, which have the size of the data and are drawn with replacement.

        The spread of these priors shows the uncertainty of a prior that is estimated from few data; `DistortionPrivacy`
        accepts several priors at once.

        Args:
            counts: Whole numbers >= 0, (n,), such as the number of visits to each place.
            samples: The number of priors, at least 1.
            rng: A NumPy generator or a seed.

        Returns:
            One prior for each sample.

        >>> [len(prior) for prior in Prior.bootstrap([5, 3, 2], samples=2, rng=1)]
        [3, 3]
        """
        given = settled(counts, "counts")
        array = as_floats(given.values, "counts", "(n,)")
        whole = (array >= 0) & (array == np.floor(array)) & (array <= 2**62 / max(array.size, 1))
        require(whole, array, "counts", "a whole number >= 0")
        shares = cls.from_counts(array).probabilities
        generator, size = as_generator(rng), int(array.sum())
        drawn = generator.multinomial(size, shares / shares.sum(), size=as_integer(samples, "samples", 1))
        return tuple(cls.from_counts(Named(each, given.rows)) for each in drawn)


def as_prior(
    given: Prior | ArrayLike, path: str = "prior", labels: Labels | None = None, size: int | None = None
) -> Prior:
    """Return a prior, in the order of labels.

    Args:
        given: A prior, or its probabilities.
        path: The path of the argument, for messages.
        labels: The labels of the secrets; empty if they have none; None keeps the names of the prior.
        size: The number of secrets; None if it is not known.

    Returns:
        The prior.

    Raises:
        InputError: The probabilities are no distribution over the secrets, or their names are not the labels.

    >>> as_prior(Named([0.25, 0.75], ["work", "home"]), labels=["home", "work"]).probabilities.tolist()
    [0.75, 0.25]
    """
    try:
        prior = given if isinstance(given, Prior) else Prior(given)  # type: ignore[arg-type]
    except InputError as error:
        raise rename_path(error, path, "prior") from error
    if size not in (None, len(prior)):
        raise InputError(path, "has the wrong length", value=len(prior), bound=f"{size} probabilities")
    order = None if labels is None else order_of(prior.names, labels, path)
    return prior if order is None else Prior(prior.probabilities[order], names=unless_numbers(labels or ()))
