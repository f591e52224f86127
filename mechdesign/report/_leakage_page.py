"""The page of the leakage of repeated releases, and its figure, as Figure 3 of Cao et al. (2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from mechdesign.model._words import short
from mechdesign.report._page import Picture, Prose, Section, Table, first_rows, page
from mechdesign.report._style import MARKERS, SERIES, drawn, report_style
from mechdesign.report._verdicts import judge_leakage, limit_leakage, write_nats, write_odds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.0
# Names of the series of leakage, in the order of their colours.
_SERIES_OF_LEAKAGE = {
    "backward": "backward (BPL)",
    "forward": "forward (FPL)",
    "temporal": "temporal (TPL)",
    "epsilon": "budget ε",
}


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
        Section("What was assumed", [Prose([*_assumed(backward, forward)], "list")]),
        Section("What this does not promise", [Prose([*limit_leakage()], "list")]),
    ]
    return page("Leakage of repeated releases", judge_leakage(largest), sections)


def _assumed(backward: LossFunction | None, forward: LossFunction | None) -> Iterator[str]:
    yield "Each budget bounds every pair of states, and each release draws its own noise."
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
