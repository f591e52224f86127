"""Read a release back from its files."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from mechdesign.blowfish.cumulative import CumulativeRelease
from mechdesign.blowfish.definitions import definition_of_version_1
from mechdesign.blowfish.kmeans_release import ClusteringRelease
from mechdesign.blowfish.release import ANSWERS
from mechdesign.blowfish.release import HEADER
from mechdesign.blowfish.release import VERSION
from mechdesign.blowfish.release import Column
from mechdesign.blowfish.release import Description
from mechdesign.blowfish.release import Header
from mechdesign.blowfish.release import Release
from mechdesign.certify._exact import exact
from mechdesign.certify._texts import from_cell
from mechdesign.base._errors import InputError
from mechdesign.base._errors import UnsoundWarning
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_path
from mechdesign.base._warnings import warn

__all__ = ["load"]


def __dir__() -> list[str]:
    return sorted(__all__)


R = TypeVar("R", bound=Release)

_KINDS: dict[str, type[Release]] = {kind.kind: kind for kind in (Release, CumulativeRelease, ClusteringRelease)}


def load(directory: str | os.PathLike[str]) -> Release:
    """Read what `Release.save` wrote, as the kind of release that it was.

    Releases of file version 1 open as well. Those under publicly known counts, unless their policy joins any two
    values, have noise for too few neighbours. They are called unsound: by a warning, `Description.unsound` and the
    report.

    Raises:
        InputError: a file is missing, damaged, or of another version.

    Warns:
        UnsoundWarning: the release protects less than its policy says.
    """
    directory = as_path(directory, "directory")
    folder = Path(directory)
    try:
        header = msgspec.json.decode((folder / HEADER).read_bytes(), type=Header)
        rows = (folder / ANSWERS).read_bytes()
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise _damaged(folder, str(error)) from error
    if header.version not in (1, VERSION):
        raise _damaged(folder, f"version {header.version}, and this program reads versions 1 and {VERSION}")
    if (header.definition is None) != (header.version == 1):
        raise _damaged(folder, f"version {header.version} names {'a' if header.definition else 'no'} definition")
    if hashlib.sha256(rows).hexdigest() != header.answers_sha256:
        raise _damaged(folder, f"{ANSWERS} is not the file that {HEADER} describes")
    if header.kind not in _KINDS:
        raise _damaged(folder, f"the kind {header.kind!r} is unknown")
    try:
        found = _built(_KINDS[header.kind], header, rows)
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(folder, str(error)) from error
    if found.description.unsound:
        warn(f"{folder}: {found.description.definition}", UnsoundWarning, stacklevel=2)
    return found


def _built(kind: type[R], header: Header, rows: bytes) -> R:
    names, columns = _table(rows.decode())
    # Labels come first, whatever they are called in the file.
    first = len(header.labels)
    labels = {
        name: _labels(column, form) for (name, form), column in zip(header.labels.items(), columns[:first], strict=True)
    }
    numbers = {name: _numbers(column) for name, column in zip(names[first:], columns[first:], strict=True)}
    if any(len(column) != header.queries for column in numbers.values()):
        raise ValueError(f"{ANSWERS} does not hold {header.queries} rows")
    description = Description(
        what=header.what,
        policy=header.policy,
        neighbours=header.neighbours,
        definition=header.definition or definition_of_version_1(header.neighbours, header.policy),
        mechanism=header.mechanism,
        epsilon=None if header.epsilon is None else exact(header.epsilon),
        rho=None if header.rho is None else exact(header.rho),
        step=exact(header.step),
        confidence=exact(header.confidence),
        rehearsal=header.rehearsal,
        remarks=tuple(header.remarks),
        entry=header.entry,
    )
    return kind.restored({"description": description, "labels": labels, **numbers}, header.parameters)


def _table(text: str) -> tuple[list[str], list[Sequence[str]]]:
    """Return the names of the columns of a CSV file, and the columns."""
    if '"' in text:
        names, *rows = csv.reader(io.StringIO(text, newline=""))
        return list(map(from_cell, names)), [*zip(*rows, strict=True)]
    names = list(map(from_cell, text[: text.index("\n")].split(",")))
    # All cells at once: a list per row takes ten times as long.
    cells = text.removesuffix("\n").replace("\n", ",").split(",")
    return names, [cells[len(names) + place :: len(names)] for place in range(len(names))]


def _numbers(column: Sequence[str]) -> Floats:
    # Far faster than to have NumPy read texts.
    return np.array(msgspec.json.decode(f"[{','.join(column)}]", type=list[float]), dtype=np.float64)


def _labels(column: Sequence[str], form: str) -> Column:
    if form == "text":
        return np.array(list(map(from_cell, column)), dtype=np.str_)
    numbers = _numbers(column)
    whole = numbers.astype(np.int64)
    return whole if (whole == numbers).all() else numbers


def _damaged(folder: Path, problem: str) -> InputError:
    return InputError(
        str(folder), f"holds no release that can be read ({problem})", bound="a folder that a release was saved in"
    )
