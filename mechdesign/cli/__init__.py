"""The command line, with one file for each command.

A command reads arguments, calls the library and shows the result; nothing is computed here. Commands load on first use,
so that `mechdesign verify` is quick. Invalid input ends with status 2 and one sentence. This package may import all
others.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import io
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import click

from mechdesign.base._errors import (
    CertificateError,
    ClosedPipeError,
    ClusterError,
    MechdesignError,
    MechdesignWarning,
    MissingDependencyError,
    SolverError,
    SolverInterruptedError,
    UnboundedError,
    UnverifiedError,
    VerifierMemoryError,
)
from mechdesign.base._version import __version__
from mechdesign.certify._texts import escape
from mechdesign.cli._citation import CITATION
from mechdesign.cli._console import STOPPED, divert, say_error, say_warning, use_open_streams, watch_signals

WRONG, LACKING, FAULT, CLOSED = 2, 3, 70, 141

# Commands are imported when they are called, so that verifying never imports a solver.
_COMMANDS: Mapping[str, str] = {
    "init": "Look at data and propose a specification.",
    "design": "Design the least-cost channel, certify it and write the files.",
    "sweep": "Make a design for each of many parameter values, on one machine or a cluster.",
    "verify": "Verify a bundle, from its files alone.",
    "inspect": "Show the contents of a bundle.",
    "compare": "Compare designs: costs, adversaries, maps side by side.",
    "attack": "Attack a channel in several ways.",
    "audit": "Compute the guarantee of any finite channel.",
    "sample": "Draw observables, exactly as certified.",
    "export": "Write a channel in another format.",
    "policy": "Describe a policy graph: exposed secrets, noise, repair.",
    "release": "Release a trace, step by step, under a policy graph.",
    "table": "Release counts, distributions or clusters of a table under a policy.",
    "ledger": "Create a ledger of budgets, show it, or check releases against it.",
    "chain": "Write the transition matrices of secrets, forward and backward.",
    "leakage": "Show the leakage of repeated releases of correlated data.",
    "budget": "Find budgets that keep the leakage of every release below a target.",
    "cache": "Show or clear the cache of loss functions.",
    "bench": "Run solvers on families of problems, and check their results.",
    "info": "Show versions and solvers.",
    "examples": "List embedded examples, or print one.",
}

# Module and function of each command whose name differs from the name of its module or of its function.
_LOCATIONS: Mapping[str, tuple[str, str]] = {
    "compare": ("inspect", "compare"),
    "table": ("table", "release_tables"),
    "chain": ("leakage", "chain"),
}


def exit_code(error: MechdesignError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, UnverifiedError):
        return 3 if isinstance(error, VerifierMemoryError) else 2
    if isinstance(error, CertificateError):
        return 1
    if isinstance(error, ClosedPipeError):
        return CLOSED
    if isinstance(error, SolverInterruptedError):
        return STOPPED
    return 3 if isinstance(error, SolverError | UnboundedError | ClusterError) else WRONG


# The loader's messages for a module that does not fit into memory.
_OUT_OF_MEMORY = re.compile(r"failed to map segment|cannot map zero-fill pages|[Cc]annot allocate memory$")


class _Commands(click.Group):
    """A group that imports a command when it is called, and shows each typed error as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, function = _LOCATIONS.get(name, (name, name))
        command: click.Command = getattr(importlib.import_module(f"mechdesign.cli.{module}"), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = difflib.get_close_matches(args[0], _COMMANDS, n=1)
        if args[0] not in _COMMANDS and close and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **keywords)
        except KeyboardInterrupt:
            # Without this handler click would exit with 1.
            _stop()
        except BrokenPipeError:
            # Without this handler click would exit with 1 if the help cannot be written.
            divert(sys.stdout)
            raise click.exceptions.Exit(CLOSED) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        extra["windows_expand_args"] = windows_expand_args
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        with use_open_streams():
            sys.exit(self._code(args, prog_name, complete_var, **extra))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, complete_var: str | None, **extra: Any) -> int:
        """Run a command, show its error if there is one, and return the exit code."""
        try:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra) or 0
        except click.ClickException as error:
            shown = io.StringIO()
            error.show(shown)
            click.echo(escape(shown.getvalue(), lines=True), err=True, nl=False)
            # click uses 1 for errors other than usage, such as a file that cannot be opened; here 1 means a failed
            # verification.
            return max(error.exit_code, WRONG)
        except (click.Abort, KeyboardInterrupt):
            # Ctrl-C came between two steps of click, which would exit with 1.
            say_error("stopped")
            return STOPPED
        except Exception:
            return _fault()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except KeyboardInterrupt:
            # Ctrl-C came before or after the block of `watch_signals`, which handles it otherwise.
            _stop()

    def _invoke(self, ctx: click.Context) -> Any:
        with watch_signals(), warnings.catch_warnings():
            warnings.simplefilter("always", MechdesignWarning)
            warnings.showwarning = say_warning
            try:
                with _convert_errors():
                    result = super().invoke(ctx)
                # Output that does not fit on a full disk raises an error here, not at the exit of Python.
                sys.stdout.flush()
                return result
            except BrokenPipeError:
                # The reader has closed the pipe, as `head` does; click would exit with 1.
                divert(sys.stdout)
                ctx.exit(CLOSED)
            except MechdesignError as error:
                say_error(str(error))
                ctx.exit(exit_code(error))
            except KeyboardInterrupt:
                _stop()
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except OSError as error:
                say_error(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")
                divert(sys.stdout)
                ctx.exit(WRONG)
            except MemoryError:
                say_error("there is not enough memory for this command")
                ctx.exit(LACKING)
            except Exception as error:
                # After an interrupt, the cleanup of compilers raises errors of various types.
                if isinstance(error, RuntimeError) and _after_interrupt(error):
                    _stop()
                ctx.exit(_fault())


@contextlib.contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert errors that mean a lack of memory to `MemoryError`, and a missing package to `MissingDependencyError`."""
    try:
        yield
    except (OSError, ImportError) as error:
        if getattr(error, "errno", None) == errno.ENOMEM or _OUT_OF_MEMORY.search(str(error)):
            raise MemoryError from error
        missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
        if (package := missing.partition(".")[0]) not in ("", "mechdesign"):
            message = f"the package {package} is missing: install it, or install mechdesign again"
            raise MissingDependencyError(message) from error
        raise


def _stop() -> NoReturn:
    """Exit as after Ctrl-C."""
    say_error("stopped")
    # If Ctrl-C interrupts an `exec` of a string, CPython later ends with the signal instead of the exit code. A further
    # `exec` prevents this.
    exec("")
    raise click.exceptions.Exit(STOPPED)


def _after_interrupt(error: BaseException | None) -> bool:
    """Return whether an error follows from Ctrl-C."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _fault() -> int:
    """Show the current error as a fault of this program, and return its exit code.

    Python would exit with 1, which means a failed verification.
    """
    click.echo(escape(traceback.format_exc(), lines=True), err=True, nl=False)
    say_error("this is a fault of mechdesign: please report it, with the lines above and your command")
    return FAULT


def _cite(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(CITATION, nl=False)
        ctx.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mechdesign")
@click.option(
    "--cite", is_flag=True, is_eager=True, expose_value=False, callback=_cite, help="Print the citations as BibTeX."
)
def main() -> None:
    """Design, prove and export optimal privacy mechanisms.

    \b
    mechdesign design                      a small simulated city, in seconds
    mechdesign examples                    other examples, and how to make them yours
    mechdesign design city.toml -o city    the least-cost channel, its proof, pictures
    mechdesign verify city                 the proof again, from the files alone
    mechdesign sample city --secret 17     an observable for a secret
    """  # noqa: D301 - click wants the control character; words: ok, because these are lines of commands
