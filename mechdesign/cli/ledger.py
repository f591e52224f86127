"""``mechdesign ledger``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.cli._arguments import matrix_options, naming_options
from mechdesign.cli._console import (
    at_least,
    at_most,
    number,
    output,
    say_error,
    say_note,
    show_spending,
    table,
    wait_option,
)
from mechdesign.cli._correlations import losses, warnings_once
from mechdesign.data.matrices import Declared

if TYPE_CHECKING:
    from mechdesign.leakage.accounting import Ledger, LedgerSeries

_FILE = click.Path(path_type=Path)
# A budget below this share of α is useless.
_LITTLE = Fraction(1, 1000)
# Number of budgets that are shown.
_STEPS = 40


@click.group()
def ledger() -> None:
    """Create a ledger of budgets, add a series, show it, or check releases against it."""


@ledger.command()
@click.argument("path", metavar="PATH", type=_FILE)
@click.option("--epsilon", metavar="EPSILON", help="The budget of all releases together in ε.")
@click.option("--rho", metavar="RHO", help="The budget of all releases together in ρ (zCDP).")
@click.option("--again", is_flag=True, help="Create the ledger even if the lock of a removed ledger remains.")
@wait_option
def new(path: Path, epsilon: str | None, rho: str | None, again: bool, wait: float) -> None:
    """Create an empty ledger at PATH, with or without a budget.

    Only its owner can read it, except in a folder of a group (chmod 2770 FOLDER): its members then share the ledger.
    """
    from mechdesign.base._locks import exists, file_of, lock_file_of
    from mechdesign.leakage.accounting import begin_ledger

    stood = exists(lock_file_of(file_of(path)))
    with naming_options({"(epsilon|rho|wait)": r"--\1"}):
        made = begin_ledger(path, epsilon, rho, again=again, wait=wait)
    console = output()
    console.print(f"begun     {made.path}", soft_wrap=True, markup=False)
    if stood:
        console.print(
            "the records of an earlier ledger of this name are lost; their budget is still spent",
            soft_wrap=True,
        )
    show_spending(made)


def _plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe a plan."""
    for option in (
        click.option(
            "--budgets", metavar="FILE", type=_FILE, help="Plan the budgets of a file of `mechdesign budget`."
        ),
        click.option(
            "--plan",
            "kind",
            type=click.Choice(["constant", "allocated"]),
            help="constant: one budget without an end (Algorithm 7); allocated: Algorithm 8, for --steps.",
        ),
        click.option(
            "--steps", metavar="T", type=click.IntRange(min=1), help="Number of time steps; alone: equal budgets."
        ),
    ):
        command = option(command)
    return command


@ledger.command()
@click.argument("path", metavar="LEDGER", type=_FILE)
@click.option("--alpha", metavar="ALPHA", required=True, help="Largest leakage of each value, in nats.")
@click.option("--chain", "folder", metavar="DIR", type=_FILE, help="Folder of `mechdesign chain`.")
@click.option("--backward", metavar="B.csv|none", help="Pr(state before | state now), or none if nobody knows it.")
@click.option("--forward", metavar="F.csv|none", help="Pr(next state | state now), or none if nobody knows it.")
@_plan_options
@click.option(
    "--history", type=click.Choice(["others", "own"]), required=True,
    help="Whose data determined the correlation: other people's, or those of the series.",
)  # fmt: skip
@matrix_options
@wait_option
def series(
    path: Path,
    alpha: str,
    folder: Path | None,
    backward: str | None,
    forward: str | None,
    steps: int | None,
    kind: str | None,
    budgets: Path | None,
    history: Literal["others", "own"],
    header: Declared,
    index: Declared,
    wait: float,
) -> None:
    """Promise that no value of LEDGER's series leaks more than ALPHA, given all releases and the correlation.

    A series consists of releases about the same people at time steps, such as months. The ledger then judges the total
    budget and the leakage of every step. A series without entries may be given anew.
    """
    if (folder is None) == (backward is None) or (backward is None) != (forward is None):
        raise click.UsageError("give --chain DIR, or both --backward and --forward, each a file or none")
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.specification._table_chains import domain_of

    files = {"backward": backward, "forward": forward}
    if folder is not None:
        files = {name: str(folder / f"{name}.csv") for name in files}
    matrices = {name: None if file in (None, "none") else Path(file) for name, file in files.items()}
    opened, domain = Ledger.existing(path, wait), None if folder is None else domain_of(folder)
    with naming_options({"(alpha|backward|forward|history)": r"--\1", **_plan_name(steps, budgets)}), warnings_once():
        before, after = losses(matrices, header, index)
        made = opened.add_series(
            alpha=alpha,
            backward=before,
            forward=after,
            plan=_plan(steps, kind, budgets),
            history=history,
            domain=domain,
        )
    _show_series(made)
    little = steps is not None and kind is None and made.budgets[0] < made.alpha / steps * Fraction(11, 10)
    if little and opened.rho is None:
        say_note(
            "this gains less than a tenth over α/T, which needs no assumption: a ledger without a series and with ε = α"
        )
    if domain is None:
        say_note("the first release determines the values of the series: they must be the states of the chain")
    for sentence in made.assumptions:
        say_note(sentence)


@ledger.command()
@click.argument("path", metavar="LEDGER", type=_FILE)
@click.argument("none", metavar="[none]", required=False, type=click.Choice(["none"]))
@_plan_options
@wait_option
def plan(path: Path, none: str | None, steps: int | None, kind: str | None, budgets: Path | None, wait: float) -> None:
    """Replace the plan of LEDGER's series, after the latest step with a release; `none`: each release states its ε.

    A step with a release has nothing left under the new plan. --steps 9 gives 9 more steps, next to each other, the
    largest equal budget under which no leakage exceeds α.
    """
    if (none is None) == ((steps, kind, budgets) == (None, None, None)):
        raise click.UsageError("give either none, or --steps, --plan or --budgets")
    from mechdesign.leakage.accounting import Ledger

    found = Ledger.existing(path, wait).series
    if found is None:
        raise click.UsageError(f"{path} has no series: add one with mechdesign ledger series")
    with naming_options(_plan_name(steps, budgets)):
        found.plan = None if none else _plan(steps, kind, budgets)
    _show_series(found)
    if _show_next(found) < found.alpha * _LITTLE:
        say_note(
            "almost nothing is left of α for these people: plan more steps before the last ones, or a plan without an "
            "end (--plan constant) at the start. Together with a new ledger, they would leak more than α"
        )


def _plan_name(steps: int | None, budgets: Path | None) -> dict[str, str]:
    """Return the option that an error about the plan names."""
    return {r"plan(\[.*)?": "--budgets" if budgets else "--steps" if steps else "--plan"}


def _plan(steps: int | None, kind: str | None, budgets: Path | None) -> object:
    """Return the plan of the options, in the form that `Ledger.add_series` accepts."""
    if budgets is not None:
        if steps is not None or kind is not None:
            raise click.UsageError("give either --budgets, or --steps and --plan")
        from mechdesign.data.budgets import read_budgets

        return read_budgets(budgets).tolist()
    if (kind == "constant") == (steps is not None) and (kind or steps):
        raise click.UsageError("give --steps for equal and allocated budgets, and none for --plan constant")
    return kind if steps is None else (kind or "equal", steps)


def _show_series(series: LedgerSeries) -> None:
    """Show the promise, and what is left of the plan."""
    console = output()
    console.print(f"series    no value leaks more than α = {exact_text(series.alpha)}; history: {series.history}")
    budgets, used = series.budgets, series.used
    if not budgets:
        console.print("plan      none: every release states its ε")
        return
    if series.plan == "constant":
        console.print(f"plan      ε = {at_least(float(budgets[0]))} at every step, without an end")
        return
    rest = f"; {used} of {len(budgets)} budgets are used" if used else ""
    if len(budgets) > 1 and not series.steps:
        rest = f", where α/T is {number(float(series.alpha) / len(budgets))}"
    runs = [f"{len(list(run))} × {at_least(float(each))}" for each, run in itertools.groupby(budgets[used:])]
    more = f" and {len(runs) - _STEPS} more" if len(runs) > _STEPS else ""
    left = f"ε = {', '.join(runs[:_STEPS])}{more}" if runs else "nothing is left"
    console.print(f"plan      {left}{rest}", soft_wrap=True)


def _show_entries(opened: Ledger, series: LedgerSeries) -> None:
    """Show the entries in the order of time, with the leakage of each step, and what the next step may spend."""
    order, leakage = list(series.steps), series.leakage
    entries = sorted(opened.entries, key=lambda entry: order.index(entry.step) if entry.step is not None else -1)
    shown = table("step", "turn", "ε", "leakage", "date", "who", "what", numbers=("turn", "ε", "leakage"))
    for entry in entries:
        turn = "" if entry.turn is None else str(entry.turn + 1)
        cost = f"ρ = {number(float(entry.rho or 0))}" if entry.epsilon is None else number(float(entry.epsilon))
        leaks = "" if entry.step is None else at_most(leakage[entry.step])
        what = ", ".join([entry.what, *([": ".join(entry.part)] if entry.part else [])])
        step = "none" if entry.step is None else str(entry.step)
        shown.add_row(step, turn, cost, leaks, entry.when[:10], entry.who or "", what)
    if entries:
        output().print(shown)
    _show_next(series)


def _show_next(series: LedgerSeries) -> Fraction:
    """Show and return the largest ε of the step after the latest one; return α if one of both is missing."""
    from mechdesign.leakage._series import step_after

    steps = list(series.steps)
    if not steps or (following := step_after(steps[-1])) is None:
        return series.alpha
    most = series.largest(following)
    output().print(f"next      step {following} may spend at most ε = {at_least(float(most))}")
    return most


@ledger.command()
@click.argument("path", metavar="LEDGER", type=_FILE)
def show(path: Path) -> None:
    """Show the spending under each policy, the remaining budget, and the leakages of a series."""
    from mechdesign.leakage.accounting import Ledger

    opened = Ledger.existing(path)
    for line in str(opened).splitlines():
        output().print(line, soft_wrap=True, markup=False)
    if (found := opened.series) is not None:
        _show_series(found)
        _show_entries(opened, found)
        for sentence in found.assumptions:
            say_note(sentence)


@ledger.command()
@click.argument("path", metavar="LEDGER", type=_FILE)
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=_FILE)
def check(path: Path, folders: tuple[Path, ...]) -> None:
    """Check that each release in FOLDER... is entered in LEDGER; the exit code is 1 if a release is not.

    A release states the numbers of its entries. If an entry is missing, the ledger was replaced by an older copy or by
    another ledger, and lacks later spending. All folders are checked. If a release states no entry and all stated
    entries exist, the exit code is 2.
    """
    from mechdesign.leakage.accounting import Ledger, check_folders

    opened = Ledger.existing(path)
    missing = unreadable = False
    for folder in folders:
        try:
            (each,) = check_folders(opened, [folder])
        except InputError as error:
            say_error(str(error))
            unreadable = True
            continue
        missing = missing or bool(each.missing)
        if each.missing:
            of = f"{len(each.missing)} of {len(each.numbers)}"
            say_error(f"{each.folder}: {of} entries are not in {opened.path}, such as {each.missing[0]}")
        else:
            count = len(each.numbers)
            said = f"{each.folder}: {count} entr{'ies' if count > 1 else 'y'} in {opened.path}"
            output().print(said, soft_wrap=True, markup=False)
    if missing or unreadable:
        click.get_current_context().exit(1 if missing else 2)
