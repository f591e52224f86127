"""Figures 3 to 9 of Cao et al. (2019), one function each; each returns a Matplotlib figure and saves nothing.

Figures 3, 4, 5, 7, 8 and 9 compute their data; Figure 6 shows measured times. Lines differ by marker and dash in
addition to colour.
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

    Functions of pairs are shown for a matrix of up to 6 states.

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
    axes[0].plot(alpha, alpha, ":", color="0.3", linewidth=1.0, label="α, the leakage under the strongest correlation")
    _label(axes[0], "leakage α before the step, in nats", "leakage L(α) after the step, in nats")
    _from_zero(axes[0])
    return figure


def leakage_maximum_over_time(cases: Mapping[str, tuple[Any, float]], steps: int = 100) -> Figure:
    """Show backward leakage over time, with its supremum, in a panel for each case (Figure 5).

    A dashed line is the supremum; without a supremum the panel's legend states that the leakage grows without bound.

    Args:
        cases: Title of each panel, with its transition matrix and its ε per release.
        steps: Number of releases.

    Returns:
        The figure.

    Example:
        >>> cases = {"weak": ([[0.6, 0.4], [0.4, 0.6]], 0.1)}
        >>> leakage_maximum_over_time(cases, steps=5).axes[0].get_title()
        'weak'
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
            axes.plot([], [], " ", label="no supremum: grows without bound")
        axes.set_title(title, fontsize="medium")
        _label(axes, "release", "leakage in nats")
        _from_zero(axes)
    return figure


def leakage_runtime(
    times: Mapping[str, Mapping[float, float]], variable: str = "n", logarithmic: bool = True, title: str = ""
) -> Figure:
    """Show measured seconds against n, T or α, in a line for each method (Figure 6).

    Args:
        times: For each method, a mapping from values of the variable to seconds.
        variable: Name of the variable.
        logarithmic: Whether the axis of the variable is logarithmic.
        title: Title of the panel.

    Returns:
        The figure.

    Example:
        >>> leakage_runtime({"ours": {10: 0.1, 100: 0.2}}).axes[0].get_ylabel()
        'seconds'
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
    """Show backward leakage under correlations of different strength, in a panel for each ε (Figure 7).

    Args:
        epsilons: One ε per panel, which is the budget of each release.
        cases: Pairs (n, s): the transition matrix is the identity matrix of n states, smoothed by Equation (28) with s.
            A smaller s means a stronger correlation.
        steps: One number of releases per panel.

    Returns:
        The figure.

    Example:
        >>> leakage_correlation_strength([1.0], [(2, 0.1)], [5]).axes[0].get_title()
        'ε = 1 at every release'
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
    """Show ways to divide a leakage of α over the releases, and the leakage of each way (Figure 8).

    Algorithm 7 uses the same budget for all releases; Algorithm 8 uses more for the first and the last release. The
    axis of budgets is logarithmic, since budgets at the ends are many times larger than budgets in the middle.

    Args:
        alpha: Target of the temporal leakage, in nats.
        steps: Number of releases T.
        backward: Backward correlation: a transition matrix, a `LossFunction`, or None without correlation.
        forward: Forward correlation: a transition matrix, a `LossFunction`, or None without correlation.
        best: Budgets for comparison, such as the result of `best_budgets`, shape (T,). Budgets of 0 are not drawn.

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
    """Write 2, 3, 4 and 6 times a power of ten if the axis shows less than two decades."""
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
    """Show the mean absolute Laplace noise for a leakage of α (Figure 9).

    The noise of a release is sensitivity/ε. The left panel shows the noise against the number of releases, with the
    smoothed identity matrix as backward and forward correlation. The right panel shows the noise against the smoothing
    s. The dashed line is the noise without correlation.

    Args:
        alpha: Target of the temporal leakage, in nats.
        lengths: Numbers of releases of the left panel.
        strengths: Smoothings s of the right panel; a smaller s is a stronger correlation.
        n: Number of states.
        strength: Smoothing s of the left panel.
        steps: Number of releases of the right panel.
        sensitivity: Sensitivity of the query.

    Returns:
        The figure.

    Example:
        >>> leakage_utility(1.0, [2, 3], [0.1, 1.0], n=2).axes[0].get_ylabel()
        'mean absolute noise'
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
