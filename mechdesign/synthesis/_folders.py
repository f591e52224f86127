"""Folders of designs, schedules.

``schedule.csv`` has a line for each release: ``step`` (from 0), ``epsilon`` (the exact decimal) and ``folder``. A
release that is left out has the ε 0 and no folder. The file is written last, as a whole, and an older one is removed
first: where it stands, all folders that it names are complete and of one run.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import ExportError, InputError
from mechdesign.base._files import find_output
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, FILE_NAME, TABLE
from mechdesign.certify._exact import exact, exact_text
from mechdesign.data._budgets import Schedule
from mechdesign.data._chain_counts import CHAIN_COUNTS
from mechdesign.data._layout import cell, withheld, withholding
from mechdesign.model._origin import Origin

_Value = TypeVar("_Value")

Files = Mapping[str, bytes] | Callable[[_Value], Mapping[str, bytes]]
"""Files by name that go with those of a value, such as a page; or a function that returns them for the value."""

NO_FILES: Mapping[str, bytes] = MappingProxyType({})

SET = (CHANNEL, DUAL, TABLE, "report.html", CERTIFICATE)
"""The files of an exported set."""

SET_OF_DESIGN = (CHANNEL, DUAL, TABLE, CERTIFICATE)
"""The files of an exported set that hold the design itself, without its page."""

ADD_UP = "both releases add up: whoever has seen the first learns from both, and the sum of their budgets is spent"
"""What a second release of the same data means, whether or not it replaces the files of the first."""

# Files that belong together, by the file that tells of them; a report may be written again.
_FILE_GROUPS = {
    CERTIFICATE: ("the design", {*SET_OF_DESIGN}),
    CHAIN_COUNTS: ("the chain", {"forward.csv", "backward.csv", "states.csv", CHAIN_COUNTS}),
    "release.json": ("the release", {"released.csv", "answers.csv", "release.json"}),
}

_PARTIAL = re.compile(r"\.(?P<name>.+)\.(?:partial|previous)")


def check_target(
    directory: str | os.PathLike[str], force: bool = False, overwrite: bool = True, origin: Origin | None = None
) -> None:
    """Raise `ExportError` unless a set of files may and can be written into `directory`.

    It may when the folder does not exist or is empty, or when an exported set stands there, whole or interrupted; but
    without `overwrite` only one that has the same origin. With `force` it may whatever else stands there: files of
    other names are never touched.
    """
    folder = Path(directory)
    try:
        file = folder.exists() and not folder.is_dir()
        foreign = folder.is_dir() and not force and not _is_bundle(folder)
    except OSError as error:
        raise ExportError(f"{folder} cannot be read: {error.strerror or error}") from error
    if file:
        raise ExportError(f"{folder} is not a folder; choose another one")
    if foreign:
        raise ExportError(
            f"{folder} holds files that are not an export of mechdesign; choose another folder, or say --force to "
            "write beside them"
        )
    if not overwrite and (title := _find_other_design(folder, origin)) is not None:
        raise ExportError(
            f"{folder} holds the design of another specification ({title}); choose another folder, or say --overwrite "
            "(overwrite=True) to replace it"
        )
    check_writable(folder)


# Names that open a device on some systems, whatever their ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def prepare_files(files: Files[_Value], taken: Collection[str]) -> Callable[[_Value], dict[str, bytes]]:
    """Return a function from a value to the files that go with it; files that are given as such are checked at once.

    Names are plain file names, and none is `taken` by a file or a folder of the value itself. Raises `InputError` for
    other names, and for contents that are no bytes.
    """
    if callable(files):
        made = files
        return lambda value: _check_files(made(value), taken)
    known = _check_files(files, taken)
    return lambda value: known


def _check_files(files: Mapping[str, bytes], taken: Collection[str]) -> dict[str, bytes]:
    if not isinstance(files, Mapping):
        raise InputError("files", "is no mapping", value=type(files).__name__, bound="contents by the name of a file")
    known: set[str] = set(taken)
    for name, content in files.items():
        if not isinstance(name, str) or not FILE_NAME.fullmatch(name) or _DEVICE.fullmatch(name):
            bound = "a plain file name: letters, digits, '_', '-' and '.', no folder, and no device of any system"
            raise InputError("files", "has a name that is no plain file name", value=name, bound=bound)
        # File systems may take names for the same that differ in case, or by dots at the end.
        same = name.rstrip(".").casefold()
        if same in known:
            raise InputError(
                "files", "has a name that is taken", value=name, bound=f"none of {', '.join(sorted(known))}"
            )
        known.add(same)
        if not isinstance(content, bytes):
            bound = "bytes; encode a text first"
            raise InputError(f"files[{name!r}]", "is not bytes", value=type(content).__name__, bound=bound)
    return dict(files)


def check_folder(folder: Path, ours: Callable[[Path], bool], what: str, force: bool | None = None) -> None:
    """Raise `ExportError` unless files can be written into `folder`, and all that stands there is `ours`.

    With `force` it may hold other things too; None where that cannot be said. `what` says whose folder it is.
    """
    try:
        file = folder.exists() and not folder.is_dir()
        others = sorted(entry.name for entry in folder.iterdir() if not ours(entry)) if folder.is_dir() else []
    except OSError as error:
        raise ExportError(f"{folder} cannot be read: {error.strerror or error}") from error
    if file:
        raise ExportError(f"{folder} is not a folder; choose another one")
    if others and not force:
        raise ExportError(
            f"{folder} holds {others[0]}, which is no part of {what}; choose another folder"
            + ("" if force is None else ", or say --force to write beside it")
        )
    check_writable(folder)


def check_no_input(target: Path, inputs: Mapping[str, Path | None]) -> None:
    """Raise `ExportError` where a file that is to be written is one of the inputs, by whatever name or link.

    `inputs` are files by what a command calls them; those that are None were not given.
    """
    for name, source in inputs.items():
        if source is not None and _is_same(target, source):
            raise ExportError(f"{target} is the file of {name}, which must not be overwritten; choose another name")


def check_no_input_in(folder: Path, files: Iterable[str], inputs: Mapping[str, Path | None]) -> None:
    """Raise `ExportError` where one of the `files` that are to be written into a folder is one of the inputs."""
    for file in files:
        check_no_input(folder / file, inputs)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names are names of one file; a terminal or a device may well be both read and written."""
    try:
        return one.is_file() and os.path.samefile(one, other)
    except (OSError, ValueError):
        # One of them is not there.
        return False


def make_second_release_error(folder: Path, what: str) -> ExportError:
    """Return the error for a folder that holds a release already, which `what` names."""
    return ExportError(
        f"{folder} holds {what}, and {ADD_UP}; choose another folder, or say --overwrite (overwrite=True) to replace it"
    )


def check_writable(folder: Path) -> None:
    """Raise `ExportError` unless files can be made in `folder`, or `folder` itself in the nearest folder there is."""
    there = folder.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise ExportError(f"{folder} cannot be made: {there} is not a folder")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {error.strerror or error}; choose another folder") from error


def check_outputs(*targets: Path | None, inputs: Mapping[str, Path | None], overwrite: bool = True) -> None:
    """Raise `ExportError` unless a user may name each target as output: a file, a link to one, a device, or a pipe.

    Targets that are None were not named; none may be one of the inputs, see `check_no_input`. Without `overwrite`, no
    file may stand there. A file of a design, a chain or a release is never written over: the others would no longer fit
    it.
    """
    for target in filter(None, targets):
        check_no_input(target, inputs)
        _check_output(target, overwrite)


def _check_output(target: Path, overwrite: bool) -> None:
    file = find_output(target)
    if file is None:
        if not os.access(target, os.W_OK):
            raise ExportError(f"{target} cannot be written: it is closed to this user; choose another name")
        return
    if not overwrite and file.exists():
        raise ExportError(f"{target} is there already: choose another name, or say --overwrite")
    for mark, (what, names) in _FILE_GROUPS.items():
        if file.name in names and (file.parent / mark).exists():
            raise ExportError(f"{target} is a file of {what} in {file.parent}; choose another name")
    check_writable(file.parent)


def check_space(folder: Path, size: int, files: Iterable[str] = ()) -> None:
    """Raise `ExportError` unless `size` bytes can be written into `folder`: it is made, the room taken, and all undone.

    For what must not fail once a budget is spent.

    Args:
        folder: where files will be written.
        size: how many bytes they take.
        files: their names, which no folder may have.
    """
    missing: list[Path] = []
    there = folder.absolute()
    while not os.path.lexists(there):
        missing.append(there)
        there = there.parent
    made: list[Path] = []
    try:
        for each in reversed(missing):
            each.mkdir()
            made.append(each)
        for name in files:
            if (folder / name).is_dir():
                raise ExportError(f"{folder / name} is a folder, where a file is to be written; choose another folder")
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve_space(file.fileno(), folder, size)
    except (OSError, ValueError) as error:
        if isinstance(error, ExportError):
            raise
        reason = error.strerror if isinstance(error, OSError) else None
        raise ExportError(
            f"{size:,} bytes cannot be written into {folder}: {reason or error}; make room, or choose another folder"
        ) from error
    finally:
        for each in reversed(made):
            with contextlib.suppress(OSError):
                each.rmdir()


def _reserve_space(descriptor: int, folder: Path, size: int) -> None:
    if (free := shutil.disk_usage(folder).free) < size:
        raise OSError(f"only {free:,} are free")
    if size and hasattr(os, "posix_fallocate"):
        try:
            # Quotas and limits of the process show here only.
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            # Some file systems cannot tell.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise


def _find_other_design(folder: Path, origin: Origin | None) -> str | None:
    """Return the title of the finished set in `folder` unless it is of the same origin; None where there is none."""
    try:
        metadata = json.loads((folder / CERTIFICATE).read_bytes())["metadata"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    title = str(metadata.get("title") or "without a title")
    try:
        found = Origin.from_json(metadata.get("origin"))
    except InputError:
        return f"{title}, of unknown origin"
    return None if origin is not None and origin.same_design(found) else title


def _is_bundle(folder: Path) -> bool:
    names = {entry.name for entry in folder.iterdir()}
    if not names:
        return True
    if CERTIFICATE in names:
        try:
            document = json.loads((folder / CERTIFICATE).read_bytes())
        except (ValueError, RecursionError):
            # Cut off by an interrupted export, or not ours: the other files tell.
            document = None
        if isinstance(document, dict) and str(document.get("schema", "")).startswith("mechdesign-certificate/"):
            return True
    plain = {match["name"] if (match := _PARTIAL.fullmatch(name)) else name for name in names}
    return CHANNEL in plain and plain <= set(SET)


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
        designs: The distinct ε in their order, with their designs; such as
            `mechdesign.specification.Specification.designs`.
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
    check_folder(folder, _is_of_schedule, "a schedule of designs", force)
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


def find_unused_folders(directory: str | os.PathLike[str], schedule: Schedule) -> list[str]:
    """Return the names of folders for other ε, of an earlier schedule."""
    used = {folder_name(epsilon) for epsilon in schedule.distinct}
    names = (entry.name for entry in Path(directory).iterdir() if entry.is_dir())
    return sorted(name for name in names if name.startswith(_PREFIX) and name not in used)


def _is_of_schedule(entry: Path) -> bool:
    if entry.is_dir():
        return entry.name.startswith(_PREFIX)
    return entry.name == SCHEDULE or (entry.name.startswith(f".{SCHEDULE}.") and entry.name.endswith(".partial"))


Scheduled = dict[str, tuple[Fraction, list[int]]]
"""The folders of a schedule, in order, each with its ε and the releases that use it."""

_SOME = 3
# What else this package writes into a folder, by a file that it holds.
_RELEASED = {
    "answers.csv": ("a release from a table", "`mechdesign inspect {}` shows what was released and what it spent"),
    "released.csv": (
        "a released trace",
        "`mechdesign release` with --channels writes a design of each step, channels/step-0 and so on",
    ),
}


def require_design(directory: Path) -> None:
    """Raise `InputError`, which says what there is instead, where `directory` does not hold one design.

    Whether the design is whole is for whoever reads it to find out.
    """
    bound = "a folder that `mechdesign design` wrote"
    if not directory.exists():
        near = difflib.get_close_matches(directory.name, _list_designs(directory.parent), n=1)
        remedy = f"did you mean {directory.parent / near[0]}?" if near else ""
        raise InputError(str(directory), "does not exist", bound=bound, remedy=remedy)
    if not directory.is_dir() or (directory / CERTIFICATE).exists() or (directory / CHANNEL).exists():
        return
    if is_schedule(directory):
        folder, (epsilon, steps) = next(iter(read_scheduled(directory).items()))
        raise InputError(
            str(directory),
            "holds the designs of a schedule, not one design",
            bound="one of its folders",
            remedy=f"name {directory / folder}, say, for ε = {float(epsilon):g} (release {steps[0]}); {SCHEDULE} "
            "says which release uses which",
        )
    found = [directory / name for name in _list_designs(directory)]
    found += [directory / "channels" / name for name in _list_designs(directory / "channels")]
    if found:
        some = ", ".join(map(str, found[:_SOME])) + (", …" if len(found) > _SOME else "")
        raise InputError(str(directory), f"holds {len(found)} designs, not one", bound=f"one of {some}")
    for name, (what, remedy) in _RELEASED.items():
        if (directory / name).is_file():
            raise InputError(
                str(directory), f"holds {what}, not a design", bound=bound, remedy=remedy.format(directory)
            )


def is_schedule(directory: Path) -> bool:
    """Tell whether the designs of a schedule stand in a folder, all of them."""
    return (directory / SCHEDULE).is_file() and not (directory / CERTIFICATE).exists()


def read_scheduled(directory: Path) -> Scheduled:
    """Return the folders that ``schedule.csv`` names; raise `InputError` naming the line where it is malformed.

    Releases that are left out, with an ε of 0, name none.
    """
    path = directory / SCHEDULE
    found: Scheduled = {}
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            for place, row in enumerate(csv.DictReader(lines)):
                _add_release(found, row, f"{path}, line {place + 2}", place)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), f"cannot be read ({error})") from error
    if not found:
        raise InputError(str(path), "names no releases", bound="a line for each release")
    return found


def _add_release(found: Scheduled, row: dict[str, str], line: str, place: int) -> None:
    name, step, epsilon = row.get("folder"), row.get("step"), row.get("epsilon")
    if (name, step, epsilon) == ("", str(place), "0"):
        return
    if not name or "/" in name or "\\" in name or name.startswith(".") or step != str(place) or not epsilon:
        raise InputError(
            line, "is no release", value=withheld(dict(row)), bound=f"step {place}, its epsilon and its folder"
        )
    with withholding():
        level = exact(epsilon, line)
    known, steps = found.setdefault(name, (level, []))
    if known != level:
        raise InputError(line, f"gives {name} two ε", value=cell(epsilon), bound=str(float(known)))
    steps.append(place)


def _list_designs(directory: Path) -> list[str]:
    """Return the names of the folders in `directory` that hold a design."""
    return sorted(_iterate_designs(directory)) if directory.is_dir() else []


def _iterate_designs(directory: Path) -> Iterator[str]:
    try:
        for entry in directory.iterdir():
            if (entry / CERTIFICATE).is_file():
                yield entry.name
    except OSError:
        # What cannot be looked at has no suggestion to make.
        return
