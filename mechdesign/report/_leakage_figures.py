"""Figures of leakage: releases, a loss function, and budgets, as in Figures 3, 4 and 8 of Cao et al. (2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import as_budgets
from mechdesign.leakage._budgets import allocate_budget, constant_budget
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import backward as backward_leakage
from mechdesign.leakage._recursion import forward as forward_leakage
from mechdesign.leakage._recursion import temporal
from mechdesign.leakage.cao2019 import algorithm2
from mechdesign.model._words import short
from mechdesign.report._style import (
    INK,
    MARKERS,
    MUTED,
    RULE,
    SERIES,
    WIDTH,
    drawing,
    figure_of,
    in_report_style,
    new_figure,
    put_legend,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.0


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
    series = (
        ("backward (BPL)", backward_leakage(budgets, backward)),
        ("forward (FPL)", forward_leakage(budgets, forward)),
        ("temporal (TPL)", temporal(budgets, backward, forward)),
        ("budget ε", budgets),
    )
    with drawing(axes, _HEIGHT) as drawn:
        draw_series(drawn, series, "release", "leakage in nats")
    return figure_of(drawn)


def leakage_loss(P: Any, largest: float = 5.0, axes: Axes | None = None) -> Figure:
    """Show the loss function L(α), the ends of its pieces, and the functions of pairs of rows (Figure 4).

    Functions of pairs are shown for a matrix of up to 6 states without unknown rows.

    Args:
        P: A transition matrix, shape (n, n), or a `LossFunction`.
        largest: Largest leakage α before the step, in nats.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Example:
        >>> leakage_loss([[0.8, 0.2], [0.2, 0.8]]).axes[0].get_ylabel()
        'leakage L(α) after the step, in nats'
    """
    function = P if isinstance(P, LossFunction) else LossFunction(P)
    alpha = np.linspace(0.0, largest, 400)
    with drawing(axes, _HEIGHT) as drawn:
        if not isinstance(P, LossFunction) and function.n <= 6 and not len(function.unknown):
            G, D, _, until = algorithm2(P)
            A = np.expm1(alpha)[:, None]
            for index, (gains, sums, ends) in enumerate(zip(G, D, until, strict=True)):
                if (ends >= 0).any():
                    each = np.log1p(gains * A / (sums * A + 1.0))[:, ends >= 0].max(axis=1)
                    drawn.plot(alpha, each, color=RULE, linewidth=0.8, label=None if index else "pairs of rows")
        drawn.plot(alpha, function(alpha), color=SERIES[0], linewidth=2.0, label="L(α)")
        start = function.pieces.start
        inner = start[(start > 0) & (start < largest)]
        if inner.size:
            drawn.plot(inner, function(inner), "o", color=SERIES[1], markersize=5, label="a new piece starts")
        drawn.plot(alpha, alpha, ":", color=INK, linewidth=1.0, label="α: the strongest correlation")
        _label(drawn, "leakage α before the step, in nats", "leakage L(α) after the step, in nats")
        drawn.set_ylim(bottom=0.0)
    return figure_of(drawn)


@in_report_style
def leakage_allocation(
    alpha: float,
    steps: int,
    backward: Correlation = None,
    forward: Correlation = None,
) -> Figure:
    """Show ways to divide a leakage of α over the releases, and the leakage of each way (Figure 8).

    Algorithm 7 uses the same budget for all releases; Algorithm 8 uses more for the first and the last release. The
    axis of budgets is logarithmic, since budgets at the ends are many times larger than budgets in the middle.

    Args:
        alpha: Target of the temporal leakage, in nats.
        steps: Number of releases T.
        backward: Backward correlation: a transition matrix, a `LossFunction`, or None without correlation.
        forward: Forward correlation: a transition matrix, a `LossFunction`, or None without correlation.

    Returns:
        The figure, with two panels.

    Example:
        >>> P = [[0.8, 0.2], [0.2, 0.8]]
        >>> leakage_allocation(1.0, 5, P, P).axes[1].get_ylabel()
        'temporal leakage in nats'
    """
    budgets = (
        ("the same ε for all (Algorithm 7)", np.full(steps, constant_budget(alpha, backward, forward))),
        ("more at both ends (Algorithm 8)", allocate_budget(alpha, steps, backward, forward)),
    )
    figure = new_figure(2 * WIDTH, _HEIGHT)
    left, right = figure.subplots(1, 2)
    draw_series(left, budgets, "release", "budget ε in nats (log scale)")
    left.set_yscale("log", nonpositive="mask")
    left.autoscale(axis="y")
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = left.get_ylim()
    # Below two decades, 2, 3, 4 and 6 times a power of ten are labelled, too.
    between = FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "2346" else "")
    left.yaxis.set_minor_formatter(between if high < 100 * low else NullFormatter())
    leaked = [(name, temporal(series, backward, forward)) for name, series in budgets]
    draw_series(right, leaked, "release", "temporal leakage in nats")
    right.axhline(alpha, color=MUTED, linestyle=":")
    put_legend(figure)
    return figure


def draw_series(axes: Axes, series: Iterable[tuple[str, ArrayLike]], x: str, y: str) -> None:
    """Draw named series over releases or steps, from zero; infinite values are left out."""
    top = 0.0
    for number, (name, values) in enumerate(series):
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
    _label(axes, x, y)


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(axis="y")
