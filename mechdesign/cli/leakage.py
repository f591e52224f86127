"""``mechdesign leakage`` and ``mechdesign chain``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.certify._exact import as_decimal, float_up
from mechdesign.cli._arguments import (
    cache_option,
    example_for,
    example_option,
    input_files,
    matrix_options,
    naming_options,
    read_specification,
)
from mechdesign.cli._console import at_most, output, say_note, show_next, table
from mechdesign.cli._correlations import check_figure, losses, save_figure, warnings_once
from mechdesign.data.budgets import read_budgets
from mechdesign.data.matrices import Declared
from mechdesign.model._open_chain import ENDS
from mechdesign.specification.examples import on_disk
from mechdesign.synthesis._folders import check_folder, check_no_input_in, check_outputs

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction


# ε per release and number of releases for `--example`, if the caller gives none.
_EXAMPLE_EPSILON, _EXAMPLE_STEPS = 0.1, 10
_FILE = click.Path(path_type=Path)
_MEANINGS = {
    "largest": "largest leakage of one release",
    "total": "all releases together",
    "supremum": "each release, over an infinite horizon",
}


@click.command()
@click.argument("backward", metavar="[P.csv]", required=False, type=_FILE)
@example_option("leakage")
@click.option("--forward", metavar="F.csv", type=_FILE, help="Pr(next state | state now).")
@click.option("--epsilon", metavar="ε", type=float, help="Budget of every release, in nats.")
@click.option("--steps", metavar="T", type=click.IntRange(min=1), help="Number of releases.")
@click.option(
    "--budgets",
    "budget_file",
    metavar="FILE",
    type=_FILE,
    help="File of budgets written by `mechdesign budget`, instead of --epsilon.",
)
@click.option(
    "--window", "width", metavar="W", type=click.IntRange(min=1), help="Also show the leakage of any W releases."
)
@click.option("--plot", metavar="FILE", type=_FILE, help="Write a figure: .png, .svg or .pdf.")
@click.option("-o", "--output", "target", metavar="FILE", type=_FILE, help="Write the table as CSV, with every digit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@matrix_options
@cache_option
def leakage(
    backward: Path | None,
    example: str | None,
    forward: Path | None,
    epsilon: float | None,
    steps: int | None,
    budget_file: Path | None,
    width: int | None,
    plot: Path | None,
    target: Path | None,
    as_json: bool,
    header: Declared,
    index: Declared,
) -> None:
    """Show the leakage of repeated releases of correlated data, in nats.

    P.csv contains the matrix Pr(state before | state now), with a row for each current state. P.csv is a CSV of
    numbers, a .npy file or a sparse .npz file of SciPy. Without P.csv, give --forward, for an adversary who only knows
    the transitions to the next state. Releases are counted from 0.

    A row of zeros is unknown, and read as any row: see `mechdesign chain --ends`.
    """
    if example is not None and backward is not None:
        raise click.UsageError("give P.csv or --example NAME, not both")
    if example is not None and budget_file is None:
        epsilon = _EXAMPLE_EPSILON if epsilon is None else epsilon
        steps = _EXAMPLE_STEPS if steps is None else steps
    elif example is None and backward is None and forward is None:
        raise click.UsageError("give a matrix: P.csv, --forward F.csv, or both; or --example NAME")
    budgets = _budgets(epsilon, steps, budget_file)
    check_figure(plot, target)
    inputs = {"P.csv": backward, "--forward": forward, "--budgets": budget_file}
    check_outputs(plot, target, inputs=inputs)
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.leakage import _recursion as recursion

    if example is not None:
        header = index = True
    with nullcontext(backward) if example is None else on_disk(example_for(example, "leakage").file) as matrix:
        before, after = losses({"backward": matrix, "forward": forward}, header, index)
    with naming_options({"width": "--window"}), warnings_once():
        columns = {
            "epsilon": budgets,
            "backward": recursion.backward(budgets, before),
            "forward": recursion.forward(budgets, after),
            "temporal": recursion.temporal(budgets, before, after),
        }
        facts = _facts(budgets, width, before, after)
    if target is not None:
        _write_table(target, columns)
    if as_json:
        lists = {name: values.tolist() for name, values in columns.items()}
        # JSON has no infinity: null means that there is no bound.
        finite = {name: value if math.isfinite(value) else None for name, value in facts.items()}
        click.echo(json.dumps(lists | {"facts": finite}, indent=2))
    else:
        _print_table(columns)
        _print_facts(facts, width)
        if example is not None:
            show_next(_next(example))
    save_figure(plot, lambda figures: figures.leakage(budgets, before, after))


def _print_facts(facts: Mapping[str, float], width: int | None) -> None:
    """Show the leakage of releases."""
    shown = table("", "nats", numbers=("nats",))
    for name, value in facts.items():
        meaning = f"any {width} successive releases together" if name == "window" else _MEANINGS[name]
        shown.add_row(meaning, at_most(value) if math.isfinite(value) else "no bound")
    output().print(shown)


def _facts(
    budgets: Floats, width: int | None, before: LossFunction | None, after: LossFunction | None
) -> dict[str, float]:
    """Return the leakage of one release, of a window, and of all releases; see `_MEANINGS`."""
    from mechdesign.leakage import _recursion as composition
    from mechdesign.leakage import _recursion as recursion

    facts = {"largest": float(recursion.temporal(budgets, before, after).max())}
    if width is not None:
        facts["window"] = float(composition.windows(budgets, width, before, after).max())
    facts["total"] = float_up(sum(map(as_decimal, budgets.tolist()), Fraction(0)))
    if len(set(budgets.tolist())) == 1:
        facts["supremum"] = recursion.supremum(float(budgets[0]), before, after)
    return facts


def _next(example: str) -> dict[str, str]:
    named = "--header --index"
    return {
        f"mechdesign leakage --example {example} --plot leakage.svg": "draw this leakage",
        f"mechdesign examples {example} > P.csv": "a matrix of your own: change it",
        f"mechdesign leakage P.csv {named} --epsilon 0.1 --steps 10": "the leakage of releases under this matrix",
        f"mechdesign budget --alpha 1 --steps 10 --backward P.csv {named}": "the ε with which none leaks more than 1",
    }


def _budgets(epsilon: float | None, steps: int | None, path: Path | None) -> Floats:
    if path is not None:
        if epsilon is not None or steps is not None:
            raise click.UsageError("give either --budgets or --epsilon with --steps")
        return read_budgets(path)
    if epsilon is None or steps is None:
        raise click.UsageError("give --epsilon and --steps, or --budgets")
    if not 0 <= epsilon < math.inf:
        remedy = "a budget is the privacy loss ε of one release, in nats"
        raise InputError("--epsilon", "is not accepted", value=epsilon, bound="a finite number >= 0", remedy=remedy)
    return np.full(steps, epsilon)


def _print_table(columns: dict[str, Floats]) -> None:
    shown = table("release", *columns, numbers=("release", *columns))
    count = len(columns["epsilon"])
    # Show only both ends of a long series; -o writes the whole series.
    steps = range(count) if count <= 40 else [*range(20), None, *range(count - 20, count)]
    for step in steps:
        if step is None:
            shown.add_row("…", *(f"{count - 40} more" if name == "epsilon" else "" for name in columns))
        else:
            shown.add_row(str(step), *(at_most(values[step]) for values in columns.values()))
    console = output()
    console.print(shown)
    console.print()


def _write_table(path: Path, columns: dict[str, Floats]) -> None:
    lines = [",".join(["step", *columns])]
    for step, row in enumerate(zip(*(values.tolist() for values in columns.values()), strict=True)):
        lines.append(",".join([str(step), *map(repr, row)]))
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


@click.command()
@click.argument("specification", metavar="SPEC.toml", type=_FILE)
@click.argument("tables", metavar="[TABLE.csv...]", nargs=-1, type=_FILE)
@click.option("-o", "--output", "folder", metavar="DIR", type=_FILE, default=Path("chain"), show_default=True)
@click.option("--every", metavar="TIME", help='First resample the data to steps of this length, such as "5 min".')
@click.option("--gap", metavar="TIME", help="Split the data at longer pauses than this; default: three steps.")
@click.option(
    "--ends",
    type=click.Choice(ENDS),
    help="The row of a state without observed steps: any row, written as zeros (the default), or a 1 on the diagonal.",
)
@click.option("--overwrite", is_flag=True, help="Replace a chain in DIR.")
def chain(
    specification: Path,
    tables: tuple[Path, ...],
    folder: Path,
    every: str | None,
    gap: str | None,
    ends: Literal["any", "stay"] | None,
    overwrite: bool,
) -> None:
    """Write forward and backward transition matrices of secrets, for `leakage`, `budget` and `release`.

    The chain is given by [release] in SPEC.toml, or is counted in the data of the prior. DIR gets forward.csv, Pr(next
    state | state now), backward.csv, Pr(state before | state now), and states.csv, which labels their rows. States
    without visits are left out of all three files. Files of a counted chain are private, and only you can read them.

    Rows of forward.csv are counted from the steps that leave a state, rows of backward.csv from the steps that enter
    it, without smoothing. For a state without such steps, --ends determines the row. `leakage` and `budget` read a row
    of zeros as any row; a release needs --ends stay.

    With a specification of a table, the chain is counted over all values of its domain. The column `step` of [table]
    states the time step of each row; without it, each TABLE.csv is one step, the month or integer by which its name
    differs from the others. Names must be in the order of steps. `mechdesign ledger series` reads DIR.
    """
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.specification import _table_specification as table_specification
    from mechdesign.specification._chain_files import chain_files
    from mechdesign.specification._table_chains import DOMAIN, table_chain_files

    names = ("forward.csv", "backward.csv", "states.csv", DOMAIN)
    if tables and (every, gap, ends) != (None, None, None):
        raise click.UsageError("--every, --gap and --ends are for chains of places; the steps of a table are given")
    with warnings_once():
        if tables:
            files, notes = table_chain_files(table_specification.read(specification), tables)
        else:
            files, notes = chain_files(read_specification(specification, None, "release"), every, gap, ends)
    held = "" if overwrite or not any((folder / name).exists() for name in names) else "a chain"
    check_folder(folder, names, "a chain", first=names, held=held)
    check_no_input_in(folder, names, input_files(specification) | {str(path): path for path in tables})
    from mechdesign.base._atomic import make_folder, replacing, write_file
    from mechdesign.base._files import note_readers

    # The files reveal how the people in the data move.
    make_folder(folder, private=True)
    for name in files:
        note_readers(folder / name)
    # A mixture of two chains would pass for one.
    with replacing(folder, names):
        for name, content in files.items():
            write_file(folder / name, [content], private=True)
    for note in notes:
        say_note(note)
    output().print(f"{folder}: {', '.join(files)}", soft_wrap=True)
    both = f"{folder}/backward.csv --forward {folder}/forward.csv"
    kept = f"mechdesign ledger series LEDGER --alpha 1 --chain {folder} --steps 12 --history own"
    show_next(
        {
            **({kept: "keep this promise in a ledger (others, if counted from other people)"} if tables else {}),
            f"mechdesign leakage {both} --epsilon 0.1 --steps 10": "the leakage of releases of these data",
            f"mechdesign budget --alpha 1 --steps 10 --backward {both}": "the ε with which none leaks more than 1",
        }
    )
