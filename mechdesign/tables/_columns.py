"""Read a table of any supported type into one column for each attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechdesign.base._check import require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import named

# Usual names of columns of counts.
_COUNTS = ("count", "counts", "proportion", "n", "freq", "frequency", "len", "size")

_TABLE = "a table with named columns, an array with a column per attribute, a list of tuples, or one attribute's values"


def find_columns(data: Any, names: tuple[str, ...]) -> list[Any]:
    """Return a column for each attribute: a list, tuple or array of shape (n,).

    Args:
        data: a data frame or another table with named columns, a mapping of names to columns, or a structured array.
            An array of shape (n, attributes) and a list of tuples are also accepted, in the order of the attributes.
            For a single attribute a list, tuple, array or series of values is accepted. Named columns that are not
            attributes are ignored.
        names: the names of the attributes.

    Returns:
        The columns, in the order of `names`.

    Raises:
        InputError: A column is missing, a row or array has the wrong width, or single values are given for several
            attributes.
    """
    if isinstance(data, str | bytes) or data is None:
        raise InputError("data", "is not a table", value="None" if data is None else data, bound=_TABLE)
    present = find_names(data)
    if present is not None:
        # A frame of one column without a name lacks the attributes, and is refused for that.
        refuse_counts([name for name in present if name not in names and (isinstance(name, str) or len(present) > 1)])
        return [_column(data, name, present) for name in names]
    if isinstance(data, list | tuple) and any(isinstance(row, tuple | list) for row in data):
        return _transpose(data, names)
    require_unmasked(data, "data")
    return _split_array(data, names)


def refuse_counts(others: Sequence[object], once: bool = False) -> None:
    """Raise `InputError` if the only column beside the attributes is one of counts, so that rows are no records.

    pandas calls the column of `groupby().size().reset_index()` 0, a number. If there is a row for each value, `once`,
    any column is taken for counts.
    """
    if len(others) == 1 and (once or not isinstance(others[0], str) or others[0].strip().lower() in _COUNTS):
        raise InputError(
            "data",
            f"has the attributes and a column {others[0]!r}, and each row would count as one record",
            bound="a row for each record",
            remedy=f"give the counts by value as counts=, such as data.set_index([…])[{others[0]!r}], or leave out the "
            "column if each row is a record",
        )


def refuse_series_of_counts(data: Any, attributes: Sequence[Any], path: str = "data") -> None:
    """Raise `InputError` for a series that has a count for each value, as `value_counts()` returns it.

    Such a series is called count or proportion, or its index is named like an attribute. The index of a series without
    a name may also consist of values of the domain.
    """
    index, own, names = getattr(data, "index", None), getattr(data, "name", None), [each.name for each in attributes]
    index = None if callable(index) else index
    if hasattr(data, "columns"):
        return
    levels = {*getattr(data, "dims", ()), *getattr(index, "names", ()), getattr(index, "name", None)}
    named = (own in ("count", "proportion") and own not in names) or levels.intersection(names)
    if named or (own is None and index is not None and path == "data" and _are_values(tuple(index), attributes)):
        raise InputError(
            path,
            "looks like a count for each value, as value_counts() and groupby().size() return it",
            bound="the value of each record",
            remedy="give counts as counts=, with a count for each value of the domain; if these are the values of "
            "records, give them as an array, with to_numpy()",
        )


def _are_values(labels: tuple[Any, ...], attributes: Sequence[Any]) -> bool:
    """Return whether the labels of a series are different values of a domain, and not the numbers of its rows."""
    if labels == tuple(range(len(labels))) or len(set(labels)) < len(labels):
        return False
    columns = zip(*(label if isinstance(label, tuple) else (label,) for label in labels), strict=True)
    try:
        return all(len(each.codes(list(column), "")) for each, column in zip(attributes, columns, strict=True))
    except (InputError, ValueError):
        return False


def find_names(data: Any) -> tuple[Any, ...] | None:
    """Return the names of a table's columns, or None if they have no names."""
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return tuple(data.dtype.names)
    if isinstance(data, Mapping):
        return tuple(data)
    for listing in ("columns", "column_names"):
        found = getattr(data, listing, None)
        # In an Arrow table, `columns` contains arrays, and `column_names` contains strings.
        is_array = listing == "columns" and hasattr(data, "column_names")
        if found is not None and hasattr(data, "__getitem__") and not is_array:
            return tuple(found)
    return None


def _split_array(data: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the columns of an array, or of a list, tuple or series of single values."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError("data", f"is not a table ({error})", bound=_TABLE) from error
    if array.ndim == 2:
        if array.shape[1] != len(names):
            bound = f"of shape (n, {len(names)}), a column for each of {', '.join(names)}"
            raise InputError("data", "has the wrong number of columns", value=array.shape, bound=bound)
        return list(array.T)
    if array.ndim != 1:
        raise InputError("data", "is not a table", value=type(data).__name__, bound=_TABLE)
    if array.size == 0:
        return [array] * len(names)
    if len(names) > 1:
        raise InputError(
            "data",
            f"contains single values, but a record has {len(names)} values",
            value=f"{array.size} of {array.dtype}",
            bound=f"a value for each of {', '.join(names)} in every record",
            remedy="give named columns, or tuples; give positions in the domain as positions=",
        )
    # NumPy would convert numbers in a list that also contains strings to strings, so a list is used unchanged.
    return [data if isinstance(data, list | tuple) else array]


def _column(data: Any, name: str, present: tuple[Any, ...]) -> Any:
    if name not in present:
        remedy = "give counts by value as counts=" if isinstance(data, Mapping) else ""
        bound = "a column for each attribute"
        raise InputError("data", f"has no column for the attribute {name!r}", bound=bound, remedy=remedy)
    column = data[name]
    if isinstance(column, Mapping | str | bytes) or not hasattr(column, "__len__"):
        bound = "a list, an array or a series with the value of each record"
        raise InputError(f"data[{name!r}]", "is not a column", value=type(column).__name__, bound=bound)
    return column if isinstance(column, list | tuple) else named(column, f"data[{name!r}]", dtype=object)


def _transpose(rows: list[Any] | tuple[Any, ...], names: tuple[str, ...]) -> list[Any]:
    for index, row in enumerate(rows):
        if not isinstance(row, tuple | list) or len(row) != len(names):
            raise InputError(
                f"data[{index}]",
                "is not a record",
                value=f"{len(row)} values" if isinstance(row, tuple | list) else type(row).__name__,
                bound=f"one value for each of {', '.join(names)}",
            )
    return list(zip(*rows, strict=True))
