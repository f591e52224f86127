"""Read a matrix of numbers from a file: text, NumPy's .npy, or SciPy's sparse .npz."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.data.text import number, read_lines, read_rows, unreadable
from mechdesign.errors import InputError
from mechdesign.validation import LARGEST_MATRIX

__all__ = ["read_any_matrix", "read_matrix"]

Floats = NDArray[np.float64]

# What NumPy, zipfile and SciPy raise for damaged arrays and archives; NotImplementedError is what zipfile raises for a
# compression method that it does not know.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)

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
    if not isinstance(found, sparse.csr_array):
        return found
    if math.prod(found.shape) > LARGEST_MATRIX:
        raise InputError(str(path), "is too large", value=found.shape, bound=f"{LARGEST_MATRIX} entries at most")
    return found.toarray()


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
        _require_size(content, len(content.getbuffer()))
        content.seek(0)
        array = np.load(content, allow_pickle=False)
    except _DAMAGE as error:
        raise InputError(str(path), f"is not a NumPy file ({error})") from error
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="an array of two axes")
    return array.astype(np.float64)


def _read_npz(path: Path) -> sparse.csr_array:
    content = _content(path)
    try:
        _require_sizes(content)
        content.seek(0)
        loaded = sparse.load_npz(content)
        if hasattr(loaded, "check_format"):
            # An index beyond the shape would be followed to wherever it points in memory.
            loaded.check_format(full_check=True)
        found = sparse.csr_array(loaded)
    except _DAMAGE as error:
        raise InputError(str(path), f"is not a sparse matrix of SciPy ({error})") from error
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="a sparse matrix of numbers")
    return found.astype(np.float64)


def _require_sizes(content: io.BytesIO) -> None:
    """Raise `ValueError` where the arrays of an archive claim more than they hold, or hold too much altogether."""
    with zipfile.ZipFile(content) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > max(2**28, 100 * len(content.getbuffer())):
            raise ValueError("it unpacks to much more than its own size")
        for entry in archive.infolist():
            with archive.open(entry) as source:
                _require_size(source, entry.file_size)


def _require_size(source: IO[bytes], size: int) -> None:
    """Raise `ValueError` where the header of an array claims more than `size` bytes; other headers raise `_DAMAGE`."""
    version = np.lib.format.read_magic(source)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"the version {version} of the format is unknown")
    shape, _, dtype = read(source)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"it claims the shape {shape}, which is more than it holds")


def _content(path: Path) -> io.BytesIO:
    """Return the content of a file, read as a whole: readers of damaged archives may leave files open."""
    try:
        return io.BytesIO(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
