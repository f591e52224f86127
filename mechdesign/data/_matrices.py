"""Read matrices and labelled channels from files."""

from __future__ import annotations

import io
import math
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.base._arrays import LARGEST_MATRIX, Floats
from mechdesign.base._errors import InputError, Shown
from mechdesign.certify._exact import exact
from mechdesign.data._bounds import content_of, require_unpacked
from mechdesign.data._layout import current_layout, mark_of, withholding
from mechdesign.data._text import as_float, number, read_lines, read_rows, unreadable

_CORNER = "secret"


def has_labels(path: Path) -> bool:
    """Return whether a text starts with the header of a labelled channel: ``secret``, then the observables."""
    try:
        with path.open("rb") as file:
            return file.read(len(_CORNER) + 4).lstrip(b"\xef\xbb\xbf").startswith(f"{_CORNER},".encode())
    except OSError:
        # The function that reads the file reports the error.
        return False


def read_labelled(path: Path) -> tuple[tuple[str, ...], NDArray[Any]]:
    r"""Read a channel with labels from CSV.

    The header line is ``secret``, then the observables. Each further line contains the label of a secret and its
    probabilities.

    Args:
        path: File to read.

    Returns:
        The labels of the secrets, and p(o|s) as fractions, dtype object, shape (n, m).

    Raises:
        InputError: A line has the wrong number of fields, or an entry is not a number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "channel.csv")
    ...     _ = file.write_text("secret,yes,no\nyes,3/4,1/4\nno,1/4,3/4\n")
    ...     labels, matrix = read_labelled(file)
    >>> labels, matrix[0, 0]
    (('yes', 'no'), Fraction(3, 4))
    """
    rows = read_rows(path, ",")
    _, header = next(rows)
    labels, values = [], []
    for line, (label, *texts) in rows:
        where = f"{path}, line {line}"
        if len(texts) != len(header) - 1:
            bound = f"{len(header)} fields, as in the header"
            raise InputError(where, "has the wrong number of fields", value=len(texts) + 1, bound=bound)
        labels.append(label)
        with withholding():
            values.append([exact(text, f"{where}, column {place}") for place, text in enumerate(texts, 2)])
    if not values or len(header) < 2:
        raise InputError(str(path), "contains no channel", bound="a header line, and a line for each secret")
    matrix = np.empty((len(values), len(header) - 1), dtype=object)
    matrix[:] = values
    return tuple(labels), matrix


Shape = tuple[int | None, int | None]
_UNKNOWN = (None, None)

# Exceptions of NumPy, zipfile and SciPy for damaged arrays and archives. zipfile raises NotImplementedError for an
# unknown compression method.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)

_REMEDY = (
    "remove names of columns and rows, or declare them: header = true, numbered = true (--header, --numbered of the "
    "command, for all its files)"
)
# A line of numbers with decimal commas, separated by blanks.
_DECIMAL_COMMAS = re.compile(r"\s*[+-]?[0-9]+,[0-9]+(?:\s+[+-]?[0-9]+(?:,[0-9]+)?)+\s*")
# Minimum length of a line 0, 1, 2, … that may be a header.
_MIN_HEADER_LENGTH = 3


def read_matrix(path: Path, delimiter: str | None = None, shape: Shape = _UNKNOWN) -> Floats:
    r"""Read a matrix; infinities and NaN are accepted.

    Args:
        path: A file in the format .npy or .npz (sparse), or a text file with one row per line. Under
            ``reading_as(header=True, numbered=True)`` the first line (names of columns) and the first column (names of
            rows) are skipped.
        delimiter: The character between the numbers of a text. If None, tabs, semicolons, commas or blanks separate
            numbers, and # starts a comment.
        shape: The expected numbers of rows and columns, None if unknown. A matrix of this shape has no header.

    Returns:
        The matrix, float64 with two axes.

    Raises:
        InputError: The file cannot be read or contains no matrix. The error is also raised if the first line or column
            may be a header, unless `reading_as` specifies it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "matrix.csv")
    ...     _ = file.write_text("0.5,0.5\n0.25,0.75\n")
    ...     read_matrix(file).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    return dense(read_any_matrix(path, delimiter, shape), path)


def dense(found: Floats | sparse.csr_array, path: Path) -> Floats:
    """Return a matrix read from `path` as a dense array; raise `InputError` if it would be too large."""
    if not isinstance(found, sparse.csr_array):
        return found
    if math.prod(found.shape) > LARGEST_MATRIX:
        raise InputError(str(path), "is too large", value=found.shape, bound=f"{LARGEST_MATRIX} entries at most")
    return found.toarray()


def read_any_matrix(path: Path, delimiter: str | None = None, shape: Shape = _UNKNOWN) -> Floats | sparse.csr_array:
    """Read a matrix as `read_matrix` does, but leave a sparse matrix sparse."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _read_npy(path)
    if suffix == ".npz":
        return _read_npz(path)
    lines = list(_rows(path, delimiter))
    found = _numbers(path, lines)
    require_unnumbered(path, found, shape)
    return found


def read_only_array(path: Path) -> NDArray[Any] | None:
    """Return the array in an archive .npz written by NumPy, or None if it contains several arrays.

    Raises `InputError` if the archive cannot be read, is damaged, or unpacks to more than the limit.
    """
    arrays = list(read_arrays(path, most=1).values())
    return arrays[0] if arrays else None


@withholding()
def read_arrays(path: Path, most: int = 32) -> dict[str, NDArray[Any]]:
    """Return the arrays in an archive .npz written by NumPy, by name; none of them if there are more than `most`.

    Raises `InputError` if the archive cannot be read, is damaged, or unpacks to more than the limit.
    """
    content = _content(path)
    try:
        _require_sizes(content, path)
        content.seek(0)
        with np.load(content, allow_pickle=False) as arrays:
            names = list(arrays)
            return {name: np.asarray(arrays[name]) for name in names} if len(names) <= most else {}
    except InputError:
        raise
    except _DAMAGE as error:
        problem = f"is not a NumPy archive ({_reason(error)})"
        raise InputError(str(path), problem, bound="a file that numpy.savez wrote") from None


def _numbers(path: Path, lines: list[tuple[int, list[str]]]) -> Floats:
    """Return the numbers in the rows of a text."""
    result: list[list[float]] = []
    mark = mark_of([text for _, row in lines for text in row], str(path))
    if len(lines) > 1 and not _has_number(lines[0][1]) and _has_number(lines[1][1]):
        line, names = lines[0]
        found, bound = Shown(f"{len(names)} text{'s' * (len(names) != 1)}"), "numbers, as in the lines below"
        raise InputError(f"{path}, line {line}", "is a header", value=found, bound=bound, remedy=_REMEDY)
    for line, row in lines:
        where = f"{path}, line {line}"
        if result and len(row) != len(result[0]):
            bound = f"{len(result[0])} fields, as in the first line"
            raise InputError(where, "has the wrong number of fields", value=len(row), bound=bound)
        result.append(
            [number(mark.plain(text), f"{where}, field {field}", _REMEDY) for field, text in enumerate(row, 1)]
        )
    if not result:
        raise InputError(str(path), "is empty", bound="at least one line of numbers")
    return np.array(result)


def _has_number(row: list[str]) -> bool:
    return any(as_float(text) is not None for text in row)


def _rows(path: Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a text and their fields, without the header and row names that the layout declares."""
    layout = current_layout()
    character = layout.delimiter if delimiter is None else delimiter
    rows = _free_rows(path) if character is None else read_rows(path, character)
    for place, (line, row) in enumerate(rows):
        if place or not layout.header:
            # A word instead of a row is the only field of its line.
            has_name = layout.numbered and len(row) > 1
            yield line, row[1:] if has_name else row


def _free_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    lines = ((line, text.split("#", 1)[0].rstrip("\r\n")) for line, text in read_lines(path))
    filled = [(line, content) for line, content in lines if content.strip()]
    # With decimal commas, blanks separate the numbers.
    signs = [sign for sign in ("\t", ";", ",") if all(sign in content for _, content in filled)]
    commas = current_layout().decimal != "," and not any(_DECIMAL_COMMAS.fullmatch(content) for _, content in filled)
    for line, content in filled:
        separator = next((sign for sign in signs if sign != "," or commas), None)
        separator = separator or next((sign for sign in ";," if sign in content and (sign != "," or commas)), None)
        # Names may be quoted; numbers are not.
        yield line, [field.strip().strip('"') for field in content.split(separator)]


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
        found = Shown(f"{array.ndim} axes of {array.dtype}") if isinstance(array, np.ndarray) else None
        problem, bound = "does not contain a matrix of numbers", "an array of real numbers with two axes"
        raise InputError(str(path), problem, value=found, bound=bound)
    return array.astype(np.float64)


@withholding()
def _read_npz(path: Path) -> sparse.csr_array:
    content = _content(path)
    try:
        _require_sizes(content, path)
        content.seek(0)
        loaded = sparse.load_npz(content)
        # A sparse matrix stores a pointer for each row, or column, even without entries.
        require_unpacked(path, len(content.getbuffer()), 8 * max(loaded.shape))
        if hasattr(loaded, "check_format"):
            # An index out of range would make SciPy access invalid memory.
            loaded.check_format(full_check=True)
        found = sparse.csr_array(loaded)
    except InputError:
        raise
    except _DAMAGE as error:
        if "does not contain a sparse" in str(error) and len(names := _arrays(content)) > 1:
            shown = Shown(f"{len(names)} array{'s' * (len(names) != 1)}")
            bound, remedy = "a sparse matrix of SciPy", "save a single array with np.save, as .npy"
            raise InputError(str(path), "is an archive of arrays", value=shown, bound=bound, remedy=remedy) from None
        raise InputError(str(path), f"is not a sparse matrix of SciPy ({_reason(error)})") from None
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(str(path), "does not contain a matrix of numbers", bound="a sparse matrix of numbers")
    return found.astype(np.float64)


def _arrays(content: io.BytesIO) -> list[str]:
    """Return the names of the entries of an archive, or nothing if it cannot be read."""
    try:
        with zipfile.ZipFile(content) as archive:
            return archive.namelist()
    except _DAMAGE:
        return []


def require_unnumbered(path: Path, matrix: Floats, shape: Shape = _UNKNOWN) -> None:
    """Raise `InputError` if the first line or column of a text may be a header, and the layout does not specify it.

    A first line or column 0, 1, 2, … or 1, 2, 3, … may be a header. A matrix with the expected `shape` has no header.
    Matrices of distances along a line, and matrices with two columns of whole numbers, such as lists of edges, have no
    header.
    """
    layout = current_layout()
    if _is_line(matrix):
        return
    whole = bool((matrix == np.floor(matrix)).all())
    for key, name, others, line, declared in (
        ("header", "line", "columns", matrix[0], layout.header),
        ("numbered", "column", "rows", matrix[:, 0], layout.numbered),
    ):
        few = len(line) < _MIN_HEADER_LENGTH or (min(matrix.shape) < _MIN_HEADER_LENGTH and whole)
        wanted = matrix.shape[key == "numbered"] == shape[key == "numbered"]
        if declared is None and not few and not wanted and _counts(line):
            raise InputError(
                str(path),
                f"has a first {name} that may number its {others}",
                value=Shown(f"{line[0]:g}, {line[1]:g}, …, {line[-1]:g}"),
                bound="declared as numbers of the matrix or as a header",
                remedy=f"set {key} = true if it numbers them, and false if not (--{key}, --no-{key} of the command)",
            )


def _counts(line: Floats) -> bool:
    """Return whether numbers are 0, 1, 2, … or 1, 2, 3, …."""
    return bool((line == np.arange(len(line)) + line[0]).all()) and line[0] in (0, 1)


def _is_line(matrix: Floats) -> bool:
    """Return whether a matrix contains the distances |i - j| along a line, so that its first row is 0, 1, 2, …."""
    return np.array_equal(matrix, np.abs(np.subtract.outer(*map(np.arange, matrix.shape))))


class _ClaimError(ValueError):
    """The header of an array contradicts its content."""


def _reason(error: Exception) -> str:
    """Return the reason why a file is unreadable, without its content, which errors of other libraries may quote."""
    if "Object arrays cannot be loaded" in str(error):
        return "it contains Python objects: save numbers, as float64"
    return str(error) if isinstance(error, _ClaimError) else "it is damaged, or has another format"


def _require_sizes(content: io.BytesIO, path: Path) -> None:
    """Raise `ValueError` if arrays of an archive claim more data than they contain, `InputError` if they are too large.

    Only compression methods that unpack in pieces are accepted. Other methods unpack the whole content at once.
    """
    with zipfile.ZipFile(content) as archive:
        require_unpacked(path, len(content.getbuffer()), sum(entry.file_size for entry in archive.infolist()))
        for entry in archive.infolist():
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _ClaimError("it is compressed by a method that NumPy does not use")
            with archive.open(entry) as source:
                _require_size(source, entry.file_size)


def _require_size(source: IO[bytes], size: int) -> None:
    """Raise `ValueError` if the header of an array claims more than `size` bytes, or one of `_DAMAGE` if damaged."""
    version = np.lib.format.read_magic(source)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise _ClaimError(f"version {version} of the format is unknown")
    shape, _, dtype = read(source)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise _ClaimError(f"it claims the shape {shape}, but contains less data")


def _content(path: Path) -> io.BytesIO:
    """Return the content of a file, read at once, because readers of damaged archives may leave files open."""
    try:
        return io.BytesIO(content_of(path))
    except OSError as error:
        raise unreadable(path, error) from error
