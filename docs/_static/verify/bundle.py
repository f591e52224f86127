"""Find the bundle among files that somebody chose, and prove it. This runs in the browser, with Python alone."""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

import second_verifier

CERTIFICATE = "certificate.json"
# Files with other names are no part of a bundle, see docs/reference/bundle.md.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
MOST_BYTES = 2**29
# The verifier names the kind of each error.
CAUSE = re.compile(r"^not proved: (?:ValueError: )?")
DIGITS = 4
LEAST_PLAIN = Decimal("0.001")
VERDICTS = {0: "accepted", 1: "refused", 2: "undecided", 3: "undecided"}
SYMBOLS = {"epsilon": "ε", "factor": "factor", "minimum": "error of the best attack"}


class NoBundleError(ValueError):
    """The files are not one bundle."""


def find(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of the only bundle among `files`, by name; archives are opened.

    Raises:
        NoBundleError: There is no bundle, or more than one, or an archive is damaged or too large.
    """
    opened: dict[str, bytes] = {}
    for path, content in files.items():
        opened |= _unzip(path, content) if path.lower().endswith(".zip") else {path: content}
    folders = [path.removesuffix(CERTIFICATE) for path in opened if path.split("/")[-1] == CERTIFICATE]
    if len(folders) != 1:
        count = f"{len(folders)} bundles: choose one of them" if folders else f"no {CERTIFICATE}: choose a whole bundle"
        raise NoBundleError(f"the files hold {count}")
    names = {path.removeprefix(folders[0]): path for path in opened if path.startswith(folders[0])}
    return {name: opened[path] for name, path in names.items() if NAME.fullmatch(name)}


def _unzip(path: str, content: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            size = sum(entry.file_size for entry in entries)
            if size > MOST_BYTES:
                raise NoBundleError(f"{path} holds {size} bytes, more than {MOST_BYTES}")
            return {entry.filename: archive.read(entry) for entry in entries}
    # What zipfile raises for damage, unknown methods of compression (NotImplementedError) and passwords (RuntimeError).
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error) as error:
        raise NoBundleError(f"{path} is not a readable zip archive: {error}") from error


def verify(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the verdict on the bundle among `files`, the lines of the verifier, and the claims that are proved."""
    try:
        bundle = find(files)
    except NoBundleError as error:
        return {"verdict": "undecided", "lines": [str(error)]}
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in bundle.items():
            (Path(folder) / name).write_bytes(content)
        with redirect_stdout(out), redirect_stderr(out):
            code = second_verifier.main([folder])
    lines = [CAUSE.sub("", line) for line in out.getvalue().replace(folder, "the bundle").splitlines()]
    found: dict[str, Any] = {"verdict": VERDICTS[code], "lines": lines}
    return found | {"claims": claims(json.loads(bundle[CERTIFICATE]))} if code == 0 else found


def claims(document: Mapping[str, Any]) -> list[list[str]]:
    """Return what a proved certificate claims: names, and numbers rounded against the mechanism."""
    stated = document["certificate"]
    found = []
    for each in stated["requirements"]:
        number = each.get("number", "minimum" if each["kind"] == "distortion" else "epsilon")
        floor = number == "minimum"
        sign, radius = ("at least" if floor else "at most"), (f", radius {each['radius']}" if each["radius"] else "")
        kept = _write(each["realised"], up=not floor)
        found.append(
            [f"{each['kind']} privacy", f"{SYMBOLS[number]} {sign} {each['nominal']}{radius}; achieved: {kept}"]
        )
    found += [
        [f"{stated['objective']} cost", f"at most {_write(stated[stated['objective'] + '_cost'], up=True)}"],
        ["no such channel costs less than", _write(stated["lower_bound"], up=False)],
        ["relative gap", f"at most {_write(stated['relative_gap'], up=True)}"],
    ]
    return found


def _write(number: float | str, *, up: bool) -> str:
    if isinstance(number, str):
        return number
    context = Context(prec=DIGITS, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    rounded = context.create_decimal(repr(number)).normalize(context)
    return f"{rounded:e}" if 0 < rounded < LEAST_PLAIN else f"{rounded:g}"
