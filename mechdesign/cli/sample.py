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
from mechdesign.cli._console import say, say_note, say_warning
from mechdesign.cli._places import Reach, at_option, locate_secrets, reach_option
from mechdesign.data.labels import Names
from mechdesign.model._answers import Answers, answers
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.synthesis._folders import SET, check_outputs, require_design
from mechdesign.synthesis._result import Design

_SEEDED = (
    "these draws come from a seed: anyone who learns or guesses it can often infer the secret. They are a rehearsal; "
    "never publish them"
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--secret", metavar="SECRET", help="The true secret: its label, or its position counted from 0.")
@at_option
@click.option("-n", "--size", metavar="N", type=click.IntRange(min=0), help="Number of draws.  [default: 1]")
@click.option("--seed", metavar="S", type=click.IntRange(min=0), help="Rehearse: the same draws every time.")
@click.option("--csv", "as_csv", is_flag=True, help="Print index, label and place of each draw as CSV, with a header.")
@click.option(
    "--input", "source", metavar="FILE", type=click.Path(path_type=Path),
    help="Draw for each line of a CSV file with columns latitude and longitude, or x and y.",
)  # fmt: skip
@click.option(
    "-o", "--output", "target", metavar="FILE", type=click.Path(path_type=Path),
    help="File for the CSV; default: standard output.",
)  # fmt: skip
@click.option(
    "--outside", type=click.Choice(["refuse", "nearest"]), default="refuse", show_default=True,
    help="Places outside the secrets raise an error, or are replaced by the nearest secret and counted.",
)  # fmt: skip
@reach_option
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
    """Draw answers with exactly the certified probabilities: for a secret, for a place, or for a file of places.

    The answer for a secret is shown as a label; for a place as coordinates, latitude,longitude in degrees or x,y. A
    place is mapped to its cell, or to the nearest secret if the secrets are points. Between anchors (kind =
    "continuous") a place keeps its coordinates: dithering draws one of the four anchors around it, with exact weights.

    A place outside the box of a grid, outside the rectangle of anchors, or in a cell without a secret raises an error.
    If the secrets are points, a place must be within --reach of the nearest secret. With --outside nearest, such places
    are counted and replaced by the nearest secret instead.

    A file of places becomes a CSV with row (from 0), observable_index, observable and the coordinates of the answer.
    Other columns are not copied, and the file itself is never overwritten.

    Each draw spends the privacy budget again: k answers for one place, or for places in one cell, spend k times the ε.
    The largest number of answers for one place is shown on the console, but not written to a file. The randomness is
    the operating system's unless a seed is given.
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
        channel = Channel.load(folder)
        labels = channel.secrets or [str(index) for index in range(len(channel.numerators))]
        found, most = (
            answers(channel, None, channel.sample(Names.of(labels).find_text(secret, "--secret"), draws, seed)),
            draws,
        )
    else:
        design = Design.load(folder)
        problem, channel = design.problem, design.channel
        rng = None if seed is None else as_generator(seed)
        secrets, most = locate_secrets(problem.secrets, at, source, outside == "nearest", draws, rng, reach)
        rows = np.repeat(np.arange(len(secrets) // max(draws, 1)), draws)
        found = answers(channel, problem.observables, channel.sample(secrets, rng=rng))
    if most > 1:
        # The frequency of places in a file is private: show it on the console only.
        also = "; keep this number as private as the places" if source is not None else ""
        say_note(f"up to {most} answers for one place: {most} times the ε{also}")
    if as_csv or source is not None or target is not None:
        domain = problem.observables if rows is not None else None
        # Labels are escaped on a screen, but not in a file.
        shown = found if target is not None else replace(found, label=np.array(list(map(escape, found.label.tolist()))))
        _write(_table(shown, domain, rows if source is not None else None), target)
        return
    for label, place in zip(found.label.tolist(), found.place if found.place is not None else found.label, strict=True):
        say(escape(label) if found.place is None else ",".join(map(repr, place.tolist())))


def _check_usage(secret: str | None, at: tuple[float, float] | None, source: Path | None, reach: Reach | None) -> None:
    """Raise `click.UsageError` for options that do not apply to the input: a secret, a place, or a file of places."""
    if [secret, at, source].count(None) != 2:
        raise click.UsageError("give one of --secret, --at and --input")
    if secret is not None and reach is not None:
        raise click.UsageError("--reach goes with --at and --input, not with --secret")
    if (
        secret is not None
        and click.get_current_context().get_parameter_source("outside") is ParameterSource.COMMANDLINE
    ):
        raise click.UsageError("--outside goes with --at and --input")


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
    say_note(f"{target} contains {text.count(chr(10)) - 1} answers")
