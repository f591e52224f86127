"""``python -m mechdesign.certify DIR``: verify an exported set with nothing but Python and NumPy installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from mechdesign.certify.memory import MEMORY_GIB, as_bytes
from mechdesign.certify.texts import escape
from mechdesign.certify.verify import examine
from mechdesign.errors import CertificateError, UnverifiedError, VerifierMemoryError

__all__ = ["main"]

_USAGE = "usage: python -m mechdesign.certify DIR [--memory GIB]"


def main(arguments: Sequence[str]) -> int:
    """Verify the set in the folder named; return 0 if it holds, and 1 with the reason if not.

    Where nothing was verified it is 2: for wrong usage, and where no set can be read; and 3 where it takes more memory.
    """
    folder, memory = _asked(list(arguments))
    if folder is None:
        print(_USAGE, file=sys.stdout if list(arguments) in (["-h"], ["--help"]) else sys.stderr)
        return 0 if list(arguments) in (["-h"], ["--help"]) else 2
    try:
        verified = examine(folder, memory)
    except UnverifiedError as error:
        _say(f"{folder} was not verified: {error.reason}", sys.stderr)
        return 3 if isinstance(error, VerifierMemoryError) else 2
    except CertificateError as error:
        pair = "" if error.pair is None else f" (worst pair of secrets: {error.pair[0]} and {error.pair[1]})"
        _say(f"{folder} does not verify: {error.reason}{pair}", sys.stderr)
        return 1
    found = verified.certificate
    _say(f"{folder} verifies.")
    for checked in found.requirements:
        radius = f", radius {checked.radius}" if checked.radius else ""
        _say(f"{checked.kind} privacy, {checked.number} {checked.nominal}{radius}: realised {checked.realised!r}")
    _say(f"{found.objective} cost {found.cost!r}; no channel costs less than {found.lower_bound!r}")
    for part in verified.unproved:
        _say(f"stated, not proved: {part}")
    return 0


def _say(line: str, stream: TextIO | None = None) -> None:
    """Print a line, in which names are others'; what is not printable is shown escaped."""
    print(escape(line), file=stream)


def _asked(arguments: list[str]) -> tuple[str | None, float]:
    """Return the folder, None for wrong usage, and how many GiB verifying may take."""
    memory = MEMORY_GIB
    if len(arguments) == 3 and arguments[1] == "--memory":
        try:
            memory = float(arguments[2])
            as_bytes(memory)
        except ValueError:
            return None, memory
        arguments = arguments[:1]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        return None, memory
    return arguments[0], memory


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
