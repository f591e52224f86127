"""Tables of texts: files as they are declared, and objects with named columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The layout of a file."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    time_format: str | None = None
    time_zone: str = "UTC"
    missing: float = 0.05
