"""Several users and one ledger with a series: members of a group share it, and nobody else reads or loses anything.

A child process becomes another user, which only root may do.
"""

from __future__ import annotations

import codecs
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.errors import ExportError, LedgerError, LockError

ANN, BEN, EVE = 61001, 61002, 61003
GROUP, OTHERS = 61010, 61011
FLOWS = [[0.9, 0.1], [0.1, 0.9]]

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become other users"
)


@pytest.fixture
def ours() -> Iterator[Path]:
    """A folder of a group, where other users can reach it."""
    with tempfile.TemporaryDirectory(prefix="mechdesign-group-") as above:
        os.chmod(above, 0o755)
        folder = Path(above, "ours")
        folder.mkdir()
        os.chown(folder, ANN, GROUP)
        folder.chmod(0o2770)
        yield folder


def as_user(user: int, group: int, work: Callable[[], object]) -> None:
    """Run a function as another user with the usual umask, and fail with what it raises."""
    # Another user may not be able to read the folder of Python: what filelock imports late is imported now.
    codecs.lookup("ascii")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)
            os.umask(0o022)
            work()
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        failed = said.read()
    os.waitpid(child, 0)
    assert not failed, failed


def spend(path: Path, step: int) -> None:
    md.Ledger(path=path).spend("a count", "one value", epsilon="0.1", step=step, complete=2)


def test_two_users_of_a_group_charge_one_series_and_nobody_else_reads_it(ours: Path) -> None:
    path = ours / "l.json"

    def begin() -> None:
        assert run("ledger", "new", path, "--epsilon", "1").exit_code == 0
        md.Ledger(path=path).add_series(alpha=1, backward=FLOWS, forward=FLOWS, plan=("equal", 4), history="others")
        spend(path, 1)

    def refused() -> None:
        for work in (lambda: spend(path, 3), lambda: md.Ledger(path=path)):
            with pytest.raises(LedgerError, match="chmod 2770"):
                work()

    as_user(ANN, GROUP, begin)
    as_user(BEN, GROUP, lambda: spend(path, 2))
    as_user(EVE, OTHERS, refused)
    # In a folder that everybody may enter, the files themselves are closed.
    ours.chmod(0o2775)
    as_user(ANN, GROUP, lambda: spend(path, 3))
    as_user(EVE, OTHERS, refused)
    assert list(md.Ledger(path=path).series.steps) == [1, 2, 3]
    for file in (path, ours / ".l.json.lock"):
        found = file.stat()
        assert (found.st_mode & 0o777, found.st_gid) == (0o660, GROUP), file


def test_a_folder_that_cannot_be_written_refuses_a_charge_and_loses_nothing(ours: Path) -> None:
    path = ours / "l.json"

    def begin() -> None:
        md.Ledger(1, path=path).add_series(alpha=1, backward=FLOWS, forward=FLOWS, history="others")
        spend(path, 1)

    def refused() -> None:
        ledger = md.Ledger(path=path)
        for work in (lambda: spend(path, 2), lambda: setattr(ledger.series, "plan", ("equal", 3))):
            with pytest.raises((ExportError, LockError)):
                work()
        assert [*ledger.series.steps] == [1]

    as_user(ANN, GROUP, begin)
    before = {file: file.read_bytes() for file in ours.iterdir()}
    ours.chmod(0o2550)
    for user in (ANN, BEN):
        as_user(user, GROUP, refused)
        assert {file: file.read_bytes() for file in ours.iterdir()} == before
    ours.chmod(0o2770)
    as_user(BEN, GROUP, lambda: spend(path, 2))
    assert [*md.Ledger(path=path).series.steps] == [1, 2]


def test_a_user_without_a_name_and_a_sticky_folder_are_named(ours: Path) -> None:
    """Users of a container have numbers only; in a sticky folder, nobody replaces the file of another user."""
    path = ours / "l.json"

    def begin() -> None:
        md.Ledger(1, path=path).add_series(alpha=1, backward=FLOWS, forward=FLOWS, history="others")
        spend(path, 1)

    def refused() -> None:
        with pytest.raises(ExportError, match=f"chmod -t {ours}"):
            spend(path, 2)

    as_user(ANN, GROUP, begin)
    ours.chmod(0o3770)
    as_user(BEN, GROUP, refused)
    assert [entry.who for entry in md.Ledger(path=path).entries] == [f"user {ANN}"]
