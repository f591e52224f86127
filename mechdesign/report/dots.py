"""Two dot plots: cost against its bracket, and requirements against what was realised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from mechdesign.report.frame import round_ticks
from mechdesign.measures._baselines import NO_INFORMATION
from mechdesign.measures._baselines import Reference
from mechdesign.model._words import percent
from mechdesign.model._words import power
from mechdesign.model._words import relative
from mechdesign.model._words import short
from mechdesign.report.style import ACCENT
from mechdesign.report.style import INK
from mechdesign.report.style import MUTED
from mechdesign.report.style import RULE
from mechdesign.report.style import drawn
from mechdesign.report.style import headline
from mechdesign.report.style import new_figure

__all__ = ["Met", "cost_picture", "requirements_picture"]

_WIDTH = 9.0


@dataclass(frozen=True)
class Met:
    """A requirement beside what a channel really does: at most, or at least, `nominal`, and whether it holds.

    It is `empty` where it is about pairs of secrets and bounds none.
    """

    name: str
    nominal: float
    realised: float
    at_least: bool = False
    holds: bool = True
    empty: bool = False


@drawn
def cost_picture(
    cost: float,
    lower_bound: float | None,
    gap: float,
    references: Sequence[Reference] = (),
    objective: str = "expected",
    unit: str = "",
) -> Figure:
    """Show the cost of a channel, its lower bound, and the costs of mechanisms to compare with, on one axis.

    `gap` is the relative gap as certified; without a lower bound there is none.
    """
    points = [("this channel, certified", cost, "", True)]
    if lower_bound is not None:
        note = f"relative gap {power(gap)}" if gap > 0 else "no gap"
        points.insert(0, ("lower bound: no channel costs less", lower_bound, note, True))
    points += [(item.name, item.cost, item.note, False) for item in references]
    # Cheapest first, from the bottom; a bound equal to the cost stays below it.
    points.sort(key=lambda point: point[1])
    figure = new_figure(_WIDTH, 0.34 * len(points) + 1.1)
    axes = figure.subplots()
    largest = max(point[1] for point in points) or 1.0
    digits = min(12, max(4, 1 - math.floor(math.log10(gap)))) if 0 < gap < 1 else 6
    for line, (_, value, note, ours) in enumerate(points):
        axes.plot([0, value], [line, line], color=RULE, linewidth=0.9, zorder=1)
        axes.plot(
            value, line, "o", markersize=8 if ours else 6.5, color=ACCENT if ours else MUTED, zorder=3, clip_on=False
        )
        text = short(value, digits if ours else 4) + (f" {unit}" if unit else "") + (f"  ({note})" if note else "")
        axes.annotate(
            text,
            (value, line),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=ACCENT if ours else INK,
            weight="bold" if ours else "normal",
            annotation_clip=False,
        )
    axes.set_yticks(range(len(points)), [name for name, *_ in points])
    for tick, (*_, ours) in zip(axes.get_yticklabels(), points, strict=True):
        tick.set_fontweight("bold" if ours else "normal")
    axes.tick_params(axis="y", length=0, pad=9)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, len(points) - 0.4)
    axes.set_xlim(0, 1.25 * largest)
    axes.xaxis.set_major_locator(round_ticks(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value, 4)))
    axes.set_xlabel(f"{objective}{'-case' if objective == 'worst' else ''} cost" + (f" ({unit})" if unit else ""))
    nothing = next((item.cost for item in references if item.name == NO_INFORMATION), None)
    headline(figure, _bracket(cost, lower_bound, gap, nothing))
    return figure


@drawn
def requirements_picture(requirements: Sequence[Met]) -> Figure:
    """Show each requirement's realised value as a part of its nominal one, on the side where it holds or not."""
    n = len(requirements)
    figure = new_figure(_WIDTH, 0.45 * max(n, 1) + 1.15)
    axes = figure.subplots()
    ratios = [_ratio(item) for item in requirements]
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    right = max([1.25, *(1.1 * ratio for ratio in finite if ratio < 4)])
    for line, (item, ratio) in enumerate(zip(reversed(requirements), reversed(ratios), strict=True)):
        # A thick line is where the requirement holds.
        allowed = (1.0, right) if item.at_least else (0.0, 1.0)
        axes.plot(allowed, [line, line], color=RULE, linewidth=7, solid_capstyle="butt", zorder=1)
        axes.plot([1, 1], [line - 0.22, line + 0.22], color=INK, linewidth=1.4, zorder=2)
        place = min(ratio, right)
        beyond = ratio > right
        axes.plot(
            place,
            line,
            ">" if beyond else "o",
            markersize=8,
            color=ACCENT,
            zorder=3,
            clip_on=False,
            markerfacecolor=ACCENT if item.holds else "white",
        )
        axes.annotate(
            f"{short(item.realised, 6)}, {'at least' if item.at_least else 'at most'} {short(item.nominal, 6)}"
            + (" asked for" if item.holds else " asked for: fails"),
            (1.02, line),
            xycoords=("axes fraction", "data"),
            va="center",
            annotation_clip=False,
            weight="normal" if item.holds else "bold",
        )
    axes.set_yticks(range(n), [item.name for item in reversed(requirements)])
    axes.tick_params(axis="y", length=0, pad=9)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, max(n, 1) - 0.4)
    axes.set_xlim(0, right)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}%"))
    axes.set_xlabel("realised value, as a part of the nominal one (bar: where the requirement holds)")
    headline(figure, _how_met(requirements, ratios))
    return figure


def _bracket(cost: float, lower_bound: float | None, gap: float, nothing: float | None) -> str:
    if lower_bound is None or lower_bound <= 0 < cost:
        finding = f"The cost is {short(cost, 6)}, with no lower bound above 0 proved"
    elif gap <= 0 or cost == 0:
        finding = "The cost is the least possible"
    else:
        finding = f"The cost is proved least to within {relative(gap)} of itself"
    if nothing is None or nothing <= 0 or cost > nothing:
        return finding
    saved = 1 - cost / nothing
    return f"{finding}, {f'{percent(saved)} below' if saved >= 5e-4 else 'no less than'} that of telling nothing"


def _ratio(item: Met) -> float:
    if item.nominal > 0:
        return item.realised / item.nominal
    return 1.0 if item.realised == item.nominal else math.inf


def _how_met(requirements: Sequence[Met], ratios: Sequence[float]) -> str:
    if not requirements:
        return "Nothing is required"
    broken = sum(not item.holds for item in requirements)
    if broken:
        if len(requirements) == 1:
            return "The requirement does not hold"
        return f"{broken} of {len(requirements)} requirements {'does' if broken == 1 else 'do'} not hold"
    if any(item.empty for item in requirements):
        count = f"{sum(item.empty for item in requirements)} of {len(requirements)} requirements"
        return f"{'The requirement' if len(requirements) == 1 else count} bounds no pair of secrets"
    tight = sum(abs(ratio - 1) < 1e-3 for ratio in ratios)
    if len(requirements) == 1:
        return "The requirement holds" + (" and is used up" if tight else " with room to spare")
    if tight == len(requirements):
        return "All requirements hold, and all are used up"
    return f"All requirements hold; {tight or 'none'} of {len(requirements)} {'is' if tight <= 1 else 'are'} used up"
