"""A folder with one file per row, and a table of all rows."""

from __future__ import annotations

import contextlib
import csv
import enum
import hashlib
import importlib.util
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import ExportError, InputError, StateError
from mechdesign.base._locks import why_unlocked
from mechdesign.base._values import ReadOnlyMapping, cached_property
from mechdesign.base._version import __version__
from mechdesign.certify._texts import csv_text, from_cell
from mechdesign.model._words import clip
from mechdesign.runs._identity import canonical, environment, identity

Value = str | int | float | bool | None

_NOT_IN_JSON = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class State(enum.StrEnum):
    """The state in which a run ended, as its row states it; rows in any state but INTERRUPTED are not run again."""

    DONE = "done"
    FAILED = "failed"
    """The run ended with an error, which would occur again."""
    INTERRUPTED = "interrupted"
    """The user stopped the run."""
    CENSORED = "censored"
    """The run met its time or memory limit; its time without the limit is unknown, but longer."""

    @property
    def final(self) -> bool:
        """Whether the row remains unchanged when the folder is resumed."""
        return self is not State.INTERRUPTED


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finished row.

    Attributes:
        identity: SHA-256 of the row's description, from `mechdesign.runs._identity`.
        state: The final state of the run.
        values: The values of the row, by the names of the table's columns. Infinity and NaN are allowed.
        details: Further facts: versions, messages, iterations.

    Example:
        >>> Row("0" * 64, State.DONE, {"cost": 1.5}).state.final
        True
    """

    identity: str
    state: State
    values: dict[str, Any]
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def write_row(path: Path, row: Row, description: Mapping[str, object]) -> None:
    """Write a row with its description atomically; raise `ExportError` if that fails."""
    document = {
        "identity": row.identity,
        "description": canonical(description, "description"),
        "state": row.state,
        "values": {name: _plain(value) for name, value in row.values.items()},
        "details": row.details,
    }
    write_file(path, [msgspec.json.format(msgspec.json.encode(document), indent=1), b"\n"])


def read_row(path: Path) -> Row | None:
    """Return the row in a file, or None if the file is missing; raise `StateError` if the file is not a row."""
    try:
        document = msgspec.json.decode(path.read_bytes())
        document.pop("description")
        row = msgspec.convert(document, Row)
        if row.identity != path.stem:
            raise ValueError("it belongs to another description")
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"{path} is not a valid row ({error}). Delete it, and the row will be run again") from error
    values = {
        name: _NOT_IN_JSON.get(value, value) if isinstance(value, str) else value for name, value in row.values.items()
    }
    return msgspec.structs.replace(row, values=values)


def _plain(value: Value) -> Value:
    """Return a value as JSON: infinity and NaN become texts."""
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


_CSV, _PARQUET = "results.csv", "results.parquet"


def tabulate(rows: Iterable[Row], columns: Sequence[str]) -> list[dict[str, Value]]:
    """Return rows with these columns, None for missing values."""
    return [{column: row.values.get(column) for column in columns} for row in rows]


def write_table(folder: Path, rows: Iterable[Row], columns: Sequence[str]) -> Path:
    """Write ``results.csv``, and with pyarrow also ``results.parquet``, each atomically.

    In CSV a missing value is empty, and floats have all their digits.
    """
    table = tabulate(rows, columns)
    text = csv_text([columns, *([_cell(row[column]) for column in columns] for row in table)])
    write_file(folder / _CSV, [text.encode()])
    if importlib.util.find_spec("pyarrow") is not None:
        write_file(folder / _PARQUET, [_parquet(table, columns)])
    return folder / _CSV


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV table as texts."""
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = ([from_cell(text) for text in row] for row in csv.reader(file))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _parquet(table: Sequence[Mapping[str, Value]], columns: Sequence[str]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    arrays = {column: _unify_types([row[column] for row in table]) for column in columns}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()


def _unify_types(values: list[Any]) -> list[Any]:
    """Return a column of one type: a mix of integers and floats becomes floats, and any other mix becomes texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    make: type = float if kinds == {int, float} else str
    return [None if value is None else make(value) for value in values]


_SCHEMA = "mechdesign.records/1"
_MANIFEST = "manifest.json"
_ENVIRONMENT = "environment.json"
_ROWS, _LOCKS = "rows", ".locks"
_SHARE = "Give its group write access (chmod -R g+w, and umask 002 for both users), or choose another folder"


@dataclass(frozen=True, eq=False)
class Request:
    """The requested contents of a folder.

    Args:
        kind: "bench" or "sweep".
        version: Version of the meaning of rows and columns; folders of another version are rejected.
        about: Summary of the request, which messages show if a folder contains another request.
        descriptions: For each row, in order, everything that its result depends on, in the form that `identity`
            accepts.
        columns: Columns of the table, in order.
    """

    kind: str
    version: int
    about: Mapping[str, object]
    descriptions: Sequence[Mapping[str, object]]
    columns: Sequence[str]
    by_identity: Mapping[str, Mapping[str, object]] = field(init=False)

    def __post_init__(self) -> None:
        if not self.descriptions:
            raise InputError("descriptions", "are empty", bound="at least one row")
        found: dict[str, Mapping[str, object]] = {}
        for index, description in enumerate(self.descriptions):
            if found.setdefault(identity(description), description) is not description:
                raise InputError(f"descriptions[{index}]", "is a duplicate", value=dict(description))
        object.__setattr__(self, "by_identity", ReadOnlyMapping(found))

    @property
    def identities(self) -> tuple[str, ...]:
        """The identities of all rows, in order."""
        return tuple(self.by_identity)

    @cached_property
    def digest(self) -> str:
        """The digest of the request: its rows, in order."""
        return hashlib.sha256("\n".join([self.kind, str(self.version), *self.by_identity]).encode()).hexdigest()


class Store:
    """The rows of a request in a folder.

    Any number of processes may share one folder. `claim` assigns a row to one process; if the process is killed, its
    row is free again immediately.
    """

    def __init__(self, folder: str | os.PathLike[str], request: Request, *, resume: bool = False) -> None:
        """Create a folder for a request, or open the existing folder of the same request.

        Args:
            folder: The folder, which need not exist.
            request: The request.
            resume: Whether the folder may already contain rows.

        Raises:
            StateError: If the folder contains rows of another request or version, or other files.
            ExportError: If the folder cannot be written.
        """
        self.folder = Path(folder)
        self.request = request
        try:
            known = _read_manifest(self.folder)
            if known is None:
                _require_empty(self.folder)
            else:
                _require_same(self.folder, known, request, resume)
            for name in (_ROWS, _LOCKS):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"{self.folder} cannot be used: {error.strerror or error}") from error
        if known is None:
            self._write_json(_MANIFEST, _describe_request(request))
        self._write_json(_ENVIRONMENT, environment())

    def row(self, key: str) -> Row | None:
        """Return the row of an identity, or None; raise `StateError` if its file is damaged."""
        return read_row(self._path(key))

    def rows(self) -> Iterator[Row]:
        """Yield all existing rows, in the order of the request."""
        return (row for row in map(self.row, self.request.identities) if row is not None)

    def missing(self) -> tuple[str, ...]:
        """Return the identities of the rows that must be run, in order: missing or interrupted ones."""
        return tuple(key for key in self.request.identities if not self._is_finished(key))

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Claim a row for this process, for the duration of the context.

        Args:
            key: The key of the row.

        Yields:
            Whether this process may run it: False if another process has claimed or finished it.
        """
        from filelock import FileLock, Timeout

        path = self.folder / _LOCKS / f"{key}.lock"
        lock = FileLock(path, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        except (OSError, NotImplementedError) as error:
            why, remedy = why_unlocked(path, error, _SHARE)
            raise ExportError(f"{path} {why}. {remedy}") from error
        try:
            for left in (self.folder / _ROWS).glob(f".{key}.*"):
                # A killed process left this unfinished file.
                left.unlink(missing_ok=True)
            # Another process may have finished the row before the lock was acquired.
            yield not self._is_finished(key)
        finally:
            if self._is_finished(key):
                # The row is finished: any process that locks a new file of this name detects this.
                path.unlink(missing_ok=True)
            lock.release()

    def write(self, row: Row) -> None:
        """Write a row atomically.

        Args:
            row: A row of the request.

        Raises:
            InputError: If the row is not part of the request.
            ExportError: If the row cannot be written; an older row is unchanged.
        """
        if row.identity not in self.request.by_identity:
            raise InputError("row.identity", "is not in the request", value=row.identity)
        write_row(self._path(row.identity), row, self.request.by_identity[row.identity])

    def tabulate(self) -> Path:
        """Write the table of all rows as CSV, and with pyarrow also as Parquet; return the path of the CSV file."""
        return write_table(self.folder, self.rows(), self.request.columns)

    def _is_finished(self, key: str) -> bool:
        row = self.row(key)
        return row is not None and row.state.final

    def _path(self, key: str) -> Path:
        return self.folder / _ROWS / f"{key}.json"

    def _write_json(self, name: str, document: Mapping[str, object]) -> None:
        write_file(self.folder / name, [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"])


def _describe_request(request: Request) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "kind": request.kind,
        "version": request.version,
        "package": __version__,
        "about": canonical(request.about, "about"),
        "rows": len(request.descriptions),
        "digest": request.digest,
    }


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / _MANIFEST
    try:
        document = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise StateError(f"{path} is not JSON ({error}). Restore a copy, or choose another folder") from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise StateError(f"{path} is not a list of results of this version ({_SCHEMA}). Choose another folder")
    return document


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file. Choose another folder")
    # A run that was killed before its manifest was complete leaves only these folders.
    ours = (_ROWS, _LOCKS)
    others = folder.is_dir() and [
        path.name for path in folder.iterdir() if path.name not in ours and not path.name.endswith(".partial")
    ]
    if others:
        raise StateError(f"{folder} contains other files, such as {min(others)}. Choose another folder")


def _require_same(folder: Path, known: Mapping[str, Any], request: Request, resume: bool) -> None:
    wanted = _describe_request(request)
    for name, meaning in (("kind", "of kind"), ("version", "of version"), ("package", "made by mechdesign")):
        if known.get(name) != wanted[name]:
            raise StateError(
                f"{folder} contains results {meaning} {known.get(name)}, not {wanted[name]}. Choose another folder"
            )
    if known.get("digest") != wanted["digest"]:
        then, now = known.get("about"), wanted["about"]
        changed = (
            [
                f"{name} was {_write_value(then.get(name))} and is now {_write_value(now.get(name))}"
                for name in {**then, **now}
                if then.get(name) != now.get(name)
            ]
            if isinstance(then, dict)
            else []
        )
        why = "; ".join(changed) or "its rows differ, although their descriptions agree"
        raise StateError(f"{folder} contains the results of another request: {why}. Choose another folder")
    if not resume:
        raise StateError(f"{folder} already contains results of this request. Resume it, or choose another folder")


def _write_value(value: object) -> str:
    """Return a value as JSON in at most 100 characters."""
    return clip(json.dumps(value, ensure_ascii=False), 100)
