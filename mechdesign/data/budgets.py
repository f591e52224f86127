"""Budgets in files."""

from __future__ import annotations

from os import PathLike

from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_budgets
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.data.table import read_table

_HEADER = ["step", "epsilon"]


def write_budgets(path: str | PathLike[str], epsilons: ArrayLike) -> None:
    """Write budgets as CSV with the columns ``step`` (from 0) and ``epsilon``.

    Each number is the shortest decimal that is read as the same float. The file is replaced atomically.

    Args:
        path: File to write.
        epsilons: Budgets in nats, finite and ≥ 0, shape (T,).

    Raises:
        ExportError: The file cannot be written.
        InputError: A budget is out of range.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.5, 0.25])
    ...     with open(f"{folder}/budgets.csv") as file:
    ...         print(file.read(), end="")
    step,epsilon
    0,0.5
    1,0.25
    """
    lines = [",".join(_HEADER)]
    lines += [f"{step},{epsilon!r}" for step, epsilon in enumerate(as_budgets(epsilons).tolist())]
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets from a table with the columns ``step`` and ``epsilon``, as `write_budgets` writes them.

    Args:
        path: File to read.

    Returns:
        Budgets in nats, float64 of shape (T,).

    Raises:
        InputError: A line is malformed; the message names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.5, 0.25])
    ...     read_budgets(f"{folder}/budgets.csv").tolist()
    [0.5, 0.25]
    """
    table = read_table(as_path(path, "path"), _HEADER)
    steps, budgets = table.texts("step"), table.numbers("epsilon")
    if not len(table):
        raise InputError(table.name, "contains no budgets", bound="at least one line after the header")
    for row, (step, budget) in enumerate(zip(steps, budgets.tolist(), strict=True)):
        if step.strip() != str(row):
            remedy = "write one line for each step from 0, in order"
            raise InputError(table.where(row, "step"), "is out of order", bound=f"step {row}", remedy=remedy)
        if budget < 0:
            raise InputError(table.where(row, "epsilon"), "is negative", bound="a finite number >= 0")
    return budgets
