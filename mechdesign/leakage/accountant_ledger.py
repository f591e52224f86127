"""Which ledger a saved accountant had, and whether the one that it gets is this."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mechdesign.accounting.ledger import Ledger
from mechdesign.base._errors import StateError
from mechdesign.leakage.accountant_file import LedgerSaid
from mechdesign.leakage.accountant_file import State

__all__ = ["ledger_of", "require_ledger", "said_of"]


def __dir__() -> list[str]:
    return sorted(__all__)


_WITHOUT = "or go on without it by Accountant.load(…, ledger=None)"


def said_of(ledger: Ledger | None) -> LedgerSaid:
    """Return what a state says of its ledger."""
    if ledger is None:
        return "none"
    return "memory" if ledger.path is None else ledger.path


def ledger_of(path: Path, state: State, given: Ledger | Literal["saved"] | None) -> Ledger | None:
    """Return the ledger that an accountant goes on with: the given one, or that of its state opened again.

    Raises `StateError` where the state's ledger is missing, was in memory, or is another than the given one.
    """
    if given is None:
        return None
    if isinstance(given, Ledger):
        require_ledger(path, state, given)
        return given
    if state.ledger == "memory":
        raise StateError(f"{path} had a ledger in memory: give it as ledger=, {_WITHOUT}")
    if not isinstance(state.ledger, Path):
        return None
    if not state.ledger.exists():
        raise StateError(
            f"{path} charges the ledger {state.ledger}, which is missing. Restore it, give the one that took its place "
            f"as ledger=, {_WITHOUT}"
        )
    ledger = Ledger(path=state.ledger)
    _require_releases(path, state, ledger)
    return ledger


def require_ledger(path: Path, state: State, given: Ledger | None) -> None:
    """Raise `StateError` unless a ledger may go on for that of a state: the same file, or one with its releases.

    A ledger in memory cannot be told from another; whoever gives one vouches for it.
    """
    if given is None:
        if state.ledger not in ("none", "unsaid"):
            which = "one in memory" if state.ledger == "memory" else str(state.ledger)
            raise StateError(f"{path} charges a ledger, {which}: give it as ledger=, {_WITHOUT}")
    elif isinstance(state.ledger, Path):
        _require_releases(path, state, given)


def _require_releases(path: Path, state: State, ledger: Ledger) -> None:
    known = {entry.number for entry in ledger.entries}
    lost = [index for index, release in enumerate(state.releases) if release.in_ledger and release.number not in known]
    if lost:
        where = "in memory" if ledger.path is None else ledger.path
        raise StateError(
            f"the ledger {where} lacks release {lost[0]} of {path}: it was put back, or is another. Restore it, "
            f"{_WITHOUT}"
        )
