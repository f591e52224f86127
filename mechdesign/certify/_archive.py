"""Arrays as bytes: plain .npz archives without pickles, and digests of arrays.

`numpy.load` reads the archives that `pack` writes. `unpack` trusts nothing: it accepts only the plain headers that
`pack` writes. `unpack` checks the claimed size of each array, and the total size, before it allocates memory.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import CertificateError, InputError

_MAGIC = b"\x93NUMPY\x01\x00"
_SHAPE = rb"\(((?:[0-9]{1,18}, ?)*[0-9]{0,18})\)"
_HEADER = re.compile(
    rb"\{'descr': '([<|][A-Za-z][0-9]{0,6})', 'fortran_order': False, 'shape': " + _SHAPE + rb", \} *\n"
)
_TYPES = re.compile(r"\|[biu]1|<[iu][248]|<f[48]|<U[1-9][0-9]{0,5}")

# Exceptions that `zipfile` and NumPy raise for damaged archives.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    LookupError,
    OverflowError,
)

# No channel that fits in memory needs larger arrays: an archive that claims them is damaged or malicious.
_MAX_ARRAY_BYTES = 2**32

# The total size of the arrays of an archive, and of any other compressed file.
_MAX_TOTAL_BYTES = 2**30
_MAX_COMPRESSION_RATIO = 100


def plain(array: NDArray[Any], path: str) -> NDArray[Any]:
    """Return `array` in C order, little-endian; raise `InputError` for unsupported types, such as objects."""
    # np.ascontiguousarray is not used here, because it would turn scalars into arrays with one axis.
    made = np.asarray(array, order="C")
    if made.dtype.byteorder == ">":
        made = made.astype(made.dtype.newbyteorder("<"))
    if not _TYPES.fullmatch(made.dtype.str):
        raise InputError(path, f"holds {made.dtype}", bound="numbers, truth values or texts of one length")
    return made


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return an .npz archive of plain arrays.

    The archive is compressed, unless `unpack` would reject the compressed archive as a decompression bomb. Equal arrays
    give equal bytes.
    """
    content = _pack(arrays, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        small = _total(archive) > max_unpacked_bytes(len(content))
    return _pack(arrays, zipfile.ZIP_STORED) if small else content


def _pack(arrays: Mapping[str, NDArray[Any]], method: int) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            content = io.BytesIO()
            np.lib.format.write_array(content, plain(array, name), version=(1, 0), allow_pickle=False)
            # Higher compression levels only take longer: probabilities hardly compress, and multipliers compress well
            # at level 1.
            archive.writestr(entry, content.getbuffer(), method, compresslevel=1)
    return target.getvalue()


def _total(archive: zipfile.ZipFile) -> int:
    return sum(entry.file_size for entry in archive.infolist())


def max_unpacked_bytes(size: int) -> int:
    """Return the number of bytes to which a compressed file of `size` bytes may unpack."""
    return max(_MAX_TOTAL_BYTES, _MAX_COMPRESSION_RATIO * size)


def unpack(content: bytes, file: str, room: Callable[[int], None] = lambda _: None) -> dict[str, NDArray[Any]]:
    """Return the read-only arrays of an archive.

    Args:
        content: The archive.
        file: The file name of the archive, for error messages.
        room: A function that receives the total size of the arrays [bytes] before any array is read; it may raise an
            error to refuse the archive.

    Returns:
        The arrays by name.

    Raises:
        CertificateError: The archive is damaged, or does not have the form that `pack` writes.
    """
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            room(_total(archive))
            if _total(archive) > max_unpacked_bytes(len(content)):
                limit = max_unpacked_bytes(len(content))
                raise CertificateError(
                    f"{file} is malformed: its arrays take {_total(archive)} bytes, more than the limit of {limit}"
                )
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                if name == entry.filename or name in arrays:
                    raise CertificateError(f"{file} is malformed: unexpected entry {entry.filename!r}")
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise CertificateError(f"{file} is malformed: {name} is compressed in an unknown way")
                with archive.open(entry) as source:
                    arrays[name] = _read(source, entry.file_size, f"{file} is malformed: array {name}")
    except _DAMAGE as error:
        raise CertificateError(
            f"incomplete bundle: {file} is not a complete archive ({error}); was the export interrupted?"
        ) from error
    return arrays


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's type, shape and values."""
    content = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


def _read(source: Any, size: int, name: str) -> NDArray[Any]:
    start = source.read(len(_MAGIC) + 2)
    if len(start) != len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        raise CertificateError(f"{name} is not in the .npy format")
    length = int.from_bytes(start[-2:], "little")
    header = _HEADER.fullmatch(source.read(length))
    if header is None:
        raise CertificateError(f"{name} has an unexpected header")
    kind = header[1].decode()
    if kind[1] == "O":
        raise CertificateError(f"{name} contains pickled objects, which are never loaded")
    if not _TYPES.fullmatch(kind):
        raise CertificateError(f"{name} has the unexpected type {kind}")
    dtype = np.dtype(kind)
    shape = tuple(int(part) for part in header[2].replace(b" ", b"").split(b",") if part)
    expected = math.prod(shape) * dtype.itemsize
    if expected > _MAX_ARRAY_BYTES or len(start) + length + expected != size:
        raise CertificateError(f"{name} claims the shape {shape}, which does not match its size")
    content = source.read(expected + 1)
    if len(content) != expected:
        raise CertificateError(f"{name} is truncated")
    if kind[1] == "U":
        try:
            content.decode("utf-32-le")
        except UnicodeDecodeError as error:
            raise CertificateError(f"{name} contains malformed texts ({error.reason})") from error
    array = np.frombuffer(content, dtype=dtype).reshape(shape) if expected else np.zeros(shape, dtype=dtype)
    array.setflags(write=False)
    return array
