"""What the ledger of a command holds after it: what is left, and what was spent under each policy."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mechdesign.cli.console import output
from mechdesign.cli.console import say_note
from mechdesign.base._errors import InputError
from mechdesign.base._locks import WAIT_S
from mechdesign.base._locks import lock_file_of
from mechdesign.base._locks import stands

if TYPE_CHECKING:
    from mechdesign.leakage.accounting import Ledger

__all__ = ["announce", "show_spending", "wait_option"]

wait_option = click.option(
    "--wait", metavar="SECONDS", type=float, default=WAIT_S, show_default=True,
    help="How long another process that uses the ledger is waited for.",
)  # fmt: skip


def announce(ledger: Ledger | None, public: Path) -> None:
    """Say which file will be charged, by its full path, and whether it is made for this; or that none is.

    Raises `InputError` where it lies in the folder that may be published.
    """
    if ledger is None:
        say_note("no ledger is charged: what is spent here is recorded nowhere but in what is released")
        return
    assert ledger.path is not None
    if public.resolve() in ledger.path.parents:
        raise InputError(
            "--output",
            "is the folder of the ledger, which is its owner's alone",
            value=str(public),
            bound=f"a folder that does not hold {ledger.path}",
        )
    lock = lock_file_of(ledger.path)
    if not stands(ledger.path):
        # Where there is no folder, or the lock of an earlier ledger stands, none is begun, and an error says so.
        if ledger.path.parent.is_dir() and not stands(lock):
            say_note(f"the ledger {ledger.path} is begun")
        return
    say_note(f"the ledger {ledger.path} is charged")
    for file in (ledger.path, lock):
        if os.name != "nt" and stands(file) and (mode := stat.S_IMODE(file.lstat().st_mode)) & 0o007:
            say_note(
                f"{file} is open to every user (mode {mode:04o}), as an earlier version made it, and is left so. Close "
                f"it with: chmod 600 {file}"
            )


def show_spending(ledger: Ledger) -> None:
    """Show what is left of a ledger's budget and, where there are several policies, what was spent under each."""
    from mechdesign.leakage._ledger_file import APART

    left = [
        f"{name} = {float(amount):.6g}"
        for name, amount in (("ε", ledger.remaining_epsilon), ("ρ", ledger.remaining_rho))
        if amount is not None
    ]
    output().print(f"left      {', '.join(left) or 'no limit was set'}", soft_wrap=True)
    if len(lines := ledger.by_policy) > 1:
        for line in lines:
            output().print(f"ledger    {line}", soft_wrap=True)
        output().print(f"          {APART}.", soft_wrap=True)
