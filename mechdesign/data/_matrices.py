"""Matrices and labelled channels from files.

``chain-counts.json`` holds ``schema``, ``smoothing`` (what was added to each count), ``states`` (n), ``steps`` (row,
column and count, for each count above 0, as the rows of ``forward.csv`` are numbered), and ``matrices``, the SHA-256 of
``forward.csv`` and ``backward.csv``. It is as private as the data that were counted.
"""

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
from mechdesign.data._layout import mark_of, said, withholding
from mechdesign.data._text import number, read_lines, read_rows, unreadable
from mechdesign.model._open_chain import ENDS, ROW_OF_ZEROS

_CORNER = "secret"


def has_labels(path: Path) -> bool:
    """Tell whether a text starts with the header of a channel with labels: ``secret``, then the observables."""
    try:
        with path.open("rb") as file:
            return file.read(len(_CORNER) + 4).lstrip(b"\xef\xbb\xbf").startswith(f"{_CORNER},".encode())
    except OSError:
        # Whoever reads the file says what is wrong with it.
        return False


def read_labelled(path: Path) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the labels of the secrets, and p(o|s) as fractions, dtype object, shape (n, m)."""
    rows = read_rows(path, ",")
    _, header = next(rows)
    labels, values = [], []
    for line, (label, *texts) in rows:
        where = f"{path}, line {line}"
        if len(texts) != len(header) - 1:
            bound = f"{len(header)} as in the header"
            raise InputError(where, "has the wrong number of fields", value=len(texts) + 1, bound=bound)
        labels.append(label)
        with withholding():
            values.append([exact(text, f"{where}, column {place}") for place, text in enumerate(texts, 2)])
    if not values or len(header) < 2:
        raise InputError(str(path), "holds no channel", bound="a header line, and a line for each secret")
    matrix = np.empty((len(values), len(header) - 1), dtype=object)
    matrix[:] = values
    return tuple(labels), matrix


Shape = tuple[int | None, int | None]
_UNKNOWN = (None, None)
_ROW_OF_NANS = f"is a row of NaN, as 0 divided by 0 is; of counts it {ROW_OF_ZEROS}"

# What NumPy, zipfile and SciPy raise for damaged arrays and archives; NotImplementedError is what zipfile raises for a
# compression method that it does not know.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)

_REMEDY = (
    "leave out names of columns and rows, or say that they are there: header, numbered (--header, --numbered of the "
    "command)"
)
# Numbers with a comma, and blanks between them.
_DECIMAL_COMMAS = re.compile(r"\s*[+-]?[0-9]+,[0-9]+(?:\s+[+-]?[0-9]+(?:,[0-9]+)?)+\s*")
_FEWEST_NUMBERED = 3


def read_matrix(path: Path, delimiter: str | None = None, shape: Shape = _UNKNOWN) -> Floats:
    """Return the matrix in a file as float64 of two axes; infinities and NaN pass.

    Args:
        path: A file .npy or .npz (sparse), or else text with a row a line. A first line that names or numbers columns,
            or a first column that does so with rows, is skipped under ``reading_as(header=True, numbered=True)``.
        delimiter: The character between the numbers of a text; unless given, each line may have tabs, semicolons,
            commas or blanks, and # starts a comment.
        shape: How many rows and columns are wanted, as far as it is known: nothing numbers a matrix that has them.

    Raises:
        InputError: For a file that cannot be read or holds no matrix, naming the line where there is one; or whose
            first line or column may number the others, where neither is said.
    """
    return dense(read_any_matrix(path, delimiter, shape), path)


def dense(found: Floats | sparse.csr_array, path: Path) -> Floats:
    """Return a matrix that was read from `path` as an array; raise `InputError` for one that would be too large."""
    if not isinstance(found, sparse.csr_array):
        return found
    if math.prod(found.shape) > LARGEST_MATRIX:
        raise InputError(str(path), "is too large", value=found.shape, bound=f"{LARGEST_MATRIX} entries at most")
    return found.toarray()


def read_any_matrix(path: Path, delimiter: str | None = None, shape: Shape = _UNKNOWN) -> Floats | sparse.csr_array:
    """Return what `read_matrix` does, but leave a sparse matrix sparse."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _read_npy(path)
    if suffix == ".npz":
        return _read_npz(path)
    lines = list(_rows(path, delimiter))
    found = _numbers(path, lines)
    require_unnumbered(path, found, shape)
    return found


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


def read_chain_matrix(
    path: Path, delimiter: str | None = None, shape: Shape = _UNKNOWN
) -> tuple[Floats | sparse.csr_array, str]:
    """Return the matrix of a chain, and the word that stands in place of some of its rows, if any.

    In a text, a line may hold one of the words "stay", "mixture" and "any" in place of a row: nobody was seen to leave
    that state (see `mechdesign.model._markov`). Its row is then zero, and under "stay" it has a 1 on the diagonal.

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

    found = _numbers(path, list(known()))
    if not words:
        require_unnumbered(path, found, shape)
    if len(set(words.values())) > 1:
        bound = "the same word in all lines that have one"
        raise InputError(
            str(path),
            "has several words in place of rows",
            value=Shown(", ".join(sorted(set(words.values())))),
            bound=bound,
        )
    _require_sums(found, path, lines)
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


def _require_sums(found: Floats, path: Path, lines: list[int]) -> None:
    """Raise `InputError` if a row of a transition matrix is all zeros, or all NaN."""
    undefined = np.logical_and.reduce(np.isnan(found), axis=1)
    zero = np.flatnonzero(~found.any(axis=1) | undefined)
    if zero.size:
        remedy = (
            "put a 1 on its diagonal if people stay, or write one of the words stay, mixture and any in its place; or "
            "count with smoothing, or leave the state out"
        )
        bound = "a row that sums to 1"
        problem = _ROW_OF_NANS if undefined[zero[0]] else ROW_OF_ZEROS
        raise InputError(f"{path}, line {lines[zero[0]]}", problem, bound=bound, remedy=remedy)


def _numbers(path: Path, lines: list[tuple[int, list[str]]]) -> Floats:
    """Return the numbers in the rows of a text."""
    result: list[list[float]] = []
    mark = mark_of([text for _, row in lines for text in row], str(path))
    for line, row in lines:
        where = f"{path}, line {line}"
        if result and len(row) != len(result[0]):
            bound = f"{len(result[0])} as in the first line"
            raise InputError(where, "has the wrong number of fields", value=len(row), bound=bound)
        result.append(
            [number(mark.plain(text), f"{where}, field {field}", _REMEDY) for field, text in enumerate(row, 1)]
        )
    if not result:
        raise InputError(str(path), "is empty", bound="at least one line of numbers")
    return np.array(result)


def _rows(path: Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a text and their fields, without a header and without names of rows where that is said."""
    layout = said()
    character = layout.delimiter if delimiter is None else delimiter
    rows = _free_rows(path) if character is None else read_rows(path, character)
    for place, (line, row) in enumerate(rows):
        if place or not layout.header:
            # A word in place of a row has nothing after it.
            alone = layout.numbered and len(row) > 1
            yield line, row[1:] if alone else row


def _free_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    lines = ((line, text.split("#", 1)[0].rstrip("\r\n")) for line, text in read_lines(path))
    filled = [(line, content) for line, content in lines if content.strip()]
    # With decimal commas, blanks separate as well as commas do elsewhere.
    signs = [sign for sign in ("\t", ";", ",") if all(sign in content for _, content in filled)]
    commas = said().decimal != "," and not any(_DECIMAL_COMMAS.fullmatch(content) for _, content in filled)
    for line, content in filled:
        separator = next((sign for sign in signs if sign != "," or commas), None)
        separator = separator or next((sign for sign in ";," if sign in content and (sign != "," or commas)), None)
        # Quotes shield names from spreadsheets, and numbers need none.
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
        problem, bound = "does not hold a matrix of numbers", "an array of two axes, of real numbers"
        raise InputError(str(path), problem, value=found, bound=bound)
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
        if "does not contain a sparse" in str(error) and len(names := _arrays(content)) > 1:
            shown = Shown(f"{len(names)} array{'s' * (len(names) != 1)}")
            bound, remedy = "a sparse matrix of SciPy", "save one array by np.save, as .npy"
            raise InputError(str(path), "is an archive of arrays", value=shown, bound=bound, remedy=remedy) from None
        raise InputError(str(path), f"is not a sparse matrix of SciPy ({_reason(error)})") from None
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(str(path), "does not hold a matrix of numbers", bound="a sparse matrix of numbers")
    return found.astype(np.float64)


def _arrays(content: io.BytesIO) -> list[str]:
    """Return the names of the entries of an archive, none where it is no archive."""
    try:
        with zipfile.ZipFile(content) as archive:
            return archive.namelist()
    except _DAMAGE:
        return []


def require_unnumbered(path: Path, matrix: Floats, shape: Shape = _UNKNOWN) -> None:
    """Raise `InputError` where the first line, or column, of a text may number the others and nothing says whether.

    Of the `shape`, what is known: a matrix with as many rows, or columns, as are wanted has nothing more.

    A first line 0, 1, 2, … or 1, 2, 3, … may, as may such a column; but not in the distances along a line, nor, of two
    columns, among whole numbers: places and edges look so.
    """
    layout = said()
    if _is_line(matrix):
        return
    whole = bool((matrix == np.floor(matrix)).all())
    for key, what, others, line, asked in (
        ("header", "line", "columns", matrix[0], layout.header),
        ("numbered", "column", "rows", matrix[:, 0], layout.numbered),
    ):
        few = len(line) < _FEWEST_NUMBERED or (min(matrix.shape) < _FEWEST_NUMBERED and whole)
        wanted = matrix.shape[key == "numbered"] == shape[key == "numbered"]
        if asked is None and not few and not wanted and _counts(line):
            raise InputError(
                str(path),
                f"has a first {what} that may number its {others}",
                value=Shown(f"{line[0]:g}, {line[1]:g}, …, {line[-1]:g}"),
                bound="what is said to be, or not to be, a number of the matrix",
                remedy=f"say {key} = true if it numbers them, and false if not (--{key}, --no-{key} of the command)",
            )


def _counts(line: Floats) -> bool:
    """Tell whether numbers are 0, 1, 2, … or 1, 2, 3, …."""
    return bool((line == np.arange(len(line)) + line[0]).all()) and line[0] in (0, 1)


def _is_line(matrix: Floats) -> bool:
    """Tell whether a matrix holds the distances |i - j| along a line, which begin with 0, 1, 2, … both ways."""
    return np.array_equal(matrix, np.abs(np.subtract.outer(*map(np.arange, matrix.shape))))


class _ClaimError(ValueError):
    """An archive says of itself what it does not keep."""


def _reason(error: Exception) -> str:
    """Say what is wrong with a file, without what stands in it: what other libraries say may quote it."""
    if "Object arrays cannot be loaded" in str(error):
        return "it holds objects of Python: save numbers, as float64"
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
