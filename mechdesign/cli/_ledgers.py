"""The ledger of a release: what is said of it, and what is left in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mechdesign.base._errors import InputError
from mechdesign.base._locks import exists
from mechdesign.cli._console import say_note
from mechdesign.cli._found import Shown

if TYPE_CHECKING:
    from mechdesign.leakage.accounting import Ledger

_SIGNS = {"epsilon": "ε", "rho": "ρ"}

no_series_option = click.option(
    "--no-series", "series", flag_value=False, default=None, type=bool,
    help="Release outside the series of the ledger, whose limit of the leakage does not count this release.",
)  # fmt: skip


def announce(ledger: Ledger | None, public: Path) -> None:
    """Show the full path of the ledger of a release, or state that no ledger is charged.

    A new ledger is shown at the end of the command, if it was created. Raises `InputError` if the ledger is in the
    folder that may be published.
    """
    if ledger is None:
        say_note("no ledger is charged: only the released files record the spent budget")
        return
    path = ledger.path
    assert path is not None
    if public.resolve() in path.parents:
        raise InputError(
            "--output",
            "is the folder of the ledger, which is private",
            value=str(public),
            bound=f"a folder that does not contain {path}",
        )
    if exists(path):
        say_note(f"the ledger of this release is {path}")
        return

    def say_created() -> None:
        if exists(path):
            say_note(f"the ledger {path} was created")

    click.get_current_context().call_on_close(say_created)


def spending(ledger: Ledger, every: bool = False) -> dict[str, object]:
    """Return the remaining budget of a ledger, whose text is rounded down.

    With several policies or `every`, the spending under each policy is added.
    """
    from mechdesign.certify._exact import exact_text, float_down
    from mechdesign.leakage._entries import APART
    from mechdesign.model._words import format_bound

    left = {"epsilon": ledger.remaining_epsilon, "rho": ledger.remaining_rho}
    known = {name: amount for name, amount in left.items() if amount is not None}
    texts = [
        f"{_SIGNS[name]} = {format_bound(float_down(amount), up=False, digits=6)}" for name, amount in known.items()
    ]
    exact = {name: exact_text(amount) for name, amount in known.items()}
    facts: dict[str, object] = {"left": Shown(exact, ", ".join(texts) or "no limit was set")}
    lines = ledger.by_policy
    if every or len(lines) > 1:
        facts["by_policy"] = [*map(str, lines), *([f"{APART}."] if len(lines) > 1 else [])]
    return facts
