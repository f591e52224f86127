"""Loss functions in the user's cache folder, by the digest of their matrix; deleting the folder is always safe.

Cached results are trusted, and they reveal private data. The cache is therefore off unless its folder belongs to the
user and nobody else can access it (mode 0700, with which it is made). A damaged or unreadable entry is computed again.

The environment variable MECHDESIGN_CACHE names another folder, or turns the cache off with the word ``off``. Without
platformdirs, the cache is on only if MECHDESIGN_CACHE names a folder.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._files import read_own

VARIABLE = "MECHDESIGN_CACHE"

_MAX_BYTES = 500_000_000


def folder() -> Path | None:
    """Return the folder of the cache, which need not exist; None if the cache is off."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() == "off":
        return None
    if named:
        root = Path(os.path.expanduser(named))
    else:
        try:
            from platformdirs import user_cache_path
        except ModuleNotFoundError:
            return None
        root = user_cache_path("mechdesign", appauthor=False)
    return root if _is_private(root) else None


def _is_private(root: Path) -> bool:
    """Return whether only this user can access a folder, or it does not exist; Windows does not say who can."""
    try:
        found = root.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    private = not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
    return stat.S_ISDIR(found.st_mode) and private


def load(key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays stored under `key`, a hexadecimal digest, or None without a readable entry of this user."""
    root = folder()
    if root is None:
        return None
    # The readers of zip and npy files can raise almost any exception for a damaged file.
    with contextlib.suppress(Exception):
        content = read_own(root / f"{key}.npz", PermissionError, follow=False)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    return None


def store(key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Store arrays under `key` if the cache is on and its folder can be written; the oldest entries make room."""
    root = folder()
    if root is None:
        return
    content, named = io.BytesIO(), dict[str, Any](arrays)
    np.savez(content, **named)
    with contextlib.suppress(OSError):
        make_folder(root, private=True)
        write_file(root / f"{key}.npz", [content.getvalue()], private=True)
        left = _MAX_BYTES
        for path, size in reversed(entries()):
            left -= size
            if left < 0:
                path.unlink(missing_ok=True)


def entries() -> list[tuple[Path, int]]:
    """Return the entries with their sizes in bytes, the oldest first."""
    root, found = folder(), []
    for path in root.glob(f"{64 * '[0-9a-f]'}.npz") if root else ():
        # Another process may have removed it.
        with contextlib.suppress(OSError):
            facts = path.lstat()
            found.append((facts.st_mtime, path, facts.st_size))
    return [(path, size) for _, path, size in sorted(found)]
