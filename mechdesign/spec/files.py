"""The tables that name a file of data; paths are relative to the folder of the specification."""

from __future__ import annotations

from mechdesign.spec.tables import Table

__all__ = [
    "BudgetsFile",
    "CategoriesFile",
    "Checkins",
    "CountsFile",
    "EdgesFile",
    "MatrixFile",
    "PlacesFile",
    "Trajectories",
]


class PlacesFile(Table, frozen=True):
    """A file with a header and a place a line.

    Attributes:
        path: the file.
        x: the column with the first coordinate, beside `y`.
        y: the column with the second coordinate.
        latitude: the column with the latitude in degrees, beside `longitude`, instead of `x` and `y`.
        longitude: the column with the longitude in degrees.
        label: the column with the names of the places; they are numbered where there is none.
        delimiter: the character between columns.
    """

    path: str
    x: str | None = None
    y: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    label: str | None = None
    delimiter: str = ","


class CountsFile(Table, frozen=True):
    """A file with a header and a line for each secret, in order.

    Attributes:
        path: the file.
        column: the column with the counts.
        delimiter: the character between columns.
    """

    path: str
    column: str
    delimiter: str = ","


class Checkins(Table, frozen=True):
    """A file with a header and a check-in a line, in order of time.

    Attributes:
        path: the file.
        user: the column that says who it was.
        latitude: the column with the latitude in degrees.
        longitude: the column with the longitude in degrees.
        time: the column with the time, by which lines are sorted.
        trace: the column that tells the traces of a user apart.
        delimiter: the character between columns.
        only: the one user to take; everybody unless given.
    """

    path: str
    user: str = "user"
    latitude: str = "latitude"
    longitude: str = "longitude"
    time: str | None = None
    trace: str | None = None
    delimiter: str = ","
    only: int | str | None = None


class Trajectories(Table, frozen=True):
    """A folder of GeoLife trajectories (.plt).

    Attributes:
        path: the folder.
        only: the one user to take; everybody unless given.
    """

    path: str
    only: int | str | None = None


class MatrixFile(Table, frozen=True):
    """A file of numbers.

    Attributes:
        path: the file, .csv without a header or .npy; rows are secrets.
        delimiter: the character between columns.
    """

    path: str
    delimiter: str = ","


class EdgesFile(Table, frozen=True):
    """A file with a header and an edge a line.

    Attributes:
        path: the file.
        source: the column with one end of each edge, an index or a label.
        target: the column with the other end.
        delimiter: the character between columns.
    """

    path: str
    source: str = "source"
    target: str = "target"
    delimiter: str = ","


class CategoriesFile(Table, frozen=True):
    """A file with a header and a line for each secret, in order.

    Attributes:
        path: the file.
        column: the column with the categories; secrets of the same category are joined, those without one are not.
        region: what keeps equal categories apart: another column, or, on a grid, the size of blocks of cells.
        delimiter: the character between columns.
    """

    path: str
    column: str
    region: str | int | tuple[int, int] | None = None
    delimiter: str = ","


class BudgetsFile(Table, frozen=True):
    """The ε of successive releases; the specification then describes one problem for each distinct ε.

    The leakage for which budgets were found is that of releases in which ε bounds every pair of secrets: a distance of
    at most 1 (``distance = "hamming"``), a radius that covers all pairs, or a complete graph.

    Attributes:
        budgets: a file with the columns ``step`` and ``epsilon``, as `mechdesign budget -o` writes it; all ε are
            positive.
    """

    budgets: str
