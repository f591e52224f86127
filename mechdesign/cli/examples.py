"""``mechdesign examples``."""

from __future__ import annotations

import click

from mechdesign.base._check import require_name
from mechdesign.cli._found import Found, command
from mechdesign.specification.examples import EXAMPLES, find, text_of


@command
@click.argument("name", metavar="[NAME]", required=False)
def examples(name: str | None) -> Found:
    """List the embedded examples, or print one with its comments, to make it yours.

    NAME is an example, or a file that belongs to one, such as walk.csv.

    Example: mechdesign examples city > city.toml
    """
    if name is not None:
        return Found(text=_text(name))
    listed = [{"example": each.name, "shows": each.summary, "takes_about": each.takes} for each in EXAMPLES]
    lines = [f"mechdesign {each.commands[0]} --example {each.name}" for each in EXAMPLES]
    lines += ["mechdesign examples city > city.toml    # print an example, to change it"]
    lines += [
        f"mechdesign examples {each.trace} > {each.trace}    # print the data of {each.name}"
        for each in EXAMPLES
        if each.trace
    ]
    return Found("Times are for two cores without Numba.", {"examples": listed, "next": lines})


def _text(name: str) -> str:
    files = [file for example in EXAMPLES for file in (example.file, example.trace) if file]
    if name in files:
        return text_of(name)
    require_name(name, [*(each.name for each in EXAMPLES), *files], "NAME")
    return find(name).text
