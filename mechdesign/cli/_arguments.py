"""Arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._errors import InputError
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
                # The name of a file may contain backslashes, which `Match.expand` would read.
                path = name.replace(r"\1", found[found.lastindex or 0])
                raise type(error)(
                    path, error.problem, value=error.value, bound=error.bound, remedy=error.remedy
                ) from error
        raise


def example_option(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--example`` of a command."""
    names = ", ".join(_examples_of(command))
    return click.option("--example", metavar="NAME", help=f"Run an embedded example instead: {names}.")


def _examples_of(command: str) -> dict[str, examples.Example]:
    return {each.name: each for each in examples.EXAMPLES if command in each.commands}


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


def example_for(name: str, command: str) -> examples.Example:
    """Return an example by its name; raise `InputError` if the command cannot run it."""
    able = _examples_of(command)
    if name not in able:
        problem = f"is not an example for `mechdesign {command}`"
        raise InputError("--example", problem, value=name, bound=f"one of {', '.join(able)}")
    return able[name]


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


def input_files(specification: Path | None) -> dict[str, Path]:
    """Return the files that a command reads for a specification, by their names for messages."""
    from mechdesign.specification._document import files
    from mechdesign.specification._read import read_text, tables_of

    if specification is None:
        return {}
    named = files(tables_of(read_text(specification), str(specification)))
    return {"SPEC.toml": specification} | {name: specification.parent / name for name in named}
