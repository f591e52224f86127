"""The domain of a table: the possible values of a record, their indices, and the columns that hold them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, Integers, as_floats, as_indices, read_only
from mechdesign.base._check import as_integer, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact
from mechdesign.certify._texts import require_plain, require_plain_texts

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


# Exact distances are sums of positions; sums of positions up to this bound cannot overflow an int64.
_LARGEST_POSITION = 2**60
# A histogram of more values would exceed the memory.
_LARGEST_HISTOGRAM = 2**28


@dataclass(frozen=True)
class Attribute:
    """A column of a table and its possible values, in order.

    Attributes:
        name: the name of the column.
        values: the distinct values; the value with index i is ``values[i]``.

    >>> ages = Attribute("age", range(17, 91))
    >>> ages.size, ages.numeric, ages.code(30, "age")
    (74, True, 13)
    """

    name: str
    values: range | tuple[Hashable, ...]

    @property
    def size(self) -> int:
        """Return the number of values."""
        return len(self.values)

    @cached_property
    def numeric(self) -> bool:
        """Return whether all values are numbers."""
        return isinstance(self.values, range) or all(_is_number(value) for value in self.values)

    @cached_property
    def ascending(self) -> bool:
        """Return whether the values are numbers in ascending order."""
        if isinstance(self.values, range):
            return self.values.step > 0 or self.size == 1
        return self.numeric and bool((np.diff(self.positions) > 0).all())

    @property
    def unit(self) -> Fraction:
        """Return the step of the lattice on which the values lie: value i is ``positions[i] * unit``, exactly."""
        return self._lattice[1]

    @property
    def positions(self) -> Integers:
        """Return the numeric values in multiples of `unit`, int64 of shape (size,), read-only.

        A float is read as the decimal that Python prints for it, so 0.1, 0.2 and 0.3 have equal distances.
        """
        return self._lattice[0]

    @cached_property
    def _lattice(self) -> tuple[Integers, Fraction]:
        path = f"domain[{self.name!r}]"
        if not self.numeric:
            odd = next(value for value in self.values if not _is_number(value))
            raise InputError(
                path, "is not a numeric attribute", value=odd, bound="numbers only", remedy="encode values as numbers"
            )
        if self.size > _LARGEST_HISTOGRAM:
            raise InputError(path, "has too many values to be listed", value=self.size, bound="at most 2^28")
        if isinstance(self.values, range):
            positions, unit = np.arange(self.values.start, self.values.stop, self.values.step), Fraction(1)
        else:
            positions, unit = _on_a_lattice(self.values, path)
        positions = positions.astype(np.int64)
        read_only(positions)
        return positions, unit

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {value: index for index, value in enumerate(self.values)}

    def codes(self, column: object, path: str) -> Integers:
        """Return the index of each value in a column.

        Args:
            column: one value for each row.
            path: the path of the table, for the error message.

        Returns:
            The indices of the values, int64 of shape (n,).

        Raises:
            InputError: A value is outside the domain; the message names its row.
        """
        require_unmasked(column, f"{path}[{self.name!r}]")
        array: Any = column if isinstance(column, list | tuple) else np.asarray(column)
        if isinstance(array, np.ndarray) and array.ndim != 1:
            where = f"{path}[{self.name!r}]"
            raise InputError(where, f"has {array.ndim} axes", value=array.shape, bound="one value per row")
        if isinstance(self.values, range):
            return self._codes_in_range(array, path)
        if isinstance(array, np.ndarray):
            array = array.tolist()
        try:
            codes = np.fromiter(map(self._numbers.get, array, itertools.repeat(-1)), dtype=np.int64, count=len(array))
        except TypeError:
            codes = np.fromiter(map(self._code_of, array), dtype=np.int64, count=len(array))
        return self.check_codes(codes, array, path)

    def code(self, value: object, path: str) -> int:
        """Return the index of one value.

        Args:
            value: the value.
            path: the path of the value, for the error message.

        Returns:
            The index of the value, from 0 to `size` - 1.

        Raises:
            InputError: The value is outside the domain.
        """
        try:
            return int(self.codes([value], path)[0])
        except InputError as error:
            raise InputError(
                path, "is not a value of the domain", value=value, bound=describe_values(self.values)
            ) from error

    def _codes_in_range(self, column: Any, path: str) -> Integers:
        assert isinstance(self.values, range)
        numbers = _as_numbers(column)
        if numbers is None:
            listed = column.tolist() if isinstance(column, np.ndarray) else column
            codes = np.fromiter(map(self._code_in_range, listed), dtype=np.int64, count=len(listed))
            return self.check_codes(codes, listed, path)
        low, high = sorted((self.values[0], self.values[-1]))
        inside = (numbers >= low) & (numbers <= high)
        whole = np.where(inside, numbers, low).astype(np.int64)
        codes, rest = np.divmod(whole - self.values.start, self.values.step)
        return self.check_codes(np.where(inside & (rest == 0) & (whole == numbers), codes, -1), column, path)

    def _code_of(self, value: Any) -> int:
        """Return the index of an object among the values, or −1 if it is not a value; a list has no hash."""
        try:
            return self._numbers.get(value, -1)
        except TypeError:
            return -1

    def _code_in_range(self, value: Any) -> int:
        """Return the index of an object among the values, or −1 if it is not a value."""
        assert isinstance(self.values, range)
        try:
            whole = int(value)
            return self.values.index(whole) if whole == value else -1
        except (TypeError, ValueError, OverflowError):
            return -1

    def check_codes(self, codes: Integers, column: Any, path: str) -> Integers:
        """Return the given indices; raise an `InputError` with the number of the row if an index is −1."""
        if len(codes) and codes.min() < 0:
            row = int(np.argmax(codes < 0))
            value = column[row]
            raise self._outside(path, row, value.item() if isinstance(value, np.generic) else value)
        return codes

    def nearest_codes(self, column: Floats) -> Integers:
        """Return the indices of the values nearest to real numbers, or −1 more than half a step outside the range.

        Args:
            column: real numbers, shape (n,).

        Returns:
            The indices of the values, int64 of shape (n,); of two values that are equally near, the lower one.
        """
        order = np.argsort(self.positions, kind="stable")
        values = self.positions[order] * float(self.unit)
        steps = np.diff(values) / 2
        first, last = (float(steps[0]), float(steps[-1])) if len(steps) else (0.0, 0.0)
        inside = (column >= values[0] - first) & (column <= values[-1] + last)
        above = np.searchsorted(values[1:-1], column, side="left") + (len(values) > 1)
        below = np.maximum(above - 1, 0)
        nearer = np.where(column - values[below] <= values[above] - column, below, above)
        return np.where(inside, order[nearer], -1).astype(np.int64)

    def _outside(self, path: str, row: int, value: object) -> InputError:
        # `InputError` would omit a value of None from its message.
        shown = "None" if value is None else value
        return InputError(
            f"{path}[{self.name!r}], row {row}",
            "is outside the domain",
            value=shown,
            bound=describe_values(self.values),
        )


@dataclass(frozen=True, init=False)
class Domain:
    """The values T that a record of a table may have: every combination of the values of its attributes.

    Values are numbered in the order of `itertools.product`: the last attribute changes fastest.

    >>> domain = Domain({"age": range(100), "sex": ["f", "m"]})
    >>> domain.size, domain.shape
    (200, (100, 2))
    >>> domain.value(3)
    (1, 'm')
    >>> domain.indices([(0, "m"), (99, "f")]).tolist()
    [1, 198]

    Args:
        attributes: a mapping from the name of each attribute to its distinct values, in order. A `range` is stored as
            it is, without a list of its values.

    Raises:
        InputError: There is no attribute, an attribute has no values, a value is repeated, or a value is neither a
            string nor a number.
    """

    attributes: tuple[Attribute, ...]

    def __init__(self, attributes: Mapping[str, Iterable[Hashable]]) -> None:
        if not isinstance(attributes, Mapping):
            raise InputError(
                "domain",
                "is not a mapping of names to values",
                value=type(attributes).__name__,
                remedy='give a mapping such as {"age": range(100), "sex": ["f", "m"]}',
            )
        if not attributes:
            raise InputError("domain", "has no attribute", bound="at least one")
        object.__setattr__(self, "attributes", tuple(_attribute(name, values) for name, values in attributes.items()))
        if self.size > _LARGEST_POSITION:
            raise InputError("domain", "has too many values", value=self.size, bound="at most 2^60 values")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of values of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Return the number |T| of values."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        parts = ", ".join(f"{attribute.name!r}: {attribute.size}" for attribute in self.attributes)
        return f"Domain({{{parts}}})"

    def attribute(self, name: str) -> Attribute:
        """Return the attribute with a name.

        Args:
            name: the name of the attribute.

        Returns:
            The attribute.

        Raises:
            InputError: No attribute has this name.
        """
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise InputError("attribute", "is not in the domain", value=name, bound=f"one of {', '.join(self.names)}")

    def ordered_attribute(self, needed_by: str) -> Attribute:
        """Return the only attribute of a domain; its values must be numbers in ascending order.

        Args:
            needed_by: the feature that needs the order, such as "cumulative counts", for the error message.

        Returns:
            The attribute.

        Raises:
            InputError: There are several attributes, or the values are not numbers in ascending order.
        """
        if len(self.attributes) > 1:
            raise InputError(
                "domain",
                f"has {len(self.attributes)} attributes, {', '.join(self.names)}",
                bound=f"one ordered attribute for {needed_by}",
            )
        only = self.attributes[0]
        if not only.ascending:
            problem = "is not in ascending order" if only.numeric else "is not a numeric attribute"
            raise InputError(
                f"domain[{only.name!r}]",
                problem,
                value=describe_values(only.values),
                bound=f"numbers in ascending order for {needed_by}",
                remedy="encode ordered categories as numbers",
            )
        return only

    def value(self, index: int) -> tuple[Hashable, ...]:
        """Return the value with a given index, as a tuple with one entry per attribute.

        Args:
            index: the index of the value, from 0 to |T| − 1.

        Returns:
            The value.

        Raises:
            InputError: The index is out of range.
        """
        number = as_integer(index, "index", 0, self.size - 1)
        entries = []
        for attribute in reversed(self.attributes):
            number, code = divmod(number, attribute.size)
            entries.append(attribute.values[code])
        return tuple(reversed(entries))

    def columns(self, data: object) -> dict[str, Any]:
        """Return a column of values for each attribute of a table.

        Args:
            data: a table of any type that `indices` accepts.

        Returns:
            A dictionary from the names of the attributes to the columns.
        """
        refuse_series_of_counts(data, self.attributes)
        return dict(zip(self.names, find_columns(data, self.names), strict=True))

    def indices(self, data: object = None, *, positions: ArrayLike | None = None) -> Integers:
        """Return the index of each record's value, int64 of shape (n,); the table may be empty.

        >>> Domain({"age": range(17, 91)}).indices([30, 31, 60]).tolist()
        [13, 14, 43]

        Args:
            data: a data frame or another table with named columns, a mapping of names to columns, or a structured
                array. An array of shape (n, attributes) and a list of tuples are also accepted, in the order of the
                attributes. For a domain of one attribute a list, tuple, array or series of values is accepted. Named
                columns that are not attributes are ignored, but refused as counts if each value has exactly one row.
            positions: the indices of the values, integers of shape (n,), instead of `data`.

        Returns:
            The indices, from 0 to |T| − 1, in the order of the records.

        Raises:
            InputError: A column is missing, columns have different lengths, or single values are given for several
                attributes. Or a value is outside the domain, in the row and the column that the message names. Or both
                `data` and `positions` are given, or neither.
        """
        if positions is not None:
            if data is not None:
                raise InputError("positions", "are given together with data", bound="either of them")
            refuse_series_of_counts(positions, self.attributes, "positions")
            return as_indices(positions, "positions", self.size)
        columns = self.columns(data)
        lengths = [len(column) for column in columns.values()]
        if len(set(lengths)) > 1:
            shown = ", ".join(f"{name}: {length}" for name, length in zip(self.names, lengths, strict=True))
            raise InputError("data", "has columns of different lengths", value=shown)
        result = np.zeros(lengths[0], dtype=np.int64)
        for attribute in self.attributes:
            result *= attribute.size
            result += attribute.codes(columns[attribute.name], "data")
        if len(result) == self.size > 1 and len(np.unique(result)) == self.size:
            others = [name for name in find_names(data) or () if name not in self.names]
            refuse_counts(others[:1], once=True)
        return result

    def nearest(self, points: ArrayLike) -> Integers:
        """Return the indices of the values nearest to real points, int64 of shape (n,).

        Each record is rounded independently of all others, so rounding does not affect privacy.

        Args:
            points: real numbers, shape (n, attributes); every attribute must be numeric.

        Returns:
            An index from 0 to |T| − 1 for each point.

        Raises:
            InputError: A point is more than half a step outside the range of an attribute; the message names its row.
        """
        table = as_floats(points, "points", "(n, attributes)")
        if table.shape[1] != len(self.attributes):
            bound = f"of shape (n, {len(self.attributes)}), a column for each of {', '.join(self.names)}"
            raise InputError("points", "has the wrong number of columns", value=table.shape, bound=bound)
        result = np.zeros(len(table), dtype=np.int64)
        for attribute, column in zip(self.attributes, table.T, strict=True):
            if not attribute.numeric:
                raise InputError(f"points[{attribute.name!r}]", "is not a numeric attribute", bound="numbers")
            result *= attribute.size
            result += attribute.check_codes(attribute.nearest_codes(column), column, "points")
        return result

    def counts(self, data: object = None, *, positions: ArrayLike | None = None) -> Integers:
        """Return the histogram of a table: the number of records with each value, int64 of shape (|T|,).

        Args:
            data: a table of any type that `indices` accepts.
            positions: the indices of the records' values, instead of `data`.

        Returns:
            The counts, in the order of the values.

        Raises:
            InputError: The domain has more than 2^28 values, or `indices` raises an error for the table.
        """
        if self.size > _LARGEST_HISTOGRAM:
            raise InputError("domain", "has too many values for a histogram", value=self.size, bound="at most 2^28")
        return np.bincount(self.indices(data, positions=positions), minlength=self.size).astype(np.int64)


def _attribute(name: object, values: object) -> Attribute:
    if not isinstance(name, str) or not name:
        raise InputError("domain", "has an attribute without a name", value=name, bound="a string that is not empty")
    path = f"domain[{name!r}]"
    require_plain(name, path)
    # A set has no order, so its values have no indices.
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        raise InputError(path, "is not a list of values", value=values, remedy='give a list such as ["f", "m"]')
    require_unmasked(values, path)
    if isinstance(values, range):
        found: range | tuple[Hashable, ...] = values
        if values and max(abs(values[0]), abs(values[-1])) > _LARGEST_POSITION:
            raise InputError(path, "is out of range", value=values, bound="integers between -2^60 and 2^60")
    else:
        found = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
        _check_distinct(found, path)
    if not found:
        raise InputError(path, "has no values", bound="at least one")
    if not isinstance(found, range):
        # Published files contain these strings. The strings are checked here, because files are written after the
        # ledger is charged.
        require_plain_texts(found, path, lines=True)
    return Attribute(name, found)


def _as_numbers(column: Any) -> NDArray[Any] | None:
    """Return a column of integers, or of floats below 2^53, as an array; None for any other column."""
    try:
        array = column if isinstance(column, np.ndarray) else np.asarray(column)
    except (ValueError, OverflowError):
        return None
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        return None
    if array.dtype.kind == "f" and not (np.abs(array) < 2.0**53).all():
        return None
    return array


def _check_distinct(values: tuple[Any, ...], path: str) -> None:
    first: dict[Hashable, int] = {}
    for index, value in enumerate(values):
        try:
            if value is None or value != value or (isinstance(value, float) and math.isinf(value)):
                raise TypeError
            # Python does not write integers of thousands of digits, and published files hold the values.
            str(value)
            earlier = first.setdefault(value, index)
        except (TypeError, ValueError) as error:
            shown = "None" if value is None else value
            raise InputError(f"{path}[{index}]", "is not accepted", value=shown, bound="a string or number") from error
        if earlier != index:
            raise InputError(
                f"{path}[{index}]", f"repeats {path}[{earlier}]", value=value, bound="distinct from all others"
            )


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | np.bool_ | str) and _can_be_exact(value)


def _can_be_exact(value: object) -> bool:
    try:
        exact(value)
    except InputError:
        return False
    return True


def _on_a_lattice(values: tuple[Any, ...], path: str) -> tuple[Integers, Fraction]:
    """Return integers and a unit whose products are exactly the values, in the same order."""
    fractions = [exact(value) for value in values]
    denominator = math.lcm(*{fraction.denominator for fraction in fractions})
    scaled = [fraction.numerator * (denominator // fraction.denominator) for fraction in fractions]
    if max(map(abs, scaled)) > _LARGEST_POSITION:
        raise InputError(
            path, "has values with too many digits", bound="multiples of one step", remedy="round them to a common step"
        )
    return np.array(scaled, dtype=np.int64), Fraction(1, denominator)


def describe_values(values: range | tuple[Hashable, ...]) -> str:
    if isinstance(values, range) and len(values) > 1:
        step = "" if values.step == 1 else f" in steps of {values.step}"
        return f"from {values[0]} to {values[-1]}{step}"
    if len(values) <= 10:
        return f"one of {', '.join(map(repr, values))}"
    return f"one of the {len(values)} values {values[0]!r}, {values[1]!r}, ..., {values[-1]!r}"
