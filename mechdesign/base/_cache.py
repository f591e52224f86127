"""A cache of expensive results in the user's cache folder, by the digest of their inputs.

A file is written under a temporary name and renamed, and it contains a digest of its content. A file that is damaged,
truncated or of another version is ignored, and the result is computed again. Any number of processes may read and write
at the same time. Deleting files, or the whole folder, is always safe.

Cached results are trusted, and they reveal private data. The cache is therefore used only if the folder and its files
belong to the user and nobody else can write to them. The parent folders must belong to the user or to the system, or
have the sticky bit. An unsafe cache is ignored, and a `CacheWarning` reports this once.

The environment variable MECHDESIGN_CACHE names another folder; ``off`` turns the cache off. `turning_off` turns it off
inside a block. Without the package platformdirs, only MECHDESIGN_CACHE turns it on.

Up to `MAX_REMEMBERED` results stay in the memory of the process, and are found there without a look at the disk. A size
limit is stored in the cache folder; if a new entry exceeds it, the entries that were unused for longest are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._errors import CacheWarning, ExportError, InputError
from mechdesign.base._files import read_own, why_not_above, why_not_own
from mechdesign.base._warnings import warn

VARIABLE = "MECHDESIGN_CACHE"

KINDS = ("loss-function-1",)
"""The kinds of results, with the version of their format. Only files of these kinds are listed and removed."""

MAX_REMEMBERED = 64
"""Number of results that stay in memory."""

_CONTENT = "content_digest"
_LIMIT = "limit-bytes"
_ENTRY = re.compile(r"[0-9a-f]{64}\.npz")
_UNFINISHED = re.compile(r"\.[0-9a-f]{64}\.npz\.[0-9a-f]{8}\.partial")
# A younger unfinished file may belong to a process that is still writing.
_UNFINISHED_AGE_S = 3600.0

_OFF: ContextVar[bool] = ContextVar("cache_off", default=False)


class CacheEntry(NamedTuple):
    """A file of the cache: its kind, its key, its size in bytes, and the time of its last use in seconds since 1970."""

    kind: str
    key: str
    path: Path
    size: int
    used: float


class Memory:
    """The results in the memory of this process, the most recently used last; a forked process keeps its copy."""

    def __init__(self) -> None:
        self.renew()
        self._arrays: dict[Path, dict[str, NDArray[Any]]] = {}

    def renew(self) -> None:
        """Replace the lock, which another thread may have held while this process was forked."""
        self._lock = threading.Lock()

    def find(self, path: Path) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of the result with this file, or None."""
        with self._lock:
            found = self._arrays.pop(path, None)
            if found is not None:
                self._arrays[path] = found
        return None if found is None else dict(found)

    def add(self, path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Remember the result with this file; if there are too many, forget the one that was unused for longest."""
        copies = {name: np.array(array) for name, array in arrays.items()}
        for array in copies.values():
            array.flags.writeable = False
        with self._lock:
            self._arrays.pop(path, None)
            self._arrays[path] = copies
            while len(self._arrays) > MAX_REMEMBERED:
                del self._arrays[next(iter(self._arrays))]

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self._arrays.clear()

    def __len__(self) -> int:
        return len(self._arrays)


MEMORY = Memory()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=MEMORY.renew)


@contextlib.contextmanager
def turning_off() -> Iterator[None]:
    """Turn the cache off inside the ``with`` block.

    >>> with turning_off():
    ...     print(folder())
    None
    """
    before = _OFF.set(True)
    try:
        yield
    finally:
        _OFF.reset(before)


def folder() -> Path | None:
    """Return the folder of the cache, which need not exist; None if the cache is off."""
    named = os.environ.get(VARIABLE, "").strip()
    if _OFF.get() or named.lower() in ("off", "0", "none"):
        return None
    if not named:
        return _default_folder()
    try:
        return Path(named).expanduser()
    except RuntimeError as error:
        bound = "a folder, or off"
        raise InputError(VARIABLE, "names the home folder of an unknown user", value=named, bound=bound) from error


def _default_folder() -> Path | None:
    """Return the folder in which the system keeps caches; None without platformdirs, as results can be recomputed."""
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        return None
    return user_cache_path("mechdesign", appauthor=False)


def path_of(kind: str, key: str) -> Path | None:
    """Return the file for `key`, a hexadecimal digest, among the results of one `kind`; None if the cache is off."""
    root = folder()
    return None if root is None else root / kind / f"{key}.npz"


def load(kind: str, key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays stored under `key`, or None if there is no trusted entry."""
    path = path_of(kind, key)
    if path is None:
        return None
    remembered = MEMORY.find(path)
    if remembered is not None or _is_ignored(path.parent.parent, path.parent, path):
        return remembered
    try:
        content = _content(path)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        claimed = arrays.pop(_CONTENT).tobytes()
    # The readers of zip and npy files can raise almost any exception for a damaged file.
    except Exception:
        return None
    if claimed != _digest(kind, key, arrays):
        return None
    MEMORY.add(path, arrays)
    # A limit removes the entries unused for longest. A read-only folder keeps the old time of use (OSError). So does a
    # system that can only change times through links (NotImplementedError).
    with contextlib.suppress(OSError, NotImplementedError):
        os.utime(path, follow_symlinks=False)
    return arrays


def store(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Remember arrays under `key`, and store them if possible; do nothing if the cache is off."""
    path = path_of(kind, key)
    if path is None:
        return
    named: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if any(array.dtype.hasobject for array in named.values()):
        raise TypeError("arrays of Python objects are not stored")
    MEMORY.add(path, named)
    if _is_ignored(path.parent.parent, path.parent, path):
        return
    named[_CONTENT] = np.frombuffer(_digest(kind, key, named), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, **named)
    # The disk may be full, or the folder read-only: the result in memory is sufficient.
    with contextlib.suppress(OSError):
        make_folder(path.parent, private=True)
        write_file(path, [content.getvalue()], private=True)
        _keep_limit()


def entries() -> list[CacheEntry]:
    """Return the entries in the cache folder, those unused for longest first; no link is followed below the folder."""
    root = folder()
    if root is None or _is_ignored(root):
        return []
    found = []
    for kind in KINDS:
        for path in _files_in(root / kind):
            if _ENTRY.fullmatch(path.name):
                # Another process may have removed it.
                with contextlib.suppress(OSError):
                    facts = path.lstat()
                    found.append(CacheEntry(kind, path.stem, path, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.kind, entry.key))


def clear() -> tuple[list[CacheEntry], list[Path]]:
    """Remove the entries from the folder and from memory; return them, and the paths that were left in the folder."""
    MEMORY.clear()
    root = folder()
    if root is None or _is_ignored(root):
        return [], []
    removed = [entry for entry in entries() if _remove(entry.path)]
    for kind in KINDS:
        for path in _files_in(root / kind):
            if _UNFINISHED.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    if time.time() - path.lstat().st_mtime > _UNFINISHED_AGE_S:
                        path.unlink(missing_ok=True)
        if not (root / kind).is_symlink():
            # A folder with other files stays.
            with contextlib.suppress(OSError):
                (root / kind).rmdir()
    left: list[Path] = []
    with contextlib.suppress(OSError):
        for path in sorted(root.iterdir()):
            if path.name in KINDS and path.is_dir() and not path.is_symlink():
                left.extend(sorted(path.iterdir()))
            elif path.name != _LIMIT or not path.is_file() or path.is_symlink():
                left.append(path)
    return removed, left


def read_limit() -> int | None:
    """Return the size limit of the cache in bytes; None without a limit, or if its file is damaged."""
    root = folder()
    if root is None or _is_ignored(root, root / _LIMIT):
        return None
    try:
        limit = int(read_own(root / _LIMIT, _NotOwnError, follow=False))
        return limit if limit > 0 else None
    except (OSError, ValueError, _NotOwnError):
        return None


def set_limit(size: int | None) -> list[CacheEntry]:
    """Store the size limit in bytes, or remove it with None; return the entries that were removed to keep it.

    Raises `ExportError` if the limit cannot be stored, or if others can write to the cache folder.
    """
    root = folder()
    if root is None:
        return []
    if _is_ignored(root):
        raise ExportError(
            f"{root}: the limit is not stored, because the cache is ignored: others can write to its folder"
        )
    if size is None:
        (root / _LIMIT).unlink(missing_ok=True)
        return []
    make_folder(root, private=True)
    write_file(root / _LIMIT, [f"{size}\n".encode()], private=True)
    return _keep_limit()


def _keep_limit() -> list[CacheEntry]:
    """Remove the entries unused for longest until the others are within the limit; return the removed ones."""
    limit = read_limit()
    if limit is None:
        return []
    known, removed = entries(), []
    total = sum(entry.size for entry in known)
    for entry in known:
        if total <= limit:
            break
        total -= entry.size
        if _remove(entry.path):
            removed.append(entry)
    return removed


def _files_in(place: Path) -> list[Path]:
    """Return the regular files in a folder that is not a link; none if it cannot be read."""
    try:
        if place.is_symlink():
            return []
        with os.scandir(place) as items:
            return [place / item.name for item in items if item.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _remove(path: Path) -> bool:
    """Remove a file; return whether it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


class _NotOwnError(Exception):
    """Other users can write to an entry."""


_WARNED: set[Path] = set()


def _is_ignored(root: Path, *places: Path) -> bool:
    """Return whether others can write to the cache folder or to one of the places in it; warn once for each cache."""
    try:
        why = why_not_above(root)
    except OSError:
        # A path with a loop of links can be neither read nor written.
        return True
    for place in (root, *places):
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
    # An entry that is a link is not followed, but replaced. A folder of entries cannot be replaced.
    if place.parent == root and place.is_symlink():
        return f"contains {place.relative_to(root)}, which is a link"
    why = why_not_own(place.stat())
    return why if not why or place == root else f"contains {place.relative_to(root)}, which {why}"


def _content(path: Path) -> bytes:
    """Return the checked entry, even if another file takes its name in the meantime."""
    return read_own(path, _NotOwnError, follow=False)


def _digest(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    return hash_arrays(f"{kind}\n{key}\n", arrays).digest()


def hash_arrays(text: str, arrays: Mapping[str, NDArray[Any]]) -> hashlib._Hash:
    """Return the SHA-256 state of a text and of arrays, with their names, types and shapes."""
    state = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state
