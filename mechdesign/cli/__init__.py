"""The command line, with one file for each command.

A command reads arguments, calls the library and shows the result; nothing is computed here. Commands load on first use,
so that `mechdesign verify` is quick. Invalid input ends with status 2 and one sentence. This package may import all
others.
"""

from __future__ import annotations

import difflib
import importlib
import io
import re
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from mechdesign.base._errors import (
    ClosedPipeError,
    MechdesignError,
    MechdesignWarning,
    MissingDependencyError,
    SolverError,
    SolverInterruptedError,
    TooLargeError,
    UnboundedError,
)
from mechdesign.base._version import __version__
from mechdesign.certify._texts import escape
from mechdesign.cli._citation import CITATION
from mechdesign.cli._console import STOPPED, divert, say_error, say_warning, use_streams, watch_signals

CLOSED, FAULT = 141, 70

CODES: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], int], ...] = (
    ((ClosedPipeError, BrokenPipeError), CLOSED),
    ((SolverInterruptedError, KeyboardInterrupt), STOPPED),
    (TooLargeError, 2),
    ((SolverError, UnboundedError), 3),
    ((MechdesignError, click.ClickException, OSError, MemoryError), 2),
)
"""The exit code of each kind of error: the first kind that fits decides; any other error is a fault.

No error has the code 1: a command that finds a false claim returns it.
"""

# Commands are imported when they are called, so that verifying never imports a solver.
_COMMANDS: Mapping[str, str] = {
    "init": "Look at data and propose a specification.",
    "design": "Design the least-cost channel, certify it and write the files.",
    "sweep": "Make a design for each of many parameter values, on one machine or a cluster.",
    "verify": "Verify a bundle, from its files alone.",
    "inspect": "Show what is in a folder, or compare several designs.",
    "attack": "Attack a channel in several ways.",
    "audit": "Compute the guarantee of any finite channel.",
    "sample": "Draw answers, exactly as certified.",
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


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code in CODES if isinstance(error, kind)), FAULT)


class _Commands(click.Group):
    """A group that imports a command when it is called, and shows each error as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"mechdesign.cli.{name}"), name)
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

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **__: Any) -> NoReturn:
        # click would exit with 1 after Ctrl-C, a closed pipe or wrong usage; here 1 means that a claim does not hold.
        with use_streams():
            sys.exit(self._code(sys.argv[1:] if args is None else list(args), prog_name))

    def _code(self, arguments: list[str], name: str | None) -> int:
        """Run a command, show its error if there is one, and return the exit code."""
        try:
            with watch_signals(), warnings.catch_warnings():
                warnings.simplefilter("always", MechdesignWarning)
                warnings.showwarning = say_warning
                code = 0
                try:
                    with self.make_context(name, arguments) as ctx:
                        self.invoke(ctx)
                except click.exceptions.Exit as ended:
                    code = ended.exit_code
                # Output that does not fit on a full disk raises an error here, not at the exit of Python.
                sys.stdout.flush()
                return code
        except (Exception, KeyboardInterrupt) as error:
            return _say(_recognise(error))


# The loader's messages for a module that does not fit into memory.
_OUT_OF_MEMORY = re.compile(r"failed to map segment|cannot map zero-fill pages|[Cc]annot allocate memory$")


def _recognise(error: BaseException) -> BaseException:
    """Return the error that a command means: Ctrl-C, too little memory or a missing package may have other types."""
    # A package may also be missing because Ctrl-C broke off its import.
    if isinstance(error, MechdesignError | click.ClickException) and not isinstance(error, MissingDependencyError):
        return error
    chain: BaseException | None = error
    while chain is not None:
        # After an interrupt, imports and the cleanup of compilers raise errors of various types.
        if isinstance(chain, KeyboardInterrupt):
            return chain
        chain = chain.__cause__ or chain.__context__
    if isinstance(error, OSError | ImportError) and _OUT_OF_MEMORY.search(str(error)):
        return MemoryError()
    missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if (package := missing.partition(".")[0]) not in ("", "mechdesign"):
        return MissingDependencyError(f"the package {package} is missing: install it, or install mechdesign again")
    return error


def _say(error: BaseException) -> int:
    """Show an error and return its exit code."""
    code = exit_code(error)
    if code == FAULT:
        click.echo(escape("".join(traceback.format_exception(error)), lines=True), err=True, nl=False)
        say_error("this is a fault of mechdesign: please report it, with the lines above and your command")
    elif isinstance(error, MechdesignError):
        say_error(str(error))
    elif isinstance(error, click.ClickException):
        shown = io.StringIO()
        error.show(shown)
        # A number may have thousands of digits.
        said = re.sub("([0-9]{100})[0-9]+", r"\1…", shown.getvalue())
        click.echo(escape(said.expandtabs(4), lines=True), err=True, nl=False)
    elif isinstance(error, MemoryError):
        say_error("there is not enough memory for this command")
    elif isinstance(error, OSError):
        # Python would try to write the output again at its exit.
        divert(sys.stdout)
        if code != CLOSED:
            say_error(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")
    else:
        say_error("stopped")
    return code


def _cite(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(CITATION, nl=False)
        ctx.exit()


def _print_json(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta["mechdesign.json"] = True


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mechdesign")
@click.option(
    "--cite", is_flag=True, is_eager=True, expose_value=False, callback=_cite, help="Print the citations as BibTeX."
)
@click.option(
    "--json", is_flag=True, expose_value=False, callback=_print_json, help="Print JSON; also after a command."
)
def main() -> None:
    """Design, prove and export optimal privacy mechanisms.

    \b
    mechdesign design                     a small simulated city, in seconds
    mechdesign examples                   other examples, and how to adapt them
    mechdesign design city.toml -o city   the least-cost channel, its proof
    mechdesign verify city                the proof again, from the files alone
    mechdesign sample city --secret 17    an answer for a secret
    """  # noqa: D301 - click wants the control character; words: ok, because these are lines of commands
