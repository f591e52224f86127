"""What an adversary believes before seeing anything: a distribution over the secrets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mechdesign.base._arrays import SUM_TOLERANCE, Floats, Integers, as_floats, as_indices, require, require_order
from mechdesign.base._check import LARGEST_COUNT, as_generator, as_integer, as_smoothing
from mechdesign.base._display import card, data_frame, picture
from mechdesign.base._errors import InputError, Total


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """A distribution π over n secrets.

    `probabilities` is float64 of shape (n,), read-only, not negative, with a sum within 1e-9 of 1; it is kept as given.
    NumPy functions accept a prior in place of the array.
    """

    probabilities: Floats

    def __post_init__(self) -> None:
        """Check that this is a distribution, and freeze it."""
        require_order(self.probabilities, "prior")
        probabilities = as_floats(self.probabilities, "prior", "(n,)")
        if probabilities.size == 0:
            raise InputError("prior", "is empty", bound="at least one probability")
        finite = np.isfinite(probabilities)
        require(finite & (probabilities >= 0), probabilities, "prior", "a finite number >= 0")
        total = math.fsum(probabilities)
        if abs(total - 1) > SUM_TOLERANCE:
            raise InputError(
                "prior",
                "does not sum to 1",
                value=Total(total),
                bound=f"within {SUM_TOLERANCE} of 1",
                remedy="divide it by its sum, or make a prior of counts with Prior.from_counts",
            )
        object.__setattr__(self, "probabilities", probabilities)

    @property
    def zeros(self) -> Integers:
        """Return the indices, in order, of the secrets of probability zero."""
        return np.flatnonzero(self.probabilities == 0)

    def __repr__(self) -> str:
        """Say how many secrets there are and how many can occur, without the array."""
        return f"Prior({', '.join(f'{name}: {value}' for name, value in self._facts())})"

    def _repr_html_(self) -> str:
        return card(
            "Prior", self._facts(), picture("line_plot", self.probabilities, "Prior probability of each secret")
        )

    def _facts(self) -> list[tuple[str, str]]:
        most = int(self.probabilities.argmax())
        facts = [("secrets", str(len(self)))]
        if self.zeros.size:
            facts.append(("of probability 0", str(self.zeros.size)))
        return [*facts, ("most likely", f"{most} ({100 * self.probabilities[most]:.3g}%)")]

    def to_pandas(self) -> Any:
        """Return a pandas data frame with the column ``probability``, a row for each secret.

        Raises MissingDependencyError where pandas is not installed.
        """
        return data_frame({"probability": self.probabilities})

    def __len__(self) -> int:
        return len(self.probabilities)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        # A request for a copy must not be answered with the frozen array itself.
        if copy:
            return np.array(self.probabilities, dtype=dtype)
        return np.asarray(self.probabilities, dtype=dtype)

    @classmethod
    def uniform(cls, n: int) -> Prior:
        """Return the prior that gives each of n secrets 1/n."""
        n = as_integer(n, "n", 1)
        return cls(np.full(n, 1 / n))

    @classmethod
    def from_counts(cls, counts: ArrayLike, smoothing: float = 0.0) -> Prior:
        """Return (counts + smoothing) / total, for counts ≥ 0 of shape (n,) and smoothing ≥ 0.

        >>> Prior.from_counts([1, 3]).probabilities.tolist()
        [0.25, 0.75]
        """
        require_order(counts, "counts")
        array = as_floats(counts, "counts", "(n,)")
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
                remedy="give one that is positive, or a smoothing",
            )
        return cls(smoothed / total)

    @classmethod
    def from_cells(cls, cells: ArrayLike, n: int, smoothing: float = 0.0) -> Prior:
        """Return the prior of how often each of the secrets 0..n−1 occurs in `cells`, an integer array of shape (k,).

        A secret that never occurs gets probability zero unless there is smoothing: see `zeros`.
        """
        n = as_integer(n, "n", 1)
        return cls.from_counts(np.bincount(as_indices(cells, "cells", n), minlength=n), smoothing)

    @classmethod
    def bootstrap(
        cls, counts: ArrayLike, samples: int, rng: np.random.Generator | int | None = None, smoothing: float = 0.0
    ) -> tuple[Prior, ...]:
        """Return the priors of so many samples drawn from counts, each as large as the data, with replacement.

        They are what the same data might have said: `DistortionPrivacy` takes them all at once.

        Args:
            counts: Whole numbers, (n,), such as how often each place was visited.
            samples: How many priors, at least 1.
            rng: A NumPy generator or a seed.
            smoothing: What is added to each count of a sample.

        >>> [len(prior) for prior in Prior.bootstrap([5, 3, 2], samples=2, rng=1)]
        [3, 3]
        """
        array = as_floats(counts, "counts", "(n,)")
        whole = (array >= 0) & (array == np.floor(array)) & (array <= 2**62 / max(array.size, 1))
        require(whole, array, "counts", "a whole number >= 0")
        shares = cls.from_counts(array).probabilities
        generator, size = as_generator(rng), int(array.sum())
        drawn = generator.multinomial(size, shares / shares.sum(), size=as_integer(samples, "samples", 1))
        return tuple(cls.from_counts(each, smoothing) for each in drawn)


class _Visits(Protocol):
    """The part of `mechdesign.data.Visits` that priors need: rooms may only import from rooms below."""

    @property
    def users(self) -> tuple[str, ...]: ...

    def counts(self, user: str | None = None) -> Integers: ...


def per_user(visits: _Visits, smoothing: float = 0.0) -> dict[str, Prior]:
    """Return the prior of each user from that user's own visits, in the order in which the users first occur."""
    return {user: Prior.from_counts(visits.counts(user), smoothing) for user in dict.fromkeys(visits.users)}
