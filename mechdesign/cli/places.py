"""Places on the command line, and in files that it names."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from mechdesign.cli.console import say_note
from mechdesign.data.forms import withholding
from mechdesign.data.places import read_places
from mechdesign.errors import InputError
from mechdesign.model.domain import Domain
from mechdesign.model.drawing import drawn_anchors
from mechdesign.model.places import given_places, locate
from mechdesign.validation import Integers

__all__ = ["at_option", "located"]


def _pair(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        first, second = (float("x" if "_" in part else part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not two numbers with a comma between, such as 35.68,139.75") from None
    return first, second


at_option = click.option(
    "--at",
    metavar="LAT,LON",
    callback=_pair,
    help="The true place: latitude and longitude in degrees, or x,y on the plane.",
)
"""The option ``--at``: two numbers, or None."""


def located(
    domain: Domain | None,
    at: tuple[float, float] | None,
    source: Path | None,
    nearest: bool = False,
    draws: int = 1,
    rng: np.random.Generator | None = None,
) -> tuple[Integers, int]:
    """Return the secret to answer for at a place, or each place in a file, once for each draw: int64 (k · draws,).

    The second value says how many answers at most are for one place: a cell, or between anchors equal coordinates.

    Places outside a grid are refused, or take the nearest cell and are counted in a note. Between anchors each draw has
    an anchor of its own, and places outside are projected.
    """
    name = "--at" if source is None else str(source)
    try:
        if domain is None:
            raise InputError("domain", "has no places")
        axes = domain.axes
    except InputError as error:
        problem = "gives a place, and the secrets have none in two dimensions"
        raise InputError(name, problem, remedy="name the secret with --secret") from error
    known = domain.places(axes)
    assert known is not None
    try:
        if source is not None:
            places = read_places(source, axes)
        else:
            places = given_places(axes, *(np.array([value]) for value in at or ()))
        if domain.lattice is not None:
            shown = (np.repeat(places[0], draws), np.repeat(places[1], draws))
            anchors, missed = drawn_anchors(domain.lattice, *shown, rng)
            if missed:
                say_note(
                    f"{missed // draws} of {len(places[0])} places lie outside the anchors: projected to the border"
                )
            return anchors, draws * _most(np.column_stack(places))
        with nullcontext() if source is None else withholding():
            cells, missed = locate(known, domain.borders(axes), axes, places, "nearest" if nearest else "refuse")
    except InputError as error:
        raise _in_words_of_the_command(error, name) from error
    if missed:
        which = "the place lies" if source is None else f"{missed} of {len(cells)} places lie"
        say_note(f"{which} outside the grid, and the nearest cell is taken")
    return np.repeat(cells, draws), draws * _most(cells)


def _most(given: NDArray[Any]) -> int:
    """Return how often the row that stands most often in an array stands there."""
    return int(np.unique(given, axis=0, return_counts=True)[1].max(initial=0))


def _in_words_of_the_command(error: InputError, name: str) -> InputError:
    own = error.path.partition("[")[0]
    if own not in ("place", "latitude", "longitude", "x", "y"):
        return error
    if name == "--at":
        path = name if own == "place" else f"{name} ({own})"
    else:
        path = f"{name}, row {int(error.path.partition('[')[2].rstrip(']') or 0) + 1}"
    remedy = error.remedy.replace('outside="nearest"', "--outside nearest")
    return InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy)
