"""Accountants in files: the same promise and the same ledger again, and nothing forgotten."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from company import at_once, in_child, needs_fork
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.base._locks import lock_file_of
from mechdesign.errors import BudgetExceededError, ExportError, InputError, LedgerError, StateError
from mechdesign.leakage import _accountant as room
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._correlations import Candidates

IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
MILD = [[0.8, 0.2], [0.2, 0.8]]


@pytest.fixture
def kept(tmp_path: Path) -> md.Ledger:
    return md.Ledger(2, path=tmp_path / "l.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.json"


def digested(document: dict[str, Any]) -> str:
    """Return the text of a state with the digest of its content."""
    document = {name: value for name, value in document.items() if name != "sha256"}
    document["sha256"] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return json.dumps(document)


def refusal(use: Callable[[], object]) -> str:
    """Return the message with which a state is refused, empty if it is accepted."""
    try:
        use()
    except StateError as error:
        return str(error)
    return ""


def test_saves_and_loads(path: Path) -> None:
    P = np.random.default_rng(0).dirichlet(np.full(20, 0.3), 20)
    accountant = Accountant(3.0, Candidates([P, None]), P)
    accountant.save(path)
    assert len(Accountant.load(path)) == 0
    for epsilon in (0.1, 1 / 3, 0.2):
        accountant.release(epsilon)
    accountant.save(path)
    again = Accountant.load(path)
    assert again.alpha == 3.0
    assert again.leakage.tolist() == accountant.leakage.tolist()
    assert again.largest() == accountant.largest()
    assert again.release(0.1) == accountant.release(0.1)
    assert {entry.name for entry in path.parent.iterdir()} == {"a.json", ".a.json.lock"}
    with pytest.raises(ExportError, match="could not be written"):
        accountant.save(path.parent / "no" / "a.json")


def test_a_save_during_releases_is_whole(path: Path) -> None:
    accountant = Accountant(100.0, MILD, MILD)

    def save() -> None:
        for _ in range(10):
            accountant.save(path)
            Accountant.load(path, bound=False)

    at_once(save, lambda: [accountant.release(0.1) for _ in range(20)])
    accountant.save(path)
    assert len(Accountant.load(path)) == 20


def test_every_change_is_noticed(path: Path) -> None:
    accountant = Accountant(1.0, MILD, path=path)
    accountant.release(0.25)
    content, state = path.read_bytes(), json.loads(path.read_text())
    texts: dict[str, str | bytes] = {
        f"{key} is {value!r}": json.dumps(state | {key: value})
        for key, value in {
            "alpha": 2.0, "releases": [], "on_excess": "warn", "backward": [None], "forward": [], "schema": "x",
            "sha256": "0",
        }.items()
    }  # fmt: skip
    for key in state:
        texts[f"no {key}"] = json.dumps({name: value for name, value in state.items() if name != key})
    for row in ([-0.1, "0", False], [0.1, 3, False], [0.1, "0", "no"], [0.1], "abc"):
        texts[f"signed release {row}"] = digested(state | {"releases": [row]})
    for key, value in (
        ("ledger", {"path": 3}), ("ledger", "lost"), ("on_excess", "ignore"), ("alpha", -1.0), ("forward", []),
    ):  # fmt: skip
        texts[f"signed {key} {value}"] = digested(state | {key: value})
    # More was released than the promise allows.
    texts["signed excess"] = digested(state | {"releases": [[0.9, "0", False], [0.9, "1", False]]})
    texts |= {f"{length} bytes": content[:length] for length in range(0, len(content) - 2, 29)}
    texts |= {f"{text!r}": text for text in (b"{", b"[]", b"null", b"\xff\xfe\x00", b'{"schema": 1}')}
    passed = []
    for name, text in texts.items():
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        uses = (lambda: Accountant.load(path), lambda: accountant.release(0.01))
        passed += [name for use in uses if "a.json" not in refusal(use)]
    assert passed == []
    path.write_bytes(content)
    assert accountant.release(0.01) > 0


def test_a_path_goes_on_where_it_holds_the_same_promise(path: Path) -> None:
    Accountant(1.0, MILD, path=path).release(0.5)
    again = Accountant(1.0, MILD, path=path)
    assert (again.epsilons.tolist(), again.path) == ([0.5], path.resolve())
    for other in (
        lambda: Accountant(2.0, MILD, path=path),
        lambda: Accountant(1.0, IDENTITY, path=path),
        lambda: Accountant(1.0, MILD, MILD, path=path),
        lambda: Accountant(1.0, MILD, on_excess="warn", path=path),
    ):
        with pytest.raises(StateError, match="another promise"):
            other()
    assert len(again) == 1


def test_a_save_does_not_forget(path: Path) -> None:
    accountant = Accountant(1.0, IDENTITY)
    accountant.save(path)
    accountant.release(0.25)
    accountant.save(path)
    Accountant.load(path).release(0.25)
    for release in (False, True):
        if release:
            # An equal release of somebody else's is not taken for ours.
            accountant.release(0.25)
        with pytest.raises(StateError, match="that this accountant lacks"):
            accountant.save(path)
    with pytest.raises(StateError, match="another promise"):
        Accountant(2.0, IDENTITY).save(path)
    assert Accountant.load(path).epsilons.tolist() == [0.25, 0.25]
    other = path.with_name("notes.txt")
    other.write_text("mine")
    with pytest.raises(StateError):
        accountant.save(other)
    assert other.read_text() == "mine"


def test_what_if(path: Path, kept: md.Ledger) -> None:
    Accountant(1.0, IDENTITY, ledger=kept, path=path).release(0.5)
    before = path.read_bytes()
    trial = Accountant.load(path, bound=False)
    assert trial.path is None
    trial.release(0.5)
    assert trial.largest() == 0.0
    assert kept.spent.epsilon == 0.5
    assert path.read_bytes() == before
    link = path.with_name("link.json")
    link.symlink_to(path)
    for same in (path, str(path), link):
        with pytest.raises(StateError, match="bound=False"):
            trial.save(same)
    assert_refused(
        [
            Mistake("a ledger", lambda: Accountant.load(path, bound=False, ledger=kept), "ledger"),
            *(
                Mistake(f"bound {value!r}", lambda value=value: Accountant.load(path, bound=value), "bound")
                for value in ("no", 0, None)
            ),
        ]
    )
    # The link leads to the file itself.
    Accountant.load(link).release(0.25)
    assert len(Accountant.load(path)) == 2


def test_a_state_says_which_ledger_it_had(path: Path, kept: md.Ledger) -> None:
    for saved in (False, True):
        # It is opened again before anything was released.
        begun = path.with_name(f"{saved}.json")
        accountant = Accountant(1.0, IDENTITY, ledger=kept, path=None if saved else begun)
        if saved:
            accountant.save(begun)
        Accountant.load(begun).release(0.0625)
    assert kept.spent.epsilon == 0.125
    Accountant(1.0, IDENTITY, ledger=kept, path=path).release(0.125)
    Accountant.load(path).release(0.25)
    assert kept.spent.epsilon == 0.5
    Accountant.load(path, ledger=md.Ledger(path=kept.path)).release(0.125)
    assert kept.spent.epsilon == 0.625
    with pytest.raises(StateError, match="lacks release 0"):
        Accountant.load(path, ledger=md.Ledger(2))
    with pytest.raises(StateError, match="charges a ledger"):
        Accountant(1.0, IDENTITY, path=path)
    # One who goes on without the ledger does so alone.
    Accountant.load(path, ledger=None).release(0.125)
    assert kept.spent.epsilon == 0.625
    Accountant.load(path).release(0.125)
    assert kept.spent.epsilon == 0.75
    assert_refused(
        [
            Mistake("a name", lambda: Accountant.load(path, ledger="l.json"), "ledger"),
            Mistake("its file", lambda: Accountant(1.0, ledger=kept, path=kept.path), "path", "the file of the ledger"),
        ]
    )


def test_a_ledger_that_is_missing_or_was_put_back_is_noticed(path: Path, kept: md.Ledger) -> None:
    accountant = Accountant(1.0, IDENTITY, ledger=kept, path=path)
    accountant.release(0.25)
    assert kept.path is not None
    old = kept.path.read_bytes()
    accountant.release(0.25)
    kept.path.write_bytes(old)
    with pytest.raises(StateError, match="lacks release 1"):
        Accountant.load(path)
    kept.path.unlink()
    with pytest.raises(StateError, match="missing"):
        Accountant.load(path)
    assert len(Accountant.load(path, ledger=None)) == 2


def test_a_ledger_in_memory_must_be_given(path: Path) -> None:
    ledger = md.Ledger(2)
    accountant = Accountant(1.0, IDENTITY, ledger=ledger)
    accountant.release(0.25)
    accountant.save(path)
    with pytest.raises(StateError, match="in memory"):
        Accountant.load(path)
    Accountant.load(path, ledger=ledger).release(0.25)
    assert ledger.spent.epsilon == 0.5
    assert len(Accountant.load(path, ledger=None)) == 2


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_ledger_in_memory_is_refused_elsewhere_before_anything_is_written(path: Path) -> None:
    accountant = Accountant(1.0, IDENTITY, ledger=md.Ledger(1), path=path)

    def work() -> int:
        with pytest.raises(LedgerError):
            accountant.release(0.25)
        return 7

    assert in_child(work) == 7
    assert len(accountant) == 0


def test_pieces_are_checked_against_matrices(path: Path) -> None:
    P = np.random.default_rng(1).dirichlet(np.full(5, 0.5), 5)
    Accountant(1.0, P, Candidates([P, None]), path=path).release(0.1)
    assert len(Accountant.load(path, backward=P, forward=Candidates([P, None]))) == 1
    for wrong in ({"backward": MILD}, {"backward": None}, {"forward": P}, {"forward": Candidates([None, P])}):
        with pytest.raises(StateError, match="another"):
            Accountant.load(path, **wrong)
    document = json.loads(path.read_text())
    for line in document["backward"][0]["lines"]:
        line[0] *= 0.5
    path.write_text(digested(document))
    assert Accountant.load(path).preview(0.5)[-1] < md.leakage.temporal([0.1, 0.5], P)[-1]
    with pytest.raises(StateError, match="pieces"):
        Accountant.load(path, backward=P)


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_a_state_that_others_can_write_is_refused(path: Path) -> None:
    accountant = Accountant(1.0, IDENTITY, path=path)
    for mode in (0o664, 0o646, 0o666):
        path.chmod(mode)
        for use in (lambda: Accountant.load(path), lambda: accountant.release(0.25)):
            with pytest.raises(StateError, match="by others"):
                use()


def test_a_crash_between_ledger_and_state_leaves_more_recorded(
    path: Path, kept: md.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    accountant = Accountant(1.0, IDENTITY, ledger=kept, path=path)
    accountant.release(0.25)

    def fails(*_: object) -> None:
        raise ExportError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(room, "write_state", fails)
        with pytest.raises(ExportError, match="Nothing may be released, although the ledger has recorded"):
            accountant.release(0.25)
        with pytest.raises(ExportError, match=r"^the disk is full$"):
            accountant.release(0.0)
    assert kept.spent.epsilon == 0.5
    assert accountant.epsilons.tolist() == [0.25]
    assert len(Accountant.load(path)) == 1
    accountant.release(0.5)
    assert kept.spent.epsilon == 1


def test_a_refusal_of_the_ledger_leaves_the_state_as_it_is(path: Path) -> None:
    accountant = Accountant(1.0, IDENTITY, ledger=md.Ledger("0.3"), path=path)
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError):
        accountant.release(0.5)
    assert path.read_bytes() == before
    for _ in range(3):
        accountant.release(0.1)


def test_wrong_places(path: Path) -> None:
    for use in (
        lambda: Accountant(1.0, path=path.parent / "no" / "a.json"),
        lambda: Accountant.load(path),
    ):
        with pytest.raises((StateError, ExportError)):
            use()
    folder = path.parent
    for use in (
        lambda: Accountant(1.0, path=folder),
        lambda: Accountant.load(folder),
        lambda: Accountant(1.0).save(folder),
        lambda: md.Ledger(1, path=folder),
    ):
        with pytest.raises(InputError, match="path: is a folder"):
            use()
    assert not lock_file_of(folder).exists()
