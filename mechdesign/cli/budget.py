"""``mechdesign budget``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mechdesign.cli.console import output, table
from mechdesign.cli.correlations import check_figure, loss_of, warnings_once
from mechdesign.data.budgets import write_budgets
from mechdesign.export.files import check_writable

__all__ = ["budget"]

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--alpha", metavar="α", type=float, required=True, help="What each release may leak, in nats.")
@click.option("--steps", metavar="T", type=click.IntRange(min=1), help="Number of releases; else one ε for ever.")
@click.option("--backward", metavar="B.csv", type=_FILE, help="Pr(state before | state now).")
@click.option("--forward", metavar="F.csv", type=_FILE, help="Pr(next state | state now).")
@click.option(
    "-o", "--output", "target", metavar="FILE", type=_FILE,
    help="Write the budgets as CSV, for `leakage --budgets` and for designs.",
)  # fmt: skip
@click.option("--plot", metavar="FILE", type=_FILE, help="Write a figure of budgets and leakage: .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
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

    Matrices are numbers without a header, a row for each state now, or .npy, or a sparse .npz of SciPy. A matrix left
    out means that the adversary knows nothing of that direction. Releases are counted from 0.
    """
    if steps is None and (target is not None or plot is not None):
        raise click.UsageError("give --steps to write budgets or a figure")
    check_figure(plot)
    for path in (plot, target):
        if path is not None:
            check_writable(path.parent)
    # Imported late: wrong usage is refused at once.
    from mechdesign.leakage.budgets import allocate_budget, constant_budget

    before, after = loss_of(backward, "backward"), loss_of(forward, "forward")
    with warnings_once():
        constant = constant_budget(alpha, before, after)
        budgets = [] if steps is None else allocate_budget(alpha, steps, before, after).tolist()
        if plot is not None:
            from mechdesign.leakage import plots
            from mechdesign.report.figures import save_figure

            save_figure(plots.allocation(alpha, len(budgets), before, after), plot)
    if target is not None:
        write_budgets(target, budgets)
    if as_json:
        click.echo(json.dumps({"alpha": alpha, "constant": constant, "budgets": budgets or None}, indent=2))
        return
    shown = table("release", "ε", numbers=("ε",))
    for name, epsilon in _named(budgets):
        shown.add_row(name, f"{epsilon:.10g}")
    shown.add_row("all, for any number of releases", f"{constant:.10g}")
    output().print(shown)


def _named(budgets: list[float]) -> list[tuple[str, float]]:
    """Return the budgets that differ, with the releases that they are for: all between first and last are alike."""
    last = len(budgets) - 1
    places = {0: "0", last: str(last)} if last >= 0 else {}
    if last >= 2:
        places[1] = "1" if last == 2 else f"1 to {last - 1}, each"
    return [(places[step], budgets[step]) for step in sorted(places)]
