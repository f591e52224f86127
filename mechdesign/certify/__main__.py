"""``python -m mechdesign.certify DIR``: verify a bundle with only Python and NumPy installed."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from mechdesign.base._errors import CertificateError, UnverifiedError
from mechdesign.certify._texts import escape
from mechdesign.certify._verify import examine

_USAGE = "usage: python -m mechdesign.certify DIR"


def main(arguments: Sequence[str]) -> int:
    """Verify the bundle in the given folder and return the exit code.

    The code is 0 if the bundle is proved, and 1 if it is not; the reason is printed. Code 2 means wrong usage, an
    unreadable bundle or insufficient memory, and code 70 an error in this program. Code 141 means that the bundle is
    proved, but its output was sent to a closed pipe.
    """
    folder = arguments[0] if len(arguments) == 1 else "-"
    if folder.startswith("-"):
        return _say([_USAGE], 0 if folder in ("-h", "--help") else 2)
    try:
        verified = examine(folder)
    except UnverifiedError as error:
        said = f"{folder} was not verified: {error.reason}"
        return _say([said], 2)
    except CertificateError as error:
        pair = "" if error.pair is None else f" (worst pair of secrets: {error.pair[0]} and {error.pair[1]})"
        return _say([f"{folder} does not verify: {error.reason}{pair}"], 1)
    except MemoryError:
        return _say([f"{folder} was not verified: there is not enough memory"], 2)
    except Exception:
        # Python itself would exit with 1, which is the code for a bundle with a false claim.
        return _say(traceback.format_exc().splitlines(), 70)
    found = verified.certificate
    lines = [f"{folder} verifies."]
    for checked in found.requirements:
        radius = f", radius {checked.radius}" if checked.radius else ""
        asked = f"{checked.number} {checked.nominal}{radius}"
        least = "error" if checked.at_least else f"least {checked.number}"
        lines.append(f"{checked.kind} privacy, {asked}: holds; {least} {checked.realised!r}")
    cost = "expected cost under the prior in the files:" if found.objective == "expected" else "worst cost"
    lines.append(f"{cost} {found.cost!r}; no such channel costs less than {found.lower_bound!r}")
    lines += [f"stated, not proved: {part}" for part in verified.unproved]
    return _say(lines, 0)


def _say(lines: Sequence[str], code: int) -> int:
    """Print lines, with unprintable characters escaped, and return the exit code.

    If the result cannot be written, the code is 141 for a closed pipe, and 2 for any other failure. Error messages that
    cannot be written are dropped.
    """
    stream = sys.stderr if code else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text = "\n".join(map(escape, lines)).encode(encoding, "backslashreplace").decode(encoding)
        print(text, file=stream, flush=True)
    except OSError as error:
        # Otherwise Python would try to write the remaining buffer on exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return code or (141 if isinstance(error, BrokenPipeError) else 2)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
