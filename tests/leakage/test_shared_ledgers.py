"""Whoever shares a ledger, by threads, forks, copies or files, spends its budget once."""

from __future__ import annotations

import copy
import fcntl
import json
import multiprocessing
import os
import pickle
import signal
import stat
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mechdesign as md
from mechdesign.base._locks import ProcessLock, hold_lock, lock_file_of
from mechdesign.errors import BudgetExceededError, ExactReleaseError, InputError, LedgerError, LockWarning
from mechdesign.leakage._ledger_file import read_ledger
from mechdesign.leakage._partition import Partition
from mechdesign.leakage.accounting import Ledger, begin_ledger, check_folders

FORK = multiprocessing.get_context("fork")


def in_child(work: Any) -> int:
    """Return the number, below 100, that `work` returns in a forked process; 100 where it raised."""
    if (child := os.fork()) == 0:
        code = 100
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def attempt(ledger: Ledger) -> int:
    try:
        ledger.spend("a", "b", epsilon=1)
    except BudgetExceededError:
        return 0
    except LedgerError:
        return 2
    return 1


def test_a_forked_process_cannot_spend_from_a_ledger_in_memory_and_may_read_it() -> None:
    ledger = Ledger(epsilon=1)
    assert in_child(lambda: attempt(ledger)) == 2
    assert in_child(lambda: int(ledger.remaining_epsilon or 0)) == 1
    assert attempt(ledger) == 1


@pytest.mark.parametrize("begun", [True, False])
def test_forked_processes_share_a_ledger_with_a_path(tmp_path: Path, begun: bool) -> None:
    ledger = Ledger(epsilon=2, path=tmp_path / "l.json")
    if begun:
        ledger.spend("first", "b", epsilon=1)
    assert sum(in_child(lambda: attempt(ledger)) for _ in range(4)) == (1 if begun else 2)
    assert ledger.spent.epsilon == 2


@pytest.mark.parametrize("path", [None, "l.json"])
def test_a_fork_while_a_thread_holds_the_lock_does_not_wait_for_it(tmp_path: Path, path: str | None) -> None:
    ledger = Ledger(epsilon=1, path=None if path is None else tmp_path / path)
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._lock:
            inside.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(20)
    assert in_child(lambda: len(ledger.entries)) == 0
    assert in_child(lambda: attempt(ledger)) == (2 if path is None else 1)
    done.set()
    thread.join()


def test_threads_begin_one_ledger_together(tmp_path: Path) -> None:
    for trial in range(5):
        path, passed, start = tmp_path / f"{trial}.json", [], threading.Barrier(4)

        def go(path: Path = path, passed: list[int] = passed, start: threading.Barrier = start) -> None:
            ledger = Ledger(epsilon=1, path=path)
            start.wait()
            passed.append(attempt(ledger))

        threads = [threading.Thread(target=go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(passed) == [0, 0, 0, 1]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_of_a_ledger_with_a_path_is_the_same_ledger(tmp_path: Path, way: Any) -> None:
    ledger = Ledger(epsilon=1, path=tmp_path / "l.json")
    early = way(ledger)
    assert attempt(ledger) == 1
    assert attempt(early) == attempt(way(ledger)) == 0
    assert way(ledger).entries == ledger.entries == early.entries


def test_a_copy_of_a_ledger_in_memory_is_the_object_and_pickling_it_is_refused() -> None:
    ledger = Ledger(epsilon=1)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"one": ledger})["one"] is ledger
    with pytest.raises(LedgerError, match=r"cannot be pickled.*path="):
        pickle.dumps(ledger)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_knows_what_was_spent_and_refuses_an_older_file(tmp_path: Path, way: Any) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=2, path=path)
    assert attempt(ledger) == 1
    before = path.read_text()
    assert attempt(ledger) == 1
    path.write_text(before)
    with pytest.raises(LedgerError, match="no longer holds"):
        way(ledger)
    path.unlink()
    with pytest.raises(LedgerError, match="no longer holds"):
        way(ledger)


def a_part(ledger: Ledger) -> tuple[Any, md.tables.Policy]:
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(4)}))
    return md.tables.part_of(ledger, policy, "clinics", part="north"), policy


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_part_of_a_ledger_belongs_to_its_process_and_so_do_its_copies(way: Any) -> None:
    ledger = Ledger(epsilon=1)
    part, policy = a_part(ledger)

    def release(kept: Any) -> int:
        try:
            md.tables.release_histogram([1, 2], policy, epsilon=1, ledger=kept)
        except BudgetExceededError:
            return 0
        except LedgerError:
            return 2
        return 1

    assert in_child(lambda: release(part)) == 2
    assert release(way(part)) == 1
    assert release(part) == release(way(part)) == 0
    assert part.ledger is way(part).ledger is ledger
    with pytest.raises(LedgerError, match="cannot be pickled"):
        pickle.dumps(part)


def test_a_part_of_a_ledger_refuses_a_release_under_another_policy(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=1, path=tmp_path / "l.json")
    part, policy = a_part(ledger)
    other = md.tables.Policy.line(policy.domain)
    for kept in (part, pickle.loads(pickle.dumps(part))):
        with pytest.raises(InputError, match="under another policy"):
            md.tables.release_histogram([1, 2], other, epsilon=1, ledger=kept)
        with pytest.raises(InputError, match="under another policy"):
            kept.check("a", "b", epsilon=1, policy="another")
    part.check("a", "b", epsilon=1)
    with pytest.raises(BudgetExceededError):
        part.check("a", "b", epsilon=1.5)
    assert not part.ledger.entries
    md.tables.release_histogram([1, 2], policy, epsilon=1, ledger=part)
    assert [entry.part for entry in ledger.entries] == [("clinics", "north")]


@pytest.mark.parametrize("path", [None, "l.json"])
def test_nothing_is_spent_while_the_same_thread_spends(
    tmp_path: Path, path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as in a handler of a signal: it would be judged by what was spent before, and be forgotten."""
    ledger = Ledger(epsilon=1, path=None if path is None else tmp_path / path)
    seen = []

    def interrupted(count: int) -> str:
        if not seen:
            seen.append("a handler runs")
            seen.append(attempt(ledger))
        return "0" * 2 * count

    monkeypatch.setattr("mechdesign.leakage.accounting.secrets.token_hex", interrupted)
    assert attempt(ledger) == 1
    assert seen == ["a handler runs", 2]
    assert (len(ledger.entries), attempt(ledger)) == (1, 0)


def test_a_forked_process_does_not_keep_the_lock_of_one_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=1, path=path)
    told, tell = os.pipe()
    if (holder := os.fork()) == 0:
        inside = threading.Event()

        def hold() -> None:
            with hold_lock(path):
                inside.set()
                time.sleep(30)

        threading.Thread(target=hold, daemon=True).start()
        inside.wait(20)
        if (child := os.fork()) == 0:
            time.sleep(30)
            os._exit(0)
        os.write(tell, str(child).encode())
        time.sleep(30)
        os._exit(0)
    child = int(os.read(told, 20))
    path.with_name("other").touch()
    try:
        with pytest.raises(LedgerError, match="held"), hold_lock(path, 0):
            pass
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    with hold_lock(path, 2):
        pass
    os.kill(child, signal.SIGKILL)
    assert not ledger.entries


def test_a_ledger_is_made_empty_before_its_first_entry_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=1, path=path)
    assert not path.exists()
    with pytest.raises(BudgetExceededError):
        ledger.spend("a", "b", epsilon=2)
    assert Ledger(path=path).epsilon == 1
    assert Ledger(path=path).entries == ()


@pytest.mark.slow
@pytest.mark.parametrize("entries", [0, 1])
def test_a_ledger_that_was_removed_is_not_made_again(tmp_path: Path, entries: int) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=1, path=path)
    ledger.spend("a", "b", epsilon=1) if entries else ledger.__class__(epsilon=1, path=path)._require_process()
    lock_file_of(path).touch()
    path.unlink(missing_ok=True)
    for each in (Ledger(epsilon=1, path=path, wait=0), ledger):
        with pytest.raises(LedgerError, match=r"l\.json is missing.*ledger new .* --epsilon 1 --again"):
            each.spend("a", "b", epsilon=1)
    assert not path.exists()


@pytest.mark.slow
def test_a_lock_that_is_held_is_waited_for_and_named(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    lock = lock_file_of(path)
    lock.touch()
    held = os.open(lock, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    started = time.monotonic()
    with pytest.raises(LedgerError, match=r"\.l\.json\.lock is held.*0\.2 s.*--wait"):
        Ledger(epsilon=1, path=path, wait=0.2).spend("a", "b", epsilon=1)
    with pytest.raises(LedgerError, match="held"), pytest.warns(LockWarning, match=r"waiting up to 1.2 s"):
        Ledger(epsilon=1, path=path, wait=1.2).spend("a", "b", epsilon=1)
    assert time.monotonic() - started < 10
    os.close(held)


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "10", None, True, 1e10, [1]])
def test_how_long_a_lock_is_waited_for_is_a_number_of_seconds(wait: Any) -> None:
    with pytest.raises(InputError, match="wait"):
        Ledger(epsilon=1, wait=wait)


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    path, target = tmp_path / "l.json", tmp_path / "other"
    lock_file_of(path).symlink_to(target)
    with pytest.raises(LedgerError, match="is a link"):
        Ledger(epsilon=1, path=path).spend("a", "b", epsilon=1)
    assert not target.exists()
    assert not path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_ledger_and_its_lock_are_their_owners_alone(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "l.json"
    old = os.umask(umask)
    try:
        Ledger(epsilon=2, path=path).spend("a", "b", epsilon=1)
        assert [stat.S_IMODE(each.stat().st_mode) for each in (path, lock_file_of(path))] == [0o600, 0o600]
        path.chmod(0o640)
        Ledger(path=path).spend("a", "b", epsilon=1)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(old)


@pytest.mark.parametrize("path", ["", "a/b.json", "x" * 300, "\0"])
def test_a_name_that_can_hold_no_ledger_is_refused(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((LedgerError, InputError)):
        Ledger(epsilon=1, path=path).spend("a", "b", epsilon=1)
    with pytest.raises((LedgerError, InputError)):
        Ledger.existing(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "queue"])
def test_what_stands_in_the_place_of_a_lock_is_no_lock(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "l.json"
    os.mkdir(lock_file_of(path)) if kind == "folder" else os.mkfifo(lock_file_of(path))
    with pytest.raises(LedgerError, match=r"\.l\.json\.lock"):
        Ledger(epsilon=1, path=path, wait=0.1).spend("a", "b", epsilon=1)
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator can be another user")
@pytest.mark.parametrize(
    ("folder", "file", "group", "passes"),
    [
        (0o777, 0o600, None, False),
        (0o777, 0o644, None, False),
        (0o700, 0o644, None, False),
        (0o755, 0o600, None, False),
        (0o770, 0o660, 65534, True),
        (0o770, 0o660, 1, False),
    ],
)
def test_a_second_user_shares_a_ledger_of_a_group_only(folder: int, file: int, group: int | None, passes: bool) -> None:
    # Not below the folders of pytest, which are closed to others.
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        kept = Path(name) / "kept"
        kept.mkdir()
        path = kept / "l.json"
        Ledger(epsilon=3, path=path).spend("a", "b", epsilon=1)
        for each, mode in ((path, file), (lock_file_of(path), file), (kept, folder)):
            each.chmod(mode)
            os.chown(each, -1, os.getegid() if group is None else group)

        def another_user() -> int:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                Ledger.existing(path).spend("a", "b", epsilon=1)
            except LedgerError as error:
                return 2 if "ledger new PATH --group NAME" in str(error) else 3
            return 1

        assert in_child(another_user) == (1 if passes else 2)
        found = path.stat()
        assert (stat.S_IMODE(found.st_mode), len(Ledger(path=path).entries)) == (file, 2 if passes else 1)
        assert group is None or found.st_gid == group
        Ledger(path=path).spend("a", "b", epsilon=1)
        assert path.stat().st_gid == found.st_gid


def test_each_entry_has_a_random_number(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=2, path=tmp_path / "l.json")
    numbers = [ledger.spend("a", "b", epsilon=1).number for _ in range(2)]
    assert [entry.number for entry in Ledger(path=tmp_path / "l.json").entries] == numbers
    assert len({*numbers}) == 2
    assert all(len(bytes.fromhex(number or "")) == 16 for number in numbers)


def test_a_ledger_of_the_first_version_opens_and_becomes_one_of_this_version(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "l.json"
    entry = {"when": "2026-01-01", "what": "a", "protects": "b", "epsilon": "1", "rho": None, "part": None}
    document: dict[str, Any] = {"schema": "mechdesign.ledger/1", "epsilon": "2", "rho": None, "entries": [entry]}
    document["sha256"] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    text = json.dumps(document)
    path.write_text(text)
    ledger = Ledger(path=path)
    assert ledger.remaining_epsilon == 1
    assert path.read_text() == text
    ledger.spend("a", "b", epsilon=1)
    assert json.loads(path.read_text())["schema"] == "mechdesign.ledger/2"
    assert [each.number is None for each in Ledger(path=path).entries] == [True, False]


def test_sums_of_written_decimals_are_exact() -> None:
    ledger = Ledger(epsilon="0.3")
    for _ in range(3):
        ledger.spend("a", "b", epsilon=0.1)
    assert ledger.remaining_epsilon == 0
    with pytest.raises(BudgetExceededError):
        ledger.spend("a", "b", epsilon=1e-17)


KEPT = {"domain": "d", "policy": "one"}


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        # Two partitions that cross, both exact.
        (
            {"components": [0, 0, 1, 1], "classes": [0, 0, 1, 1]},
            {"components": [0, 1, 1, 2], "classes": [0, 1, 1, 2]},
            1,
        ),
        # The second tells apart less than the first protects.
        ({"components": [0, 0, 1, 1]}, {"components": [0, 0, 1, 1], "classes": [0, 0, 0, 0]}, 0),
        # Exact beside a noisy one that joins what it tells apart, both ways round.
        ({"components": [0, 0, 0, 0]}, {"components": [0, 0, 1, 1], "classes": [0, 0, 1, 1]}, 1),
        ({"components": [0, 0, 1, 1], "classes": [0, 0, 1, 1]}, {"components": [0, 0, 0, 0]}, 1),
        # Noisy releases under different policies.
        ({"components": [0, 0, 1, 1]}, {"components": [0, 1, 1, 2]}, 0),
        # What cannot be decided: refused for the exact one only.
        ({}, {"components": [0, 1, 2, 3], "classes": [0, 1, 2, 3]}, 1),
        ({"components": [0, 1, 2, 3], "classes": [0, 1, 2, 3]}, {}, 0),
        ({"components": [0, 1, 2], "classes": [0, 1, 2]}, {"components": [0, 0, 1, 1]}, 0),
    ],
)
def test_exact_releases_stand_beside_those_that_they_leave_alone(
    old: Any, new: Any, refused: int, tmp_path: Path
) -> None:
    def spend(ledger: Ledger, given: Any, policy: str, together: bool = False) -> None:
        parts = {name: Partition.of(labels) for name, labels in given.items()}
        domain = None if not parts else "d"
        epsilon = 0 if "classes" in given else 1
        ledger.spend(policy, policy, epsilon=epsilon, policy=policy, domain=domain, together=together, **parts)

    path = tmp_path / "l.json"
    spend(Ledger(path=path), old, "first")
    if refused:
        with pytest.raises(ExactReleaseError, match=r'"second".*"first".*together'):
            spend(Ledger(path=path), new, "second")
        assert len(Ledger(path=path).entries) == 1
    spend(Ledger(path=path), new, "second", together=bool(refused))
    assert [entry.together for entry in Ledger(path=path).entries] == [False, bool(refused)]
    # A policy is never in its own way.
    alone = Ledger()
    spend(alone, new, "second")
    spend(alone, new, "second")


def test_what_is_exact_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    part = Partition.of([5, 5, 2, 5])
    Ledger(path=path).spend("a", "b", epsilon=0, domain="d", components=part, classes=part, policy="p")
    _, _, (entry,) = read_ledger(path)
    assert (entry.components, entry.classes, entry.epsilon) == (part, part, 0)
    assert part.labels.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("text", ["", "!", "AAAA", None, 3, "eJwDAAAAAAE=", Partition.of([0, 1]).text() + "A", "é"])
def test_texts_that_are_no_partition_are_refused(text: Any) -> None:
    with pytest.raises(InputError, match="classes"):
        Partition.read(text, "classes")


@pytest.mark.parametrize("epsilon", [0, "0", -1, None])
def test_nothing_is_spent_without_noise_only_where_it_says_what_it_tells_apart(epsilon: Any) -> None:
    with pytest.raises(InputError):
        Ledger().spend("a", "b", epsilon=epsilon)


def test_a_lock_of_threads_is_new_in_another_process() -> None:
    lock = ProcessLock()
    with lock:
        assert lock.is_at_home()

        def enter() -> int:
            done = []
            thread = threading.Thread(target=lambda: done.append(lock.__enter__()))
            thread.start()
            thread.join(5)
            return len(done) + 2 * lock.is_at_home()

        assert in_child(enter) == 1


def test_a_file_is_locked_again_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), hold_lock(tmp_path / "x", 0):
            raise KeyError("x")
    assert md.Ledger is Ledger


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_no_ledger_and_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "pipe" if kind == "pipe" else Path("/dev/zero")
    # A reader that waits, or reads without an end, is stopped by the alarm.
    code = in_child(lambda: signal.alarm(5) or _is_refused(path))
    assert code == 1
    (tmp_path / "out").mkdir()
    (tmp_path / "pipe").rename(tmp_path / "out" / "release.json")
    assert in_child(lambda: signal.alarm(5) or _are_unreadable(tmp_path / "out")) == 1


def _is_refused(path: Path) -> int:
    try:
        Ledger(epsilon=1, path=path)
    except LedgerError as error:
        return int("it is not a regular file" in str(error))
    return 0


def _are_unreadable(folder: Path) -> int:
    try:
        check_folders(Ledger(epsilon=1), [folder])
    except InputError as error:
        return int("it is not a regular file" in str(error))
    return 0


def test_a_ledger_that_was_seen_is_not_begun_again(tmp_path: Path) -> None:
    Ledger(epsilon=1, path=tmp_path / "l.json").spend("a", "b", epsilon="0.5")
    begin_ledger(tmp_path / "m.json", epsilon=1)
    for name in ("l.json", "m.json"):
        ledger = Ledger(path=tmp_path / name, wait=0.1)
        (tmp_path / name).unlink()
        lock_file_of(tmp_path / name).unlink()
        with pytest.raises(LedgerError, match="is missing"):
            ledger.spend("a", "b", epsilon="0.5")
        assert not (tmp_path / name).exists()
