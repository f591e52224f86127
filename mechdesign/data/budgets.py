"""Budgets in files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_budgets
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError, Shown
from mechdesign.base._files import write_output
from mechdesign.data._layout import cell, mark_of
from mechdesign.data._text import columns_text, number, read_rows

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
    ...     print(Path(folder, "budgets.csv").read_text(), end="")
    step,epsilon
    0,0.5
    1,0.25
    """
    lines = [",".join(_HEADER)]
    lines += [f"{step},{epsilon!r}" for step, epsilon in enumerate(as_budgets(epsilons).tolist())]
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets from CSV with the columns ``step`` and ``epsilon``, as `write_budgets` writes them.

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
    source = Path(as_path(path, "path"))
    budgets: list[float] = []
    rows = read_rows(source, suits=_is_budget_header)
    _, header = next(rows, (0, None))
    if header is None or not _is_budget_header(header):
        shown = None if header is None else Shown(columns_text(header, _HEADER))
        raise InputError(str(source), "has the wrong header", value=shown, bound=",".join(_HEADER))
    lines = list(rows)
    mark = mark_of([row[-1] for _, row in lines], f"{source}, column epsilon")
    for line, row in lines:
        budgets.append(_budget([*row[:-1], mark.plain(row[-1])], len(budgets), f"{source}, line {line}"))
    if not budgets:
        raise InputError(str(source), "contains no budgets", bound="at least one line after the header")
    return np.array(budgets)


def _is_budget_header(header: Sequence[str]) -> bool:
    return [name.strip() for name in header] == _HEADER


def _budget(row: Sequence[str], step: int, where: str) -> float:
    if len(row) != len(_HEADER) or row[0].strip() != str(step):
        bound, remedy = f"step {step} and its epsilon", "write one line for each step from 0, in order"
        raise InputError(where, "is out of order", value=cell(row[0]), bound=bound, remedy=remedy)
    where = f"{where}, column epsilon"
    budget = number(row[1], where)
    if not 0 <= budget < math.inf:
        raise InputError(where, "is out of range", value=cell(row[1]), bound="a finite number >= 0")
    return budget
