"""Threads, processes, forks and kills at what keeps a budget: a sample of interleavings."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import interleavings
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

KINDS = [
    "ledger in memory",
    "ledger in a file",
    "table releases",
    "series in memory",
    "series in a file",
    "trace, ledger in memory",
    "trace, ledger in a file",
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_more_is_released_than_recorded_nor_recorded_than_allowed(kind: str) -> None:
    make = {each.kind: each for each in interleavings.KINDS}[kind]
    ended = [interleavings.run(make, seed) for seed in range(3)]
    assert [each.faults for each in ended] == [()] * 3
    assert sum(each.lines["released"] for each in ended)


class Careless:
    """A budget in a file that is read, and replaced a moment later, with no lock at all."""

    def __init__(self, path: Path, budget: Fraction) -> None:
        self.path, self.budget = path, budget

    def spent(self) -> Fraction:
        return Fraction((self.path.exists() and self.path.read_text()) or 0)

    def spend(self, epsilon: str) -> None:
        after = self.spent() + Fraction(epsilon)
        if after > self.budget:
            raise self._refusal()
        time.sleep(0.002)
        self.path.write_text(str(after))

    def _refusal(self) -> Exception:
        from mechdesign.errors import BudgetExceededError

        return BudgetExceededError("the budget would be passed")


def careless() -> type[Any]:
    class Kind(interleavings.Kept):  # type: ignore[name-defined, misc]
        kind, in_file = "careless", True

        def make(self) -> Any:
            return Careless(self.folder / "spent.json", self.budget)

        opened = make

        def release(self, kept: Any) -> Iterator[str]:
            kept.spend(self.share)
            yield self.share

        def recorded(self, kept: Any) -> tuple[Fraction, bool]:
            return kept.spent(), kept.spent() <= self.budget

    return Kind


def test_what_is_released_past_the_record_is_found() -> None:
    ended = (interleavings.run(careless(), seed) for seed in range(40))
    assert any(fault.startswith("released") for each in ended for fault in each.faults)


def test_who_waits_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kind(careless()):  # type: ignore[misc]
        kind = "waits"

        def release(self, kept: Any) -> Iterator[str]:
            threading.Event().wait()
            yield self.share

    monkeypatch.setattr(interleavings, "TIMEOUT_S", 0.5)
    assert ("somebody waits for ever",) in [interleavings.run(Kind, seed).faults for seed in range(2)]


def test_all_kinds_are_run() -> None:
    assert [each.kind for each in interleavings.KINDS] == KINDS
