"""What every table of a specification is, and the tables that name data: files, graphs, chains and priors.

Paths are relative to the folder of the specification. What is said of a key, and the docstring of its table, are the
reference of the grammar: the JSON schema has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from mechdesign.base._errors import InputError

Raw = dict[str, Any]
Distance = Literal["euclidean", "manhattan", "chebyshev", "hamming", "haversine"]


def says(text: str) -> msgspec.Meta:
    """Return the description of a key; it stands in the type, inside ``Annotated``."""
    return msgspec.Meta(description=text)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a specification.

    It has exactly one of the keys `alternatives`, where it names any; `beside` lists those of them that may stand
    beside another one, and then are none: key to other key.
    """

    alternatives: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __post_init__(self) -> None:
        """Raise `InputError` unless exactly one of the alternatives is there."""
        if self.alternatives:
            self.one_of(self.alternatives)

    @property
    def form(self) -> str:
        """Which of the alternatives is there."""
        return self.one_of(self.alternatives)

    def one_of(self, names: Sequence[str]) -> str:
        """Return which of the keys `names` is there; raise `InputError` unless exactly one is."""
        there = [name for name in names if getattr(self, name) is not None]
        given = [name for name in there if self.beside.get(name) not in there]
        if len(given) == 1:
            return given[0]
        problem = "is incomplete" if not given else f"has {' and '.join(given)}, which exclude each other"
        raise InputError("", problem, bound=f"given by exactly one of {', '.join(names)}")


class _Choosing(type):
    """The class of `Either`: an instance of one is an instance of any of its choices."""

    choices: tuple[type, ...] = ()

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.choices)


class Either(metaclass=_Choosing):
    """One of several kinds of value, of which msgspec knows no union: what a value looks like tells them apart."""

    kind_of: ClassVar[Callable[[Any], type]]
    """The function that returns which of the choices a value is to be."""


Delimiter = Annotated[str | None, says("the character between columns; recognised unless given.")]
DecimalSign = Annotated[
    Literal[".", ","] | None, says('the sign before decimals, "." or ","; recognised unless given.')
]
Encoding = Annotated[
    str | None, says('the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.')
]
DateColumn = Annotated[str | None, says("the column with the date, where `time` holds the time of day only.")]
TimeFormat = Annotated[
    str | None,
    says(
        'how times are written, date first: a pattern such as "%Y%m%d", or "unix", "unix-ms", "unix-us" or "unix-ns" '
        "since 1970; needed where digits may be a date, or a day may be a month."
    ),
]
TimeZone = Annotated[
    str | None, says('the zone of times that say none, such as "Europe/Zurich" or "+02:00"; UTC unless given.')
]
Missing = Annotated[float | None, says("the share of rows that may be left out, such as 0.2; 0.05 unless given.")]
Gap = Annotated[
    str | None, says('traces are cut where nothing was seen for longer, such as "15 min"; three steps unless given.')
]


class PlacesFile(Table, frozen=True):
    """A file with a header and a place a line."""

    path: Annotated[str, says("the file.")]
    x: Annotated[str | None, says("the column with the first coordinate, beside `y`.")] = None
    y: Annotated[str | None, says("the column with the second coordinate.")] = None
    latitude: Annotated[
        str | None, says("the column with the latitude in degrees, beside `longitude`, instead of `x` and `y`.")
    ] = None
    longitude: Annotated[str | None, says("the column with the longitude in degrees.")] = None
    label: Annotated[
        str | None, says("the column with the names of the places; they are numbered where there is none.")
    ] = None
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None


class PlacesByKey(Table, frozen=True):
    """A file with a header and a place a line, to which check-ins refer by a key."""

    path: Annotated[str, says("the file.")]
    key: Annotated[str, says("the column with the key.")]
    latitude: Annotated[str, says("the column with the latitude in degrees.")] = "latitude"
    longitude: Annotated[str, says("the column with the longitude in degrees.")] = "longitude"
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None


class CountsFile(Table, frozen=True):
    """A file with a header and a line for each secret."""

    path: Annotated[str, says("the file.")]
    column: Annotated[str, says("the column with the counts.")]
    label: Annotated[
        str | None,
        says(
            'the column with the labels of the secrets, by which lines are matched; "" takes them in order. Unless '
            "it is given a column that holds labels is found, and where there is none lines are taken in order."
        ),
    ] = None
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None


class Checkins(Table, frozen=True):
    """A file with a header and a check-in a line, in order of time."""

    path: Annotated[str, says("the file.")]
    user: Annotated[
        str, says('the column that says who it was; "" where there is none, and all are counted together.')
    ] = "user"
    latitude: Annotated[str, says("the column with the latitude in degrees.")] = "latitude"
    longitude: Annotated[str, says("the column with the longitude in degrees.")] = "longitude"
    time: Annotated[
        str | None, says("the column with the time, by which lines are sorted; lines without one are left out.")
    ] = None
    date: DateColumn = None
    time_format: TimeFormat = None
    time_zone: TimeZone = None
    longitudes: Annotated[
        Literal["180", "360"] | None,
        says('"360" where they go from 0 to 360 degrees, "180" where not; told by the data unless given.'),
    ] = None
    missing: Missing = None
    trace: Annotated[str | None, says("the column that tells the traces of a user apart.")] = None
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None
    only: Annotated[int | str | None, says("the one user to take; everybody unless given.")] = None
    place: Annotated[
        str | None,
        says("the column with the key of the place, instead of `latitude` and `longitude`, beside `places`."),
    ] = None
    places: Annotated[PlacesByKey | None, says("a table of places, joined by their key.")] = None
    every: Annotated[
        str | None, says('traces are brought to even steps of this length, such as "5 min"; needs `time`.')
    ] = None
    gap: Gap = None


class Trajectories(Table, frozen=True):
    """A folder of GeoLife trajectories (.plt)."""

    path: Annotated[str, says("the folder.")]
    only: Annotated[int | str | None, says("the one user to take; everybody unless given.")] = None
    missing: Missing = None
    every: Annotated[str | None, says('traces are brought to even steps of this length, such as "5 min".')] = None
    gap: Gap = None


class MatrixFile(Table, frozen=True):
    """A file of numbers."""

    path: Annotated[str, says("the file, .csv without a header, .npy, or .npz (SciPy sparse); rows are secrets.")]
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None
    header: Annotated[
        bool | None, says("true: the first line names or numbers the columns; asked for where that may be.")
    ] = None
    numbered: Annotated[bool | None, says("true: the first column names or numbers the rows; asked for likewise.")] = (
        None
    )


class EdgesFile(Table, frozen=True):
    """A file with a header and an edge a line."""

    path: Annotated[str, says("the file.")]
    source: Annotated[str, says("the column with one end of each edge, a label or a position.")] = "source"
    target: Annotated[str, says("the column with the other end.")] = "target"
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None


class CategoriesFile(Table, frozen=True):
    """A file with a header and a line for each secret."""

    path: Annotated[str, says("the file.")]
    column: Annotated[
        str, says("the column with the categories; secrets of the same category are joined, those without one are not.")
    ]
    label: Annotated[str | None, says("the column with the labels of the secrets, as for counts.")] = None
    region: Annotated[
        str | int | tuple[int, int] | None,
        says("what keeps equal categories apart: another column, or, on a grid, the size of blocks of cells."),
    ] = None
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None


class BudgetsFile(Table, frozen=True):
    """The ε of successive releases; the specification then describes one problem for each distinct ε.

    The leakage for which budgets were found is that of releases in which ε bounds every pair of secrets: a distance of
    at most 1 (``distance = "hamming"``), a radius that covers all pairs, or a complete graph.
    """

    budgets: Annotated[
        str,
        says(
            "a file with the columns ``step`` and ``epsilon``, as `mechdesign budget -o` writes it; all ε are positive."
        ),
    ]


if TYPE_CHECKING:
    Epsilon = Fraction
else:

    class Epsilon(Either):
        """An exact number, or a file of budgets, of which each is taken in its turn."""

        choices = (Fraction, BudgetsFile)

        @staticmethod
        def kind_of(value: object) -> type:
            return BudgetsFile if isinstance(value, Mapping) else Fraction


Edges = Annotated[
    list[tuple[int | str, int | str]] | None,
    says("pairs of secrets: texts are labels, integers positions from 0 on."),
]
EdgesCsv = Annotated[EdgesFile | None, says("a file of edges.")]
Neighbours = Annotated[int | None, says("4 or 8: each cell of a grid and so many neighbours.")]


class GraphTable(Table, frozen=True):
    """A graph on the secrets, whose shortest paths are a distance: every edge is one step long."""

    alternatives: ClassVar = ("edges", "edges_csv", "neighbours")

    edges: Edges = None
    edges_csv: EdgesCsv = None
    neighbours: Neighbours = None


class ChainTable(Table, frozen=True):
    """How states follow one another: a Markov chain, or the data to count its steps in."""

    alternatives: ClassVar = ("path", "paths", "estimated", "checkins", "plt", "neighbours")

    path: Annotated[
        str | None,
        says(
            "a file with the matrix Pr(next state | state now), as `matrix` elsewhere; rows are states now. The "
            "word stay in place of a row puts a 1 on the diagonal."
        ),
    ] = None
    paths: Annotated[
        list[str] | None, says("files with such matrices, one after the other in time; `by` says of what.")
    ] = None
    estimated: Annotated[bool | None, says("true: from the check-ins or trajectories that the prior comes from.")] = (
        None
    )
    checkins: Annotated[Checkins | None, says("a file of check-ins.")] = None
    plt: Annotated[Trajectories | None, says("a folder of trajectories.")] = None
    neighbours: Annotated[
        int | None, says("4 or 8: stay, or step to one of so many neighbouring cells, all with the same probability.")
    ] = None
    smoothing: Annotated[
        float | None, says("what is added to each count of steps; with `estimated`, `checkins` and `plt`.")
    ] = None
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None
    header: Annotated[bool | None, says("true: the first line of `path` names or numbers its columns.")] = None
    numbered: Annotated[bool | None, says("true: the first column of `path` names or numbers its rows.")] = None
    every: Annotated[
        str | None,
        says(
            'how long a step is, such as "5 min": that of the matrix in `path`, or what data are brought to before '
            "their steps are counted. A trace with times must have the same steps."
        ),
    ] = None
    gap: Annotated[
        str | None, says('data are cut where nothing was seen for longer, such as "15 min"; three steps unless given.')
    ] = None
    by: Annotated[
        Literal["hour", "step"] | None,
        says(
            '"hour": a matrix for each hour of the day (UTC), counted in the data, or from 24 files; "step": a '
            "matrix for each step of the trace, from files."
        ),
    ] = None
    ends: Annotated[
        Literal["stay", "mixture", "any"] | None,
        says(
            'what follows a state that nobody was seen to leave, in data without smoothing: "stay" (a 1 on the '
            'diagonal, unless given), "mixture" (any mixture of the rows that were seen) or "any" (any row). The '
            "last two are for leakage; a release refuses them."
        ),
    ] = None
    border: Annotated[
        Literal["cut", "state"] | None,
        says(
            'what becomes of steps out of the box, in data: "cut" (unless given) leaves them out, "state" leads '
            "them to a further state outside, for leakage."
        ),
    ] = None


class Centre(Table, frozen=True):
    """A normal distribution of people about a point."""

    x: Annotated[float, says("its first coordinate, in the unit of the domain.")]
    y: Annotated[float, says("its second coordinate.")]
    spread: Annotated[float, says("the standard deviation in each direction.")]
    weight: Annotated[float, says("its share of the people, relative to those of the other centres.")] = 1.0


class Simulated(Table, frozen=True):
    """People around centres, in whole numbers: the prior is the same on every machine."""

    centres: Annotated[list[Centre], says("where people are.")]
    people: Annotated[int, says("how many there are.")] = 1_000_000
    background: Annotated[float, says("the share of them that is spread evenly.")] = 0.0


class VisitsFile(Table, frozen=True):
    """A file with a header and a visit a line, in columns x and y, or latitude and longitude."""

    path: Annotated[str, says("the file.")]
    latitude: Annotated[str | None, says("the column with the latitude in degrees, if it is called otherwise.")] = None
    longitude: Annotated[str | None, says("the column with the longitude in degrees, if it is called otherwise.")] = (
        None
    )
    delimiter: Delimiter = None
    decimal: DecimalSign = None
    encoding: Encoding = None
    missing: Missing = None


class PriorTable(Table, frozen=True):
    """How likely each secret is. All but the first two forms are counts, to each of which `smoothing` is added."""

    alternatives: ClassVar = ("uniform", "probabilities", "counts", "csv", "visits", "checkins", "plt", "simulated")

    uniform: Annotated[bool | None, says("true: all secrets are equally likely.")] = None
    probabilities: Annotated[list[float] | None, says("a probability for each secret; they sum to 1.")] = None
    counts: Annotated[list[float] | None, says("a count for each secret.")] = None
    csv: Annotated[CountsFile | None, says("a file of counts.")] = None
    visits: Annotated[
        VisitsFile | None,
        says("a file of raw coordinates, for a domain of anchors; costs are then those of the visits themselves."),
    ] = None
    checkins: Annotated[
        Checkins | None,
        says(
            "a file of check-ins, counted in the cells of a geographic grid; for geographic anchors taken as they are."
        ),
    ] = None
    plt: Annotated[Trajectories | None, says("a folder of trajectories, likewise.")] = None
    simulated: Annotated[Simulated | None, says("simulated people.")] = None
    smoothing: Annotated[
        float | None,
        says("what is added to each count; needed where cells are never visited, and 0 accepts probability zero."),
    ] = None
