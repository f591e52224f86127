"""``mechdesign sample``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.certify._texts import csv_text, escape
from mechdesign.cli._console import say_note
from mechdesign.cli._found import Found, command
from mechdesign.cli._places import at_option, locate_secrets
from mechdesign.data.labels import Names
from mechdesign.model._answers import Answers, answers
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.synthesis._folders import SET, check_outputs, require_design
from mechdesign.synthesis._result import Design


@command
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--secret", metavar="SECRET", help="The true secret: its label, or its position counted from 0.")
@at_option
@click.option("-n", "--size", metavar="N", type=click.IntRange(min=0), help="Number of draws.  [default: 1]")
@click.option(
    "--input", "source", metavar="FILE", type=click.Path(path_type=Path),
    help="Draw for each line of a CSV with columns latitude and longitude, or x and y.",
)  # fmt: skip
@click.option(
    "-o", "--output", "target", metavar="FILE", type=click.Path(path_type=Path),
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
    size: int | None,
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
    nowhere.

    Example: mechdesign sample city --at 40.75,-73.98
    """
    if [secret, at, source].count(None) != 2:
        raise click.UsageError("give one of --secret, --at and --input")
    if secret is not None and outside == "nearest":
        raise click.UsageError("--outside goes with --at and --input")
    if folder.is_file():
        raise InputError(str(folder), "is a file", bound="a folder that `mechdesign design` wrote")
    check_outputs(target, inputs={"--input": source} | {f"DIR, {name}": folder / name for name in SET})
    rows = domain = None
    draws = 1 if size is None else size
    require_design(folder)
    if secret is not None:
        channel = Channel.load(folder)
        labels = channel.secrets or [str(index) for index in range(len(channel.numerators))]
        drawn, most = channel.sample(Names.of(labels).find_text(secret, "--secret"), draws), draws
        found = answers(channel, None, drawn)
    else:
        design = Design.load(folder)
        domain, channel = design.problem.observables, design.channel
        secrets, most = locate_secrets(design.problem.secrets, at, source, outside == "nearest", draws)
        rows = np.repeat(np.arange(len(secrets) // max(draws, 1)), draws)
        found = answers(channel, domain, channel.sample(secrets))
    if most > 1:
        # The frequency of places in a file is private: show it on the console only.
        also = "; keep this number as private as the places" if source is not None else ""
        say_note(f"up to {most} answers for one place: {most} times the ε{also}")
    if target is None:
        # Labels are escaped on a screen, but not in a file.
        found = replace(found, label=np.array([escape(label) for label in found.label.tolist()]))
        if source is None:
            places = None if found.place is None else [",".join(map(repr, place)) for place in found.place.tolist()]
            return Found(text="".join(f"{each}\n" for each in places or found.label.tolist()))
    text = _table(found, domain, rows if source is not None else None)
    if target is None:
        return Found(text=text)
    write_output(target, [text.encode()])
    return Found(facts={"file": target, "answers": len(found.index)})


def _table(found: Answers, domain: Domain | None, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None) -> str:
    axes = () if domain is None or found.place is None else domain.axes
    head = [*(() if rows is None else ("row",)), "observable_index", "observable", *axes]
    columns = [found.index.tolist(), found.label.tolist()]
    if rows is not None:
        columns.insert(0, rows.tolist())
    if axes and found.place is not None:
        columns += found.place.T.tolist()
    return csv_text([head, *zip(*columns, strict=True)])
