"""The ledger: exact sums, refusals that record nothing, exact releases, and what its file and its lock may be."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import pickle
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from company import in_child
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.base import _atomic as atomic
from mechdesign.base._locks import ProcessLock, hold_lock, lock_file_of
from mechdesign.errors import BudgetExceededError, ExactReleaseError, InputError, LedgerError, LockWarning
from mechdesign.leakage._contents import read_ledger
from mechdesign.leakage._partition import Partition
from mechdesign.leakage.accounting import Ledger, begin_ledger, check_folders

WHOM = "one person's record"


def refused(ledger: Ledger, **costs: Any) -> bool:
    """Tell whether a release is refused for its cost, recording nothing."""
    before = ledger.entries
    try:
        ledger.spend("x", WHOM, **costs)
    except BudgetExceededError:
        assert ledger.entries == before
        return True
    return False


def test_sums_are_exact() -> None:
    ledger = Ledger(epsilon=1)
    for _ in range(10):
        ledger.spend("a count", WHOM, epsilon=0.1)
    assert (ledger.spent.epsilon, ledger.remaining_epsilon) == (1, 0)
    with pytest.raises(BudgetExceededError, match=r"another count would spend ε = 0\.001, but 0 of 1 is left"):
        ledger.spend("another count", WHOM, epsilon="0.001")
    assert refused(ledger, epsilon=1e-17)
    assert len(ledger.entries) == 10


@settings(max_examples=30)
@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1), min_size=1, max_size=6))
def test_the_budget_itself_may_be_spent_and_nothing_beyond(amounts: list[Fraction]) -> None:
    total = sum(amounts)
    enough, short = Ledger(epsilon=total), Ledger(epsilon=total - Fraction(1, 10**9))
    for amount in amounts[:-1]:
        assert not refused(enough, epsilon=amount)
        assert not refused(short, epsilon=amount)
    assert refused(short, epsilon=amounts[-1])
    assert not refused(enough, epsilon=amounts[-1])


def test_pure_releases_cost_half_their_square_in_rho() -> None:
    ledger = Ledger(rho=1)
    ledger.spend("gaussian", WHOM, rho="1/2")
    ledger.spend("geometric", WHOM, epsilon=1)
    assert ledger.remaining_rho == 0
    assert ledger.spent.epsilon is None
    with pytest.raises(BudgetExceededError):
        ledger.check("more", WHOM, epsilon="1e-6")
    with pytest.raises(BudgetExceededError, match="zCDP only"):
        Ledger(epsilon=100).spend("gaussian", WHOM, rho="1e-9")


def test_disjoint_parts_cost_the_largest() -> None:
    ledger = Ledger(epsilon=1)
    for region in ("north", "south", "west"):
        ledger.spend("a histogram", WHOM, epsilon="0.6", part=("region", region))
    assert ledger.spent.epsilon == Fraction(3, 5)
    assert refused(ledger, epsilon="0.5", part=("region", "north"))
    assert not refused(ledger, epsilon="0.4", part=("region", "north"))
    assert refused(ledger, epsilon="0.1")


def test_the_sum_is_the_largest_of_each_division_and_of_what_has_no_part() -> None:
    """Random entries over two divisions, counted by all choices of one part of each."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        ledger, spent = Ledger(), dict.fromkeys([(a, b) for a in "xyz" for b in "uv"], Fraction(0))
        for _ in range(rng.integers(1, 9)):
            epsilon = Fraction(int(rng.integers(1, 20)), 7)
            part = [None, *(("first", name) for name in "xyz"), *(("second", name) for name in "uv")][rng.integers(6)]
            ledger.spend("a", WHOM, epsilon=epsilon, part=part)
            for chosen in spent:
                spent[chosen] += epsilon if part is None or part[1] in chosen else 0
        assert ledger.spent.epsilon == max(spent.values())


def test_without_a_budget_it_only_records() -> None:
    ledger = Ledger()
    ledger.spend("all", WHOM, epsilon=1000)
    ledger.spend("all", WHOM, rho=1000)
    assert [entry.what for entry in ledger.entries] == ["all", "all"]
    assert ledger.remaining_epsilon is None
    assert repr(ledger) == "Ledger(2 entries)"


def test_a_file_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    entry = Ledger(epsilon="4/3", path=path).spend("naïve 😀 counts", WHOM, epsilon="1/3")
    again = Ledger(path=path)
    assert (again.entries, again.epsilon, again.remaining_epsilon) == ((entry,), Fraction(4, 3), 1)
    assert json.loads(path.read_text())["epsilon"] == "4/3"
    with pytest.raises(LedgerError, match=r"another budget \(ε = 4/3, not ε = 2\)"):
        Ledger(epsilon=2, path=path)
    numbers = [again.spend("a", "b", epsilon="1/2").number for _ in range(2)]
    assert [each.number for each in Ledger(path=path).entries] == [entry.number, *numbers]
    assert len({entry.number, *numbers}) == 3
    assert all(len(bytes.fromhex(number or "")) == 16 for number in numbers)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(epsilon=1, path=path)
    ledger.spend("a", WHOM, epsilon="0.5")
    text = path.read_text()
    for damaged in (text.replace("0.5", "0.4"), text[:-40], "", text.replace("ledger/2", "ledger/9"), "[]"):
        path.write_text(damaged)
        for use in (lambda: Ledger(path=path), lambda: ledger.spend("b", WHOM, epsilon="0.1")):
            with pytest.raises(LedgerError):
                use()
        assert path.read_text() == damaged


def test_a_ledger_is_made_empty_before_its_first_entry_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=1, path=path)
    assert not path.exists()
    assert refused(ledger, epsilon=2)
    assert (Ledger(path=path).epsilon, Ledger(path=path).entries) == (1, ())


def test_the_name_of_the_file_is_on_the_disk_before_an_entry_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    replace, synchronise = atomic.os.replace, atomic._synchronise
    monkeypatch.setattr(atomic.os, "replace", lambda *names: (replace(*names), done.append("named")))
    monkeypatch.setattr(atomic, "_synchronise", lambda folder: (synchronise(folder), done.append(folder)))
    Ledger(epsilon=1, path=tmp_path / "ledger.json").spend("x", WHOM, epsilon=1)
    # It is made empty first.
    assert done == ["named", tmp_path.resolve()] * 2


def test_links_and_other_folders_lead_to_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, link = tmp_path / "ledger.json", tmp_path / "link.json"
    monkeypatch.chdir(tmp_path)
    direct, relative = Ledger(epsilon=1, path=file), Ledger(epsilon=1, path="ledger.json")
    direct.spend("x", WHOM, epsilon="0.6")
    link.symlink_to(file)
    linked = Ledger(path=link)
    linked.spend("x", WHOM, epsilon="0.3")
    assert link.is_symlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for ledger in (direct, linked, relative):
        assert refused(ledger, epsilon="0.2")
        assert len(ledger.entries) == 2
    assert not list((tmp_path / "elsewhere").iterdir())


COPIES: tuple[Callable[[Any], Any], ...] = (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)))


def test_a_copy_knows_what_was_spent_and_refuses_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=2, path=path)
    ledger.spend("a", "b", epsilon=1)
    before = path.read_text()
    ledger.spend("a", "b", epsilon=1)
    for spoil in (lambda: path.write_text(before), path.unlink):
        spoil()
        for way in COPIES:
            with pytest.raises(LedgerError, match="no longer holds"):
                way(ledger)


def test_a_ledger_that_was_begun_is_not_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    ledger = begin_ledger(path, epsilon=1)
    with pytest.raises(LedgerError, match="exists already"):
        begin_ledger(path, epsilon=1)
    path.unlink()
    with pytest.raises(LedgerError, match="--again"):
        begin_ledger(path, epsilon=1)
    with pytest.raises(LedgerError, match=r"m\.json is missing.*ledger new .* --epsilon 1 --again"):
        ledger.__class__(epsilon=1, path=path, wait=0).spend("a", "b", epsilon=1)
    lock_file_of(path).unlink()
    with pytest.raises(LedgerError, match="is missing"):
        ledger.spend("a", "b", epsilon=1)
    assert not path.exists()


def test_a_part_is_copied_with_its_ledger_and_its_policy(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=1, path=tmp_path / "l.json")
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(4)}))
    part = md.tables.part_of(ledger, policy, "clinics", part="north")
    other = md.tables.Policy.threshold(policy.domain, 1)
    for kept in (part, pickle.loads(pickle.dumps(part))):
        with pytest.raises(InputError, match="under another policy"):
            md.tables.Histogram().release([1, 2], other, epsilon=1, ledger=kept)
    with pytest.raises(BudgetExceededError):
        md.tables.Histogram().release([1, 2], policy, epsilon=1.5, ledger=part)
    assert not ledger.entries
    md.tables.Histogram().release([1, 2], policy, epsilon=1, ledger=part)
    assert [entry.part for entry in ledger.entries] == [("clinics", "north")]


def test_nothing_is_spent_while_the_same_thread_spends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as in a handler of a signal: it would be judged by what was spent before, and be forgotten."""
    for ledger in (Ledger(epsilon=1), Ledger(epsilon=1, path=tmp_path / "l.json")):
        seen: list[str] = []

        def interrupted(count: int, ledger: Ledger = ledger, seen: list[str] = seen) -> str:
            if not seen:
                seen.append("a handler runs")
                with pytest.raises(LedgerError, match="while the same thread"):
                    ledger.spend("a", "b", epsilon=1)
                seen.append("it was refused")
            return "0" * 2 * count

        with monkeypatch.context() as patch:
            patch.setattr("mechdesign.leakage.accounting.secrets.token_hex", interrupted)
            ledger.spend("a", "b", epsilon=1)
        assert seen == ["a handler runs", "it was refused"]
        assert len(ledger.entries) == 1


def test_a_forked_process_does_not_keep_the_lock_of_one_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
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
    try:
        with pytest.raises(LedgerError, match="held"), hold_lock(path, 0):
            pass
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    with hold_lock(path, 2):
        pass
    os.kill(child, signal.SIGKILL)


@pytest.mark.slow
def test_a_lock_that_is_held_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    lock = lock_file_of(path)
    lock.touch()
    held = os.open(lock, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(LedgerError, match=r"\.l\.json\.lock is held.*0\.2 s.*nothing was recorded"):
        Ledger(epsilon=1, path=path, wait=0.2).spend("a", "b", epsilon=1)
    with pytest.raises(LedgerError, match="held"), pytest.warns(LockWarning, match=r"waiting up to 1.2 s"):
        Ledger(epsilon=1, path=path, wait=1.2).spend("a", "b", epsilon=1)
    os.close(held)


def test_what_stands_in_the_place_of_a_lock_is_no_lock(tmp_path: Path) -> None:
    for name, make in {
        "folder": os.mkdir,
        "queue": os.mkfifo,
        "link": lambda lock: os.symlink(tmp_path / "other", lock),
    }.items():
        path = tmp_path / f"{name}.json"
        make(lock_file_of(path))
        with pytest.raises(LedgerError, match=rf"\.{name}\.json\.lock"):
            Ledger(epsilon=1, path=path, wait=0.1).spend("a", "b", epsilon=1)
        assert not path.exists()
    assert not (tmp_path / "other").exists()


def test_a_name_that_can_hold_no_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("", "a/b.json", "x" * 300, "\0", 5):
        for use in (
            lambda path=path: Ledger(epsilon=1, path=path).spend("a", "b", epsilon=1),
            lambda path=path: Ledger.existing(path),
        ):
            with pytest.raises((LedgerError, InputError)):
                use()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_no_ledger_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    def is_refused(use: Callable[[], object]) -> int:
        try:
            use()
        except (LedgerError, InputError) as error:
            return int("it is not a regular file" in str(error))
        return 0

    # A reader that waits, or reads without an end, is stopped by the alarm.
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert in_child(lambda path=path: is_refused(lambda: Ledger(epsilon=1, path=path))) == 1
    (tmp_path / "out").mkdir()
    (tmp_path / "pipe").rename(tmp_path / "out" / "release.json")
    assert in_child(lambda: is_refused(lambda: check_folders(Ledger(epsilon=1), [tmp_path / "out"]))) == 1


# Mode and group of the folder, and whether another user of group 65534 may spend.
SHARED: tuple[tuple[int, int, bool], ...] = (
    (0o777, 0, False),
    (0o700, 65534, False),
    (0o770, 65534, False),
    (0o2750, 65534, False),
    (0o2770, 1, False),
    (0o2770, 65534, True),
    (0o2775, 65534, True),
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator can be another user")
def test_a_second_user_shares_a_ledger_in_a_folder_of_the_group_only() -> None:
    for row in SHARED:
        folder, group, passes = row
        # Not below the folders of pytest, which are closed to others.
        with tempfile.TemporaryDirectory() as name:
            os.chmod(name, 0o755)
            kept = Path(name) / "kept"
            kept.mkdir()
            os.chown(kept, -1, group)
            kept.chmod(folder)
            path, umask = kept / "l.json", os.umask(0o022)
            try:
                begin_ledger(path, epsilon=9).spend("a", "b", epsilon=1)
                mode = 0o660 if folder & 0o2020 == 0o2020 else 0o600

                def another_user(path: Path = path) -> int:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                    try:
                        Ledger.existing(path).spend("a", "b", epsilon=1)
                    except LedgerError as error:
                        return 2 if "chmod 2770 FOLDER" in str(error) else 3
                    return 1

                assert in_child(another_user) == (1 if passes else 2), row
                for file in (path, lock_file_of(path)):
                    found = file.stat()
                    assert stat.S_IMODE(found.st_mode) == mode, row
                    assert mode == 0o600 or found.st_gid == group
                Ledger(path=path).spend("a", "b", epsilon=1)
                assert (path.stat().st_uid, len(Ledger(path=path).entries)) == (os.geteuid(), 3 if passes else 2), row
                # A second user goes on after the first one.
                assert in_child(another_user) == (1 if passes else 2), row
            finally:
                os.umask(umask)


def test_locks_of_threads_and_files_are_free_again() -> None:
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
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            with pytest.raises(KeyError), hold_lock(Path(folder) / "x", 0):
                raise KeyError("x")


# What was released first, what is released second, and whether the second is refused.
PAIRS: dict[str, tuple[dict[str, list[int]], dict[str, list[int]], bool]] = {
    "two partitions that cross, both exact": (
        {"components": [0, 0, 1, 1], "classes": [0, 0, 1, 1]},
        {"components": [0, 1, 1, 2], "classes": [0, 1, 1, 2]},
        True,
    ),
    "the second tells apart less than the first protects": (
        {"components": [0, 0, 1, 1]},
        {"components": [0, 0, 1, 1], "classes": [0, 0, 0, 0]},
        False,
    ),
    "exact after a noisy one that joins what it tells apart": (
        {"components": [0, 0, 0, 0]},
        {"components": [0, 0, 1, 1], "classes": [0, 0, 1, 1]},
        True,
    ),
    "exact before a noisy one that joins what it tells apart": (
        {"components": [0, 0, 1, 1], "classes": [0, 0, 1, 1]},
        {"components": [0, 0, 0, 0]},
        True,
    ),
    "noisy releases under different policies": ({"components": [0, 0, 1, 1]}, {"components": [0, 1, 1, 2]}, False),
    "undecided, then exact": ({}, {"components": [0, 1, 2, 3], "classes": [0, 1, 2, 3]}, True),
    "exact, then undecided": ({"components": [0, 1, 2, 3], "classes": [0, 1, 2, 3]}, {}, False),
    "the number of records beside what may count the absent": (
        {},
        {"components": [0, 0, 0], "classes": [0, 0, 0]},
        True,
    ),
    "the number of records where nobody is absent": (
        {"components": [0, 0, 1]},
        {"components": [0, 0], "classes": [0, 0]},
        False,
    ),
    "the number of records after another exact answer": (
        {"components": [0, 1, 2], "classes": [0, 1, 2]},
        {"components": [0, 1], "classes": [0, 0]},
        True,
    ),
    "another length": ({"components": [0, 1, 2], "classes": [0, 1, 2]}, {"components": [0, 0, 1, 1]}, False),
}


def test_exact_releases_stand_beside_those_that_they_leave_alone(tmp_path: Path) -> None:
    def spend(ledger: Ledger, given: Any, policy: str, together: bool = False) -> None:
        parts = {name: Partition.of(labels) for name, labels in given.items()}
        domain = None if not parts else "d"
        epsilon = 0 if "classes" in given else 1
        ledger.spend(policy, policy, epsilon=epsilon, policy=policy, domain=domain, together=together, **parts)

    for name, (old, new, refuses) in PAIRS.items():
        path = tmp_path / f"{name}.json"
        spend(Ledger(path=path), old, "first")
        if refuses:
            with pytest.raises(ExactReleaseError, match=r'"second".*"first".*together'):
                spend(Ledger(path=path), new, "second")
            assert len(Ledger(path=path).entries) == 1, name
        spend(Ledger(path=path), new, "second", together=refuses)
        assert [entry.together for entry in Ledger(path=path).entries] == [False, refuses], name
        # A policy is never in its own way.
        alone = Ledger()
        spend(alone, new, "second")
        spend(alone, new, "second")


def test_what_is_exact_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    part = Partition.of([5, 5, 2, 5])
    Ledger(path=path).spend("a", "b", epsilon=0, domain="d", components=part, classes=part, policy="p")
    (entry,) = read_ledger(path).entries
    assert (entry.components, entry.classes, entry.epsilon) == (part, part, 0)
    assert part.labels.tolist() == [0, 0, 1, 0]


def test_wrong_input(tmp_path: Path) -> None:
    def spends(**given: Any) -> Callable[[], object]:
        arguments = {"what": "x", "protects": WHOM, "epsilon": 1} | given
        ledger = Ledger(epsilon=1, path=tmp_path / "l.json")
        return lambda: ledger.spend(**arguments)

    rows = [Mistake(f"wait {value!r}", lambda value=value: Ledger(epsilon=1, wait=value), "wait", error=InputError)
            for value in (-1, float("nan"), float("inf"), "10", None, True, 1e10, [1])]  # fmt: skip
    rows += [Mistake(f"ε {value!r}", spends(epsilon=value), "epsilon", error=InputError)
             for value in (0, "0", -1, None)]  # fmt: skip
    for text in ("a\ud800", "\udfff", "x" * 10**6 + "\ud800"):
        for place, value in (("what", text), ("protects", text), ("part", ("a", text)), ("part", (text, "a"))):
            says = "is not a text at character"
            rows.append(Mistake(f"{place} {value[-3:]!r}", spends(**{place: value}), place, says, InputError))
    rows += [
        Mistake("budget", lambda: Ledger(epsilon=-1), "epsilon"),
        Mistake("budget above floats", lambda: Ledger(epsilon="1e309"), "epsilon", "at most 1e200"),
        Mistake("budget that is a text", lambda: Ledger(rho="x"), "rho"),
        Mistake("no release", spends(what=""), "what"),
        Mistake("nobody", spends(protects=" "), "protects"),
        Mistake("a policy without a name", spends(policy=" "), "policy"),
        Mistake("both costs", spends(rho=1), "epsilon"),
        Mistake("ρ", spends(epsilon=None, rho=float("nan")), "rho"),
        Mistake("part", spends(part="north"), "part"),
        Mistake("partition", spends(classes=[0, 1]), "classes"),
        Mistake("together", spends(together=1), "together"),
    ]
    assert_refused(rows)
    assert Ledger(epsilon=1, path=tmp_path / "l.json").entries == ()
    with pytest.raises(InputError) as caught:
        Ledger().spend("x" * 10**6 + "\ud800", WHOM, epsilon=1)
    assert len(str(caught.value)) < 300


def a_trace(ledger: Any) -> md.traces.Trace:
    line = md.Domain.grid(4, 1, 4.0, 1.0)
    walk = md.MarkovChain(np.full((4, 4), 0.25))
    return md.traces.Trace(line, md.graphs.line(4), "0.4", walk, md.Prior.uniform(4), ledger=ledger, rng=1)


def test_a_trace_stops_at_the_budget_and_stays_as_it_was(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=1, path=tmp_path / "person.json")
    walk = a_trace(ledger)
    with pytest.raises(InputError):
        walk.step(9)
    assert ledger.entries == ()
    walk.step(0)
    walk.step(1)
    before = walk.belief
    with pytest.raises(BudgetExceededError, match=r"0\.2 of 1 is left"):
        walk.step(2)
    np.testing.assert_array_equal(walk.belief, before)
    walk.step(2, epsilon="0.2")
    assert ledger.remaining_epsilon == 0
    assert "3 edges of the policy graph" in ledger.entries[0].protects
