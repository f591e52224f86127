"""``mechdesign cache``."""

from __future__ import annotations

import click

from mechdesign.base import _cache as caching
from mechdesign.cli._console import output


@click.command()
@click.option("--clear", is_flag=True, help="Remove all entries.")
def cache(clear: bool) -> None:
    """Show or clear the cache of loss functions.

    The environment variable MECHDESIGN_CACHE names another folder, or turns the cache off with the word off.
    """
    folder, entries = caching.folder(), caching.entries()
    if clear:
        for path, _ in entries:
            path.unlink(missing_ok=True)
    count = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    shown = f"{count}, {sum(size for _, size in entries):,} bytes, in {folder}"
    off = f"the cache is off: {caching.VARIABLE} says so, or others can access its folder (chmod 700)"
    line = off if folder is None else f"removed {shown}" if clear else shown
    output().print(line, soft_wrap=True, markup=False, highlight=False)
