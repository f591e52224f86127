"""Open the ledger of a specification.

An existing ledger may be in any folder; a new ledger must be in the folder of the specification.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

from mechdesign.base._errors import InputError
from mechdesign.base._locks import exists, file_of
from mechdesign.certify._exact import exact_text
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._grammar import Table, says
from mechdesign.specification._read import Source


class LedgerTable(Table, frozen=True):
    """The ledger that `mechdesign release` charges before each step. Use one ledger for each person.

    No other command charges a ledger, so this table requires ``[release]`` and only policy graphs.
    """

    path: Annotated[
        str,
        says(
            "the file of the ledger. A new ledger is created at the first expense, if a budget is given, and only in "
            "the folder of the specification or below."
        ),
    ]
    epsilon: Annotated[
        Fraction | None, says("the total budget of all releases under pure differential privacy, exact.")
    ] = None
    rho: Annotated[
        Fraction | None,
        says("the total budget of all releases under zero-concentrated differential privacy, exact."),
    ] = None


def open_ledger(folder: Path, name: str, epsilon: Fraction | None, rho: Fraction | None) -> Ledger:
    """Open the ledger of a ``[ledger]`` table, or return a new ledger whose file is created at the first expense.

    Args:
        folder: The folder of the specification.
        name: The file of the ledger, relative to the folder.
        epsilon: The budget under pure differential privacy, or None.
        rho: The budget under zero-concentrated differential privacy, or None.

    Returns:
        The ledger.

    Raises:
        SpecificationError: The ledger does not exist, and it has no budget or lies outside `folder`.
        LedgerError: The file is damaged, or was created with another budget.
    """
    with Source(("ledger",)).keys({str(folder / name): "path"}):
        path = file_of(folder / name)
        if exists(path):
            return Ledger(epsilon, rho=rho, path=path)
        budgets = [("--epsilon", epsilon), ("--rho", rho)]
        stated = "".join(f" {option} {exact_text(budget)}" for option, budget in budgets if budget is not None)
        if not stated or not path.is_relative_to(folder.resolve()):
            raise InputError(
                "path",
                "names a ledger that does not exist, "
                + ("outside the folder of the specification" if stated else "and no budget is given to create it"),
                value=str(path),
                bound=f"an existing ledger, or within {folder.resolve()} with epsilon or rho",
                remedy=f"create it with: mechdesign ledger new {path}{stated or ' --epsilon 3'}",
            )
        return Ledger(epsilon, rho=rho, path=path)
