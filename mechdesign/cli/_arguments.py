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

from mechdesign.base._check import rename_path
from mechdesign.base._errors import InputError, showing_values
from mechdesign.data._bounds import allowing_memory
from mechdesign.data._layout import FileLayout, current_layout, reading_as
from mechdesign.specification import examples

if TYPE_CHECKING:
    from mechdesign.specification._specification import Specification


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    r"""Name options in errors about what they were passed as.

    Args:
        options: For a pattern of a whole path the name that it has on the command line; what ``\1`` stands for may be
            a part of the path.

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
        help="Show in errors what stands in a cell of a file, not its form only.",
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
        help="What a packed file, a line or a design may take; else 256 MiB or 100 times the file, 16 MiB, 2 GiB.",
    )(command)


def layout_options(*, matrices: bool = False, places: bool = False) -> _Decorator:
    """Return the options that say how the files on the command line are written, also `matrices` or `places`."""

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


_LAYOUT_OPTIONS = {
    "--longitude": ("COLUMN", "The column with the longitude, if it is called otherwise."),
    "--latitude": ("COLUMN", "The column with the latitude, if it is called otherwise."),
    "--numbered/--no-numbered": ("", "Whether the first column of a matrix names or numbers its rows; else asked."),
    "--header/--no-header": ("", "Whether the first line of a matrix names or numbers its columns; else asked."),
    "--encoding": ("NAME", "How the text is encoded, such as windows-1252; else UTF-8, or UTF-16 with its mark."),
    "--decimal": ("SIGN", 'What stands before decimals, "." or ","; else recognised.'),
    "--delimiter": ("CHARACTER", "Between columns; else recognised."),
}


def time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the times of a table are, how they are written, and what may be left out."""
    for option in (
        click.option(
            "--missing",
            metavar="SHARE",
            type=float,
            help="How many of the rows may be left out, such as 0.2, as they cannot be read.  [default: 0.05]",
        ),
        click.option(
            "--time-zone",
            metavar="ZONE",
            help="The zone of times that say none, such as Europe/Zurich or +02:00.  [default: UTC]",
        ),
        click.option(
            "--time-format", metavar="FORM", help='How times are written: a pattern such as "%Y%m%d", unix, or unix-ms.'
        ),
        click.option("--date", metavar="COLUMN", help="The column with the date, if that with the time lacks it."),
        click.option("--time", "time_", metavar="COLUMN", help="The column with the time, if it is not recognised."),
    ):
        command = option(command)
    return command


def with_release(given: Specification, **changed: object) -> Specification:
    """Return a specification with other values of keys of ``[release]``; those that are None are kept."""
    asked = {key: value for key, value in changed.items() if value is not None}
    if not asked:
        return given
    return replace(
        given, document=structs.replace(given.document, release=structs.replace(given.document.release, **asked))
    )


def example_for(name: str, command: str) -> examples.Example:
    """Return an example by its name; refuse one that the command cannot run."""
    found = examples.find(name)
    if command not in found.commands:
        able = ", ".join(example.name for example in examples.EXAMPLES if command in example.commands)
        raise click.UsageError(f"--example {name} is for `mechdesign {found.commands[0]}`; here run {able}")
    return found


def specified(path: Path | None, example: str | None, command: str, default: str | None = None) -> Specification:
    """Return the specification in a file, or the example of that name, or, where neither is given, the default one."""
    # Imported late: wrong usage is refused at once.
    from mechdesign.specification._specification import parse, read_spec

    if path is not None and example is not None:
        raise click.UsageError("give SPEC.toml or --example NAME, not both")
    if path is not None:
        return read_spec(path)
    if example is None and default is None:
        raise click.UsageError("give SPEC.toml, or --example NAME; `mechdesign examples` lists them")
    return parse(example_for(example or default or "", command).text)


"""The option ``--label``: a column, "" for none, or None."""
