"""``mechdesign init``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.cli._console import say, say_note
from mechdesign.synthesis._folders import check_outputs

if TYPE_CHECKING:
    from mechdesign.specification._recognise import Found

_FILE = click.Path(path_type=Path)
_KEYS = "delimiter|decimal|encoding|missing|time_format|time_zone"


@click.command()
@click.argument("data", metavar="DATA", type=_FILE)
@click.option("-o", "--output", "target", metavar="SPEC.toml", type=_FILE, help="Write the specification to this file.")
@click.option("--cells", metavar="N", type=int, default=64, show_default=True, help="Approximate number of cells.")
@click.option("--anchors", is_flag=True, help="Protect all coordinates: the corners of the cells are anchors.")
@click.option("--latitude", metavar="COLUMN", help="The column with the latitude.")
@click.option("--longitude", metavar="COLUMN", help="The column with the longitude.")
@click.option("--user", metavar="COLUMN", help='The column of people; "" if all rows are one person\'s.')
@click.option("--time", metavar="COLUMN", help='The column of times; "" for no times.')
@click.option("--time-format", metavar="FORM", help='A pattern such as "%d.%m.%Y %H:%M", unix, or unix-ms.')
@click.option("--time-zone", metavar="ZONE", help="The zone of times without one, such as Europe/Zurich; default UTC.")
@click.option("--places", metavar="FILE", type=_FILE, help="A table of places, with a key that DATA refers to.")
@click.option("--place", metavar="COLUMN", help="The column of DATA with the key of the place.")
@click.option("--key", metavar="COLUMN", help="The column of the table of places with the key.")
@click.option("--trace", metavar="COLUMN", help='The column that distinguishes the traces of a person; "" for none.')
@click.option("--delimiter", metavar="CHARACTER", help="The character between columns.")
@click.option("--decimal", metavar="SIGN", help='The decimal sign, "." or ",".')
@click.option("--encoding", metavar="NAME", help="The encoding of the text, such as gb18030.")
@click.option("--missing", metavar="SHARE", type=float, help="The share of rows that may be left out; default 0.05.")
@click.option("--overwrite", is_flag=True, help="Replace an existing SPEC.toml.")
def init(data: Path, target: Path | None, cells: int, anchors: bool, overwrite: bool, **asked: Any) -> None:
    """Look at data and write a commented specification for them, which `mechdesign design` accepts unchanged.

    DATA is a table with a header and one check-in per line: delimited text, also compressed by gzip, or Parquet. DATA
    may also be a folder of GeoLife trajectories (.plt). Columns are recognised by their names, and the layout by the
    text: a comment beside each key says how. What cannot be told is asked for by its option.

    If check-ins refer to a table of places by a key, --places names it; --latitude and --longitude are then columns of
    that table.

    The specification has a box around the densest points, a grid that is solved in seconds, and metric privacy with
    ε = ln 4 / (longer side of a cell): odds between neighbouring cells change by a factor of at most 4. All proposals
    depend on the data.
    """
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.specification._proposal import propose, text_of
    from mechdesign.specification._recognise import recognise

    check_outputs(target, inputs={"DATA": data, "--places": asked["places"]}, overwrite=overwrite)
    try:
        found = recognise(data, {name: value for name, value in asked.items() if value is not None})
    except InputError as error:
        # No specification declares the file yet, so that an option takes the place of a key.
        path = re.sub(rf"^({_KEYS})$", _as_option, error.path)
        remedy = re.sub(rf"[Ss]et ({_KEYS}) = (\S+)( in \[files\])?", _as_option, error.remedy)
        raise InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy) from error
    proposal = propose(found, cells)
    for note in proposal.notes:
        say_note(note)
    text = text_of(found, proposal, None if target is None else target.parent, anchors)
    if target is None:
        say(text, nl=False)
        return
    write_output(target, [text.encode()])
    said = ", ".join(f"{name} {column}" for name, column in found.columns.items()) or "trajectories (.plt)"
    say_note(f"{data}: {said}; {proposal.inside} points inside the box, {proposal.outside} outside{_times(found)}")
    say(f"{target} is written: read its comments, then run mechdesign design {target} -o DIR")


def _times(found: Found) -> str:
    """Return the first and the last time, which tell whether their form was recognised."""
    known = [trace.time for trace in found.traces if trace.time is not None]
    ends = [str(end).replace("T", " ") for end in (min(map(min, known)), max(map(max, known)))] if known else []
    return f"; times from {' to '.join(ends)} (UTC)" if ends else ""


def _as_option(found: re.Match[str]) -> str:
    """Return the option of a key, with its value if there is one."""
    return " ".join(filter(None, (f"--{found[1].replace('_', '-')}", *found.groups()[1:2])))
