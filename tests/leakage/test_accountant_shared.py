"""Accountants that threads, forks, processes and copies share: one promise, and nothing forgotten."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base._locks import hold_lock
from mechdesign.errors import (
    BudgetExceededError,
    BudgetWarning,
    ExportError,
    InputError,
    LeakageExceededError,
    LedgerError,
    MechdesignError,
    StateError,
    StateWarning,
)
from mechdesign.leakage import _accountant as room
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._correlations import Candidates

IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
MILD = [[0.8, 0.2], [0.2, 0.8]]

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")


def released(release: Callable[[float], float], epsilon: float = 1.0) -> int:
    """Return 1 where a release was made and 0 where it was refused."""
    try:
        release(epsilon)
    except (LeakageExceededError, BudgetExceededError, LedgerError):
        return 0
    return 1


@pytest.fixture
def child():
    """Return a function that runs another one in a forked process and returns its small number."""

    def run(work: Callable[[], int]) -> int:
        process = os.fork()
        if process == 0:
            code = 99
            try:
                code = work()
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    return run


@pytest.fixture
def often():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run several threads that start together and return what they gave."""
    start, found = threading.Barrier(len(works)), []

    def run(work: Callable[[], object]) -> None:
        start.wait()
        found.append(work())

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(works)
    return found


@pytest.mark.parametrize("where", ["memory", "file", "ledger", "both"])
def test_threads_share_one_promise(tmp_path, often, where):
    for trial in range(4):
        ledger = md.Ledger(path=tmp_path / f"l{trial}.json") if where in ("ledger", "both") else None
        path = tmp_path / f"a{trial}.json" if where in ("file", "both") else None
        accountant = Accountant(1.0, IDENTITY, ledger=ledger, path=path)
        assert sum(at_once(*[partial(released, accountant.release)] * 4)) == 1
        assert accountant.epsilons.tolist() == [1.0]
        assert ledger is None or ledger.spent.epsilon == 1


def test_threads_that_open_one_file_share_one_promise(tmp_path, often):
    works = [lambda: released(Accountant(1.0, IDENTITY, path=tmp_path / "a.json").release)] * 4
    assert sum(at_once(*works)) == 1


def test_readers_see_whole_histories(often):
    accountant = Accountant(100.0, Candidates([MILD, None]), MILD)
    done = threading.Event()

    def read() -> int:
        while not done.is_set():
            assert (accountant.leakage >= 0.1).all()
            accountant.largest()
            accountant.preview(0.1)
        return 0

    def write() -> int:
        for _ in range(30):
            accountant.release(0.1)
        done.set()
        return 0

    at_once(read, write, read)
    np.testing.assert_array_equal(accountant.leakage, md.leakage.temporal([0.1] * 30, Candidates([MILD, None]), MILD))


def test_threads_with_warnings_lose_nothing(often, recwarn):
    accountant = Accountant(0.5, Candidates([MILD, IDENTITY]), on_excess="warn")
    with pytest.warns(BudgetWarning):
        at_once(*[lambda: [released(accountant.release, 0.4) for _ in range(10)]] * 3)
    assert len(accountant) == len(accountant.leakage) == len(accountant.epsilons) == 30


def test_a_save_during_releases_is_whole(tmp_path, often):
    accountant = Accountant(100.0, MILD, MILD)

    def save() -> None:
        for _ in range(10):
            accountant.save(tmp_path / "a.json")
            Accountant.load(tmp_path / "a.json", bound=False)

    at_once(save, lambda: [accountant.release(0.1) for _ in range(20)])
    accountant.save(tmp_path / "a.json")
    assert len(Accountant.load(tmp_path / "a.json")) == 20


@forks
def test_two_processes_with_one_state_release_once(tmp_path, child):
    path = tmp_path / "a.json"
    Accountant(1.0, IDENTITY).save(path)

    def both() -> int:
        one, two = (Accountant.load(path) for _ in range(2))
        done = released(one.release) + released(two.release)
        for each in (one, two):
            each.save(path)
        return done

    assert child(both) == 1
    assert Accountant.load(path).epsilons.tolist() == [1.0]


@forks
def test_a_process_that_ends_after_a_release_has_recorded_it(tmp_path, child):
    path = tmp_path / "a.json"
    Accountant(1.0, IDENTITY).save(path)
    assert [child(lambda: released(Accountant.load(path).release)) for _ in range(2)] == [1, 0]


@forks
def test_processes_at_once_share_one_promise(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, path=path)
    processes = []
    for _ in range(4):
        process = os.fork()
        if process == 0:
            code = 99
            try:
                code = sum(released(accountant.release, 0.25) for _ in range(3))
            finally:
                os._exit(code)
        processes.append(process)
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    assert sum(codes) == 4
    assert accountant.epsilons.tolist() == [0.25] * 4
    assert accountant.largest() == 0.0


@forks
def test_another_process_reads_and_does_not_spend(child):
    accountant = Accountant(1.0, IDENTITY)
    accountant.release(0.25)

    def work() -> int:
        assert accountant.leakage.tolist() == [0.25]
        assert accountant.largest() == 0.75
        with pytest.raises(LedgerError, match="path="):
            accountant.release(0.25)
        return 7

    assert child(work) == 7


@forks
def test_a_ledger_in_memory_is_refused_before_anything_is_written(tmp_path, child):
    accountant = Accountant(1.0, IDENTITY, ledger=md.Ledger(1), path=tmp_path / "a.json")

    def work() -> int:
        with pytest.raises(LedgerError):
            accountant.release(0.25)
        return 7

    assert child(work) == 7
    assert len(accountant) == 0


@forks
@pytest.mark.parametrize("path", [None, "a.json"])
def test_a_fork_while_a_thread_releases_does_not_wait_for_it(tmp_path, child, path):
    inside, go_on = threading.Event(), threading.Event()

    class Slow(md.Ledger):
        def spend(self, *args, **kwargs):
            inside.set()
            assert go_on.wait(20)
            return super().spend(*args, **kwargs)

    ledger = Slow(1, path=tmp_path / "l.json")
    accountant = Accountant(1.0, IDENTITY, ledger=ledger, path=path and tmp_path / path)
    thread = threading.Thread(target=lambda: accountant.release(0.5))
    thread.start()
    assert inside.wait(20)

    def work() -> int:
        signal.alarm(20)
        if path is None:
            with pytest.raises(LedgerError):
                accountant.release(0.5)
        accountant.largest()
        return 7

    try:
        assert child(work) == 7
    finally:
        go_on.set()
        thread.join()
    assert accountant.epsilons.tolist() == [0.5]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_copies_keep_one_promise(tmp_path, again):
    for path in (None, tmp_path / "a.json"):
        ledger = md.Ledger(1)
        accountant = Accountant(1.0, IDENTITY, ledger=ledger, path=path)
        other = again(accountant)
        assert (other is accountant) == (path is None)
        assert released(other.release) + released(accountant.release) == 1
        assert ledger.spent.epsilon == 1


def test_pickles_keep_one_promise(tmp_path):
    with pytest.raises(LedgerError, match="path="):
        pickle.dumps(Accountant(1.0, IDENTITY))
    with pytest.raises(LedgerError):
        pickle.dumps(Accountant(1.0, IDENTITY, ledger=md.Ledger(1), path=tmp_path / "m.json"))
    accountant = Accountant(1.0, IDENTITY, ledger=md.Ledger(2, path=tmp_path / "l.json"), path=tmp_path / "a.json")
    other = pickle.loads(pickle.dumps(accountant))
    assert released(other.release) + released(accountant.release) == 1
    assert md.Ledger(path=tmp_path / "l.json").spent.epsilon == 1


def test_a_path_goes_on_where_it_holds_the_same_promise(tmp_path):
    path = tmp_path / "a.json"
    Accountant(1.0, MILD, path=path).release(0.5)
    again = Accountant(1.0, MILD, path=path)
    assert again.epsilons.tolist() == [0.5]
    assert again.path == path.resolve()
    for other in (
        lambda: Accountant(2.0, MILD, path=path),
        lambda: Accountant(1.0, IDENTITY, path=path),
        lambda: Accountant(1.0, MILD, MILD, path=path),
        lambda: Accountant(1.0, MILD, on_excess="warn", path=path),
    ):
        with pytest.raises(StateError, match="another promise"):
            other()
    assert len(again) == 1


def test_a_state_that_was_removed_is_not_begun_again(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, path=path)
    accountant.release(1.0)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StateError, match="is missing, but its lock"):
        Accountant(1.0, IDENTITY, path=path)
    with pytest.raises(StateError, match="cannot be read"):
        accountant.release(0.0)
    path.write_bytes(content)
    path.chmod(0o600)
    assert Accountant(1.0, IDENTITY, path=path).largest() == 0.0


def test_a_state_that_was_put_back_is_noticed_while_open(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, MILD, path=path)
    accountant.release(0.25)
    content = path.read_bytes()
    accountant.release(0.25)
    path.write_bytes(content)
    for use in (lambda: accountant.release(0.1), lambda: accountant.leakage, accountant.largest):
        with pytest.raises(StateError, match="no longer holds"):
            use()


def test_a_save_does_not_forget(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY)
    accountant.save(path)
    accountant.release(0.25)
    accountant.save(path)
    Accountant.load(path).release(0.25)
    with pytest.raises(StateError, match="that this accountant lacks"):
        accountant.save(path)
    accountant.release(0.25)
    with pytest.raises(StateError, match="that this accountant lacks"):
        accountant.save(path)
    with pytest.raises(StateError, match="another promise"):
        Accountant(2.0, IDENTITY).save(path)
    assert Accountant.load(path).epsilons.tolist() == [0.25, 0.25]
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(StateError):
        accountant.save(other)
    assert other.read_text() == "mine"


def test_equal_releases_of_others_are_not_taken_for_ours(tmp_path):
    one, two = Accountant(1.0, IDENTITY), Accountant(1.0, IDENTITY)
    one.release(1.0)
    two.release(1.0)
    one.save(tmp_path / "a.json")
    with pytest.raises(StateError, match="that this accountant lacks"):
        two.save(tmp_path / "a.json")


def test_what_if(tmp_path):
    path = tmp_path / "a.json"
    ledger = md.Ledger(2, path=tmp_path / "l.json")
    Accountant(1.0, IDENTITY, ledger=ledger, path=path).release(0.5)
    before = path.read_bytes()
    trial = Accountant.load(path, bound=False)
    assert trial.path is None
    trial.release(0.5)
    assert trial.largest() == 0.0
    assert ledger.spent.epsilon == 0.5
    assert path.read_bytes() == before
    (tmp_path / "link.json").symlink_to(path)
    for same in (path, str(path), tmp_path / "link.json"):
        with pytest.raises(StateError, match="bound=False"):
            trial.save(same)
    with pytest.raises(InputError, match="ledger"):
        Accountant.load(path, bound=False, ledger=ledger)
    for wrong in ("no", 0, None):
        with pytest.raises(InputError, match="bound: is not a truth value"):
            Accountant.load(path, bound=wrong)


def test_a_state_says_which_ledger_it_had(tmp_path):
    kept, path = md.Ledger(2, path=tmp_path / "l.json"), tmp_path / "a.json"
    Accountant(1.0, IDENTITY, ledger=kept, path=path).release(0.25)
    Accountant.load(path).release(0.25)
    assert kept.spent.epsilon == 0.5
    Accountant.load(path, ledger=md.Ledger(path=tmp_path / "l.json")).release(0.125)
    assert kept.spent.epsilon == 0.625
    with pytest.raises(StateError, match="lacks release 0"):
        Accountant.load(path, ledger=md.Ledger(2))
    with pytest.raises(StateError, match="charges a ledger"):
        Accountant(1.0, IDENTITY, path=path)
    Accountant.load(path, ledger=None).release(0.125)
    assert kept.spent.epsilon == 0.625
    with pytest.raises(InputError, match="ledger"):
        Accountant.load(path, ledger="l.json")
    with pytest.raises(InputError, match="is the file of the ledger"):
        Accountant(1.0, ledger=kept, path=tmp_path / "l.json")


def test_a_ledger_that_is_missing_or_was_put_back_is_noticed(tmp_path):
    kept, path = md.Ledger(2, path=tmp_path / "l.json"), tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, ledger=kept, path=path)
    accountant.release(0.25)
    old = kept.path.read_bytes()
    accountant.release(0.25)
    kept.path.write_bytes(old)
    with pytest.raises(StateError, match="lacks release 1"):
        Accountant.load(path)
    kept.path.unlink()
    with pytest.raises(StateError, match="missing"):
        Accountant.load(path)
    assert len(Accountant.load(path, ledger=None)) == 2


def test_a_ledger_in_memory_must_be_given(tmp_path):
    ledger, path = md.Ledger(2), tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, ledger=ledger)
    accountant.release(0.25)
    accountant.save(path)
    with pytest.raises(StateError, match="in memory"):
        Accountant.load(path)
    Accountant.load(path, ledger=ledger).release(0.25)
    assert ledger.spent.epsilon == 0.5
    assert len(Accountant.load(path, ledger=None)) == 2


def _first_version(path: Path, epsilons: list[float], alpha: float = 1.0) -> None:
    """Write a state as version 1 did."""
    state = {
        "schema": "mechdesign.leakage.accountant/1",
        "alpha": alpha,
        "on_excess": "refuse",
        "epsilons": epsilons,
        "backward": [{"n": 2, "matrix_sha256": "0" * 64, "lines": [[1.0, 0.0, 0.0]]}],
        "forward": [None],
    }
    state["sha256"] = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(state, indent=1))
    path.chmod(0o644)


def test_states_of_version_1_open_with_a_note(tmp_path):
    path = tmp_path / "a.json"
    _first_version(path, [0.1] * 5)
    with pytest.warns(StateWarning, match="ledger=None" + ("; it is private.*chmod 600" * (os.name != "nt"))):
        one = Accountant.load(path)
    two = Accountant.load(path, ledger=None)
    Accountant.load(path, bound=False).save(tmp_path / "copy.json")
    with pytest.warns(StateWarning, match="does not name its ledger"):
        assert len(Accountant.load(tmp_path / "copy.json")) == 5
    with pytest.warns(StateWarning, match="does not name its ledger"):
        Accountant(1.0, two._kept.state.losses[0][0], path=path)
    one.release(0.25)
    assert two.epsilons.tolist() == [0.1] * 5 + [0.25]
    assert json.loads(path.read_text())["schema"].endswith("/2")
    assert len(Accountant.load(path)) == 6
    _first_version(tmp_path / "b.json", [0.1] * 10)
    ledger = md.Ledger(1)
    Accountant.load(tmp_path / "b.json", ledger=ledger)
    _first_version(tmp_path / "c.json", [0.1] * 3, alpha=0.3 * (1 - 1e-12))
    assert Accountant.load(tmp_path / "c.json", ledger=None).largest() == 0.0
    _first_version(tmp_path / "d.json", [0.1] * 3, alpha=0.3 * (1 - 1e-6))
    with pytest.raises(StateError, match="leak more"):
        Accountant.load(tmp_path / "d.json", ledger=None)


def test_pieces_are_checked_against_matrices(tmp_path):
    path = tmp_path / "a.json"
    P = np.random.default_rng(1).dirichlet(np.full(5, 0.5), 5)
    Accountant(1.0, P, Candidates([P, None]), path=path).release(0.1)
    assert len(Accountant.load(path, backward=P, forward=Candidates([P, None]))) == 1
    for wrong in ({"backward": MILD}, {"backward": None}, {"forward": P}, {"forward": Candidates([None, P])}):
        with pytest.raises(StateError, match="another"):
            Accountant.load(path, **wrong)
    document = json.loads(path.read_text())
    document.pop("sha256")
    for line in document["backward"][0]["lines"]:
        line[0] *= 0.5
    document["sha256"] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(document))
    assert Accountant.load(path).preview(0.5)[-1] < md.leakage.temporal([0.1, 0.5], P)[-1]
    with pytest.raises(StateError, match="pieces"):
        Accountant.load(path, backward=P)


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_states_are_their_owners_alone(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, path=path)
    accountant.release(0.25)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    accountant.release(0.25)
    assert path.stat().st_mode & 0o777 == 0o644
    for mode in (0o664, 0o646, 0o666):
        path.chmod(mode)
        for use in (lambda: Accountant.load(path), lambda: accountant.release(0.25)):
            with pytest.raises(StateError, match="by others"):
                use()


def test_a_state_has_one_name(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, path=path)
    os.link(path, tmp_path / "b.json")
    with pytest.raises(StateError, match="hard link"):
        accountant.release(0.5)
    (tmp_path / "b.json").unlink()
    (tmp_path / "c.json").symlink_to(path)
    Accountant.load(tmp_path / "c.json").release(0.5)
    assert accountant.epsilons.tolist() == [0.5]


def test_a_crash_between_ledger_and_state_leaves_more_recorded(tmp_path, monkeypatch):
    ledger, path = md.Ledger(2, path=tmp_path / "l.json"), tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, ledger=ledger, path=path)
    accountant.release(0.25)

    def fails(*_: object) -> None:
        raise ExportError("the disk is full")

    monkeypatch.setattr(room, "write_state", fails)
    with pytest.raises(ExportError, match="Nothing may be released, although the ledger has recorded"):
        accountant.release(0.25)
    with pytest.raises(ExportError, match=r"^the disk is full$"):
        accountant.release(0.0)
    monkeypatch.undo()
    assert ledger.spent.epsilon == 0.5
    assert accountant.epsilons.tolist() == [0.25]
    assert len(Accountant.load(path)) == 1
    accountant.release(0.5)
    assert ledger.spent.epsilon == 1


def test_a_refusal_of_the_ledger_leaves_the_state_as_it_is(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, ledger=md.Ledger("0.3"), path=path)
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError):
        accountant.release(0.5)
    assert path.read_bytes() == before
    for _ in range(3):
        accountant.release(0.1)


def test_a_lock_that_others_hold_is_named(tmp_path):
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, IDENTITY, path=path, wait=0)
    with hold_lock(path):
        for use in (
            lambda: accountant.release(0.5),
            lambda: Accountant.load(path, wait=0).release(0.5),
            lambda: Accountant(1.0, IDENTITY, path=path, wait=0),
            lambda: Accountant(1.0, IDENTITY, wait=0).save(path),
        ):
            with pytest.raises(LedgerError, match=r"\.a\.json\.lock is held"):
                use()
        assert accountant.largest() == 1.0
    accountant.release(0.5)
    with pytest.raises(InputError, match="wait"):
        Accountant(1.0, wait=-1)


def test_wrong_paths(tmp_path):
    with pytest.raises(InputError, match="path"):
        Accountant(1.0, path=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="path"):
        Accountant.load(None)  # type: ignore[arg-type]
    with pytest.raises(MechdesignError, match="not a folder"):
        Accountant(1.0, path=tmp_path / "no" / "a.json")
    with pytest.raises(StateError):
        Accountant(1.0, path=tmp_path)


def test_a_release_row_of_another_form_is_refused(tmp_path):
    path = tmp_path / "a.json"
    Accountant(1.0, IDENTITY, path=path).release(0.1)
    document = json.loads(path.read_text())
    document.pop("sha256")
    for row in ([-0.1, "0", False], [0.1, 3, False], [0.1, "0", "no"], [0.1], "abc"):
        wrong = document | {"releases": [row]}
        wrong["sha256"] = hashlib.sha256(json.dumps(wrong, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps(wrong))
        with pytest.raises(StateError, match=r"a\.json"):
            Accountant.load(path)
    for key, value in (("ledger", {"path": 3}), ("ledger", "lost"), ("on_excess", "ignore"), ("alpha", -1.0)):
        wrong = document | {key: value}
        wrong["sha256"] = hashlib.sha256(json.dumps(wrong, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps(wrong))
        with pytest.raises(StateError, match=r"a\.json"):
            Accountant.load(path)


def test_one_who_goes_on_without_the_ledger_does_so_alone(tmp_path):
    ledger, path = md.Ledger(2, path=tmp_path / "l.json"), tmp_path / "a.json"
    Accountant(1.0, IDENTITY, ledger=ledger, path=path).release(0.125)
    Accountant.load(path, ledger=None).release(0.125)
    Accountant.load(path).release(0.125)
    assert ledger.spent.epsilon == 0.25
    earlier = Accountant(1.0, IDENTITY, path=tmp_path / "b.json")
    Accountant(1.0, IDENTITY, path=tmp_path / "b.json", ledger=ledger).release(0.125)
    earlier.release(0.125)
    Accountant.load(tmp_path / "b.json").release(0.125)
    assert ledger.spent.epsilon == 0.5


@pytest.mark.parametrize("saved", [False, True])
def test_an_accountant_is_opened_again_before_anything_was_released(tmp_path: Path, saved: bool) -> None:
    ledger = md.Ledger(epsilon=2, path=tmp_path / "l.json")
    if saved:
        Accountant(1.0, ledger=ledger).save(tmp_path / "a.json")
    else:
        Accountant(1.0, ledger=ledger, path=tmp_path / "a.json")
    again = Accountant.load(tmp_path / "a.json")
    again.release(0.5)
    assert ledger.spent.epsilon == md.Ledger(path=tmp_path / "l.json").spent.epsilon == 0.5
