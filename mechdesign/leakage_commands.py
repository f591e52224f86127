"""The commands `leakage` and `budget`: click commands that a group can add."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sparse

from mechdesign.errors import InputError, MechdesignError

__all__ = ["budget", "leakage", "read_matrix"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUTPUT = click.Path(dir_okay=False, path_type=Path)


def read_matrix(path: Path) -> Any:
    """Read a square matrix from .csv (comma, semicolon or blanks; # starts a comment), .npy, or .npz (SciPy sparse).

    Raises `InputError` naming the file, and the line where there is one.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        if suffix == ".npz":
            return sparse.load_npz(io.BytesIO(path.read_bytes()))
        return _read_text(path)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            str(path), f"cannot be read as a matrix ({error})", bound=".csv, .npy or sparse .npz"
        ) from error


def _read_text(path: Path) -> np.ndarray:
    rows: list[list[float]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        delimiter = ";" if ";" in text else "," if "," in text else None
        fields = text.split(delimiter)
        try:
            row = [float("x" if "_" in field else field) for field in fields]
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}",
                "is not a row of numbers",
                value=text[:60],
                remedy="leave out headers and labels, and write decimals with a point",
            ) from error
        if rows and len(row) != len(rows[0]):
            raise InputError(
                f"{path}, line {number}", "differs in length", value=len(row), bound=f"{len(rows[0])} numbers"
            )
        rows.append(row)
    if not rows:
        raise InputError(str(path), "holds no numbers", bound="one row of probabilities a line")
    return np.array(rows)


@click.command()
@click.argument("backward", type=_FILE, required=False)
@click.option("--forward", type=_FILE, help="Pr(next state | state now), as a file.")
@click.option("--epsilon", type=float, help="Budget of every release, in nats.")
@click.option("--steps", type=click.IntRange(min=1), help="Number of releases.")
@click.option("--budgets", "budget_file", type=_FILE, help="Budgets from a file of `budget -o`, instead.")
@click.option("--window", "width", type=click.IntRange(min=1), help="Also what any so many releases leak together.")
@click.option("--plot", type=_OUTPUT, help="Write a figure: .png, .svg or .pdf.")
@click.option("-o", "--output", type=_OUTPUT, help="Write the table as CSV, with every digit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def leakage(
    backward: Path | None,
    forward: Path | None,
    epsilon: float | None,
    steps: int | None,
    budget_file: Path | None,
    width: int | None,
    plot: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show what repeated releases leak when data are correlated in time.

    BACKWARD is a file with the matrix Pr(state before | state now), a row for each state now. Leave it out, and give
    --forward, for an adversary who knows only how data go on.
    """
    from mechdesign import leakage as room

    if backward is None and forward is None:
        raise click.UsageError("give a matrix: BACKWARD, --forward, or both")
    try:
        before, after = _function(backward, "backward"), _function(forward, "forward")
        if budget_file is not None:
            if epsilon is not None or steps is not None:
                raise click.UsageError("give either --budgets or --epsilon with --steps")
            budgets = room.read_budgets(budget_file)
        elif epsilon is None or steps is None:
            raise click.UsageError("give --epsilon and --steps, or --budgets")
        else:
            budgets = np.full(steps, epsilon)
        columns = {
            "epsilon": budgets,
            "backward": room.backward(budgets, before),
            "forward": room.forward(budgets, after),
            "temporal": room.temporal(budgets, before, after),
        }
        facts: dict[str, float] = {
            "largest": float(columns["temporal"].max()),
            "all together": math.fsum(budgets),
        }
        if width is not None:
            facts[f"any {width} together"] = float(room.windows(budgets, width, before, after).max())
        if len(set(budgets.tolist())) == 1:
            facts["supremum"] = room.supremum(float(budgets[0]), before, after)
        if output is not None:
            _write_table(output, columns)
        if plot is not None:
            from mechdesign.leakage import plots

            _save(plots.leakage(budgets, before, after), plot)
    except MechdesignError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        lists = {name: values.tolist() for name, values in columns.items()}
        named = {name: value if math.isfinite(value) else None for name, value in facts.items()}
        click.echo(json.dumps(lists | {"facts": named}, indent=1))
        return
    _print_table(columns)
    for name, value in facts.items():
        meaning = {"supremum": "each, if releases go on for ever", "largest": "the most that one release leaks"}
        shown = f"{value:.6f}" if math.isfinite(value) else "no bound"
        click.echo(f"{meaning.get(name, name)}: {shown}")


@click.command()
@click.option("--alpha", type=float, required=True, help="What each release may leak, in nats.")
@click.option("--steps", type=click.IntRange(min=1), help="Number of releases; without it, one ε for ever.")
@click.option("--backward", type=_FILE, help="Pr(state before | state now), as a file.")
@click.option("--forward", type=_FILE, help="Pr(next state | state now), as a file.")
@click.option("-o", "--output", type=_OUTPUT, help="Write the budgets as CSV, for `leakage --budgets` and designs.")
@click.option("--plot", type=_OUTPUT, help="Write a figure of budgets and leakage: .png, .svg or .pdf.")
def budget(
    alpha: float,
    steps: int | None,
    backward: Path | None,
    forward: Path | None,
    output: Path | None,
    plot: Path | None,
) -> None:
    """Find budgets under which no release ever leaks more than ALPHA."""
    import warnings

    from mechdesign import leakage as room

    if steps is None and (output is not None or plot is not None):
        raise click.UsageError("give --steps to write budgets or a figure")
    try:
        before, after = _function(backward, "backward"), _function(forward, "forward")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", room.BudgetWarning)
            constant = room.constant_budget(alpha, before, after)
            budgets = None if steps is None else room.allocate_budget(alpha, steps, before, after)
            if budgets is not None and plot is not None:
                from mechdesign.leakage import plots

                _save(plots.allocation(alpha, len(budgets), before, after), plot)
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            click.echo(f"warning: {message}", err=True)
        if budgets is not None and output is not None:
            room.write_budgets(output, budgets)
    except MechdesignError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"constant, for any number of releases: {constant:.6g}")
    if budgets is None:
        return
    if len(budgets) == 1:
        click.echo(f"one release: {budgets[0]:.6g}")
        return
    click.echo(f"first release: {budgets[0]:.6g}")
    if len(budgets) > 2:
        click.echo(f"each of the {len(budgets) - 2} between: {budgets[1]:.6g}")
    click.echo(f"last release: {budgets[-1]:.6g}")


def _function(path: Path | None, name: str) -> Any:
    from mechdesign.leakage import LossFunction

    return None if path is None else LossFunction(read_matrix(path), path=f"{name} ({path})")


def _print_table(columns: dict[str, np.ndarray]) -> None:
    click.echo("release" + "".join(f"{name:>12}" for name in columns))
    count = len(columns["epsilon"])
    # The ends of a long series say most; -o writes all of it.
    shown = [*range(count)] if count <= 40 else [*range(20), -1, *range(count - 20, count)]
    for step in shown:
        if step < 0:
            click.echo(f"    ... {count - 40} more")
            continue
        click.echo(f"{step:>7}" + "".join(f"{values[step]:>12.6f}" for values in columns.values()))


def _write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["step", *columns])
            for step, row in enumerate(zip(*(values.tolist() for values in columns.values()), strict=True)):
                writer.writerow([step, *map(repr, row)])
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})") from error


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be written ({error})", bound=".png, .svg or .pdf") from error
