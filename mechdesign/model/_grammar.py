"""The base class of all tables in a specification, and the tables for files, graphs, chains and priors.

Paths are relative to the folder of the specification. The descriptions of keys and the docstrings of tables document
the grammar, and appear in the JSON schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from mechdesign.base._check import LARGEST_NUMBER
from mechdesign.base._errors import InputError

Raw = dict[str, Any]
POSITIVE: Mapping[str, float] = MappingProxyType({"gt": 0, "le": LARGEST_NUMBER})
"""The bounds of a positive number, for `says`."""
_FINITE: Mapping[str, float] = MappingProxyType({"ge": -LARGEST_NUMBER, "le": LARGEST_NUMBER})
Distance = Literal["euclidean", "manhattan", "chebyshev", "hamming", "haversine"]


def says(text: str, **bounds: float) -> msgspec.Meta:
    """Return an annotation that describes a key; it is written inside ``Annotated`` in the type of the key.

    Args:
        text: The description, a sentence that ends in a full stop.
        **bounds: Bounds of the value, by their names in `msgspec.Meta`, such as ``ge=1`` or ``min_length=1``.

    Returns:
        The annotation that msgspec checks, and writes into the JSON schema.

    >>> says("the file.").description
    'the file.'
    """
    return msgspec.Meta(description=text, **bounds)  # type: ignore[call-overload, no-any-return]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a specification.

    A table must have exactly one of the keys in `alternatives`, unless the tuple is empty. An entry `a: b` of `beside`
    permits the two alternatives a and b together; b is then the form of the table.

    >>> class Size(Table, frozen=True):
    ...     alternatives = ("width", "height")
    ...     width: float | None = None
    ...     height: float | None = None
    >>> Size(width=2.0).form
    'width'
    """

    alternatives: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __post_init__(self) -> None:
        """Raise `InputError` unless the table contains exactly one of the alternatives, and none is false."""
        for name in self.alternatives:
            if getattr(self, name) is False:
                raise InputError(name, "cannot be false", value=False, bound="true")
        if self.alternatives:
            self.one_of(self.alternatives)

    @property
    def form(self) -> str:
        """The alternative that the table contains."""
        return self.one_of(self.alternatives)

    def one_of(self, names: Sequence[str]) -> str:
        """Return the key among `names` that the table contains; raise `InputError` unless there is exactly one.

        Args:
            names: Keys of the table that exclude each other.

        Returns:
            The key.
        """
        there = [name for name in names if getattr(self, name) is not None]
        given = [name for name in there if self.beside.get(name) not in there]
        if len(given) == 1:
            return given[0]
        problem = "is incomplete" if not given else f"has {' and '.join(given)}, which exclude each other"
        raise InputError("", problem, bound=f"given by exactly one of {', '.join(names)}")


class FilesTable(Table, frozen=True):
    """The layout of all data files of a specification, and of the file that is given to `table` or `release`.

    >>> FilesTable(delimiter=";", decimal=",").encoding
    'utf-8'

    Attributes:
        delimiter: The character between columns.
        decimal: The decimal sign.
        encoding: The encoding.
        time_format: The format of times, or None for ISO 8601.
        time_zone: The zone of times without a zone.
        missing: The share of rows of check-ins, visits and traces that may be left out.
    """

    delimiter: Annotated[str, says("the character between columns.")] = ","
    decimal: Annotated[str, says('the decimal sign, "." or ",".')] = "."
    encoding: Annotated[str, says('the encoding, such as "latin-1"; a byte order mark of UTF-8 is skipped.')] = "utf-8"
    time_format: Annotated[
        str | None,
        says(
            'the format of times: a pattern such as "%d.%m.%Y %H:%M", or "unix", "unix-ms", "unix-us" or "unix-ns" for '
            "a number since 1970; ISO 8601 by default."
        ),
    ] = None
    time_zone: Annotated[str, says('the zone of times that do not state one, such as "Europe/Zurich".')] = "UTC"
    missing: Annotated[
        float,
        says(
            "the share of rows of check-ins, visits and traces that may be left out, in all and counted by reason; of "
            "the records of a table none is left out."
        ),
    ] = 0.05


LabelColumn = Annotated[
    str | bool | None,
    says(
        "the column with the labels of the secrets, which match lines to secrets; false if lines are in the order of "
        "the secrets. Required if the file has further columns."
    ),
]
Header = Annotated[
    bool | Literal["ignore"] | None,
    says(
        "true: the first line contains the names of the columns, which are matched with the labels; "
        '"ignore": it is skipped. Required if the first line may be a header.'
    ),
]
Index = Annotated[
    bool | Literal["ignore"] | None,
    says(
        "true: the first column contains the names of the rows, which are matched with the labels; "
        '"ignore": it is skipped. Required if the first column may be one of names.'
    ),
]


class PlacesFile(Table, frozen=True):
    """A file with a header and one place per line.

    Attributes:
        path: The file.
        x: The column with the first coordinate, or None.
        y: The column with the second coordinate, or None.
        latitude: The column with the latitude in degrees, or None.
        longitude: The column with the longitude in degrees, or None.
        label: The column with the names of the places; None numbers the places.

    >>> PlacesFile(path="places.csv", x="east", y="north").label is None
    True
    """

    path: Annotated[str, says("the file.")]
    x: Annotated[str | None, says("the column with the first coordinate; goes with `y`.")] = None
    y: Annotated[str | None, says("the column with the second coordinate.")] = None
    latitude: Annotated[
        str | None, says("the column with the latitude in degrees; goes with `longitude`, instead of `x` and `y`.")
    ] = None
    longitude: Annotated[str | None, says("the column with the longitude in degrees.")] = None
    label: Annotated[str | None, says("the column with the names of the places; without it, places are numbered.")] = (
        None
    )


class PlacesByKey(Table, frozen=True):
    """A file with a header and one place per line; check-ins refer to places by a key."""

    path: Annotated[str, says("the file.")]
    key: Annotated[str, says("the column with the key of each place.")]
    latitude: Annotated[str, says("the column with the latitude in degrees.")] = "latitude"
    longitude: Annotated[str, says("the column with the longitude in degrees.")] = "longitude"


class CountsFile(Table, frozen=True):
    """A file with a header and one line per secret.

    Attributes:
        path: The file.
        column: The column with the counts.
        label: The column with the labels of the secrets; False for lines in the order of the secrets.

    >>> CountsFile(path="counts.csv", column="visits").column
    'visits'
    """

    path: Annotated[str, says("the file.")]
    column: Annotated[str, says("the column with the counts.")]
    label: LabelColumn = None


Only = Annotated[str | int | None, says("the only user to include; all users by default.")]
Every = Annotated[
    str | None, says('the length of a step, such as "5 min": traces are resampled to equal steps; needs times.')
]
Gap = Annotated[
    str | None,
    says('the longest time between two observations of one trace, such as "15 min"; three steps by default.'),
]


class Checkins(Table, frozen=True):
    """A file with a header and one check-in per line."""

    path: Annotated[str, says("the file.")]
    user: Annotated[str | bool, says("the column with the user, or false: all rows are one person's.")]
    latitude: Annotated[str, says("the column with the latitude in degrees.")] = "latitude"
    longitude: Annotated[str, says("the column with the longitude in degrees.")] = "longitude"
    time: Annotated[
        str | None, says("the column with the time, by which rows are sorted; else they are in the order of the file.")
    ] = None
    trace: Annotated[str | None, says("the column that identifies the traces of a user.")] = None
    only: Only = None
    place: Annotated[
        str | None,
        says("the column with the key of the place, instead of `latitude` and `longitude`; goes with `places`."),
    ] = None
    places: Annotated[PlacesByKey | None, says("a file of places, to which check-ins refer by the key in `place`.")] = (
        None
    )
    every: Every = None
    gap: Gap = None


class Trajectories(Table, frozen=True):
    """A folder of GeoLife trajectories (.plt), with a folder for each user."""

    path: Annotated[str, says("the folder.")]
    only: Only = None
    every: Every = None
    gap: Gap = None


class MatrixFile(Table, frozen=True):
    """A file with a matrix of numbers.

    Attributes:
        path: The file, whose rows are secrets.
        header: Whether the first line of a CSV contains the names of the columns.
        index: Whether the first column of a CSV contains the names of the rows.

    >>> MatrixFile(path="distances.npy").path
    'distances.npy'
    """

    path: Annotated[str, says("the file: .csv, .npy, or .npz (SciPy sparse, or one array); rows are secrets.")]
    header: Header = None
    index: Index = None


class EdgesFile(Table, frozen=True):
    """A file with a header and one edge per line.

    Attributes:
        path: The file.
        source: The column with one end of each edge, a label or a position.
        target: The column with the other end of each edge.

    >>> EdgesFile(path="edges.csv").source
    'source'
    """

    path: Annotated[str, says("the file.")]
    source: Annotated[str, says("the column with one end of each edge, a label or a position.")] = "source"
    target: Annotated[str, says("the column with the other end of each edge.")] = "target"


class CategoriesFile(Table, frozen=True):
    """A file with a header and one line per secret."""

    path: Annotated[str, says("the file.")]
    column: Annotated[
        str, says("the column with the categories; secrets of the same category are joined, unless it is empty.")
    ]
    label: LabelColumn = None
    region: Annotated[
        str | int | tuple[int, int] | None,
        says(
            "the regions within which secrets of the same category are joined: another column, or the size of blocks "
            "of cells on a grid."
        ),
    ] = None


Edges = Annotated[
    list[tuple[int | str, int | str]] | None,
    says("pairs of secrets: texts are labels, integers are positions, counted from 0."),
]
EdgesCsv = Annotated[EdgesFile | None, says("a file of edges.")]
Members = Annotated[list[int | str], msgspec.Meta(min_length=1)]
"""Secrets by label, a text, or by position, an integer counted from 0."""
Neighbours = Annotated[
    Literal[4, 8] | None, says("4 or 8: each cell of a grid is joined to this number of neighbours.")
]


class GraphTable(Table, frozen=True):
    """A graph on the secrets. The distance between two secrets is the number of edges on a shortest path.

    Attributes:
        edges: Pairs of secrets, as labels or positions, or None.
        edges_csv: A file of edges, or None.
        neighbours: 4 or 8 joins each cell of a grid to this number of neighbours; or None.

    >>> GraphTable(edges=[("a", "b")]).form
    'edges'
    """

    alternatives: ClassVar = ("edges", "edges_csv", "neighbours")

    edges: Edges = None
    edges_csv: EdgesCsv = None
    neighbours: Neighbours = None


class ChainTable(Table, frozen=True):
    """A Markov chain over the states, or the data in which its steps are counted."""

    alternatives: ClassVar = ("path", "paths", "estimated", "checkins", "plt", "neighbours")

    path: Annotated[
        str | None,
        says(
            "a file with the matrix Pr(next state | current state), with a row for each current state; formats are "
            "those of `matrix`."
        ),
    ] = None
    paths: Annotated[
        list[str] | None, says("files with one matrix each, in order of time; `by` gives their period.")
    ] = None
    estimated: Annotated[
        bool | None, says("true: steps are counted in the check-ins or trajectories of the prior.")
    ] = None
    checkins: Annotated[Checkins | None, says("a file of check-ins.")] = None
    plt: Annotated[Trajectories | None, says("a folder of trajectories.")] = None
    neighbours: Annotated[
        Literal[4, 8] | None,
        says(
            "4 or 8: the number of neighbouring cells to which people move; staying and each move are equally likely."
        ),
    ] = None
    smoothing: Annotated[
        float | None, says("the number added to each count of steps; with `estimated`, `checkins` or `plt`.")
    ] = None
    header: Header = None
    index: Index = None
    every: Annotated[
        str | None,
        says(
            'the length of a step of the chain, such as "5 min". Data are resampled to this length before steps are '
            "counted. A trace with times must have steps of the same length."
        ),
    ] = None
    gap: Annotated[
        str | None,
        says('the longest time between two observations of one trace, such as "15 min"; three steps by default.'),
    ] = None
    by: Annotated[
        Literal["hour", "step"] | None,
        says(
            '"hour": one matrix for each hour of the day (UTC), counted in the data or read from 24 files; "step": '
            "one matrix for each step of the trace, read from files."
        ),
    ] = None
    ends: Annotated[
        Literal["any", "stay"] | None,
        says(
            "the row of a state that no trace leaves, for counts without smoothing: "
            '"stay" puts a 1 on the diagonal; with "any" (the default) the row is unknown, which releases reject.'
        ),
    ] = None


class Centre(Table, frozen=True):
    """A centre around which people are normally distributed."""

    x: Annotated[float, says("the first coordinate of the centre, in the unit of the domain.", **_FINITE)]
    y: Annotated[float, says("the second coordinate of the centre.", **_FINITE)]
    spread: Annotated[float, says("the standard deviation in each direction.", **POSITIVE)]
    weight: Annotated[
        float, says("the weight of this centre, relative to the weights of the other centres.", **POSITIVE)
    ] = 1.0


class Simulated(Table, frozen=True):
    """Simulated people around centres. Counts are whole numbers, so the prior is the same on every machine."""

    centres: Annotated[list[Centre], says("the centres around which people live.", min_length=1)]
    people: Annotated[int, says("the number of people.", ge=1, le=10**12)] = 1_000_000
    background: Annotated[float, says("the share of people who are spread evenly over all secrets.", ge=0, le=1)] = 0.0


class VisitsFile(Table, frozen=True):
    """A file with a header and one visit per line, in the columns x and y, or latitude and longitude."""

    path: Annotated[str, says("the file.")]
    latitude: Annotated[str, says("the column with the latitude in degrees.")] = "latitude"
    longitude: Annotated[str, says("the column with the longitude in degrees.")] = "longitude"
    x: Annotated[str, says("the column with the first coordinate, for anchors in a plane.")] = "x"
    y: Annotated[str, says("the column with the second coordinate.")] = "y"
    user: Annotated[
        str | bool | None,
        says("the column with the user, or false: all rows are one person's; required if the file has others."),
    ] = None


class PriorTable(Table, frozen=True):
    """The probability of each secret: uniform, given as probabilities, or counts plus `smoothing`.

    Attributes:
        uniform: Whether all secrets are equally likely, or None.
        probabilities: A probability for each secret, or None.
        counts: A count for each secret, or None.
        csv: A file of counts, or None.
        visits: A file of raw coordinates, or None.
        checkins: A file of check-ins, or None.
        plt: A folder of trajectories, or None.
        simulated: Simulated people, or None.
        smoothing: The number added to each count, or None.

    >>> PriorTable(counts=[3.0, 1.0], smoothing=1.0).form
    'counts'
    """

    alternatives: ClassVar = ("uniform", "probabilities", "counts", "csv", "visits", "checkins", "plt", "simulated")

    uniform: Annotated[bool | None, says("true: all secrets are equally likely.")] = None
    probabilities: Annotated[list[float] | None, says("a probability for each secret; they sum to 1.")] = None
    counts: Annotated[list[float] | None, says("a count for each secret.")] = None
    csv: Annotated[CountsFile | None, says("a file of counts.")] = None
    visits: Annotated[
        VisitsFile | None,
        says("a file of raw coordinates, for a domain of anchors; costs are then computed at the visits."),
    ] = None
    checkins: Annotated[
        Checkins | None,
        says(
            "a file of check-ins, which are counted in the cells of a geographic grid, or used as raw visits with "
            "geographic anchors."
        ),
    ] = None
    plt: Annotated[Trajectories | None, says("a folder of trajectories, which are used like check-ins.")] = None
    simulated: Annotated[Simulated | None, says("simulated people.")] = None
    smoothing: Annotated[
        float | None,
        says("the number added to each count; required if some secrets have no count (0 gives them probability zero)."),
    ] = None
