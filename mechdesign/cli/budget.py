"""``mechdesign budget``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mechdesign.cli._arguments import cache_option, layout_options, memory_option, naming_options, show_values_option
from mechdesign.cli._console import at_least, output, say_note, table
from mechdesign.cli._correlations import check_figure, compare_assumptions, loss_of, save_figure, warnings_once
from mechdesign.data.budgets import write_budgets
from mechdesign.synthesis._folders import check_outputs

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction


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
@layout_options(matrices=True)
@memory_option
@cache_option
@show_values_option
def budget(
    alpha: float,
    steps: int | None,
    backward: Path | None,
    forward: Path | None,
    target: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find budgets under which no release ever leaks more than α.

    All releases have the same ε (Algorithm 7 of Cao et al. 2019). With --steps, the first and the last release have
    larger budgets than the others (Algorithm 8).

    Matrices have a row for each current state. Matrices are text files of numbers without a header, .npy files or
    sparse .npz files of SciPy. If a matrix is omitted, the adversary does not know the transitions in that direction.
    Releases are counted from 0.

    A row without observations may be replaced by the word "stay", "mixture" or "any": see `mechdesign chain --ends`. If
    a row is replaced by a word, the results under mixture are also shown.
    """
    if backward is None and forward is None:
        say_note(_UNCORRELATED)
    if steps is None and (target is not None or plot is not None):
        raise click.UsageError("give --steps to write budgets or a figure")
    check_figure(plot, target)
    check_outputs(plot, target, inputs={"--backward": backward, "--forward": forward})
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.leakage._budgets import allocate_budget, constant_budget

    def allocate(before: LossFunction | None, after: LossFunction | None) -> tuple[float, list[float]]:
        constant = constant_budget(alpha, before, after)
        return constant, [] if steps is None else allocate_budget(alpha, steps, before, after).tolist()

    before, after = loss_of(backward, "backward"), loss_of(forward, "forward")
    with naming_options({"alpha": "--alpha", "steps": "--steps"}), warnings_once():
        found = {"ε": allocate(before, after)}
    found |= compare_assumptions(allocate, before, after)
    budgets = found["ε"][1]
    if target is not None:
        write_budgets(target, budgets)
    if as_json:
        said = {name: {"constant": one, "budgets": several or None} for name, (one, several) in found.items()}
        click.echo(json.dumps({"alpha": alpha} | said.pop("ε") | said, indent=2))
    else:
        _show_budgets(found)
    save_figure(plot, lambda figures: figures.leakage_allocation(alpha, len(budgets), before, after))


def _show_budgets(found: Mapping[str, tuple[float, list[float]]]) -> None:
    """Show the ε of the releases, and the ε for any number of releases, under each assumption."""
    shown = table("release", *found, numbers=tuple(found))
    rows = [dict(_name_releases(several)) for _, several in found.values()]
    for name in rows[0]:
        shown.add_row(name, *(f"{at_least(row[name])}" for row in rows))
    shown.add_row("all, for any number of releases", *(f"{at_least(one)}" for one, _ in found.values()))
    output().print(shown)


def _name_releases(budgets: list[float]) -> list[tuple[str, float]]:
    """Return each distinct budget with its releases; all releases between the first and last have the same budget."""
    last = len(budgets) - 1
    places = {0: "0", last: str(last)} if last >= 0 else {}
    if last >= 2:
        places[1] = "1" if last == 2 else f"1 to {last - 1}, each"
    return [(places[step], budgets[step]) for step in sorted(places)]
