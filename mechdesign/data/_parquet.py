"""Convert Parquet files to CSV in batches, because repeated values take much less space in Parquet than in CSV."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.compute as compute
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from mechdesign.base._errors import InputError
from mechdesign.certify._texts import escape
from mechdesign.data._bounds import require_unpacked
from mechdesign.data._layout import say_recognised, shorten

_BATCH_ROWS = 2**16
_TEXTS = (arrow.types.is_string, arrow.types.is_binary, arrow.types.is_large_string, arrow.types.is_large_binary)


def csv_of(path: Path) -> io.BytesIO:
    """Return a Parquet table as CSV with commas, in UTF-8.

    Columns of lists, structures and bytes are left out, with a `RecognisedWarning`. NaN becomes an empty field. Raises
    `InputError` if no column is left or the file unpacks to more than the limit. A damaged file raises an error of
    PyArrow.
    """
    size = path.stat().st_size
    text = io.BytesIO()
    left_out = columns_left_out(path)
    with parquet.ParquetFile(path) as file:
        kept = [field for field in file.schema_arrow if field.name not in left_out]
        if not kept:
            raise InputError(str(path), "contains only lists, structures and bytes", bound="columns of plain values")
        # Lists and structures have one physical column for each part; these are not read.
        places = {file.schema.column(place).path: place for place in range(len(file.schema))}
        groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
        sizes = [group.column(places[field.name]).total_uncompressed_size for group in groups for field in kept]
        require_unpacked(path, size, sum(sizes))
        # Each value takes at least one byte: the comma or the line break after it.
        require_unpacked(path, size, file.metadata.num_rows * sum(max(1, _width(field.type)) for field in kept))
    if left_out:
        names = shorten(", ".join(map(escape, left_out)))
        say_recognised(path, f"columns that contain lists, structures or bytes are left out: {names}")
    texts = [field.name for field in kept if _is_text(field.type)]
    unpacked = 0
    with (
        parquet.ParquetFile(path, read_dictionary=texts) as file,
        csv.CSVWriter(text, arrow.schema([field for field in file.schema_arrow if field.name not in left_out])) as to,
    ):
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False, columns=[each.name for each in kept]):
            unpacked += sum(_length(column) for column in batch.columns)
            require_unpacked(path, size, unpacked)
            to.write(_without_nan(batch))
    text.seek(0)
    return text


def columns_left_out(path: Path) -> tuple[str, ...]:
    """Return the columns that `csv_of` leaves out: lists, structures, and bytes that are not UTF-8 text."""
    with parquet.ParquetFile(path) as file:
        return tuple(field.name for field in file.schema_arrow if not _is_plain(file, field))


def _is_plain(file: Any, field: Any) -> bool:
    """Return whether the values of a column can be written as text."""
    kind = field.type.value_type if arrow.types.is_dictionary(field.type) else field.type
    if arrow.types.is_binary(kind) or arrow.types.is_large_binary(kind) or arrow.types.is_fixed_size_binary(kind):
        batches = file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False, columns=[field.name])
        return all(_is_utf8(batch.column(0)) for batch in batches)
    return bool(_is_text(kind) or arrow.types.is_null(kind) or _width(kind))


def _is_utf8(column: Any) -> bool:
    try:
        column.cast(arrow.string())
    except arrow.ArrowException:
        return False
    return True


def _without_nan(batch: Any) -> Any:
    """Return a batch with nulls instead of NaN in columns of floats."""
    columns = [
        compute.if_else(compute.is_nan(column), arrow.scalar(None, column.type), column)
        if arrow.types.is_float32(column.type) or arrow.types.is_float64(column.type)
        else column
        for column in batch.columns
    ]
    return arrow.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_text(kind: Any) -> bool:
    return any(is_kind(kind) for is_kind in _TEXTS)


def _width(kind: Any) -> int:
    """Return the number of bytes of each value of a type, or 0 if the number varies."""
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return 0


def _length(column: Any) -> int:
    """Return the number of bytes of all texts in a column, including repeated texts; 0 for columns without texts."""
    if not arrow.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return 0
    lengths = compute.binary_length(column.dictionary)
    return compute.sum(lengths.take(column.indices)).as_py() or 0
