"""``mechdesign sample``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from click.core import ParameterSource

from mechdesign.base._check import as_generator
from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.certify._texts import csv_text, escape
from mechdesign.cli._arguments import layout_options, memory_option, show_values_option
from mechdesign.cli._console import say, say_note, say_warning
from mechdesign.cli._places import Reach, at_option, located, reach_option
from mechdesign.data._bounds import memory_limit_gib
from mechdesign.data._labels import Names
from mechdesign.model._answers import Answers, answers
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.synthesis._folders import SET, check_outputs, require_design
from mechdesign.synthesis._result import Design

_SEEDED = (
    "these draws come from a seed: whoever learns or guesses it can often tell the secret. They are a rehearsal; never "
    "publish them"
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--secret", metavar="SECRET", help="The true secret: its label, or its position from 0 on.")
@at_option
@click.option("-n", "--size", metavar="N", type=click.IntRange(min=0), help="How many draws.  [default: 1]")
@click.option("--seed", metavar="S", type=click.IntRange(min=0), help="Rehearse: the same draws every time.")
@click.option("--csv", "as_csv", is_flag=True, help="Print index, label and place of each draw as CSV, with a header.")
@click.option(
    "--input", "source", metavar="FILE", type=click.Path(path_type=Path),
    help="Draw for each line of a CSV file with columns latitude and longitude (lat, lon), or x and y.",
)  # fmt: skip
@click.option(
    "-o", "--output", "target", metavar="FILE", type=click.Path(path_type=Path),
    help="Where the CSV goes; else standard output.",
)  # fmt: skip
@click.option(
    "--outside", type=click.Choice(["refuse", "nearest"]), default="refuse", show_default=True,
    help="What becomes of places outside the secrets: an error, or the nearest of them, with a count.",
)  # fmt: skip
@reach_option
@layout_options(places=True)
@memory_option
@show_values_option
def sample(
    folder: Path,
    secret: str | None,
    at: tuple[float, float] | None,
    size: int | None,
    seed: int | None,
    as_csv: bool,
    source: Path | None,
    target: Path | None,
    outside: str,
    reach: Reach | None,
) -> None:
    """Draw answers, exactly with the certified probabilities: for a secret, for a place, or for a file of places.

    For a secret an answer is shown as its label; for a place as coordinates, latitude,longitude in degrees or x,y. A
    place becomes the cell it lies in; where the secrets are no grid, the nearest secret. Between anchors (kind =
    "continuous") it keeps its coordinates: one of the four anchors around it is drawn, with exact weights.

    Places outside are refused: beyond the box of a grid or in a cell that is no secret, beyond the rectangle of
    anchors, and else farther from the nearest secret than --reach. With --outside nearest they are counted, and
    answered for.

    A file of places becomes a CSV with row (from 0), observable_index, observable and the coordinates of the answer;
    nothing else of the file is copied, and the file itself is never overwritten.

    Each draw spends the privacy budget anew: k answers for one place, or for places in one cell, are k times the ε. The
    largest such k is said on the console, and stands in no file. The randomness is the operating system's unless a seed
    is given.
    """
    _check_usage(secret, at, source, reach)
    if folder.is_file():
        raise InputError(str(folder), "is a file", bound="a folder that `mechdesign design` wrote")
    check_outputs(target, inputs={"--input": source} | {f"DIR, {name}": folder / name for name in SET})
    if seed is not None:
        say_warning(_SEEDED, UserWarning, "", 0)
    rows = None
    draws = 1 if size is None else size
    require_design(folder)
    if secret is not None:
        channel = Channel.load(folder, memory_limit_gib())
        labels = channel.secrets or [str(index) for index in range(len(channel.numerators))]
        found, most = (
            answers(channel, None, channel.sample(Names.of(labels).find_in_file(secret, "--secret"), draws, seed)),
            draws,
        )
    else:
        design = Design.load(folder)
        problem, channel = design.problem, design.channel
        rng = None if seed is None else as_generator(seed)
        secrets, most = located(problem.secrets, at, source, outside == "nearest", draws, rng, reach)
        rows = np.repeat(np.arange(len(secrets) // max(draws, 1)), draws)
        found = answers(channel, problem.observables, channel.sample(secrets, rng=rng))
    if most > 1:
        # How often a place occurs in a file tells of the places: it goes to the console alone.
        also = "; keep this number to yourself, as you do the places" if source is not None else ""
        say_note(f"up to {most} answers for one place: {most} times the ε{also}")
    if as_csv or source is not None or target is not None:
        domain = problem.observables if rows is not None else None
        # On a screen labels are shown; a file holds them as they are.
        shown = found if target is not None else replace(found, label=np.array(list(map(escape, found.label.tolist()))))
        _write(_table(shown, domain, rows if source is not None else None), target)
        return
    for label, place in zip(found.label.tolist(), found.place if found.place is not None else found.label, strict=True):
        say(escape(label) if found.place is None else ",".join(map(repr, place.tolist())))


def _check_usage(secret: str | None, at: tuple[float, float] | None, source: Path | None, reach: Reach | None) -> None:
    """Refuse options that do not go with what is asked about: a secret, a place, or a file of places."""
    if [secret, at, source].count(None) != 2:
        raise click.UsageError("give one of --secret, --at and --input")
    if secret is not None and reach is not None:
        raise click.UsageError("--reach goes with --at and --input, not with --secret")
    asked = click.get_current_context()
    for name, flag in (("outside", "--outside"), ("latitude", "--latitude"), ("longitude", "--longitude")):
        where = "--input" if name != "outside" else "--at and --input"
        given = asked.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and (secret is not None or (name != "outside" and source is None)):
            raise click.UsageError(f"{flag} goes with {where}")


def _table(found: Answers, domain: Domain | None, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None) -> str:
    axes = () if domain is None or found.place is None else domain.axes
    head = [*(() if rows is None else ("row",)), "observable_index", "observable", *axes]
    columns = [found.index.tolist(), found.label.tolist()]
    if rows is not None:
        columns.insert(0, rows.tolist())
    if axes and found.place is not None:
        columns += found.place.T.tolist()
    return csv_text([head, *zip(*columns, strict=True)])


def _write(text: str, target: Path | None) -> None:
    if target is None:
        say(text, nl=False)
        return
    write_output(target, [text.encode()])
    say_note(f"{target} holds {text.count(chr(10)) - 1} answers")
