"""Whether the pieces in the state of an accountant are those of given matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mechdesign.base._errors import StateError
from mechdesign.leakage.accountant_file import Losses
from mechdesign.leakage.correlation import Correlation
from mechdesign.leakage.correlation import candidate_functions
from mechdesign.leakage.loss import LossFunction
from mechdesign.leakage.pairing import check_directions

__all__ = ["checked_losses"]


def __dir__() -> list[str]:
    return sorted(__all__)


# How far pieces of one matrix may differ that two machines found.
_TOLERANCE = 1e-9


def checked_losses(path: Path, losses: Losses, given: tuple[Correlation, Correlation]) -> Losses:
    """Return the loss functions of the matrices that are given, for each direction that is not "saved".

    Raises `StateError` where the state in `path` is about other matrices, or its pieces are not theirs.
    """
    found = list(losses)
    for side, (name, correlation) in enumerate(zip(("backward", "forward"), given, strict=True)):
        if isinstance(correlation, str) and correlation == "saved":
            continue
        functions = tuple(candidate_functions(correlation, name))
        if [loss and loss.digest for loss in functions] != [loss and loss.digest for loss in losses[side]]:
            raise StateError(f"{path} is about another {name} matrix than the one that is given")
        if not all(map(_alike, functions, losses[side])):
            raise StateError(f"{path} holds pieces that are not those of its {name} matrix. Restore a copy")
        found[side] = functions
    known, following = ([[loss] for loss in side] for side in found)
    check_directions(known, following, stacklevel=4)
    return found[0], found[1]


def _alike(one: LossFunction | None, other: LossFunction | None) -> bool:
    """Whether two loss functions of one digest have the same values where either bends, between, and beyond."""
    if one is None or other is None:
        return one is other
    bends = np.unique(np.concatenate([one.pieces.start, other.pieces.start, [1.0]]))
    bends = bends[np.isfinite(bends)]
    between = (bends[1:] + bends[:-1]) / 2
    points = np.concatenate([bends, between, bends[-1] * np.array([1.5, 2.0]) + 1e-3])
    values = np.asarray(one(points)), np.asarray(other(points))
    same_states = one.n == other.n
    return same_states and bool(np.allclose(*values, rtol=_TOLERANCE, atol=0.0))
