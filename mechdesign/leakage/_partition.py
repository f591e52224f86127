"""Partitions of the values of a domain: the distinctions of exact answers, and the components of policies.

A partition is stored in runs, which are few for most policies and for any number of values. For example, the labels 0 0
0 1 2 3 have two runs, three zeros and the numbers from 1 to 3, written as ``0*3 1..3``.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers, as_whole_numbers, read_only
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property

LARGEST_LISTED = 2**24 + 1
"""Largest number of values with listed labels: the values of a domain of size 2^24, and absence."""

_LARGEST = 2**60 + 1
# Texts longer than the first length are compressed; no text may exceed the second length.
_SHORT, _LONGEST = 1000, 2**25
_PACKED = "zlib:"
_TOKEN = re.compile(r"([0-9]{1,19})(?:(\*|\.\.)([0-9]{1,19}))?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the values 0, …, n−1 into classes, numbered in the order of their first values.

    Attributes:
        runs: The longest possible runs of values, shape (r, 3). Each row contains the class of the first value, the
            number of values, and a step. With step 1 each value of a run has the next class; with step 0 all values of
            a run are in one class.

    >>> Partition.of([7, 7, 3]).labels.tolist()
    [0, 0, 1]
    >>> Partition.of([0, 0, 1]).splits(Partition.of([0, 1, 1]))
    True
    >>> Partition.of([4, 4, 4, 0, 1, 2]).text()
    '0*3 1..3'
    """

    runs: Integers

    @classmethod
    def of(cls, labels: ArrayLike) -> Partition:
        """Return the partition whose classes are the values with equal labels.

        Args:
            labels: The label of each value, shape (n,).

        Returns:
            The partition of the values 0, …, n−1.
        """
        given = as_whole_numbers(labels, "labels", 1)
        if not 0 < len(given) <= LARGEST_LISTED:
            raise InputError("labels", "have a wrong number", value=len(given), bound=f"from 1 to {LARGEST_LISTED}")
        starts = np.flatnonzero(np.concatenate((np.ones(1, dtype=bool), given[1:] != given[:-1])))
        _, first, inverse = np.unique(given[starts], return_index=True, return_inverse=True)
        order = np.empty(len(first), dtype=np.int64)
        order[np.argsort(first)] = np.arange(len(first))
        return cls(_merge_runs(order[inverse], np.diff(starts, append=len(given))))

    @classmethod
    def of_lengths(cls, lengths: Iterable[int]) -> Partition:
        """Return the partition into classes of successive values, without listing the values.

        Args:
            lengths: Number of values in each class.

        Returns:
            The partition, stored in runs.

        >>> Partition.of_lengths([10**12, 1]).text()
        '0*1000000000000 1'
        """
        sizes = np.array(list(lengths), dtype=np.int64)
        return cls(_merge_runs(np.arange(len(sizes)), sizes))

    @classmethod
    def of_each(cls, size: int) -> Partition:
        """Return the partition with one class for each value.

        Args:
            size: Number of values.

        Returns:
            The partition into `size` classes.
        """
        return cls(read_only(np.array([[0, size, int(size > 1)]], dtype=np.int64)))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Partition) and np.array_equal(self.runs, other.runs))

    def __hash__(self) -> int:
        return self._hash

    def __len__(self) -> int:
        return int(self.runs[:, 1].sum())

    def __repr__(self) -> str:
        return f"Partition({len(self)} values in {self.count} classes)"

    @cached_property
    def _hash(self) -> int:
        return hash(self.runs.tobytes())

    @property
    def count(self) -> int:
        """The number of classes."""
        first, lengths, steps = self.runs.T
        return int((first + steps * (lengths - 1)).max()) + 1

    @property
    def labels(self) -> Integers:
        """The class of each value, shape (n,)."""
        first, lengths, steps = self.runs.T
        offsets = np.arange(len(self)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return read_only(np.repeat(first, lengths) + np.repeat(steps, lengths) * offsets)

    def splits(self, other: Partition) -> bool:
        """Return whether this partition divides a class of another partition.

        Args:
            other: A partition of the same number of values.

        Returns:
            True if two values of one class of `other` are in different classes of this partition.
        """
        return _splits(self, other)

    def text(self) -> str:
        """Return the partition as a text for a file; `read` is the inverse."""
        return self._text

    @cached_property
    def _text(self) -> str:
        tokens = []
        for first, length, step in self.runs.tolist():
            tokens.append(
                f"{first}..{first + length - 1}" if step else f"{first}*{length}" if length > 1 else f"{first}"
            )
        text = " ".join(tokens)
        if len(text) <= _SHORT:
            return text
        return _PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()

    @classmethod
    def read(cls, text: object, path: str) -> Partition:
        """Return the partition of a text that `text` wrote; raise `InputError` for other input.

        Args:
            text: The text.
            path: Name of the input in messages.

        Returns:
            The partition.
        """
        try:
            if not isinstance(text, str):
                raise ValueError("it is not a text")
            return _read(text)
        except (ValueError, binascii.Error, zlib.error) as error:
            raise InputError(
                path, f"is not a partition ({error})", bound="a text that Partition.text returned"
            ) from error


@lru_cache(maxsize=64)
def _read(text: str) -> Partition:
    plain = _decompress(text.removeprefix(_PACKED)) if text.startswith(_PACKED) else text
    runs = []
    for token in plain.split(" "):
        if (found := _TOKEN.fullmatch(token)) is None:
            raise ValueError("one of its parts is not a run of classes")
        first, sign, second = int(found[1]), found[2], int(found[3] or 1)
        runs.append((first, second - first + 1 if sign == ".." else second, int(sign == "..")))
    if any(first > _LARGEST or not 0 < length <= _LARGEST or length <= step for first, length, step in runs):
        raise ValueError("one of its runs has a wrong length")
    if sum(length for _, length, _ in runs) > _LARGEST:
        raise ValueError("it has too many values")
    made = Partition(read_only(np.array(runs, dtype=np.int64)))
    first, lengths, steps = made.runs.T
    last = first + steps * (lengths - 1)
    reached = np.concatenate((np.full(1, -1), np.maximum.accumulate(last)))[:-1]
    single = (steps == 1) | (lengths == 1)
    if (first > reached + 1).any():
        raise ValueError("its classes are not numbered by their first values")
    if (last[:-1] == first[1:]).any() or (single[:-1] & single[1:] & (last[:-1] + 1 == first[1:])).any():
        raise ValueError("its runs are not as long as they can be")
    return made


def _decompress(text: str) -> str:
    unpack = zlib.decompressobj()
    content = unpack.decompress(base64.b64decode(text, validate=True), _LONGEST)
    if not unpack.eof or unpack.unused_data:
        raise ValueError("its compressed text has a wrong end")
    return content.decode("ascii")


@lru_cache(maxsize=64)
def _splits(fine: Partition, coarse: Partition) -> bool:
    if fine == coarse:
        return False
    if len(coarse) <= LARGEST_LISTED:
        here, there = fine.labels, coarse.labels
        first = np.zeros(coarse.count, dtype=np.int64)
        # All values of a class of `coarse` must be in one class of `fine`, namely that of the first value.
        first[there[::-1]] = here[::-1]
        return bool((first[there] != here).any())
    # Larger partitions have no listed labels, and their classes consist of successive values.
    ends = np.cumsum(coarse.runs[:, 1])
    starts = ends - coarse.runs[:, 1]
    wide = coarse.runs[:, 2] == 0
    return bool((_changes(fine, ends[wide] - 1) != _changes(fine, starts[wide])).any())


def _changes(partition: Partition, places: Integers) -> Integers:
    """Return, for each given value, how often the class changes between value 0 and this value."""
    lengths, steps = partition.runs[:, 1], partition.runs[:, 2]
    starts = np.cumsum(lengths) - lengths
    # The class changes from each run to the next, and at each step within a run that counts up.
    before = np.cumsum(steps * (lengths - 1) + 1) - (steps * (lengths - 1) + 1)
    run = np.searchsorted(starts, places, side="right") - 1
    return np.asarray(before[run] + steps[run] * (places - starts[run]))


def _merge_runs(labels: Integers, lengths: Integers) -> Integers:
    """Merge successive runs of a single value into runs whose classes count up, and return all runs."""
    single = lengths == 1
    goes_on = single[1:] & single[:-1] & (np.diff(labels) == 1)
    starts = np.flatnonzero(np.concatenate((np.ones(1, dtype=bool), ~goes_on)))
    counted = np.diff(starts, append=len(labels))
    steps = (counted > 1).astype(np.int64)
    return read_only(np.column_stack((labels[starts], np.where(counted > 1, counted, lengths[starts]), steps)))


UNKNOWN = Partition.of_each(1)
"""Placeholder for unknown classes: its single element cannot be a domain, which has at least a value and absence."""
