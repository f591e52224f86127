"""Check the folders and files that commands write, and the folders that should hold a design."""

from __future__ import annotations

import contextlib
import difflib
import errno
import itertools
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from mechdesign.base._errors import ExportError, InputError
from mechdesign.base._files import find_output, read_regular
from mechdesign.base._version import __version__
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, FILE_NAME, TABLE

_Value = TypeVar("_Value")

Files = Mapping[str, bytes] | Callable[[_Value], Mapping[str, bytes]]
"""Additional files by name, such as a page, or a function from the written value to such files."""

NO_FILES: Mapping[str, bytes] = MappingProxyType({})

SET = (CHANNEL, DUAL, TABLE, "report.html", CERTIFICATE)
"""The files of a bundle, including its page and the statement of its signers."""

SET_OF_DESIGN = (CHANNEL, DUAL, TABLE, CERTIFICATE)
"""The files of a bundle that contain the design itself, without the page."""

ADD_UP = "both releases add up: anyone who has seen the first learns from both, and the sum of their budgets is spent"
"""The consequence of a second release of the same data, whether or not it replaces the files of the first."""

# Files that identify a design, a released trace and a release of a table, finished or not.
_MARKS = (CERTIFICATE, "released.csv", "answers.csv", "release.json")

_PARTIAL = re.compile(r"\.(?P<name>.+?)(?:\.[0-9a-f]{8})?\.(?:partial|previous)")


@dataclass(frozen=True)
class Wanted:
    """What a record must say of the design that is wanted, for it to be done.

    Attributes:
        specification: The text of the specification, without comments.
        files: The SHA-256 of each data file.
        settings: The settings of the solver that are given beside the specification, as texts.
        version: The version of this package.
    """

    specification: str
    files: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__

    def difference(self, said: Mapping[str, Any]) -> str:
        """Return what differs from the facts of a record, by the names of the attributes; "" if nothing does."""
        files = said["files"]
        if changed := [name for name in {**files, **self.files} if files.get(name) != self.files.get(name)]:
            return f"the contents of {', '.join(changed)} changed"
        for name in ("specification", "settings"):
            if said[name] != getattr(self, name):
                return f"the {name} changed"
        version = said["version"]
        return f"mechdesign {version} made it, and this is {self.version}" if version != self.version else ""


def check_target(directory: str | os.PathLike[str], overwrite: bool = True, why: str = "") -> None:
    """Raise `ExportError` unless a bundle may and can be written into `directory`.

    The folder must be missing or empty, or contain an incomplete bundle. With `overwrite` it may contain a complete
    bundle, with any other files, which stay. For messages, `why` says why this is not the wanted design.
    """
    folder = Path(directory)
    title, held = _read_title(folder), ""
    if not overwrite and os.path.lexists(folder / CERTIFICATE):
        held = f"{'a damaged design' if title is None else f'a design ({title})'}{': ' * bool(why)}{why}"
    first = {} if _is_foreign(folder / CHANNEL) else {CHANNEL: ""}
    check_folder(folder, SET, "a design", first=first, held=held, others=title is not None)


def _is_foreign(path: Path) -> bool:
    """Return whether there is a file that is neither the channel of a bundle nor one that a killed run emptied."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "numerators.npy" not in archive.namelist()
    except zipfile.BadZipFile:
        return path.stat().st_size > 0
    except OSError:
        return os.path.lexists(path)


def prepare_files(files: Files[_Value], taken: Collection[str]) -> Callable[[_Value], dict[str, bytes]]:
    """Return a function from a value to its additional files; files that are given directly are checked immediately.

    The names must be plain file names that differ from the `taken` names of the value's own files and folders. Raises
    `InputError` for other names, and for contents that are not bytes.
    """
    if callable(files):
        made = files
        return lambda value: _check_files(made(value), taken)
    known = _check_files(files, taken)
    return lambda value: known


def _check_files(files: Mapping[str, bytes], taken: Collection[str]) -> dict[str, bytes]:
    """Return the files as a dict; raise InputError for invalid or taken names, and for contents that are not bytes."""
    if not isinstance(files, Mapping):
        raise InputError("files", "must be a mapping", value=type(files).__name__, bound="file names to contents")
    known: set[str] = set(taken)
    for name, content in files.items():
        if not isinstance(name, str) or not FILE_NAME.fullmatch(name):
            bound = "letters, digits, '_', '-' and '.'; no folder"
            raise InputError("files", "has a name that is not a plain file name", value=name, bound=bound)
        # Some file systems treat names as equal if they differ only in case or in trailing dots.
        same = name.rstrip(".").casefold()
        if same in known:
            raise InputError(
                "files", "has a name that is taken", value=name, bound=f"a name other than {', '.join(sorted(known))}"
            )
        known.add(same)
        if not isinstance(content, bytes):
            bound = "bytes; encode a text first"
            raise InputError(f"files[{name!r}]", "is not bytes", value=type(content).__name__, bound=bound)
    return dict(files)


def check_folder(
    folder: Path,
    names: Collection[str],
    what: str,
    first: Mapping[str, str] = MappingProxyType({}),
    held: str = "",
    others: bool = False,
) -> None:
    """Raise `ExportError` unless files can be written into `folder`, which may hold files of `what` only.

    Args:
        folder: The folder.
        names: The names of all files of `what`, and of its folders with a slash at the end.
        what: What is written, for messages.
        first: The files that are written first, each with a pattern of its beginning. Without one of these files, the
            others are not ours; with another beginning, a file is not ours unless it is empty, after a killed run.
        held: Words for what must not be replaced in the folder; empty if there is nothing.
        others: Whether other files may stay, but no design or other release: both would have files of the same name.
    """
    try:
        file = os.path.lexists(folder) and not folder.is_dir()
        # A killed run leaves files with temporary names.
        entries = list(folder.iterdir()) if folder.is_dir() else []
        found = {each.name: _PARTIAL.sub(r"\g<name>", each.name) + "/" * each.is_dir() for each in entries}
    except OSError as error:
        raise ExportError(f"{folder} cannot be read: {error.strerror or error}") from error
    if file:
        raise ExportError(f"{folder} is not a folder; choose another one")
    ours = {*names} if {*first} & {*found.values()} else set()
    foreign = sorted(
        name for name, plain in found.items() if plain not in ours or not _begins(folder / name, first.get(name, ""))
    )
    # Each of these files belongs to one kind of folder.
    whole = next((name for name in _MARKS if name in found and name not in names), None)
    if whole is not None:
        raise ExportError(f"{folder} holds {whole} of a design or of another release; choose another folder for {what}")
    if foreign and not others:
        raise ExportError(f"{folder} holds {foreign[0]}, which does not belong to {what}; choose another folder")
    if held:
        raise ExportError(
            f"{folder} holds {held}; choose another folder, or use --overwrite (overwrite=True) to replace it"
        )
    check_writable(folder)


def _begins(path: Path, pattern: str) -> bool:
    """Return whether a file is empty, or begins with a pattern; an empty pattern fits everything."""
    try:
        # A pipe would make this process wait.
        return not pattern or not (head := read_regular(path, most=2**16)) or bool(re.match(pattern.encode(), head))
    except OSError:
        return False


def check_no_input_in(folder: Path, files: Iterable[str], inputs: Mapping[str, Path]) -> None:
    """Raise `ExportError` if one of the `files` to write into a folder is one of the inputs, under any name or link.

    `inputs` maps names for messages to files.
    """
    for target, (name, source) in itertools.product((folder / file for file in files), inputs.items()):
        same = False
        # One of the files may not exist.
        with contextlib.suppress(OSError, ValueError):
            same = target.is_file() and os.path.samefile(target, source)
        if same:
            raise ExportError(f"{target} is the file of {name}, which must not be overwritten; choose another name")


def check_writable(folder: Path) -> None:
    """Raise `ExportError` unless `folder` is writable, or can be created in its nearest existing parent."""
    there = folder.absolute()
    # A link to nowhere exists, and nothing can be created below it.
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        raise ExportError(f"{folder} cannot be created: {there} is not a folder")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {error.strerror or error}; choose another folder") from error


def check_output(target: Path | None) -> None:
    """Raise `ExportError` unless `target` can be an output: a new file, a device, or a pipe; None is no output.

    No existing file is replaced: it may be an input, a file of a design, or a ledger.
    """
    if target is None:
        return
    file = find_output(target)
    if file is None:
        if not os.access(target, os.W_OK):
            raise ExportError(f"{target} cannot be written: this user has no permission; choose another name")
        return
    if file.exists():
        raise ExportError(f"{target} already exists, and is not replaced: choose another name")
    check_writable(file.parent)


def check_space(folder: Path, size: int, files: Iterable[str] = ()) -> None:
    """Raise `ExportError` unless `size` bytes can be written into `folder`.

    The folder is created and the space is reserved; then both actions are undone. Releases use this check, because
    writing must not fail after a budget is spent.

    Args:
        folder: Folder for the files.
        size: Total size of the files in bytes.
        files: Names of the files; none may be an existing folder.
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
            f"{size:,} bytes cannot be written into {folder}: {reason or error}; free some space, or choose another "
            "folder"
        ) from error
    finally:
        for each in reversed(made):
            with contextlib.suppress(OSError):
                each.rmdir()


def _reserve_space(descriptor: int, folder: Path, size: int) -> None:
    """Allocate `size` bytes for an open file; raise OSError if they are not available."""
    if (free := shutil.disk_usage(folder).free) < size:
        raise OSError(f"only {free:,} are free")
    if size and hasattr(os, "posix_fallocate"):
        try:
            # Only this call detects quotas and limits of the process.
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            # Some file systems do not support this call.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise


def _read_title(folder: Path) -> str | None:
    """Return the title of the design in `folder`, or None if no certificate of ours is there."""
    document = read_object(folder / CERTIFICATE)
    metadata = document.get("metadata")
    title = metadata.get("title") if isinstance(metadata, dict) else None
    ours = str(document.get("schema")).startswith("mechdesign-certificate/")
    return str(title or "without a title") if ours else None


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if there is none."""
    try:
        found = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# Largest number of folders that a message names.
_MAX_NAMED_FOLDERS = 3
# Other outputs of this package, identified by one of their files, with a hint for the message.
_OTHER_OUTPUTS = {
    "answers.csv": ("a release from a table", "`mechdesign inspect {}` shows what was released and what it spent"),
    "released.csv": (
        "a released trace",
        "`mechdesign release` with --channels writes a design of each step, channels/step-0 and so on",
    ),
}


def require_design(directory: Path) -> None:
    """Raise `InputError` if `directory` does not contain exactly one design; the message describes its content.

    This function does not check whether the design is complete; a later read of the design checks that.
    """
    bound = "a folder that `mechdesign design` wrote"
    if not directory.exists():
        near = difflib.get_close_matches(directory.name, _list_designs(directory.parent), n=1)
        remedy = f"did you mean {directory.parent / near[0]}?" if near else ""
        raise InputError(str(directory), "does not exist", bound=bound, remedy=remedy)
    if not directory.is_dir() or (directory / CERTIFICATE).exists() or (directory / CHANNEL).exists():
        return
    found = [directory / name for name in _list_designs(directory)]
    found += [directory / "channels" / name for name in _list_designs(directory / "channels")]
    if found:
        examples = ", ".join(map(str, found[:_MAX_NAMED_FOLDERS])) + (", …" if len(found) > _MAX_NAMED_FOLDERS else "")
        if len(found) == 1:
            raise InputError(str(directory), "is not a design, but holds one", bound=examples)
        raise InputError(str(directory), f"holds {len(found)} designs, not one", bound=f"one of {examples}")
    for name, (what, remedy) in _OTHER_OUTPUTS.items():
        if (directory / name).is_file():
            raise InputError(
                str(directory), f"holds {what}, not a design", bound=bound, remedy=remedy.format(directory)
            )


def _list_designs(directory: Path) -> list[str]:
    """Return the names of the folders in `directory` that hold a design."""
    return sorted(path.parent.name for path in directory.glob(f"*/{CERTIFICATE}"))
