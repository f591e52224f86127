"""CSV: labels in the first row and column, probabilities as the nearest float64 numbers."""

from __future__ import annotations

from collections.abc import Iterator

from mechdesign.export.table import to_csv
from mechdesign.formats.format import Exported
from mechdesign.formats.format import Format

__all__ = ["CSV"]


def _contents(exported: Exported) -> Iterator[bytes]:
    yield to_csv(exported.channel).encode()


CSV = Format("csv", "the matrix with labels, as text", (".csv",), _contents)
