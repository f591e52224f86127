"""The points of a sweep: a specification for each combination of listed values, and the folder of each point.

All points are checked before the first design. The folder holds the record of its point, a bundle or a reason of
failure, and the claim of the process at work. A point is claimed by the file ``claim-0``, which names host and process.
A process that takes over a dead claim writes the next number, so that two processes cannot both take it over. The claim
with the largest number counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

import psutil

from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._errors import (
    ExportError,
    InfeasibleError,
    InputError,
    MetricWarning,
    SpecificationError,
    StateError,
)
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.base._warnings import collect_warnings, warn
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import Certificate
from mechdesign.model._grammar import Raw
from mechdesign.model._origin import find_counted_keys
from mechdesign.report._statements import COUNTED
from mechdesign.specification._designs import check_solver
from mechdesign.specification._document import with_value
from mechdesign.specification._origin import exact_value
from mechdesign.specification._read import read_text, tables_of
from mechdesign.specification._specification import Specification, from_tables
from mechdesign.synthesis._bundle import find_design
from mechdesign.synthesis._folders import Wanted

Mode = Literal["product", "zip"]
Value = str | int | float | bool | None

MAX_POINTS = 100_000
"""Maximal number of points of a sweep."""

_TABLE = "sweep"
_DIGITS = 16


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
        """Return the number of points."""
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


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a sweep.

    Attributes:
        values: The value of each swept key, as written.
        specification: The specification with these values.
        name: The name of the folder of the point: the first digits of a SHA-256 of its values.
    """

    values: Mapping[str, Any]
    specification: Specification
    name: str


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

    The effect of the values on the specification is checked by `points`.

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
    >>> len(sweep)
    6
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
            _swept_path(second),
            f"differs in length from {_swept_path(first)}",
            value=lengths[second],
            bound=f"{lengths[first]} values",
            remedy='make them equally long, or write mode = "product"',
        )
    sweep = Sweep(tables, ReadOnlyMapping(table), mode, Path(base_folder).absolute())
    if len(sweep) > MAX_POINTS:
        raise SpecificationError(_TABLE, "has too many points", value=len(sweep), bound=f"at most {MAX_POINTS}")
    for key, values in table.items():
        with_value(tables, key, values[0], _swept_path(key))
    return sweep


def _swept_path(key: str) -> str:
    """Return the path of the values of a key."""
    return f'{_TABLE}."{key}"'


def _check_values(key: str, values: object) -> None:
    where = _swept_path(key)
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
                _swept_path(inner), f"is inside {outer}, which is also swept", remedy="leave one of the two keys out"
            )


def points(spec: Sweep | str | os.PathLike[str]) -> tuple[Point, ...]:
    """Return the points of a sweep, in order: in a product the last key changes fastest.

    Every specification is parsed and its data are read, so that errors appear before any design is made. Data that
    points share are read once. Infeasibility is a result, which the design of the point finds.

    Args:
        spec: A specification with a ``[sweep]`` table: the path of a file, or the result of `parse`.

    Returns:
        The points.

    Raises:
        SpecificationError: If a key has an invalid value, or two points are equal.
        MissingDependencyError: If a solver is not installed.

    Example:
        >>> sweep = parse('''
        ... domain.labels = ["yes", "no"]
        ... prior.uniform = true
        ... cost.distance = "hamming"
        ... privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
        ... sweep = { "privacy.0.epsilon" = [1, 2] }
        ... ''')
        >>> [round(point.specification.design().certificate.cost, 4) for point in points(sweep)]
        [0.2689, 0.1192]
    """
    sweep = spec if isinstance(spec, Sweep) else read(spec)
    combine = itertools.product if sweep.mode == "product" else zip
    found: dict[str, Point] = {}
    for number, combined in enumerate(combine(*sweep.values.values())):
        point = _build_point(sweep, dict(zip(sweep.values, combined, strict=True)))
        if found.setdefault(point.name, point) is not point:
            raise SpecificationError(
                _TABLE,
                f"contains the same design twice, as number {list(found).index(point.name)} and number {number}",
                value={name: cell(value) for name, value in point.values.items()},
                bound="different designs",
                remedy="leave out the repeated values",
            )
    with collect_warnings(MetricWarning) as caught:
        for _, alike in itertools.groupby(sorted(found.values(), key=_describe_data), _describe_data):
            _check_points(sweep, alike)
    for message in dict.fromkeys(map(str, caught)):
        warn(message, MetricWarning, stacklevel=3)
    return tuple(found.values())


def _build_point(sweep: Sweep, values: dict[str, Any]) -> Point:
    tables = sweep.tables
    for key, value in values.items():
        tables = with_value(tables, key, value, _swept_path(key))
    with _locating_errors(sweep, values):
        given = from_tables(tables, sweep.folder)
    return Point(ReadOnlyMapping(values), given, hashlib.sha256(_as_json(values).encode()).hexdigest()[:_DIGITS])


def _describe_data(point: Point) -> str:
    """Return a text that is equal for points that share their data."""
    return _as_json({name: point.specification.tables.get(name) for name in ("domain", "observables", "prior", "cost")})


def _check_points(sweep: Sweep, alike: Iterable[Point]) -> None:
    """Check points that share their data, which are read once; the points keep no data."""
    last: Specification | None = None
    for point in alike:
        given = point.specification
        with _locating_errors(sweep, point.values), contextlib.suppress(InfeasibleError):
            last = given.with_data_of(given if last is None else last)
            check_solver(last.settings.solver, "solver.name")
            last.check()


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=exact_value)


def cell(value: Any) -> Value:
    """Return a value of a specification for a table: numbers and texts unchanged, others as JSON."""
    if isinstance(value, Decimal):
        return float(value) if math.isfinite(value) and Decimal(repr(float(value))) == value else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    return json.dumps(value, ensure_ascii=False, default=cell)


@contextlib.contextmanager
def _locating_errors(sweep: Sweep, values: Mapping[str, Any]) -> Iterator[None]:
    """Give errors of a design the path of the swept value that caused them, or else all swept values."""
    try:
        yield
    except InputError as error:
        dotted = ".".join(map(str, error.keys))
        blamed = next((key for key in values if dotted == key or dotted.startswith(f"{key}.")), None)
        if blamed is not None:
            index = list(sweep.values[blamed]).index(values[blamed])
            path, problem = f"{_swept_path(blamed)}[{index}]", f"{error.path} {error.problem}"
        else:
            where = ", ".join(f"{key} = {cell(value)}" for key, value in values.items())
            path, problem = error.path, f"{error.problem} (with {where})"
        found = SpecificationError(path, problem, value=error.value, bound=error.bound, remedy=error.remedy)
        raise found from error


RESULTS, PAGE = "results.csv", "report.html"
_FAILED = "failed.json"
_CLAIM = re.compile(r"claim-[0-9]+")
_UNNAMED = ".claim-"
_POINT = re.compile(r"[0-9a-f]{16}")
# The clock of a machine may be set between two readings of the time at which a process started.
_SAME_START_S = 60.0


@dataclass(frozen=True)
class Record:
    """The outcome of a point.

    Attributes:
        certificate: The certificate of the design, or None if there is none.
        reason: Why there is no design, or "".
        seconds: The seconds until the failure.
    """

    certificate: Certificate | None = None
    reason: str = ""
    seconds: float | None = None


def read_record(folder: Path, wanted: Wanted) -> Record | None:
    """Return the record in the folder of a point; None if there is none, or an outdated failure.

    Raises `StateError` if the folder holds another design, or one that does not verify.
    """
    if (folder / bundle.CERTIFICATE).exists():
        # The certificate is written last, so no killed process leaves an incomplete bundle with it.
        certificate, why = find_design(folder, wanted)
        if certificate is None:
            raise StateError(f"{folder} holds a design, but {why}. Choose another folder for the sweep, or delete it")
        return Record(certificate)
    try:
        said = json.loads((folder / _FAILED).read_bytes())
        return None if wanted.difference(said) else Record(reason=str(said["reason"]), seconds=float(said["seconds"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def write_design(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the bundle of a point, in place of an older failure."""
    bundle.write(folder, files)
    (folder / _FAILED).unlink(missing_ok=True)


def write_failure(folder: Path, wanted: Wanted, reason: str, seconds: float) -> None:
    """Write why a point has no design."""
    said = {**asdict(wanted), "reason": reason, "seconds": round(seconds, 3)}
    write_file(folder / _FAILED, [json.dumps(said, indent=1, ensure_ascii=False).encode(), b"\n"])


def tidy(folder: Path, retry: bool) -> None:
    """Remove the claims of a process that was killed after it wrote the record."""
    if _list_claims(folder) or any(folder.glob(f"{_UNNAMED}*")):
        with claiming(folder, retry):
            pass


def list_points(folder: Path) -> set[str]:
    """Return the names of the folders of points in the folder of a sweep, each with a slash."""
    return {f"{entry.name}/" for entry in folder.glob("*") if _POINT.fullmatch(entry.name) and entry.is_dir()}


def describe_claim(folder: Path) -> str:
    """Return which process has claimed a point, as a sentence without a full stop."""
    said = next((said for name in reversed(_list_claims(folder)) if (said := _read_claim(folder / name))), {})
    named = f"process {said['process']} of {said['host']}" if {"process", "host"} <= {*said} else "another process"
    return f"{named} makes it; if it has ended, call again with --retry"


@contextlib.contextmanager
def claiming(folder: Path, retry: bool) -> Iterator[bool]:
    """Claim a point for the duration of the context; yield whether this process has it.

    A dead claim of this host is taken over, and with `retry` also a claim of another host.
    """
    try:
        number = _take(folder, retry)
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {error.strerror or error}") from error
    try:
        yield number is not None
    finally:
        if number is not None:
            # A killed process may have left a claim that it had not yet named.
            ours = [name for name in _list_claims(folder) if _number(name) <= number]
            for path in (*folder.glob(f"{_UNNAMED}*"), *(folder / name for name in ours)):
                path.unlink(missing_ok=True)


def _take(folder: Path, retry: bool) -> int | None:
    """Write the next claim on a point, and return its number; None if another process has the point."""
    make_folder(folder)
    names = _list_claims(folder)
    number = _number(names[-1]) + 1 if names else 0
    mine, temporary = folder / f"claim-{number}", folder / f"{_UNNAMED}{secrets.token_hex(4)}"
    said = {"host": socket.gethostname(), "process": os.getpid(), "started": psutil.Process().create_time()}
    if not _are_free(folder, names, retry):
        return None
    try:
        temporary.write_text(json.dumps(said), encoding="utf-8")
        _link(temporary, mine)
    except (FileExistsError, FileNotFoundError):
        # Another process was first, or has finished.
        return None
    finally:
        temporary.unlink(missing_ok=True)
    # Another process may have read the folder before older claims were removed, and have written another number.
    if not _are_free(folder, [name for name in _list_claims(folder) if name != mine.name], retry):
        mine.unlink(missing_ok=True)
        return None
    return number


def _link(temporary: Path, mine: Path) -> None:
    """Give a file a second name, unless another file has it."""
    try:
        # A link appears with its content.
        os.link(temporary, mine)
    except (FileExistsError, FileNotFoundError):
        raise
    except (OSError, NotImplementedError):
        # This file system has no links.
        with mine.open("xb") as file:
            file.write(temporary.read_bytes())


def _are_free(folder: Path, names: Iterable[str], retry: bool) -> bool:
    """Return whether claims may be taken over."""
    return all(said is None or _is_free(said, retry) for said in (_read_claim(folder / name) for name in names))


def _read_claim(path: Path) -> dict[str, Any] | None:
    """Return what a claim says; None if there is no such file, and nothing if the claim cannot be read."""
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _is_free(said: Mapping[str, Any], retry: bool) -> bool:
    if said.get("host") != socket.gethostname():
        return retry
    try:
        process = psutil.Process(int(said["process"]))
        same = abs(process.create_time() - float(said["started"])) < _SAME_START_S
        return not same or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, LookupError, TypeError, ValueError):
        return retry


def _list_claims(folder: Path) -> list[str]:
    """Return the names of the claims on a point, the one that counts last."""
    names: Iterable[str] = os.listdir(folder) if folder.is_dir() else ()
    return sorted((name for name in names if _CLAIM.fullmatch(name)), key=_number)


def _number(name: str) -> int:
    return int(name.partition("-")[2])
