"""Programs that this one starts: Python with the same packages, which says first that it is that.

Where Python is embedded or frozen, `sys.executable` is the application, and starting it would begin the application
anew. So nothing is sent to a child, and nothing that it says is read, before it has greeted; it is waited for with a
limit, and ended otherwise.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from mechdesign.version import __version__

__all__ = ["ENDING_S", "GREETING_S", "Child", "greet", "start"]

GREETING_S = 120.0
"""How long a child may take to greet, in seconds: it has imported next to nothing."""

ENDING_S = 30.0
"""How long a child that was killed is waited for, in seconds: the system may be writing what it had in memory."""

_WORD = "mechdesign"


@dataclass(frozen=True)
class Child:
    """A process that was started: its first line must be `greeting`."""

    process: subprocess.Popen[bytes]
    greeting: bytes

    def has_greeted(self, line: bytes) -> bool:
        """Tell whether the first line of its output is the greeting."""
        return line.rstrip(b"\r\n") == self.greeting

    def end(self) -> None:
        """Kill it and close its pipes, and wait for it, with a limit."""
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDING_S)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def start(module: str, function: str, environment: Mapping[str, str], stderr: int | IO[bytes] | None = None) -> Child:
    """Start Python on a function of a module, in a session of its own; its pipes are standard input and output.

    It finds the same packages as this process. Raises `OSError` where no process can be started.
    """
    if not sys.executable:
        raise OSError("this program does not know which Python runs it")
    token = secrets.token_hex(16)
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import greet; greet({token!r}); "
        f"from {module} import {function}; {function}()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=dict(environment),
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    return Child(process, _greeting(token))


def greet(token: str) -> None:
    """Say to whoever started this process that it is Python with this version of the package."""
    os.write(1, _greeting(token) + b"\n")


def _greeting(token: str) -> bytes:
    return f"{_WORD} {__version__} {sys.version_info.major}.{sys.version_info.minor} {token}".encode()
