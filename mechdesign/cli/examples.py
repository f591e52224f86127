"""``mechdesign examples``."""

from __future__ import annotations

import click

from mechdesign.base._errors import InputError
from mechdesign.cli._console import output, table
from mechdesign.specification.examples import EXAMPLES, find, text_of


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
def examples(name: str | None) -> None:
    """List the embedded examples, or print one with its comments: `mechdesign examples city > city.toml`.

    NAME is an example, or a file that belongs to one, such as walk.csv.
    """
    if name is not None:
        click.echo(_text(name), nl=False)
        return
    shown = table("example", "what it shows", "takes about", "run it")
    for example in EXAMPLES:
        command = f"mechdesign {example.commands[0]} --example {example.name}"
        shown.add_row(example.name, example.summary, example.takes, command)
    console = output()
    console.print(shown)
    console.print("\nTimes are for two cores without Numba. Print an example to change it:", soft_wrap=True)
    console.print("mechdesign examples city > city.toml, then mechdesign design city.toml", soft_wrap=True)
    traces = ", ".join(f"mechdesign examples {each.trace} > {each.trace}" for each in EXAMPLES if each.trace)
    console.print(f"The data of a release are in a separate file: {traces}", soft_wrap=True)


def _text(name: str) -> str:
    files = [file for example in EXAMPLES for file in (example.file, example.trace) if file]
    if name in files:
        return text_of(name)
    try:
        return find(name).text
    except InputError as error:
        raise InputError(
            "NAME", error.problem, value=name, bound=f"{error.bound}, or one of {', '.join(files)}"
        ) from error
