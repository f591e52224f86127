"""Arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from mechdesign.base import _cache as caching
from mechdesign.base._check import rename_path
from mechdesign.base._errors import InputError, showing_values
from mechdesign.data._bounds import allowing_memory
from mechdesign.data._layout import FileLayout, current_layout, reading_as
from mechdesign.specification import examples

if TYPE_CHECKING:
    from mechdesign.specification._specification import Specification


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    r"""Replace the path of an input by the name of its option in errors.

    Args:
        options: Maps patterns of whole paths to names of options; ``\1`` in a name is replaced by the first group of
            its pattern.

    >>> with naming_options({"alpha": "--alpha"}):
    ...     raise InputError("alpha", "leaves no budget")
    Traceback (most recent call last):
    mechdesign.errors.InputError: --alpha: leaves no budget
    """
    try:
        yield
    except InputError as error:
        for pattern, name in options.items():
            if (found := re.fullmatch(pattern, error.path)) is not None:
                path = found.expand(name)
                raise type(error)(
                    path, error.problem, value=error.value, bound=error.bound, remedy=error.remedy
                ) from error
        raise


"""The option ``--at``: two numbers, or None."""


"""The option ``--reach``: a `Reach`, or None."""


_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def example_option(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--example`` of a command."""
    names = ", ".join(example.name for example in examples.EXAMPLES if command in example.commands)
    return click.option("--example", metavar="NAME", help=f"Run an embedded example instead: {names}.")


def show_values_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--show-values`` to a command that reads data."""

    def show(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.with_resource(showing_values())

    return click.option(
        "--show-values",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the contents of cells in error messages, not only their format.",
    )(command)


def memory_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--memory`` to a command that reads tables, matrices or designs."""

    def allow(ctx: click.Context, _: click.Parameter, memory: float | None) -> None:
        if memory is not None:
            try:
                ctx.with_resource(allowing_memory(memory))
            except InputError as error:
                raise rename_path(error, "--memory", "memory") from error

    return click.option(
        "--memory",
        metavar="GIB",
        type=float,
        is_eager=True,
        expose_value=False,
        callback=allow,
        help="Memory for a packed file, a line or a design; default 256 MiB or 100 times the file, 16 MiB, 2 GiB.",
    )(command)


def cache_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--no-cache`` to a command that uses cached results."""

    def turn_off(ctx: click.Context, _: click.Parameter, off: bool) -> None:
        if off:
            ctx.with_resource(caching.turning_off())

    return click.option(
        "--no-cache",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=turn_off,
        help="Compute everything again; do not read or write the cache.",
    )(command)


def layout_options(*, matrices: bool = False, places: bool = False) -> _Decorator:
    """Return the command-line options that describe the layout of files, including `matrices` or `places`."""

    def says(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def say(ctx: click.Context, _: click.Parameter, value: Any) -> None:
            if value is not None:
                given = {each.name: getattr(current_layout(), each.name) for each in fields(FileLayout)}
                try:
                    ctx.with_resource(reading_as(**(given | {name: value})))
                except InputError as error:
                    raise rename_path(error, f"--{error.path}", error.path) from error

        return say

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for declared, described in _LAYOUT_OPTIONS.items():
            name = declared.removeprefix("--").partition("/")[0]
            if (name in ("header", "numbered") and not matrices) or (name.endswith("itude") and not places):
                continue
            kind = {"default": None} if "/" in declared else {"metavar": described[0]}
            command = click.option(
                declared, is_eager=True, expose_value=False, callback=says(name), help=described[1], **kind
            )(command)
        return command

    return add


def matrix_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--header`` and ``--index`` to a command that reads matrices."""

    def declared(_: click.Context, __: click.Parameter, value: str | None) -> bool | str | None:
        return {"true": True, "false": False}.get(value or "", value)

    for name, line, names in (("index", "column", "rows"), ("header", "line", "columns")):
        command = click.option(
            f"--{name}",
            is_flag=False,
            flag_value="true",
            type=click.Choice(["true", "false", "ignore"]),
            callback=declared,
            help=f"The first {line} of a CSV names the {names}, does not (false), or is skipped (ignore).",
        )(command)
    return command


_LAYOUT_OPTIONS = {
    "--longitude": ("COLUMN", "The column with the longitude, if it has an unusual name."),
    "--latitude": ("COLUMN", "The column with the latitude, if it has an unusual name."),
    "--numbered/--no-numbered": ("", "Whether the first column of a matrix names its rows; needed if unclear."),
    "--header/--no-header": ("", "Whether the first line of a matrix names its columns; needed if unclear."),
    "--encoding": ("NAME", "The encoding of the text, such as windows-1252; default UTF-8, or UTF-16 with its mark."),
    "--decimal": ("SIGN", 'The decimal sign, "." or ","; default: recognised.'),
    "--delimiter": ("CHARACTER", "The character between columns; default: recognised."),
}


def time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the columns and formats of times in a table, and for the share of unreadable rows."""
    for option in (
        click.option(
            "--missing",
            metavar="SHARE",
            type=float,
            help="Share of rows that may be left out because they cannot be read, such as 0.2.  [default: 0.05]",
        ),
        click.option(
            "--time-zone",
            metavar="ZONE",
            help="Time zone, such as Europe/Zurich or +02:00, for times that do not state it.  [default: UTC]",
        ),
        click.option(
            "--time-format", metavar="FORM", help='The format of times: a pattern such as "%Y%m%d", unix, or unix-ms.'
        ),
        click.option("--date", metavar="COLUMN", help="The column with the date, if the time has no date."),
        click.option("--time", "time_", metavar="COLUMN", help="The column with the time, if it is not recognised."),
    ):
        command = option(command)
    return command


def with_release(given: Specification, **changed: object) -> Specification:
    """Return a specification with changed keys of ``[release]``; None keeps a key."""
    asked = {key: value for key, value in changed.items() if value is not None}
    if not asked:
        return given
    return replace(
        given, document=structs.replace(given.document, release=structs.replace(given.document.release, **asked))
    )


def example_for(name: str, command: str) -> examples.Example:
    """Return an example by its name; raise `click.UsageError` if the command cannot run it."""
    found = examples.find(name)
    if command not in found.commands:
        able = ", ".join(example.name for example in examples.EXAMPLES if command in example.commands)
        raise click.UsageError(f"--example {name} is for `mechdesign {found.commands[0]}`; this command runs {able}")
    return found


def read_specification(
    path: Path | None, example: str | None, command: str, default: str | None = None
) -> Specification:
    """Return the specification in a file, or the named example, or else the default example."""
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.specification._specification import parse, read_spec

    if path is not None and example is not None:
        raise click.UsageError("give SPEC.toml or --example NAME, not both")
    if path is not None:
        return read_spec(path)
    if example is None and default is None:
        raise click.UsageError("give SPEC.toml, or --example NAME; `mechdesign examples` lists them")
    return parse(example_for(example or default or "", command).text)


"""The option ``--label``: a column, "" for none, or None."""
