"""Arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from mechdesign.base import _warnings as warned
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import renamed
from mechdesign.base._errors import BudgetWarning, CorrelationWarning, InputError, SmoothedChainWarning, showing_values
from mechdesign.base._warnings import collected
from mechdesign.cli._console import say_note, say_warning
from mechdesign.data._bounds import allowing_memory
from mechdesign.data._labels import read_matched
from mechdesign.data._layout import Layout, reading_as, said, withholding
from mechdesign.data._maps import read_places
from mechdesign.data._matrices import CHAIN_COUNTS, counts_of, dense, direction_of, read_chain_matrix
from mechdesign.data._text import number, plain_numbers, read_rows
from mechdesign.model._answers import drawn_anchors
from mechdesign.model._domain import Domain
from mechdesign.model._locate import Area, Outside, count_outside, given_places, locate
from mechdesign.model._markov import as_ends
from mechdesign.model._prior import Prior
from mechdesign.specification import examples

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction
    from mechdesign.specification._specification import Specification


_FIGURES = (".png", ".svg", ".pdf")


def loss_of(path: Path | None, name: str) -> LossFunction | None:
    """Return the loss function of the matrix in a file, or None for no file; errors name the argument and the file."""
    if path is None:
        return None
    from mechdesign.base._check import renamed
    from mechdesign.leakage._loss import LossFunction
    from mechdesign.model._markov import OpenChain

    place = f"{name} ({path})"
    matrix, word = read_chain_matrix(path)
    counted = counts_of(path)
    if (direction := direction_of(path)) not in ("", name):
        say_warning(
            f"{path} is the {direction} matrix of its chain, and is taken as the {name} one", UserWarning, "", 0
        )
    if counted is None and (path.parent / CHAIN_COUNTS).exists():
        say_note(f"{path.parent / CHAIN_COUNTS} belongs to other matrices: whether {path} was smoothed is not known")
    with withholding():
        if not word:
            if counted is None or not counted.smoothing:
                return LossFunction(matrix, path=place)
            with warnings_once():
                return LossFunction(counted.chain(dense(matrix, path)), path=place)
        try:
            chain = OpenChain(dense(matrix, path), as_ends(word))
        except InputError as error:
            raise renamed(error, place, "matrix") from error
        return LossFunction(chain, path=place)


class Mixed(NamedTuple):
    """Loss functions of both directions if the rows of all ends were mixtures of the others, and how to say it."""

    before: LossFunction | None
    after: LossFunction | None
    note: str

    @property
    def losses(self) -> tuple[LossFunction | None, LossFunction | None]:
        """Backward and forward."""
        return self.before, self.after


def by_counts(
    before: LossFunction | None, after: LossFunction | None
) -> tuple[LossFunction | None, LossFunction | None] | None:
    """Return the loss functions by the counts alone, or None where neither chain was smoothed."""
    if not any(loss is not None and loss.smoothed is not None for loss in (before, after)):
        return None
    return None if before is None else before.unsmoothed, None if after is None else after.unsmoothed


def mixed(before: LossFunction | None, after: LossFunction | None) -> Mixed | None:
    """Return the loss functions under "mixture" beside those asked for, or None where they are the same."""
    found = [None if loss is None else loss.under_mixture() for loss in (before, after)]
    if all(loss is other for loss, other in zip((before, after), found, strict=True)):
        return None
    counts = [
        f"{len(loss.end_states)} of {loss.n} states of the {name} matrix"
        for name, loss, other in (("backward", before, found[0]), ("forward", after, found[1]))
        if loss is not None and loss is not other
    ]
    stopped = [loss for loss in (before, after) if loss is not None and loss.identity]
    note = (
        f"ends, whose rows are unknown or have a 1 on the diagonal: {' and '.join(counts)}. The values under mixture "
        "hold if each such row is any mixture of the other rows"
    )
    if stopped and all(loss.stopped_by_ends for loss in stopped):
        note += ". No budget holds without end, because of ends alone"
    return Mixed(found[0], found[1], note)


@contextmanager
def warnings_once() -> Iterator[None]:
    """Show each warning about budgets and correlations once, however often it is given."""
    with collected(BudgetWarning, CorrelationWarning, SmoothedChainWarning) as caught:
        yield
    for message, kind in dict.fromkeys((str(warning), type(warning)) for warning in caught):
        say_warning(message, kind, "", 0)


@contextmanager
def silenced() -> Iterator[None]:
    """Say nothing of budgets and correlations: it was said of what was asked for."""
    with warned.silenced(BudgetWarning, CorrelationWarning):
        yield


def check_figure(path: Path | None, target: Path | None = None) -> None:
    """Raise `InputError` for a figure in a format that cannot be written, or in the file `target` of a table."""
    if path is not None and target is not None and path.absolute() == target.absolute():
        raise InputError("--plot", "is the file of --output", value=str(path), bound="another file")
    if path is not None and path.suffix.lower() not in _FIGURES:
        raise InputError("--plot", "has no known ending", value=str(path), bound=f"one of {', '.join(_FIGURES)}")


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    r"""Name options in errors about what they were passed as.

    Args:
        options: For a pattern of a whole path the name that it has on the command line; what ``\1`` stands for may be
            a part of the path.

    >>> with naming_options({"alpha": "--alpha"}):
    ...     raise InputError("alpha", "leaves no budget")
    Traceback (most recent call last):
    mechdesign.errors.InputError: --alpha: leaves no budget
    """
    try:
        yield
    except InputError as error:
        for pattern, name in options.items():
            if (found := re.fullmatch(pattern, error.path)) is not None:
                path = found.expand(name)
                raise type(error)(
                    path, error.problem, value=error.value, bound=error.bound, remedy=error.remedy
                ) from error
        raise


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


@dataclass(frozen=True)
class Reach:
    """A distance with its unit, which may be left out."""

    length: float
    unit: str = ""

    def within(self, domain: Domain) -> float:
        """Return the length in the unit of a domain; raise `InputError` for one in another unit."""
        if self.unit and self.unit != domain.unit:
            bound = f"in {domain.unit}, the unit of the places" if domain.unit else "a number: the places have no unit"
            raise InputError("--reach", "is in another unit", value=f"{self.length:g}{self.unit}", bound=bound)
        return self.length


_REACH = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(\D*?)\s*")


def _reach(_: click.Context, __: click.Parameter, text: str | None) -> Reach | None:
    if text is None:
        return None
    found = _REACH.fullmatch(text)
    try:
        if found is None or not np.isfinite(length := float(found[1])):
            raise ValueError
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a distance such as 2km, or 2 in the unit of the places") from None
    return Reach(length, found[2])


reach_option = click.option(
    "--reach",
    metavar="DISTANCE",
    callback=_reach,
    help="How far from the nearest secret a place may be where there is no grid, such as 2km.  [default: the largest "
    "distance between nearest neighbours]",
)
"""The option ``--reach``: a `Reach`, or None."""


def located(
    domain: Domain | None,
    at: tuple[float, float] | None,
    source: Path | None,
    nearest: bool = False,
    draws: int = 1,
    rng: np.random.Generator | None = None,
    reach: Reach | None = None,
) -> tuple[Integers, int]:
    """Return the secret to answer for at a place, or each place in a file, once for each draw: int64 (k · draws,).

    The second value says how many answers at most are for one place: a cell, or between anchors equal coordinates.

    Places outside, as `Domain.cell_of` has it, are refused, or take the nearest secret and are counted in a note.
    Between anchors each draw has an anchor of its own, and places outside are refused or projected to the border.
    """
    name = "--at" if source is None else str(source)
    try:
        if domain is None:
            raise InputError("domain", "has no places")
        axes = domain.axes
    except InputError as error:
        problem = "gives a place, and the secrets have none in two dimensions"
        raise InputError(name, problem, remedy="name the secret with --secret") from error
    area = domain.area(axes)
    assert area is not None
    outside: Outside = "nearest" if nearest else "refuse"
    try:
        length = None if reach is None else reach.within(domain)
        if source is not None:
            places = read_places(source, axes)
            if {"observable_index", "observable"} <= set(next((row for _, row in read_rows(source)), [])):
                say_warning(f"{source} holds answers of `mechdesign sample`, and no true places", UserWarning, "", 0)
        else:
            places = given_places(axes, *(np.array([value]) for value in at or ()))
        with nullcontext() if source is None else withholding():
            if domain.lattice is None:
                cells, missed = locate(area, places, outside, length)
            else:
                area.check_reach(length)
                missed = count_outside(area, places, outside)
    except InputError as error:
        raise _in_words_of_the_command(error, name) from error
    if missed:
        which = "the place lies" if source is None else f"{missed} of {len(places[0])} places lie"
        say_note(f"{which} outside {_described(area)}")
    if domain.lattice is not None:
        shown = (np.repeat(places[0], draws), np.repeat(places[1], draws))
        return drawn_anchors(domain.lattice, *shown, rng)[0], draws * _most(np.column_stack(places))
    return np.repeat(cells, draws), draws * _most(cells)


def _described(area: Area) -> str:
    """Say what places are outside of, and what becomes of them."""
    if area.corners is not None:
        return "the anchors: projected to the border"
    if area.borders is not None:
        cells = "" if area.members is None else " or in cells that are no secrets"
        return f"the grid{cells}, and the nearest cell is taken"
    return "the reach of all secrets, and the nearest secret is taken"


def _most(given: NDArray[Any]) -> int:
    """Return how often the row that stands most often in an array stands there."""
    return int(np.unique(given, axis=0, return_counts=True)[1].max(initial=0))


def _in_words_of_the_command(error: InputError, name: str) -> InputError:
    own = error.path.partition("[")[0]
    if own == "reach":
        return renamed(error, "--reach", "reach")
    if own not in ("place", "latitude", "longitude", "x", "y"):
        return error
    if name == "--at":
        path = name if own == "place" else f"{name} ({own})"
    else:
        path = f"{name}, row {int(error.path.partition('[')[2].rstrip(']') or 0) + 1}"
    remedy = error.remedy.replace('outside="nearest"', "--outside nearest").replace("larger reach", "larger --reach")
    return InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy)


_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def example_option(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--example`` of a command."""
    names = ", ".join(example.name for example in examples.EXAMPLES if command in example.commands)
    return click.option("--example", metavar="NAME", help=f"Run an embedded example instead: {names}.")


def show_values_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--show-values`` to a command that reads data."""

    def show(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.with_resource(showing_values())

    return click.option(
        "--show-values",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show in errors what stands in a cell of a file, not its form only.",
    )(command)


def memory_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--memory`` to a command that reads tables, matrices or designs."""

    def allow(ctx: click.Context, _: click.Parameter, memory: float | None) -> None:
        if memory is not None:
            try:
                ctx.with_resource(allowing_memory(memory))
            except InputError as error:
                raise renamed(error, "--memory", "memory") from error

    return click.option(
        "--memory",
        metavar="GIB",
        type=float,
        is_eager=True,
        expose_value=False,
        callback=allow,
        help="What a packed file, a line or a design may take; else 256 MiB or 100 times the file, 16 MiB, 2 GiB.",
    )(command)


def layout_options(*, matrices: bool = False, places: bool = False) -> _Decorator:
    """Return the options that say how the files on the command line are written, also `matrices` or `places`."""

    def says(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def say(ctx: click.Context, _: click.Parameter, value: Any) -> None:
            if value is not None:
                given = {each.name: getattr(said(), each.name) for each in fields(Layout)}
                try:
                    ctx.with_resource(reading_as(**(given | {name: value})))
                except InputError as error:
                    raise renamed(error, f"--{error.path}", error.path) from error

        return say

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for declared, described in _LAYOUT_OPTIONS.items():
            name = declared.removeprefix("--").partition("/")[0]
            if (name in ("header", "numbered") and not matrices) or (name.endswith("itude") and not places):
                continue
            kind = {"default": None} if "/" in declared else {"metavar": described[0]}
            command = click.option(
                declared, is_eager=True, expose_value=False, callback=says(name), help=described[1], **kind
            )(command)
        return command

    return add


_LAYOUT_OPTIONS = {
    "--longitude": ("COLUMN", "The column with the longitude, if it is called otherwise."),
    "--latitude": ("COLUMN", "The column with the latitude, if it is called otherwise."),
    "--numbered/--no-numbered": ("", "Whether the first column of a matrix names or numbers its rows; else asked."),
    "--header/--no-header": ("", "Whether the first line of a matrix names or numbers its columns; else asked."),
    "--encoding": ("NAME", "How the text is encoded, such as windows-1252; else UTF-8, or UTF-16 with its mark."),
    "--decimal": ("SIGN", 'What stands before decimals, "." or ","; else recognised.'),
    "--delimiter": ("CHARACTER", "Between columns; else recognised."),
}


def time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the times of a table are, how they are written, and what may be left out."""
    for option in (
        click.option(
            "--missing",
            metavar="SHARE",
            type=float,
            help="How many of the rows may be left out, such as 0.2, as they cannot be read.  [default: 0.05]",
        ),
        click.option(
            "--time-zone",
            metavar="ZONE",
            help="The zone of times that say none, such as Europe/Zurich or +02:00.  [default: UTC]",
        ),
        click.option(
            "--time-format", metavar="FORM", help='How times are written: a pattern such as "%Y%m%d", unix, or unix-ms.'
        ),
        click.option("--date", metavar="COLUMN", help="The column with the date, if that with the time lacks it."),
        click.option("--time", "time_", metavar="COLUMN", help="The column with the time, if it is not recognised."),
    ):
        command = option(command)
    return command


def with_release(given: Specification, **changed: object) -> Specification:
    """Return a specification with other values of keys of ``[release]``; those that are None are kept."""
    asked = {key: value for key, value in changed.items() if value is not None}
    if not asked:
        return given
    return replace(given, document=structs.replace(given.document, release={**given.document.release, **asked}))


def example_for(name: str, command: str) -> examples.Example:
    """Return an example by its name; refuse one that the command cannot run."""
    found = examples.find(name)
    if command not in found.commands:
        able = ", ".join(example.name for example in examples.EXAMPLES if command in example.commands)
        raise click.UsageError(f"--example {name} is for `mechdesign {found.commands[0]}`; here run {able}")
    return found


def specified(path: Path | None, example: str | None, command: str, default: str | None = None) -> Specification:
    """Return the specification in a file, or the example of that name, or, where neither is given, the default one."""
    # Imported late: wrong usage is refused at once.
    from mechdesign.specification._specification import parse, read_spec

    if path is not None and example is not None:
        raise click.UsageError("give SPEC.toml or --example NAME, not both")
    if path is not None:
        return read_spec(path)
    if example is None and default is None:
        raise click.UsageError("give SPEC.toml, or --example NAME; `mechdesign examples` lists them")
    return parse(example_for(example or default or "", command).text)


label_option = click.option(
    "--label",
    metavar="COLUMN",
    help='Column of FILE.csv with the labels of the secrets, by which lines are matched; "" takes them in order. '
    "Unless it is given such a column is found.",
)
"""The option ``--label``: a column, "" for none, or None."""


def read_weights(path: Path, column: str, label: str | None, labels: Sequence[str]) -> Floats:
    """Return the probabilities that a file gives the secrets with these `labels`, and say how rows were matched."""
    with withholding():
        found = read_matched(path, [column], labels, label)
        texts = zip(found.rows, plain_numbers(found.columns[column], path, column), strict=True)
        weights = np.array([number(text, f"{path}, row {row}, column {column}") for row, text in texts])
        if len(weights) != len(labels):
            raise InputError(str(path), "has another number of lines", value=len(weights), bound=str(len(labels)))
        say_note(found.note)
        return Prior.from_counts(weights).probabilities
