"""The file of an accountant: JSON with exact numbers and a digest of itself, written as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

from mechdesign.atomic import write_file
from mechdesign.errors import StateError
from mechdesign.leakage.lines import Line, are_pieces
from mechdesign.leakage.loss import LossFunction

__all__ = ["read_state", "write_state"]

_SCHEMA = "mechdesign.leakage.accountant/1"

_Losses = tuple[list[LossFunction | None], list[LossFunction | None]]


def write_state(
    path: str | PathLike[str], alpha: float, on_excess: str, epsilons: list[float], losses: _Losses
) -> None:
    """Write the state; raise `ExportError` when that fails, and then the old file is untouched."""
    state: dict[str, Any] = {
        "schema": _SCHEMA,
        "alpha": alpha,
        "on_excess": on_excess,
        "epsilons": epsilons,
        "backward": [_described(loss) for loss in losses[0]],
        "forward": [_described(loss) for loss in losses[1]],
    }
    state["sha256"] = _digest(state)
    write_file(path, [json.dumps(state, indent=1, allow_nan=False).encode(), b"\n"])


def read_state(path: str | PathLike[str]) -> tuple[float, str, list[float], _Losses]:
    """Return (alpha, on_excess, epsilons, losses) of a saved state; raise `StateError` for anything else."""
    source = Path(path)
    try:
        state = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise StateError(f"{source} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise StateError(f"{source} is not JSON ({error})") from error
    if not isinstance(state, dict) or state.get("schema") != _SCHEMA:
        raise StateError(f"{source} is not the state of an accountant of this version, {_SCHEMA}")
    claimed = state.pop("sha256", None)
    try:
        if claimed != _digest(state):
            raise StateError(f"{source} was damaged or changed: its digest does not match. Restore a copy")
        if not state["backward"] or not state["forward"]:
            raise StateError(f"{source} is incomplete: it names no correlations, not even none")
        return (
            _number(state["alpha"]),
            str(state["on_excess"]),
            [_number(epsilon) for epsilon in state["epsilons"]],
            ([_loss(entry) for entry in state["backward"]], [_loss(entry) for entry in state["forward"]]),
        )
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{source} is incomplete ({error!r})") from error


def _described(loss: LossFunction | None) -> dict[str, Any] | None:
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


def _digest(state: dict[str, Any]) -> str:
    # Shortest decimal texts of floats read back as the same floats.
    return hashlib.sha256(json.dumps(state, sort_keys=True, allow_nan=False).encode()).hexdigest()
