"""Read places from a file: latitude and longitude, or x and y."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mechdesign.data.forms import cell
from mechdesign.data.text import columns_text, number, read_columns, read_rows
from mechdesign.errors import InputError, Shown
from mechdesign.model.places import DEGREES, PLANE, Axes
from mechdesign.validation import Floats

__all__ = ["COLUMNS", "read_places"]

COLUMNS = {
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng", "long"),
    "x": ("x",),
    "y": ("y",),
}
"""Names of columns that are understood, in capital or small letters."""


def read_places(path: str | os.PathLike[str], axes: Axes, delimiter: str = ",") -> tuple[Floats, Floats]:
    """Return the coordinates in a file with a header line, a float64 array for each axis.

    Other columns are left alone, and blank lines skipped.

    Raises:
        InputError: The file cannot be read, has no such columns, or has an entry that is no finite number in range.
    """
    source = Path(path)
    header = next((fields for _, fields in read_rows(source, delimiter)), [])
    chosen = [_column(source, header, axis) for axis in axes]
    columns = read_columns(source, chosen, delimiter)
    found = []
    for axis, column in zip(axes, chosen, strict=True):
        where = f"{source}, row {{}}, column {column}"
        values = np.array([number(text, where.format(row)) for row, text in enumerate(columns[column], 1)])
        limit = {DEGREES[0]: 90.0, DEGREES[1]: 180.0}.get(axis, np.inf)
        good = np.isfinite(values) & (np.abs(values) <= limit)
        if not good.all():
            row = int(np.argmin(good))
            bound = "a finite number" if axes == PLANE else f"between -{limit:g} and {limit:g} degrees"
            raise InputError(where.format(row + 1), "is not accepted", value=cell(columns[column][row]), bound=bound)
        found.append(values)
    return found[0], found[1]


def _column(source: Path, header: list[str], axis: str) -> str:
    found = [name for name in header if name.strip().lower() in COLUMNS[axis]]
    if len(found) != 1:
        problem = f"has no column of the {axis}" if not found else f"has more than one column of the {axis}"
        bound = f"a header line with a column {' or '.join(COLUMNS[axis])}"
        raise InputError(str(source), problem, value=Shown(columns_text(header, COLUMNS[axis])), bound=bound)
    return found[0]
