"""Loss functions in files: an archive .npz with the matrix, the pieces, and digests of both."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.base._atomic import write_file
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError, StateError
from mechdesign.data._matrices import read_arrays
from mechdesign.leakage._loss import LossFunction, as_rows_and_ends, digest_of, lines_in
from mechdesign.leakage._support import Line, are_pieces
from mechdesign.model._markov import MarkovChain
from mechdesign.model._open_chain import ENDS, OpenChain

_FORMAT = "mechdesign.leakage.loss_function/1"
_PIECES = set(Line._fields)
_REQUIRED = {"format", "matrix_sha256", "ends", "content_sha256"} | _PIECES
_DENSE, _SPARSE, _SMOOTHED = {"matrix"}, {"data", "indices", "indptr"}, {"counts", "smoothing"}
_DAMAGED = "is damaged or changed"
_RESTORE = "restore a copy, or compute the function again"


def save_loss(loss: LossFunction, path: str | PathLike[str]) -> None:
    """Write a loss function; see `LossFunction.save`."""
    target = as_path(path, "path")
    if loss.matrix is None:
        remedy = "save the function of the matrix itself"
        raise InputError(
            "loss", "was read from pieces, without its matrix", bound="a function with a matrix", remedy=remedy
        )
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(_FORMAT),
        "matrix_sha256": np.array(loss.digest),
        "ends": np.array(loss.ends),
        **{name: np.array([getattr(line, name) for line in loss.lines]) for name in Line._fields},
    }
    if sparse.issparse(loss.matrix):
        arrays |= {name: getattr(loss.matrix, name) for name in sorted(_SPARSE)}
    else:
        arrays["matrix"] = loss.matrix
    if loss.smoothed is not None:
        arrays |= {"smoothing": np.array(loss.smoothed.smoothing), "counts": np.asarray(loss.smoothed.counts)}
    arrays["content_sha256"] = np.array(_digest(arrays))
    content = io.BytesIO()
    named: Any = arrays
    np.savez(content, **named)
    # The matrix may have been counted from the movements of people.
    write_file(target, [content.getvalue()], private=True)


def load_loss(path: str | PathLike[str], P: Any = None) -> LossFunction:
    """Read a loss function; see `LossFunction.load`."""
    source = as_path(path, "path")
    arrays = read_arrays(source)
    _require_format(source, arrays)
    matrix = _matrix(source, arrays)
    ends = str(arrays["ends"])
    given: Any = OpenChain(matrix, ends) if ends else matrix  # type: ignore[arg-type]
    if "counts" in arrays:
        given = MarkovChain(matrix, smoothing=float(arrays["smoothing"]), counts=arrays["counts"])
    rows, ends = as_rows_and_ends(given, str(source))
    digest, lines = digest_of(rows, ends), lines_in(arrays)
    if digest != str(arrays["matrix_sha256"]):
        raise StateError(f"{source}: the matrix does not have the stored digest; {_RESTORE}")
    if lines is None or not are_pieces(lines):
        raise StateError(f"{source}: the pieces are not those of a loss function; {_RESTORE}")
    if P is not None:
        _require_matrix(source, P, rows.shape[0], digest)
    return LossFunction._from_pieces(given, rows, digest, lines, ends, path=str(source))


def _require_format(source: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `InputError` for another kind of archive, and `StateError` for a damaged one."""
    names = set(arrays)
    shown = ", ".join(sorted(names)[:4]) or "nothing"
    if "format" not in names or str(arrays["format"]) != _FORMAT:
        raise InputError(str(source), "is not a saved loss function", bound=f"an archive written by {_FORMAT}")
    forms = [_REQUIRED | form | more for form in (_DENSE, _SPARSE) for more in (set(), _SMOOTHED)]
    if names not in forms:
        raise StateError(f"{source} {_DAMAGED}: it holds {shown}; {_RESTORE}")
    content = {name: array for name, array in arrays.items() if name != "content_sha256"}
    if str(arrays["content_sha256"]) != _digest(content):
        raise StateError(f"{source} {_DAMAGED}: its digest does not match; {_RESTORE}")
    if str(arrays["ends"]) not in ("", *ENDS):
        raise StateError(f"{source} {_DAMAGED}: the word for its ends is unknown; {_RESTORE}")


def _matrix(source: Path, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the matrix of the archive, dense or sparse."""
    if "matrix" in arrays:
        return arrays["matrix"]
    n = len(arrays["indptr"]) - 1
    try:
        matrix = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n, n))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise StateError(f"{source} {_DAMAGED}: its sparse matrix has indices out of range; {_RESTORE}") from error
    return matrix


def _require_matrix(source: Path, P: Any, n: int, digest: str) -> None:
    """Raise `InputError` if P is not the matrix of the file."""
    rows, ends = as_rows_and_ends(P, "P")
    remedy = "compute LossFunction(P), or load the file of this matrix"
    if rows.shape[0] != n:
        bound = f"of shape ({n}, {n}), as in {source}"
        raise InputError(
            "P", "has another number of states than the saved function", value=rows.shape, bound=bound, remedy=remedy
        )
    if digest_of(rows, ends) != digest:
        raise InputError("P", "is not the matrix of the saved function", bound=f"the matrix in {source}", remedy=remedy)


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the arrays, with their names, types and shapes."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        state.update(array.tobytes())
    return state.hexdigest()
