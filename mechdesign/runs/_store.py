"""A folder of rows, and one table of them."""

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
from filelock import FileLock, Timeout

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import ExportError, InputError, RecordsError
from mechdesign.base._locks import why_unlocked
from mechdesign.base._values import ReadOnlyMapping, cached_property
from mechdesign.base._version import __version__
from mechdesign.certify._texts import csv_text, from_cell
from mechdesign.runs._identity import canonical, environment, identity

Value = str | int | float | bool | None

_NOT_IN_JSON = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class State(enum.StrEnum):
    """How a row ended. All but INTERRUPTED are final: they are not run again."""

    DONE = "done"
    FAILED = "failed"
    """It ended with an error, which would come again."""
    INTERRUPTED = "interrupted"
    """The user stopped it."""
    CENSORED = "censored"
    """It met its limit of time or memory: what it would have taken is only known to be more."""

    @property
    def final(self) -> bool:
        """Whether the row stays as it is when the rest is resumed."""
        return self is not State.INTERRUPTED


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finished row.

    Attributes:
        identity: What `mechdesign.runs._identity` gives for the description.
        state: How it ended.
        values: Its columns in the table. Infinity and NaN are allowed.
        details: Whatever else is worth keeping: versions, messages, iterations.
    """

    identity: str
    state: State
    values: dict[str, Any]
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def write_row(path: Path, row: Row, description: Mapping[str, object]) -> None:
    """Write a row with its description, whole or not at all; raise `ExportError` when that fails."""
    document = {
        "identity": row.identity,
        "description": canonical(description, "description"),
        "state": row.state,
        "values": {name: _plain(value) for name, value in row.values.items()},
        "details": row.details,
    }
    write_file(path, [msgspec.json.format(msgspec.json.encode(document), indent=1), b"\n"])


def read_row(path: Path) -> Row | None:
    """Return the row in a file, or None when there is none; raise `RecordsError` for a file that is no row."""
    try:
        document = msgspec.json.decode(path.read_bytes())
        document.pop("description")
        row = msgspec.convert(document, Row)
        if row.identity != path.stem:
            raise ValueError("it is the row of another description")
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordsError(f"{path} is no row ({error}). Delete it, and the row will be run again") from error
    values = {
        name: _NOT_IN_JSON.get(value, value) if isinstance(value, str) else value for name, value in row.values.items()
    }
    return msgspec.structs.replace(row, values=values)


def _plain(value: Value) -> Value:
    """Return what stands for a value in JSON: infinity and NaN are texts there."""
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


_CSV, _PARQUET = "results.csv", "results.parquet"


def tabulate(rows: Iterable[Row], columns: Sequence[str]) -> list[dict[str, Value]]:
    """Return rows with these columns, None where a row has no value."""
    return [{column: row.values.get(column) for column in columns} for row in rows]


def write_table(folder: Path, rows: Iterable[Row], columns: Sequence[str]) -> Path:
    """Write ``results.csv``, and ``results.parquet`` where pyarrow is installed, each whole or not at all.

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

    arrays = {column: _same_kind([row[column] for row in table]) for column in columns}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()


def _same_kind(values: list[Any]) -> list[Any]:
    """Return a column of one type: where whole numbers meet others they are floats, and else texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    make: type = float if kinds == {int, float} else str
    return [None if value is None else make(value) for value in values]


_SCHEMA = "mechdesign.records/1"
_MANIFEST = "manifest.json"
_ENVIRONMENT = "environment.json"
_ROWS, _LOCKS = "rows", ".locks"
_SHARE = "Let its group write there (chmod -R g+w, and umask 002 for both users), or choose another folder"


@dataclass(frozen=True, eq=False)
class Request:
    """What a folder is for.

    Args:
        kind: "bench" or "sweep".
        version: Of the meaning of its rows and columns: a folder of another version is refused.
        about: What was asked for, in few words for people: shown when a folder holds something else.
        descriptions: One for each row, in order: all that its result depends on, as `identity` takes it.
        columns: Those of the table, in order.
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
                raise InputError(f"descriptions[{index}]", "was asked for before", value=dict(description))
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

    Any number of processes may work on one folder: `claim` gives a row to one of them, and what a process held when
    it was killed is free again at once.
    """

    def __init__(self, folder: str | os.PathLike[str], request: Request, *, resume: bool = False) -> None:
        """Make a folder for a request, or take up one that was made for the same.

        Args:
            folder: The folder, which need not exist.
            request: What it is for.
            resume: Whether it may hold rows already.

        Raises:
            RecordsError: The folder holds something else: rows of another request or version, or other files.
            ExportError: It cannot be written.
        """
        self.folder = Path(folder)
        self.request = request
        try:
            known = _manifest(self.folder)
            if known is None:
                _require_empty(self.folder)
            else:
                _require_same(self.folder, known, request, resume)
            for name in (_ROWS, _LOCKS):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"{self.folder} cannot be used: {error.strerror or error}") from error
        if known is None:
            self._write_json(_MANIFEST, _described(request))
        self._write_json(_ENVIRONMENT, environment())

    def row(self, key: str) -> Row | None:
        """Return the row of an identity, or None; raise `RecordsError` when its file is damaged."""
        return read_row(self._path(key))

    def rows(self) -> Iterator[Row]:
        """Yield all rows there are, in the order asked for."""
        return (row for row in map(self.row, self.request.identities) if row is not None)

    def missing(self) -> tuple[str, ...]:
        """Return the identities, in order, of the rows that are still to be run: none yet, or interrupted."""
        return tuple(key for key in self.request.identities if not self._finished(key))

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Take a row for this process, for as long as the context lasts.

        Yields:
            Whether it is ours to run: False when another process has it, or has finished it.
        """
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
                # What whoever held the row was writing when it was killed.
                left.unlink(missing_ok=True)
            # It may have been finished between the look and the lock.
            yield not self._finished(key)
        finally:
            if self._finished(key):
                # Whoever locks the file from now on finds the row finished, whichever file it locks.
                path.unlink(missing_ok=True)
            lock.release()

    def write(self, row: Row) -> None:
        """Write a row: it is there as a whole or not at all.

        Raises:
            InputError: The row is not of this request.
            ExportError: It cannot be written; an older one is as it was.
        """
        if row.identity not in self.request.by_identity:
            raise InputError("row.identity", "was not asked for", value=row.identity)
        write_row(self._path(row.identity), row, self.request.by_identity[row.identity])

    def tabulate(self) -> Path:
        """Write the table of all rows there are, as CSV and, where pyarrow is installed, Parquet; return the first."""
        return write_table(self.folder, self.rows(), self.request.columns)

    def _finished(self, key: str) -> bool:
        row = self.row(key)
        return row is not None and row.state.final

    def _path(self, key: str) -> Path:
        return self.folder / _ROWS / f"{key}.json"

    def _write_json(self, name: str, document: Mapping[str, object]) -> None:
        write_file(self.folder / name, [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"])


def _described(request: Request) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "kind": request.kind,
        "version": request.version,
        "package": __version__,
        "about": canonical(request.about, "about"),
        "rows": len(request.descriptions),
        "digest": request.digest,
    }


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / _MANIFEST
    try:
        document = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise RecordsError(f"{path} is not JSON ({error}). Restore a copy, or choose another folder") from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise RecordsError(f"{path} is not a list of results of this version ({_SCHEMA}). Choose another folder")
    return document


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RecordsError(f"{folder} is a file. Choose another folder")
    # What a run leaves that was killed before its manifest was whole.
    ours = (_ROWS, _LOCKS)
    others = folder.is_dir() and [
        path.name for path in folder.iterdir() if path.name not in ours and not path.name.endswith(".partial")
    ]
    if others:
        raise RecordsError(f"{folder} holds other files, such as {min(others)}. Choose another folder")


def _require_same(folder: Path, known: Mapping[str, Any], request: Request, resume: bool) -> None:
    wanted = _described(request)
    for name, meaning in (("kind", "of kind"), ("version", "of version"), ("package", "made by mechdesign")):
        if known.get(name) != wanted[name]:
            raise RecordsError(
                f"{folder} holds results {meaning} {known.get(name)}, not {wanted[name]}. Choose another folder"
            )
    if known.get("digest") != wanted["digest"]:
        then, now = known.get("about"), wanted["about"]
        changed = (
            [
                f"{name} was {_short(then.get(name))} and is now {_short(now.get(name))}"
                for name in {**then, **now}
                if then.get(name) != now.get(name)
            ]
            if isinstance(then, dict)
            else []
        )
        why = "; ".join(changed) or "its rows are not the same, although they are called the same"
        raise RecordsError(f"{folder} holds the results of another request: {why}. Choose another folder")
    if not resume:
        raise RecordsError(f"{folder} holds results of this request already. Resume it, or choose another folder")


def _short(value: object, limit: int = 100) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"
