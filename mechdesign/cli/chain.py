"""``mechdesign chain``."""

from __future__ import annotations

from pathlib import Path

import click

from mechdesign.cli.leakage import _FILE

from mechdesign.cli.console import output
from mechdesign.cli.console import say_note
from mechdesign.cli.console import show_next
from mechdesign.cli.correlations import warnings_once
from mechdesign.cli.specified import memory_option
from mechdesign.cli.specified import show_values_option
from mechdesign.cli.specified import specified
from mechdesign.cli.specified import time_options
from mechdesign.synthesis._folders import check_folder
from mechdesign.model._markov import ENDS

__all__ = ["chain"]



@click.command()
@click.argument("specification", metavar="SPEC.toml", type=_FILE)
@click.option("-o", "--output", "directory", metavar="DIR", type=_FILE, default=Path("chain"), show_default=True)
@click.option("--every", metavar="TIME", help='Bring the data to steps of this length first, such as "5 min".')
@click.option("--gap", metavar="TIME", help="Cut the data where nothing was seen for longer; three steps by default.")
@click.option(
    "--smoothing", metavar="S", type=float, help="Add so much to each count of steps: for beliefs, not for bounds."
)
@click.option(
    "--ends", type=click.Choice(ENDS),
    help="What the row of a state that nobody was seen to leave, or to enter, may be: stay (a 1 on the diagonal, the "
    "default), any mixture of the rows seen, or any row.",
)  # fmt: skip
@click.option(
    "--border", type=click.Choice(["cut", "state"]),
    help="Leave steps out of the box out (cut, the default), or lead them to a further state outside (state).",
)  # fmt: skip
@time_options
@memory_option
@show_values_option
def chain(
    specification: Path,
    directory: Path,
    every: str | None,
    gap: str | None,
    smoothing: float | None,
    ends: str | None,
    border: str | None,
    time_: str | None,
    date: str | None,
    time_format: str | None,
    time_zone: str | None,
    missing: float | None,
) -> None:
    """Write how secrets follow one another: forward and backward matrices, for `leakage`, `budget` and `release`.

    The chain is that of [release] in SPEC.toml, or is counted in the data that its prior comes from. DIR gets
    forward.csv, Pr(next state | state now), backward.csv, Pr(state before | state now), and states.csv, which says what
    each row is. Without smoothing, states that nobody visits are left out of all three. chain-counts.json holds the
    counts and the smoothing, and belongs to these matrices alone: `leakage` and `budget` read it where it stands with
    them. Files of a chain that was counted are private, and only you can read them.

    Rows are counted in the steps that leave a state, those of backward.csv in the steps that enter it. Where there are
    none, --ends says what the row may be; mixture and any stand as words in place of the row, for `leakage` and
    `budget`.
    """
    # Imported late: wrong usage is refused at once.
    from mechdesign.data._matrices import CHAIN_COUNTS
    from mechdesign.specification._derived import chain_files

    ours = ("forward.csv", "backward.csv", "states.csv", CHAIN_COUNTS)
    check_folder(directory, lambda entry: entry.name in ours, "a chain")
    times = {
        "time": time_,
        "date": date,
        "time_format": time_format,
        "time_zone": time_zone,
        "missing": missing,
    }
    given = specified(specification, None, "release")
    with warnings_once():
        files, notes = chain_files(given, every, gap, smoothing, ends, border, times=times)
    from mechdesign.base._atomic import make_folder
    from mechdesign.base._atomic import write_file
    from mechdesign.base._files import note_readers

    # It tells how the people of the data move.
    make_folder(directory, private=True)
    if CHAIN_COUNTS not in files:
        # Those of an earlier chain are of other matrices.
        (directory / CHAIN_COUNTS).unlink(missing_ok=True)
    for name, content in files.items():
        note_readers(directory / name)
        write_file(directory / name, [content], private=True)
    for note in notes:
        say_note(note)
    output().print(f"{directory}: {', '.join(files)}", soft_wrap=True)
    both = f"{directory}/backward.csv --forward {directory}/forward.csv"
    show_next(
        {
            f"mechdesign leakage {both} --epsilon 0.1 --steps 10": "what releases of such data leak",
            f"mechdesign budget --alpha 1 --steps 10 --backward {both}": "the ε with which none leaks more than 1",
        }
    )
