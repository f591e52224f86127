"""Tables of a specification that name data: files, graphs and chains; and what every table is.

Paths are relative to the folder of the specification. The docstrings are the reference of the grammar: the JSON schema
takes its descriptions from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import msgspec

Raw = dict[str, Any]
Distance = Literal["euclidean", "manhattan", "chebyshev", "hamming", "haversine"]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a specification.

    It has exactly one of the keys `alternatives`, where it names any; `beside` lists those of them that may stand
    beside another one, and then are none: key to other key.
    """

    alternatives: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[Mapping[str, str]] = MappingProxyType({})


def holds(*kinds: type[Table]) -> msgspec.Meta:
    """Say for the JSON schema which tables may stand at a key."""
    choices = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]
    return msgspec.Meta(extra_json_schema={"anyOf": choices}, extra={"tables": kinds})


def refers(name: str) -> msgspec.Meta:
    """Say for the JSON schema that a table called `name`, or a list of them, may stand at a key."""
    table = {"$ref": f"#/$defs/{name}"}
    return msgspec.Meta(extra_json_schema={"anyOf": [table, {"type": "array", "items": table}]}, extra={"tables": ()})


class PlacesFile(Table, frozen=True):
    """A file with a header and a place a line.

    Attributes:
        path: the file.
        x: the column with the first coordinate, beside `y`.
        y: the column with the second coordinate.
        latitude: the column with the latitude in degrees, beside `longitude`, instead of `x` and `y`.
        longitude: the column with the longitude in degrees.
        label: the column with the names of the places; they are numbered where there is none.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
    """

    path: str
    x: str | None = None
    y: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    label: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None


class PlacesByKey(Table, frozen=True):
    """A file with a header and a place a line, to which check-ins refer by a key.

    Attributes:
        path: the file.
        key: the column with the key.
        latitude: the column with the latitude in degrees.
        longitude: the column with the longitude in degrees.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
    """

    path: str
    key: str
    latitude: str = "latitude"
    longitude: str = "longitude"
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None


class CountsFile(Table, frozen=True):
    """A file with a header and a line for each secret.

    Attributes:
        path: the file.
        column: the column with the counts.
        label: the column with the labels of the secrets, by which lines are matched; "" takes them in order. Unless it
            is given a column that holds labels is found, and where there is none lines are taken in order.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
    """

    path: str
    column: str
    label: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None


class Checkins(Table, frozen=True):
    """A file with a header and a check-in a line, in order of time.

    Attributes:
        path: the file.
        user: the column that says who it was; "" where there is none, and all are counted together.
        latitude: the column with the latitude in degrees.
        longitude: the column with the longitude in degrees.
        time: the column with the time, by which lines are sorted; lines without one are left out.
        date: the column with the date, where `time` holds the time of day only.
        time_format: how times are written, date first: a pattern such as "%Y%m%d", or "unix", "unix-ms", "unix-us" or
            "unix-ns" since 1970; needed where digits may be a date, or a day may be a month.
        time_zone: the zone of times that say none, such as "Europe/Zurich" or "+02:00"; UTC unless given.
        longitudes: "360" where they go from 0 to 360 degrees, "180" where not; told by the data unless given.
        missing: the share of rows that may be left out, such as 0.2; 0.05 unless given.
        trace: the column that tells the traces of a user apart.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
        only: the one user to take; everybody unless given.
        place: the column with the key of the place, instead of `latitude` and `longitude`, beside `places`.
        places: a table of places, joined by their key.
        every: traces are brought to even steps of this length, such as "5 min"; needs `time`.
        gap: traces are cut where nothing was seen for longer, such as "15 min"; three steps unless given.
    """

    path: str
    user: str = "user"
    latitude: str = "latitude"
    longitude: str = "longitude"
    time: str | None = None
    date: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    longitudes: Literal["180", "360"] | None = None
    missing: float | None = None
    trace: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    only: int | str | None = None
    place: str | None = None
    places: Annotated[Raw, holds(PlacesByKey)] | None = None
    every: str | None = None
    gap: str | None = None


class Trajectories(Table, frozen=True):
    """A folder of GeoLife trajectories (.plt).

    Attributes:
        path: the folder.
        only: the one user to take; everybody unless given.
        missing: the share of rows that may be left out, such as 0.2; 0.05 unless given.
        every: traces are brought to even steps of this length, such as "5 min".
        gap: traces are cut where nothing was seen for longer, such as "15 min"; three steps unless given.
    """

    path: str
    only: int | str | None = None
    missing: float | None = None
    every: str | None = None
    gap: str | None = None


class MatrixFile(Table, frozen=True):
    """A file of numbers.

    Attributes:
        path: the file, .csv without a header, .npy, or .npz (SciPy sparse); rows are secrets.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
        header: true: the first line names or numbers the columns; asked for where that may be.
        numbered: true: the first column names or numbers the rows; asked for likewise.
    """

    path: str
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    header: bool | None = None
    numbered: bool | None = None


class EdgesFile(Table, frozen=True):
    """A file with a header and an edge a line.

    Attributes:
        path: the file.
        source: the column with one end of each edge, a label or a position.
        target: the column with the other end.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
    """

    path: str
    source: str = "source"
    target: str = "target"
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None


class CategoriesFile(Table, frozen=True):
    """A file with a header and a line for each secret.

    Attributes:
        path: the file.
        column: the column with the categories; secrets of the same category are joined, those without one are not.
        label: the column with the labels of the secrets, as for counts.
        region: what keeps equal categories apart: another column, or, on a grid, the size of blocks of cells.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
    """

    path: str
    column: str
    label: str | None = None
    region: str | int | tuple[int, int] | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None


class BudgetsFile(Table, frozen=True):
    """The ε of successive releases; the specification then describes one problem for each distinct ε.

    The leakage for which budgets were found is that of releases in which ε bounds every pair of secrets: a distance of
    at most 1 (``distance = "hamming"``), a radius that covers all pairs, or a complete graph.

    Attributes:
        budgets: a file with the columns ``step`` and ``epsilon``, as `mechdesign budget -o` writes it; all ε are
            positive.
    """

    budgets: str


class GraphTable(Table, frozen=True):
    """A graph on the secrets, whose shortest paths are a distance: every edge is one step long.

    Attributes:
        edges: pairs of secrets: texts are labels, integers positions from 0 on.
        edges_csv: a file of edges.
        neighbours: 4 or 8: each cell of a grid and so many neighbours.
    """

    alternatives: ClassVar = ("edges", "edges_csv", "neighbours")

    edges: list[tuple[int | str, int | str]] | None = None
    edges_csv: Annotated[Raw, holds(EdgesFile)] | None = None
    neighbours: int | None = None


class ChainTable(Table, frozen=True):
    """How states follow one another: a Markov chain, or the data to count its steps in.

    Attributes:
        path: a file with the matrix Pr(next state | state now), as `matrix` elsewhere; rows are states now. The word
            stay in place of a row puts a 1 on the diagonal.
        estimated: true: from the check-ins or trajectories that the prior comes from.
        checkins: a file of check-ins.
        plt: a folder of trajectories.
        neighbours: 4 or 8: stay, or step to one of so many neighbouring cells, all with the same probability.
        paths: files with such matrices, one after the other in time; `by` says of what.
        smoothing: what is added to each count of steps; with `estimated`, `checkins` and `plt`.
        delimiter: the character between columns of `path`; recognised unless given, as the next four are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
        header: true: the first line of `path` names or numbers its columns.
        numbered: true: the first column of `path` names or numbers its rows.
        every: how long a step is, such as "5 min": that of the matrix in `path`, or what data are brought to before
            their steps are counted. A trace with times must have the same steps.
        gap: data are cut where nothing was seen for longer, such as "15 min"; three steps unless given.
        by: "hour": a matrix for each hour of the day (UTC), counted in the data, or from 24 files; "step": a matrix for
            each step of the trace, from files.
        ends: what follows a state that nobody was seen to leave, in data without smoothing: "stay" (a 1 on the
            diagonal, unless given), "mixture" (any mixture of the rows that were seen) or "any" (any row). The last two
            are for leakage; a release refuses them.
        border: what becomes of steps out of the box, in data: "cut" (unless given) leaves them out, "state" leads them
            to a further state outside, for leakage.
    """

    alternatives: ClassVar = ("path", "paths", "estimated", "checkins", "plt", "neighbours")

    path: str | None = None
    paths: list[str] | None = None
    estimated: bool | None = None
    checkins: Annotated[Raw, holds(Checkins)] | None = None
    plt: Annotated[Raw, holds(Trajectories)] | None = None
    neighbours: int | None = None
    smoothing: float | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    header: bool | None = None
    numbered: bool | None = None
    every: str | None = None
    gap: str | None = None
    by: Literal["hour", "step"] | None = None
    ends: Literal["stay", "mixture", "any"] | None = None
    border: Literal["cut", "state"] | None = None
