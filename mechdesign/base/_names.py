"""Arrays whose rows and columns have names, and their order by the labels of a domain.

Every array, frame and matrix of a file passes `named`, or `opened` where the labels are not known yet. Texts are
labels, integers are positions, and an index 0, 1, … in order is no name. Frames of pandas, polars and xarray are read
by their attributes, so that none of these packages is imported.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from mechdesign.base._check import as_list, rename_path, require_unmasked
from mechdesign.base._errors import InputError, InputWarning
from mechdesign.base._warnings import warn

Names = tuple[Hashable, ...]
Labels = Sequence[Hashable]

# The names of axes that state which axis is which.
_AXES = ("secret", "observable")


@dataclass(frozen=True, eq=False)
class Named:
    """An array with the names of its rows and columns.

    NumPy functions accept it instead of its array. Functions of this package match its names with the labels of a
    domain; the rule is in docs/reference/data_files.md.

    Args:
        values: The array, of one or two axes.
        rows: The names of the rows, or of the entries of an array of one axis; empty if they have none.
        columns: The names of the columns; empty if they have none.

    Raises:
        InputError: The number of names is not the length of the axis.

    >>> import numpy as np
    >>> np.asarray(Named([1.0, 2.0], ["home", "work"]))
    array([1., 2.])
    """

    values: NDArray[Any]
    rows: Names = ()
    columns: Names = ()
    # Whether it is known which axis is which, so that no note is due.
    _oriented = False

    def __init__(self, values: ArrayLike, rows: Labels = (), columns: Labels = ()) -> None:
        array = _plain(values, "values", object)
        object.__setattr__(self, "values", array)
        for axis, (name, given) in enumerate((("rows", rows), ("columns", columns))):
            listed = as_list(given, name, "a list of names")
            names = tuple(each.item() if isinstance(each, np.generic) else each for each in listed)
            size = array.shape[axis] if axis < array.ndim else 0
            if names and len(names) != size:
                raise InputError(name, "has another length", value=len(names), bound=f"{size} names, or none")
            object.__setattr__(self, name, names)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def oriented(self) -> Named:
        """Return the array as one whose rows are known to be secrets, so that no note is due.

        Returns:
            This array itself.
        """
        object.__setattr__(self, "_oriented", True)
        return self

    def arranged(self, place: str, rows: Labels | None, columns: Labels | None = None) -> NDArray[Any]:
        """Return the values with rows and columns in the order of labels.

        Args:
            place: The path of the array, for messages.
            rows: The labels of the rows; empty if only positions are known; None if names of rows do not matter.
            columns: The labels of the columns, likewise.

        Returns:
            The values.

        Raises:
            InputError: The names are not the labels.
        """
        if not self.rows and not self.columns:
            return self.values
        rows, columns = (None if labels is None else tuple(labels) for labels in (rows, columns))
        axes = ((self.rows, rows), (self.columns, columns))
        orders = [None if labels is None else order_of(names, labels, place) for names, labels in axes]
        values = self.values
        if rows is not None and columns is not None and not self._oriented and _may_be_transposed(self):
            warn(
                f"{place}: rows and columns have the same names, so nothing tells whether they were exchanged. Rows "
                f"are taken as secrets, or as states before a step; the names {' and '.join(_AXES)} of axes confirm it",
                InputWarning,
                stacklevel=3,
            )
        # Where rows and columns have the same labels, names of one axis do not tell the order of the other.
        square = values.ndim == 2 and len(set(values.shape)) == 1
        if square and rows == columns and any(each is not None for each in orders):
            self._require_both(place)
        for axis, order in enumerate(orders):
            values = values if order is None else values.take(order, axis=axis)
        return values

    def settled(self, place: str) -> Named:
        """Return the values with all axes of secrets in one order, and the names of the secrets.

        This is for arrays that arrive before the labels of the domain are known. Rows and columns of a square array are
        secrets; otherwise only columns are, such as those of the errors of other estimates. Integers are put in order.

        Args:
            place: The path of the array, for messages.

        Returns:
            The values, with their names.

        Raises:
            InputError: Rows and columns have different names, or names are neither texts nor positions.
        """
        if not self.rows and not self.columns:
            return self
        square, matrix = len(set(self.values.shape)) == 1, self.values.ndim == 2
        if square:
            self._require_both(place)
        own = self.rows if square or not matrix else self.columns
        labels = labels_of(own, place)
        values = self.arranged(place, labels, labels if matrix else None)
        names = labels or range(len(own))
        found = Named(values, names if square or not matrix else (), names if matrix else ())
        object.__setattr__(found, "_oriented", True)
        return found

    def _require_both(self, place: str) -> None:
        """Raise `InputError` if one axis has names and the other does not: they do not tell its order."""
        if self.values.ndim == 2 and _are_counted(self.rows) != _are_counted(self.columns):
            unnamed = "rows" if _are_counted(self.rows) else "columns"
            raise InputError(
                place,
                f"has names for one axis, but its {unnamed} have none",
                bound="names of rows and columns, or none",
                remedy=f"name the {unnamed} too, or drop the names with to_numpy() if the order is right",
            )


def named(
    value: Any,
    place: str,
    rows: Labels | None = None,
    columns: Labels | None = None,
    dtype: DTypeLike | None = None,
) -> NDArray[Any]:
    """Return the array of a value, with its rows and columns in the order of labels.

    Args:
        value: An array, a list, `Named`, a frame or series of pandas or polars, or an array of xarray.
        place: The path of the argument, for messages.
        rows: The labels of the rows; empty if they have none, so that only integers may name them; None if names of
            rows do not matter.
        columns: The labels of the columns, likewise.
        dtype: The type of the array; None keeps any type of real numbers, and `object` accepts everything but masked
            and sparse arrays.

    Returns:
        The array: `value` itself if it is an array of this type, or has its names in order.

    Raises:
        InputError: The value is masked, sparse or not of this type, or its names are not the labels.

    >>> named(Named([1.0, 2.0], ["work", "home"]), "prior", rows=["home", "work"])
    array([2., 1.])
    """
    if (rows is None and columns is None) or type(value) in (np.ndarray, list, tuple):
        return _plain(value, place, dtype)
    return opened(value, place, dtype).arranged(place, rows, columns)


def opened(value: Any, place: str, dtype: DTypeLike | None = None) -> Named:
    """Return the array of a value with its names as they are; axes named "observable" and "secret" are exchanged.

    Args:
        value: An array, a list, a frame, …, as in `named`.
        place: The path of the argument, for messages.
        dtype: The type of the array, as in `named`.

    Returns:
        The array, with its names.

    Raises:
        InputError: The value is masked, sparse or not of this type.

    >>> opened([[1, 2]], "cost").rows
    ()
    """
    array = _plain(value, place, dtype)
    if type(value) in (np.ndarray, list, tuple):
        return Named(array)
    rows, columns, axes = _names(value, place)
    exchanged = axes == _AXES[::-1]
    found = Named(array.T, columns, rows) if exchanged else Named(array, rows, columns if array.ndim > 1 else ())
    object.__setattr__(found, "_oriented", exchanged or axes == _AXES)
    return found


def settled(value: Any, place: str, names: Names = ()) -> Named:
    """Return a value as `Named.settled` does, with `names` if it has none; raise `InputError` if it has others."""
    found = opened(value, place).settled(place)
    if not names:
        return found
    made = Named(found.values, names, names if found.values.ndim > 1 else ()).oriented().settled(place)
    if made.rows != tuple(names) or not (_are_counted(found.rows) or found.rows == made.rows):
        bound = "texts, in the order of an array without names, or the names of the array"
        raise InputError("names", f"do not fit {place}", value=names[0], bound=bound)
    return made


def order_of(found: Labels, labels: Labels, place: str) -> NDArray[np.int64] | None:
    """Return the position of each label among names, or None if the names are in the order of the labels.

    Args:
        found: The names of an axis; none if it has no names.
        labels: The labels, in the order that is wanted; empty if only the positions 0, 1, … are known.
        place: The place of the names, for messages.

    Returns:
        Positions (n,) in `found`, or None.

    Raises:
        InputError: A name is missing, foreign or repeated, or is neither a text nor a position.

    >>> order_of(["work", "home"], ["home", "work"], "prior").tolist()
    [1, 0]
    """
    if not found or (tuple(found) == tuple(labels) and len(set(found)) == len(found)):
        return None
    wanted = labels
    if _are_positions(found, place):
        wanted = range(len(labels) or len(found))
        digits = [str(position) for position in wanted]
        ambiguous = list(labels) != digits and set(labels) == set(digits)
        if _are_counted(tuple(found)) and not ambiguous:
            return None
        if ambiguous or set(found) != set(wanted):
            which = "the labels are these integers in another order" if ambiguous else "no positions of the labels"
            raise InputError(
                place,
                f"has integers as names, but {which}",
                value=next((name for name in found if name not in wanted), len(found)),
                bound=f"the positions 0, …, {len(wanted) - 1}, or labels of text",
                remedy="give the names as texts, for example with map(str), or drop them with to_numpy()",
            )
    elif not labels:
        raise InputError(
            place,
            "has names, but here are no labels to match them with",
            value=found[0],
            bound="no names, or a domain with labels",
            remedy="give the domain with its labels, or drop the names with to_numpy() if the order is right",
        )
    positions = {name: position for position, name in enumerate(found)}
    known = set(wanted)
    foreign = next((name for name in found if name not in known), None)
    missing = next((label for label in wanted if label not in positions), None)
    if foreign is not None or missing is not None:
        raise InputError(
            place,
            "lacks a label" if foreign is None else "has a name that is no label",
            value=missing if foreign is None else foreign,
            bound=f"labels, such as {wanted[0]!r}, each of {len(wanted)} once",
            remedy="check its spelling and its axis, or drop the names with to_numpy() if the order is right",
        )
    order = np.fromiter((positions[label] for label in wanted), dtype=np.int64, count=len(wanted))
    return None if bool((order == np.arange(order.size)).all()) else order


def _are_positions(found: Labels, place: str) -> bool:
    """Return whether the names are integers; raise `InputError` unless all are, or all are texts, each once."""
    kinds = set(map(type, found))
    if kinds != {int} and not all(issubclass(kind, str) for kind in kinds):
        raise InputError(
            place,
            "has a name that is neither a text nor a position",
            value=sorted(kind.__name__ for kind in kinds),
            bound="texts, which are labels, or integers, which are positions",
        )
    if len(set(found)) != len(found):
        repeated = next(name for position, name in enumerate(found) if name in found[:position])
        raise InputError(place, "has a name more than once", value=repeated, bound="each name once")
    return kinds == {int}


def labels_of(names: Names, place: str) -> Names:
    """Return names that are labels; nothing if they are positions.

    >>> labels_of(("home", "work"), "prior"), labels_of((1, 0), "prior")
    (('home', 'work'), ())
    """
    return names if names and not _are_positions(names, place) else ()


def unless_numbers(labels: Labels) -> Names:
    """Return labels as a tuple; nothing if they are the numbers "0", "1", …, which a domain without labels has.

    >>> unless_numbers(["home", "work"]), unless_numbers(["0", "1"])
    (('home', 'work'), ())
    """
    return () if all(label == str(position) for position, label in enumerate(labels)) else tuple(labels)


def _names(value: Any, place: str) -> tuple[Names, Names, tuple[Any, ...]]:
    """Return the names of the rows and of the columns of a frame, and the names of its axes."""
    if isinstance(value, Named):
        return value.rows, value.columns, ()
    names = getattr(value, "names", None)
    if isinstance(names, tuple):
        # Priors and chains have one name for each secret.
        return names, names, _AXES
    # Variables of xarray have dimensions, and no coordinates.
    dims, coordinates = getattr(value, "dims", None), getattr(value, "coords", {})
    if dims is not None:
        for name, each in coordinates.items():
            along = getattr(each, "dims", (name,))
            if len(along) == 1 and along[0] not in coordinates and each.values.dtype.kind in "OUST":
                raise InputError(
                    place,
                    "has names that are no coordinate of their dimension",
                    value=name,
                    bound="names by dimension",
                    remedy="use swap_dims, or drop the names with to_numpy() if the order is right",
                )
        given = [tuple(coordinates[dim].values.tolist()) if dim in coordinates else () for dim in tuple(dims)]
        rows, columns = (*given, (), ())[:2]
        return rows, columns, tuple(dims)
    index, heads = getattr(value, "index", None), getattr(value, "columns", ())
    if index is None or callable(index):
        # Frames of polars and Arrow have no index; the columns of an Arrow table are no names.
        index, heads = (), getattr(value, "column_names", heads)
    axes = (getattr(index, "name", None), getattr(heads, "name", None))
    return tuple(index), tuple(heads), axes


def require_one_index(arrays: Mapping[str, Any]) -> None:
    """Raise `InputError` at the path of an array whose rows have other names than the array with names before it."""
    found = {path: rows for path, each in arrays.items() if (rows := _names(each, path)[0])}
    for (first, rows), (path, others) in pairwise(found.items()):
        if rows != others:
            remedy = "put both into one frame, or drop their index with to_numpy() if the order is right"
            raise InputError(path, f"has another index than {first}", bound="one index", remedy=remedy)


def _are_counted(names: Names) -> bool:
    """Return whether an axis has no names: none at all, or the positions 0, 1, … in order."""
    return names == tuple(range(len(names)))


def _may_be_transposed(found: Named) -> bool:
    """Return whether rows and columns have the same names, and values and sums do not tell which axis is which."""
    rows, columns, values = found.rows, found.columns, found.values
    texts = rows and all(isinstance(name, str) for name in (*rows, *columns))
    if not texts or len(rows) != len(columns) or set(rows) != set(columns):
        return False
    positions = {name: position for position, name in enumerate(columns)}
    values = values.take([positions[name] for name in rows], axis=1)
    if values.dtype.kind not in "biuf" or bool((values == values.T).all()):
        return False
    # The rows of a channel or chain sum to 1, and only a matrix that stays one when transposed leaves this open.
    along, across = (np.allclose(values.sum(axis=axis), 1) for axis in (1, 0))
    return across or not along


def _plain(value: Any, place: str, dtype: DTypeLike | None) -> NDArray[Any]:
    """Return the array of a value without its names."""
    if type(value) is not np.ndarray:
        require_unmasked(value, place)
        kinds = {type(each): each for each in value} if isinstance(value, list | tuple) else {}
        for kind, each in kinds.items():
            if kind is Named or hasattr(each, "to_numpy") or hasattr(each, "dims"):
                listed = f"a list with {kind.__name__}"
                raise InputError(
                    place, "has names within a list", value=listed, bound="one frame", remedy="join them first"
                )
        if hasattr(value, "toarray"):
            raise InputError(
                place, "is sparse", value=type(value).__name__, bound="a dense array", remedy="use toarray()"
            )
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and dtype is not object and isinstance(value, list | tuple):
            # A list of exact fractions becomes an array of objects.
            exact = all(isinstance(each, Rational | Decimal | float) for each in array.flat)
            array = array.astype(np.float64) if exact else array
    except InputError as error:
        # An object in `value` raised this error during its conversion to an array.
        raise rename_path(error, place, error.path) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(place, f"is not an array ({error})", bound="an array of real numbers") from error
    if dtype is object:
        return array
    if array.dtype.kind not in "biuf":
        remedy = "convert it with astype(float); set_index moves a column of names to the index of a frame"
        raise InputError(
            place,
            f"holds {array.dtype}",
            bound="an array of real numbers",
            remedy=remedy if array.dtype.kind == "O" else "",
        )
    return array if dtype is None else array.astype(dtype, copy=False)
