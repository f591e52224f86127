"""``mechdesign init``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from mechdesign.base._files import write_output
from mechdesign.cli._arguments import (
    layout_options,
    memory_option,
    naming_options,
    show_values_option,
    time_options,
)
from mechdesign.cli._console import say, say_note
from mechdesign.synthesis._folders import check_outputs

_FILE = click.Path(path_type=Path)
_RENAMED_OPTIONS = ("date", "time_format", "time_zone", "longitudes", "missing", "cells")


@click.command()
@click.argument("data", metavar="DATA", type=_FILE)
@click.option("-o", "--output", "target", metavar="SPEC.toml", type=_FILE, help="Write the specification to this file.")
@click.option("--cells", metavar="N", type=int, default=64, show_default=True, help="Approximate number of cells.")
@click.option(
    "--anchors",
    is_flag=True,
    help="Protect all coordinates: the corners of the cells are anchors.",
)
@click.option("--latitude", metavar="COLUMN", help="The column with the latitude, if it is not recognised.")
@click.option("--longitude", metavar="COLUMN", help="The column with the longitude.")
@click.option("--user", metavar="COLUMN", help="The column with the user.")
@click.option("--places", metavar="FILE", type=_FILE, help="A table of places, with a key that DATA refers to.")
@click.option("--place", metavar="COLUMN", help="The column of DATA with the key of the place.")
@click.option("--key", metavar="COLUMN", help="The column of the table of places with the key.")
@time_options
@click.option(
    "--longitudes", type=click.Choice(["180", "360"]),
    help="Whether longitudes go from -180 to 180 degrees, or from 0 to 360; default: recognised from the data.",
)  # fmt: skip
@click.option("--trace", metavar="COLUMN", help="The column that distinguishes the traces of a user.")
@click.option("--overwrite", is_flag=True, help="Replace an existing SPEC.toml.")
@layout_options()
@memory_option
@show_values_option
def init(
    data: Path,
    target: Path | None,
    cells: int,
    anchors: bool,
    latitude: str | None,
    longitude: str | None,
    user: str | None,
    places: Path | None,
    place: str | None,
    key: str | None,
    time_: str | None,
    date: str | None,
    time_format: str | None,
    time_zone: str | None,
    missing: float | None,
    longitudes: Literal["180", "360"] | None,
    trace: str | None,
    overwrite: bool,
) -> None:
    """Look at data and write a commented specification for them, which `mechdesign design` accepts unchanged.

    DATA is a table with a header and one check-in per line: CSV or any other delimited text, also compressed by gzip,
    or Parquet. DATA may also be a folder of GeoLife trajectories (.plt). Columns are recognised by their names. The
    specification has a box around the densest points, a grid that is solved in seconds, an ε and a floor.

    If check-ins refer to a table of places by a key, --places names it; --latitude and --longitude are then columns of
    that table.

    The proposed ε is the smallest of 0.1, 0.2, 0.5, … 20 per km with cheap planar Laplace noise. Noise is cheap if its
    cost is at most half the cost of the best constant answer. If even 20 per km is not large enough, a comment states
    this. All proposals depend on the data.
    """
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.data._inspection import inspect_data
    from mechdesign.data._joining import PlacesTable
    from mechdesign.data._movement import Written
    from mechdesign.specification._proposal import propose, text_of

    check_outputs(target, inputs={"DATA": data, "--places": places}, overwrite=overwrite)
    asked = None
    if places is not None:
        asked, latitude, longitude = PlacesTable(places, key, place, latitude, longitude), None, None
    elif place is not None or key is not None:
        raise click.UsageError("--place and --key need --places FILE, the table of places")
    columns = {
        "latitude": latitude,
        "longitude": longitude,
        "user": user,
        "date": date,
        "time": time_,
        "trace": trace,
    }
    with naming_options({name: f"--{name.replace('_', '-')}" for name in _RENAMED_OPTIONS}):
        found = inspect_data(data, columns, Written(time_format, time_zone, longitudes, missing), asked)
        proposal = propose(found, cells)
    for note in proposal.notes:
        say_note(note)
    if found.order not in proposal.notes:
        say_note(f"{data}: {found.order}")
    text = text_of(found, proposal, None if target is None else target.parent, anchors)
    if target is None:
        say(text, nl=False)
        return
    write_output(target, [text.encode()])
    said = ", ".join(f"{name} {column}" for name, column in found.columns.items()) or "trajectories (.plt)"
    if (joined := found.joined) is not None:
        say_note(
            f"{joined.path}: key {joined.key}, latitude {joined.latitude}, longitude {joined.longitude}; "
            f"{len(joined.places)} places"
        )
    say_note(f"{data}: {said}; {proposal.inside} points inside the box, {proposal.outside} outside")
    say(f"{target} is written: read its comments, then run mechdesign design {target} -o DIR")
