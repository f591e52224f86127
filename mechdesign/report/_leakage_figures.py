"""Figures 3 to 9 of the paper, one function each; each returns a Matplotlib figure and shows or saves nothing.

Figures 3, 4, 5, 7, 8 and 9 compute what they show; Figure 6 shows measured times. Lines differ by marker and dash as
well as by colour.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_array, as_budgets
from mechdesign.leakage._budgets import allocate_budget, constant_budget
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import backward as backward_leakage
from mechdesign.leakage._recursion import forward as forward_leakage
from mechdesign.leakage._recursion import temporal
from mechdesign.leakage.cao2019 import algorithm2
from mechdesign.model._markov import smooth

# The palette of Okabe and Ito, told apart by readers with any colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^Dv<>"


def leakage(epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None) -> Figure:
    """Show backward, forward and temporal leakage of every release beside its budget (Figure 3)."""
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
    """Show L(α), where its pieces meet, and the function of each pair of rows (Figure 4); pairs only up to n = 6."""
    function = P if isinstance(P, LossFunction) else LossFunction(P)
    alpha = np.linspace(0.0, largest, 400)
    figure, axes = _panels(1)
    if not isinstance(P, LossFunction) and function.n <= 6:
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
    axes[0].plot(alpha, alpha, ":", color="0.3", linewidth=1.0, label="α: the strongest correlation")
    _label(axes[0], "leakage α before the step, in nats", "leakage L(α) after it, in nats")
    _from_zero(axes[0])
    return figure


def leakage_maximum_over_time(cases: Mapping[str, tuple[Any, float]], steps: int = 100) -> Figure:
    """Show backward leakage over time beside its supremum, a panel for each case (Figure 5).

    `cases` maps a title to (matrix, ε). A supremum is a dashed line; where there is none, the panel says so.
    """
    figure, panels = _panels(len(cases), columns=2)
    time = np.arange(steps)
    for axes, (title, (P, epsilon)) in zip(panels, cases.items(), strict=True):
        function = P if isinstance(P, LossFunction) else LossFunction(P)
        series = backward_leakage(np.full(steps, epsilon), function)
        axes.plot(time, series, color=_COLOURS[0], label="backward leakage")
        top = function.supremum(epsilon)
        if np.isfinite(top):
            axes.axhline(top, color=_COLOURS[1], linestyle="--", label=f"supremum {top:.4g}")
        else:
            axes.plot([], [], " ", label="no supremum: grows for ever")
        axes.set_title(title, fontsize="medium")
        _label(axes, "release", "leakage in nats")
        _from_zero(axes)
    return figure


def leakage_runtime(
    times: Mapping[str, Mapping[float, float]], variable: str = "n", logarithmic: bool = True, title: str = ""
) -> Figure:
    """Show measured seconds, a line for each method, against n, T or α (Figure 6).

    `times` maps a method to {value of the variable: seconds}.
    """
    figure, axes = _panels(1)
    for (name, points), style in zip(times.items(), _styles(), strict=False):
        values = sorted(points)
        axes[0].plot(values, [points[value] for value in values], label=name, **style)
    if logarithmic:
        axes[0].set_xscale("log")
    axes[0].set_yscale("log")
    axes[0].set_title(title, fontsize="medium")
    _label(axes[0], variable, "seconds", legend=False)
    _legend_below(figure)
    return figure


def leakage_correlation_strength(
    epsilons: Sequence[float] = (1.0, 0.1),
    cases: Iterable[tuple[int, float]] = ((50, 0.005), (50, 0.05), (50, 1.0), (200, 0.005)),
    steps: Sequence[int] = (15, 150),
) -> Figure:
    """Show backward leakage under correlations of different strength, a panel for each ε (Figure 7).

    `cases` are (n, s): the identity of n states smoothed by Equation (28) with s; smaller s is stronger correlation.
    """
    figure, panels = _panels(len(epsilons), columns=2)
    functions = {(n, s): LossFunction(smooth(np.eye(n), s)) for n, s in cases}
    for axes, epsilon, count in zip(panels, epsilons, steps, strict=True):
        time = np.arange(count)
        budgets = np.full(count, epsilon)
        _lines(
            axes,
            time,
            [(f"s = {s:g}, n = {n}", backward_leakage(budgets, loss)) for (n, s), loss in functions.items()],
        )
        axes.set_title(f"ε = {epsilon:g} at every release", fontsize="medium")
        _label(axes, "release", "backward leakage in nats")
        _from_zero(axes)
    return figure


def leakage_allocation(
    alpha: float,
    steps: int,
    backward: Correlation = None,
    forward: Correlation = None,
    best: ArrayLike | None = None,
) -> Figure:
    """Show two ways to divide a leakage of α over the releases, and what leaks under each (Figure 8).

    One budget for all releases is that of Algorithm 7, and more for the first and the last one that of Algorithm 8.
    Budgets have a logarithmic axis: those of the ends are many times as large as those between. `best` are budgets to
    show beside them, such as those of `best_budgets`, shape (steps,); those of releases left out are not drawn.
    """
    figure, panels = _panels(2, columns=2)
    time = np.arange(steps)
    constant = np.full(steps, constant_budget(alpha, backward, forward))
    allocated = allocate_budget(alpha, steps, backward, forward)
    budgets = [("the same for all (Algorithm 7)", constant), ("more at both ends (Algorithm 8)", allocated)]
    if best is not None:
        budgets.append(("least cost", as_budgets(best, "best")))
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
    """Write 2, 3, 4 and 6 times a power of ten where the axis shows few of them."""
    low, high = axes.get_ylim()
    return f"{value:g}" if high < 100 * low and f"{value:e}"[0] in "2346" else ""


def leakage_utility(
    alpha: float,
    lengths: Sequence[int],
    strengths: Sequence[float],
    n: int = 50,
    strength: float = 0.001,
    steps: int = 10,
    sensitivity: float = 1.0,
) -> Figure:
    """Show the mean absolute Laplace noise that a leakage of α costs (Figure 9).

    The noise of a release is sensitivity/ε. Left: against the number of releases, under the identity of n states
    smoothed with `strength`, both backward and forward. Right: against the smoothing s, for `steps` releases. The
    dashed line is the noise without temporal correlation.
    """
    figure, panels = _panels(2, columns=2)
    strong = LossFunction(smooth(np.eye(n), strength))
    left = [_noises(alpha, length, strong, sensitivity) for length in lengths]
    right = [_noises(alpha, steps, LossFunction(smooth(np.eye(n), s)), sensitivity) for s in strengths]
    for axes, values, noises, label in (
        (panels[0], lengths, left, f"number of releases (s = {strength:g})"),
        (panels[1], strengths, right, f"smoothing s ({steps} releases)"),
    ):
        constant, allocated = zip(*noises, strict=True)
        _lines(axes, as_array(values, "values"), (("the same ε for all", constant), ("more at both ends", allocated)))
        axes.axhline(sensitivity / alpha, color="0.3", linestyle="--", label="no correlation")
        axes.set_yscale("log")
        _label(axes, label, "mean absolute noise")
    panels[1].set_xscale("log")
    return figure


def _noises(alpha: float, steps: int, loss: LossFunction, sensitivity: float) -> tuple[float, float]:
    allocated = allocate_budget(alpha, steps, loss, loss)
    return sensitivity / constant_budget(alpha, loss, loss), float(np.mean(sensitivity / allocated))


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
        # The first and the last are marked, and some between.
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
