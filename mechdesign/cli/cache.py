"""``mechdesign cache``."""

from __future__ import annotations

import click

from mechdesign.base import _cache as caching
from mechdesign.cli._found import Found, command


@command
@click.option("--clear", is_flag=True, help="Remove all entries.")
def cache(clear: bool) -> Found:
    """Show how many loss functions are cached, in how many bytes and where, or remove them.

    The environment variable MECHDESIGN_CACHE names another folder, or turns the cache off with the word off.

    Example: mechdesign cache --clear
    """
    folder, entries = caching.folder(), caching.entries()
    if folder is None:
        said = f"the cache is off: {caching.VARIABLE} says so, or others can access its folder (chmod 700)"
        return Found(said, {"folder": None})
    if clear:
        for path, _ in entries:
            path.unlink(missing_ok=True)
    facts = {"folder": folder, "entries": len(entries), "bytes": sum(size for _, size in entries)}
    return Found("These entries were removed." if clear else "", facts)
