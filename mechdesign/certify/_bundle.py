"""The format of bundles, and functions that write them and read them without trust in their contents.

A bundle is a folder with these files:

- ``channel.npz`` contains ``numerators`` (n, m) int64, ``exponent`` () int64, ``prior`` (n,) and ``cost`` (n, m)
  float64; an infinite cost forbids an answer. The file also contains the arrays of each requirement i, such as
  ``requirement_i_distance`` (see `mechdesign.certify._stated`), and arrays that a caller adds, such as labels.
- ``dual.npz`` exists if there are multipliers. Requirement i has the sparse arrays ``requirement_i_sources``,
  ``_targets``, ``_observables`` (int32) and ``_values`` (float64), or ``_estimates``, ``_observables`` and ``_values``.
  ``weights`` (n,) exists if the worst cost has weights.
- ``certificate.json`` contains the schema, the objective, and the requirements with their exact numbers as texts. An
  explicit claim also has a ``name``, and a ``part`` if it is not the first claim of its requirement. The file contains
  the certificate and the caller's metadata. ``certificate.json`` lists the SHA-256 of every other file and of every
  array. ``digest`` is the SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of all other fields.
- ``channel.csv`` is optional: it contains the channel as a table of exact decimals, with labels in the first row and
  column.
- The caller may list further files, such as ``report.html``.

Digests detect an interrupted export or an accidental change. Digests are not signatures: only the recomputation in
`mechdesign.certify._verify` proves the numbers. ``certificate.json`` has the digests of all other files, so a signature
of this one file, by any tool, says who made the bundle.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._atomic import replace_files
from mechdesign.base._check import as_path
from mechdesign.base._errors import CertificateError, InputError, UnverifiedError
from mechdesign.certify._archive import digest, pack, plain, unpack
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._claims import Floor
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._exact import as_decimal, exact, exact_text
from mechdesign.certify._memory import reading, require_room
from mechdesign.certify._stated import ARRAYS, FORMS, Stated
from mechdesign.certify._texts import require_plain_texts, unique_keys


def exact_lines(
    numerators: Integers, exponent: int, secrets: Sequence[str], observables: Sequence[str]
) -> Iterator[str]:
    """Yield the table of a channel line by line, with unchanged labels and N / 2**exponent as exact decimals."""
    # N / 2**k = N · 5**k / 10**k.
    one, fives = 1 << exponent, 5**exponent

    def decimal(numerator: int) -> str:
        if numerator in (0, one):
            return str(numerator // one)
        return f"0.{numerator * fives:0{exponent}d}".rstrip("0")

    return lines((map(decimal, row.tolist()) for row in numerators), secrets, observables)


def lines(rows: Iterable[Iterable[str]], secrets: Sequence[str], observables: Sequence[str]) -> Iterator[str]:
    """Yield a table line by line, with one row of entries for each of the `secrets`; labels are not changed."""
    yield _line(["secret", *observables])
    for label, row in zip(secrets, rows, strict=True):
        yield _line([label, *row])


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


CHANNEL = "channel.npz"
DUAL = "dual.npz"
TABLE = "channel.csv"
CERTIFICATE = "certificate.json"

OPTIONAL = (TABLE, "report.html")
"""The optional files of a bundle."""

SCHEMA = "mechdesign-certificate/2"
"""The schema of bundles. Its number increases if the meaning of a field changes."""

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""The pattern of file names in a bundle; it admits no path to another folder."""

_FIELDS = ("schema", "objective", "requirements", "certificate", "metadata", "files", "arrays", "digest")
_ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
_OWN_ARRAY = re.compile(r"numerators|exponent|prior|cost|requirement_.*")
_MAX_CERTIFICATE_BYTES = 2**27
_MAX_NUMBER_LENGTH = 1000


@dataclass(frozen=True, eq=False)
class Bundle:
    """The contents of a bundle as they were read; nothing in them has been proved.

    Attributes:
        evidence: The channel, the problem and the multipliers.
        certificate: The certificate that the files contain, without a proof.
        metadata: The metadata that the caller of `encode` added.
        arrays: The arrays of ``channel.npz`` that do not belong to the evidence, such as labels.
        problems: Sentences about digests that do not match the contents of the files.
        files: The names of all files that the certificate lists.
        table: The bytes of ``channel.csv``, or None if there is no such file.
        unknown: The keys of the certificate that this version of mechdesign does not recognise.
        size: The disk space of the files [bytes], which limits the memory for their proof.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     sorted(read(f"{folder}/two").metadata)[:2]
    ['distances', 'observables']
    """

    evidence: Evidence
    certificate: Certificate
    metadata: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    problems: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    table: bytes | None = None
    unknown: tuple[str, ...] = ()
    size: int = 0


def encode(
    evidence: Evidence,
    certificate: Certificate,
    *,
    metadata: Mapping[str, Any] | None = None,
    arrays: Mapping[str, ArrayLike] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> dict[str, bytes]:
    """Return the files of a bundle by name, with the certificate last; equal arguments give equal bytes.

    Args:
        evidence: The channel, the problem and the multipliers.
        certificate: A certificate whose `holds` is true.
        metadata: Any JSON object. Texts in the object may have several lines, but keys may not.
        arrays: Further arrays of ``channel.npz``: numbers, truth values or texts.
        files: Further files of the bundle.

    Returns:
        The contents of all files.

    Raises:
        CertificateError: The certificate does not hold.
        InputError: A name is reserved or malformed, a value does not fit into the files, or a text has characters that
            hide its content; see `mechdesign.certify._texts.require_plain`.
    """
    certificate.require()
    require_plain_texts(metadata or {}, "metadata", lines=True)
    contents = {CHANNEL: _channel_arrays(evidence)}
    for name, values in (arrays or {}).items():
        if not _ARRAY_NAME.fullmatch(name) or _OWN_ARRAY.fullmatch(name):
            raise InputError(f"arrays[{name!r}]", "is malformed or reserved", bound="lower-case letters, digits and _")
        contents[CHANNEL][name] = plain(np.asarray(values), f"arrays[{name!r}]")
        if contents[CHANNEL][name].dtype.kind == "U":
            require_plain_texts(contents[CHANNEL][name].tolist(), f"arrays[{name!r}]")
    if evidence.multipliers is not None:
        contents[DUAL] = _dual_arrays(evidence.multipliers)
    found = {name: pack(held) for name, held in contents.items()}
    for name, content in (files or {}).items():
        if not FILE_NAME.fullmatch(name) or name in (CHANNEL, DUAL, CERTIFICATE):
            raise InputError(f"files[{name!r}]", "is malformed or reserved", bound="a plain file name")
        found[name] = content
    document = {
        "schema": SCHEMA,
        "objective": evidence.objective,
        "requirements": [_entry(stated) for stated in evidence.requirements],
        "certificate": certificate.to_json(),
        "metadata": dict(metadata or {}),
        "files": {name: _sha256(content) for name, content in found.items()},
        "arrays": {name: {key: digest(array) for key, array in held.items()} for name, held in contents.items()},
    }
    try:
        # JSON turns tuples into lists and number keys into texts; the digest must match the document after a round
        # trip.
        document = json.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            "metadata", f"is not JSON ({error})", bound="texts, finite numbers, lists and objects"
        ) from error
    document["digest"] = document_digest(document)
    found[CERTIFICATE] = (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()
    return found


def write(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write a bundle that `encode` returned, replacing an older bundle in `folder`; the certificate is written last.

    After a crash the folder contains the old bundle, the new bundle, or a bundle that `read` and `verify` report as
    incomplete. Files that belong only to the old bundle are removed if they are unchanged.

    Args:
        folder: The folder.
        files: The contents of the files, by name.

    Raises:
        ExportError: The files cannot be written; see `mechdesign.base._atomic`.
    """
    folder = as_path(folder, "folder")
    if CERTIFICATE not in files:
        raise InputError("files", "lacks the certificate", value=sorted(files), bound=f"a bundle with {CERTIFICATE}")
    replace_files(folder, files, CERTIFICATE, _obsolete_files(folder, files))


def read(folder: str | Path) -> Bundle:
    """Return the bundle in `folder` after checking its digests; its claims are not proved.

    Args:
        folder: The folder of the bundle.

    Returns:
        The bundle; `verify` proves it.

    Raises:
        CertificateError: The bundle is incomplete, malformed, too large, or does not match its digests.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     read(f"{folder}/two").files
    ('channel.csv', 'channel.npz', 'dual.npz')
    """
    bundle = inspect(folder)
    if bundle.problems:
        raise CertificateError("; ".join(bundle.problems))
    return bundle


@contextmanager
def naming(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Name the folder in a `CertificateError` of the block, which says only what is wrong in its files.

    Args:
        folder: The folder of the bundle.

    Yields:
        Nothing.

    >>> with naming("city"):
    ...     raise CertificateError("channel.csv is missing")
    Traceback (most recent call last):
    mechdesign.errors.CertificateError: city: channel.csv is missing
    """
    try:
        yield
    except UnverifiedError:
        # It names its folder or file.
        raise
    except CertificateError as error:
        raise CertificateError(f"{os.fspath(folder)}: {error.reason}", error.pair) from error


def read_channel(path: str | Path) -> tuple[Integers, int, dict[str, NDArray[Any]]]:
    """Read a ``channel.npz`` without a certificate, so that no digest is checked.

    Args:
        path: The file.

    Returns:
        Numerators (n, m), exponent, and all arrays by name.

    Raises:
        UnverifiedError: The file is missing, malformed, or contains no channel.
        VerifierMemoryError: The file would take more memory than it may.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     numerators, exponent, _ = read_channel(f"{folder}/two/channel.npz")
    >>> numerators.shape, exponent
    ((2, 2), 62)
    """
    file = as_path(path, "path")
    room = _ReadingLimit(file.parent, (file.name,))
    try:
        arrays = unpack(_content(file.parent, file.name, room), file.name, room.arrays)
        numerators: Integers = _array(arrays, file.name, "numerators", "<i8", 2)
        return numerators, int(_array(arrays, file.name, "exponent", "<i8", 0)), arrays
    except UnverifiedError:
        raise
    except CertificateError as error:
        raise UnverifiedError(error.reason) from error


def inspect(folder: str | Path) -> Bundle:
    """Return the bundle in `folder`, with mismatched digests listed in `problems`; every file is read once.

    Args:
        folder: The folder of the bundle.

    Returns:
        The bundle.

    Raises:
        CertificateError: Files are missing or malformed, or their contents do not match each other.
        UnverifiedError: There is no bundle, or its files cannot be opened.
        VerifierMemoryError: Reading would take more memory than it may. The error is raised before large arrays are
            allocated.
    """
    folder = as_path(folder, "folder")
    room = _ReadingLimit(folder, (CERTIFICATE, CHANNEL, DUAL, TABLE))
    # A wrong limit is refused even if there is nothing to read.
    room.require(1)
    _require_export(folder)
    written = _content(folder, CERTIFICATE, room)
    document = _parse(written)
    problems: list[str] = []
    if document["digest"] != document_digest(document):
        problems.append(f"{CERTIFICATE} does not match its own digest; it has been changed since it was written")
    held: dict[str, dict[str, NDArray[Any]]] = {}
    # Read the table even if the certificate does not list it: people may sample from any table in this folder.
    table = _content(folder, TABLE, room) if (folder / TABLE).exists() else None
    for name, recorded in document["files"].items():
        content = b""
        if name in (CHANNEL, DUAL, TABLE):
            content = table if name == TABLE and table is not None else _content(folder, name, room)
            found = _sha256(content)
        else:
            found = _file_sha256(folder, name)
        if found != recorded:
            problems.append(
                f"incomplete bundle: {name} does not match its digest; was the export interrupted, or the file changed?"
            )
        if name in (CHANNEL, DUAL):
            held[name] = unpack(content, name, room.arrays)
            problems += _array_problems(name, held[name], document["arrays"].get(name, {}))
    if set(document["arrays"]) != set(held):
        problems.append(f"{CERTIFICATE} must list digests of arrays for exactly the archives that it lists")
    if CHANNEL not in held:
        raise CertificateError(f"{CERTIFICATE} does not list {CHANNEL}")
    room.require(reading(room.certificate, room.files, held.values()))
    try:
        evidence, rest = _evidence(document, held[CHANNEL], held.get(DUAL))
        certificate = Certificate.from_json(document["certificate"])
    except InputError as error:
        raise CertificateError(
            "; ".join([*problems, f"the files contain no channel for the problem: {error}"])
        ) from error
    except CertificateError as error:
        raise CertificateError("; ".join([*problems, error.reason]), error.pair) from error
    metadata = MappingProxyType(document["metadata"])
    return Bundle(
        evidence,
        certificate,
        metadata,
        rest,
        tuple(problems),
        tuple(document["files"]),
        table,
        Certificate.unknown(document["certificate"]),
        room.disk,
    )


def _require_export(folder: Path) -> None:
    """Raise `UnverifiedError` if the folder does not exist or contains no certificate."""
    try:
        if not folder.is_dir():
            found = "is a file" if folder.exists() else "does not exist"
            raise UnverifiedError(f"{folder} {found}; expected a folder with a bundle")
        if not (folder / CERTIFICATE).is_file():
            raise UnverifiedError(f"{folder} contains no bundle: {CERTIFICATE} is missing; was the export interrupted?")
    except OSError as error:
        raise UnverifiedError(f"{folder} cannot be read: {error.strerror or error}") from error


def document_digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of `document` without its field ``digest``."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    return _sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


def _channel_arrays(evidence: Evidence) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "numerators": evidence.numerators,
        "exponent": np.array(evidence.exponent, dtype=np.int64),
        "prior": evidence.prior,
        "cost": evidence.cost,
    }
    for index, stated in enumerate(evidence.requirements):
        arrays.update({f"requirement_{index}_{name}": array for name, array in stated.arrays.items()})
    return arrays


def _dual_arrays(multipliers: Multipliers) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for index, entry in enumerate(multipliers.requirements):
        for name in _indices(entry):
            arrays[f"requirement_{index}_{name}"] = getattr(entry, name).astype(np.int32)
        arrays[f"requirement_{index}_values"] = entry.values
    if multipliers.weights is not None:
        arrays["weights"] = multipliers.weights
    return arrays


def _indices(entry: PairMultipliers | FloorMultipliers) -> tuple[str, ...]:
    pairs = isinstance(entry, PairMultipliers)
    return ("sources", "targets", "observables") if pairs else ("estimates", "observables")


def _evidence(
    document: Mapping[str, Any], channel: dict[str, NDArray[Any]], dual: dict[str, NDArray[Any]] | None
) -> tuple[Evidence, Mapping[str, NDArray[Any]]]:
    """Return the evidence, and the arrays of ``channel.npz`` that do not belong to it."""
    rest = dict(channel)
    stated = tuple(_read_entry(index, entry, rest) for index, entry in enumerate(document["requirements"]))
    multipliers = None if dual is None else _multipliers(stated, dict(dual))
    evidence = Evidence(
        numerators=_array(rest, CHANNEL, "numerators", "<i8", 2),
        exponent=int(_array(rest, CHANNEL, "exponent", "<i8", 0)),
        prior=_array(rest, CHANNEL, "prior", "<f8", 1),
        cost=_array(rest, CHANNEL, "cost", "<f8", 2),
        objective=document["objective"],
        requirements=stated,
        multipliers=multipliers,
    )
    unknown = [name for name in rest if _OWN_ARRAY.fullmatch(name)]
    if unknown:
        raise CertificateError(f"{CHANNEL} is malformed: array {unknown[0]} belongs to no requirement")
    return evidence, MappingProxyType(rest)


def _entry(stated: Stated) -> dict[str, str | int]:
    """Return the fields of a requirement in the certificate; its arrays are stored elsewhere."""
    entry: dict[str, str | int] = {"kind": stated.kind}
    if FORMS[stated.kind].named:
        entry["name"] = stated.name
    if stated.part:
        entry["part"] = stated.part
    return {**entry, **{name: exact_text(number) for name, number in stated.numbers.items()}}


def _read_entry(index: int, entry: Any, arrays: dict[str, NDArray[Any]]) -> Stated:
    """Read the fields that `_entry` wrote, and remove the arrays of the requirement from `arrays`."""
    name = f"{CERTIFICATE} is malformed: requirements[{index}]"
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str) or entry["kind"] not in FORMS:
        raise CertificateError(f"{name} has an unknown kind")
    form = FORMS[entry["kind"]]
    texts = ("name", *form.numbers) if form.named else form.numbers
    allowed = {"kind", *texts} | ({"part"} if form.named and entry.get("part") else set())
    if set(entry) != allowed or not all(isinstance(entry[number], str) for number in texts):
        raise CertificateError(f"{name} must have the texts {', '.join(texts)} and no other fields")
    path = f"requirements[{index}]"
    numbers = {number: exact(entry[number], f"{path}.{number}") for number in form.numbers}
    for number, value in numbers.items():
        if entry[number] != exact_text(value):
            raise CertificateError(f"{name} writes {number} as {entry[number]!r} instead of {exact_text(value)!r}")
    given = [*form.arrays, *(key for key in form.optional if f"requirement_{index}_{key}" in arrays)]
    return Stated(
        entry["kind"],
        numbers,
        {
            key: _array(arrays, CHANNEL, f"requirement_{index}_{key}", ARRAYS[key].dtype, ARRAYS[key].axes)
            for key in given
        },
        entry.get("name", ""),
        entry.get("part", 0),
    )


def _multipliers(stated: tuple[Stated, ...], arrays: dict[str, NDArray[Any]]) -> Multipliers:
    def take(index: int, name: str) -> NDArray[Any]:
        return _array(arrays, DUAL, f"requirement_{index}_{name}", "<f8" if name == "values" else "<i4", 1)

    entries: list[PairMultipliers | FloorMultipliers] = []
    for index, requirement in enumerate(stated):
        if FORMS[requirement.kind].numbers == (Floor.number,):
            names: tuple[str, ...] = ("estimates", "observables", "values")
            entries.append(FloorMultipliers(*(take(index, name) for name in names)))
        else:
            names = ("sources", "targets", "observables", "values")
            entries.append(PairMultipliers(*(take(index, name) for name in names)))
    weights = _array(arrays, DUAL, "weights", "<f8", 1) if "weights" in arrays else None
    if arrays:
        raise CertificateError(f"{DUAL} is malformed: array {next(iter(arrays))} belongs to no requirement")
    return Multipliers(tuple(entries), weights)


def _array(arrays: dict[str, NDArray[Any]], file: str, name: str, kind: str, axes: int) -> NDArray[Any]:
    """Remove an array from `arrays`, check its type and number of axes, and return it."""
    if name not in arrays:
        raise CertificateError(f"{file} is malformed: array {name} is missing")
    array = arrays.pop(name)
    if array.dtype.str != kind or array.ndim != axes:
        found = f"{array.dtype.str} with {array.ndim} axes"
        raise CertificateError(f"{file} is malformed: array {name} is {found}, not {kind} with {axes} axes")
    return array


def _array_problems(file: str, arrays: Mapping[str, NDArray[Any]], recorded: Any) -> list[str]:
    if not isinstance(recorded, dict):
        return [f"{CERTIFICATE} is malformed: the digests of the arrays of {file} are not an object"]
    problems = [f"array {name} of {file} is missing" for name in recorded if name not in arrays]
    for name, array in arrays.items():
        if recorded.get(name) != digest(array):
            problems.append(f"array {name} of {file} does not match its digest")
    return problems


class _ReadingLimit:
    """The memory limit for reading a bundle: the disk space of its files, and the sizes of the contents read so far."""

    def __init__(self, folder: Path, names: Sequence[str] = ()) -> None:
        self.folder = folder
        # Sparse files take little disk space and do not raise the limit.
        self.disk = sum(_on_disk(folder / name) for name in names)
        self.certificate = self.files = self.unpacked = self.allowed = 0

    def file(self, name: str, size: int) -> None:
        """Add the size of a file, and check the limit."""
        if name == CERTIFICATE:
            self.certificate = size
        else:
            self.files += size
        self.require(reading(self.certificate, self.files, ()))

    def arrays(self, size: int) -> None:
        """Add twice the size of the arrays of an archive, because each array is copied for its check."""
        self.unpacked += 2 * size
        self.require(reading(self.certificate, self.files, ()) + self.unpacked)

    def require(self, needed: int) -> None:
        """Raise `VerifierMemoryError` if `needed` bytes exceed the limit."""
        # The sum counts from the start, and so does the memory that was free then.
        if needed > self.allowed:
            self.allowed = require_room(needed, self.disk, f"reading {self.folder}")


def _on_disk(path: Path) -> int:
    try:
        found = path.stat()
    except OSError:
        return 0
    blocks: int | None = getattr(found, "st_blocks", None)
    return found.st_size if blocks is None else min(found.st_size, 512 * blocks)


def _content(folder: Path, name: str, room: _ReadingLimit) -> bytes:
    with _open(folder, name) as file:
        size = os.fstat(file.fileno()).st_size
        if name == CERTIFICATE and size > _MAX_CERTIFICATE_BYTES:
            raise CertificateError(f"{name} is malformed: {size} bytes exceed the limit of {_MAX_CERTIFICATE_BYTES}")
        room.file(name, size)
        # Bytes that another process appends meanwhile are not read.
        return file.read(size)


def _file_sha256(folder: Path, name: str) -> str:
    """Return the SHA-256 of a file of any size."""
    with _open(folder, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _open(folder: Path, name: str) -> Iterator[BufferedReader]:
    path = folder / name
    try:
        # Reading a pipe or a device could block or never end.
        if not path.is_file():
            raise CertificateError(f"incomplete bundle: {name} is missing; was the export interrupted?")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise UnverifiedError(f"{path} cannot be read: {error.strerror or error}") from error


def _parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(
            content.decode(), object_pairs_hook=unique_keys, parse_constant=_refuse_constant, parse_float=_float
        )
        # Python reads numbers such as 1e999 as infinity, and refuses to write infinity.
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("; use sys")[0]
        raise CertificateError(f"{CERTIFICATE} is not valid JSON ({reason}); was the export interrupted?") from error
    if not isinstance(document, dict):
        raise CertificateError(f"{CERTIFICATE} is malformed: it is not an object")
    if document.get("schema") != SCHEMA:
        raise CertificateError(
            f"{CERTIFICATE} has the schema {document.get('schema')!r}, but this version of mechdesign reads only "
            f"{SCHEMA!r}. Another version made it: design it again, or verify it with that version"
        )
    if set(document) != set(_FIELDS):
        wrong = ", ".join(sorted(set(document) ^ set(_FIELDS)))
        raise CertificateError(f"{CERTIFICATE} is malformed: missing or unknown keys: {wrong}")
    for name in ("certificate", "metadata", "files", "arrays"):
        if not isinstance(document[name], dict):
            raise CertificateError(f"{CERTIFICATE} is malformed: {name} is not an object")
    if not isinstance(document["requirements"], list):
        raise CertificateError(f"{CERTIFICATE} is malformed: requirements is not a list")
    for name in document["files"]:
        if not FILE_NAME.fullmatch(name) or name == CERTIFICATE:
            raise CertificateError(f"{CERTIFICATE} is malformed: {name!r} is not a valid file name in a bundle")
    return document


def _float(text: str) -> float:
    """Return a float; raise `ValueError` unless its repr prints the same number as `text`."""
    number = float(text)
    if len(text) > _MAX_NUMBER_LENGTH or not math.isfinite(number):
        raise ValueError(f"{text[:_MAX_NUMBER_LENGTH]} is not the decimal of a finite float")
    # A zero may have a huge exponent, whose power of ten would fill the memory.
    differs = as_decimal(number) != Fraction(text) if number else re.match(r"-?[0.]*[1-9]", text)
    if differs:
        raise ValueError(f"{text} is not a number that a float prints; the nearest is {number!r}")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _obsolete_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Return the files of an older bundle in `folder` that are not among `files`.

    The result contains the files that the old certificate lists, if they are unchanged. If the folder contains a
    channel, unlisted optional files are included, because an interrupted export may have written them.
    """
    recorded: Mapping[str, str] = {}
    try:
        written = _content(folder, CERTIFICATE, _ReadingLimit(folder))
        recorded = _parse(written)["files"]
        same = [name for name, known in recorded.items() if name not in files and _file_sha256(folder, name) == known]
    except CertificateError:
        # There is no older bundle, or it is incomplete.
        same = []
    if not (folder / CHANNEL).exists():
        return same
    return same + [name for name in OPTIONAL if name not in files and name not in recorded]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
