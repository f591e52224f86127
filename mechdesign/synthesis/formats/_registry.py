"""The export formats, by name.

Other packages add formats with `register`; `mechdesign export` then writes them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.synthesis.formats._format import Format
from mechdesign.synthesis.formats._geojson import GEOJSON
from mechdesign.synthesis.formats._javascript import JS
from mechdesign.synthesis.formats._plain import CSV, JSON, MPS, NPZ, PARQUET

_FORMATS: dict[str, Format] = {form.name: form for form in (CSV, JSON, NPZ, PARQUET, MPS, GEOJSON, JS)}

FORMATS: Mapping[str, Format] = MappingProxyType(_FORMATS)
"""The formats of `mechdesign export`, by name."""


def register(form: Format) -> None:
    """Add a format to `FORMATS`.

    Args:
        form: The format; its name must not be taken.

    Raises:
        InputError: The argument is not a `Format`, or its name is taken.

    >>> register(FORMATS["csv"])
    Traceback (most recent call last):
    mechdesign.errors.InputError: format: has a name that is taken; found 'csv'; must be another name
    """
    require_kind(form, Format, "format", "a Format")
    if form.name in FORMATS:
        raise InputError("format", "has a name that is taken", value=form.name, bound="another name")
    _FORMATS[form.name] = form


def format_of(path: str | Path) -> Format:
    """Return the format with the suffix of `path`.

    Args:
        path: Path of a file.

    Returns:
        The first format with this suffix.

    Raises:
        InputError: No format has this suffix.

    >>> format_of("channel.json").name
    'json'
    """
    ending = Path(path).suffix.lower()
    for form in FORMATS.values():
        if ending in form.suffixes:
            return form
    known = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
    raise InputError("path", "has no known ending", value=str(path), bound=f"a file name that ends in one of {known}")
