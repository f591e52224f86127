"""Read a matrix of numbers from a file: text, NumPy's .npy, or SciPy's sparse .npz."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.data.bounds import content_of, require_unpacked
from mechdesign.data.forms import withholding
from mechdesign.data.text import number, read_lines, read_rows, unreadable
from mechdesign.errors import InputError, Shown
from mechdesign.model.open_chain import ENDS, ROW_OF_ZEROS
from mechdesign.validation import LARGEST_MATRIX

__all__ = ["dense", "read_any_matrix", "read_chain_matrix", "read_matrix", "read_only_array"]

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
    return dense(read_any_matrix(path, delimiter), path)


def dense(found: Floats | sparse.csr_array, path: Path) -> Floats:
    """Return a matrix that was read from `path` as an array; raise `InputError` for one that would be too large."""
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
    return _numbers(path, _rows(path, delimiter))


@withholding()
def read_only_array(path: Path) -> NDArray[Any] | None:
    """Return the array in an archive .npz that NumPy wrote, or None where it holds several.

    Raises:
        InputError: It cannot be read, is damaged, or unpacks to too much.
    """
    content = _content(path)
    try:
        _require_sizes(content, path)
        content.seek(0)
        with np.load(content, allow_pickle=False) as arrays:
            names = list(arrays)
            return np.asarray(arrays[names[0]]) if len(names) == 1 else None
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(str(path), f"is no archive of NumPy ({_reason(error)})") from None


def read_chain_matrix(path: Path, delimiter: str | None = None) -> tuple[Floats | sparse.csr_array, str]:
    """Return the matrix of a chain, and the word that stands in place of some of its rows, if any.

    In a text, a line may hold one of the words "stay", "mixture" and "any" in place of a row: nobody was seen to leave
    that state (see `mechdesign.model.open_chain`). Its row is then zero, and under "stay" it has a 1 on the diagonal.

    Raises:
        InputError: As `read_any_matrix` does; or several words stand in one file, or nothing but words, or a row of
            zeros.
    """
    if path.suffix.lower() in (".npy", ".npz"):
        return read_any_matrix(path, delimiter), ""
    words: dict[int, str] = {}
    lines: list[int] = []

    def known() -> Iterator[tuple[int, list[str]]]:
        for place, (line, row) in enumerate(_rows(path, delimiter)):
            # A spreadsheet fills a line up with empty fields.
            if row[0].strip() in ENDS and not any(row[1:]):
                words[place] = row[0].strip()
            else:
                lines.append(line)
                yield line, row
        if words and not lines:
            raise InputError(str(path), "has no row that is known", bound="some lines of numbers beside those of words")

    found = _numbers(path, known())
    if len(set(words.values())) > 1:
        bound = "the same word in all lines that have one"
        raise InputError(
            str(path),
            "has several words in place of rows",
            value=Shown(", ".join(sorted(set(words.values())))),
            bound=bound,
        )
    zero = np.flatnonzero(~found.any(axis=1))
    if zero.size:
        remedy = "write one of the words stay, mixture and any in its place"
        bound = "a row that sums to 1"
        raise InputError(f"{path}, line {lines[zero[0]]}", ROW_OF_ZEROS, bound=bound, remedy=remedy)
    if not words:
        return found, ""
    rows = np.zeros((len(lines) + len(words), found.shape[1]))
    ends = np.array(list(words))
    rows[np.delete(np.arange(len(rows)), ends)] = found
    if words[int(ends[0])] != "stay":
        return rows, words[int(ends[0])]
    inside = ends[ends < rows.shape[1]]
    rows[inside, inside] = 1.0
    return rows, ""


def _numbers(path: Path, lines: Iterable[tuple[int, list[str]]]) -> Floats:
    result: list[list[float]] = []
    for line, row in lines:
        where = f"{path}, line {line}"
        if result and len(row) != len(result[0]):
            bound = f"{len(result[0])} as in the first line"
            raise InputError(where, "has the wrong number of fields", value=len(row), bound=bound)
        result.append([number(text, f"{where}, field {field}", _REMEDY) for field, text in enumerate(row, 1)])
    if not result:
        raise InputError(str(path), "is empty", bound="at least one line of numbers")
    return np.array(result)


def _rows(path: Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    return _free_rows(path) if delimiter is None else read_rows(path, delimiter)


def _free_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for line, text in read_lines(path):
        content = text.split("#", 1)[0].strip()
        if content:
            separator = ";" if ";" in content else "," if "," in content else None
            yield line, [field.strip() for field in content.split(separator)]


@withholding()
def _read_npy(path: Path) -> Floats:
    content = _content(path)
    try:
        _require_size(content, len(content.getbuffer()))
        content.seek(0)
        array = np.load(content, allow_pickle=False)
    except _DAMAGE as error:
        raise InputError(str(path), f"is not a NumPy file ({_reason(error)})") from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="an array of two axes")
    return array.astype(np.float64)


@withholding()
def _read_npz(path: Path) -> sparse.csr_array:
    content = _content(path)
    try:
        _require_sizes(content, path)
        content.seek(0)
        loaded = sparse.load_npz(content)
        # What is made of it has a number for each row, or column, also where nothing is in it.
        require_unpacked(path, len(content.getbuffer()), 8 * max(loaded.shape))
        if hasattr(loaded, "check_format"):
            # An index beyond the shape would be followed to wherever it points in memory.
            loaded.check_format(full_check=True)
        found = sparse.csr_array(loaded)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(str(path), f"is not a sparse matrix of SciPy ({_reason(error)})") from None
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="a sparse matrix of numbers")
    return found.astype(np.float64)


class _ClaimError(ValueError):
    """An archive says of itself what it does not keep."""


def _reason(error: Exception) -> str:
    """Say what is wrong with a file, without what stands in it: what other libraries say may quote it."""
    return str(error) if isinstance(error, _ClaimError) else "it is damaged, or of another format"


def _require_sizes(content: io.BytesIO, path: Path) -> None:
    """Raise `ValueError` where arrays of an archive claim more than they hold, `InputError` where they hold too much.

    Only ways of compression whose results are read piece by piece pass: others unpack at once whatever is claimed.
    """
    with zipfile.ZipFile(content) as archive:
        require_unpacked(path, len(content.getbuffer()), sum(entry.file_size for entry in archive.infolist()))
        for entry in archive.infolist():
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _ClaimError("it is compressed in another way than NumPy does")
            with archive.open(entry) as source:
                _require_size(source, entry.file_size)


def _require_size(source: IO[bytes], size: int) -> None:
    """Raise `ValueError` where the header of an array claims more than `size` bytes; other headers raise `_DAMAGE`."""
    version = np.lib.format.read_magic(source)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise _ClaimError(f"the version {version} of the format is unknown")
    shape, _, dtype = read(source)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise _ClaimError(f"it claims the shape {shape}, which is more than it holds")


def _content(path: Path) -> io.BytesIO:
    """Return the content of a file, read as a whole: readers of damaged archives may leave files open."""
    try:
        return io.BytesIO(content_of(path))
    except OSError as error:
        raise unreadable(path, error) from error
