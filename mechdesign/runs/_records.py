"""The folder of a point: its record, which is a bundle or a reason of failure, and the claim of the process at work.

A point is claimed by the file ``claim-0``, which names host and process. A process that takes over a dead claim writes
the next number, so that two processes cannot both take it over. The claim with the largest number counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._errors import ExportError, StateError
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import Certificate
from mechdesign.synthesis._bundle import find_design
from mechdesign.synthesis._folders import Wanted

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
