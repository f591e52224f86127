"""``mechdesign cache``."""

from __future__ import annotations

import re
import time
from fractions import Fraction

import click

from mechdesign.base import _cache as caching
from mechdesign.base._errors import InputError
from mechdesign.cli._console import output, table

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_MAX_BYTES, _MAX_LENGTH = 10**18, 40
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")


@click.group()
def cache() -> None:
    """List, limit or clear the cache of loss functions.

    The environment variable MECHDESIGN_CACHE names another folder, or turns the cache off with the word off.
    """


@cache.command("path")
def path_() -> None:
    """Print the folder of the cache."""
    folder = caching.folder()
    _print(_off() if folder is None else str(folder))


@cache.command("list")
def list_() -> None:
    """List the entries of the cache, those unused for longest first."""
    if caching.folder() is None:
        _print(_off())
        return
    entries = caching.entries()
    shown = table("kind", "key", "bytes", "last used", numbers=("bytes",))
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        shown.add_row(entry.kind, f"{entry.key[:12]}…", f"{entry.size:,}", used)
    if entries:
        output().print(shown)
    limit = caching.read_limit()
    limited = "no limit" if limit is None else f"limit {limit:,} bytes"
    _print(f"{_count(len(entries))}, {sum(entry.size for entry in entries):,} bytes, {limited}, in {caching.folder()}")


@cache.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear(yes: bool) -> None:
    """Remove all entries of the cache; other files in its folder stay, and are listed."""
    if caching.folder() is None:
        _print(_off())
        return
    known = caching.entries()
    if not yes and known:
        click.confirm(f"Remove {_count(len(known))} from {caching.folder()}?", abort=True)
    removed, left = caching.clear()
    _print(f"removed {_count(len(removed))}, {sum(entry.size for entry in removed):,} bytes")
    for path in left:
        _print(f"left      {path}")


@cache.command()
@click.argument("size", metavar="SIZE")
def limit(size: str) -> None:
    """Limit the size of the cache to SIZE, such as 500MB or 2GiB; none removes the limit.

    The limit is stored in the folder of the cache. If a new entry exceeds it, the entries unused for longest go first.
    """
    chosen = _bytes(size)
    if caching.folder() is None:
        _print(_off())
        return
    removed = caching.set_limit(chosen)
    _print("no limit" if chosen is None else f"limit {chosen:,} bytes")
    if removed:
        _print(f"removed {_count(len(removed))}, {sum(entry.size for entry in removed):,} bytes")


def _bytes(size: str) -> int | None:
    """Return the bytes of a size such as "500MB", or None for "none"."""
    if size.strip().lower() == "none":
        return None
    parts = _SIZE.fullmatch(size.strip()) if len(size) <= _MAX_LENGTH else None
    unit = None if parts is None else _UNITS.get(parts[2].upper())
    found = 0 if parts is None or unit is None else int(Fraction(parts[1]) * unit)
    if not 0 < found <= _MAX_BYTES:
        bound = "from 1 B to 1,000,000,000 GB, with a unit (B, KB, MB, GB, KiB, MiB, GiB), or none"
        raise InputError("SIZE", "is not a size", value=size[:_MAX_LENGTH], bound=bound, remedy="such as 500MB")
    return found


def _count(number: int) -> str:
    return f"{number} entr{'y' if number == 1 else 'ies'}"


def _off() -> str:
    return f"the cache is off ({caching.VARIABLE}=off)"


def _print(line: str) -> None:
    output().print(line, soft_wrap=True, markup=False, highlight=False)
