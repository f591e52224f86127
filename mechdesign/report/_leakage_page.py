"""The page of the leakage of repeated releases, and its figure, as Figure 3 of Cao et al. (2019)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_budgets
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import backward as backward_leakage
from mechdesign.leakage._recursion import forward as forward_leakage
from mechdesign.leakage._recursion import temporal
from mechdesign.model._domain import Domain
from mechdesign.model._words import at_most, short
from mechdesign.report import _maps as maps
from mechdesign.report._page import Picture, Prose, Section, Table, first_rows, page
from mechdesign.report._style import MARKERS, SERIES, drawn, report_style
from mechdesign.report._verdicts import Verdict, judge_leakage, limit_leakage, limit_pairs, write_nats, write_odds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Largest = tuple[float, tuple[str, str]]
"""A bound, and the names of the pair that has it."""

_EVERY_PAIR = "Each budget bounds every pair of states, and each release draws its own noise."
_OTHER_WAY = "In Python, md.leakage.largest_scale finds the ε that keeps such bounds below a limit."
_THESE_PAIRS = "Each release meets the requirements of the specification, and draws its own noise."
_HEIGHT = 3.0
# Names of the series of leakage, in the order of their colours.
_SERIES_OF_LEAKAGE = {
    "backward": "backward (BPL)",
    "forward": "forward (FPL)",
    "temporal": "temporal (TPL)",
    "epsilon": "budget ε",
}


@dataclass(frozen=True)
class Told:
    """Bounds (n, n) of all pairs of states after a number of releases, which may be infinite, and the largest by name.

    The names are "neighbours", "per_unit" and "all_pairs".
    """

    releases: float
    bounds: Floats
    largest: Mapping[str, Largest]


@report_style()
def html(
    columns: Mapping[str, Floats],
    facts: Mapping[str, float],
    backward: LossFunction | None,
    forward: LossFunction | None,
) -> str:
    """Return the page of releases; `columns` are their leakages and budgets by name, and `facts` leakages by name."""
    columns = {name: columns[name] for name in _SERIES_OF_LEAKAGE}
    rows = [(str(step), *map(write_nats, each)) for step, each in enumerate(zip(*columns.values(), strict=True))]
    said = (
        "Backward leakage is that of a release with all earlier ones, forward leakage with all later ones, temporal "
        "leakage with both."
    )
    numbers = first_rows(rows, ("Release", *_SERIES_OF_LEAKAGE.values()))
    picture = Picture("leakage", "Leakage of each release", said, _leakage_figure(columns), numbers)
    largest = float(columns["temporal"].max())
    odds = "Factor by which all releases together may change the odds between two states at one release"
    table = [(name.replace("_", " ").capitalize(), write_nats(value)) for name, value in facts.items()]
    sections = [
        Section("Leakage over time", [picture]),
        Section("Largest leakages, in nats", [Table([*table, (odds, write_odds(largest))])]),
        Section("What was assumed", [Prose([_EVERY_PAIR, *_assumed(backward, forward)], "list")]),
        Section("What this does not promise", [Prose([*limit_leakage()], "list")]),
    ]
    return page("Leakage of repeated releases", judge_leakage(largest), sections)


@report_style()
def html_of_pairs(
    said: Verdict,
    title: str,
    states: tuple[Domain, Sequence[str]],
    told: Sequence[Told],
    unit: str,
    future: str,
    known: Sequence[LossFunction | None],
) -> str:
    """Return the page of releases that bound pairs of states.

    Args:
        said: The verdict.
        title: The title of the specification.
        states: The states with their names.
        told: The bounds after several numbers of releases.
        unit: The unit of distance.
        future: A sentence on the bounds for any number of releases.
        known: The backward and the forward loss function.

    Returns:
        The page.
    """
    domain, names = states
    middle = int(np.argmin(((domain.points - domain.points.mean(axis=0)) ** 2).sum(axis=1)))
    rows = np.array([np.maximum(each.bounds[middle], each.bounds[:, middle]) for each in told])
    heads = ["any number" if each.releases == math.inf else f"{each.releases:.0f}" for each in told]
    order = np.lexsort(rows[::-1]).tolist()
    numbers = first_rows(
        [(names[state], *map(at_most, rows[:, state].tolist())) for state in order],
        ("State", *(f"Releases: {head}" for head in heads)),
    )
    sentence = f"Bounds, in nats, of the change of the odds between {names[middle]}, which is marked, and each state."
    if not np.isfinite(rows).all():
        sentence += " The largest value that is drawn also stands for no bound."
    figure = _pairs_figure(domain, rows, [f"releases: {head}" for head in heads], middle)
    picture = Picture("pairs", f"How well each state can be told from {names[middle]}", sentence, figure, numbers)
    columns = {"neighbours": "Neighbours", "per_unit": f"Per {unit or 'unit of distance'}", "all_pairs": "Any two"}
    kinds = [name for name in columns if name in told[0].largest]
    table = Table(
        [
            (head, *(text for name in kinds for text in _write(each.largest[name])))
            for head, each in zip(heads, told, strict=True)
        ],
        ("Releases", *(text for name in kinds for text in (columns[name], "Pair"))),
    )
    sections = [
        Section("What somebody learns", [picture]),
        Section("Largest bounds, in nats", [table, Prose([f"Any number of releases: {future}.", _OTHER_WAY])]),
        Section("What was assumed", [Prose([_THESE_PAIRS, *_assumed(*known)], "list")]),
        Section("What this does not promise", [Prose([*limit_pairs()], "list")]),
    ]
    return page(f"Repeated releases: {title}", said, sections)


def _write(largest: Largest) -> tuple[str, str]:
    value, pair = largest
    return write_nats(value), " and ".join(pair)


def _assumed(backward: LossFunction | None, forward: LossFunction | None) -> Iterator[str]:
    for name, loss in (("Pr(state before | state now)", backward), ("Pr(next state | state now)", forward)):
        if loss is None:
            yield f"The adversary does not know {name}."
            continue
        count = len(loss.unknown)
        rows = f"; {count} of its rows are unknown, and may be any row" * bool(count)
        yield f"The adversary knows {name}, a matrix of {loss.n} states{rows}."


def leakage(
    epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None, axes: Axes | None = None
) -> Figure:
    """Show backward, forward and temporal leakage of every release, and its budget (Figure 3).

    Args:
        epsilons: Budget of each release, in nats, shape (T,).
        backward: Backward correlation: a transition matrix, a `LossFunction`, or None without correlation.
        forward: Forward correlation: a transition matrix, a `LossFunction`, or None without correlation.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Example:
        >>> leakage([0.1] * 5, [[0.8, 0.2], [0.2, 0.8]]).axes[0].get_ylabel()
        'leakage in nats'
    """
    budgets = as_budgets(epsilons)
    together = temporal(budgets, backward, forward)
    values = (backward_leakage(budgets, backward), forward_leakage(budgets, forward), together, budgets)
    return _leakage_figure(dict(zip(_SERIES_OF_LEAKAGE, values, strict=True)), axes)


def _leakage_figure(columns: Mapping[str, Floats], axes: Axes | None = None) -> Figure:
    """Return the figure of leakages and budgets (T,) by the keys of `_SERIES_OF_LEAKAGE`."""
    series = {said: columns[name] for name, said in _SERIES_OF_LEAKAGE.items()}
    return drawn(axes, _HEIGHT, draw_series, series, "release", "leakage in nats")


def draw_series(axes: Axes, series: Mapping[str, Sequence[float] | Floats], x: str, y: str) -> None:
    """Draw named series over releases or steps, from zero; infinite values are left out."""
    top = 0.0
    for number, (name, values) in enumerate(series.items()):
        shown = np.asarray(values, dtype=np.float64)
        top = max(top, float(np.max(shown, where=np.isfinite(shown), initial=0.0)))
        # Draw markers at up to 16 values, including the first and the last value.
        marked = np.unique(np.linspace(0, len(shown) - 1, min(len(shown), 16)).round().astype(int)).tolist()
        style: dict[str, Any] = {"color": SERIES[number], "marker": MARKERS[number], "markersize": 4, "linewidth": 1.4}
        axes.plot(np.where(np.isfinite(shown), shown, np.nan), label=name, markevery=marked, **style)
    axes.set_ylim(0, 1.08 * top or 1.0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(axis="y")


def _pairs_figure(domain: Domain, rows: Floats, titles: Sequence[str], middle: int) -> Figure:
    """Return maps of bounds (k, n) between a state and every other one; infinite bounds have the largest colour."""
    largest = float(np.max(rows, where=np.isfinite(rows), initial=0.0))
    shown = np.minimum(rows, largest or 1.0)

    def draw(*panels: Axes) -> None:
        maps.draw_panels(panels, domain, shown, titles, [middle] * len(rows), "bound in nats", short)

    height, shared = maps.height_of_panels(domain, len(rows)), not maps.is_map(domain)
    return drawn(None, height, draw, count=len(rows), shared=shared)
