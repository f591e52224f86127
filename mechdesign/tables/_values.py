"""Labels of the values of a domain, and the indices of values that a caller gives."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import InputError
from mechdesign.base._names import opened
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


def range_positions(domain: Domain, ranges: object) -> list[tuple[int, int]]:
    """Convert ranges, given as pairs of a first and a last value, to pairs of indices of values.

    Args:
        domain: the domain of the records.
        ranges: the ranges.

    Returns:
        The pairs of indices.

    >>> range_positions(Domain({"age": range(17, 91)}), [(30, 39), (17, 90)])
    [(13, 22), (0, 73)]

    Raises:
        InputError: An entry is not a pair, an end is outside the domain, or a first value is after the last.
    """
    found = []
    for index, pair in enumerate(check_pairs(ranges, "ranges")):
        ends = [find_position(domain, end, f"ranges[{index}]") for end in pair]
        if ends[0] > ends[1]:
            raise InputError(
                f"ranges[{index}]", "ends before it begins", value=tuple(pair), remedy="exchange the two values"
            )
        found.append((ends[0], ends[1]))
    return found


def check_positions(domain: Domain, ranges: object) -> list[tuple[int, int]]:
    """Return ranges, which are pairs of positions, as integers; raise `InputError` if a range is invalid."""
    found = []
    for index, pair in enumerate(check_pairs(ranges, "positions")):
        if any(isinstance(end, bool | np.bool_) or not isinstance(end, int | np.integer) for end in pair):
            raise InputError(f"positions[{index}]", "is not a range", value=tuple(pair), bound="a pair of integers")
        if not 0 <= pair[0] <= pair[1] < domain.size:
            bound = f"0 <= low <= high <= {domain.size - 1}"
            raise InputError(f"positions[{index}]", "is not a range of positions", value=tuple(pair), bound=bound)
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


def in_order_of_values(domain: Domain, given: Any, path: str) -> Any:
    """Return what is given for each value, such as counts or labels; names travel.

    Entries of a mapping, a series or another array with names are put in the order of the values. Everything else is
    returned as it is. An index 0, 1, … in order is no name if no value of the domain is a number.

    >>> in_order_of_values(Domain({"sex": ["f", "m"]}), {"m": 1, "f": 2}, "counts")
    [2, 1]
    """
    if type(given) in (np.ndarray, list, tuple) or given is None:
        return given
    if isinstance(given, Mapping):
        return _order_by_name(domain, list(given), list(given.values()), path)
    found = opened(given, path, object)
    index = getattr(given, "index", None)
    given_levels = () if callable(index) else (*getattr(index, "names", ()), *getattr(given, "dims", ()))
    levels = [str(name) for name in given_levels if name is not None]
    if found.values.ndim != 1 or not found.rows or (not levels and _are_numbers_of_rows(domain, found.rows, path)):
        return given
    if levels and sorted(levels) != sorted(domain.names):
        bound = f"a level for each of {', '.join(domain.names)}"
        raise InputError(path, "have an index with other levels", value=levels, bound=bound)
    return _order_by_name(domain, found.rows, found.values.tolist(), path, levels)


def refuse_names(given: Any, path: str) -> None:
    """Raise `InputError` for weights whose entries or columns have names: here they are not matched with values."""
    if type(given) in (np.ndarray, list, tuple) or hasattr(given, "toarray"):
        return
    found = opened(given, path, object)
    names = found.columns if found.values.ndim == 2 else found.rows
    if names not in ((), tuple(range(len(names)))):
        remedy = "put them in the order of the values, and drop the names with to_numpy()"
        raise InputError(path, "have names", value=names[0], bound="an array in the order of the values", remedy=remedy)


def _are_numbers_of_rows(domain: Domain, names: tuple[Any, ...], path: str) -> bool:
    """Return whether names are 0, 1, … in order and no values, because no value of the domain is a number."""
    if names != tuple(range(len(names))):
        return False
    values = domain.attributes[0].values
    if len(domain.names) == 1 and set(names) == set(values) and names != tuple(values):
        raise InputError(
            path,
            "are named 0, 1, …, and so are the values, in another order",
            bound="entries whose index is named like the attribute, or an array in the order of the values",
            remedy="name the index with rename_axis(), or drop it with to_numpy()",
        )
    return not any(attribute.numeric for attribute in domain.attributes)


def _order_by_name(
    domain: Domain, names: Sequence[Any], entries: Sequence[Any], path: str, levels: Sequence[str] = ()
) -> list[Any]:
    if len(names) != domain.size:
        bound = f"an entry for each of the {domain.size} values"
        remedy = "add the missing values, with reindex(values, fill_value=0) for counts"
        raise InputError(path, "have the wrong length", value=len(names), bound=bound, remedy=remedy)
    found: dict[int, Any] = {}
    for name, entry in zip(names, entries, strict=True):
        parts = name if isinstance(name, tuple) else (name,)
        if len(parts) == len(levels):
            parts = tuple(parts[levels.index(each)] for each in domain.names)
        place = find_position(domain, parts, path)
        if any(map(_is_only_truth, parts, domain.value(place))):
            raise InputError(path, "name a value by a truth value", value=name, bound="the value itself")
        if place in found:
            raise InputError(path, "name a value twice", value=name, bound="one entry for each value")
        found[place] = entry
    return [found[place] for place in range(domain.size)]


def _is_only_truth(given: object, value: object) -> bool:
    """Return whether a truth value is given for a value that is none, although the two are equal."""
    return isinstance(given, bool | np.bool_) and not isinstance(value, bool | np.bool_)
