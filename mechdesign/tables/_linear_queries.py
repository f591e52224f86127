"""Linear queries: their interface for strategies and noise, and their weights as multiples of a step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import as_decimal, exact, exact_text
from mechdesign.leakage._partition import LARGEST_LISTED, UNKNOWN, Partition
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.tables._charges import classes_of_rows
from mechdesign.tables._values import refuse_names

_MOST_WEIGHTS = 4_000_000


class LinearQueries(ABC):
    """Linear queries on a histogram of `size` values: what a strategy needs of a workload.

    Attributes:
        size: the number |T| of values.
        phrase: the queries in words.
        gram_is_quick: whether `gram` is faster than multiplying `matrix` by its transpose.
    """

    size: int
    phrase: str
    gram_is_quick: ClassVar[bool] = False

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of queries."""

    @property
    @abstractmethod
    def integral(self) -> bool:
        """Return whether all coefficients are integers so small that `gram` is exact."""

    @abstractmethod
    def gram(self) -> Floats:
        """Return M = WᵀW, shape (size, size)."""

    @abstractmethod
    def matrix(self) -> Floats:
        """Return W, shape (count, size)."""

    @abstractmethod
    def labels(self) -> dict[str, NDArray[Any]]:
        """Return the labels of the queries: arrays of shape (count,) by column heading."""

    @abstractmethod
    def answers(self, histogram: NDArray[Any]) -> Floats:
        """Return the answers Wh.

        Args:
            histogram: the histogram h, shape (size,).

        Returns:
            The answers, shape (count,).
        """

    @abstractmethod
    def variances(self, covariance: Floats) -> Floats:
        """Return the diagonal of WΣWᵀ.

        Args:
            covariance: the covariance Σ of an estimated histogram, shape (size, size).

        Returns:
            The variances, shape (count,).
        """

    def tables_over(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
        """Return the attributes of each table, if the queries are marginal tables of values of this shape.

        Args:
            shape: the number of values of each attribute.

        Returns:
            The indices of the attributes of each table, or None.
        """
        return None

    def weights(self) -> Floats:
        """Return W; raise `InputError` if it has more than 4,000,000 weights."""
        if (weights := self.count * self.size) > _MOST_WEIGHTS:
            raise InputError(
                "queries",
                "have too many weights",
                value=weights,
                bound=f"at most {_MOST_WEIGHTS} weights",
                remedy="request fewer queries, or release a histogram and add up its answers",
            )
        return self.matrix()

    def classes(self) -> Partition:
        """Return the classes of values that exact answers distinguish; the last node represents absence."""
        if self.size >= LARGEST_LISTED:
            return UNKNOWN
        labels = np.zeros(self.size + 1, dtype=np.int64)
        for codes in self._columns():
            labels = np.unique(np.column_stack((labels, codes)), axis=0, return_inverse=True)[1].ravel()
            if labels.max() == self.size:
                break
        return Partition.of(labels)

    def _columns(self) -> Iterator[Integers]:
        """Yield labels of shape (|T| + 1,) for a few queries at a time; nodes with equal columns have equal labels."""
        yield classes_of_rows(self.matrix()).labels


def step_of(weights: Floats) -> Fraction:
    """Return the largest step that divides all weights; each weight is read as the decimal that Python prints.

    >>> step_of(np.array([[0.5, 0.25], [1.0, 3.0]]))
    Fraction(1, 4)
    """
    return Fraction(1, math.lcm(*{as_decimal(weight).denominator for weight in np.unique(weights).tolist()}))


def on_lattice(queries: ArrayLike, step: Fraction, size: int | None = None) -> Integers:
    """Return weights as integer multiples of the step, int64 of shape (q, |T|); `size` is |T|, or None if unknown."""
    refuse_names(queries, "queries")
    shapes = "(|T|,) or (q, |T|)".replace("|T|", "|T|" if size is None else str(size))
    if isinstance(queries, str):
        bound = f"weights of shape {shapes}, or a Workload"
        raise InputError(
            "queries",
            "are a text",
            value=queries,
            bound=bound,
            remedy="give weights, or a Workload such as prefixes(10)",
        )
    given = np.atleast_2d(named(queries, "queries", dtype=object))
    if given.ndim != 2 or given.size == 0 or size not in (None, given.shape[1]):
        raise InputError("queries", "have the wrong shape", value=np.shape(queries), bound=shapes)
    if given.dtype.kind in "biuf" and max(abs(step.numerator), step.denominator) < 2**53:
        # A float of up to 15 digits equals the float nearest to some multiple of the step. Other weights are converted
        # exactly.
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            numbers = np.rint(given / float(step))
            good = np.abs(numbers) * max(step.numerator, 1) < 2.0**53
            good &= numbers * float(step.numerator) / float(step.denominator) == given
        if good.all():
            return numbers.astype(np.int64)
    rows = np.empty(given.shape, dtype=np.int64)
    for place in np.ndindex(given.shape):
        path = f"queries[{place[0]},{place[1]}]"
        multiple = exact(given[place].item() if isinstance(given[place], np.generic) else given[place], path) / step
        if multiple.denominator != 1 or abs(multiple) > LARGEST_VALUE:
            raise InputError(
                path,
                "is not a multiple of the step",
                value=given[place],
                bound=f"a multiple of {exact_text(step)}, at most 2^61 times as large",
                remedy="set a smaller step, or round the weights to multiples of it",
            )
        rows[place] = int(multiple)
    return rows
