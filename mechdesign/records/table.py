"""One tidy table of rows: CSV always, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdesign.base._atomic import write_file
from mechdesign.certify._texts import csv_text
from mechdesign.certify._texts import from_cell
from mechdesign.records.row import Row
from mechdesign.records.row import Value

__all__ = ["read_table", "tabulate", "write_table"]

_CSV, _PARQUET = "results.csv", "results.parquet"


def tabulate(rows: Iterable[Row], columns: Sequence[str]) -> list[dict[str, Value]]:
    """Return rows with these columns, None where a row has no value."""
    return [{column: row.values.get(column) for column in columns} for row in rows]


def write_table(directory: Path, rows: Iterable[Row], columns: Sequence[str]) -> Path:
    """Write ``results.csv``, and ``results.parquet`` where pyarrow is installed, each whole or not at all.

    In CSV a missing value is empty, and floats have all their digits.
    """
    table = tabulate(rows, columns)
    text = csv_text([columns, *([_cell(row[column]) for column in columns] for row in table)])
    write_file(directory / _CSV, [text.encode()])
    if importlib.util.find_spec("pyarrow") is not None:
        write_file(directory / _PARQUET, [_parquet(table, columns)])
    return directory / _CSV


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV table as texts."""
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = ([from_cell(text) for text in row] for row in csv.reader(file))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _parquet(table: Sequence[Mapping[str, Value]], columns: Sequence[str]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    arrays = {column: _same_kind([row[column] for row in table]) for column in columns}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()


def _same_kind(values: list[Any]) -> list[Any]:
    """Return a column of one type: where whole numbers meet others they are floats, and else texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    make: type = float if kinds == {int, float} else str
    return [None if value is None else make(value) for value in values]
