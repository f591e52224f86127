"""``mechdesign compare``."""

from __future__ import annotations

from pathlib import Path

import click

from mechdesign.cli.console import output
from mechdesign.cli.console import say_json
from mechdesign.cli.console import say_note
from mechdesign.cli.console import show_next
from mechdesign.cli.console import table
from mechdesign.cli.private import say_private_folders
from mechdesign.cli.specified import memory_option
from mechdesign.base._errors import InputError
from mechdesign.synthesis._folders import SET
from mechdesign.synthesis._folders import check_no_input
from mechdesign.synthesis._folders import check_output
from mechdesign.synthesis._folders import require_design
from mechdesign.base._files import write_output
from mechdesign.report._compare_page import compared
from mechdesign.report._compare_page import differences
from mechdesign.report._compare_page import html
from mechdesign.report._compare_page import rows
from mechdesign.synthesis._result import Design

__all__ = ["compare"]


@click.command()
@click.argument("directories", metavar="A B …", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", "page", metavar="FILE.html", type=click.Path(path_type=Path), help="Write a page, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
@memory_option
def compare(directories: tuple[Path, ...], page: Path | None, as_json: bool) -> None:
    """Compare designs: costs, requirements and adversaries, and with -o their maps side by side.

    A, B, … are folders that `mechdesign design` wrote. Numbers are read from their certificates, which `mechdesign
    verify` proves again; attacks are computed here.
    """
    if len(directories) < 2:
        raise InputError("A B …", "is one design", value=str(directories[0]), bound="two folders or more")
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--output", "is not a page", value=str(page), bound="a name that ends in .html")
    for each in directories:
        require_design(each)
    if page is not None:
        check_no_input(page, {f"{each}, {name}": each / name for each in directories for name in SET})
        check_output(page)
    read = [Design.load(each) for each in directories]
    designs = [
        compared(name, each.problem, each.channel, each.certificate)
        for name, each in zip(_names(directories), read, strict=True)
    ]
    notes, found = differences(designs), rows(designs)
    listed = [(shown.name, each.problem, each.origin) for shown, each in zip(designs, read, strict=True)]
    said = say_private_folders(listed, "this comparison")
    names = [each.name for each in designs]
    if as_json:
        lines = {line[0]: dict(zip(names, line[1:], strict=True)) for line in found}
        say_json({"designs": names, "differences": notes, "table": lines})
    else:
        shown = table("", *names, numbers=names)
        for line in found:
            shown.add_row(*line)
        for note in notes:
            say_note(note)
        output().print(shown)
    if page is not None:
        write_output(page, [html(designs, said).encode()])
        if not as_json:
            show_next({str(page): "the same with maps side by side: open it in a browser"})


def _names(directories: tuple[Path, ...]) -> list[str]:
    """Return the names of the folders, or the whole paths where names are the same."""
    names = [each.resolve().name for each in directories]
    return names if len(set(names)) == len(names) else [str(each) for each in directories]
