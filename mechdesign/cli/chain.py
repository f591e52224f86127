"""``mechdesign chain``."""

from __future__ import annotations

from pathlib import Path

import click

from mechdesign.cli.console import output, say_note, show_next
from mechdesign.cli.specified import specified
from mechdesign.export.files import check_folder

__all__ = ["chain"]

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("specification", metavar="SPEC.toml", type=_FILE)
@click.option("-o", "--output", "directory", metavar="DIR", type=_FILE, default=Path("chain"), show_default=True)
@click.option("--every", metavar="TIME", help='Bring the data to steps of this length first, such as "5 min".')
@click.option("--gap", metavar="TIME", help="Cut the data where nothing was seen for longer; three steps by default.")
@click.option("--smoothing", metavar="S", type=float, help="Add so much to each count of steps.")
def chain(specification: Path, directory: Path, every: str | None, gap: str | None, smoothing: float | None) -> None:
    """Write how secrets follow one another: forward and backward matrices, for `leakage`, `budget` and `release`.

    The chain is that of [release] in SPEC.toml, or is counted in the data that its prior comes from. DIR gets
    forward.csv, Pr(next state | state now), backward.csv, Pr(state before | state now), and states.csv, which says what
    each row is. Without smoothing, states that no step leaves or reaches are left out of all three.
    """
    # Imported late: wrong usage is refused at once.
    from mechdesign.spec.pair import chain_files

    check_folder(directory, lambda entry: entry.name in ("forward.csv", "backward.csv", "states.csv"), "a chain")
    files, notes = chain_files(specified(specification, None, "release"), every, gap, smoothing)
    from mechdesign.atomic import write_file

    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(directory / name, [content])
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
