"""``python -m mechdesign``, and the command ``mechdesign``."""

import sys


def run() -> None:
    """Run the command line; Ctrl-C while it is loaded ends it quietly, too."""
    try:
        from mechdesign.cli import main
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        # As in mechdesign.cli: CPython might end by the signal.
        exec("")
        sys.exit(130)
    main(prog_name="mechdesign")


if __name__ == "__main__":
    run()
