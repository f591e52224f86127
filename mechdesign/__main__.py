"""``python -m mechdesign``, and the command ``mechdesign``."""

import os
import sys
import traceback


def run() -> None:
    """Run the command line; Ctrl-C while it is loaded ends it quietly, too."""
    # A notebook names its own way to show figures there, and a command shows none.
    os.environ.pop("MPLBACKEND", None)
    try:
        from mechdesign.cli import main
        from mechdesign.cli._console import occupy_descriptors
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        # As in mechdesign.cli: CPython might end by the signal.
        exec("")
        sys.exit(130)
    except Exception:
        # Python would exit with 1, and that says that a verification failed.
        traceback.print_exc()
        sys.exit(70)
    occupy_descriptors()
    main(prog_name="mechdesign")


if __name__ == "__main__":
    run()
