"""Record the origin of a problem: the text of its specification, its prior, and digests of its data."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from pathlib import Path

from mechdesign.base._errors import InputError
from mechdesign.base._files import read_regular
from mechdesign.model._grammar import Raw
from mechdesign.model._origin import Origin
from mechdesign.specification._document import Document, files
from mechdesign.specification._read import VERSION

# Patterns to find comments: strings, which may contain #; blocks of comment lines and empty lines; comments at the end
# of a line.
_TOML = re.compile(
    r'''(?P<string>"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')'''
    r"|(?P<lines>^(?:[ \t\r]*\n|[ \t]*#[^\n]*(?:\n|\Z))+)"
    r"|(?P<end>[ \t]*#[^\n]*)",
    re.DOTALL | re.MULTILINE,
)

# A context that rounds no number.
_EVERY_DIGIT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
# Integers from this size on keep their notation, such as 1E+300.
_LONG = 10**18

_FORMS = {
    "uniform": "uniform: all secrets equally likely",
    "probabilities": "probabilities in the specification",
    "counts": "counts in the specification",
    "csv": "counts",
    "checkins": "check-ins",
    "plt": "trajectories",
    "simulated": "simulated people",
}


def build_origin(tables: Raw, text: str, folder: Path, notes: tuple[str, ...] = ()) -> Origin:
    """Return the origin of a problem; tables without a text are written as JSON with exact numbers."""
    digests = {file: file_digest(folder / file) for file in data_files(tables)}
    return Origin(without_comments(text) or to_json(tables), _describe_prior(tables["prior"]), digests, notes)


def data_files(tables: Raw) -> tuple[str, ...]:
    """Return the names of the files and folders whose digests an origin holds."""
    named = files([tables.get(key) for key in ("domain", "observables", "prior", "cost", "privacy", "policy")])
    return tuple(dict.fromkeys(named))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder.

    Raises `InputError` if a file cannot be read.
    """
    try:
        if not path.is_dir():
            return hashlib.sha256(read_regular(path)).hexdigest()
        whole = hashlib.sha256()
        for inner in sorted(each for each in path.rglob("*") if each.is_file()):
            digest = hashlib.sha256(read_regular(inner)).hexdigest()
            whole.update(f"{inner.relative_to(path).as_posix()}\n{digest}\n".encode())
        return whole.hexdigest()
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise InputError(str(path), problem, bound="a file that exists") from error


def without_comments(text: str) -> str:
    r"""Return a specification without its comments, as it is stored with a design.

    >>> without_comments('# for ann\ntitle = "No. #1"  # and bob\n')
    'title = "No. #1"\n'
    """
    stripped = _TOML.sub(_strip_comment, text)
    if _values(stripped) != _values(text):
        raise AssertionError("the specification has another meaning without its comments")
    return stripped


def _strip_comment(found: re.Match[str]) -> str:
    if found["string"] is not None or "#" not in found[0]:
        return found[0]
    blank = found["lines"] is not None and any(not line.strip() for line in found[0].splitlines())
    return "\n" if blank and found.start() else ""


def _values(text: str) -> str:
    # Compare texts, because NaN does not equal itself.
    return repr(tomllib.loads(text, parse_float=str))


def _describe_prior(raw: Raw) -> str:
    """Return a description of a valid table of a prior."""
    form = next((name for name in raw if name != "smoothing"), "")
    table = raw[form] if isinstance(raw.get(form), Mapping) else {}
    said = _FORMS.get(form, form)
    if "column" in table:
        said += f" in column {table['column']}"
    if "path" in table:
        said += f" of {table['path']}" if "column" in table else f" in {table['path']}"
    if "only" in table:
        said += f", user {table['only']} only"
    elif form in ("checkins", "plt"):
        said += ", all users"
    return said + (f", {raw['smoothing']} added to each count" if raw.get("smoothing") else "")


def to_json(tables: Raw) -> str:
    """Return tables as JSON, in which the notation of a number does not matter: 0.50 is 0.5, and 1.0 is 1."""
    whole = {"version": VERSION, **tables}
    written = {name: whole[name] for name in Document.__struct_fields__ if whole.get(name)}
    return json.dumps(written, indent=1, default=exact_value)


def exact_value(value: object) -> int | str:
    """Return a value that JSON does not have, such as a decimal number, as an integer or a text.

    >>> exact_value(Decimal("2.0")), exact_value(Decimal("0.50"))
    (2, '0.5')
    """
    if not isinstance(value, Decimal) or not value.is_finite():
        return str(value)
    whole = abs(value) < _LONG and value == int(value)
    return int(value) if whole else str(value.normalize(_EVERY_DIGIT))
