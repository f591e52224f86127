"""Figures of leakage: releases, a loss function, and budgets, as in Figures 3, 4 and 8 of Cao et al. (2019).

Each function returns a Matplotlib figure and saves nothing. Lines differ by marker and dash in addition to colour.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_budgets
from mechdesign.leakage._budgets import allocate_budget, constant_budget
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import backward as backward_leakage
from mechdesign.leakage._recursion import forward as forward_leakage
from mechdesign.leakage._recursion import temporal
from mechdesign.leakage.cao2019 import algorithm2

# The palette of Okabe and Ito, which is distinguishable with any colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^Dv<>"


def leakage(epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None) -> Figure:
    """Show backward, forward and temporal leakage of every release, and its budget (Figure 3).

    Args:
        epsilons: Budget of each release, in nats, shape (T,).
        backward: Backward correlation: a transition matrix, a `LossFunction`, or None without correlation.
        forward: Forward correlation: a transition matrix, a `LossFunction`, or None without correlation.

    Returns:
        The figure.

    Example:
        >>> leakage([0.1] * 5, [[0.8, 0.2], [0.2, 0.8]]).axes[0].get_ylabel()
        'leakage in nats'
    """
    budgets = as_budgets(epsilons)
    steps = np.arange(len(budgets))
    figure, axes = _panels(1)
    series = (
        ("backward (BPL)", backward_leakage(budgets, backward)),
        ("forward (FPL)", forward_leakage(budgets, forward)),
        ("temporal (TPL)", temporal(budgets, backward, forward)),
        ("budget ε", budgets),
    )
    _lines(axes[0], steps, series)
    _label(axes[0], "release", "leakage in nats", legend=False)
    _from_zero(axes[0])
    _legend_below(figure)
    return figure


def leakage_loss(P: Any, largest: float = 5.0) -> Figure:
    """Show the loss function L(α), the ends of its pieces, and the functions of pairs of rows (Figure 4).

    Functions of pairs are shown for a matrix of up to 6 states without unknown rows.

    Args:
        P: A transition matrix, shape (n, n), or a `LossFunction`.
        largest: Largest leakage α before the step, in nats.

    Returns:
        The figure.

    Example:
        >>> leakage_loss([[0.8, 0.2], [0.2, 0.8]]).axes[0].get_ylabel()
        'leakage L(α) after the step, in nats'
    """
    function = P if isinstance(P, LossFunction) else LossFunction(P)
    alpha = np.linspace(0.0, largest, 400)
    figure, axes = _panels(1)
    if not isinstance(P, LossFunction) and function.n <= 6 and not len(function.unknown):
        G, D, _, until = algorithm2(P)
        A = np.expm1(alpha)[:, None]
        for index, (gains, sums, ends) in enumerate(zip(G, D, until, strict=True)):
            if (ends >= 0).any():
                each = np.log1p(gains * A / (sums * A + 1.0))[:, ends >= 0].max(axis=1)
                label = "pairs of rows" if index == 0 else None
                axes[0].plot(alpha, each, color="0.7", linewidth=0.8, label=label)
    axes[0].plot(alpha, function(alpha), color=_COLOURS[0], linewidth=2.0, label="L(α)")
    start = function.pieces.start
    inner = start[(start > 0) & (start < largest)]
    if inner.size:
        axes[0].plot(inner, function(inner), "o", color=_COLOURS[1], markersize=5, label="a new piece starts")
    axes[0].plot(alpha, alpha, ":", color="0.3", linewidth=1.0, label="α, the leakage under the strongest correlation")
    _label(axes[0], "leakage α before the step, in nats", "leakage L(α) after the step, in nats")
    _from_zero(axes[0])
    return figure


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
        The figure.

    Example:
        >>> P = [[0.8, 0.2], [0.2, 0.8]]
        >>> leakage_allocation(1.0, 5, P, P).axes[1].get_ylabel()
        'temporal leakage in nats'
    """
    figure, panels = _panels(2, columns=2)
    time = np.arange(steps)
    constant = np.full(steps, constant_budget(alpha, backward, forward))
    allocated = allocate_budget(alpha, steps, backward, forward)
    budgets = [("the same ε for all (Algorithm 7)", constant), ("more at both ends (Algorithm 8)", allocated)]
    _lines(panels[0], time, budgets)
    panels[0].set_yscale("log", nonpositive="mask")
    panels[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].yaxis.set_minor_formatter(FuncFormatter(functools.partial(_between_powers, panels[0])))
    _label(panels[0], "release", "budget ε in nats (log scale)")
    _lines(panels[1], time, [(name, temporal(series, backward, forward)) for name, series in budgets])
    panels[1].axhline(alpha, color="0.3", linestyle=":", label=f"target α = {alpha:g}")
    _label(panels[1], "release", "temporal leakage in nats")
    _from_zero(panels[1])
    return figure


def _between_powers(axes: Axes, value: float, _: int) -> str:
    """Write 2, 3, 4 and 6 times a power of ten if the axis shows less than two decades."""
    low, high = axes.get_ylim()
    return f"{value:g}" if high < 100 * low and f"{value:e}"[0] in "2346" else ""


def _panels(count: int, columns: int = 1) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(5.6 * columns, 3.8 * rows), layout="constrained")
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
    return figure, panels


def _styles() -> Iterable[dict[str, Any]]:
    for colour, marker in zip(cycle(_COLOURS), cycle(_MARKERS)):
        yield {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.4}


def _lines(axes: Axes, x: Floats | Any, series: Iterable[tuple[str, Any]]) -> None:
    for (name, values), style in zip(series, _styles(), strict=False):
        # Draw markers at up to 16 values, including the first and the last value.
        marked = np.unique(np.linspace(0, len(values) - 1, min(len(values), 16)).round().astype(int)).tolist()
        axes.plot(x, values, label=name, markevery=marked, **style)


def _label(axes: Axes, x: str, y: str, legend: bool = True) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    if legend:
        axes.legend(frameon=False, fontsize="small")


def _legend_below(figure: Figure) -> None:
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")


def _from_zero(axes: Axes) -> None:
    axes.set_ylim(bottom=0.0)
