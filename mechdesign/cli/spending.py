"""What the ledger of a command holds after it: what is left, and what was spent under each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mechdesign.cli.console import output, say_note
from mechdesign.sharing import WAIT_S

if TYPE_CHECKING:
    from mechdesign.accounting.ledger import Ledger

__all__ = ["announce", "show_spending", "wait_option"]

wait_option = click.option(
    "--wait", metavar="SECONDS", type=float, default=WAIT_S, show_default=True,
    help="How long another process that uses the ledger is waited for.",
)  # fmt: skip


def announce(ledger: Ledger) -> None:
    """Say which file will be charged, by its full path, and whether it is made for this."""
    assert ledger.path is not None
    say_note(f"the ledger {ledger.path} {'is charged' if ledger.path.exists() else 'is begun'}")


def show_spending(ledger: Ledger) -> None:
    """Show what is left of a ledger's budget and, where there are several policies, what was spent under each."""
    from mechdesign.accounting.policies import APART

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
