"""``mechdesign chain``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

import click

from mechdesign.cli._arguments import input_files, naming_options, read_specification
from mechdesign.cli._console import say_note
from mechdesign.cli._found import FILE, Found, command
from mechdesign.model._markov import ENDS
from mechdesign.synthesis._folders import check_folder, check_no_input_in


@command
@click.argument("specification", metavar="SPEC.toml", type=FILE)
@click.argument("tables", metavar="[TABLE.csv...]", nargs=-1, type=FILE)
@click.option("-o", "--output", "folder", metavar="DIR", type=FILE, default=Path("chain"), show_default=True)
@click.option("--every", metavar="TIME", help='First resample the data to steps of this length, such as "5 min".')
@click.option("--gap", metavar="TIME", help="Split the data at longer pauses than this; default: three steps.")
@click.option(
    "--ends",
    type=click.Choice(ENDS),
    help="The row of a state without observed steps: any row, written as zeros (the default), or a 1 on the diagonal.",
)
@click.option("--overwrite", is_flag=True, help="Replace a chain in DIR.")
def chain(
    specification: Path,
    tables: tuple[Path, ...],
    folder: Path,
    every: str | None,
    gap: str | None,
    ends: Literal["any", "stay"] | None,
    overwrite: bool,
) -> Found:
    """Write the transition matrices of secrets, forward and backward, for `leakage`, `budget` and `release`.

    The chain is given by [release] in SPEC.toml, or is counted in the data of the prior. DIR gets forward.csv, Pr(next
    state | state now), backward.csv, Pr(state before | state now), and states.csv, which labels their rows. States
    without visits are left out. Files of a counted chain are private.

    For a table, the chain is counted over all values of its domain. The column `step` of [table] states the time step
    of each row. Without it each TABLE.csv is one step: the month or integer by which its name differs from the others.
    Give the tables in the order of their steps.

    A row of zeros may be any row; a release needs --ends stay.

    Example: mechdesign chain status.toml 2025-*.csv -o flows
    """
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.base._atomic import make_folder, replacing, write_file
    from mechdesign.base._files import note_readers
    from mechdesign.specification import _table_specification as table_specification
    from mechdesign.specification._chain_files import FILES, chain_files, table_chain_files

    if tables and (every, gap, ends) != (None, None, None):
        raise click.UsageError("--every, --gap and --ends are for chains of places; the steps of a table are given")
    given = [name for name, text in (("every", every), ("gap", gap)) if text is not None]
    with naming_options({rf"release\.transition\.{name}": f"--{name}" for name in given}):
        if tables:
            files, notes = table_chain_files(table_specification.read(specification), tables)
        else:
            files, notes = chain_files(read_specification(specification, None, "release"), every, gap, ends)
    held = "" if overwrite or not any((folder / name).exists() for name in FILES) else "a chain"
    check_no_input_in(folder, FILES, input_files(specification) | {str(path): path for path in tables})
    check_folder(folder, FILES, "a chain", first=FILES, held=held)
    # The files reveal how the people in the data move.
    make_folder(folder, private=True)
    for name in files:
        note_readers(folder / name)
    # A mixture of two chains would pass for one.
    with replacing(folder, FILES):
        for name, content in files.items():
            write_file(folder / name, [content], private=True)
    for note in notes:
        say_note(note)
    released = "releases whose ε bounds every pair of states"
    shown = f"--chain {shlex.quote(str(folder))}"
    following = [
        f"mechdesign leakage {shown} --epsilon 0.1 --steps 10    # the leakage of {released}",
        f"mechdesign budget --alpha 1 --steps 10 {shown}    # the ε with which none leaks more than 1",
    ]
    if tables:
        kept = f"mechdesign ledger series LEDGER --alpha 1 {shown} --steps 12 --history own"
        following.insert(
            0, f"{kept}    # record this limit in a ledger; --history others, if other people were counted"
        )
    else:
        pairs = f"mechdesign leakage {shlex.quote(str(specification))} {shown} --steps 12"
        following.insert(0, f"{pairs}    # what twelve releases under its requirements tell, pair by pair")
    said = f"{folder} holds the transition matrices of the secrets."
    return Found(said, {"files": [str(folder / name) for name in files], "next": following})
