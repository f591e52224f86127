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
from mechdesign.cli._console import say_note
from mechdesign.cli._correlations import correlation_files, losses
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.cli._ledgers import spending
from mechdesign.data.matrices import Declared
from mechdesign.model._words import at_least, at_most, short

if TYPE_CHECKING:
    from mechdesign.leakage.accounting import Entry, Ledger, LedgerSeries

# A budget below this share of α is useless.
_LITTLE = Fraction(1, 1000)
# Number of budgets that are shown.
_STEPS = 40
_PROMISE = "No value leaks more than α = {}, given all releases of the series."


@click.group()
def ledger() -> None:
    """Create a ledger of budgets, add a series, show it, or check releases against it."""


@command
@click.argument("path", metavar="PATH", type=FILE)
@click.option("--epsilon", metavar="EPSILON", help="The budget of all releases together in ε.")
@click.option("--rho", metavar="RHO", help="The budget of all releases together in ρ (zCDP).")
@click.option("--again", is_flag=True, help="Create the ledger even if the lock of a removed ledger remains.")
def new(path: Path, epsilon: str | None, rho: str | None, again: bool) -> Found:
    """Create an empty ledger at PATH, with or without a budget.

    Only its owner can read it, except in a folder of a group (chmod 2770 FOLDER): its members then share the ledger.

    Example: mechdesign ledger new status.json --epsilon 2
    """
    from mechdesign.base._locks import exists, file_of, lock_file_of
    from mechdesign.leakage.accounting import begin_ledger

    stood = exists(lock_file_of(file_of(path)))
    with naming_options({"(epsilon|rho)": r"--\1"}):
        made = begin_ledger(path, epsilon, rho, again=again)
    said = "An empty ledger was created."
    if stood:
        said += " The records of an earlier ledger of this name are lost; their budget is still spent."
    return Found(said, {"ledger": made.path, **spending(made)})


def _plan_options(function: Callable[..., Found]) -> Callable[..., Found]:
    """Add the options that describe a plan."""
    for option in (
        click.option("--budgets", metavar="FILE", type=FILE, help="Plan the budgets of a file of `mechdesign budget`."),
        click.option(
            "--plan",
            "kind",
            type=click.Choice(["constant", "allocated"]),
            help="constant: one budget without an end (Algorithm 7); allocated: Algorithm 8, for --steps.",
        ),
        click.option("--steps", metavar="T", type=int, help="Number of time steps; alone: equal budgets."),
    ):
        function = option(function)
    return function


@command
@click.argument("path", metavar="LEDGER", type=FILE)
@click.option("--alpha", metavar="ALPHA", required=True, help="Largest leakage of each value, in nats.")
@click.option("--chain", "folder", metavar="DIR", type=FILE, help="Folder of `mechdesign chain`.")
@click.option(
    "--backward", metavar="B.csv|none", type=FILE, help="Pr(state before | state now), or none if nobody knows it."
)
@click.option(
    "--forward", metavar="F.csv|none", type=FILE, help="Pr(next state | state now), or none if nobody knows it."
)
@_plan_options
@click.option(
    "--history", type=click.Choice(["others", "own"]), required=True,
    help="Whose data determined the correlation: other people's, or those of the series.",
)  # fmt: skip
@matrix_options
def series(
    path: Path,
    alpha: str,
    folder: Path | None,
    backward: Path | None,
    forward: Path | None,
    steps: int | None,
    kind: str | None,
    budgets: Path | None,
    history: Literal["others", "own"],
    header: Declared,
    index: Declared,
) -> Found:
    """Promise that no value leaks more than ALPHA, given a whole series.

    A series consists of releases about the same people at time steps, such as months. LEDGER then judges the total
    budget and the leakage of every step. A series without entries may be given anew.

    Example: mechdesign ledger series l.json --alpha 1 --chain dir --history own
    """
    if folder is None and None in (backward, forward):
        raise click.UsageError("give --chain DIR, or both --backward and --forward, each a file or none")
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.specification._chain_files import domain_of

    files = correlation_files(folder, backward, forward)
    matrices = {name: None if file == Path("none") else file for name, file in files.items()}
    opened, domain = Ledger.existing(path), None if folder is None else domain_of(folder)
    with naming_options({"(alpha|backward|forward|history)": r"--\1", **_plan_name(steps, budgets)}):
        before, after = losses(matrices, header, index)
        made = opened.add_series(
            alpha=alpha,
            backward=before,
            forward=after,
            plan=_plan(steps, kind, budgets),
            history=history,
            domain=domain,
        )
    little = steps is not None and kind is None and made.budgets[0] < made.alpha / steps * Fraction(11, 10)
    if little and opened.rho is None:
        say_note(
            "this gains less than a tenth over α/T, which needs no assumption: a ledger without a series and with ε = α"
        )
    if domain is None:
        say_note("the first release determines the values of the series: they must be the states of the chain")
    for sentence in made.assumptions:
        say_note(sentence)
    return Found(_PROMISE.format(exact_text(made.alpha)), _facts(made))


@command
@click.argument("path", metavar="LEDGER", type=FILE)
@click.argument("none", metavar="[none]", required=False, type=click.Choice(["none"]))
@_plan_options
def plan(path: Path, none: str | None, steps: int | None, kind: str | None, budgets: Path | None) -> Found:
    """Replace the plan of LEDGER's series after its latest release.

    With `none` each release states its ε. A step with a release has nothing left under the new plan. --steps 9 gives 9
    successive steps the largest equal budget under which no leakage exceeds α.

    Example: mechdesign ledger plan status.json --steps 9
    """
    if (none is None) == ((steps, kind, budgets) == (None, None, None)):
        raise click.UsageError("give either none, or --steps, --plan or --budgets")
    from mechdesign.leakage.accounting import Ledger

    found = Ledger.existing(path).series
    if found is None:
        raise click.UsageError(f"{path} has no series: add one with mechdesign ledger series")
    with naming_options(_plan_name(steps, budgets)):
        found.plan = None if none else _plan(steps, kind, budgets)
    facts = _facts(found)
    if (following := _following(found)) is not None and following[1] < found.alpha * _LITTLE:
        say_note(
            "almost nothing is left of α for these people: plan more steps before the last ones, or a plan without an "
            "end (--plan constant) at the start. Together with a new ledger, they would leak more than α"
        )
    return Found(_PROMISE.format(exact_text(found.alpha)), facts)


def _plan_name(steps: int | None, budgets: Path | None) -> dict[str, str]:
    """Return the option that an error about the plan names."""
    return {r"plan(\[.*)?": "--budgets" if budgets else "--plan" if steps is None else "--steps"}


def _plan(steps: int | None, kind: str | None, budgets: Path | None) -> object:
    """Return the plan of the options, in the form that `Ledger.add_series` accepts."""
    if budgets is not None:
        if steps is not None or kind is not None:
            raise click.UsageError("give either --budgets, or --steps and --plan")
        from mechdesign.data.matrices import read_budgets

        return read_budgets(budgets).tolist()
    if (kind == "constant") == (steps is not None) and (kind or steps):
        raise click.UsageError("give --steps for equal and allocated budgets, and none for --plan constant")
    return kind if steps is None else (kind or "equal", steps)


def _facts(found: LedgerSeries) -> dict[str, object]:
    """Return the promise of a series, what is left of the plan, and what the step after the latest one may spend."""
    left = found.budgets if found.plan == "constant" else found.budgets[found.used :]
    facts: dict[str, object] = {
        "alpha": exact_text(found.alpha),
        "history": found.history,
        "plan": Shown([exact_text(each) for each in left], _describe_plan(found)),
    }
    if (following := _following(found)) is not None:
        step, most = following
        facts["next_step"] = Shown(step, str(step))
        facts["it_may_spend"] = Shown(exact_text(most), f"at most ε = {at_least(float(most))}")
    return facts


def _describe_plan(found: LedgerSeries) -> str:
    budgets, used = found.budgets, found.used
    if not budgets:
        return "none: every release states its ε"
    if found.plan == "constant":
        return f"ε = {at_least(float(budgets[0]))} at every step, without an end"
    rest = f"; {used} of {len(budgets)} budgets are used" if used else ""
    if len(budgets) > 1 and not found.steps:
        rest = f", where α/T is {short(float(found.alpha) / len(budgets), 4)}"
    runs = [f"{len(list(run))} × {at_least(float(each))}" for each, run in itertools.groupby(budgets[used:])]
    more = f" and {len(runs) - _STEPS} more" if len(runs) > _STEPS else ""
    return (f"ε = {', '.join(runs[:_STEPS])}{more}" if runs else "nothing is left") + rest


def _following(found: LedgerSeries) -> tuple[int | str, Fraction] | None:
    """Return the step after the latest one and the most it may spend; None if no step has an entry or none follows."""
    from mechdesign.leakage._series import step_after

    steps = list(found.steps)
    if not steps or (step := step_after(steps[-1])) is None:
        return None
    return step, found.largest(step)


def _entries(opened: Ledger, found: LedgerSeries) -> list[dict[str, object]]:
    """Return the entries in the order of time, with the leakage of each step."""
    order, leakage = list(found.steps), found.leakage
    return [
        {
            "step": Shown(entry.step, "none" if entry.step is None else str(entry.step)),
            "turn": None if entry.turn is None else entry.turn + 1,
            "epsilon": _cost(entry),
            "leakage": None if entry.step is None else Shown(leakage[entry.step], at_most(leakage[entry.step])),
            "date": entry.when[:10],
            "who": entry.who or "",
            "what": ", ".join([entry.what, *([": ".join(entry.part)] if entry.part else [])]),
        }
        for entry in sorted(opened.entries, key=lambda each: order.index(each.step) if each.step is not None else -1)
    ]


def _cost(entry: Entry) -> Shown:
    if entry.epsilon is not None:
        return Shown(exact_text(entry.epsilon), short(float(entry.epsilon), 4))
    rho = entry.rho or Fraction(0)
    return Shown(f"ρ = {exact_text(rho)}", f"ρ = {short(float(rho), 4)}")


@command
@click.argument("path", metavar="LEDGER", type=FILE)
def show(path: Path) -> Found:
    """Show what is spent and left in LEDGER, and what a series leaks.

    Example: mechdesign ledger show status.json
    """
    from mechdesign.leakage.accounting import Ledger

    opened = Ledger.existing(path)
    said, *_ = str(opened).splitlines()
    facts: dict[str, object] = {"ledger": opened.path, "spent": str(opened.spent)}
    if (found := opened.series) is not None:
        facts |= _facts(found) | {"entries": _entries(opened, found)}
        for sentence in found.assumptions:
            say_note(sentence)
    return Found(f"{said}.", spending(opened, every=True) | facts)


@command
@click.argument("path", metavar="LEDGER", type=FILE)
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=FILE)
def check(path: Path, folders: tuple[Path, ...]) -> Found:
    """Check that LEDGER has the entries of the releases in all folders.

    A release states the numbers of its entries. If one is missing, the exit code is 1: the ledger was replaced by an
    older copy or by another ledger, and lacks later spending. If a release states no entry and all stated entries
    exist, the exit code is 2.

    Example: mechdesign ledger check status.json november december
    """
    from mechdesign.leakage.accounting import Ledger, check_folders

    opened = Ledger.existing(path)
    rows: list[dict[str, object]] = []
    for folder in folders:
        try:
            (each,) = check_folders(opened, [folder])
        except InputError as error:
            rows.append({"folder": folder, "entries": None, "missing": None, "found": str(error)})
            continue
        count = len(each.missing)
        said = f"such as {each.missing[0]}" if count else "every entry is in the ledger"
        rows.append({"folder": each.folder, "entries": len(each.numbers), "missing": count, "found": said})
    missing, unread = sum(bool(row["missing"]) for row in rows), sum(row["missing"] is None for row in rows)
    said = "Every release is entered in the ledger."
    if missing or unread:
        said = f"{missing} of {len(rows)} releases have entries that are not in the ledger; {unread} state no entry."
    return Found(said, {"ledger": opened.path, "releases": rows}, 1 if missing else 2 if unread else 0)


for _each in (new, series, plan, show, check):
    ledger.add_command(_each)
