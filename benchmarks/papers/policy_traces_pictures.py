"""The pictures of `policy_traces.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike, NDArray

from mechdesign.report._style import ACCENT, INK, headline, in_report_style, new_figure

ORANGE = "#D55E00"
STYLES = ((INK, ":", "s"), (ORANGE, "--", "^"), (ACCENT, "-", "o"))
_WINDOW = 5


def _mean(values: ArrayLike) -> NDArray[np.float64]:
    """Return the mean over trajectories at each step, smoothed over a few steps."""
    mean = np.asarray(values, dtype=np.float64).mean(axis=0)
    kernel = np.ones(min(_WINDOW, len(mean)))
    return np.convolve(mean, kernel, "same") / np.convolve(np.ones_like(mean), kernel, "same")


@in_report_style
def over_time(found) -> Figure:
    """Draw the degree of protection, the error and the time of each step; a column for each data set."""
    figure = new_figure(9.0, 7.2)
    rows = (("degree", "degree of protection"), ("error", "error (km)"), ("milliseconds", "processor time (ms)"))
    axes = figure.subplots(3, len(found), sharex=True, squeeze=False)
    for column, (name, policies) in enumerate(found.items()):
        for row, (attribute, label) in enumerate(rows):
            panel = axes[row][column]
            for (policy, measured), (colour, line, _) in zip(policies.items(), STYLES, strict=True):
                panel.plot(_mean(getattr(measured, attribute)), color=colour, ls=line, lw=1.4, label=policy)
            panel.set_ylim(bottom=0)
            panel.grid(axis="y")
            if column == 0:
                panel.set_ylabel(label)
        axes[0][column].set_title(name, loc="left")
        axes[2][column].set_xlabel("step")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper right", ncols=3)
    headline(figure, "A policy sets who is protected, and pays for it in error (DPHMM, Figures 10, 11)")
    return figure


@in_report_style
def parameters(by_epsilon, by_radius, by_time) -> Figure:
    """Draw degree of protection and error against ε, and against the radius of G_util; a column for each data set."""
    figure = new_figure(9.0, 5.0)
    axes = figure.subplots(2, 2 * len(by_epsilon), sharey="row", squeeze=False)
    rows = (("degree", "degree of protection"), ("error", "error (km)"))
    for column, name in enumerate(by_epsilon):
        policies = list(by_time[name])
        for row, (attribute, label) in enumerate(rows):
            left, right = axes[row][column], axes[row][len(by_epsilon) + column]
            for policy, (colour, line, marker) in zip(policies, STYLES, strict=True):
                look = {"color": colour, "ls": line, "lw": 1.4, "label": policy}
                values = [getattr(found[policy], attribute).mean() for found in by_epsilon[name].values()]
                left.plot(list(by_epsilon[name]), values, marker=marker, ms=4, **look)
                if policy == "G_util":
                    values = [getattr(found[policy], attribute).mean() for found in by_radius[name].values()]
                    right.plot(list(by_radius[name]), values, marker=marker, ms=4, **look)
                else:
                    right.axhline(getattr(by_time[name][policy], attribute).mean(), **look)
            for panel in (left, right):
                panel.set_yscale("log")
                panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                panel.yaxis.set_minor_formatter(NullFormatter())
                panel.grid(axis="y")
            if column == 0:
                left.set_ylabel(f"{label}, log scale")
        axes[0][column].set_title(name, loc="left")
        axes[0][len(by_epsilon) + column].set_title(name, loc="left")
        axes[1][column].set_xlabel("ε per edge")
        axes[1][len(by_epsilon) + column].set_xlabel("radius r of G_util (km)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper right", ncols=3)
    headline(figure, "ε sets the error, the radius both error and protection (DPHMM, Figures 12, 13)")
    return figure


@in_report_style
def pglp(found) -> Figure:
    """Draw the error over time, and its mean for each policy; a column for each data set."""
    figure = new_figure(9.0, 5.6)
    axes = figure.subplots(2, len(found), squeeze=False)
    for column, (name, policies) in enumerate(found.items()):
        top, bottom = axes[0][column], axes[1][column]
        for index, (colour, line, marker) in enumerate(STYLES):
            first = next(iter(policies.values()))
            mechanism = list(first)[index]
            top.plot(_mean(first[mechanism].error), color=colour, ls=line, lw=1.4, label=mechanism)
            means = [measured[mechanism].error.mean() for measured in policies.values()]
            bottom.plot(list(policies), means, color=colour, ls=line, marker=marker, ms=5, lw=1.4)
        top.set_title(f"{name}, {next(iter(policies))}", loc="left")
        top.set_xlabel("step")
        bottom.set_title(f"{name}, mean over all steps", loc="left")
        for panel in (top, bottom):
            panel.set_ylim(bottom=0)
            panel.grid(axis="y")
    for row in axes:
        row[0].set_ylabel("error (km)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper right", ncols=3)
    headline(figure, "Along a trace, too, the LP channel has the least error (PGLP, Figures 9, 10)")
    return figure


@in_report_style
def repairs(sizes: Sequence[int], found) -> Figure:
    """Draw the error and the time of both repairs against the size of the constrained domain."""
    figure = new_figure(9.0, 5.0)
    axes = figure.subplots(2, len(found), sharex=True, sharey="row", squeeze=False)
    looks = {"area": ("least area", ACCENT, "-", "o"), "nearest": ("nearest", ORANGE, "--", "^")}
    for column, (policy, methods) in enumerate(found.items()):
        for row in range(2):
            panel = axes[row][column]
            for method, (label, colour, line, marker) in looks.items():
                values = [pair[row] for pair in methods[method]]
                panel.plot(sizes, values, color=colour, ls=line, marker=marker, ms=4, lw=1.4, label=label)
            panel.grid(axis="y")
        axes[0][column].set_title(policy, loc="left")
        axes[1][column].set_xlabel("size of the constrained domain")
    for row, label in enumerate(("error of P-PIM (km)", "time of repair (ms)")):
        axes[row][0].set_ylabel(label)
        axes[row][0].set_ylim(bottom=0)
    axes[0][0].legend()
    headline(figure, "Repair of random constrained domains (PGLP, Figure 8)")
    return figure
