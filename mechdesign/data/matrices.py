"""Read a matrix of numbers from a file: text, NumPy's .npy, or SciPy's sparse .npz."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.data.text import number, read_lines, read_rows, unreadable
from mechdesign.errors import InputError

__all__ = ["read_any_matrix", "read_matrix"]

Floats = NDArray[np.float64]

_REMEDY = "leave out headers and labels, and write decimals with a point"


def read_matrix(path: Path, delimiter: str | None = None) -> Floats:
    """Return the matrix in a file as float64 of two axes; infinities and NaN pass.

    Args:
        path: A file .npy or .npz (sparse), or else text with a row a line and no header.
        delimiter: The character between the numbers of a text; unless given, each line may have commas, semicolons or
            blanks, and # starts a comment.

    Raises:
        InputError: For a file that cannot be read or holds no matrix, naming the line where there is one.
    """
    found = read_any_matrix(path, delimiter)
    return found.toarray() if isinstance(found, sparse.csr_array) else found


def read_any_matrix(path: Path, delimiter: str | None = None) -> Floats | sparse.csr_array:
    """Return what `read_matrix` does, but leave a sparse matrix sparse."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _read_npy(path)
    if suffix == ".npz":
        return _read_npz(path)
    result: list[list[float]] = []
    for line, row in _free_rows(path) if delimiter is None else read_rows(path, delimiter):
        where = f"{path}, line {line}"
        if result and len(row) != len(result[0]):
            bound = f"{len(result[0])} as in the first line"
            raise InputError(where, "has the wrong number of fields", value=len(row), bound=bound)
        result.append([number(text, where, _REMEDY) for text in row])
    if not result:
        raise InputError(str(path), "is empty", bound="at least one line of numbers")
    return np.array(result)


def _free_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for line, text in read_lines(path):
        content = text.split("#", 1)[0].strip()
        if content:
            separator = ";" if ";" in content else "," if "," in content else None
            yield line, [field.strip() for field in content.split(separator)]


def _read_npy(path: Path) -> Floats:
    content = _content(path)
    try:
        array = np.load(content, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(str(path), f"is not a NumPy file ({error})") from error
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="an array of two axes")
    return array.astype(np.float64)


def _read_npz(path: Path) -> sparse.csr_array:
    content = _content(path)
    try:
        found = sparse.csr_array(sparse.load_npz(content))
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InputError(str(path), f"is not a sparse matrix of SciPy ({error})") from error
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="a sparse matrix of numbers")
    return found.astype(np.float64)


def _content(path: Path) -> io.BytesIO:
    """Return the content of a file, read as a whole: readers of damaged archives may leave files open."""
    try:
        return io.BytesIO(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
