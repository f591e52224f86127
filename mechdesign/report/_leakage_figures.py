"""The figure of the leakage of releases, as in Figure 3 of Cao et al. (2019), and series over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_budgets
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._recursion import backward as backward_leakage
from mechdesign.leakage._recursion import forward as forward_leakage
from mechdesign.leakage._recursion import temporal
from mechdesign.model._words import short
from mechdesign.report._style import MARKERS, SERIES, drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.0
SERIES_OF_LEAKAGE = {
    "backward": "backward (BPL)",
    "forward": "forward (FPL)",
    "temporal": "temporal (TPL)",
    "epsilon": "budget ε",
}
"""Names of the series of leakage, in the order of their colours."""


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
    return leakage_figure(dict(zip(SERIES_OF_LEAKAGE, values, strict=True)), axes)


def leakage_figure(columns: Mapping[str, Floats], axes: Axes | None = None) -> Figure:
    """Return the figure of leakages and budgets (T,) by the keys of `SERIES_OF_LEAKAGE`."""
    series = {said: columns[name] for name, said in SERIES_OF_LEAKAGE.items()}
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
