"""What commands share: matrices from files, and the kinds of figures."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sparse

from mechdesign.data.text import number, unreadable
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.leakage import LossFunction
    from mechdesign.leakage.lines import Floats

__all__ = ["check_figure", "loss_of", "read_transitions"]

_FIGURES = (".png", ".svg", ".pdf")


def loss_of(path: Path | None, name: str) -> LossFunction | None:
    """Return the loss function of the matrix in a file, or None for no file; errors name the argument and the file."""
    if path is None:
        return None
    from mechdesign.leakage import LossFunction

    return LossFunction(read_transitions(path), path=f"{name} ({path})")


def read_transitions(path: Path) -> Floats | sparse.csr_array:
    """Read a matrix from .csv (comma, semicolon or blanks; # starts a comment), .npy, or .npz (SciPy sparse).

    Raises `InputError` naming the file, and the line where there is one.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            array: Floats = np.load(io.BytesIO(content), allow_pickle=False)
            return array
        if suffix == ".npz":
            return sparse.csr_array(sparse.load_npz(io.BytesIO(content)))
        return _from_text(content.decode("utf-8-sig"), path)
    except InputError:
        raise
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InputError(
            str(path), f"cannot be read as a matrix ({error})", bound=".csv, .npy or sparse .npz"
        ) from error


def _from_text(text: str, path: Path) -> Floats:
    rows: list[list[float]] = []
    for line_number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        where = f"{path}, line {line_number}"
        separator = ";" if ";" in content else "," if "," in content else None
        row = [_entry(field, where) for field in content.split(separator)]
        if rows and len(row) != len(rows[0]):
            raise InputError(
                where, "has the wrong number of fields", value=len(row), bound=f"{len(rows[0])} as in the first line"
            )
        rows.append(row)
    if not rows:
        raise InputError(str(path), "holds no numbers", bound="one row of probabilities a line")
    return np.array(rows)


def _entry(field: str, where: str) -> float:
    try:
        return number(field, where)
    except InputError as error:
        raise InputError(
            where,
            error.problem,
            value=field.strip(),
            bound=error.bound,
            remedy="leave out headers and labels, and write decimals with a point",
        ) from None


def check_figure(path: Path | None) -> None:
    """Raise `InputError` for a figure in a format that cannot be written."""
    if path is not None and path.suffix.lower() not in _FIGURES:
        raise InputError("--plot", "has no known ending", value=str(path), bound=f"one of {', '.join(_FIGURES)}")
