"""Loss functions in files: an archive .npz with the matrix, the pieces, and digests of both."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats
from mechdesign.base._atomic import write_file
from mechdesign.base._errors import InputError, StateError
from mechdesign.data.matrices import read_arrays
from mechdesign.leakage._support import Line, are_pieces

_FORMAT = "mechdesign.leakage.loss_function/1"
_PIECES = set(Line._fields)
_REQUIRED = {"format", "matrix_sha256", "content_sha256"} | _PIECES
_DENSE, _SPARSE = {"matrix"}, {"data", "indices", "indptr"}
_DAMAGED = "is damaged or changed"
RESTORE = "restore a copy, or compute the function again"
"""The remedy for a damaged file."""


class SavedLoss(NamedTuple):
    """The content of a file: the matrix, the digest of its rows, and the lines of its loss function."""

    matrix: Any
    digest: str
    lines: list[Line]


def write_loss(path: Path, matrix: Floats | sparse.csr_array, digest: str, lines: Sequence[Line]) -> None:
    """Write a loss function with its matrix, for its owner only; raise `ExportError` if that fails."""
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(_FORMAT),
        "matrix_sha256": np.array(digest),
        **{name: np.array([getattr(line, name) for line in lines]) for name in Line._fields},
    }
    if sparse.issparse(matrix):
        arrays |= {name: getattr(matrix, name) for name in sorted(_SPARSE)}
    else:
        arrays["matrix"] = matrix
    arrays["content_sha256"] = np.array(_digest(arrays))
    content = io.BytesIO()
    named: Any = arrays
    np.savez(content, **named)
    # The matrix may have been counted from the movements of people.
    write_file(path, [content.getvalue()], private=True)


def read_loss(path: Path) -> SavedLoss:
    """Read a loss function; the digest of its matrix is still to be compared.

    Raises `InputError` for another kind of file, and `StateError` for a damaged one.
    """
    arrays = read_arrays(path)
    _require_format(path, arrays)
    matrix, lines = _matrix(path, arrays), lines_in(arrays)
    if lines is None or not are_pieces(lines):
        raise StateError(f"{path}: the pieces are not those of a loss function; {RESTORE}")
    return SavedLoss(matrix, str(arrays["matrix_sha256"]), lines)


def lines_in(arrays: Mapping[str, NDArray[Any]]) -> list[Line] | None:
    """Return the lines with the columns `G`, `D` and `rest`, or None if these are not float64 of one length."""
    columns = [arrays[name] for name in Line._fields]
    if any(column.dtype != np.float64 or column.ndim != 1 or len(column) != len(columns[0]) for column in columns):
        return None
    return [Line(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _require_format(source: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `InputError` for another kind of archive, and `StateError` for a damaged one."""
    names = set(arrays)
    shown = ", ".join(sorted(names)[:4]) or "nothing"
    if "format" not in names or str(arrays["format"]) != _FORMAT:
        raise InputError(str(source), "is not a saved loss function", bound=f"an archive written by {_FORMAT}")
    if names not in (_REQUIRED | _DENSE, _REQUIRED | _SPARSE):
        raise StateError(f"{source} {_DAMAGED}: it holds {shown}; {RESTORE}")
    content = {name: array for name, array in arrays.items() if name != "content_sha256"}
    if str(arrays["content_sha256"]) != _digest(content):
        raise StateError(f"{source} {_DAMAGED}: its digest does not match; {RESTORE}")


def _matrix(source: Path, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the matrix of the archive, dense or sparse."""
    known = arrays["matrix"] if "matrix" in arrays else arrays["data"]
    if known.dtype != np.float64:
        raise StateError(f"{source} {_DAMAGED}: its matrix does not have the type float64; {RESTORE}")
    if "matrix" in arrays:
        return known
    try:
        n = len(arrays["indptr"]) - 1
        matrix = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n, n))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise StateError(f"{source} {_DAMAGED}: its sparse matrix has indices out of range; {RESTORE}") from error
    return matrix


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the arrays, with their names, types and shapes."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()
