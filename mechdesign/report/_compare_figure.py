"""The figure of a comparison: the cost of each design against its privacy."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from mechdesign.model._words import clip, short
from mechdesign.report._maps import round_ticks
from mechdesign.report._style import ACCENT, headline, in_report_style, is_narrow, new_figure, on_page_only

_WIDTH, _HEIGHT = 7.4, 3.6
# The most characters of a line below the axis.
_LINE = 46
# The least relative difference of two numbers that the figure calls different.
_ALIKE = 5e-4
# The smallest visible gap, as a share of the cost.
_MIN_VISIBLE_GAP = 0.003


@dataclass(frozen=True)
class DesignPoint:
    """The cost and the privacy of a design.

    Attributes:
        name: The name of the design.
        privacy: An ε or factor, which should be small, or an error of an attack, which should be large.
        cost: The cost.
        lower_bound: The lower bound of the cost.
    """

    name: str
    privacy: float
    cost: float
    lower_bound: float


@dataclass(frozen=True)
class PrivacyAxis:
    """The quantity of privacy of the figure.

    Attributes:
        label: The name of the quantity, with its unit.
        larger: Whether a larger number means more privacy.
    """

    label: str
    larger: bool


@in_report_style
def compare_picture(points: Sequence[DesignPoint], axis: PrivacyAxis, cost: str) -> Figure:
    """Show the cost of each design against its privacy; lines go down to the lower bounds of the costs.

    `cost` is the name of the cost, with its unit.
    """
    figure = new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    middle = (min(each.privacy for each in points) + max(each.privacy for each in points)) / 2
    for index, each in enumerate(points):
        if each.cost - each.lower_bound > _MIN_VISIBLE_GAP * each.cost:
            axes.plot([each.privacy] * 2, [each.lower_bound, each.cost], color=ACCENT, linewidth=2.5, alpha=0.5)
        axes.plot(each.privacy, each.cost, "o", color=ACCENT, markersize=6, gid=on_page_only(f"point-{index}"))
        left = each.privacy <= middle
        axes.annotate(
            clip(each.name, 13 if is_narrow() else 24), (each.privacy, each.cost), xytext=(6 if left else -6, 5),
            textcoords="offset points", ha="left" if left else "right", fontsize=8.5,
        )  # fmt: skip
    axes.margins(x=0.08)
    axes.set_ylim(0, 1.15 * (max(each.cost for each in points) or 1.0))
    axes.xaxis.set_major_locator(round_ticks(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    label = textwrap.fill(axis.label, _LINE)
    axes.set_xlabel(f"{label}\n({'larger' if axis.larger else 'smaller'} is more private)")
    axes.set_ylabel(cost)
    axes.grid(axis="y")
    headline(figure, _find_headline(points, axis))
    return figure


def _find_headline(points: Sequence[DesignPoint], axis: PrivacyAxis) -> str:
    """Return a sentence on the designs that cost more than another design, and are less private."""
    worse = {
        other.name: one.name
        for one in points
        for other in points
        if _is_less(one.cost, other.cost)
        and (_is_less(other.privacy, one.privacy) if axis.larger else _is_less(one.privacy, other.privacy))
    }
    if not worse:
        return "No design costs less than another and is more private"
    if len(worse) > 1:
        return f"{len(worse)} of {len(points)} designs cost more than another design, and are less private"
    [(other, one)] = worse.items()
    return f"{clip(one, 24)} costs less than {clip(other, 24)}, and is more private"


def _is_less(one: float, other: float) -> bool:
    """Return whether a number is less than another one by more than the figure can show."""
    return other - one > _ALIKE * max(abs(one), abs(other))
