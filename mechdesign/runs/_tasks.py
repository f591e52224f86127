"""Designs of a sweep: its values, and its tasks, which are all checked before the first task is solved."""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, get_args

from mechdesign.base._errors import InfeasibleError, InputError, MetricWarning, SpecificationError
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.base._version import __version__
from mechdesign.base._warnings import collect_warnings, warn
from mechdesign.certify._exact import exact, exact_text
from mechdesign.model._grammar import Raw
from mechdesign.model._origin import find_counted_keys
from mechdesign.report._private import COUNTED
from mechdesign.runs._identity import identity
from mechdesign.runs._store import Request, Value
from mechdesign.solve import _registry as registry
from mechdesign.specification._designs import check_solver
from mechdesign.specification._grammar import files, with_value
from mechdesign.specification._origin import file_digest
from mechdesign.specification._read import read_text, tables_of
from mechdesign.specification._specification import Specification, from_tables

Mode = Literal["product", "zip"]

MAX_ROWS = 100_000
"""Maximal number of designs of a sweep."""

_TABLE = "sweep"


@dataclass(frozen=True, eq=False)
class Sweep:
    """A specification, and lists of values for some of its keys.

    Attributes:
        tables: The specification as written, without the lists.
        values: Values for the path of each key, such as ``privacy.0.epsilon``, as written.
        mode: "product" for all combinations, or "zip" for the first values together, the second ones, and so on.
        folder: Folder that file names are relative to.

    Example:
        >>> sweep = Sweep({"title": "Test"}, {"privacy.0.epsilon": [1, 2]}, "product", Path("."))
        >>> len(sweep), sweep.title
        (2, 'Test')
    """

    tables: Raw
    values: Mapping[str, Sequence[Any]]
    mode: Mode
    folder: Path

    def __len__(self) -> int:
        """Return the number of designs."""
        sizes = [len(values) for values in self.values.values()]
        return math.prod(sizes) if self.mode == "product" else sizes[0]

    @property
    def title(self) -> str:
        """The title of the specification."""
        return str(self.tables.get("title", ""))

    @property
    def private(self) -> str:
        """A warning, without a full stop, that folders with a counted prior are private; "" for other priors."""
        return COUNTED if any(not key.endswith("counts") for key in find_counted_keys(self.tables)) else ""

    def points(self) -> Iterator[Mapping[str, Any]]:
        """Yield the values of the keys for each design; in a product the last key changes fastest."""
        combine = itertools.product if self.mode == "product" else zip
        return (dict(zip(self.values, point, strict=True)) for point in combine(*self.values.values()))

    def tables_at(self, point: Mapping[str, Any]) -> Raw:
        """Return the tables of one design.

        Args:
            point: A value for each swept key.

        Returns:
            The tables of its specification.
        """
        tables = self.tables
        for key, value in point.items():
            tables = with_value(tables, key, value, swept_path(key))
        return tables


def read(path: str | os.PathLike[str]) -> Sweep:
    r"""Read a specification with a ``[sweep]`` table from a file; see `parse`.

    Args:
        path: Path of a TOML file. File names in the specification are relative to the folder of the file.

    Returns:
        The sweep.

    Raises:
        SpecificationError: If the file is not a valid sweep.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "sweep.toml"
        >>> _ = file.write_text('privacy = [{ epsilon = 1 }]\nsweep = { "privacy.0.epsilon" = [0.5, 1] }')
        >>> len(read(file))
        2
    """
    return _parse(read_text(path), Path(path).parent, os.fspath(path))


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> Sweep:
    """Read a specification with a ``[sweep]`` table from a text.

    The effect of the values on the specification is checked by `run`.

    Args:
        text: A specification in TOML.
        base_folder: Folder that file names in the text are relative to.

    Returns:
        The sweep.

    Raises:
        SpecificationError: If the text is not valid TOML, or a path of ``[sweep]`` leads through a value, or its lists
            are empty, or of different lengths in mode "zip".

    >>> sweep = parse('''
    ... domain.labels = ["yes", "no"]
    ... prior.uniform = true
    ... cost.distance = "hamming"
    ... privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
    ... sweep = { "privacy.0.epsilon" = [0.5, 1, 2], "cost.power" = [1, 2] }
    ... ''')
    >>> len(sweep), list(sweep.points())[1]
    (6, {'privacy.0.epsilon': Decimal('0.5'), 'cost.power': 2})
    """
    return _parse(text, base_folder)


def _parse(text: str, base_folder: str | os.PathLike[str], source: str = "specification") -> Sweep:
    tables = tables_of(text, source)
    table = tables.pop(_TABLE, None)
    if not isinstance(table, dict) or not set(table) - {"mode"}:
        raise SpecificationError(
            _TABLE,
            "is missing" if table is None else "has no key to sweep",
            value=table,
            bound="a table with a list of values for at least one key",
            remedy='add [sweep] with a list such as "privacy.0.epsilon" = [0.5, 1, 2]',
        )
    mode = table.pop("mode", "product")
    if mode not in get_args(Mode):
        raise SpecificationError(f"{_TABLE}.mode", "is not known", value=mode, bound='"product" or "zip"')
    for key, values in table.items():
        _check_values(key, values)
    _check_not_nested(list(table))
    lengths = {key: len(values) for key, values in table.items()}
    if mode == "zip" and len(set(lengths.values())) > 1:
        first, second = next((a, b) for a, b in itertools.pairwise(lengths) if lengths[a] != lengths[b])
        raise SpecificationError(
            swept_path(second),
            f"differs in length from {swept_path(first)}",
            value=lengths[second],
            bound=f"{lengths[first]} values",
            remedy='make them equally long, or write mode = "product"',
        )
    sweep = Sweep(tables, ReadOnlyMapping(table), mode, Path(base_folder))
    if len(sweep) > MAX_ROWS:
        raise SpecificationError(_TABLE, "has too many designs", value=len(sweep), bound=f"at most {MAX_ROWS}")
    for key, values in table.items():
        with_value(tables, key, values[0], swept_path(key))
    return sweep


def swept_path(key: str) -> str:
    """Return the path of the values of a key."""
    return f'{_TABLE}."{key}"'


def _check_values(key: str, values: object) -> None:
    where = swept_path(key)
    if isinstance(values, dict):
        raise SpecificationError(
            f"{_TABLE}.{key}", "is a table", bound="a list of values", remedy="write the whole path in quotes"
        )
    if not isinstance(values, list):
        shown = float(values) if isinstance(values, Decimal) else values
        raise SpecificationError(
            where, "is not a list", value=shown, bound="a list of values", remedy="write it in [ ]"
        )
    if not values:
        raise SpecificationError(where, "is empty", bound="at least one value")


def _check_not_nested(keys: Sequence[str]) -> None:
    """Raise `SpecificationError` if one swept key is inside another."""
    for outer, inner in itertools.permutations(keys, 2):
        if inner.startswith(f"{outer}."):
            raise SpecificationError(
                swept_path(inner), f"is inside {outer}, which is also swept", remedy="leave one of the two keys out"
            )


_KIND, _VERSION = "sweep", 1
# Solvers that cvxpy may choose; cvxpy does not announce its choice.
_CVXPY_SOLVERS = ("clarabel", "ecos", "osqp", "scs")
_LAST_COLUMNS = ("solver", "solve_seconds", "iterations", "message", "channel")


@dataclass(frozen=True)
class Task:
    """A design to be solved, in any process.

    Attributes:
        key: The identity of its row.
        tables: Its specification.
        folder: Folder that file names in the specification are relative to.
        data: The SHA-256 of each data file or folder.
        versions: Versions of the packages that the result depends on.
        columns: The known columns of its row: the values of the swept keys, and the folder of the channel.
    """

    key: str
    tables: Raw
    folder: Path
    data: Mapping[str, str]
    versions: Mapping[str, str]
    columns: Mapping[str, Value]


def prepare(sweep: Sweep) -> tuple[Request, dict[str, Task]]:
    """Return the request for the folder of a sweep, and the tasks by the identities of their rows, in order.

    Every specification is parsed and its data are read, so that errors appear before any design is solved. Shared data
    are read once.

    Args:
        sweep: The sweep.

    Returns:
        The request, and the task of each row.

    Raises:
        SpecificationError: If a key has an invalid value, or two designs are equal.
        MissingDependencyError: If a solver is not installed.
    """
    points = list(sweep.points())
    tables = [sweep.tables_at(point) for point in points]
    _check_designs(sweep, points, tables)
    digests = {
        name: file_digest(sweep.folder / name) for name in dict.fromkeys(name for t in tables for name in files(t))
    }
    descriptions = []
    for table in tables:
        solver = str(table.get("solver", {}).get("name", "auto"))
        data = {name: digests[name] for name in files(table)}
        descriptions.append(
            {"specification": _make_exact(table), "data": data, "solver": solver, "versions": versions_for(solver)}
        )
    keys = _identities(points, descriptions)
    request = Request(_KIND, _VERSION, _summarise_request(sweep, descriptions), descriptions, _columns(sweep, tables))
    width = len(str(len(points) - 1))
    return request, {
        key: Task(
            key,
            tables[number],
            sweep.folder.absolute(),
            descriptions[number]["data"],
            descriptions[number]["versions"],
            {name: cell(value) for name, value in points[number].items()} | {"channel": f"channels/{number:0{width}}"},
        )
        for number, key in enumerate(keys)
    }


def versions_for(solver: str) -> dict[str, str]:
    """Return the versions of all packages that affect the results of a solver."""
    found = {"mechdesign": __version__}
    packages = ["numpy", "scipy", "highspy"]
    if solver != "auto":
        package = registry.find(solver).package
        packages += [package, *(_CVXPY_SOLVERS if package == "cvxpy" else ())]
    for package in packages:
        number = find_version(package)
        if number is not None:
            found.setdefault(package, number)
    return found


@functools.cache
def find_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def cell(value: Any) -> Value:
    """Return a value of a specification for a table: numbers and texts unchanged, others as JSON."""
    if isinstance(value, Decimal | Fraction):
        near = float(value)
        if math.isfinite(near) and Fraction(repr(near)) == Fraction(value):
            return int(value) if isinstance(value, Fraction) and value.denominator == 1 else near
        return exact_text(value) if isinstance(value, Fraction) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    return json.dumps(value, ensure_ascii=False, default=cell)


def _identities(points: list[Mapping[str, Any]], descriptions: list[dict[str, Any]]) -> list[str]:
    """Return the identity of each design; raise `SpecificationError` if two are equal."""
    known: dict[str, int] = {}
    for number, described in enumerate(descriptions):
        first = known.setdefault(identity(described), number)
        if first != number:
            raise SpecificationError(
                "sweep",
                f"contains the same design twice, as number {first} and number {number}",
                value={name: cell(value) for name, value in points[number].items()},
                bound="different designs",
                remedy="leave out the repeated values",
            )
    return list(known)


def _check_designs(sweep: Sweep, points: list[Mapping[str, Any]], tables: list[Raw]) -> None:
    """Raise the error of the first invalid design; repeat each warning about the data once."""
    groups: dict[str, list[int]] = {}
    for number, table in enumerate(tables):
        shared = {name: _make_exact(table.get(name)) for name in ("domain", "observables", "prior", "cost")}
        groups.setdefault(json.dumps(shared, sort_keys=True, default=str), []).append(number)
    with collect_warnings(MetricWarning) as caught:
        for members in groups.values():
            like: Specification | None = None
            for number in members:
                like = _check_design(sweep, points[number], tables[number], like)
    for message in dict.fromkeys(map(str, caught)):
        warn(message, MetricWarning, stacklevel=4)


def _check_design(sweep: Sweep, point: Mapping[str, Any], tables: Raw, like: Specification | None) -> Specification:
    """Check the specification of a design, and return it; `like` is a specification with the same data, if any."""
    try:
        given = from_tables(tables, sweep.folder)
        if like is not None:
            given = given.with_data_of(like)
        check_solver(given.settings.solver, "solver.name")
        given.problem()
        given.policy_settings  # noqa: B018 - reading it checks it
    except InfeasibleError:
        # Infeasibility is a result, which the row reports.
        pass
    except InputError as error:
        raise _locate_error(error, sweep, point) from error
    return given


def _locate_error(error: InputError, sweep: Sweep, point: Mapping[str, Any]) -> SpecificationError:
    """Return an error of a design with the path of the swept value that caused it, or else with all swept values."""
    remedy = error.remedy
    dotted = ".".join(map(str, error.keys))
    blamed = next((key for key in point if dotted == key or dotted.startswith(f"{key}.")), None)
    if blamed is not None:
        index = list(sweep.values[blamed]).index(point[blamed])
        problem = f"{error.path} {error.problem}"
        return SpecificationError(
            f"{swept_path(blamed)}[{index}]", problem, value=error.value, bound=error.bound, remedy=remedy
        )
    where = ", ".join(f"{key} = {cell(value)}" for key, value in point.items())
    return SpecificationError(
        error.path, f"{error.problem} (with {where})", value=error.value, bound=error.bound, remedy=remedy
    )


def _columns(sweep: Sweep, tables: list[Raw]) -> list[str]:
    kinds = [[entry.get("kind") for entry in table["privacy"]] for table in tables]
    floors = max(found.count("distortion") for found in kinds)
    pairs = max(len(found) - found.count("distortion") for found in kinds)
    return [
        *sweep.values, "status", "cost", "lower_bound", "relative_gap",
        *number_columns("tight_epsilon", max(pairs, 1)), *number_columns("distortion", floors),
        "revealed", *_LAST_COLUMNS,
    ]  # fmt: skip


def number_columns(name: str, count: int) -> list[str]:
    """Return `count` column names: the name, then the name with the suffix _2, _3 and so on."""
    return [name if number == 1 else f"{name}_{number}" for number in range(1, count + 1)]


def _summarise_request(sweep: Sweep, descriptions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the request key by key, so that messages can name changes."""
    about = dict(_leaves(_make_exact({**sweep.tables, "sweep": {**sweep.values, "mode": sweep.mode}})))
    for described in descriptions:
        about |= {f"contents of {name}": digest[:12] for name, digest in described["data"].items()}
        about |= {f"version of {name}": number for name, number in described["versions"].items()}
    return about


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, [cell(each) for each in value] if isinstance(value, list) else cell(value)


def _make_exact(value: Any) -> Any:
    """Return tables with all numbers exact, so that 1, 1.0 and 1e0 are equal."""
    if isinstance(value, dict):
        return {key: _make_exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_make_exact(inner) for inner in value]
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        try:
            return exact(value)
        except InputError:
            # The number is infinite or too large.
            return str(value)
    return value
