"""Folders that cannot be synchronised, and locks that a file system refuses, as on shares."""

from __future__ import annotations

import errno
import os
import stat
import warnings
from pathlib import Path

import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base import _atomic as atomic
from mechdesign.errors import ExportError, LedgerError, LockError, SynchronisationWarning

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders are not synchronised there")


@pytest.fixture
def answer(monkeypatch):
    """Let fsync fail, of folders and of files, with the numbers given."""
    real = os.fsync

    def set_answers(folder: int = 0, file: int = 0) -> None:
        def fsync(descriptor: int) -> None:
            number = folder if stat.S_ISDIR(os.fstat(descriptor).st_mode) else file
            if number:
                raise OSError(number, os.strerror(number))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(atomic, "_SAID", set())

    return set_answers


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.EPERM, errno.EBADF, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP], ids=errno.errorcode.get
)
def test_a_share_that_cannot_synchronise_a_folder_goes_on_with_a_note(tmp_path, answer, number):
    answer(folder=number)
    with pytest.warns(SynchronisationWarning, match="power failure"):
        atomic.write_file(tmp_path / "a", [b"whole"])
    # Said once.
    atomic.replace_files(tmp_path, {"b": b"1", "c": b"2"}, "c")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a": b"whole", "b": b"1", "c": b"2"}


@each_row("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_all_the_same(tmp_path, answer, number):
    (tmp_path / "c").write_bytes(b"old")
    answer(folder=number)
    with pytest.raises(ExportError):
        atomic.replace_files(tmp_path, {"c": b"new"}, "c")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_of_a_file_only_what_says_that_there_is_no_such_thing_is_a_note(tmp_path, answer):
    answer(file=errno.EINVAL)
    with pytest.warns(SynchronisationWarning):
        atomic.write_file(tmp_path / "a", [b"whole"])
    answer(file=errno.EIO)
    with pytest.raises(ExportError, match="Input/output"):
        atomic.write_file(tmp_path / "a", [b"new"])
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_note_that_is_an_error_for_the_caller_comes_when_all_is_written(tmp_path, answer):
    answer(folder=errno.EIO)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SynchronisationWarning):
            atomic.replace_files(tmp_path, {"b": b"1", "c": b"2"}, "c")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b", "c"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_lock_that_the_file_system_refuses_is_an_error_with_a_remedy(tmp_path, monkeypatch, number):
    import fcntl

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    ledger = md.Ledger(epsilon=1, path=tmp_path / "l.json")
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LockError, match=r"refuses locks.*local disk") as error:
        ledger.spend("x", "y", "0.5")
    assert isinstance(error.value, LedgerError)


def test_the_lock_of_another_user_names_the_remedy(tmp_path, monkeypatch):
    file = Path(tmp_path / ".l.json.lock")
    file.touch()
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    from mechdesign.base._locks import SHARE, why_unlocked

    refused = PermissionError(errno.EACCES, "Permission denied")
    assert why_unlocked(file, refused) == ("belongs to another user (Permission denied)", SHARE)
    monkeypatch.undo()
    assert why_unlocked(file, refused)[1] != SHARE
    # The lock of a ledger is never removed because its file system cannot be written.
    assert why_unlocked(file, OSError(errno.EROFS, "Read-only file system"))[1].startswith("Mount")
