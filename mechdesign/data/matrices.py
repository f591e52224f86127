"""Matrices and budgets in files: CSV of numbers, .npy and .npz of NumPy and SciPy; and channels with labels in CSV."""

from __future__ import annotations

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import LARGEST_MATRIX, Floats, as_budgets
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError
from mechdesign.base._files import read_regular, write_output
from mechdesign.base._names import Named
from mechdesign.certify._archive import max_unpacked_bytes
from mechdesign.certify._exact import exact
from mechdesign.data.table import FIXED, Layout, read_rows, read_table

Declared = bool | Literal["ignore"] | None
"""Whether a first line or column contains names: None if that is not declared, "ignore" if they are not used."""

_CORNER = "secret"
# Exceptions of NumPy, zipfile and SciPy for damaged arrays and archives. zipfile raises NotImplementedError for an
# unknown compression method.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
_HEADER = 'if it names the columns, set header = true, or "ignore" to skip it (--header of a command)'
_INDEX = 'if it names the rows, set index = true, or "ignore" to skip it (--index of a command)'
_PANDAS = (
    "pandas can write the matrix in this form:\n"
    "    import pandas as pd\n"
    '    frame = pd.read_csv("{}", sep=";", decimal=",", encoding="latin-1", header=None)\n'
    '    frame.to_csv("new.csv", index=False, header=False)'
)


def read_dense(path: Path, header: Declared = None, index: Declared = None, layout: Layout = FIXED) -> Floats | Named:
    r"""Read a matrix of real numbers, float64 with two axes; infinities and NaN are accepted.

    Args:
        path: A file .npy, a file .npz with a sparse matrix or one array, or else a CSV of numbers, which may be
            compressed by gzip (.gz).
        header: Whether the first line of a CSV names the columns. With "ignore" the line is skipped.
        index: Whether the first column of a CSV names the rows. With "ignore" the column is skipped.
        layout: The layout of a CSV; by default that of files that no specification names.

    Returns:
        The matrix, with its names if the file declares them. Names 0, 1, … in any order are integers, which are
        positions.

    Raises:
        InputError: The file cannot be read, or contains no matrix of real numbers. The error is also raised if its
            first line or column may name the others, and `header` or `index` does not tell.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "matrix.csv")
    ...     _ = file.write_text(",home,work\nhome,0,2.5\nwork,2.5,0\n")
    ...     matrix = read_dense(file, header=True, index=True)
    >>> matrix.rows, np.asarray(matrix).tolist()
    (('home', 'work'), [[0.0, 2.5], [2.5, 0.0]])
    """
    found = read_any_matrix(path, header, index, layout)
    if not isinstance(found, sparse.csr_array):
        return found
    _require_size(found.shape, path)
    return found.toarray()


def read_any_matrix(
    path: Path, header: Declared = None, index: Declared = None, layout: Layout = FIXED
) -> Floats | Named | sparse.csr_array:
    """Read a matrix as `read_dense` does, but leave a sparse matrix sparse."""
    suffix = path.suffix.lower()
    binary = suffix in (".npy", ".npz")
    _require_known(header, index)
    for key, declared in (("header", header), ("index", index)):
        # The options of a command hold for all its files.
        if declared and binary and layout.declared:
            raise InputError(key, f"is declared, but {path} has no names", bound="a CSV", remedy="remove the key")
    if suffix == ".parquet":
        raise InputError(str(path), "is a table, and not a matrix", bound="a CSV of numbers, .npy or .npz")
    return _read_binary(path) if binary else _read_text(path, header, index, layout)


def _require_known(header: object, index: object) -> None:
    for key, declared in (("header", header), ("index", index)):
        if declared is not None and not isinstance(declared, bool) and declared != "ignore":
            raise InputError(key, "is not known", value=declared, bound='true, false or "ignore"')


def match_names(
    found: NDArray[Any] | Named, place: str, rows: Sequence[Hashable] | None, columns: Sequence[Hashable] | None = None
) -> NDArray[Any]:
    """Return a matrix of a file with its names in the order of labels, as `mechdesign.base._names.named` does.

    Names 0, 1, … are labels if they are the labels in order, or if only some of them are labels, which is refused. An
    error shows labels, but no name that is none.
    """
    try:
        if not isinstance(found, Named):
            return found
        names = (_texts(names, labels or ()) for names, labels in ((found.rows, rows), (found.columns, columns)))
        return Named(found.values, *names).arranged(place, rows, columns)
    except InputError as error:
        known = error.value if error.value in {*(rows or ()), *(columns or ())} else None
        remedy = 'correct them, or skip them where the order is right ("ignore" for header and index, or their options)'
        raise InputError(error.path, error.problem, value=known, bound=error.bound, remedy=remedy) from None


def _texts(names: Sequence[Hashable], labels: Sequence[Hashable]) -> Sequence[Hashable]:
    """Return positions as texts if these are the labels in order, or if only some of them are labels."""
    texts, known = tuple(map(str, names)), set(labels)
    some = not known.isdisjoint(texts) and known != set(texts)
    return texts if some or texts == tuple(labels) else names


def _read_text(path: Path, header: Declared, index: Declared, layout: Layout) -> Floats | Named:
    lines = read_lines(path, layout)
    decimal = layout.decimal
    head = list(islice(lines, 2))
    columns = head.pop(0)[1] if head and header else []
    if header is None:
        _require_no_header(path, head, index, decimal)
    values: list[Floats] = []
    rows: list[str] = []
    width = len(columns)
    for line, fields in chain(head, lines):
        where = f"{path}, line {line}"
        width = width or len(fields)
        if len(fields) != width:
            problem, bound = "has the wrong number of fields", f"{width}, as in the first line"
            remedy = _remedy(path, layout, 'delimiter = "…"')
            raise InputError(where, problem, value=len(fields), bound=bound, remedy=remedy)
        rows += fields[:1] if index else []
        values.append(_numbers(fields, where, index, (path, layout)))
        _require_size((len(values), width), path)
    _require_size((len(values), width - bool(index)), path)
    matrix = np.array(values)
    _require_no_count(path, matrix, header, index)
    if True not in (header, index):
        return matrix
    columns = columns[bool(index) :] if header is True else []
    return Named(matrix, _names(rows if index is True else []), _names(columns))


def read_lines(path: Path, layout: Layout = FIXED) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line; blank lines may stand at the end only."""
    blank = 0
    for line, fields in read_rows(path, layout):
        if fields and blank:
            raise InputError(f"{path}, line {blank}", "is blank", bound="a row in each line", remedy="delete the line")
        blank = blank or (0 if fields else line)
        if fields:
            yield line, fields


def _names(texts: Sequence[str]) -> Sequence[str] | Sequence[int]:
    """Return the names of an axis; texts 0, 1, … in any order become integers."""
    digits = {str(position): position for position in range(len(texts))}
    return texts if set(texts) != digits.keys() else [digits[text] for text in texts]


def _remedy(path: Path, layout: Layout, key: str) -> str:
    """Return the remedy for a layout that does not fit: the key that declares it, or the lines of pandas."""
    return layout.remedy(path, key) if layout.declared else _PANDAS.format(path)


def _float(text: str, decimal: str) -> float | None:
    """Return the number in a text, or None; Python alone would read 1_0 and digits of other scripts."""
    if decimal != ".":
        text = "" if "." in text else text.replace(decimal, ".")
    try:
        value = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        return None
    # A number that is too large for a float is not infinite.
    return None if math.isinf(value) and "inf" not in text.lower() else value


def _is_too_large(text: str) -> bool:
    with suppress(ValueError):
        return math.isinf(float(text))
    return False


def _numbers(fields: list[str], where: str, index: Declared, file: tuple[Path, Layout]) -> Floats:
    """Return the numbers in the fields of a line, without the name of a row."""
    decimal = file[1].decimal
    texts = fields[1:] if index else fields
    values = [_float(text, decimal) for text in texts]
    if None not in values:
        return np.array(values, dtype=np.float64)
    place = values.index(None)
    text, remedy = texts[place].strip(), ""
    if _float(text.replace("/", "").rstrip("%"), ".") is not None and "_" not in text:
        remedy = "write decimals; a channel of fractions has a header line that begins with the word secret"
    elif _float(text, "," if decimal == "." else ".") is not None:
        remedy = _remedy(*file, f'decimal = "{"," if decimal == "." else "."}"')
    elif _is_too_large(text):
        raise InputError(f"{where}, field {place + 1 + bool(index)}", "is out of range", bound="a finite number")
    elif index is None and text and place == 0 < len(values) - 1 and None not in values[1:]:
        raise InputError(where, "begins with a text", bound="a number, as in its other fields", remedy=_INDEX)
    elif any(sign in text for sign in ",;\t| "):
        remedy = _remedy(*file, 'delimiter = "…"')
    elif not text and place == len(texts) - 1:
        remedy = "remove the delimiter at the end of the lines"
    problem = "is not a number" if text else "is empty"
    raise InputError(f"{where}, field {place + 1 + bool(index)}", problem, bound="a decimal number", remedy=remedy)


def _require_no_header(path: Path, head: list[tuple[int, list[str]]], index: Declared, decimal: str) -> None:
    """Raise `InputError` if the first line holds texts, and the second numbers, perhaps below a name of its row."""
    if len(head) < 2:
        return
    first, second = ([_float(text, decimal) for text in fields] for _, fields in head)
    texts = None in first and all(value is None or value.is_integer() for value in first)
    if texts and None not in second[1:] and second != [None]:
        remedy = f"{_HEADER}; {_INDEX.replace('it', 'the first column', 1)}" if second[0] is None is index else _HEADER
        raise InputError(f"{path}, line {head[0][0]}", "holds texts", bound="numbers, as below", remedy=remedy)


def _require_no_count(path: Path, matrix: Floats, header: Declared, index: Declared) -> None:
    """Raise `InputError` if an undeclared first line or column counts from 0 or 1 beside entries that are not whole."""
    for name, remedy, declared, line, rest in (
        ("line", _HEADER, header, matrix[0], matrix[1:]),
        ("column", _INDEX, index, matrix[:, 0], matrix[:, 1:]),
    ):
        # A matrix of two rows and columns has no room for names.
        long = len(line) > 2 or (len(line) == 2 and matrix.shape != (2, 2))
        counts = long and line[0] in (0, 1) and bool((line == np.arange(len(line)) + line[0]).all())
        if declared is None and counts and not (rest == np.floor(rest)).all():
            problem = f"has a first {name} that counts from {line[0]:g}, beside numbers that are not whole"
            raise InputError(str(path), problem, bound="declared", remedy=f"{remedy}; false if it holds numbers")


def _require_size(shape: Sequence[int], path: Path | str) -> None:
    if math.prod(shape) > LARGEST_MATRIX:
        raise InputError(str(path), "is too large", value=tuple(shape), bound=f"{LARGEST_MATRIX} entries at most")
    if not math.prod(shape):
        raise InputError(str(path), "contains no numbers", bound="at least one row and one column")


def _read_binary(path: Path) -> Floats | sparse.csr_array:
    arrays = read_arrays(path)
    if "format" in arrays:
        return _read_sparse(path)
    if len(arrays) != 1:
        remedy = "save one array with numpy.save, or a sparse matrix with scipy.sparse.save_npz"
        raise InputError(str(path), "is an archive of arrays", value=len(arrays), bound="one array", remedy=remedy)
    (array,) = arrays.values()
    _require_real(array, path)
    _require_size(array.shape, path)
    return array.astype(np.float64)


def _read_sparse(path: Path) -> sparse.csr_array:
    with _opened(path) as file:
        loaded = sparse.load_npz(file)
        _require_real(loaded, path)
        # A sparse matrix stores a pointer for each row, or column, even without entries.
        _require_size((max(loaded.shape),), path)
        if hasattr(loaded, "check_format"):
            # An index out of range would make SciPy access invalid memory.
            loaded.check_format(full_check=True)
        return sparse.csr_array(loaded).astype(np.float64)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays in an archive .npz by name, or the array of a file .npy.

    Raises `InputError` if the file cannot be read, is damaged, contains Python objects, or unpacks to too much.
    """
    with _opened(path) as file:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                entries, limit = archive.infolist(), max_unpacked_bytes(path.stat().st_size)
            if not {entry.compress_type for entry in entries} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                # Other methods unpack at once, before their size is known.
                raise InputError(str(path), "is compressed by another method", bound="an archive of numpy.savez")
            size = sum(entry.file_size for entry in entries)
            if size > limit:
                raise InputError(str(path), "unpacks to too much", value=size, bound=f"at most {limit} bytes")
        file.seek(0)
        loaded = np.load(file, allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}


def _require_real(found: Any, path: Path) -> None:
    if getattr(found, "ndim", None) != 2 or found.dtype.kind not in "biuf":
        raise InputError(str(path), "does not contain a matrix of real numbers", bound="real numbers with two axes")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of NumPy; errors of NumPy, SciPy and zipfile become errors about the file."""
    try:
        yield io.BytesIO(read_regular(path))
    except InputError:
        raise
    except OSError as error:
        problem = f"cannot be opened ({error.strerror or error})"
        raise InputError(str(path), problem, bound="a file that exists") from error
    except _DAMAGE:
        problem = "is damaged, contains Python objects, or has another format"
        raise InputError(str(path), problem, bound="a file of numpy.save, or of scipy.sparse.save_npz") from None


def has_labels(path: Path) -> bool:
    """Return whether a text starts with the header of a channel with labels: ``secret``, then the observables."""
    try:
        return read_regular(path).removeprefix(b"\xef\xbb\xbf").startswith(f"{_CORNER},".encode())
    except OSError:
        # The function that reads the file reports the error.
        return False


def read_labelled(path: str | os.PathLike[str]) -> Named:
    r"""Read a channel with labels from CSV, with its exact values.

    The header line is ``secret``, then the observables. Each further line contains the label of a secret and its
    probabilities, decimals or fractions.

    Args:
        path: File to read.

    Returns:
        The probabilities p(o|s) as fractions, dtype object, shape (n, m), with the labels.

    Raises:
        InputError: A line has the wrong number of fields, or an entry is not a number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "channel.csv")
    ...     _ = file.write_text("secret,yes,no\nyes,3/4,1/4\nno,1/4,3/4\n")
    ...     channel = read_labelled(file)
    >>> channel.rows, channel.values[0, 0]
    (('yes', 'no'), Fraction(3, 4))
    """
    path = as_path(path, "path")
    lines = read_lines(path)
    _, (_, *header) = next(lines, (0, [""]))
    labels, values = [], []
    for line, (label, *texts) in lines:
        where = f"{path}, line {line}"
        if len(texts) != len(header):
            bound = f"{len(header) + 1} fields, as in the header"
            raise InputError(where, "has the wrong number of fields", value=len(texts) + 1, bound=bound)
        labels.append(label)
        try:
            values.append([exact(text, f"{where}, column {column}") for column, text in enumerate(texts, 2)])
        except InputError as error:
            raise InputError(error.path, error.problem, bound=error.bound, remedy=error.remedy) from None
    if not values or not header:
        raise InputError(str(path), "contains no channel", bound="a header line, and a line for each secret")
    matrix = np.empty((len(values), len(header)), dtype=object)
    matrix[:] = values
    return Named(matrix, labels, header)


_BUDGET_COLUMNS = ["step", "epsilon"]


def write_budgets(path: str | PathLike[str], epsilons: ArrayLike) -> None:
    """Write budgets as CSV with the columns ``step`` (from 0) and ``epsilon``.

    Each number is the shortest decimal that is read as the same float. The file is replaced atomically.

    Args:
        path: File to write.
        epsilons: Budgets in nats, finite and ≥ 0, shape (T,).

    Raises:
        ExportError: The file cannot be written.
        InputError: A budget is out of range.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.5, 0.25])
    ...     with open(f"{folder}/budgets.csv") as file:
    ...         print(file.read(), end="")
    step,epsilon
    0,0.5
    1,0.25
    """
    lines = [",".join(_BUDGET_COLUMNS)]
    lines += [f"{step},{epsilon!r}" for step, epsilon in enumerate(as_budgets(epsilons).tolist())]
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets from a table with the columns ``step`` and ``epsilon``, as `write_budgets` writes them.

    Args:
        path: File to read.

    Returns:
        Budgets in nats, float64 of shape (T,).

    Raises:
        InputError: A line is malformed; the message names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.5, 0.25])
    ...     read_budgets(f"{folder}/budgets.csv").tolist()
    [0.5, 0.25]
    """
    table = read_table(as_path(path, "path"), _BUDGET_COLUMNS)
    steps, budgets = table.texts("step"), table.numbers("epsilon")
    if not len(table):
        raise InputError(table.name, "contains no budgets", bound="at least one line after the header")
    for row, (step, budget) in enumerate(zip(steps, budgets.tolist(), strict=True)):
        if step.strip() != str(row):
            remedy = "write one line for each step from 0, in order"
            raise InputError(table.where(row, "step"), "is out of order", bound=f"step {row}", remedy=remedy)
        if budget < 0:
            raise InputError(table.where(row, "epsilon"), "is negative", bound="a finite number >= 0")
    return budgets
