"""Begin a ledger on purpose, for one user or a group, and check what folders say against it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechdesign.accounting.ledger import Ledger
from mechdesign.accounting.ledger import require_folder
from mechdesign.accounting.ledger_file import NUMBER
from mechdesign.accounting.ledger_file import write_ledger
from mechdesign.base._errors import InputError
from mechdesign.base._errors import LedgerError
from mechdesign.base._files import read_regular
from mechdesign.base._locks import WAIT_S
from mechdesign.base._locks import file_of
from mechdesign.base._locks import lock_file_of
from mechdesign.base._locks import locked
from mechdesign.base._locks import stands

__all__ = ["MANIFEST", "Checked", "begin_ledger", "check_folders"]


def __dir__() -> list[str]:
    return sorted(__all__)


MANIFEST = "release.json"
"""The file in which a release repeats the numbers of its entries."""


def begin_ledger(
    path: str | os.PathLike[str],
    epsilon: Any = None,
    rho: Any = None,
    *,
    again: bool = False,
    group: str | None = None,
    wait: float = WAIT_S,
) -> Ledger:
    """Write an empty ledger and its lock.

    Args:
        path: the file; none may stand there.
        epsilon: its budget in ε, or None.
        rho: its budget in ρ, or None.
        again: begin anew where the lock of an earlier ledger still stands. What was spent there is forgotten, and the
            lock gets the mode of a new one.
        group: the name of a group whose members share the ledger: file and lock are then readable and writable for
            them (0660), otherwise for their owner alone (0600). They also need to be able to write its folder, which
            must not be sticky, as temporary folders are.
        wait: how long another process is waited for, in seconds.

    Raises:
        InputError: a budget is negative or no number, there is no such group, or this user is not in it.
        LedgerError: a ledger stands there, or the lock of one that was removed.
        ExportError: the file cannot be written.
    """
    ledger = Ledger(epsilon, rho=rho, wait=wait)
    where = file_of(path)
    number = None if group is None else _group(group)
    require_folder(where)
    lock = lock_file_of(where)
    stood = stands(lock)
    with locked(where, wait):
        if stands(where):
            raise LedgerError(
                f"{where} stands already; nothing was changed. Choose another name, or move it away first"
            )
        if stood and not again:
            raise LedgerError(
                f"the lock of an earlier ledger ({lock}) still stands, and what was spent there would be forgotten. "
                "Restore the ledger, or insist: --again (again=True)"
            )
        write_ledger(where, ledger.epsilon, ledger.rho, ())
        for file in (where, lock):
            _set_mode(file, number)
    return Ledger(path=where, wait=wait)


def _group(name: str) -> int:
    try:
        import grp

        number = grp.getgrnam(name).gr_gid
    except (ImportError, KeyError, TypeError, ValueError) as error:
        raise InputError("group", "is not a group of this system", value=name, bound="the name of a group") from error
    if os.geteuid() != 0 and number not in (os.getegid(), *os.getgroups()):
        raise InputError("group", "is a group that this user is not in", value=name, bound="a group of this user")
    return number


def _set_mode(file: Path, group: int | None) -> None:
    """Share a file with a group, or keep it for its owner."""
    try:
        if group is not None:
            os.chown(file, -1, group)
        file.chmod(0o600 if group is None else 0o660)
    except OSError as error:
        raise LedgerError(
            f"{file} belongs to another user, and its mode stays as it is ({error.strerror}). Remove it as its owner, "
            "and the ledger with it, and begin again"
        ) from error


@dataclass(frozen=True)
class Checked:
    """What a folder says of its entries: `numbers`, and `missing`, those of them that the ledger does not hold."""

    folder: Path
    numbers: tuple[str, ...]
    missing: tuple[str, ...]


def check_folders(ledger: Ledger, folders: Sequence[str | os.PathLike[str]]) -> tuple[Checked, ...]:
    """Return, for folders of releases, which of the numbers that they repeat are not in the ledger.

    A number that is missing shows that the ledger was put back to an older copy, or is another one.

    Raises:
        InputError: a folder holds no release that can be read, or none that was charged to a ledger.
    """
    known = {entry.number for entry in ledger.entries}
    found = []
    for folder in map(Path, folders):
        numbers = _numbers(folder)
        found.append(Checked(folder, numbers, tuple(each for each in numbers if each not in known)))
    return tuple(found)


def _numbers(folder: Path) -> tuple[str, ...]:
    file = folder / MANIFEST
    try:
        document = json.loads(read_regular(file).decode("utf-8"))
        entries = document["entries"] if "entries" in document else [document["entry"]]
        if not isinstance(entries, list) or not all(number is None or NUMBER.fullmatch(number) for number in entries):
            raise ValueError("numbers of entries are 32 hexadecimal digits")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(str(file), f"cannot be read ({reason})", bound="the folder of a release") from error
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise InputError(str(file), "names no entry of a ledger", bound="a release of this version or later") from error
    charged = tuple(number for number in entries if number is not None)
    if not charged:
        raise InputError(str(file), "was charged to no ledger", bound="a release that names entries of a ledger")
    return charged
