"""Save a release as files, and load it."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._atomic import replacing, write_file
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError, ReportError
from mechdesign.base._files import read_regular
from mechdesign.certify._exact import exact, exact_text
from mechdesign.certify._texts import csv_text, from_cell
from mechdesign.synthesis._folders import ADD_UP, NO_FILES, Files, check_folder, prepare_files, read_object
from mechdesign.tables._queries._cumulative_release import CumulativeRelease, NamedQuantile, NamedRange
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import ANSWERS, HEADER, VERSION, Column, Description, Header, Release, write_answers

R = TypeVar("R", bound=Release)

_KINDS: dict[str, type[Release]] = {each.kind: each for each in (Release, CumulativeRelease, ClusteringRelease)}


def load(folder: str | os.PathLike[str]) -> Release:
    """Load a release that `mechdesign.save` wrote, as an object of its original class.

    Args:
        folder: the folder in which the release was saved.

    Returns:
        The release.

    Raises:
        InputError: A file is missing, damaged, or of an unknown version.

    >>> import tempfile
    >>> import mechdesign as md
    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> release = Histogram().release([0, 1, 1], Policy.full(Domain({"floor": range(3)})), epsilon=1, rng=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(release, folder, report=False)
    ...     (load(folder).answers == release.answers).all()
    np.True_
    """
    folder = Path(as_path(folder, "folder"))
    try:
        header = msgspec.json.decode(read_regular(folder / HEADER), type=Header)
        rows = read_regular(folder / ANSWERS)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise _make_damage_error(folder, str(error)) from error
    if header.version != VERSION:
        raise _make_damage_error(folder, f"version {header.version}, and this program reads version {VERSION}")
    if hashlib.sha256(rows).hexdigest() != header.answers_sha256:
        raise _make_damage_error(folder, f"{ANSWERS} is not the file that {HEADER} describes")
    if header.kind not in _KINDS:
        raise _make_damage_error(folder, f"the kind {header.kind!r} is unknown")
    try:
        return _build(_KINDS[header.kind], header, rows)
    except (ValueError, TypeError, KeyError) as error:
        raise _make_damage_error(folder, str(error)) from error


def _build(kind: type[R], header: Header, rows: bytes) -> R:
    names, columns = _table(rows.decode())
    # The first columns are always the labels, because a label may have the same name as a later column.
    first = len(header.labels)
    labels = {
        name: _labels(column, form) for (name, form), column in zip(header.labels.items(), columns[:first], strict=True)
    }
    numbers = {name: _numbers(column) for name, column in zip(names[first:], columns[first:], strict=True)}
    if any(len(column) != header.queries for column in numbers.values()):
        raise ValueError(f"{ANSWERS} does not have {header.queries} rows")
    described = {each.name: getattr(header, each.name) for each in fields(Description)}
    for name in ("epsilon", "rho", "step", "confidence"):
        described[name] = None if described[name] is None else exact(described[name])
    description = Description(**described)
    if header.spent_per_person != description.spent_per_person:
        raise ValueError(f"{HEADER} does not state the cost of {header.rows_per_person} rows")
    return kind.restored({"description": description, "labels": labels, **numbers}, header.parameters)


def _table(text: str) -> tuple[list[str], list[Sequence[str]]]:
    """Return the names of the columns of a CSV file, and the columns."""
    if '"' in text:
        names, *rows = csv.reader(io.StringIO(text, newline=""))
        return list(map(from_cell, names)), [*zip(*rows, strict=True)]
    names = list(map(from_cell, text[: text.index("\n")].split(",")))
    # All cells are split at once, because splitting each row separately takes ten times as long.
    cells = text.removesuffix("\n").replace("\n", ",").split(",")
    return names, [cells[len(names) + place :: len(names)] for place in range(len(names))]


def _numbers(column: Sequence[str]) -> Floats:
    # The JSON parser is much faster than NumPy at parsing strings.
    return np.array(msgspec.json.decode(f"[{','.join(column)}]", type=list[float]), dtype=np.float64)


def _labels(column: Sequence[str], form: str) -> Column:
    if form == "text":
        return np.array(list(map(from_cell, column)), dtype=np.str_)
    numbers = _numbers(column)
    whole = numbers.astype(np.int64)
    return whole if (whole == numbers).all() else numbers


def _make_damage_error(folder: Path, problem: str) -> InputError:
    return InputError(
        str(folder), f"does not contain a readable release ({problem})", bound="a folder in which a release was saved"
    )


@dataclass(frozen=True, eq=False)
class Published:
    """A release with its title and the estimates derived from it, which depend on the data only through its answers.

    Attributes:
        release: the answers, the budget spent, and the policy.
        title: the title of the report.
        ranges: ranges that were estimated from a cumulative histogram.
        quantiles: quantiles that were estimated from a cumulative histogram.

    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> release = Histogram().release([0, 1, 1], Policy.full(Domain({"floor": range(3)})), epsilon=1, rng=1)
    >>> Published(release, "Floors").ranges
    ()
    """

    release: Release
    title: str = ""
    ranges: tuple[NamedRange, ...] = ()
    quantiles: tuple[NamedQuantile, ...] = ()


_RANGES, _QUANTILES, _REPORT = "ranges.csv", "quantiles.csv", "report.html"
_RANGES_HEADS, _QUANTILES_HEADS = (
    ("first", "last", "answer", "standard_error", "low", "high"),
    ("probability", "value", "low", "high"),
)
_OWN = {
    ANSWERS: ".*answers,standard_errors,low,high[,\n]",
    HEADER: r'\{\s*"version": \d+,\s*"kind": ',
    _RANGES: ",".join(_RANGES_HEADS),
    _QUANTILES: ",".join(_QUANTILES_HEADS),
}
"""The files of a release without its page, each with a pattern of its beginning."""
FILES = (*_OWN, _REPORT)


def write_release(
    published: Published,
    folder: Path,
    *,
    files: Files[Published] = NO_FILES,
    overwrite: bool = True,
) -> None:
    """Write ``ranges.csv`` or ``quantiles.csv``, ``answers.csv``, ``release.json`` and, last, any further `files`.

    The answers are complete as soon as ``release.json`` is written, even if writing a further file then fails.

    Args:
        published: the release, with what was read from it.
        folder: the folder to write; it is created if necessary.
        files: further files by name, or a function that returns them for this release. The function is called after
            the answers are written.
        overwrite: whether to replace a release in the folder; a rehearsal is always replaced. Replacing a release
            does not refund its budget.

    Raises:
        ExportError: writing into the folder is not permitted, or it fails.
        InputError: a name in `files` is already used or is not a plain file name, or a file's content is not bytes.
        ReportError: the answers are written, but a further file could not be computed or written.
    """
    further = prepare_files(files, _OWN)
    check_target(folder, overwrite)
    texts = {}
    if published.ranges:
        texts[_RANGES] = csv_text([_RANGES_HEADS, *map(_range_row, published.ranges)])
    if published.quantiles:
        rows = [(exact_text(each.probability), each.value, each.low, each.high) for each in published.quantiles]
        texts[_QUANTILES] = csv_text([_QUANTILES_HEADS, *rows])
    # release.json certifies all files in the folder, so it is the first that is emptied.
    with replacing(folder, (HEADER, _REPORT, _RANGES, _QUANTILES)):
        for name, text in texts.items():
            write_file(folder / name, [text.encode()])
        write_answers(published.release, folder)
        try:
            for name, content in further(published).items():
                write_file(folder / name, [content])
        except Exception as error:
            described = published.release.description
            raise ReportError(
                f"the answers are in {folder}, and complete. {described.is_spent}: do not release them again. "
                f"Only further files, such as a page, are missing ({error})"
            ) from error


def check_target(folder: Path, overwrite: bool = True) -> None:
    """Raise `ExportError` unless writing a publication into a folder is possible and permitted.

    Writing is permitted if the folder does not exist, is empty or contains a rehearsal. With `overwrite` the folder may
    also contain a complete or interrupted release.
    """
    held = "" if overwrite or not holds_release(folder) else f"a release, and {ADD_UP}"
    check_folder(folder, FILES, "a release", first=_OWN, held=held)


def holds_release(folder: Path) -> bool:
    """Return whether a folder contains a complete or incomplete release other than a rehearsal."""
    rehearsed = read_object(folder / HEADER).get("rehearsal") is True
    return any((folder / file).is_file() for file in _OWN) and not rehearsed


def _range_row(named: NamedRange) -> tuple[object, ...]:
    estimate = named.estimate
    return (named.first, named.last, *map(repr, (estimate.value, estimate.standard_error, estimate.low, estimate.high)))
