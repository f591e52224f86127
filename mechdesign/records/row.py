"""A row: what was asked, how it ended, and what came out."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import RecordsError
from mechdesign.records.identity import canonical

__all__ = ["Row", "State", "Value", "read_row", "write_row"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
        identity: What `mechdesign.records.identity` gives for the description.
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
