"""What commands share: matrices from files, and the kinds of figures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.cli.console import say_warning
from mechdesign.data.matrices import read_any_matrix
from mechdesign.errors import BudgetWarning, CorrelationWarning, InputError

if TYPE_CHECKING:
    from mechdesign.leakage import LossFunction

__all__ = ["check_figure", "loss_of", "warnings_once"]

_FIGURES = (".png", ".svg", ".pdf")


def loss_of(path: Path | None, name: str) -> LossFunction | None:
    """Return the loss function of the matrix in a file, or None for no file; errors name the argument and the file."""
    if path is None:
        return None
    from mechdesign.leakage import LossFunction

    return LossFunction(read_any_matrix(path), path=f"{name} ({path})")


@contextmanager
def warnings_once() -> Iterator[None]:
    """Show each warning about budgets and correlations once, however often it is given."""
    with warnings.catch_warnings(record=True) as caught:
        for category in (BudgetWarning, CorrelationWarning):
            warnings.simplefilter("always", category)
        yield
    for message, kind in dict.fromkeys((str(warning.message), warning.category) for warning in caught):
        say_warning(message, kind, "", 0)


def check_figure(path: Path | None) -> None:
    """Raise `InputError` for a figure in a format that cannot be written."""
    if path is not None and path.suffix.lower() not in _FIGURES:
        raise InputError("--plot", "has no known ending", value=str(path), bound=f"one of {', '.join(_FIGURES)}")
