"""Files of budgets: one line a release, with the exact number."""

from __future__ import annotations

import contextlib
import csv
import math
import tempfile
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.errors import ExportError, InputError
from mechdesign.leakage.lines import Floats
from mechdesign.leakage.recursion import as_budgets

__all__ = ["read_budgets", "write_budgets"]

_HEADER = ["step", "epsilon"]


def write_budgets(path: str | PathLike[str], epsilons: ArrayLike) -> None:
    """Write budgets as CSV with the columns step (from 0) and epsilon; the file is replaced as a whole or not at all.

    Numbers are the shortest decimals that read back as the same floats. Raises `ExportError` when that fails.
    """
    budgets = as_budgets(epsilons)
    target = Path(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=target.parent, prefix=f".{target.name}.", suffix=".tmp", delete=False
        ) as file:
            temporary = Path(file.name)
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_HEADER)
            writer.writerows([step, repr(epsilon)] for step, epsilon in enumerate(budgets.tolist()))
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        raise ExportError(f"{target} could not be written ({error.strerror}); what stood there is unchanged") from error


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets back, shape (T,); raise `InputError` naming the line that is wrong."""
    source = Path(path)
    budgets: list[float] = []
    try:
        with source.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            header = next(reader, None)
            if header != _HEADER:
                raise InputError(str(source), "has the wrong header", value=header, bound=",".join(_HEADER))
            for row in filter(None, reader):
                where = f"{source}, line {reader.line_num}"
                if len(row) != len(_HEADER) or row[0].strip() != str(len(budgets)):
                    raise InputError(where, "is out of order", value=row, bound=f"step {len(budgets)} and its epsilon")
                try:
                    value = float("x" if "_" in row[1] else row[1])
                except ValueError as error:
                    raise InputError(where, "has no number", value=row[1], bound="an epsilon >= 0") from error
                if not (math.isfinite(value) and value >= 0):
                    raise InputError(where, "is not accepted", value=value, bound="a finite number >= 0")
                budgets.append(value)
    except OSError as error:
        raise InputError(str(source), f"cannot be opened ({error.strerror})", bound="a file that exists") from error
    except UnicodeDecodeError as error:
        raise InputError(str(source), f"is not a text in UTF-8 ({error.reason})") from error
    if not budgets:
        raise InputError(str(source), "holds no budgets", bound="at least one line after the header")
    return np.array(budgets)
