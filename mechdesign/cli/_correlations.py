"""Correlations in files: transition matrices, and figures of their leakage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._errors import InputError, withholding_values
from mechdesign.base._names import Named, Names
from mechdesign.cli._arguments import matrix_options
from mechdesign.cli._console import say_note
from mechdesign.cli._found import FILE
from mechdesign.data.matrices import Declared, match_names, read_any_matrix

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction


def correlation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that state a correlation, which `correlation_files` reads."""
    for option in (
        matrix_options,
        click.option("--forward", metavar="F.csv", type=FILE, help="Pr(next state | state now)."),
        click.option("--backward", metavar="B.csv", type=FILE, help="Pr(state before | state now)."),
        click.option("--chain", metavar="DIR", type=FILE, help="Folder of `mechdesign chain`, with both matrices."),
    ):
        command = option(command)
    return command


def correlation_files(chain: Path | None, backward: Path | None, forward: Path | None) -> dict[str, Path | None]:
    """Return the files of both matrices, from a folder of `mechdesign chain` or one by one."""
    if chain is None:
        return {"backward": backward, "forward": forward}
    if backward is not None or forward is not None:
        raise click.UsageError("give --chain, or --backward and --forward, not both")
    found: dict[str, Path | None] = {name: chain / f"{name}.csv" for name in ("backward", "forward")}
    if not all(file.is_file() for file in found.values() if file):
        bound = "a folder of `mechdesign chain`, with backward.csv and forward.csv"
        raise InputError("--chain", "is not a chain", value=str(chain), bound=bound)
    return found


def losses(
    files: Mapping[str, Path | None], header: Declared = None, index: Declared = None, states: Names = ()
) -> list[LossFunction | None]:
    """Return the loss function of the matrix in each file, or None without a file; errors name argument and file.

    Rows and columns with names are taken in the order of `states`, or else of the first named rows.
    """
    from mechdesign.leakage._loss import LossFunction

    found: list[LossFunction | None] = []
    for name, path in files.items():
        if path is None:
            found.append(None)
            continue
        matrix = read_any_matrix(path, header, index)
        if isinstance(matrix, Named):
            states = states or matrix.rows
            matrix = match_names(matrix, f"{name} ({path})", states, states)
        with withholding_values():
            loss = LossFunction(matrix, path=f"{name} ({path})")
        if states and loss.n != len(states):
            bound = f"{len(states)}, one for each name"
            raise InputError(f"{name} ({path})", "has another number of states", value=loss.n, bound=bound)
        found.append(loss)
        if loss.cached:
            say_note(f"{path}: the loss function is cached")
        if count := len(loss.unknown):
            say_note(f"{path}: {count} of {loss.n} rows are zeros, so they are unknown and may be any row")
    return found
