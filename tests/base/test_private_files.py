"""Who can read and write files: modes from the first byte on, and what others can write is not believed."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import each_row

from mechdesign.base import _atomic as atomic
from mechdesign.base._atomic import make_folder, replace_files, write_file
from mechdesign.base._files import note_readers, read_own, why_not_own
from mechdesign.errors import ExportError, ExposedFileWarning

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(params=[0o000, 0o077], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be another user's, as far as files are looked at."""
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)


def test_private_files_and_folders_are_private_from_the_first_byte_on(tmp_path: Path, umask: int) -> None:
    seen = []

    def parts(folder: Path) -> Iterator[bytes]:
        seen.extend(mode(each) for each in folder.iterdir())
        yield b"true"

    make_folder(tmp_path / "a" / "b", private=True)
    write_file(tmp_path / "a" / "b" / "c", parts(tmp_path / "a" / "b"), private=True)
    assert seen == [0o600]
    assert {mode(tmp_path / name) for name in ("a", "a/b")} == {0o700}
    assert {mode(tmp_path / name) for name in ("a/b/c",)} == {0o600}
    make_folder(tmp_path / "p" / "q")
    write_file(tmp_path / "p" / "q" / "r", [b"public"])
    replace_files(tmp_path / "s", {"t": b"1", "u": b"2"}, "u")
    assert {mode(tmp_path / name) for name in ("p", "p/q", "s")} == {0o777 & ~umask}
    assert {mode(tmp_path / name) for name in ("p/q/r", "s/t", "s/u")} == {0o666 & ~umask}


@each_row("private", [False, True])
@each_row("kept", [0o600, 0o640, 0o660, 0o644, 0o444, 0o666])
def test_a_write_keeps_the_mode_and_group_of_what_it_replaces(tmp_path: Path, kept: int, private: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with contextlib.suppress(OSError):
        # Where this process may, as root, a group that new files do not have.
        os.chown(path, -1, 12345)
    path.chmod(kept)
    group = path.stat().st_gid
    write_file(path, [b"new"], private=private)
    replace_files(tmp_path, {"a": b"newer"}, "a")
    assert (path.read_bytes(), mode(path), path.stat().st_gid) == (b"newer", kept, group)


def test_a_group_that_cannot_be_kept_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o664)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "not in that group")

    other = os.stat_result([*os.stat(tmp_path)[:5], 4321, *([0] * 4)])
    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(atomic.os, "fstat", lambda _: other)
    write_file(path, [b"new"])
    monkeypatch.undo()
    assert mode(path) == 0o604


def test_a_mode_that_the_file_system_refuses_leaves_a_file_to_its_owner(
    tmp_path: Path, monkeypatch, umask: int
) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    target.chmod(0o664)

    def refuse(*_: object) -> None:
        raise OSError(refused, os.strerror(refused))

    monkeypatch.setattr(os, "fchmod", refuse)
    for refused in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):  # noqa: B007 - `refuse` reads it
        write_file(target, [b"new"])
        assert (target.read_bytes(), mode(target)) == (b"new", 0o600)
        target.chmod(0o664)
    refused = errno.EIO
    with pytest.raises(OSError, match="Input"):
        write_file(target, [b"newer"])
    assert target.read_bytes() == b"new"


def test_files_of_other_users_and_links_give_private_files_no_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("planted", "shared", "target"):
        (tmp_path / name).write_bytes(b"old")
        (tmp_path / name).chmod(0o666)
    (tmp_path / "link").symlink_to("target")
    write_file(tmp_path / "link", [b"true"], private=True)
    assert (mode(tmp_path / "link"), (tmp_path / "target").read_bytes()) == (0o600, b"old")
    elsewhere(monkeypatch)
    write_file(tmp_path / "planted", [b"true"], private=True)
    write_file(tmp_path / "shared", [b"ledger"], private=True, shared=True)
    assert (mode(tmp_path / "planted"), mode(tmp_path / "shared")) == (0o600, 0o600)


def test_a_write_that_fails_leaves_file_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def parts() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "full")

    with pytest.raises(ExportError, match="full"):
        write_file(path, parts(), private=True)
    assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (b"old", 0o640, ["a"])
    with pytest.raises(ExportError):
        replace_files(path / "below", {"b": b""}, "b")


def test_a_fork_gets_a_lock_of_its_own(umask: int) -> None:
    if umask:
        return
    program = (
        "import os, threading; from mechdesign.base import _atomic as atomic; held = threading.Event(); "
        "threading.Thread(target=lambda: (atomic.WRITING.acquire(), held.set(), threading.Event().wait()), "
        "daemon=True).start(); held.wait(); child = os.fork(); "
        "os._exit(0 if atomic.WRITING.acquire(timeout=5) else 1) if not child else None; "
        "os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=60, check=False).returncode == 0


def test_what_is_replaced_and_open_to_others_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a"
    note_readers(path)
    for closed in (0o600, 0o622, 0o711):
        path.touch()
        path.chmod(closed)
        note_readers(path)
    for open_ in (0o640, 0o604):
        path.chmod(open_)
        with pytest.warns(ExposedFileWarning, match=f"{open_:04o}.*chmod 600"):
            note_readers(path)


def test_who_can_write_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")
    for kept in (0o600, 0o644, 0o755):
        path.chmod(kept)
        assert read_own(path, ValueError) == b"1"
    for kept in (0o620, 0o602, 0o666):
        path.chmod(kept)
        with pytest.raises(ValueError, match="is writable by others"):
            read_own(path, ValueError)
    path.chmod(0o600)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none", "."):
        with pytest.raises(OSError, match=r"not a regular file|No such|directory"):
            read_own(tmp_path / name, ValueError)
    elsewhere(monkeypatch)
    with pytest.raises(ValueError, match="another user"):
        read_own(path, ValueError)
    root = os.stat("/")
    assert why_not_own(root) == "belongs to another user"


def test_nothing_is_said_of_the_mode_of_a_link_that_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"of others")
    (tmp_path / "mine").symlink_to("target")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        note_readers(tmp_path / "mine")
    write_file(tmp_path / "mine", [b"new"], private=True)
    assert mode(tmp_path / "mine") == 0o600
    assert (tmp_path / "target").read_bytes() == b"of others"
