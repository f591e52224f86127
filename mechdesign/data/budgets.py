"""Files of budgets: one line a release, with the exact number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.certify._exact import exact
from mechdesign.certify._exact import nearest
from mechdesign.data.forms import cell
from mechdesign.data.forms import withholding
from mechdesign.data.layout import mark_of
from mechdesign.data.text import columns_text
from mechdesign.data.text import read_rows
from mechdesign.base._errors import InputError
from mechdesign.base._errors import Shown
from mechdesign.base._files import write_output
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import as_budgets
from mechdesign.base._check import as_path

__all__ = ["read_budgets", "read_exact_budgets", "write_budgets"]


def __dir__() -> list[str]:
    return sorted(__all__)


_HEADER = ["step", "epsilon"]


def write_budgets(path: str | PathLike[str], epsilons: ArrayLike) -> None:
    """Write budgets, shape (T,), in nats, as CSV with the columns step (from 0) and epsilon.

    Numbers are the shortest decimals that read back as the same floats. A file is replaced as a whole or not at all:
    raises `ExportError` when it cannot be written, and `InputError` for wrong budgets.
    """
    lines = [",".join(_HEADER)]
    lines += [f"{step},{epsilon!r}" for step, epsilon in enumerate(as_budgets(epsilons).tolist())]
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets back, in nats, shape (T,); raise `InputError` naming the line that is wrong."""
    return np.array([nearest(epsilon) for epsilon in read_exact_budgets(path)])


def read_exact_budgets(path: str | PathLike[str]) -> tuple[Fraction, ...]:
    """Read the budget of each release as the decimal that stands in the file; raise `InputError` naming the line."""
    path = as_path(path, "path")
    source = Path(path)
    budgets: list[Fraction] = []
    rows = read_rows(source, suits=_suits)
    _, header = next(rows, (0, None))
    if header is None or not _suits(header):
        shown = None if header is None else Shown(columns_text(header, _HEADER))
        raise InputError(str(source), "has the wrong header", value=shown, bound=",".join(_HEADER))
    lines = list(rows)
    mark = mark_of([row[-1] for _, row in lines], f"{source}, column epsilon")
    for line, row in lines:
        budgets.append(_budget([*row[:-1], mark.plain(row[-1])], len(budgets), f"{source}, line {line}"))
    if not budgets:
        raise InputError(str(source), "holds no budgets", bound="at least one line after the header")
    return tuple(budgets)


def _suits(header: Sequence[str]) -> bool:
    return [name.strip() for name in header] == _HEADER


def _budget(row: Sequence[str], step: int, where: str) -> Fraction:
    if len(row) != len(_HEADER) or row[0].strip() != str(step):
        bound, remedy = f"step {step} and its epsilon", "steps count from 0, each once and in order"
        raise InputError(where, "is out of order", value=cell(row[0]), bound=bound, remedy=remedy)
    text, bound, where = row[1].strip(), "a finite number >= 0, in decimal digits", f"{where}, column epsilon"
    with withholding():
        # Ratios such as 1/3 are numbers elsewhere, but names of folders come of these.
        if "/" in text:
            raise InputError(where, "is not a number", value=text, bound=bound)
        budget = exact(text, where)
    if budget < 0:
        raise InputError(where, "is negative", value=cell(text), bound=bound)
    if math.isinf(nearest(budget)):
        raise InputError(where, "is out of range", value=cell(text), bound=bound)
    return budget
