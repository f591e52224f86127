"""Plan of a sweep; its designs before any is solved."""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any, Literal, get_args

from mechdesign.base._errors import InfeasibleError, InputError, MetricWarning, SpecificationError
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.base._version import __version__
from mechdesign.base._warnings import collect_warnings, warn
from mechdesign.certify._exact import exact, exact_text
from mechdesign.data._text import file_digest
from mechdesign.model._grammar import Raw
from mechdesign.model._origin import find_counted_keys
from mechdesign.model._requirements._kind import RequirementKind
from mechdesign.model._requirements._kinds import KINDS, look_for_kinds
from mechdesign.report._private import COUNTED
from mechdesign.runs._identity import identity
from mechdesign.runs._store import Request, Value
from mechdesign.solve import _registry as registry
from mechdesign.specification._designs import check_solver
from mechdesign.specification._grammar import check_key, files, with_value
from mechdesign.specification._read import read_text, tables_of
from mechdesign.specification._specification import Specification, from_tables

Mode = Literal["product", "zip"]

MOST_ROWS = 100_000
"""Most designs of a sweep."""

_TABLE = "sweep"


@dataclass(frozen=True, eq=False)
class Sweep:
    """A specification, and lists of values for some of its keys.

    Attributes:
        tables: The specification, as it was written, without the lists.
        values: The path of each key, such as ``privacy.0.epsilon``, with its values, as they were written.
        mode: "product", each value with each, or "zip", the first values together, the second ones, and so on.
        folder: What file names are relative to.
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
        """What the specification is called."""
        return str(self.tables.get("title", ""))

    @property
    def private(self) -> str:
        """What the folder tells of data, as a sentence without a full stop; empty where nothing was counted."""
        return COUNTED if any(not key.endswith("counts") for key in find_counted_keys(self.tables)) else ""

    def points(self) -> Iterator[Mapping[str, Any]]:
        """Yield the values of the keys for each design; in a product those of the last key change first."""
        combine = itertools.product if self.mode == "product" else zip
        return (dict(zip(self.values, point, strict=True)) for point in combine(*self.values.values()))

    def tables_at(self, point: Mapping[str, Any]) -> Raw:
        """Return the tables of one design."""
        tables = self.tables
        for key, value in point.items():
            tables = with_value(tables, key, value, place(key))
        return tables


def read(path: str | os.PathLike[str]) -> Sweep:
    """Read a specification with a ``[sweep]`` table from a file; see `parse`."""
    return _parsed(read_text(path), Path(path).parent, os.fspath(path))


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> Sweep:
    """Read a specification with a ``[sweep]`` table from a text; names of files in it are relative to `base_folder`.

    Raises:
        SpecificationError: The text is no TOML; or in ``[sweep]`` a path is not known to the grammar, a list is empty,
            or lists that go together differ in length. What the values do to the specification is looked at by `run`.

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
    return _parsed(text, base_folder)


def _parsed(text: str, base_folder: str | os.PathLike[str], source: str = "specification") -> Sweep:
    tables = tables_of(text, source)
    table = tables.pop(_TABLE, None)
    if not isinstance(table, dict) or not set(table) - {"mode"}:
        raise SpecificationError(
            _TABLE,
            "is missing" if table is None else "names no key",
            value=table,
            bound="a table with a list of values for at least one key",
            remedy='add [sweep] with "privacy.0.epsilon" = [0.5, 1, 2], say',
        )
    _look_for_kinds(tables, table)
    mode = table.pop("mode", "product")
    if mode not in get_args(Mode):
        raise SpecificationError(f"{_TABLE}.mode", "is not known", value=mode, bound='"product" or "zip"')
    for key, values in table.items():
        _check_values(key, values)
    _check_apart(list(table))
    lengths = {key: len(values) for key, values in table.items()}
    if mode == "zip" and len(set(lengths.values())) > 1:
        first, second = next((a, b) for a, b in itertools.pairwise(lengths) if lengths[a] != lengths[b])
        raise SpecificationError(
            place(second),
            f"differs in length from {place(first)}",
            value=lengths[second],
            bound=f"{lengths[first]} values",
            remedy='make them equally long, or write mode = "product"',
        )
    sweep = Sweep(tables, ReadOnlyMapping(table), mode, Path(base_folder))
    if len(sweep) > MOST_ROWS:
        raise SpecificationError(_TABLE, "asks for too many designs", value=len(sweep), bound=f"at most {MOST_ROWS}")
    for key, values in table.items():
        with_value(tables, key, values[0], place(key))
    return sweep


def _look_for_kinds(tables: Raw, swept: Mapping[str, Any]) -> None:
    """Let kinds of other packages be loaded, where they are to be: their keys are then known."""
    look_for_kinds(tables.get("privacy"))
    for key, values in swept.items():
        if key.endswith(".kind") and isinstance(values, list):
            look_for_kinds([{"kind": name} for name in values])


def place(key: str) -> str:
    """Return where the values of a key stand."""
    return f'{_TABLE}."{key}"'


def _check_values(key: str, values: object) -> None:
    where = place(key)
    if isinstance(values, dict):
        raise SpecificationError(
            f"{_TABLE}.{key}", "is a table", bound="a list of values", remedy="write the whole path in quotes"
        )
    check_key(key, where)
    if not isinstance(values, list):
        shown = float(values) if isinstance(values, Decimal) else values
        raise SpecificationError(where, "is no list", value=shown, bound="a list of values", remedy="write it in [ ]")
    if not values:
        raise SpecificationError(where, "is empty", bound="at least one value")


def _check_apart(keys: Sequence[str]) -> None:
    """Refuse two keys of which one is a part of the other."""
    for outer, inner in itertools.permutations(keys, 2):
        if inner.startswith(f"{outer}."):
            raise SpecificationError(
                place(inner), f"is a part of {outer}, which is swept, too", remedy="leave one of them out"
            )


_KIND, _VERSION = "sweep", 1
# What cvxpy may solve with; it does not say beforehand which.
_BELOW_CVXPY = ("clarabel", "ecos", "osqp", "scs")
_AFTER = ("solver", "solve_seconds", "iterations", "message", "channel")


@dataclass(frozen=True)
class Task:
    """A design to be made, wherever it is.

    Attributes:
        key: The identity of its row.
        tables: Its specification.
        folder: What file names in it are relative to.
        data: The SHA-256 of each file, or folder, of data that it names.
        versions: Those of the packages that its result depends on.
        kinds: The kinds of requirement of other packages that it states, which a worker is to know.
        columns: What its row says of it beforehand: the values of the swept keys, and where the channel goes.
    """

    key: str
    tables: Raw
    folder: Path
    data: Mapping[str, str]
    versions: Mapping[str, str]
    kinds: tuple[type[RequirementKind], ...]
    columns: Mapping[str, Value]


def prepare(sweep: Sweep) -> tuple[Request, dict[str, Task]]:
    """Return what the folder of a sweep is for, and the tasks by the identities of their rows, in order.

    Every specification is parsed and its data are read, so that what is wrong shows before anything is solved; data
    that designs have in common are read once.

    Raises:
        SpecificationError: A key has a wrong value, or two designs are the same.
        MissingDependencyError: A solver is not installed.
    """
    points = list(sweep.points())
    tables = [sweep.tables_at(point) for point in points]
    _look(sweep, points, tables)
    digests = {
        name: file_digest(sweep.folder / name) for name in dict.fromkeys(name for t in tables for name in files(t))
    }
    descriptions = []
    kinds = [_own_kinds(table) for table in tables]
    for table, own in zip(tables, kinds, strict=True):
        solver = str(table.get("solver", {}).get("name", "auto"))
        data = {name: digests[name] for name in files(table)}
        descriptions.append(
            {"specification": _exact(table), "data": data, "solver": solver, "versions": versions_for(solver, own)}
        )
    keys = _identities(points, descriptions)
    request = Request(_KIND, _VERSION, _about(sweep, descriptions), descriptions, _columns(sweep, tables))
    width = len(str(len(points) - 1))
    return request, {
        key: Task(
            key,
            tables[number],
            sweep.folder.absolute(),
            descriptions[number]["data"],
            descriptions[number]["versions"],
            kinds[number],
            {name: cell(value) for name, value in points[number].items()} | {"channel": f"channels/{number:0{width}}"},
        )
        for number, key in enumerate(keys)
    }


def _own_kinds(tables: Raw) -> tuple[type[RequirementKind], ...]:
    """Return the kinds of requirement of other packages that a specification states."""
    found = (KINDS[raw["kind"]] for raw in tables["privacy"] if raw["kind"] in KINDS)
    return tuple(dict.fromkeys(kind for kind in found if kind.__module__.partition(".")[0] != "mechdesign"))


def versions_for(solver: str, kinds: Iterable[type[RequirementKind]] = ()) -> dict[str, str]:
    """Return the versions of the packages that the result of a solver, and kinds of other packages, depend on."""
    found = {"mechdesign": __version__}
    packages = ["numpy", "scipy", "highspy"]
    if solver != "auto":
        package = registry.find(solver).package
        packages += [package, *(_BELOW_CVXPY if package == "cvxpy" else ())]
    packages += [package for kind in kinds for package in _packages_of(kind.__module__)]
    for package in packages:
        number = installed(package)
        if number is not None:
            found.setdefault(package, number)
    return found


@functools.cache
def _packages_of(module: str) -> tuple[str, ...]:
    """Return the packages that a module was installed with; none where it is a file of the user's."""
    return tuple(packages_distributions().get(module.partition(".")[0], ()))


@functools.cache
def installed(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def cell(value: Any) -> Value:
    """Return a value of a specification as a table shows it: numbers and texts as they are, others as JSON."""
    if isinstance(value, Decimal | Fraction):
        near = float(value)
        if math.isfinite(near) and Fraction(repr(near)) == Fraction(value):
            return int(value) if isinstance(value, Fraction) and value.denominator == 1 else near
        return exact_text(value) if isinstance(value, Fraction) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    return json.dumps(value, ensure_ascii=False, default=cell)


def _identities(points: list[Mapping[str, Any]], descriptions: list[dict[str, Any]]) -> list[str]:
    """Return the identity of each design; raise `SpecificationError` where two are the same."""
    known: dict[str, int] = {}
    for number, described in enumerate(descriptions):
        first = known.setdefault(identity(described), number)
        if first != number:
            raise SpecificationError(
                "sweep",
                f"asks for the same design twice, as number {first} and number {number}",
                value={name: cell(value) for name, value in points[number].items()},
                bound="different designs",
                remedy="leave out the values that are repeated",
            )
    return list(known)


def _look(sweep: Sweep, points: list[Mapping[str, Any]], tables: list[Raw]) -> None:
    """Raise the error of the first wrong design found; say warnings of the data once."""
    groups: dict[str, list[int]] = {}
    for number, table in enumerate(tables):
        shared = {name: _exact(table.get(name)) for name in ("domain", "observables", "prior", "cost")}
        groups.setdefault(json.dumps(shared, sort_keys=True, default=str), []).append(number)
    with collect_warnings(MetricWarning) as caught:
        for members in groups.values():
            like: Specification | None = None
            for number in members:
                like = _looked_at(sweep, points[number], tables[number], like)
    for message in dict.fromkeys(map(str, caught)):
        warn(message, MetricWarning, stacklevel=4)


def _looked_at(sweep: Sweep, point: Mapping[str, Any], tables: Raw, like: Specification | None) -> Specification:
    """Return the specification of a design, whose data are those of `like`, after a look at everything in it."""
    try:
        given = from_tables(tables, sweep.folder)
        if like is not None:
            given = given.with_data_of(like)
        check_solver(given.settings.solver, "solver.name")
        given.problem()
        given.policy_settings  # noqa: B018 - reading it checks it
    except InfeasibleError:
        # A result like others: the row will say so.
        pass
    except InputError as error:
        raise _placed(error, sweep, point) from error
    return given


def _placed(error: InputError, sweep: Sweep, point: Mapping[str, Any]) -> SpecificationError:
    """Return an error about a design as one about the value that was swept, where it is one, or naming the values."""
    remedy = error.remedy
    dotted = ".".join(map(str, error.keys))
    blamed = next((key for key in point if dotted == key or dotted.startswith(f"{key}.")), None)
    if blamed is not None:
        index = list(sweep.values[blamed]).index(point[blamed])
        problem = f"{error.path} {error.problem}"
        return SpecificationError(
            f"{place(blamed)}[{index}]", problem, value=error.value, bound=error.bound, remedy=remedy
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
        *numbered("tight_epsilon", max(pairs, 1)), *numbered("distortion", floors), "revealed", *_AFTER,
    ]  # fmt: skip


def numbered(name: str, count: int) -> list[str]:
    """Return the columns for as many requirements: the name, then the name with 2, with 3 and so on."""
    return [name if number == 1 else f"{name}_{number}" for number in range(1, count + 1)]


def _about(sweep: Sweep, descriptions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what was asked for, key by key, so that what has changed can be named."""
    about = dict(_leaves(_exact({**sweep.tables, "sweep": {**sweep.values, "mode": sweep.mode}})))
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


def _exact(value: Any) -> Any:
    """Return tables with all numbers exact, so that 1, 1.0 and 1e0 are the same."""
    if isinstance(value, dict):
        return {key: _exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_exact(inner) for inner in value]
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        try:
            return exact(value)
        except InputError:
            # Infinite, or beyond all bounds.
            return str(value)
    return value
