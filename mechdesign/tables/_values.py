"""Labels of the values of a domain, and the indices of values that a caller gives."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.tables._domain import Domain


def value_labels(domain: Domain) -> dict[str, NDArray[Any]]:
    """Return a column for each attribute, shape (|T|,): the attribute's entry in every value of the domain."""
    labels = {}
    repeats, tiles = domain.size, 1
    for attribute in domain.attributes:
        repeats //= attribute.size
        own = np.arange(attribute.size) if attribute.values == range(attribute.size) else as_labels(attribute.values)
        labels[attribute.name] = np.tile(np.repeat(own, repeats), tiles)
        tiles *= attribute.size
    return labels


def value_names(domain: Domain) -> NDArray[Any]:
    """Return a label for each value, shape (|T|,): the value itself, or a string of the values of several attributes.

    >>> value_names(Domain({"age": range(17, 19), "sex": ["f", "m"]})).tolist()
    ['17, f', '17, m', '18, f', '18, m']
    """
    columns = list(value_labels(domain).values())
    if len(columns) == 1:
        return columns[0]
    return np.array([", ".join(map(str, row)) for row in zip(*(column.tolist() for column in columns), strict=True)])


def as_labels(values: Any) -> NDArray[Any]:
    """Convert values to the labels of a release, which are integers or strings."""
    array = np.asarray(values)
    return array if array.dtype.kind in "iu" else np.array([str(value) for value in values])


def find_label(labels: NDArray[Any], value: object, path: str) -> int:
    """Return the position of a number among ascending labels of shape (n,); raise `InputError` if it is absent.

    >>> find_label(np.array(["0.5", "1.0", "1.5"]), 1, "low")
    1
    """
    if isinstance(value, str):
        raise InputError(path, "is a string", value=value, bound="a number among the values")
    if isinstance(value, np.floating):
        value = float(value)
    wanted = exact(value, path)
    number = bisect.bisect_left(labels, wanted, key=_number)
    if number == len(labels) or _number(labels[number]) != wanted:
        bound = f"one of the {len(labels)} values, from {labels[0]} to {labels[-1]}"
        remedy = "give a value of the domain, or positions as positions="
        raise InputError(path, "is not a value of the domain", value=value, bound=bound, remedy=remedy)
    return number


def read_label(label: Any) -> int | float:
    """Convert a label to a number, which is an int if the label is an integer.

    >>> read_label("2.50"), read_label("3.0")
    (2.5, 3)
    """
    number = _number(label)
    return int(number) if number.denominator == 1 else float(number)


def range_positions(domain: Domain, ranges: object, path: str) -> list[tuple[int, int]]:
    """Convert ranges, given as pairs of a first and a last value, to pairs of indices of values.

    Args:
        domain: the domain of the records.
        ranges: the ranges.
        path: the path of the ranges, for the error message.

    Returns:
        The pairs of indices.

    >>> range_positions(Domain({"age": range(17, 91)}), [(30, 39), (17, 90)], "ranges")
    [(13, 22), (0, 73)]

    Raises:
        InputError: An entry is not a pair, an end is outside the domain, or a first value is after the last.
    """
    found = []
    for index, pair in enumerate(check_pairs(ranges, path)):
        ends = [find_position(domain, end, f"{path}[{index}]") for end in pair]
        if ends[0] > ends[1]:
            raise InputError(
                f"{path}[{index}]", "ends before it begins", value=tuple(pair), remedy="exchange the two values"
            )
        found.append((ends[0], ends[1]))
    return found


def check_positions(domain: Domain, ranges: object, path: str) -> list[tuple[int, int]]:
    """Return ranges, which are pairs of positions, as integers; raise `InputError` if a range is invalid."""
    found = []
    for index, pair in enumerate(check_pairs(ranges, path)):
        if any(isinstance(end, bool | np.bool_) or not isinstance(end, int | np.integer) for end in pair):
            raise InputError(f"{path}[{index}]", "is not a range", value=tuple(pair), bound="a pair of integers")
        if not 0 <= pair[0] <= pair[1] < domain.size:
            bound = f"0 <= low <= high <= {domain.size - 1}"
            raise InputError(f"{path}[{index}]", "is not a range of positions", value=tuple(pair), bound=bound)
        found.append((int(pair[0]), int(pair[1])))
    return found


def check_pairs(ranges: object, path: str) -> list[Sequence[Any]]:
    """Return ranges as a list of pairs; raise `InputError` if an entry is not a pair."""
    listed = list(ranges) if isinstance(ranges, Iterable) and not isinstance(ranges, str | bytes) else []
    if not listed:
        raise InputError(
            path, "contains no range", value=ranges, bound="at least one pair, the first and the last value"
        )
    for index, pair in enumerate(listed):
        if isinstance(pair, np.ndarray):
            listed[index] = pair = pair.tolist()
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError(
                f"{path}[{index}]", "is not a range", value=pair, bound="a pair of its first and last value"
            )
    return listed


def find_position(domain: Domain, value: Any, path: str) -> int:
    """Return the index of a value, which is a tuple if the domain has several attributes."""
    entries = value if isinstance(value, tuple | list) else (value,)
    if len(entries) != len(domain.attributes):
        bound = f"a value for each of {', '.join(domain.names)}"
        remedy = "give positions in the domain as positions="
        raise InputError(path, "has an end that is not a value", value=value, bound=bound, remedy=remedy)
    number = 0
    for attribute, entry in zip(domain.attributes, entries, strict=True):
        number = number * attribute.size + attribute.code(entry, path)
    return number


def _number(label: Any) -> Fraction:
    return exact(label.item() if isinstance(label, np.generic) else label, "value")
