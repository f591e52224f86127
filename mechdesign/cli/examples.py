"""``mechdesign examples``."""

from __future__ import annotations

import click

from mechdesign.base._errors import InputError
from mechdesign.cli._console import output, show_next, table
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
    shown = table("example", "what it shows", "takes about")
    for example in EXAMPLES:
        shown.add_row(example.name, example.summary, example.takes)
    console = output()
    console.print(shown)
    said = "Times are for two cores without Numba. The data of a release are in a separate file."
    console.print(f"\n{said}", soft_wrap=True)
    commands = {f"mechdesign {each.commands[0]} --example {each.name}": f"run {each.name}" for each in EXAMPLES}
    commands |= {
        "mechdesign examples city > city.toml": "print an example, to change it",
        "mechdesign design city.toml": "run the changed example",
    }
    commands |= {
        f"mechdesign examples {each.trace} > {each.trace}": f"print the data of {each.name}"
        for each in EXAMPLES
        if each.trace
    }
    show_next(commands)


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
