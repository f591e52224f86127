"""What is published of a release: its answers and what was read from them, as values and as files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.base._atomic import write_file
from mechdesign.blowfish.cumulative import CumulativeRelease
from mechdesign.blowfish.published import NamedQuantile
from mechdesign.blowfish.published import NamedRange
from mechdesign.blowfish.published import Published
from mechdesign.blowfish.ranges import quantile_numbers
from mechdesign.blowfish.ranges import range_query
from mechdesign.blowfish.release import HEADER
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.base._errors import ExportError
from mechdesign.base._errors import InputError
from mechdesign.base._errors import ReportError
from mechdesign.synthesis._folders import NO_FILES
from mechdesign.synthesis._folders import Files
from mechdesign.synthesis._folders import check_folder
from mechdesign.synthesis._folders import further_files
from mechdesign.synthesis._folders import refusal_of_second
from mechdesign.base._check import as_path

if TYPE_CHECKING:
    from mechdesign.blowfish.domain import Domain

__all__ = ["FILES", "Publication", "check_target", "holds_release", "named_quantiles", "named_ranges"]


def __dir__() -> list[str]:
    return sorted(__all__)


_RANGES, _QUANTILES, _REPORT = "ranges.csv", "quantiles.csv", "report.html"
_OWN = ("answers.csv", HEADER, _RANGES, _QUANTILES)
FILES = (*_OWN, _REPORT)


@dataclass(frozen=True, eq=False)
class Publication(Published):
    """A release with what was read from it, as files; attributes are those of `Published`."""

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        files: Files[Publication] = NO_FILES,
        force: bool = False,
        overwrite: bool = True,
        **unknown: object,
    ) -> None:
        """Write ``ranges.csv`` or ``quantiles.csv``, ``answers.csv``, ``release.json`` and, last, the further `files`.

        The answers are complete with ``release.json``. Further files come after them: whatever happens to these, the
        answers stand. `md.report.save` writes the page, too.

        Args:
            folder: a folder; it is made where there is none.
            files: further files by name, or a function that returns them for this release. It is called when the
                answers are written.
            force: write into a folder that holds other files, beside them.
            overwrite: replace a release that stands there; a rehearsal is always replaced. Both releases add up.

        Raises:
            ExportError: the files may not, or cannot, be written.
            InputError: a name in `files` is taken or no plain file name, or a content is not bytes.
            ReportError: the answers are written, and a further file cannot be made or written.
        """
        for name in unknown:
            raise InputError(
                name,
                "is no argument of Publication.save",
                bound="files, force or overwrite",
                remedy="a release with its page is written by md.report.save(release, folder)",
            )
        target = as_path(folder, "folder")
        further = further_files(files, _OWN)
        check_target(target, force, overwrite)
        texts = {}
        if self.ranges:
            heads = ("first", "last", "answer", "standard_error", "low", "high")
            texts[_RANGES] = csv_text([heads, *map(_range_row, self.ranges)])
        if self.quantiles:
            rows = [(exact_text(each.probability), each.value, each.low, each.high) for each in self.quantiles]
            texts[_QUANTILES] = csv_text([("probability", "value", "low", "high"), *rows])
        try:
            target.mkdir(parents=True, exist_ok=True)
            # What an older release has left must not stand beside this one: release.json vouches for all others.
            for name in (HEADER, _REPORT, _RANGES, _QUANTILES):
                (target / name).unlink(missing_ok=True)
        except OSError as error:
            raise ExportError(f"{target} cannot be written: {error.strerror or error}") from error
        for name, text in texts.items():
            write_file(target / name, [text.encode()])
        self.release.save(target)
        try:
            for name, content in further(self).items():
                write_file(target / name, [content])
        except Exception as error:
            described = self.release.description
            raise ReportError(
                f"the answers are in {target}, and complete. {described.is_spent}: do not release them again. "
                f"Only further files, such as a page, are missing ({error})"
            ) from error


def check_target(directory: Path, force: bool = False, overwrite: bool = True) -> None:
    """Raise `ExportError` unless a publication may and can be written into a folder.

    It may when the folder does not exist or is empty, or holds a rehearsal; with `overwrite` also when it holds any
    release, whole or interrupted.
    """

    def ours(entry: Path) -> bool:
        # What a killed run leaves is called `.NAME.????????.partial`.
        name = entry.name
        whole = name[1:].rsplit(".", 2)[0] if name.endswith(".partial") else name
        return whole in FILES and not entry.is_dir()

    check_folder(directory, ours, "a release", force)
    if not overwrite and holds_release(directory):
        raise refusal_of_second(directory, "a release")


def holds_release(directory: Path) -> bool:
    """Whether a folder holds a release, whole or not, that was no rehearsal."""
    answers = any((directory / file).is_file() for file in FILES if file != _REPORT)
    return answers and not _is_rehearsal(directory)


def _is_rehearsal(directory: Path) -> bool:
    try:
        document = json.loads((directory / HEADER).read_bytes())
    except (OSError, ValueError, RecursionError):
        # An unfinished run, whose answers somebody may have seen.
        return False
    return isinstance(document, dict) and document.get("rehearsal") is True


def named_ranges(
    release: CumulativeRelease, domain: Domain, ranges: Sequence[tuple[int, int]]
) -> tuple[NamedRange, ...]:
    """Return ranges of numbers of values, read from a release, with the names of the values."""
    values = domain.attributes[0].values
    return tuple(
        NamedRange(str(values[low]), str(values[high]), range_query(release, positions=(low, high)))
        for low, high in ranges
    )


def named_quantiles(
    release: CumulativeRelease, domain: Domain, probabilities: Sequence[Fraction]
) -> tuple[NamedQuantile, ...]:
    """Return quantiles, read from a release, with the names of the values."""
    values = domain.attributes[0].values
    found = ((share, quantile_numbers(release, share)) for share in probabilities)
    return tuple(
        NamedQuantile(share, *(str(values[number]) for number in (value, low, high)))
        for share, (low, value, high) in found
    )


def _range_row(named: NamedRange) -> tuple[object, ...]:
    estimate = named.estimate
    return (named.first, named.last, *map(repr, (estimate.value, estimate.standard_error, estimate.low, estimate.high)))
