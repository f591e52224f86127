"""A channel p(o|s) with integer numerators, and exact sampling from it."""

from __future__ import annotations

import os
import secrets as system
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, Integers, as_nonnegative, read_only
from mechdesign.base._check import as_generator, as_integer, as_path
from mechdesign.base._errors import CertificateError, InputError
from mechdesign.base._names import labels_of, named, opened
from mechdesign.base._values import cached_property
from mechdesign.certify import _bundle as bundle

EXPONENT = 62
"""The numerators of a row sum to 2**62, the largest power of two that fits int64."""

# Largest accepted difference between a row sum and 1, far above rounding errors and far below typing errors.
_ROW_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """A channel p(o|s) = numerators[s, o] / 2**62 from n secrets to m observables.

    Sampling uses exactly the integers in `numerators`; `matrix` is a rounded copy of the probabilities.

    Attributes:
        numerators: Integers >= 0, int64 of shape (n, m), read-only; each row sums to exactly 2**62.
        secrets: n distinct labels of the rows, or an empty tuple.
        observables: m distinct labels of the columns, or an empty tuple.

    Raises:
        InputError: An entry is negative, a row does not sum to 2**62, or the number of labels does not match.

    >>> channel = Channel([[2**61, 2**61], [0, 2**62]], observables=["yes", "no"])
    >>> channel.matrix.tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    numerators: Integers
    secrets: tuple[str, ...] = ()
    observables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the rows in overflow-safe integer arithmetic."""
        given = named(self.numerators, "numerators", dtype=object)
        if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "iu":
            raise InputError(
                "numerators",
                "are not counts",
                value=f"{given.dtype} of shape {given.shape}",
                bound="integers of shape (n, m)",
            )
        numerators = given.astype(np.int64)
        if (numerators < 0).any():
            row, column = np.unravel_index(int(numerators.argmin()), numerators.shape)
            raise InputError(
                f"numerators[{row}, {column}]", "is negative", value=int(numerators.min()), bound="at least 0"
            )
        # Sums of the high and the low halves cannot overflow, so a wrapped sum is never mistaken for 2**62.
        high, low = (numerators >> 31).sum(axis=1), (numerators & (2**31 - 1)).sum(axis=1)
        wrong = np.flatnonzero((low % 2**31 != 0) | (high + (low >> 31) != 2**31))
        if wrong.size:
            first = int(wrong[0])
            raise InputError(
                f"numerators[{first}]", "has another sum", value=sum(numerators[first].tolist()), bound="2**62"
            )
        object.__setattr__(self, "numerators", read_only(numerators))
        for name, size in (("secrets", numerators.shape[0]), ("observables", numerators.shape[1])):
            labels = tuple(map(str, getattr(self, name)))
            if labels and (len(labels) != size or len(set(labels)) != size):
                raise InputError(
                    name, "must be distinct labels", value=f"{len(labels)} labels", bound=f"{size} of them"
                )
            object.__setattr__(self, name, labels)

    def __repr__(self) -> str:
        return f"Channel({self.numerators.shape[0]} secrets, {self.numerators.shape[1]} observables)"

    @property
    def denominator(self) -> int:
        """The common denominator, 2**62."""
        return 1 << EXPONENT

    @cached_property
    def matrix(self) -> Floats:
        """p(o|s) as float64 of shape (n, m), each entry rounded to nearest."""
        return read_only(np.ldexp(self.numerators.astype(np.float64), -EXPONENT))

    def sample(
        self,
        secret: int | str | ArrayLike,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> Integers:
        """Draw observables with exactly the probabilities of the secret's row; each draw uses 62 random bits.

        If one secret gets k answers, by `size` or by repeated indices, the guarantee holds with k·ε. For an array of
        indices, k is ``np.unique(secret, return_counts=True)[1].max()``. The draws are not recorded in a ledger.

        Args:
            secret: An index, a label, or an array of indices, one for each draw.
            size: The number (or shape) of draws; must be None if `secret` is an array.
            rng: A NumPy generator or a seed, for simulations only, because the state of a generator can reveal the
                secret. None takes the bits from the operating system.

        Returns:
            Indices of observables, int64 of shape `size` or of the shape of `secret`.

        Raises:
            InputError: A secret does not exist, or a size is negative.

        >>> Channel([[2**62, 0], [0, 2**62]]).sample([1, 0, 1]).tolist()
        [1, 0, 1]
        """
        chosen = self._indices(secret)
        if chosen.ndim and size is not None:
            raise InputError("size", "cannot be combined with an array of secrets", value=size, remedy="leave it out")
        shape = chosen.shape if chosen.ndim or size is None else _shape(size)
        count = int(np.prod(shape, dtype=np.int64))
        bits = uniform_bits(count, rng).reshape(shape)
        drawn = np.empty(shape, dtype=np.int64)
        for index in np.unique(chosen):
            where = np.broadcast_to(chosen == index, shape)
            cumulative = np.cumsum(self.numerators[index])
            drawn[where] = np.searchsorted(cumulative, bits[where], side="right")
        return drawn

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, secrets: Sequence[str] = (), observables: Sequence[str] = ()) -> Channel:
        """Return the channel of integers nearest to a matrix of probabilities.

        Each row is divided by its exact sum and rounded down to multiples of 2**-62. The largest entry of the row
        receives the remainder. Rounding may slightly violate a bound that the matrix satisfies exactly;
        `mechdesign.audit` measures the guarantee of the rounded channel.

        Args:
            matrix: Probabilities p(o|s), finite and not negative, of shape (n, m); rows sum to 1 within 1e-6.
            secrets: Labels of the rows, with which names of rows are matched. If this is empty, they are the labels.
            observables: Labels of the columns, likewise.

        Returns:
            The channel.

        Raises:
            InputError: An entry is negative or not finite, or a row does not sum to 1 within 1e-6.

        >>> Channel.from_matrix([[0.75, 0.25]]).numerators.tolist()
        [[3458764513820540928, 1152921504606846976]]
        """
        given = opened(matrix, "matrix")
        labels = [
            tuple(map(str, own or labels_of(names, "matrix")))
            for own, names in ((secrets, given.rows), (observables, given.columns))
        ]
        rows = as_nonnegative(given.arranged("matrix", *labels), "matrix", 2)
        numerators = np.empty(rows.shape, dtype=np.int64)
        for index, row in enumerate(rows.tolist()):
            exact = [Fraction(entry) for entry in row]
            total = sum(exact, Fraction(0))
            if abs(total - 1) > _ROW_SUM_TOLERANCE:
                raise InputError(f"matrix[{index}]", "does not sum to 1", value=total, bound="within 1e-6 of 1")
            floors = [int(entry * (1 << EXPONENT) / total) for entry in exact]
            floors[row.index(max(row))] += (1 << EXPONENT) - sum(floors)
            numerators[index] = floors
        return cls(numerators, *labels)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Channel:
        """Read a channel from a bundle, or from a single file ``channel.npz``.

        This method checks the digests of a bundle, but not its claims; `mechdesign.verify` checks the claims.

        Args:
            path: The folder of a bundle, or a file ``channel.npz``.

        Returns:
            The channel, with its labels.

        Raises:
            CertificateError: The files are incomplete, damaged or malformed, or exceed the memory limit.
            InputError: The file is not a channel.
        """
        path = as_path(path, "path")
        place = Path(path)
        if place.is_dir():
            with bundle.naming(place):
                found = bundle.read(place)
                return cls.from_arrays(found.evidence.numerators, found.evidence.exponent, found.arrays)
        if place.is_file() and place.suffix in (".json", ".csv", ".html", ".toml"):
            raise InputError(
                "path", "is not a channel", value=place.name, bound="channel.npz, or the folder of a design"
            )
        return cls.from_arrays(*bundle.read_channel(place))

    @classmethod
    def from_arrays(cls, numerators: Integers, exponent: int, arrays: Mapping[str, NDArray[Any]]) -> Channel:
        """Build a channel from the arrays of a bundle.

        Args:
            numerators: Integers of shape (n, m); rows sum to 2**exponent.
            exponent: The exponent of the row sums, which must be 62.
            arrays: The labels, under the keys ``secrets`` and ``observables``; both may be missing.

        Returns:
            The channel.

        Raises:
            CertificateError: The arrays do not contain a valid channel.
        """
        if exponent != EXPONENT:
            raise CertificateError(f"the channel's rows sum to 2**{exponent} instead of 2**{EXPONENT}")
        labels = {name: tuple(arrays[name].ravel().tolist()) for name in ("secrets", "observables") if name in arrays}
        try:
            return cls(numerators, **labels)
        except InputError as error:
            raise CertificateError(f"the files do not contain a valid channel: {error}") from error

    def _indices(self, secret: int | str | ArrayLike) -> Integers:
        if isinstance(secret, str):
            if secret not in self.secrets:
                raise InputError(
                    "secret", "is not known", value=secret, bound=f"one of {', '.join(self.secrets[:5])}, …"
                )
            return np.array(self.secrets.index(secret))
        chosen = named(secret, "secret", dtype=object)
        n = self.numerators.shape[0]
        if chosen.dtype.kind not in "iu" or (chosen.size and (chosen.min() < 0 or chosen.max() >= n)):
            raise InputError("secret", "is not known", value=secret, bound=f"a label, or an index from 0 to {n - 1}")
        return chosen.astype(np.int64)


def _shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    sizes = size if isinstance(size, tuple) else (size,)
    return tuple(as_integer(one, "size", 0) for one in sizes)


def uniform_bits(count: int, rng: np.random.Generator | int | None) -> Integers:
    """Return `count` uniform integers in [0, 2**62), from `rng` or, if it is None, from the operating system."""
    if rng is None:
        words = np.frombuffer(system.token_bytes(8 * count), dtype=np.uint64)
    else:
        words = np.frombuffer(as_generator(rng).bytes(8 * count), dtype=np.uint64)
    return (words >> np.uint64(64 - EXPONENT)).astype(np.int64)
