"""The file of an accountant: its format, and checks of its ledger and of its loss functions."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import StateError
from mechdesign.base._files import read_own
from mechdesign.leakage._correlations import Correlation, candidate_functions, check_directions
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._support import Line, are_pieces
from mechdesign.leakage._transitions import as_not_negative, as_target
from mechdesign.leakage.accounting import Ledger

_SCHEMA = "mechdesign.leakage.accountant/1"

_CLOSE = "{path} {why}: other users could delete releases from it. Check it, and make it private: chmod 600 {path}"

Losses = tuple[tuple[LossFunction | None, ...], tuple[LossFunction | None, ...]]

LedgerDescription = Path | Literal["none", "memory"]
"""The ledger of an accountant: a path, "none" or "memory"."""


class Charged(NamedTuple):
    """A release with its ε, a random number of 128 bits, and whether a ledger records it under this number."""

    epsilon: float
    number: str | None
    in_ledger: bool = False


@dataclass(frozen=True)
class AccountantState:
    """The content of an accountant's file."""

    alpha: float
    on_excess: str
    losses: Losses
    releases: tuple[Charged, ...] = ()
    ledger: LedgerDescription = "none"

    def same_promise(self, other: AccountantState) -> bool:
        """Return whether another state has the same promise: α, `on_excess` and the digests of the matrices."""
        return _promise(self) == _promise(other)


def write_state(path: Path, state: AccountantState) -> bytes:
    """Write the state and return its bytes; raise `ExportError` on failure, which leaves the old file untouched."""
    document: dict[str, Any] = {
        "schema": _SCHEMA,
        "alpha": state.alpha,
        "on_excess": state.on_excess,
        "ledger": {"path": str(state.ledger)} if isinstance(state.ledger, Path) else state.ledger,
        "releases": [[*release] for release in state.releases],
        "backward": [_loss_to_json(loss) for loss in state.losses[0]],
        "forward": [_loss_to_json(loss) for loss in state.losses[1]],
    }
    document["sha256"] = _digest(document)
    content = json.dumps(document, allow_nan=False).encode() + b"\n"
    write_file(path, [content], private=True)
    return content


def read_content(path: Path) -> bytes:
    """Return the bytes of a state that only its owner can write; raise `StateError` if it cannot be read."""
    try:
        return read_own(path, lambda why: StateError(_CLOSE.format(path=path, why=why)), or_root=True)
    except OSError as error:
        raise StateError(f"{path} cannot be read ({error.strerror})") from error


def parse_state(path: Path, content: bytes) -> AccountantState:
    """Return the state in a file; raise `StateError` for any other content."""
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StateError(f"{path} is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise StateError(f"{path} is not the state of an accountant of this version, {_SCHEMA}")
    claimed = document.pop("sha256", None)
    try:
        if claimed != _digest(document):
            raise StateError(f"{path} was damaged or changed: its digest does not match. Restore a copy")
        if not document["backward"] or not document["forward"]:
            raise StateError(f"{path} is incomplete: its list of correlations is empty")
        if document["on_excess"] not in ("refuse", "warn"):
            raise ValueError(f"{document['on_excess']!r} is not a value of on_excess")
        return AccountantState(
            as_target(_number(document["alpha"])),
            document["on_excess"],
            (tuple(map(_loss, document["backward"])), tuple(map(_loss, document["forward"]))),
            tuple(_release(*entry) for entry in document["releases"]),
            _ledger(document["ledger"]),
        )
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{path} is incomplete ({error!r})") from error


def _release(epsilon: Any, number: Any, in_ledger: Any) -> Charged:
    if not (number is None or isinstance(number, str)) or not isinstance(in_ledger, bool):
        raise ValueError(f"{[epsilon, number, in_ledger]!r} is not a release")
    return Charged(_budget(epsilon), number, in_ledger)


def _budget(value: Any) -> float:
    return as_not_negative(_number(value), "epsilon")


def _ledger(said: Any) -> LedgerDescription:
    if isinstance(said, dict) and isinstance(said["path"], str):
        return Path(said["path"])
    if said in ("none", "memory"):
        return said  # type: ignore[no-any-return]
    raise ValueError(f"{said!r} does not name a ledger")


def _promise(state: AccountantState) -> tuple[Any, ...]:
    sides = [[loss and (loss.n, loss.digest) for loss in losses] for losses in state.losses]
    return state.alpha, state.on_excess, sides


def _loss_to_json(loss: LossFunction | None) -> dict[str, Any] | None:
    return None if loss is None else {"n": loss.n, "matrix_sha256": loss.digest, "lines": [[*x] for x in loss.lines]}


def _loss(entry: Any) -> LossFunction | None:
    if entry is None:
        return None
    lines = [Line(*(_number(value) for value in line)) for line in entry["lines"]]
    if not are_pieces(lines):
        raise ValueError("the pieces of a loss function are out of order or out of range")
    return LossFunction.from_lines(int(entry["n"]), str(entry["matrix_sha256"]), lines)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _digest(document: dict[str, Any]) -> str:
    # The shortest decimal text of a float reads back as the same float.
    return hashlib.sha256(json.dumps(document, sort_keys=True, allow_nan=False).encode()).hexdigest()


_WITHOUT = "or open it without a ledger by Accountant.load(…, ledger=None)"


def describe_ledger(ledger: Ledger | None) -> LedgerDescription:
    """Return the value that a state stores for a ledger."""
    if ledger is None:
        return "none"
    return "memory" if ledger.path is None else ledger.path


def ledger_of(path: Path, state: AccountantState, given: Ledger | Literal["saved"] | None) -> Ledger | None:
    """Return the ledger to charge: the given ledger, or the ledger that the state names, reopened.

    Raises `StateError` if the ledger of the state is missing, was in memory, or differs from the given one.
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
            f"{path} charges the ledger {state.ledger}, which is missing. Restore it, give its replacement as ledger=, "
            f"{_WITHOUT}"
        )
    ledger = Ledger(path=state.ledger)
    _require_releases(path, state, ledger)
    return ledger


def require_ledger(path: Path, state: AccountantState, given: Ledger | None) -> None:
    """Raise `StateError` unless a ledger is the file that the state names or records the releases of the state.

    A ledger in memory cannot be identified; the caller is responsible for it.
    """
    if given is None:
        if state.ledger != "none":
            which = "one in memory" if state.ledger == "memory" else str(state.ledger)
            raise StateError(f"{path} charges a ledger, {which}: give it as ledger=, {_WITHOUT}")
    elif isinstance(state.ledger, Path):
        _require_releases(path, state, given)


def _require_releases(path: Path, state: AccountantState, ledger: Ledger) -> None:
    known = {entry.number for entry in ledger.entries}
    lost = [index for index, release in enumerate(state.releases) if release.in_ledger and release.number not in known]
    if lost:
        where = "in memory" if ledger.path is None else ledger.path
        raise StateError(
            f"the ledger {where} lacks release {lost[0]} of {path}: it is an older copy or another ledger. Restore it, "
            f"{_WITHOUT}"
        )


# Largest relative difference between loss functions of one matrix that two machines computed.
_TOLERANCE = 1e-9


def check_losses(path: Path, losses: Losses, given: tuple[Correlation, Correlation]) -> Losses:
    """Replace the losses by those of the given matrices in each direction that is not "saved".

    Raises `StateError` if the state in `path` belongs to other matrices, or its pieces do not match its matrices.
    """
    found = list(losses)
    for side, (name, correlation) in enumerate(zip(("backward", "forward"), given, strict=True)):
        if isinstance(correlation, str) and correlation == "saved":
            continue
        functions = tuple(candidate_functions(correlation, name))
        if [loss and loss.digest for loss in functions] != [loss and loss.digest for loss in losses[side]]:
            raise StateError(f"{path} is for another {name} matrix than the given one")
        if not all(map(_alike, functions, losses[side])):
            raise StateError(f"{path} holds pieces that do not match its {name} matrix. Restore a copy")
        found[side] = functions
    known, following = ([[loss] for loss in side] for side in found)
    check_directions(known, following, stacklevel=4)
    return found[0], found[1]


def _alike(one: LossFunction | None, other: LossFunction | None) -> bool:
    """Return whether two loss functions agree at all breakpoints, between them, and beyond the last breakpoint."""
    if one is None or other is None:
        return one is other
    bends = np.unique(np.concatenate([one.pieces.start, other.pieces.start, [1.0]]))
    bends = bends[np.isfinite(bends)]
    between = (bends[1:] + bends[:-1]) / 2
    points = np.concatenate([bends, between, bends[-1] * np.array([1.5, 2.0]) + 1e-3])
    values = np.asarray(one(points)), np.asarray(other(points))
    same_states = one.n == other.n
    return same_states and bool(np.allclose(*values, rtol=_TOLERANCE, atol=0.0))
