"""``python -m mechdesign``, and the command ``mechdesign``."""

import atexit
import contextlib
import os
import signal
import sys

# Exit code after Ctrl-C, as in shells.
_STOPPED = 130


def run() -> None:
    """Run the command line; Ctrl-C ends with 130, also while modules are imported and while Python ends."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
        # While Python removes its modules, it would end with the signal.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    # A notebook sets this variable to its own backend, which a command does not need.
    os.environ.pop("MPLBACKEND", None)
    try:
        from mechdesign.cli import main
    except Exception:
        import traceback

        # Python would exit with 1, which is the code for a failed verification.
        traceback.print_exc()
        sys.exit(70)
    try:
        main(prog_name="mechdesign")
    except KeyboardInterrupt:
        _stop()
    except SystemExit as ended:
        if ended.code == _STOPPED:
            _end()
        raise


def _stop(*_: object) -> None:
    try:
        os.write(2, b"error: stopped\n")
    finally:
        os._exit(_STOPPED)


def _end() -> None:
    """End the process at once: Ctrl-C may leave a package half loaded, which can crash while Python ends."""
    try:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
    finally:
        os._exit(_STOPPED)


if __name__ == "__main__":
    run()
