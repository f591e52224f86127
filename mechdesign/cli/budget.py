"""``mechdesign budget``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mechdesign.cli._arguments import cache_option, matrix_options, naming_options
from mechdesign.cli._console import at_least, output, say_note, table
from mechdesign.cli._correlations import check_figure, losses, save_figure, warnings_once
from mechdesign.data.budgets import write_budgets
from mechdesign.data.matrices import Declared
from mechdesign.synthesis._folders import check_outputs

_UNCORRELATED = (
    "neither --backward nor --forward is given: the budgets hold for an adversary who assumes that successive data are "
    "independent"
)
_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--alpha", metavar="α", type=float, required=True, help="Largest leakage of each release, in nats.")
@click.option("--steps", metavar="T", type=click.IntRange(min=1), help="Number of releases; default: one ε forever.")
@click.option("--backward", metavar="B.csv", type=_FILE, help="Pr(state before | state now).")
@click.option("--forward", metavar="F.csv", type=_FILE, help="Pr(next state | state now).")
@click.option(
    "-o", "--output", "target", metavar="FILE", type=_FILE,
    help="Write the budgets as CSV, for `leakage --budgets`.",
)  # fmt: skip
@click.option("--plot", metavar="FILE", type=_FILE, help="Write a figure of budgets and leakage: .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@matrix_options
@cache_option
def budget(
    alpha: float,
    steps: int | None,
    backward: Path | None,
    forward: Path | None,
    target: Path | None,
    plot: Path | None,
    as_json: bool,
    header: Declared,
    index: Declared,
) -> None:
    """Find budgets under which no release ever leaks more than α.

    All releases have the same ε (Algorithm 7 of Cao et al. 2019). With --steps, the first and the last release have
    larger budgets than the others (Algorithm 8).

    Matrices have a row for each current state: CSV files of numbers, .npy files or sparse .npz files of SciPy. If a
    matrix is omitted, the adversary does not know the transitions in that direction. Releases are counted from 0.

    A row of zeros is unknown, and read as any row: see `mechdesign chain --ends`.
    """
    if backward is None and forward is None:
        say_note(_UNCORRELATED)
    if steps is None and (target is not None or plot is not None):
        raise click.UsageError("give --steps to write budgets or a figure")
    check_figure(plot, target)
    check_outputs(plot, target, inputs={"--backward": backward, "--forward": forward})
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.leakage._budgets import allocate_budget, constant_budget

    before, after = losses({"backward": backward, "forward": forward}, header, index)
    with naming_options({"alpha": "--alpha", "steps": "--steps"}), warnings_once():
        constant = constant_budget(alpha, before, after)
        budgets = [] if steps is None else allocate_budget(alpha, steps, before, after).tolist()
    if target is not None:
        write_budgets(target, budgets)
    if as_json:
        click.echo(json.dumps({"alpha": alpha, "constant": constant, "budgets": budgets or None}, indent=2))
    else:
        _show_budgets(constant, budgets)
    save_figure(plot, lambda figures: figures.leakage_allocation(alpha, len(budgets), before, after))


def _show_budgets(constant: float, budgets: list[float]) -> None:
    """Show the ε of the releases, and the ε for any number of releases."""
    shown = table("release", "ε", numbers=("ε",))
    for name, budget in (*_name_releases(budgets), ("all, for any number of releases", constant)):
        shown.add_row(name, f"{at_least(budget)}")
    output().print(shown)


def _name_releases(budgets: list[float]) -> list[tuple[str, float]]:
    """Return each distinct budget with its releases; all releases between the first and last have the same budget."""
    last = len(budgets) - 1
    places = {0: "0", last: str(last)} if last >= 0 else {}
    if last >= 2:
        places[1] = "1" if last == 2 else f"1 to {last - 1}, each"
    return [(places[step], budgets[step]) for step in sorted(places)]
