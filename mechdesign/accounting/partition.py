"""What an exact answer tells apart, and what a policy keeps together: partitions of the values of a domain."""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.errors import InputError
from mechdesign.validation import Integers, as_whole_numbers, read_only

__all__ = ["Partition"]


def __dir__() -> list[str]:
    return sorted(__all__)


_LARGEST = 2**26


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the values 0, …, n−1 into classes, numbered in the order of their first values.

    Attributes:
        labels: the class of each value, shape (n,).

    >>> Partition.of([7, 7, 3]).labels.tolist()
    [0, 0, 1]
    >>> Partition.of([0, 0, 1]).splits(Partition.of([0, 1, 1]))
    True
    """

    labels: Integers

    @classmethod
    def of(cls, labels: ArrayLike) -> Partition:
        """Return the partition in which values of one label are one class; labels have shape (n,)."""
        given = as_whole_numbers(labels, "labels", 1)
        _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
        order = np.empty(len(first), dtype=np.int64)
        order[np.argsort(first)] = np.arange(len(first))
        return cls(_frozen(order[inverse]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and np.array_equal(self.labels, other.labels)

    def __hash__(self) -> int:
        return hash(self.labels.tobytes())

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def count(self) -> int:
        """The number of classes."""
        return int(self.labels.max(initial=-1)) + 1

    def splits(self, other: Partition) -> bool:
        """Tell whether two values of one class of `other` are in different classes here; both have n values."""
        first = np.zeros(other.count, dtype=np.int64)
        # The first value of each class of the other, whose class here all of them must share.
        first[other.labels[::-1]] = self.labels[::-1]
        return bool((first[other.labels] != self.labels).any())

    def text(self) -> str:
        """Return it as a text for a file, which `read` takes."""
        return base64.b64encode(zlib.compress(np.diff(self.labels, prepend=0).astype("<i4").tobytes(), 9)).decode()

    @classmethod
    def read(cls, text: object, path: str) -> Partition:
        """Return what `text` wrote; raise `InputError`, naming `path`, for anything else."""
        try:
            if not isinstance(text, str):
                raise ValueError("it is no text")
            unpack = zlib.decompressobj()
            content = unpack.decompress(base64.b64decode(text, validate=True), 4 * _LARGEST)
            if not unpack.eof or unpack.unused_data:
                raise ValueError("it does not end where it should")
            labels = np.cumsum(np.frombuffer(content, dtype="<i4").astype(np.int64))
        except (ValueError, binascii.Error, zlib.error) as error:
            raise InputError(path, f"is not a partition ({error})") from error
        if not len(labels) or labels.min() < 0 or not np.array_equal(cls.of(labels).labels, labels):
            raise InputError(path, "is not a partition whose classes are numbered by their first values")
        return cls(_frozen(labels))


def _frozen(labels: Integers) -> Integers:
    read_only(labels)
    return labels
