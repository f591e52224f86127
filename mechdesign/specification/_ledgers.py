"""The ledger that a specification names: opened anywhere, made only within the folder of the specification."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

from mechdesign.base._errors import SpecificationError
from mechdesign.base._locks import WAIT_S, exists, file_of
from mechdesign.certify._exact import exact_text
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._grammar import Table, says
from mechdesign.specification._read import Source


class LedgerTable(Table, frozen=True):
    """The ledger that `mechdesign release` charges before each step: one for each person whose traces are released.

    Nothing else charges it: it goes with ``[release]`` and with policy graphs alone.
    """

    path: Annotated[
        str,
        says(
            "its file. It is made when something is first to be spent, only where a budget is given, and only in "
            "the folder of the specification or below."
        ),
    ]
    epsilon: Annotated[
        Fraction | None, says("the budget of all releases together under pure differential privacy, exact.")
    ] = None
    rho: Annotated[
        Fraction | None,
        says("the budget of all releases together under zero-concentrated differential privacy, exact."),
    ] = None


def open_ledger(
    folder: Path, name: str, epsilon: Fraction | None, rho: Fraction | None, wait: float = WAIT_S
) -> Ledger:
    """Open the ledger of a ``[ledger]`` table, or return one that is made when something is first to be spent.

    Raises:
        SpecificationError: there is none, and it cannot be made: no budget is given, or it would lie outside `folder`.
        LedgerError: its file is damaged, or was made with another budget.
    """
    with Source(("ledger",)).keys():
        path = file_of(folder / name)
        if exists(path):
            return Ledger(epsilon, rho=rho, path=path, wait=wait)
        if epsilon is None and rho is None:
            raise SpecificationError(
                "path",
                "names no ledger that exists, and no budget is given to make one with",
                value=str(path),
                bound="an existing ledger, or epsilon or rho beside it",
                remedy=f"begin one with: mechdesign ledger new {path} --epsilon 3",
            )
        if not path.is_relative_to(folder.resolve()):
            budgets = (("--epsilon", epsilon), ("--rho", rho))
            options = "".join(f" {option} {exact_text(budget)}" for option, budget in budgets if budget is not None)
            raise SpecificationError(
                "path",
                "names a ledger that does not exist, outside the folder of the specification",
                value=str(path),
                bound=f"within {folder.resolve()}, or an existing ledger",
                remedy=f"begin it yourself, if you want it there, with: mechdesign ledger new {path}{options}",
            )
        return Ledger(epsilon, rho=rho, path=path, wait=wait)
