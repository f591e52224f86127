"""``python -m mechdesign.certify DIR``: verify an exported set with nothing but Python and NumPy installed."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from mechdesign.base._errors import CertificateError, UnverifiedError, VerifierMemoryError
from mechdesign.certify._memory import MEMORY_GIB, as_bytes
from mechdesign.certify._texts import escape
from mechdesign.certify._verify import examine

_USAGE = "usage: python -m mechdesign.certify DIR [--memory GIB]"


def main(arguments: Sequence[str]) -> int:
    """Verify the set in the folder named; return 0 if it holds, and 1 with the reason if not.

    Where nothing was verified it is 2: for wrong usage, and where no set can be read; 3 where it takes more memory; and
    70 for a fault of this program. Where nobody reads that a set holds it is 141.
    """
    folder, memory = _asked(list(arguments))
    if folder is None:
        return _say([_USAGE], 0 if list(arguments) in (["-h"], ["--help"]) else 2)
    try:
        verified = examine(folder, memory)
    except UnverifiedError as error:
        said = f"{folder} was not verified: {error.reason}"
        return _say([said], 3 if isinstance(error, VerifierMemoryError) else 2)
    except CertificateError as error:
        pair = "" if error.pair is None else f" (worst pair of secrets: {error.pair[0]} and {error.pair[1]})"
        return _say([f"{folder} does not verify: {error.reason}{pair}"], 1)
    except MemoryError:
        return _say([f"{folder} was not verified: there is not enough memory for this"], 3)
    except Exception:
        # Python would end with 1.
        return _say(traceback.format_exc().splitlines(), 70)
    found = verified.certificate
    lines = [f"{folder} verifies."]
    for checked in found.requirements:
        radius = f", radius {checked.radius}" if checked.radius else ""
        asked = f"{checked.number} {checked.nominal}{radius}"
        lines.append(f"{checked.kind} privacy, {asked}: realised {checked.realised!r}")
    lines.append(f"{found.objective} cost {found.cost!r}; no channel costs less than {found.lower_bound!r}")
    lines += [f"stated, not proved: {part}" for part in verified.unproved]
    return _say(lines, 0)


def _say(lines: Sequence[str], code: int) -> int:
    """Print lines, in which names are others', and return the exit code; what is not printable is shown escaped.

    Where a result cannot be written the code is 141 or 2, as nobody was told; errors are dropped where they cannot be.
    """
    stream = sys.stderr if code else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text = "\n".join(map(escape, lines)).encode(encoding, "backslashreplace").decode(encoding)
        print(text, file=stream, flush=True)
    except OSError as error:
        # Python would write the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return code or (141 if isinstance(error, BrokenPipeError) else 2)
    return code


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
