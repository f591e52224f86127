"""``mechdesign init``."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.cli._console import progress, say_note
from mechdesign.cli._found import FILE, Found, command
from mechdesign.synthesis._folders import check_output

if TYPE_CHECKING:
    from mechdesign.specification._recognise import Found as Recognised

_KEYS = "delimiter|encoding|missing|time_format"


@command
@click.argument("data", metavar="DATA", type=FILE)
@click.option("-o", "--output", "target", metavar="SPEC.toml", type=FILE, help="Write the specification to this file.")
@click.option("--cells", metavar="N", type=int, default=64, show_default=True, help="Approximate number of cells.")
@click.option("--anchors", is_flag=True, help="Protect all coordinates: the corners of the cells are anchors.")
@click.option("--latitude", metavar="COLUMN", help="The column with the latitude.")
@click.option("--longitude", metavar="COLUMN", help="The column with the longitude.")
@click.option("--user", metavar="COLUMN", help='The column of people; "" if all rows are one person\'s.')
@click.option("--time", metavar="COLUMN", help='The column of times; "" for no times.')
@click.option("--time-format", metavar="FORM", help='Such as "%d.%m.%Y %H:%M", unix, or unix-ms.')
@click.option("--places", metavar="FILE", type=FILE, help="A table of places, to which DATA refers.")
@click.option("--place", metavar="COLUMN", help="The column of DATA with the key of the place.")
@click.option("--key", metavar="COLUMN", help="The column of the table of places with the key.")
@click.option("--trace", metavar="COLUMN", help='The column that distinguishes a person\'s traces; "" for none.')
@click.option("--delimiter", metavar="CHARACTER", help="The character between columns.")
@click.option("--encoding", metavar="NAME", help="The encoding of the text, such as gb18030.")
@click.option("--missing", metavar="SHARE", type=float, help="Share of rows to leave out at most; default 0.05.")
def init(data: Path, target: Path | None, cells: int, anchors: bool, **asked: Any) -> Found:
    """Look at check-ins and write a commented specification, which `mechdesign design` accepts unchanged.

    DATA is a table with a header, as text or Parquet, or a folder of GeoLife trajectories (.plt). A comment beside each
    key says how it was recognised. A fact that the table leaves open needs its option. The proposals depend on the
    data: a box around the densest points, and metric privacy with ε = ln 4 / (longer side of a cell).

    Example: mechdesign init visits.csv -o visits.toml
    """
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.specification._proposal import propose, text_of
    from mechdesign.specification._recognise import recognise

    check_output(target)
    try:
        with progress(f"reading {data}"):
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
        return Found(text=text)
    write_output(target, [text.encode()])
    facts = {
        "file": target,
        "columns": dict(found.columns) or "trajectories (.plt)",
        "points_inside_the_box": proposal.inside,
        "points_outside": proposal.outside,
        "times": _times(found),
    }
    given = shlex.quote(str(target))
    return Found(f"{target} is written: read its comments, then run mechdesign design {given} -o DIR", facts)


def _times(found: Recognised) -> str | None:
    """Return the first and the last time, which tell whether their form was recognised."""
    known = [trace.time for trace in found.traces if trace.time is not None]
    ends = [str(end).replace("T", " ") for end in (min(map(min, known)), max(map(max, known)))] if known else []
    return f"{' to '.join(ends)} (UTC)" if ends else None


def _as_option(found: re.Match[str]) -> str:
    """Return the option of a key, with its value if there is one."""
    return " ".join(filter(None, (f"--{found[1].replace('_', '-')}", *found.groups()[1:2])))
