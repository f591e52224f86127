"""A channel, or the program that it solves, in the formats of other programs: one file each, and here one line.

`FORMATS` holds them by name. One of another package is added by `register`, and then `mechdesign export` writes it as
it does those of this package.
"""

from __future__ import annotations

from pathlib import Path

from mechdesign.base._errors import InputError
from mechdesign.base._registry import Registry
from mechdesign.synthesis.formats._format import Format
from mechdesign.synthesis.formats._geojson import GEOJSON
from mechdesign.synthesis.formats._javascript import JS
from mechdesign.synthesis.formats._plain import CSV, JSON, MPS, NPZ, PARQUET

FORMATS: Registry[Format] = Registry("format")
"""Every format that `mechdesign export` writes, by name."""


def register(form: Format) -> None:
    """Make a format known; raise `InputError` for what is not a `Format`, and for a name that is taken."""
    if not isinstance(form, Format):
        raise InputError("format", "is not a Format", value=form)
    FORMATS.register(form.name, form)


register(CSV)
register(JSON)
register(NPZ)
register(PARQUET)
register(MPS)
register(GEOJSON)
register(JS)


def format_of(path: str | Path) -> Format:
    """Return the format whose files end as `path` does; raise `InputError` where there is none."""
    ending = Path(path).suffix.lower()
    for form in FORMATS.values():
        if ending in form.suffixes:
            return form
    known = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
    raise InputError("path", "has no known ending", value=str(path), bound=f"a file that ends in one of {known}")
