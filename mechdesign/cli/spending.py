"""What the ledger of a command holds after it: what is left, and what was spent under each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechdesign.cli.console import output

if TYPE_CHECKING:
    from mechdesign.accounting.ledger import Ledger

__all__ = ["show_spending"]


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
