"""``mechdesign budget``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click
import numpy as np

from mechdesign.cli._arguments import cache_option, layout_options, memory_option, naming_options, show_values_option
from mechdesign.cli._console import at_least, errors, number, output, say_note, table
from mechdesign.cli._correlations import (
    apply_mixture,
    check_figure,
    compare_assumptions,
    loss_of,
    remove_smoothing,
    save_figure,
    suppress_warnings,
    warnings_once,
)
from mechdesign.data._budgets import read_cost_curves, read_weights, write_budgets
from mechdesign.data._layout import withholding
from mechdesign.synthesis._folders import check_outputs

if TYPE_CHECKING:
    from mechdesign.leakage._best_budgets import BestBudgets
    from mechdesign.leakage._loss import LossFunction


_UNCORRELATED = (
    "neither --backward nor --forward is given: the budgets hold for an adversary who assumes that successive data are "
    "independent"
)
_FILE = click.Path(path_type=Path)
_TOLERANCE = 0.01
_OPTIONS = {name: f"--{name}" for name in ("alpha", "steps", "window", "tolerance")}


@click.command()
@click.option("--alpha", metavar="α", type=float, required=True, help="Largest leakage of each release, in nats.")
@click.option("--steps", metavar="T", type=click.IntRange(min=1), help="Number of releases; default: one ε forever.")
@click.option("--backward", metavar="B.csv", type=_FILE, help="Pr(state before | state now).")
@click.option("--forward", metavar="F.csv", type=_FILE, help="Pr(next state | state now).")
@click.option(
    "--cost", "cost_file", metavar="FILE", type=_FILE,
    help="Minimise the total cost: costs by ε, columns epsilon,cost or step,epsilon,cost; or SPEC.toml, for which "
    "channels are designed.",
)  # fmt: skip
@click.option("--weights", metavar="FILE", type=_FILE, help="With --cost: the weight of each release, column weight.")
@click.option(
    "--window", metavar="W", type=click.IntRange(min=1),
    help="With --cost: bound the leakage of any W successive releases together by α.",
)  # fmt: skip
@click.option(
    "--tolerance", metavar="SHARE", type=float,
    help="With --cost: largest relative distance from the least cost.  [default: 0.01]",
)  # fmt: skip
@click.option(
    "-o", "--output", "target", metavar="FILE", type=_FILE,
    help="Write the budgets as CSV, for `leakage --budgets` and for designs.",
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
    cost_file: Path | None,
    weights: Path | None,
    window: int | None,
    tolerance: float | None,
    target: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find budgets under which no release ever leaks more than α.

    Without --cost, all releases have the same ε. With --steps, the first and the last release have larger budgets than
    the others (Algorithms 7 and 8 of Cao et al. 2019). With --cost, the budgets have the least total cost: unimportant
    releases get little or nothing, so that other releases get more. A lower bound on the least cost is also shown.

    Matrices have a row for each current state. Matrices are text files of numbers without a header, .npy files or
    sparse .npz files of SciPy. If a matrix is omitted, the adversary does not know the transitions in that direction.
    Releases are counted from 0.

    A row without observations may be replaced by the word "stay", "mixture" or "any": see `mechdesign chain --ends`. If
    a row is replaced by a word, the results under mixture are also shown.
    """
    if cost_file is None and [weights, window, tolerance] != [None, None, None]:
        raise click.UsageError("give --cost with --weights, --window or --tolerance")
    if backward is None and forward is None:
        say_note(_UNCORRELATED)
    if cost_file is not None:
        limits = _Limits(window=window or 1, tolerance=_TOLERANCE if tolerance is None else tolerance)
        with naming_options(_OPTIONS | _curve_paths(cost_file)):
            _least_cost(alpha, steps, (backward, forward), (cost_file, weights), limits, (target, plot), as_json)
        return
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
    with naming_options(_OPTIONS), warnings_once():
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


def _curve_paths(source: Path) -> dict[str, str]:
    """Return the names of points of curves in a file of costs, for error messages."""
    file = str(source).replace("\\", r"\\")
    columns = {"epsilons": "epsilon", "costs": "cost"}
    where = {
        rf"costs\[(\d+)\]\.{own}\[(\d+)\]": rf"{file}, curve \1, point \2, {name}" for own, name in columns.items()
    }
    return where | {r"costs\[(\d+)\]": rf"{file}, curve \1"}


class _Limits(TypedDict):
    """Limits of the search: the number of successive releases that α bounds together, and the tolerance of the cost."""

    window: int
    tolerance: float


def _least_cost(
    alpha: float,
    steps: int | None,
    matrices: tuple[Path | None, Path | None],
    files: tuple[Path, Path | None],
    limits: _Limits,
    outputs: tuple[Path | None, Path | None],
    as_json: bool,
) -> None:
    """Find, show and write budgets of least cost."""
    target, plot = outputs
    check_figure(plot, target)
    inputs = {"--backward": matrices[0], "--forward": matrices[1], "--cost": files[0], "--weights": files[1]}
    check_outputs(plot, target, inputs=inputs)
    given = files[0].suffix.lower() == ".toml"
    weights = None if files[1] is None else read_weights(files[1])
    curves = [] if given else read_cost_curves(files[0])
    count = _count(steps, None if weights is None else len(weights), len(curves) if len(curves) > 1 else None)
    weights = np.ones(count) if weights is None else weights
    before, after = loss_of(matrices[0], "backward"), loss_of(matrices[1], "forward")
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.leakage._best_budgets import best_budgets

    with warnings_once():
        if given:
            best = _of_specification(files[0], alpha, weights, (before, after), limits)
        else:
            pairs = zip(curves * (1 if len(curves) > 1 else count), weights.tolist(), strict=True)
            weighted = [(epsilons, weight * costs) for (epsilons, costs), weight in pairs]
            with withholding("costs"):
                best = best_budgets(alpha, weighted, before, after, **limits)
    if target is not None:
        write_budgets(target, best.epsilons)
    under_mixture = None
    if (seen := remove_smoothing(before, after)) is not None and not given:
        with suppress_warnings():
            counted = best_budgets(alpha, weighted, *seen, **limits)
        say_note(f"from the counts alone the least cost is {number(counted.cost)}, not {number(best.cost)}")
    if (other := apply_mixture(before, after)) is not None:
        say_note(other.note)
        if given:
            say_note(
                "to find costs under mixture, write the word mixture instead of the rows of ends, and run the "
                "command again"
            )
        else:
            with suppress_warnings():
                under_mixture = best_budgets(alpha, weighted, *other.losses, **limits).cost
    if as_json:
        names = ("alpha", "window", "cost", "lower_bound", "constant", "allocated")
        found = {name: getattr(best, name) for name in names}
        more = {} if under_mixture is None else {"mixture": {"cost": under_mixture}}
        click.echo(json.dumps(found | {"budgets": best.epsilons.tolist()} | more, indent=2))
    else:
        _show_best(best, under_mixture)
    save_figure(plot, lambda figures: figures.leakage_allocation(alpha, count, before, after, best.epsilons))


def _count(*counts: int | None) -> int:
    """Return the number of releases, on which all options must agree."""
    found = {count for count in counts if count is not None}
    if len(found) != 1:
        problem = f"give different numbers of releases, {sorted(found)}" if found else "do not give their number"
        raise click.UsageError(f"--steps, --weights and the steps of --cost {problem}")
    return found.pop()


def _of_specification(
    path: Path,
    alpha: float,
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
    losses: tuple[LossFunction | None, LossFunction | None],
    limits: _Limits,
) -> BestBudgets:
    from rich.status import Status

    from mechdesign.specification._derived import price_budgets
    from mechdesign.specification._specification import read_spec

    given = read_spec(path)
    console = errors()
    with Status("starting", console=console) as status:
        priced = price_budgets(given, alpha, weights, *losses, **limits, told=lambda text: status.update(text))
    for note in priced.notes:
        say_note(note)
    say_note(f"costs are certified at {len(priced.costs) - 1} values of ε; the lower bound interpolates between them")
    return priced.best


def _show_best(best: BestBudgets, under_mixture: float | None) -> None:
    console = output()
    shown = table("release", "ε", numbers=("ε",))
    for name, epsilon in _runs(best.epsilons.tolist()):
        shown.add_row(name, at_least(epsilon) if epsilon else "left out")
    console.print(shown)
    console.print()
    costs = table("", "cost", numbers=("cost",))
    for name, value in (
        ("these budgets", best.cost),
        ("no budgets cost less than", best.lower_bound),
        ("more at both ends (Algorithm 8)", best.allocated),
        ("the same ε for all (Algorithm 7)", best.constant),
        ("the best budgets under mixture", under_mixture),
    ):
        if value is not None:
            costs.add_row(name, number(value))
    console.print(costs)
    what = "release" if best.window == 1 else f"{best.window} successive releases"
    console.print(f"\nNo {what} leak{'s' if best.window == 1 else ''} more than {best.alpha:g}.")


def _runs(epsilons: list[float]) -> list[tuple[str, float]]:
    """Return budgets with their releases, joining successive releases with the same budget."""
    runs: list[tuple[int, int]] = []
    for step, epsilon in enumerate(epsilons):
        if runs and epsilons[runs[-1][0]] == epsilon:
            runs[-1] = runs[-1][0], step
        else:
            runs.append((step, step))
    return [(str(a) if a == b else f"{a} to {b}, each", epsilons[a]) for a, b in runs]
