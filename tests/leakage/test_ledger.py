"""The ledger: exact sums, refusals that record nothing, and a file that survives crashes and company."""

from __future__ import annotations

import json
import multiprocessing
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.base import _atomic as atomic
from mechdesign.errors import BudgetExceededError, ExportError, InputError, LedgerError

WHOM = "one person's record"


def test_sums_are_exact():
    ledger = md.Ledger(epsilon=1)
    for _ in range(10):
        ledger.spend("a count", WHOM, epsilon=0.1)
    assert ledger.spent.epsilon == 1
    assert ledger.remaining_epsilon == 0
    with pytest.raises(BudgetExceededError, match=re.escape("another count would spend ε = 0.001, but 0 of 1 is left")):
        ledger.spend("another count", WHOM, epsilon="0.001")
    assert len(ledger.entries) == 10


@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1), min_size=1, max_size=8))
def test_the_budget_itself_may_be_spent_and_nothing_beyond(amounts):
    total = sum(amounts)
    enough, short = md.Ledger(epsilon=total), md.Ledger(epsilon=total - Fraction(1, 10**9))
    for amount in amounts[:-1]:
        enough.spend("x", WHOM, epsilon=amount)
        short.spend("x", WHOM, epsilon=amount)
    enough.spend("x", WHOM, epsilon=amounts[-1])
    with pytest.raises(BudgetExceededError):
        short.spend("x", WHOM, epsilon=amounts[-1])
    assert len(short.entries) == len(amounts) - 1


def test_pure_releases_cost_half_their_square_in_rho():
    ledger = md.Ledger(rho=1)
    ledger.spend("gaussian", WHOM, rho="1/2")
    ledger.spend("geometric", WHOM, epsilon=1)
    assert ledger.remaining_rho == 0
    assert ledger.spent.epsilon is None
    with pytest.raises(BudgetExceededError):
        ledger.check("more", WHOM, epsilon="1e-6")


def test_a_budget_in_epsilon_takes_no_gaussian_noise():
    with pytest.raises(BudgetExceededError, match="zCDP only"):
        md.Ledger(epsilon=100).spend("gaussian", WHOM, rho="1e-9")


def test_disjoint_parts_cost_the_largest():
    ledger = md.Ledger(epsilon=1)
    for region in ("north", "south", "west"):
        ledger.spend("a histogram", WHOM, epsilon="0.6", part=("region", region))
    assert ledger.spent.epsilon == Fraction(3, 5)
    with pytest.raises(BudgetExceededError):
        ledger.spend("again", WHOM, epsilon="0.5", part=("region", "north"))
    ledger.spend("again", WHOM, epsilon="0.4", part=("region", "north"))
    with pytest.raises(BudgetExceededError):
        ledger.spend("the whole", WHOM, epsilon="0.1")


def test_without_a_budget_it_only_records():
    ledger = md.Ledger()
    ledger.spend("all", WHOM, epsilon=1000)
    ledger.spend("all", WHOM, rho=1000)
    assert [entry.what for entry in ledger.entries] == ["all", "all"]
    assert ledger.remaining_epsilon is None
    assert repr(ledger) == "Ledger(2 entries)"


def test_a_file_outlives_the_process(tmp_path):
    path = tmp_path / "ledger.json"
    entry = md.Ledger(epsilon=1, path=path).spend("a histogram", WHOM, epsilon="0.75")
    again = md.Ledger(path=path)
    assert again.entries == (entry,)
    assert again.epsilon == 1
    with pytest.raises(BudgetExceededError):
        again.spend("another", WHOM, epsilon="0.5")
    with pytest.raises(LedgerError, match=re.escape("another budget (ε = 1, not ε = 2)")):
        md.Ledger(epsilon=2, path=path)


def test_two_values_on_one_file_see_each_other(tmp_path):
    first, second = (md.Ledger(epsilon=1, path=tmp_path / "ledger.json") for _ in range(2))
    first.spend("a", WHOM, epsilon="0.6")
    with pytest.raises(BudgetExceededError):
        second.spend("b", WHOM, epsilon="0.6")
    second.spend("b", WHOM, epsilon="0.4")
    assert [entry.what for entry in first.entries] == ["a", "b"]


def _spend_often(path: Path) -> int:
    ledger, made = md.Ledger(epsilon=1, path=path), 0
    for _ in range(15):
        try:
            ledger.spend("a count", WHOM, epsilon="0.05")
            made += 1
        except BudgetExceededError:
            break
    return made


def test_processes_never_spend_more_than_the_budget_together(tmp_path):
    path = tmp_path / "ledger.json"
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        made = pool.map(_spend_often, [path] * 3)
    assert sum(made) == 20
    assert md.Ledger(path=path).spent.epsilon == 1


def test_a_write_that_fails_records_nothing(tmp_path, monkeypatch):
    path = tmp_path / "ledger.json"
    ledger = md.Ledger(epsilon=1, path=path)
    ledger.spend("a", WHOM, epsilon="0.5")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mechdesign.base._atomic.os.replace", full)
    with pytest.raises(ExportError, match="No space left"):
        ledger.spend("b", WHOM, epsilon="0.5")
    monkeypatch.undo()
    assert [entry.what for entry in md.Ledger(path=path).entries] == ["a"]
    assert ledger.remaining_epsilon == Fraction(1, 2)


@pytest.mark.parametrize("damage", ["digit", "cut", "empty", "schema", "list"])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = tmp_path / "ledger.json"
    ledger = md.Ledger(epsilon=1, path=path)
    ledger.spend("a", WHOM, epsilon="0.5")
    text = path.read_text()
    damaged = {
        "digit": text.replace("0.5", "0.4"),
        "cut": text[:-40],
        "empty": "",
        "schema": text.replace("ledger/2", "ledger/9"),
        "list": "[]",
    }[damage]
    path.write_text(damaged)
    with pytest.raises(LedgerError):
        md.Ledger(path=path)
    with pytest.raises(LedgerError):
        ledger.spend("b", WHOM, epsilon="0.1")


def test_a_shortened_history_is_noticed(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = md.Ledger(epsilon=1, path=path)
    ledger.spend("a", WHOM, epsilon="0.5")
    before = path.read_text()
    ledger.spend("b", WHOM, epsilon="0.5")
    path.write_text(before)
    with pytest.raises(LedgerError, match="no longer holds"):
        ledger.spend("c", WHOM, epsilon="0.1")


def test_no_true_number_is_lost_in_the_file(tmp_path):
    path = tmp_path / "ledger.json"
    md.Ledger(epsilon="1/3", path=path).spend("a third", WHOM, epsilon="1/3")
    document = json.loads(path.read_text())
    assert document["epsilon"] == "1/3"
    assert md.Ledger(path=path).remaining_epsilon == 0


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda: md.Ledger(epsilon=-1), "epsilon"),
        (lambda: md.Ledger(rho="x"), "rho"),
        (lambda: md.Ledger().spend("", WHOM, epsilon=1), "what"),
        (lambda: md.Ledger().spend("x", " ", epsilon=1), "protects"),
        (lambda: md.Ledger().spend("x", WHOM), "epsilon"),
        (lambda: md.Ledger().spend("x", WHOM, epsilon=1, rho=1), "epsilon"),
        (lambda: md.Ledger().spend("x", WHOM, epsilon=0), "epsilon"),
        (lambda: md.Ledger().spend("x", WHOM, rho=float("nan")), "rho"),
        (lambda: md.Ledger().spend("x", WHOM, epsilon=1, part="north"), "part"),
    ],
)
def test_wrong_input_names_the_argument(call, path):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.path == path


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(LedgerError, match="not a folder"):
        md.Ledger(epsilon=1, path=tmp_path / "nowhere" / "ledger.json").spend("x", WHOM, epsilon=1)


def test_links_and_other_folders_lead_to_the_same_file(tmp_path, monkeypatch):
    file, link = tmp_path / "ledger.json", tmp_path / "link.json"
    link.symlink_to(file)
    monkeypatch.chdir(tmp_path)
    direct, relative = md.Ledger(epsilon=1, path=file), md.Ledger(epsilon=1, path="ledger.json")
    direct.spend("x", WHOM, epsilon="0.6")
    linked = md.Ledger(path=link)
    linked.spend("x", WHOM, epsilon="0.3")
    assert link.is_symlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for ledger in (direct, linked, relative):
        with pytest.raises(BudgetExceededError):
            ledger.spend("x", WHOM, epsilon="0.2")
        assert len(ledger.entries) == 2
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_path_that_is_none():
    with pytest.raises(InputError, match="path"):
        md.Ledger(epsilon=1, path=5)


def test_the_name_of_the_file_is_on_the_disk_before_an_entry_is_returned(tmp_path, monkeypatch):
    done = []
    replace, synchronise = atomic.os.replace, atomic._synchronise
    monkeypatch.setattr(atomic.os, "replace", lambda *names: (replace(*names), done.append("named")))
    monkeypatch.setattr(atomic, "_synchronise", lambda folder: (synchronise(folder), done.append(folder)))
    md.Ledger(epsilon=1, path=tmp_path / "ledger.json").spend("x", WHOM, epsilon=1)
    # It is made empty first.
    assert done == ["named", tmp_path.resolve()] * 2


@pytest.mark.parametrize("path", [None, "ledger.json"])
@pytest.mark.parametrize("text", ["a\ud800", "\udfff", "x" * 10**6 + "\ud800"])
def test_what_no_file_can_hold_is_refused(tmp_path: Path, path: str | None, text: str) -> None:
    ledger = md.Ledger(epsilon=1, path=None if path is None else tmp_path / path)
    for arguments in (
        {"what": text, "protects": WHOM},
        {"what": "x", "protects": text},
        {"what": "x", "protects": WHOM, "part": ("a", text)},
        {"what": "x", "protects": WHOM, "part": (text, "a")},
    ):
        with pytest.raises(InputError, match="is not a text at character") as caught:
            ledger.spend(**arguments, epsilon="1/2")
        assert len(str(caught.value)) < 300
        assert len(str(caught.value.__context__ or "")) < 300 or caught.value.__suppress_context__
    assert ledger.entries == ()
    assert ledger.spend("naïve 😀 counts", WHOM, epsilon="1/2")


def test_a_hard_link_is_no_second_ledger(tmp_path: Path) -> None:
    path, other = tmp_path / "ledger.json", tmp_path / "other.json"
    md.Ledger(epsilon=1, path=path).spend("a count", WHOM, epsilon="1/2")
    other.hardlink_to(path)
    for name in (path, other):
        ledger = md.Ledger(path=name)
        assert ledger.remaining_epsilon == Fraction(1, 2)
        with pytest.raises(LedgerError, match="has a second name"):
            ledger.spend("a count", WHOM, epsilon="1/2")
    other.unlink()
    assert md.Ledger(path=path).spend("a count", WHOM, epsilon="1/2")
    assert md.Ledger(path=path).remaining_epsilon == 0
