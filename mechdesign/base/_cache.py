"""A cache of expensive results in the user's cache folder, by the digest of their inputs.

A file is written under a temporary name and renamed, and it contains a digest of its content. A file that is damaged,
truncated or of another version is ignored, and the result is computed again. Any number of processes may read and write
at the same time. Deleting files, or the whole folder, is always safe.

Cached results are trusted, and they reveal private data. The cache is therefore used only if the folder and its files
belong to the user and nobody else can write to them. The parent folders must belong to the user or to the system, or
have the sticky bit. An unsafe cache is ignored, and a `CacheWarning` reports this once.

The environment variable MECHDESIGN_CACHE names another folder; ``off`` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._errors import CacheWarning
from mechdesign.base._files import read_own, why_not_above, why_not_own
from mechdesign.base._warnings import warn

VARIABLE = "MECHDESIGN_CACHE"

_CONTENT = "content_digest"


def folder() -> Path | None:
    """Return the folder of the cache, which need not exist; None if the cache is off."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() in ("off", "0", "none"):
        return None
    return Path(named).expanduser() if named else user_cache_path("mechdesign", appauthor=False)


def path_of(kind: str, key: str) -> Path | None:
    """Return the file for `key`, a hexadecimal digest, among the results of one `kind`; None if the cache is off."""
    root = folder()
    return None if root is None else root / kind / f"{key}.npz"


def load(kind: str, key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays stored under `key`, or None if there is no trusted entry."""
    path = path_of(kind, key)
    if path is None or _is_ignored(path):
        return None
    try:
        content = _content(path)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        claimed = arrays.pop(_CONTENT).tobytes()
    # The readers of zip and npy files can raise almost any exception for a damaged file.
    except Exception:
        return None
    return arrays if claimed == _digest(kind, key, arrays) else None


def store(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Store arrays under `key`; do nothing if the cache is off or cannot be written."""
    path = path_of(kind, key)
    if path is None or _is_ignored(path):
        return
    named: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if any(array.dtype.hasobject for array in named.values()):
        raise TypeError("arrays of Python objects are not stored")
    named[_CONTENT] = np.frombuffer(_digest(kind, key, named), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, **named)
    # The disk may be full, or the folder read-only: the result in memory is sufficient.
    with contextlib.suppress(OSError):
        make_folder(path.parent, private=True)
        write_file(path, [content.getvalue()], private=True)


class _NotOwnError(Exception):
    """Other users can write to an entry."""


_WARNED: set[Path] = set()


def _is_ignored(path: Path) -> bool:
    """Return whether others can write to the cache folder, a subfolder or an entry; warn once for each cache."""
    root = path.parent.parent
    try:
        why = why_not_above(root)
    except OSError:
        # A path with a loop of links can be neither read nor written.
        return True
    for place in (root, path.parent, path):
        with contextlib.suppress(OSError):
            why = why or _explain(place, root)
    if why and root not in _WARNED:
        _WARNED.add(root)
        warn(
            f"the cache {root} {why}; it is ignored, and results are computed. Remove the permissions of others "
            f"(chmod -R go-w {root}), or set another folder in {VARIABLE}",
            CacheWarning,
            stacklevel=4,
        )
    return bool(why)


def _explain(place: Path, root: Path) -> str:
    why = why_not_own(place.stat())
    return why if not why or place == root else f"contains {place.relative_to(root)}, which {why}"


def _content(path: Path) -> bytes:
    """Return the checked entry, even if another file takes its name in the meantime."""
    return read_own(path, _NotOwnError, follow=False)


def _digest(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    state = hashlib.sha256(f"{kind}\n{key}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.digest()
