"""Figures of a channel: its prior, answers, errors, costs and requirements.

Figures are `matplotlib.figure.Figure` objects that do not depend on pyplot or on the user's settings. Save figures with
``figure.savefig``. Each headline states the main finding.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.measures._baselines import NO_INFORMATION, Reference
from mechdesign.model._domain import Domain
from mechdesign.model._words import clip, format_bound, percent, plain, power, relative, short
from mechdesign.report import _maps as maps
from mechdesign.report._maps import round_ticks
from mechdesign.report._scales import Scale, error_scale, probability_scale
from mechdesign.report._style import (
    ACCENT,
    INK,
    MUTED,
    RULE,
    abreast,
    fitting,
    headline,
    in_report_style,
    is_narrow,
    is_on_page,
    is_slim,
    new_figure,
    on_page_only,
)

_DOTS_WIDTH = 9.0
# On narrow screens: height in inches of a plotted line with its name above it, and largest number of characters in a
# line of text.
_NARROW_STEP, _NARROW_LINE = 0.72, 46


@dataclass(frozen=True)
class RequirementBar:
    """A requirement of a channel with its required (nominal) and its achieved (realised) value.

    Attributes:
        name: Name of the requirement.
        nominal: The value that the requirement demands.
        realised: The value that the channel achieves.
        at_least: Whether the nominal value is a lower limit of the realised value, not an upper limit.
        holds: Whether the requirement holds.
        empty: Whether the requirement is about pairs of secrets, but bounds no pair.
    """

    name: str
    nominal: float
    realised: float
    at_least: bool = False
    holds: bool = True
    empty: bool = False


@in_report_style
def cost_picture(
    cost: float,
    lower_bound: float | None,
    gap: float,
    references: Sequence[Reference] = (),
    unit: str = "",
    among: str = "",
) -> Figure:
    """Show the cost of a channel, its lower bound, and the costs of reference mechanisms on one axis.

    `gap` is the certified relative gap, which is not shown without a lower bound. `among` ends the sentence on the
    least possible cost, if the lower bound is only for some channels.
    """
    points = [_CostLine("this channel, certified", cost, ours=True)]
    if lower_bound is not None:
        note = f"relative gap {power(gap)}" if gap > 0 else "no gap"
        points.insert(0, _CostLine("lower bound: no such channel costs less", lower_bound, note, ours=True))
    points += [_CostLine(item.name, item.cost, item.note, item.meets) for item in references]
    points = _group_lines(points)
    figure = new_figure(_DOTS_WIDTH, (_NARROW_STEP if is_narrow() else 0.34) * len(points) + 1.1)
    axes = figure.subplots()
    largest = max(point.cost for point in points if point.cost is not None) or 1.0
    for line, point in enumerate(points):
        name, value, note, ours = point.name, point.cost, point.note, point.ours
        if value is None:
            axes.text(0, line, name, va="center", color=MUTED, style="italic")
            continue
        axes.plot([0, value], [line, line], color=RULE, linewidth=0.9, zorder=1)
        axes.plot(
            value, line, "o", markersize=8 if ours else 6.5, color=ACCENT if ours else MUTED, zorder=3, clip_on=False
        )
        bound = format_bound(value, up=value == cost, digits=6) if ours else short(value, 4)
        text = bound + (f" {unit}" if unit else "") + (f"  ({note})" if note else "")
        style = {"color": ACCENT if ours else INK, "weight": "bold" if ours else "normal"}
        _annotate(axes, plain(text), (value, line), line, name, xytext=(9, 0), textcoords="offset points", **style)
    _name_lines(axes, [("" if point.cost is None else point.name, point.ours) for point in points])
    axes.set_ylim(-0.6, len(points) - 0.4)
    axes.set_xlim(0, 1.25 * largest)
    axes.xaxis.set_major_locator(round_ticks(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value, 4)))
    axes.set_xlabel("cost" + (f" ({unit})" if unit else ""))
    nothing = next((item.cost for item in references if item.name == NO_INFORMATION), None)
    headline(figure, _bracket(cost, lower_bound, gap, nothing, among))
    return figure


@dataclass(frozen=True)
class _CostLine:
    """A line of the figure of costs: a mechanism, or without a cost the heading of a group."""

    name: str
    cost: float | None
    note: str = ""
    meets: bool = True
    ours: bool = False


def _group_lines(points: Sequence[_CostLine]) -> list[_CostLine]:
    """Return lines from the bottom to the top: mechanisms that do not meet all requirements are below all others.

    Costs ascend in each group. A lower bound equal to the cost stays below it. Groups have headings if both exist.
    """
    groups = [sorted((p for p in points if p.meets == meets), key=lambda p: p.cost or 0.0) for meets in (False, True)]
    if not groups[0]:
        return groups[1]
    heads = ("does not meet all requirements", "meets all requirements")
    return [line for group, head in zip(groups, heads, strict=True) for line in (*group, _CostLine(head, None))]


@in_report_style
def requirements_picture(requirements: Sequence[RequirementBar]) -> Figure:
    """Show each achieved value as a share of the required value, and the shares that the requirement allows."""
    n = len(requirements)
    figure = new_figure(_DOTS_WIDTH, (_NARROW_STEP if is_narrow() else 0.45) * max(n, 1) + 1.15)
    axes = figure.subplots()
    ratios = [_ratio(item) for item in requirements]
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    right = max([1.25, *(1.1 * ratio for ratio in finite if ratio < 4)])
    for line, (item, ratio) in enumerate(zip(reversed(requirements), reversed(ratios), strict=True)):
        # The thick line is the range in which the requirement holds.
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
        asked = f"{short(item.realised, 6)}, {'at least' if item.at_least else 'at most'} {short(item.nominal, 6)}"
        asked += " required" if item.holds else " required: fails"
        style = {"weight": "normal" if item.holds else "bold"}
        _annotate(axes, asked, (1.02, line), line, item.name, xycoords=("axes fraction", "data"), **style)
    _name_lines(axes, [(item.name, False) for item in reversed(requirements)])
    axes.set_ylim(-0.6, max(n, 1) - 0.4)
    axes.set_xlim(0, right)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}%"))
    said = "achieved / required (grey bar: the requirement holds)"
    axes.set_xlabel(textwrap.fill(said, _NARROW_LINE) if is_narrow() else said)
    headline(figure, _how_met(requirements, ratios))
    return figure


def _annotate(axes: Axes, text: str, place: tuple[float, float], line: int, name: str, **style: Any) -> None:
    """Write the value of a line next to the line, or on a narrow screen between the line and its name."""
    if is_narrow():
        kept = {key: value for key, value in style.items() if key in ("color", "weight")}
        said = textwrap.fill(plain(name), _NARROW_LINE) + "\n" + textwrap.fill(text, _NARROW_LINE)
        axes.text(0, line + 0.14, said, va="bottom", **kept)
    else:
        axes.annotate(text, place, va="center", annotation_clip=False, **style)


def _name_lines(axes: Axes, names: Sequence[tuple[str, bool]]) -> None:
    """Write the names of lines to the left of a figure, some in bold; a narrow screen has no space for them."""
    listed = [] if is_narrow() else names
    axes.set_yticks(range(len(listed)), [plain(name) for name, _ in listed])
    for tick, (_, strong) in zip(axes.get_yticklabels(), listed, strict=True):
        tick.set_fontweight("bold" if strong else "normal")
    axes.tick_params(axis="y", length=0, pad=9)
    axes.spines["left"].set_visible(False)


def _bracket(cost: float, lower_bound: float | None, gap: float, nothing: float | None, among: str) -> str:
    if lower_bound is None or lower_bound <= 0 < cost:
        finding = f"The cost is {short(cost, 6)}, with no lower bound above 0 proved"
    elif gap <= 0 or cost == 0:
        finding = f"The cost is the least possible{among}"
    else:
        finding = f"The cost is proved to be within {relative(gap)} of the least possible{among}"
    if nothing is None or nothing <= 0 or cost > nothing:
        return finding
    saved = 1 - cost / nothing
    return (
        f"{finding}, {f'{percent(saved)} below' if saved >= 5e-4 else 'no less than'} the cost without any information"
    )


def _ratio(item: RequirementBar) -> float:
    if item.nominal > 0:
        return item.realised / item.nominal
    return 1.0 if item.realised == item.nominal else math.inf


def _how_met(requirements: Sequence[RequirementBar], ratios: Sequence[float]) -> str:
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
        return "The requirement holds" + (" with equality" if tight else " with room to spare")
    if tight == len(requirements):
        return "All requirements hold with equality"
    return f"All requirements hold; {tight or 'none'} of {len(requirements)} with equality"


_WIDTH = 9.0
_MOST_PANELS = 6


@dataclass(frozen=True, eq=False)
class Panel:
    """A panel of a figure in which all panels have a common scale.

    Attributes:
        domain: Domain of the members, or None if they have no names.
        values: One number for each member, shape (n,).
        title: Text above the panel.
        name: Identifier of the panel on a page (its ``gid``).
        mark: Index of a member that is outlined.
        cross: Place that is marked by a cross, in the unit of the domain.
    """

    domain: Domain | None
    values: Floats
    title: str
    name: str
    mark: int | None = None
    cross: tuple[float, float] | None = None


@in_report_style
def prior_picture(prior: ArrayLike, secrets: Domain | None = None) -> Figure:
    """Show the prior (n,) of the secrets, and the secrets of probability 0."""
    probabilities = np.asarray(prior, dtype=np.float64)
    scale = probability_scale(probabilities, "prior probability")
    width, height = maps.panel_size(secrets, fitting(6.6, 0.9), 3.8)
    wider, higher = maps.bar_room(secrets, height)
    figure = new_figure(max(width + 0.9 + wider, 4.5), height + 1.25 + higher)
    axes = figure.subplots()
    axes.set_gid(on_page_only("prior"))
    maps.draw(axes, secrets, probabilities, scale)
    if maps.is_map(secrets):
        maps.scale_bar(figure, [axes], scale, height)
    if (probabilities == 0).any():
        maps.zero_key(figure, secrets, "prior of exactly 0")
    headline(figure, prior_finding(probabilities))
    return figure


def prior_finding(prior: ArrayLike) -> str:
    """Return a sentence on the number of secrets with half of the prior, and the number of secrets that never occur."""
    probabilities = np.asarray(prior, dtype=np.float64)
    n = len(probabilities)
    half = int(np.searchsorted(np.cumsum(np.sort(probabilities)[::-1]), 0.5 - 1e-12)) + 1
    finding = f"Half of the prior is on {half} of {n} secrets" if n > 1 else "There is one secret only"
    impossible = int((probabilities == 0).sum())
    if impossible:
        finding += f"; {impossible} never occur" if impossible > 1 else "; one never occurs"
    return finding


def outputs_picture(
    matrix: ArrayLike,
    prior: ArrayLike,
    secrets: Domain | None = None,
    observables: Domain | None = None,
    count: int = _MOST_PANELS,
) -> Figure:
    """Show the rows p(·|s) of a channel (n, m) for the `count` most likely secrets; each panel marks its secret."""
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    chosen = most_likely(probabilities, count).tolist()
    rows = channel[chosen]
    scale = probability_scale(rows, "probability of the answer, p(o|s)" if maps.is_map(observables) else "p(o|s)")
    panels = [
        Panel(
            observables,
            channel[index],
            f"{secret_title(secrets, index)}, prior {percent(probabilities[index])}",
            f"row-{index}",
            _own_place(secrets, observables, index),
            _place_elsewhere(secrets, observables, index),
        )
        for index in chosen
    ]
    zero = "never answered" if (rows == 0).any() else ""
    return panels_picture(panels, scale, outputs_finding(rows), zero)


@in_report_style
def panels_picture(panels: Sequence[Panel], scale: Scale, finding: str, zero: str = "") -> Figure:
    """Show several panels on one scale; `zero` is the legend's text for the symbol of the value 0."""
    domain, number = panels[0].domain, len(panels)
    columns = abreast(2 if number == 4 else min(3, number))
    lines = math.ceil(number / columns)
    limit = fitting((_WIDTH - 1.2) / columns, 0.3)
    width, height = map(max, zip(*(maps.panel_size(each.domain, min(limit, 4.2), 3.2) for each in panels), strict=True))
    if maps.kind(domain) == "labels" and domain is not None:
        height += 0.3
    wider, higher = maps.bar_room(domain, lines * height)
    figure = new_figure(max(columns * width + 0.2 + wider, 4.5), lines * (height + 0.3) + 0.75 + higher)
    # Panels that the page arranges cannot share axes: each must have all labels.
    alike = all(each.domain is domain for each in panels) and not is_slim()
    axes = figure.subplots(lines, columns, squeeze=False, sharex=alike, sharey=alike)
    for shown, panel in zip(axes.flat, panels, strict=False):
        shown.set_gid(on_page_only(panel.name))
        maps.draw(shown, panel.domain, panel.values, scale, mark=panel.mark, ticks=False)
        if panel.cross is not None:
            for colour, thickness, size in (("black", 4.0, 9), ("white", 1.8, 8)):
                style: dict[str, Any] = {"color": colour, "markersize": size, "markeredgewidth": thickness}
                shown.plot(*panel.cross, "x", zorder=6, clip_on=False, gid=on_page_only("mark"), **style)
        shown.set_title(panel.title, loc="left", fontsize=9)
    used = list(axes.flat[:number])
    for shown in axes.flat[number:]:
        shown.set_visible(False)
    for shown in used if alike else ():
        shown.label_outer()
    for shown in used[-columns:]:
        # Label the lowest panel of each column, even if the last row has no panel in this column.
        shown.tick_params(axis="x", labelbottom=True)
        shown.xaxis.label.set_visible(True)
    if maps.is_map(domain):
        maps.scale_bar(figure, used, scale, lines * height)
    if zero:
        maps.zero_key(figure, domain, zero)
    headline(figure, finding)
    return figure


def outputs_finding(rows: ArrayLike) -> str:
    """Return a sentence on the number of observables over which the rows (k, m) of the likeliest secrets spread."""
    shown = np.asarray(rows, dtype=np.float64)
    spread = np.exp(_entropy(shown))
    low, high = short(float(spread.min()), 2), short(float(spread.max()), 2)
    over = low if low == high else f"{low} to {high}"
    subject = "The answer spreads" if len(shown) == 1 else f"For the {len(shown)} likeliest secrets, answers spread"
    return f"{subject} over {over} of {shown.shape[1]} observables"


@in_report_style
def error_picture(per_secret: ArrayLike, prior: ArrayLike, secrets: Domain | None = None, unit: str = "") -> Figure:
    """Show the expected error of the best attack for each secret, on a map and against the prior.

    `per_secret` (n,) is E_s, the error expected if the secret is s; `prior` (n,) is the adversary's prior.
    """
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    unit = plain(unit)
    mean = float(probabilities @ errors)
    short_label = f"expected error ({unit})" if unit else "expected error"
    label = f"adversary's {short_label}" if maps.is_map(secrets) else short_label
    scale = error_scale(errors, label)
    width, height = maps.panel_size(secrets, fitting(4.6, 0.9), 4.2)
    higher = maps.bar_room(secrets, height)[1]
    if abreast(2) == 2:
        figure = new_figure(_WIDTH, max(height + higher, 2.6) + 1.0)
        left, right = figure.subplots(1, 2, width_ratios=[width + 0.8, 3.0])
    else:
        figure = new_figure(_WIDTH, height + higher + 3.4)
        left, right = figure.subplots(2, 1, height_ratios=[height + higher, 2.2])
    left.set_gid(on_page_only("error"))
    right.set_gid(on_page_only("scatter"))
    maps.draw(left, secrets, errors, scale)
    if maps.is_map(secrets):
        maps.scale_bar(figure, [left], scale, height)
    _against_prior(right, errors, probabilities, scale, mean, unit)
    headline(figure, error_finding(errors, probabilities, unit))
    return figure


def most_likely(prior: ArrayLike, count: int = _MOST_PANELS) -> Integers:
    """Return the indices of at most `count` possible secrets, most likely first, with ties in index order."""
    probabilities = np.asarray(prior, dtype=np.float64)
    order = np.argsort(-probabilities, kind="stable")[: max(1, count)].astype(np.int64)
    return order[probabilities[order] > 0]


def _own_place(secrets: Domain | None, observables: Domain | None, index: int) -> int | None:
    """Return the index of the observable that equals the secret at `index`, or None if no observable does."""
    if secrets is None or observables is None:
        return index if secrets is observables else None
    if secrets is observables:
        return index
    if secrets.labels == observables.labels and np.array_equal(secrets.points, observables.points):
        return index
    return None


def _place_elsewhere(secrets: Domain | None, observables: Domain | None, index: int) -> tuple[float, float] | None:
    """Return coordinates of the secret at `index` if it is not an observable, but lies in the observables' plane."""
    if _own_place(secrets, observables, index) is not None or secrets is None or observables is None:
        return None
    alike = secrets.unit == observables.unit and secrets.geographic == observables.geographic
    if not maps.is_map(observables) or secrets.points.shape[1] != 2 or not alike:
        return None
    x, y = secrets.points[index].tolist()
    return x, y


def name_of(domain: Domain | None, index: int) -> str:
    """Return the name of a member: its label or number, with "cell" before a number of a grid cell.

    >>> name_of(Domain.grid(2, 1, 2.0, 1.0), 1), name_of(Domain.from_labels(["a", "b"]), 1)
    ('cell 1', 'b')
    """
    if domain is None:
        return str(index)
    cell = "cell " if domain.cells is not None and domain.labels[index] == str(index) else ""
    return cell + clip(domain.labels[index], 34)


def secret_title(domain: Domain | None, index: int) -> str:
    """Return the title of a secret's panel."""
    if not is_on_page():
        return f"secret {clip(domain.labels[index], 34) if domain is not None else index}"
    name = name_of(domain, index)
    return f"{name[0].upper()}{name[1:]}" if name.startswith("cell ") else f"Secret {name}"


def _entropy(rows: Floats) -> Floats:
    """Return the entropy of each row, in nats."""
    logarithms = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    entropy: Floats = -(rows * logarithms).sum(axis=1)
    return entropy


def _against_prior(axes: Axes, errors: Floats, prior: Floats, scale: Scale, mean: float, unit: str) -> None:
    positive = prior > 0
    axes.scatter(
        prior[positive],
        errors[positive],
        s=18,
        c=errors[positive],
        norm=scale.norm,
        cmap=scale.cmap,
        edgecolor=MUTED,
        linewidth=0.4,
        zorder=3,
        rasterized=len(errors) > 400 and not is_on_page(),
        clip_on=False,
        gid=on_page_only("values"),
    )
    spread = prior[positive].max() / prior[positive].min()
    if spread > 30:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=5))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, prior.max() * 1.06)
        axes.xaxis.set_major_locator(round_ticks(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.axhline(mean, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    measured = short(mean) + (f" {unit}" if unit else "")
    if is_on_page():
        said = f"Expected error against prior; dashed: the mean, {measured}"
        axes.set_title(textwrap.fill(said, _NARROW_LINE), loc="left")
    axes.annotate(
        f"mean\n{measured}",
        (1.0, mean),
        xycoords=("axes fraction", "data"),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        annotation_clip=False,
    )
    axes.set_ylim(0, (errors.max() or 1.0) * 1.05)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.set_xlabel("prior probability" + (" (log scale)" if spread > 30 else ""))
    axes.set_ylabel(f"expected error ({unit})" if unit else "expected error")
    axes.grid(axis="y")


def error_finding(per_secret: ArrayLike, prior: ArrayLike, unit: str = "") -> str:
    """Return a sentence on the mean error of the best attack, and on secrets whose error is below half the mean."""
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    mean = float(probabilities @ errors)
    if mean == 0:
        return "The best attack is never wrong: answers reveal the secret"
    close = float(probabilities[errors < mean / 2].sum())
    measured = short(mean) + (f" {unit}" if unit else "")
    if close == 0:
        return f"The best attack is off by {measured} on average, and by at least half of that for every secret"
    said = f"The best attack is off by {measured} on average"
    return f"{said}, but by less than half of that for {percent(close)} of the prior"
