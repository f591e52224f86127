"""``mechdesign sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.certify._texts import csv_text, escape
from mechdesign.cli._console import progress, say_note
from mechdesign.cli._found import FILE, Found, command, wants_json
from mechdesign.cli._places import at_option, check_size, locate_secrets
from mechdesign.data.labels import Names
from mechdesign.model._answers import Answers, answers
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._locate import DEGREES
from mechdesign.synthesis._folders import check_output, require_design
from mechdesign.synthesis._result import Design


@command
@click.argument("folder", metavar="DIR", type=FILE)
@click.option("--secret", metavar="SECRET", help="The true secret: its label, or its position counted from 0.")
@at_option
@click.option(
    "-n", "--size", metavar="N", type=click.IntRange(min=0), default=1, show_default=True, help="Number of draws."
)
@click.option(
    "--input", "source", metavar="FILE", type=FILE,
    help="Draw for each line of a CSV with columns latitude and longitude, or x and y.",
)  # fmt: skip
@click.option(
    "-o", "--output", "target", metavar="FILE", type=FILE,
    help="Write the answers as CSV.",
)  # fmt: skip
@click.option(
    "--outside", type=click.Choice(["refuse", "nearest"]), default="refuse", show_default=True,
    help="Refuse places outside the secrets, or take the nearest secret.",
)  # fmt: skip
def sample(
    folder: Path,
    secret: str | None,
    at: tuple[float, float] | None,
    size: int,
    source: Path | None,
    target: Path | None,
    outside: str,
) -> Found:
    """Draw answers for a secret, a place or a file of places, exactly as certified.

    An answer for a secret is a label; for a place coordinates, latitude,longitude or x,y. A place belongs to its cell,
    or to the nearest secret if the secrets are points. Between anchors, one of the four around it is drawn. A place
    outside the grid or the anchors, in a cell without a secret, or far from all secrets is an error.

    For a file the answers are CSV: row (from 0), observable_index, observable and coordinates. Other columns are not
    copied.

    Each draw spends the budget again: k answers for one place spend k times the ε. The largest k is shown, and written
    nowhere. Hence more than 1,000,000 answers are refused, but for longer files.

    Example: mechdesign sample city --at 40.75,-73.98
    """
    if [secret, at, source].count(None) != 2:
        raise click.UsageError("give one of --secret, --at and --input")
    if secret is not None and outside == "nearest":
        raise click.UsageError("--outside goes with --at and --input")
    if folder.is_file():
        raise InputError(str(folder), "is a file", bound="a folder that `mechdesign design` wrote")
    check_output(target)
    require_design(folder)
    check_size(size)
    with progress("drawing answers"):
        if secret is not None:
            channel, domain = Channel.load(folder), None
            labels = channel.secrets or [str(index) for index in range(len(channel.numerators))]
            secrets, most = np.repeat(Names.of(labels).find_text(secret, f"--secret {secret:.60}"), size), size
        else:
            design = Design.load(folder)
            channel, domain = design.channel, design.problem.observables
            secrets, most = locate_secrets(design.problem.secrets, at, source, outside == "nearest", size)
        drawn = _columns(answers(channel, domain, channel.sample(secrets)), domain)
        if source is not None:
            drawn = {"row": (np.arange(len(secrets)) // max(size, 1)).tolist()} | drawn
    if most > 1:
        # The frequency of places in a file is private: show it on the console only.
        also = "; keep this number as private as the places" if source is not None else ""
        say_note(f"up to {most} answers for one place: {most} times the ε{also}")
    rows = list(zip(*drawn.values(), strict=True))
    if target is not None:
        write_output(target, [csv_text([list(drawn), *rows]).encode()])
        return Found(facts={"file": target, "answers": len(rows)})
    if wants_json():
        return Found(facts={"answers": [dict(zip(drawn, row, strict=True)) for row in rows]})
    if source is not None:
        return Found(text=csv_text([list(drawn), *rows]))
    # An index and a label, and the coordinates if there are any.
    lines = (escape(label) if not place else ",".join(map(repr, place)) for _, label, *place in rows)
    return Found(text="".join(f"{line}\n" for line in lines))


def _columns(drawn: Answers, domain: Domain | None) -> dict[str, list[Any]]:
    """Return answers as columns by their names."""
    columns = {"observable_index": drawn.index.tolist(), "observable": drawn.label.tolist()}
    if domain is None or drawn.place is None or drawn.place.shape[1] != len(DEGREES):
        return columns
    return columns | dict(zip(domain.axes, drawn.place.T.tolist(), strict=True))
