"""``python -m mechdesign``, and the command ``mechdesign``."""

import os
import sys
import traceback


def run() -> None:
    """Run the command line; Ctrl-C also ends it quietly while its modules are being imported."""
    # A notebook sets this variable to its own backend, which a command does not need.
    os.environ.pop("MPLBACKEND", None)
    try:
        from mechdesign.cli import main
        from mechdesign.cli._process import occupy_descriptors
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        # Without this, the signal might end CPython, as in `mechdesign.cli`.
        exec("")
        sys.exit(130)
    except Exception:
        # Python would exit with 1, which is the code for a failed verification.
        traceback.print_exc()
        sys.exit(70)
    occupy_descriptors()
    main(prog_name="mechdesign")


if __name__ == "__main__":
    run()
