"""``mechdesign ledger``."""

from __future__ import annotations

from pathlib import Path

import click

from mechdesign.base._errors import InputError
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import output, say_error, show_spending, wait_option

_FILE = click.Path(path_type=Path)


@click.group()
def ledger() -> None:
    """Create a ledger of budgets, show it, or check releases against it."""


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


@ledger.command()
@click.argument("path", metavar="LEDGER", type=_FILE)
def show(path: Path) -> None:
    """Show the spending under each policy, and the remaining budget."""
    from mechdesign.leakage.accounting import Ledger

    for line in str(Ledger.existing(path)).splitlines():
        output().print(line, soft_wrap=True, markup=False)


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
