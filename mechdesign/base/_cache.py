"""Keep results that take long to compute, in the user's cache directory, under the digest of what they depend on.

A file is written under a temporary name and renamed, and it holds the digest of its own content, so that a file that is
damaged, cut short or written by another version is as good as none: the caller computes again and nobody notices.
Any number of processes may read and write at once. Deleting files, or the whole directory, is always safe.

What is read is believed, and what is written tells of private data. So the cache is used only where the directory and
what it holds belong to the user and nobody else can write them. The directories above are the user's or the system's,
or have the sticky bit. Otherwise the cache is left alone, which a `CacheWarning` says once.

The environment variable MECHDESIGN_CACHE names another directory; ``off`` turns the cache off.
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
    """Return the directory of the cache, which need not exist, or None when the cache is off."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() in ("off", "0", "none"):
        return None
    return Path(named).expanduser() if named else user_cache_path("mechdesign", appauthor=False)


def path_of(kind: str, key: str) -> Path | None:
    """Return the file for `key`, a digest in hexadecimal digits, among results of one `kind`; None when off."""
    root = folder()
    return None if root is None else root / kind / f"{key}.npz"


def load(kind: str, key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays stored under `key`, or None when there are none that can be trusted."""
    path = path_of(kind, key)
    if path is None or _is_left_alone(path):
        return None
    try:
        content = _content(path)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        claimed = arrays.pop(_CONTENT).tobytes()
    # A damaged file can make the readers of zip and npy files raise almost anything; then there is no result.
    except Exception:
        return None
    return arrays if claimed == _digest(kind, key, arrays) else None


def store(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Store arrays under `key`; do nothing when the cache is off or cannot be written."""
    path = path_of(kind, key)
    if path is None or _is_left_alone(path):
        return
    named: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if any(array.dtype.hasobject for array in named.values()):
        raise TypeError("arrays of Python objects are not stored")
    named[_CONTENT] = np.frombuffer(_digest(kind, key, named), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, **named)
    # A full disk or a directory of somebody else: the result in memory is as good.
    with contextlib.suppress(OSError):
        make_folder(path.parent, private=True)
        write_file(path, [content.getvalue()], private=True)


class _NotOwnError(Exception):
    """Others can write an entry."""


_SAID: set[Path] = set()


def _is_left_alone(path: Path) -> bool:
    """Tell, and say once, whether others can write the directory of the cache, that of an entry, or the entry."""
    root = path.parent.parent
    try:
        why = why_not_above(root)
    except OSError:
        # A loop of links: nothing can be read or written there.
        return True
    for place in (root, path.parent, path):
        with contextlib.suppress(OSError):
            why = why or _said_of(place, root)
    if why and root not in _SAID:
        _SAID.add(root)
        warn(
            f"the cache {root} {why}, and is left alone: results are computed. Make it yours alone "
            f"(chmod -R go-w {root}), or name another directory: {VARIABLE}",
            CacheWarning,
            stacklevel=4,
        )
    return bool(why)


def _said_of(place: Path, root: Path) -> str:
    why = why_not_own(place.stat())
    return why if not why or place == root else f"holds {place.relative_to(root)}, which {why}"


def _content(path: Path) -> bytes:
    """Return an entry as it was looked at, whatever takes its name meanwhile."""
    return read_own(path, _NotOwnError, follow=False)


def _digest(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    state = hashlib.sha256(f"{kind}\n{key}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.digest()
