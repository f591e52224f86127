"""Correlations in files: transition matrices, mixtures, and figures of their leakage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mechdesign.base import _warnings as warned
from mechdesign.base._errors import BudgetWarning, CorrelationWarning, InputError, SmoothedChainWarning
from mechdesign.base._warnings import collect_warnings
from mechdesign.cli._console import say_note, say_warning
from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_of, direction_of
from mechdesign.data._layout import withholding
from mechdesign.data._matrices import dense, read_chain_matrix
from mechdesign.model._open_chain import as_ends

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction


_FIGURES = (".png", ".svg", ".pdf")
_Found = TypeVar("_Found")


def loss_of(path: Path | None, name: str) -> LossFunction | None:
    """Return the loss function of the matrix in a file, or None without a file; errors name argument and file."""
    if path is None:
        return None
    loss = _read_loss(path, name)
    if loss.cached:
        say_note(f"{path}: the loss function is cached")
    return loss


def _read_loss(path: Path, name: str) -> LossFunction:
    from mechdesign.base._check import rename_path
    from mechdesign.leakage._loss import LossFunction
    from mechdesign.model._open_chain import OpenChain

    place = f"{name} ({path})"
    matrix, word = read_chain_matrix(path)
    counted = counts_of(path)
    if (direction := direction_of(path)) not in ("", name):
        say_warning(
            f"{path} is the {direction} matrix of its chain, but is used as the {name} matrix", UserWarning, "", 0
        )
    if counted is None and (path.parent / CHAIN_COUNTS).exists():
        say_note(f"{path.parent / CHAIN_COUNTS} belongs to other matrices: {path} may have been smoothed")
    with withholding():
        if not word:
            if counted is None or not counted.smoothing:
                return LossFunction(matrix, path=place)
            with warnings_once():
                return LossFunction(counted.chain(dense(matrix, path)), path=place)
        try:
            chain = OpenChain(dense(matrix, path), as_ends(word))
        except InputError as error:
            raise rename_path(error, place, "matrix") from error
        return LossFunction(chain, path=place)


_Losses = tuple["LossFunction | None", "LossFunction | None"]


def _remove_smoothing(before: LossFunction | None, after: LossFunction | None) -> _Losses | None:
    """Return the loss functions of the matrices before smoothing, or None if neither matrix was smoothed."""
    if not any(loss is not None and loss.smoothed is not None for loss in (before, after)):
        return None
    return None if before is None else before.unsmoothed, None if after is None else after.unsmoothed


def _apply_mixture(before: LossFunction | None, after: LossFunction | None) -> tuple[_Losses, str] | None:
    """Return the loss functions under the assumption "mixture" and a note, or None if it changes neither of them."""
    found = [None if loss is None else loss.under_mixture() for loss in (before, after)]
    if all(loss is other for loss, other in zip((before, after), found, strict=True)):
        return None
    counts = [
        f"{len(loss.end_states)} of {loss.n} states of the {name} matrix"
        for name, loss, other in (("backward", before, found[0]), ("forward", after, found[1]))
        if loss is not None and loss is not other
    ]
    stopped = [loss for loss in (before, after) if loss is not None and loss.identity]
    note = (
        f"ends, whose rows are unknown or have a 1 on the diagonal: {' and '.join(counts)}. The values under mixture "
        "hold if the row of each end is any mixture of the other rows"
    )
    if stopped and all(loss.stopped_by_ends for loss in stopped):
        note += ". Only because of the ends, no budget holds over an infinite horizon"
    return (found[0], found[1]), note


def compare_assumptions(
    compute: Callable[[LossFunction | None, LossFunction | None], _Found],
    before: LossFunction | None,
    after: LossFunction | None,
) -> dict[str, _Found]:
    """Return further results: under "mixture" if it changes a loss function, and without smoothing if it was used."""
    found = {}
    if (other := _apply_mixture(before, after)) is not None:
        losses, note = other
        with _suppress_warnings():
            found["mixture"] = compute(*losses)
        say_note(note)
    if (seen := _remove_smoothing(before, after)) is not None:
        with _suppress_warnings():
            found["by the counts alone"] = compute(*seen)
    return found


@contextmanager
def warnings_once() -> Iterator[None]:
    """Show each warning about budgets and correlations once."""
    with collect_warnings(BudgetWarning, CorrelationWarning, SmoothedChainWarning) as caught:
        yield
    for message, kind in dict.fromkeys((str(warning), type(warning)) for warning in caught):
        say_warning(message, kind, "", 0)


@contextmanager
def _suppress_warnings() -> Iterator[None]:
    """Suppress warnings about budgets and correlations, because they were shown for the given assumptions."""
    with warned.suppress_warnings(BudgetWarning, CorrelationWarning):
        yield


def check_figure(path: Path | None, target: Path | None = None) -> None:
    """Raise `InputError` for a figure with an unknown suffix, or with the path `target` of a table."""
    if path is not None and target is not None and path.absolute() == target.absolute():
        raise InputError("--plot", "is the file of --output", value=str(path), bound="another file")
    if path is not None and path.suffix.lower() not in _FIGURES:
        raise InputError("--plot", "has an unknown suffix", value=str(path), bound=f"one of {', '.join(_FIGURES)}")


def save_figure(path: Path | None, draw: Callable[[Any], Any]) -> None:
    """Draw a leakage figure, and write it if a path is given."""
    if path is None:
        return
    from mechdesign.report import _leakage_figures as leakage_figures
    from mechdesign.report import _style as style

    with _suppress_warnings():
        style.save_figure(draw(leakage_figures), path)
