"""Random damage to files: changed bytes, lines, cells, numbers, headers of arrays, and entries of archives."""

from __future__ import annotations

import io
import json
import math
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

__all__ = ["changed"]

NUMBERS = (
    *(
        "0",
        "-0",
        "1",
        "-1",
        "1e309",
        "-1e309",
        "1e-400",
        "5e-324",
        "1e308",
        "1e400",
        "1e401",
        "1e999999999",
        "nan",
        "inf",
    ),
    *(
        "-inf",
        "1_0",
        "0x10",
        "1/3",
        "1/0",
        "0.1",
        "9" * 400,
        "9" * 5000,
        "9223372036854775808",
        "18446744073709551616",
        "",
    ),
    *("0.30000000000000004", "1.7976931348623157e308", "1,5", "१२", "true", "null", "1e", ".", "+", "1e-1000000"),
)
SHAPES = (
    "()",
    "(0,)",
    "(0, 0)",
    "(3,)",
    "(3, 3, 3)",
    "(999999999, 999999999)",
    "(4294967296,)",
    "(-1, 3)",
    "(1e9,)",
    "(3, ",
    "3",
)
TYPES = ("|O", "<f4", ">f8", "<c16", "<U3", "<M8[s]", "|V8", "|b1", "<i8", "<u8", "float64", "<f999", "<f8,<i8")


def changed(content: bytes, name: str, dice: random.Random) -> bytes:
    """Return a file with a random change; some changes are specific to the format of the file."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [bytes_changed, cut, doubled]
    if name.endswith((".npy", ".npz")):
        ways += [header_changed] * 4 if name.endswith(".npy") else [entry_changed] * 6
    else:
        ways += [number_changed] * 8 + [lines_changed] * 2
    if name.endswith(".json"):
        ways += [value_changed] * 8
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        content = dice.choice(ways)(content, dice)
    return content


def bytes_changed(content: bytes, dice: random.Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(dice.choice((1, 1, 2, 8))):
        changed[dice.randrange(len(changed))] = dice.choice((0, 10, 34, 44, 45, 255, dice.randrange(256)))
    return bytes(changed)


def cut(content: bytes, dice: random.Random) -> bytes:
    start, stop = sorted(dice.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[stop:] if dice.random() < 0.5 else content[:stop]


def doubled(content: bytes, dice: random.Random) -> bytes:
    start, stop = sorted(dice.randrange(len(content) + 1) for _ in range(2))
    return content[:stop] + content[start:stop] * dice.choice((1, 2, 50)) + content[stop:]


def number_changed(content: bytes, dice: random.Random) -> bytes:
    """Replace a number or a word by another number, or by text that is not a number."""
    text = content.decode("utf-8", "surrogateescape")
    places, at = [], 0
    for kind in ("digits", "letters"):
        at = 0
        while at < len(text):
            stop = at
            while stop < len(text) and (text[stop] in "0123456789.e-" if kind == "digits" else text[stop].isalpha()):
                stop += 1
            if stop > at and (kind == "digits" or dice.random() < 0.2):
                places.append((at, stop))
            at = max(stop, at + 1)
    if not places:
        return content
    start, stop = dice.choice(places)
    new = dice.choice(NUMBERS)
    if dice.random() < 0.15:
        new = f'"{new}"'
    return (text[:start] + new + text[stop:]).encode("utf-8", "surrogateescape")


def lines_changed(content: bytes, dice: random.Random) -> bytes:
    """Delete, duplicate or swap lines, or cells of a line."""
    lines = content.split(b"\n")
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            cells = lines[at].split(b",")
            cells.insert(dice.randrange(len(cells) + 1), dice.choice(cells))
            lines[at] = b",".join(cells)
        case _:
            # Exchange the rows and the columns of the table.
            lines = [b",".join(column) for column in zip(*(line.split(b",") for line in lines if line), strict=False)]
    return b"\n".join(lines)


def value_changed(content: bytes, dice: random.Random) -> bytes:
    """Replace a value in a JSON file by another value."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    holders: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            holders.append((value, key))
            if isinstance(inner, dict | list):
                visit(inner)

    if not isinstance(document, dict | list):
        return content
    visit(document)
    if not holders:
        return content
    holder, key = dice.choice(holders)
    values = [
        None,
        True,
        -1,
        0,
        1,
        2**63,
        10**400,
        1e308,
        5e-324,
        -0.5,
        "",
        "x",
        "inf",
        [],
        {},
        [[]],
        [1, 2, 3],
        {"a": 1},
    ]
    if dice.random() < 0.2:
        holder.pop(key)
    else:
        holder[key] = dice.choice([*values, *NUMBERS])
    return json.dumps(document).encode()


def header_changed(content: bytes, dice: random.Random) -> bytes:
    """Forge the shape or the type of an array, damage its header, or replace entries by extreme numbers."""
    if dice.random() < 0.3 and len(content) > 128:
        place = 128 + 8 * dice.randrange(max(1, (len(content) - 128) // 8))
        number = dice.choice((math.nan, math.inf, -math.inf, -1.0, 1e308, 5e-324, -0.0, 2.0**53))
        word = (
            struct.pack("<d", number) if dice.random() < 0.6 else struct.pack("<q", dice.choice((-1, 2**62, 2**63 - 1)))
        )
        return content[:place] + word + content[place + 8 :]
    length = int.from_bytes(content[8:10], "little")
    header = content[10 : 10 + length].decode("latin-1")
    match dice.randrange(5):
        case 0:
            start, stop = header.find("("), header.find(")") + 1
            header = header[:start] + dice.choice(SHAPES) + header[stop:]
        case 1:
            header = header.replace("<f8", dice.choice(TYPES)).replace("<i8", dice.choice(TYPES))
        case 2:
            header = header.replace("False", "True")
        case 3:
            at = dice.randrange(len(header) + 1)
            header = header[:at] + dice.choice(("(", "'", "\\", "\0", "{", "é", "#", '"""', "\n")) + header[at + 1 :]
        case _:
            header = "(" * dice.choice((10, 1000, 60000)) + header
    raw = header.encode("latin-1", "replace")[:65535]
    start = b"\x93NUMPY" + dice.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\11\0"))
    size = len(raw).to_bytes(2, "little") if dice.random() < 0.8 else dice.randbytes(2)
    return start + size + raw + content[10 + length :]


def entry_changed(content: bytes, dice: random.Random) -> bytes:
    """Change, delete, duplicate or rename one array of an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    # Reading a damaged archive may raise any error; in this case the content is returned unchanged.
    except Exception:
        return content
    if not entries:
        return content
    at = dice.randrange(len(entries))
    name, inner = entries[at]
    match dice.randrange(8):
        case 0:
            del entries[at]
        case 1:
            entries[at] = (dice.choice(("x.npy", "../x.npy", "numerators.npy", ".npy", "a" * 300 + ".npy")), inner)
        case 2:
            entries[at] = (name, entries[dice.randrange(len(entries))][1])
        case _:
            entries[at] = (name, header_changed(inner, dice))
    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(target, "w", dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, inner in entries:
                archive.writestr(name, inner)
    return target.getvalue()
