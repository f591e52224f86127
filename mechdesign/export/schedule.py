"""Write the designs of a schedule: a folder with a certified set for each ε, and ``schedule.csv``, which says when.

``schedule.csv`` has a line for each release: ``step`` (from 0), ``epsilon`` (the exact decimal) and ``folder``. A
release that is left out has the ε 0 and no folder. The file is written last, as a whole, and an older one is removed
first: where it stands, all folders that it names are complete and of one run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from mechdesign.base._atomic import write_file
from mechdesign.certify._exact import exact_text
from mechdesign.data._budgets import Schedule
from mechdesign.base._errors import ExportError
from mechdesign.export.files import check_folder
from mechdesign.export.files import check_target
from mechdesign.model._problem import Origin

__all__ = ["SCHEDULE", "check_schedule_target", "folder_name", "save_designs", "unused_folders"]

SCHEDULE = "schedule.csv"

_PREFIX = "epsilon-"


AnyDesign = TypeVar("AnyDesign")


def save_designs(
    directory: str | os.PathLike[str],
    schedule: Schedule,
    designs: Iterable[tuple[Fraction, AnyDesign]],
    *,
    save: Callable[[AnyDesign, Path], None],
    force: bool = False,
) -> Iterator[tuple[Fraction, AnyDesign]]:
    """Write each design when it is made, and the schedule last; yield each ε with its design when it is written.

    Args:
        directory: A folder; an older schedule in it goes when the first design of the new one is written.
        schedule: Which release uses which ε.
        designs: The distinct ε in their order, with their designs; such as `mechdesign.spec.specification.Specification.designs`.
        save: Writes a design into a folder, with its page or without.
        force: Write into a folder that holds other files, beside them.

    Raises:
        ExportError: The files may not, or cannot, be written; before the first design is asked for, where possible.
    """
    check_schedule_target(directory, schedule, force)
    for number, (epsilon, design) in enumerate(designs):
        if not number:
            _remove_schedule(directory)
        save(design, Path(directory) / folder_name(epsilon))
        yield epsilon, design
    _write_schedule(directory, schedule)


def folder_name(epsilon: Fraction) -> str:
    """Return the name of the folder for one ε, such as ``epsilon-0.1``."""
    return f"{_PREFIX}{exact_text(epsilon)}"


def check_schedule_target(
    directory: str | os.PathLike[str],
    schedule: Schedule,
    force: bool = False,
    overwrite: bool = True,
    origin: Origin | None = None,
) -> None:
    """Raise `ExportError` unless the designs of a schedule may and can be written into `directory`.

    They may when the folder does not exist or is empty, or when it holds only such designs, without `overwrite` those
    of the same origin; with `force` also beside anything else.
    """
    folder = Path(directory)
    check_folder(folder, _is_ours, "a schedule of designs", force)
    for epsilon in schedule.distinct:
        check_target(folder / folder_name(epsilon), force, overwrite, origin)


def _remove_schedule(directory: str | os.PathLike[str]) -> None:
    """Remove an older ``schedule.csv`` before its folders are replaced; raise `ExportError` when that fails."""
    path = Path(directory) / SCHEDULE
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ExportError(f"{path} cannot be replaced: {error.strerror or error}") from error


def _write_schedule(directory: str | os.PathLike[str], schedule: Schedule) -> None:
    """Write ``schedule.csv``, when all folders are there; raise `ExportError` when that fails."""
    lines = ["step,epsilon,folder"]
    for step, epsilon in enumerate(schedule.epsilons):
        lines.append(f"{step},{exact_text(epsilon)},{folder_name(epsilon) if epsilon else ''}")
    write_file(Path(directory) / SCHEDULE, ["".join(f"{line}\n" for line in lines).encode()])


def unused_folders(directory: str | os.PathLike[str], schedule: Schedule) -> list[str]:
    """Return the names of folders for other ε, of an earlier schedule."""
    used = {folder_name(epsilon) for epsilon in schedule.distinct}
    names = (entry.name for entry in Path(directory).iterdir() if entry.is_dir())
    return sorted(name for name in names if name.startswith(_PREFIX) and name not in used)


def _is_ours(entry: Path) -> bool:
    if entry.is_dir():
        return entry.name.startswith(_PREFIX)
    return entry.name == SCHEDULE or (entry.name.startswith(f".{SCHEDULE}.") and entry.name.endswith(".partial"))
