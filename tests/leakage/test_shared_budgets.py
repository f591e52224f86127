"""Whoever keeps a budget keeps it in all company: ledgers, series and stages of traces, in memory and in files."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from company import at_once, end_of, held_by_another_thread, in_child, needs_fork, start_child

import mechdesign as md
from mechdesign.base._locks import ProcessLock, hold_lock, lock_file_of
from mechdesign.errors import BudgetExceededError, ExportError, LeakageExceededError, LedgerError
from mechdesign.leakage.accounting import begin_ledger

# Libraries have threads of their own, which take no part here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SUMS = [[1.0, 0.0], [0.0, 1.0]]


def test_a_path_imports_the_lock_before_any_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "ledger.json"
    begin_ledger(ledger, 1)
    for name, use in {
        "a new ledger": lambda: md.Ledger(1, path=tmp_path / "new.json"),
        "a ledger": lambda: md.Ledger.existing(ledger),
    }.items():
        # A process that another thread forks during an import would wait for this import forever.
        monkeypatch.delitem(sys.modules, "filelock", raising=False)
        use()
        assert "filelock" in sys.modules, name


@dataclass(frozen=True)
class Owner:
    """A budget for two uses: how it is made in memory or in files of a folder, used once, and counted."""

    name: str
    make: Callable[..., Any]
    use: Callable[[Any], object]
    count: Callable[[Any], int]
    lock: Callable[[Any], ProcessLock]
    files: tuple[str, ...]

    def attempt(self, kept: Any) -> int:
        """Return 1 for a use, 0 for a budget that is spent, and 2 for any other refusal."""
        try:
            self.use(kept)
        except (BudgetExceededError, LeakageExceededError):
            return 0
        except LedgerError:
            return 2
        return 1


def a_ledger(folder: Path | None, wait: float = 10.0) -> md.Ledger:
    return md.Ledger(epsilon=2, path=folder and folder / "ledger.json", wait=wait)


def a_series(folder: Path | None, wait: float = 10.0) -> md.Ledger:
    """Two releases of 1 at one time step are within α; those that begin one file together find one series."""
    ledger = md.Ledger(epsilon=9, path=folder and folder / "series.json", wait=wait)
    if ledger.series is None:
        try:
            ledger.add_series(alpha=2, backward=SUMS, forward=None, history="others")
        except LedgerError as error:
            if "cannot be given anew" not in str(error):
                raise
    return ledger


@functools.cache
def the_stage() -> Any:
    domain, chain = md.Domain.grid(3, 1, 3.0, 1.0), np.full((3, 3), 1 / 3)
    return md.traces.Trace(domain, md.graphs.complete(3), 1, chain, np.full(3, 1 / 3)).table(1)[0]


def a_stage(folder: Path | None, wait: float = 10.0) -> Any:
    return replace(the_stage(), ledger=a_ledger(folder, wait))


OWNERS = [
    Owner(
        "ledger",
        a_ledger,
        lambda ledger: ledger.spend("a count", "one record", epsilon=1),
        lambda ledger: len(ledger.entries),
        lambda ledger: ledger._lock,
        ("ledger.json",),
    ),
    Owner(
        "series",
        a_series,
        lambda ledger: ledger.spend("a count", "one record", epsilon=1, step=0, complete=2),
        lambda ledger: len(ledger.entries),
        lambda ledger: ledger._lock,
        ("series.json",),
    ),
    Owner(
        "stage",
        a_stage,
        lambda stage: stage.draw(1),
        lambda stage: len(stage.ledger.entries),
        lambda stage: stage.ledger._lock,
        ("ledger.json",),
    ),
]
owners = pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.name)


def pickled(kept: Any) -> Any:
    return pickle.loads(pickle.dumps(kept))


@owners
def test_a_budget_is_spent_once_and_a_refusal_records_nothing(owner: Owner, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        kept = owner.make(folder)
        assert [owner.attempt(kept) for _ in range(4)] == [1, 1, 0, 0]
        assert owner.count(kept) == 2
    again = owner.make(tmp_path)
    assert (owner.attempt(again), owner.count(again)) == (0, 2)


@owners
def test_two_that_are_opened_on_one_file_see_each_other(owner: Owner, tmp_path: Path) -> None:
    one, two = owner.make(tmp_path), owner.make(tmp_path)
    assert [owner.attempt(each) for each in (one, two, one, two)] == [1, 1, 0, 0]
    assert owner.count(one) == owner.count(two) == 2


@owners
def test_threads_share_one_budget(owner: Owner, tmp_path: Path) -> None:
    for trial in range(2):
        folder = tmp_path / str(trial)
        folder.mkdir()
        for kept in (owner.make(None), owner.make(folder)):
            assert sum(at_once(*[lambda kept=kept: owner.attempt(kept)] * 4)) == 2
            assert owner.count(kept) == 2
        # Threads that begin one file together.
        folder = folder / "begun"
        folder.mkdir()
        assert sum(at_once(*[lambda folder=folder: owner.attempt(owner.make(folder))] * 4)) == 2


@owners
def test_copies_share_one_budget(owner: Owner, tmp_path: Path) -> None:
    for way in (copy.copy, copy.deepcopy, pickled):
        folder = tmp_path / way.__name__
        folder.mkdir()
        kept = owner.make(folder)
        early = way(kept)
        assert [owner.attempt(each) for each in (kept, early)] == [1, 1], way
        assert [owner.attempt(each) for each in (early, way(kept), kept)] == [0, 0, 0], way
        assert owner.count(way(kept)) == owner.count(early) == owner.count(kept) == 2
        kept = owner.make(None)
        if way is pickled:
            with pytest.raises(LedgerError, match="path="):
                way(kept)
        else:
            assert [owner.attempt(each) for each in (kept, way(kept), kept)] == [1, 1, 0]


@needs_fork
@owners
def test_forked_processes_share_a_file_and_cannot_spend_what_is_in_memory(owner: Owner, tmp_path: Path) -> None:
    kept = owner.make(None)
    assert owner.attempt(kept) == 1
    assert in_child(lambda: owner.attempt(kept)) == 2
    assert in_child(lambda: owner.count(kept)) == 1
    assert [owner.attempt(kept) for _ in range(2)] == [1, 0]
    kept = owner.make(tmp_path)
    children = [start_child(lambda: owner.attempt(kept) + owner.attempt(kept)) for _ in range(3)]
    assert sum(map(end_of, children)) == 2
    assert (owner.count(kept), owner.attempt(kept), in_child(lambda: owner.attempt(kept))) == (2, 0, 0)


@needs_fork
@owners
def test_a_fork_while_another_thread_holds_the_lock_does_not_wait_for_it(owner: Owner, tmp_path: Path) -> None:
    for folder, found in ((None, 2), (tmp_path, 1)):
        kept = owner.make(folder)
        with held_by_another_thread(owner.lock(kept)):
            assert in_child(lambda kept=kept: owner.count(kept)) == 0
            assert in_child(lambda kept=kept: owner.attempt(kept)) == found


@owners
def test_a_file_that_was_put_back_or_removed_is_noticed_and_not_begun_again(owner: Owner, tmp_path: Path) -> None:
    for name in owner.files:
        folder = tmp_path / name.removesuffix(".json")
        folder.mkdir()
        file, kept = folder / name, owner.make(folder, 0)
        assert owner.attempt(kept) == 1
        earlier = file.read_bytes()
        assert owner.attempt(kept) == 1
        later = file.read_bytes()
        file.write_bytes(earlier)
        with pytest.raises(LedgerError, match="no longer holds"):
            owner.use(kept)
        file.unlink()
        # Its lock tells that it existed, and whoever has seen it needs no lock to know.
        with pytest.raises(LedgerError, match="is missing, but its lock"):
            owner.use(owner.make(folder, 0))
        assert owner.attempt(kept) == 2
        lock_file_of(file).unlink()
        assert owner.attempt(kept) == 2
        assert not file.exists()
        file.write_bytes(later)
        file.chmod(0o600)
        assert (owner.attempt(kept), owner.count(kept)) == (0, 2)


@owners
def test_a_file_has_one_name(owner: Owner, tmp_path: Path) -> None:
    kept = owner.make(tmp_path)
    assert owner.attempt(kept) == 1
    for name in owner.files:
        other = tmp_path / "other.json"
        other.hardlink_to(tmp_path / name)
        with pytest.raises(LedgerError, match="has a second name"):
            owner.use(kept)
        other.unlink()
    assert (owner.attempt(kept), owner.count(kept)) == (1, 2)


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
@owners
def test_files_and_their_locks_are_their_owners_alone(owner: Owner, tmp_path: Path) -> None:
    for umask in (0o000, 0o022, 0o077):
        old = os.umask(umask)
        try:
            folder = tmp_path / oct(umask)
            folder.mkdir(0o700)
            kept = owner.make(folder)
            assert owner.attempt(kept) == 1
            assert {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {
                name: 0o600 for file in owner.files for name in (file, lock_file_of(folder / file).name)
            }
            for file in owner.files:
                (folder / file).chmod(0o640)
            assert owner.attempt(kept) == 1
            assert [stat.S_IMODE((folder / file).stat().st_mode) for file in owner.files] == [0o600] * len(owner.files)
        finally:
            os.umask(old)


@owners
def test_a_lock_that_another_holds_is_named(owner: Owner, tmp_path: Path) -> None:
    kept = owner.make(tmp_path, 0)
    assert owner.attempt(kept) == 1
    for file in owner.files:
        with hold_lock(tmp_path / file):
            for use in (lambda: owner.use(kept), lambda: owner.use(owner.make(tmp_path, 0))):
                with pytest.raises(LedgerError, match=rf"\.{file}\.lock is held"):
                    use()
            assert owner.count(kept) == 1
    assert (owner.attempt(kept), owner.count(kept)) == (1, 2)


@owners
def test_a_write_that_fails_records_nothing(owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = owner.make(tmp_path)
    assert owner.attempt(kept) == 1

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mechdesign.base._atomic.os.replace", full)
        with pytest.raises(ExportError, match="No space left"):
            owner.use(kept)
    assert owner.count(kept) == owner.count(owner.make(tmp_path)) == 1
    assert owner.attempt(kept) == 1
