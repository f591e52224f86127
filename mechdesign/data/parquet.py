"""Parquet files as text, piece by piece: a value that is repeated takes a few bits there, and its length here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.compute as compute
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from mechdesign.data.bounds import require_unpacked
from mechdesign.errors import InputError

__all__ = ["csv_of"]

_ROWS = 2**16
_TEXTS = (arrow.types.is_string, arrow.types.is_binary, arrow.types.is_large_string, arrow.types.is_large_binary)


def csv_of(path: Path) -> io.BytesIO:
    """Return a table of Parquet as CSV with commas, in UTF-8.

    Raises `InputError` where it holds lists or structures, or unpacks to too much, and what PyArrow raises for a file
    that is damaged.
    """
    size = path.stat().st_size
    text = io.BytesIO()
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        for field in schema:
            kind = field.type.value_type if arrow.types.is_dictionary(field.type) else field.type
            if not (_is_text(kind) or arrow.types.is_null(kind) or _width(kind)):
                raise InputError(f"{path}, column {field.name!r}", "holds lists or structures", bound="plain values")
        groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
        require_unpacked(path, size, sum(group.total_byte_size for group in groups))
        # At least a comma, or the end of the line, for each value.
        require_unpacked(path, size, file.metadata.num_rows * sum(max(1, _width(field.type)) for field in schema))
        texts = [field.name for field in schema if _is_text(field.type)]
    unpacked = 0
    with parquet.ParquetFile(path, read_dictionary=texts) as file, csv.CSVWriter(text, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
            unpacked += sum(_length(column) for column in batch.columns)
            require_unpacked(path, size, unpacked)
            writer.write(batch)
    text.seek(0)
    return text


def _is_text(kind: Any) -> bool:
    return any(is_kind(kind) for is_kind in _TEXTS)


def _width(kind: Any) -> int:
    """Return how many bytes each value of a type takes, 0 where that differs."""
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return 0


def _length(column: Any) -> int:
    """Return how many bytes the texts of a column take once each is written out, 0 for other columns."""
    if not arrow.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return 0
    lengths = compute.binary_length(column.dictionary)
    return compute.sum(lengths.take(column.indices)).as_py() or 0
