"""Write single files that a crash cannot spoil."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from mechdesign.errors import ExportError

__all__ = ["write_file"]


def write_file(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Write a file in pieces under a temporary name, and rename it when it is whole.

    Several may write at once: the last one wins. Raises `ExportError` on failure; an old file is then as before.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        with temporary.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            # The name must not reach the disk before the content.
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise ExportError(f"{target} could not be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
