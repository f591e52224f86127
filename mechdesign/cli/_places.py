"""Places and weights of secrets in options and files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError, withholding_values
from mechdesign.cli._console import say_note
from mechdesign.data.labels import read_counts
from mechdesign.data.table import Table, read_table
from mechdesign.model._answers import draw_anchors
from mechdesign.model._domain import Domain
from mechdesign.model._locate import DEGREES, PLANE, Area, Outside, as_places, count_outside, locate
from mechdesign.model._prior import Prior


def _pair(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        first, second = (float("x" if "_" in part else part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not two numbers separated by a comma, such as 35.68,139.75") from None
    return first, second


MOST_ANSWERS = 1_000_000
"""The largest number of answers of one call, but for a file of more places with one answer each."""

at_option = click.option(
    "--at",
    metavar="LAT,LON",
    callback=_pair,
    help="The true place: latitude and longitude in degrees, or x,y on the plane.",
)


def find_option(domain: Domain | None, index: int) -> str:
    """Return the option of `mechdesign sample` that finds a secret: its coordinates if it has a place, or its index."""
    if domain is not None and any(domain.places(axes) is not None for axes in (DEGREES, PLANE)):
        known = domain.points if domain.degrees is None else domain.degrees
        # Between anchors, every digit counts.
        for digits in (*(f".{count}g" for count in range(6, 17) if domain.lattice is None), ""):
            place = [format(value, digits) for value in known[index].tolist()]
            # A rounded place may lie outside.
            with suppress(InputError):
                if domain.cell_of(*map(float, place)) == index:
                    return f"--at {','.join(place)}"
    return f"--secret {index}"


def check_size(draws: int, places: int = 1) -> None:
    """Raise `InputError` for more answers to each place than anyone can release: each spends the budget again."""
    if draws > (most := max(1, MOST_ANSWERS // places)):
        bound = f"at most {most:,}, since each answer spends the budget again"
        remedy = "for simulations, use Channel.sample in Python"
        raise InputError(
            "--size", f"is too large for {places:,} place{'s' * (places > 1)}", value=draws, bound=bound, remedy=remedy
        )


def locate_secrets(
    domain: Domain | None,
    at: tuple[float, float] | None,
    source: Path | None,
    nearest: bool = False,
    draws: int = 1,
) -> tuple[Integers, int]:
    """Return the secrets for one place, or for each place in a file, `draws` times each: int64 (k · draws,).

    The second returned value is the largest number of answers for one place. For this count, a place between anchors is
    a pair of coordinates, and any other place is its cell.

    Places outside the domain raise `InputError`, as in `Domain.cell_of`, or are replaced by the nearest secret and
    counted in a note. Between anchors, each draw selects an anchor independently. Places outside all anchors raise
    `InputError` or are moved to the border.
    """
    name = "--at" if source is None else str(source)
    try:
        if domain is None:
            raise InputError("domain", "has no places")
        axes = domain.axes
    except InputError as error:
        problem = "gives a place, but the secrets have no places in two dimensions"
        raise InputError(name, problem, remedy="give the secret with --secret") from error
    area = domain.area(axes)
    assert area is not None
    outside: Outside = "nearest" if nearest else "refuse"
    table = None
    try:
        table = None if source is None else read_table(source, axes)
        given = [np.array([value]) for value in at or ()] if table is None else [table.numbers(axis) for axis in axes]
        with nullcontext() if table is None else withholding_values():
            places = as_places(axes, *given)
            if domain.lattice is None:
                cells, missed = locate(area, places, outside)
            else:
                missed = count_outside(area, places, outside)
    except InputError as error:
        raise _rename_paths(error, name, table) from error
    if missed:
        which = "the place lies" if source is None else f"{missed} of {len(places[0])} places lie"
        say_note(f"{which} outside {_describe_outside(area)}")
    check_size(draws, max(1, len(places[0])))
    if domain.lattice is not None:
        shown = (np.repeat(places[0], draws), np.repeat(places[1], draws))
        return draw_anchors(domain.lattice, *shown, None)[0], draws * _largest_count(np.column_stack(places))
    return np.repeat(cells, draws), draws * _largest_count(cells)


def _describe_outside(area: Area) -> str:
    """Return a phrase that names an area, and the replacement of places outside it."""
    if area.corners is not None:
        return "the anchors: the nearest point of their border is taken"
    if area.borders is not None:
        cells = "" if area.members is None else " or in cells that are not secrets"
        return f"the grid{cells}: the nearest cell is taken"
    return "the reach of all secrets: the nearest secret is taken"


def _largest_count(given: NDArray[Any]) -> int:
    """Return the number of occurrences of the most frequent row of an array."""
    return int(np.unique(given, axis=0, return_counts=True)[1].max(initial=0))


def _rename_paths(error: InputError, name: str, table: Table | None) -> InputError:
    own = error.path.partition("[")[0]
    if own == "reach":
        problem = "cannot be matched, because all places of the domain coincide"
        return InputError(name, problem, remedy="take the nearest place with --outside nearest")
    if own not in ("place", "latitude", "longitude", "x", "y"):
        return error
    if table is None:
        path = "--at" if own == "place" else f"--at ({own})"
    else:
        path = table.where(int(error.path.partition("[")[2].rstrip("]") or 0))
    remedy = error.remedy.replace('outside="nearest"', "--outside nearest").replace("give a larger reach, ", "")
    return InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy)


def read_weights(path: Path, labels: Sequence[str]) -> Floats:
    """Return the probabilities of secrets from a file with the columns label and weight, or weight alone in order."""
    only = set(read_table(path).columns) == {"weight"}
    counts = read_counts(path, "weight", None if only else "label", labels)
    if not counts.any():
        raise InputError(str(path), "has no positive weight", bound="at least one weight > 0")
    with withholding_values():
        return Prior.from_counts(counts).probabilities
