"""The shape of a specification: which keys each table may have, and what an error about one of them says.

A table is converted on its own, with the path at which it stands, so that an error names the key as the reader wrote
it: ``privacy[1].epsilon``. Numbers that a proof rests on (ε, radius, minimum) become exact fractions; all others become
float64, rounded once from the decimal in the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from mechdesign.certify.exact import exact, exact_text, nearest
from mechdesign.errors import InputError, SpecificationError

Raw = dict[str, Any]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a specification."""


class Document(Table, frozen=True):
    """A whole specification."""

    domain: Raw
    prior: Raw
    cost: Raw
    privacy: list[Raw]
    version: int = 1
    title: str = ""
    observables: Raw | None = None
    policy: Raw = {}
    release: Raw = {}
    solver: Raw = {}


class DomainTable(Table, frozen=True):
    """``[domain]`` or ``[observables]``."""

    grid: Raw | None = None
    points: list[list[float]] | None = None
    csv: Raw | None = None
    labels: list[str] | None = None
    line: int | None = None
    unit: str | None = None


class PlaneGrid(Table, frozen=True):
    """``grid`` of a rectangle."""

    columns: int
    rows: int
    width: float
    height: float
    unit: str = "km"


class GeographicGrid(Table, frozen=True):
    """``grid`` of a box in degrees."""

    columns: int
    rows: int
    south: float
    north: float
    west: float
    east: float


class PlacesFile(Table, frozen=True):
    """``csv`` of a domain: a file with a place a line."""

    path: str
    x: str | None = None
    y: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    label: str | None = None
    delimiter: str = ","


class PriorTable(Table, frozen=True):
    """``[prior]``."""

    uniform: bool | None = None
    probabilities: list[float] | None = None
    counts: list[float] | None = None
    csv: Raw | None = None
    checkins: Raw | None = None
    plt: Raw | None = None
    simulated: Raw | None = None
    smoothing: float | None = None


class CountsFile(Table, frozen=True):
    """``csv`` of a prior: a file with a line for each secret, in order."""

    path: str
    column: str
    delimiter: str = ","


class Checkins(Table, frozen=True):
    """``checkins``: the columns of a file with a check-in a line, and one user to take or all."""

    path: str
    user: str = "user"
    latitude: str = "latitude"
    longitude: str = "longitude"
    time: str | None = None
    trace: str | None = None
    delimiter: str = ","
    only: int | str | None = None


class Trajectories(Table, frozen=True):
    """``plt``: a folder of GeoLife trajectories, and one user to take or all."""

    path: str
    only: int | str | None = None


class Simulated(Table, frozen=True):
    """``simulated``: people around centres, and a share of them spread evenly."""

    centres: list[Raw]
    people: int = 1_000_000
    background: float = 0.0


class Centre(Table, frozen=True):
    """A normal distribution of people about (x, y), in the unit of the domain; `weight` is its share."""

    x: float
    y: float
    spread: float
    weight: float = 1.0


class MatrixFile(Table, frozen=True):
    """``matrix``: a file of numbers, .csv without a header or .npy."""

    path: str
    delimiter: str = ","


class EdgesFile(Table, frozen=True):
    """``edges_csv``: a file with an edge a line and a header."""

    path: str
    source: str = "source"
    target: str = "target"
    delimiter: str = ","


class GraphTable(Table, frozen=True):
    """``graph``: a graph on the secrets, every edge one step long."""

    edges: list[tuple[int | str, int | str]] | None = None
    edges_csv: Raw | None = None
    neighbours: int | None = None


class CategoriesFile(Table, frozen=True):
    """``categories``: a file with a line for each secret; the region is a column too, or a block of a grid."""

    path: str
    column: str
    region: str | int | tuple[int, int] | None = None
    delimiter: str = ","


class ChainTable(Table, frozen=True):
    """``transitions`` of a graph and ``transition`` of a release: a Markov chain, or the data to count steps in."""

    path: str | None = None
    estimated: bool | None = None
    checkins: Raw | None = None
    plt: Raw | None = None
    neighbours: int | None = None
    smoothing: float | None = None
    delimiter: str = ","


class CostTable(Table, frozen=True):
    """``[cost]``."""

    distance: str | None = None
    matrix: Raw | None = None
    graph: Raw | None = None
    power: float = 1.0
    scale: float = 1.0
    objective: str = "expected"


class BudgetsFile(Table, frozen=True):
    """``epsilon`` of a schedule: a file with the ε of each release."""

    budgets: str


class PolicyTable(Table, frozen=True):
    """``[policy]``: how a policy graph is to be kept."""

    within: str = "component"
    isolated: str = "refuse"
    repair: str = "area"
    hull: str = "component"
    support: list[int | str] | None = None
    delta: Fraction | None = None


class ReleaseTable(Table, frozen=True):
    """``[release]``: how a trace is to be released."""

    mechanism: str = "planar-isotropic"
    transition: Raw | None = None
    initial: Raw | None = None
    snap: bool | None = None
    seed: int | None = None


class SolverTable(Table, frozen=True):
    """``[solver]``."""

    name: str = "auto"
    tolerance: float = 1e-9
    time_limit: float | None = None
    rows: str = "auto"
    threads: int | None = None
    options: Raw = {}


AnyTable = TypeVar("AnyTable", bound=msgspec.Struct)

_WHERE = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<where>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`")
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`(?P<length> of length \d+)?, got .*", re.DOTALL)
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]")
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "a text",
}


def convert(data: object, kind: type[AnyTable], path: str) -> AnyTable:
    """Return the table `data`, which stands at `path`, as a `kind`; raise `SpecificationError` naming the key."""
    try:
        return msgspec.convert(data, kind, dec_hook=_number)
    except msgspec.ValidationError as error:
        raise _explained(error, data, kind, path) from None


def one_of(table: msgspec.Struct, names: Sequence[str], path: str) -> str:
    """Return which one of the keys `names` is there; raise `SpecificationError` unless it is exactly one."""
    given = [name for name in names if getattr(table, name) is not None]
    if len(given) == 1:
        return given[0]
    problem = "says nothing" if not given else f"has {' and '.join(given)}, which exclude each other"
    raise SpecificationError(path, problem, bound=f"exactly one of {', '.join(names)}")


def choice(value: str, choices: Iterable[str], path: str) -> str:
    """Return `value` if it is one of `choices`; raise `SpecificationError`, with the nearest of them, otherwise."""
    names = list(choices)
    if value in names:
        return value
    raise SpecificationError(
        path, "is not known", value=value, bound=f"one of {', '.join(names)}", remedy=_suggestion(value, names)
    )


@contextmanager
def at(path: str, renamed: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn any `InputError` into a `SpecificationError` about a key at or below `path`.

    Arguments of functions and keys of tables are called alike; `renamed` lists the exceptions: argument to key.
    """
    try:
        yield
    except SpecificationError:
        raise
    except InputError as error:
        argument = re.split(r"[.\[]", error.path, maxsplit=1)[0]
        place = (renamed or {}).get(argument, argument) + error.path[len(argument) :]
        raise SpecificationError(
            join(path, place), error.problem, value=_shown(error.value), bound=error.bound, remedy=error.remedy
        ) from error


@contextmanager
def in_file(path: str) -> Iterator[None]:
    """Turn any `InputError` about the contents of a file into a `SpecificationError` about the table at `path`."""
    try:
        yield
    except SpecificationError:
        raise
    except InputError as error:
        if error.path == "delimiter":
            place, problem = join(path, "delimiter"), error.problem
        elif error.path == "folder" or isinstance(error.__cause__, OSError):
            place, problem = join(path, "path"), error.problem
        else:
            place, problem = path, f"{error.path} {error.problem}"
        value = error.path if isinstance(error.__cause__, OSError) else _shown(error.value)
        raise SpecificationError(place, problem, value=value, bound=error.bound, remedy=error.remedy) from error


def join(path: str, key: str) -> str:
    """Return the path of `key` below `path`."""
    return path + key if not path or not key or key.startswith("[") else f"{path}.{key}"


def _number(kind: type, value: object) -> object:
    if kind is Fraction:
        return exact(value, "")
    # What msgspec expects of a hook that is asked for a type it does not know.
    raise NotImplementedError(kind)


def _explained(
    error: msgspec.ValidationError, data: object, kind: type[msgspec.Struct], path: str
) -> SpecificationError:
    match = _WHERE.fullmatch(str(error))
    what, where = (match["what"], match["where"] or "") if match else (str(error), "")
    place = path + where if path else where.removeprefix(".")
    names = [field.name for field in msgspec.structs.fields(kind)]
    if found := _UNKNOWN.fullmatch(what):
        return SpecificationError(
            join(place, found["key"]),
            "is not a known key",
            bound=f"one of {', '.join(names)}",
            remedy=_suggestion(found["key"], names),
        )
    if found := _MISSING.fullmatch(what):
        return SpecificationError(join(place, found["key"]), "is missing", remedy=f"add {found['key']} = …")
    value = _shown(_inside(data, where))
    if isinstance(error.__cause__, InputError):
        return SpecificationError(place, error.__cause__.problem, value=value, bound=error.__cause__.bound)
    if found := _EXPECTED.fullmatch(what):
        kinds = [_KINDS.get(name, name) for name in found["kinds"].split(" | ") if name != "null"]
        bound = " or ".join(kinds) + (found["length"] or "")
        return SpecificationError(place or "specification", "is of the wrong kind", value=value, bound=bound)
    return SpecificationError(place or "specification", f"is not accepted ({what})", value=value)


def _inside(data: object, where: str) -> object:
    """Return what stands at the path `where` in `data`."""
    for step in _STEP.finditer(where):
        try:
            data = data[step["key"] if step["key"] is not None else int(step["index"])]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _suggestion(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _shown(value: object) -> object:
    """Return a number as the reader wrote it, rather than as Decimal('0.1')."""
    if isinstance(value, Decimal) and value.is_finite():
        value = Fraction(value) if abs(value.adjusted()) < 400 else str(value)
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        near = nearest(value)
        return near if Fraction(repr(near)) == value else exact_text(value)
    if isinstance(value, Decimal):
        return float(value)
    return value
