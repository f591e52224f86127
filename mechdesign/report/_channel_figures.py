"""Prior, answers, errors, costs, requirements.

Figures are plain `matplotlib.figure.Figure` values, apart from pyplot and from the user's settings; save them with
``figure.savefig``. Titles say what is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.data._maps import Outline
from mechdesign.measures._baselines import NO_INFORMATION, Reference
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import answers
from mechdesign.model._words import clip, percent, plain, power, relative, short
from mechdesign.report import _maps as maps
from mechdesign.report._explorer import (
    WIDTH,
    Explored,
    Panel,
    View,
    data_block,
    explore,
    explorer,
    framed,
    key,
    name_of,
    outline_path,
    panel,
    panels,
    view,
)
from mechdesign.report._maps import round_ticks
from mechdesign.report._scales import Scale, error_scale, levels, probability_scale, ticks
from mechdesign.report._style import ACCENT, INK, MUTED, RULE, drawn, headline, new_figure

_DOTS_WIDTH = 9.0


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
    figure = new_figure(_DOTS_WIDTH, 0.34 * len(points) + 1.1)
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
    figure = new_figure(_DOTS_WIDTH, 0.45 * max(n, 1) + 1.15)
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


def cost_bars(
    cost: float, lower_bound: float, gap: float, references: Sequence[Reference], unit: str, caption: str
) -> str:  # fmt: skip
    """Return the figure of the cost of a channel between its lower bound and the costs of other mechanisms."""
    note = f"relative gap {power(gap)}" if gap > 0 else "no gap"
    points = [
        ("lower bound: no channel costs less", lower_bound, note, True),
        ("this channel, certified", cost, "", True),
    ]
    points += [(item.name, item.cost, item.note, False) for item in references]
    points.sort(key=lambda point: point[1])
    largest = max(point[1] for point in points if math.isfinite(point[1])) or 1.0
    digits = min(12, max(4, 1 - math.floor(math.log10(gap)))) if 0 < gap < 1 else 6
    rows = []
    for name, value, said, ours in points:
        number = short(value, digits if ours else 4) + (f" {unit}" if unit else "")
        rows.append(
            f'<li{" class=ours" if ours else ""}><span class="name">{_text(name)}</span>'
            f'<span class="track"><i style="width:{100 * min(max(value, 0.0), largest) / largest:.2f}%"></i></span>'
            f'<span class="value">{_text(number)}{f" <small>({_text(said)})</small>" if said else ""}</span></li>'
        )
    nothing = next((item.cost for item in references if item.name == NO_INFORMATION), None)
    body = ['<ul class="costs">', *rows, "</ul>"]
    return framed("cost", _bracket(cost, lower_bound, gap, nothing), body, caption)


def requirement_bars(requirements: Sequence[Met], caption: str) -> str:
    """Return the figure of what was realised of each requirement, as a part of what was asked for."""
    ratios = [_ratio(item) for item in requirements]
    end = max([1.25, *(1.1 * ratio for ratio in ratios if math.isfinite(ratio) and ratio < 4)])
    rows = []
    for item, ratio in zip(requirements, ratios, strict=True):
        start, stop = (1.0, end) if item.at_least else (0.0, 1.0)
        beyond = " beyond" if ratio > end else ""
        asked = f"{short(item.realised, 6)}, {'at least' if item.at_least else 'at most'} {short(item.nominal, 6)} "
        asked += "asked for" if item.holds else "asked for: fails"
        rows.append(
            f'<li{"" if item.holds else " class=broken"}><span class="name">{_text(item.name)}</span>'
            f'<span class="track"><b style="left:{100 * start / end:.2f}%;width:{100 * (stop - start) / end:.2f}%"></b>'
            f'<u style="left:{100 / end:.2f}%"></u>'
            f'<i class="dot{beyond}" style="left:{100 * min(ratio, end) / end:.2f}%"></i></span>'
            f'<span class="value">{_text(asked)}</span></li>'
        )
    body = ['<ul class="costs met">', *rows, "</ul>"]
    return framed("requirements", _how_met(requirements, ratios), body, caption)


def _text(given: str) -> str:
    return escape(plain(given))


_WIDTH = 9.0
_MOST_PANELS = 6


@drawn
def prior_picture(prior: ArrayLike, secrets: Domain | None = None) -> Figure:
    """Show the prior (n,): where secrets are likely, unlikely, and impossible."""
    probabilities = np.asarray(prior, dtype=np.float64)
    scale = probability_scale(probabilities, "prior probability")
    width, height = maps.panel_size(secrets, 6.6, 3.8)
    wider, higher = maps.bar_room(secrets, height)
    figure = new_figure(max(width + 0.9 + wider, 4.5), height + 1.25 + higher)
    axes = figure.subplots()
    maps.draw(axes, secrets, probabilities, scale)
    if _is_map(secrets):
        maps.scale_bar(figure, [axes], scale, height)
    if (probabilities == 0).any():
        maps.zero_key(figure, secrets, "prior of exactly 0")
    headline(figure, prior_finding(probabilities))
    return figure


def prior_finding(prior: ArrayLike) -> str:
    """Say on how many secrets half of a prior is, and how many never occur."""
    probabilities = np.asarray(prior, dtype=np.float64)
    n = len(probabilities)
    half = int(np.searchsorted(np.cumsum(np.sort(probabilities)[::-1]), 0.5 - 1e-12)) + 1
    finding = f"Half of the prior is on {half} of {n} secrets" if n > 1 else "There is one secret only"
    impossible = int((probabilities == 0).sum())
    if impossible:
        finding += f"; {impossible} never occur" if impossible > 1 else "; one never occurs"
    return finding


@drawn
def outputs_picture(
    matrix: ArrayLike,
    prior: ArrayLike,
    secrets: Domain | None = None,
    observables: Domain | None = None,
    count: int = _MOST_PANELS,
) -> Figure:
    """Show the rows p(·|s) of a channel (n, m) for the `count` most likely secrets, each marking its own place."""
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    chosen = most_likely(probabilities, count)
    rows = channel[chosen]
    scale = probability_scale(rows, "probability of the answer, p(o|s)" if _is_map(observables) else "p(o|s)")
    columns = min(3, len(chosen)) if len(chosen) != 4 else 2
    lines = math.ceil(len(chosen) / columns)
    limit = (_WIDTH - 1.2) / columns
    width, height = maps.panel_size(observables, min(limit, 4.2), 3.2)
    if maps.kind(observables) == "labels" and observables is not None:
        height += 0.3
    wider, higher = maps.bar_room(observables, lines * height)
    figure = new_figure(max(columns * width + 0.2 + wider, 4.5), lines * (height + 0.3) + 0.75 + higher)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for shown, index in zip(axes.flat, chosen, strict=False):
        mark = _own_place(secrets, observables, int(index))
        maps.draw(shown, observables, channel[index], scale, mark=mark, ticks=False)
        _mark_elsewhere(shown, secrets, observables, int(index), mark)
        name = clip(secrets.labels[index], 34) if secrets is not None else str(index)
        shown.set_title(f"secret {name}, prior {percent(probabilities[index])}", loc="left", fontsize=9)
    used = list(axes.flat[: len(chosen)])
    for shown in axes.flat[len(chosen) :]:
        shown.set_visible(False)
    for shown in used:
        shown.label_outer()
    for shown in used[-columns:]:
        # The lowest panel of each column, also above one that is not used.
        shown.tick_params(axis="x", labelbottom=True)
        shown.xaxis.label.set_visible(True)
    if _is_map(observables):
        maps.scale_bar(figure, used, scale, lines * height)
    if (rows == 0).any():
        maps.zero_key(figure, observables, "never answered")
    headline(figure, outputs_finding(rows))
    return figure


def outputs_finding(rows: ArrayLike) -> str:
    """Say over how many observables the answers spread, for the rows (k, m) of the likeliest secrets."""
    shown = np.asarray(rows, dtype=np.float64)
    spread = np.exp(_entropy(shown))
    low, high = short(float(spread.min()), 2), short(float(spread.max()), 2)
    over = low if low == high else f"{low} to {high}"
    subject = "The answer spreads" if len(shown) == 1 else f"For the {len(shown)} likeliest secrets, answers spread"
    return f"{subject} over {over} of {shown.shape[1]} observables"


@drawn
def error_picture(per_secret: ArrayLike, prior: ArrayLike, secrets: Domain | None = None, unit: str = "") -> Figure:
    """Show where the adversary still errs: the expected error of the best attack, for each secret and by its prior.

    `per_secret` (n,) is E_s, the error expected when the secret is s; `prior` (n,) is the adversary's.
    """
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    mean = float(probabilities @ errors)
    short_label = f"expected error ({unit})" if unit else "expected error"
    label = f"adversary's {short_label}" if _is_map(secrets) else short_label
    scale = error_scale(errors, label)
    width, height = maps.panel_size(secrets, 4.6, 4.2)
    higher = maps.bar_room(secrets, height)[1]
    figure = new_figure(_WIDTH, max(height + higher, 2.6) + 1.0)
    left, right = figure.subplots(1, 2, width_ratios=[width + 0.8, 3.0])
    maps.draw(left, secrets, errors, scale)
    if _is_map(secrets):
        maps.scale_bar(figure, [left], scale, height)
    _against_prior(right, errors, probabilities, scale, mean, unit)
    headline(figure, error_finding(errors, probabilities, unit))
    return figure


def most_likely(prior: ArrayLike, count: int = _MOST_PANELS) -> Integers:
    """Return the indices of at most `count` secrets that can occur, most likely first, the first of equals first."""
    probabilities = np.asarray(prior, dtype=np.float64)
    order = np.argsort(-probabilities, kind="stable")[: max(1, count)].astype(np.int64)
    return order[probabilities[order] > 0]


def _is_map(domain: Domain | None) -> bool:
    return maps.kind(domain) in ("grid", "points")


def _own_place(secrets: Domain | None, observables: Domain | None, index: int) -> int | None:
    """Return the observable that is the secret itself, if there is one."""
    if secrets is None or observables is None:
        return index if secrets is observables else None
    if secrets is observables:
        return index
    if secrets.labels == observables.labels and np.array_equal(secrets.points, observables.points):
        return index
    return None


def _mark_elsewhere(
    axes: Axes, secrets: Domain | None, observables: Domain | None, index: int, mark: int | None
) -> None:
    """Mark the place of a secret on a map of other observables, where both are in the same plane."""
    if mark is not None or secrets is None or observables is None or not _is_map(observables):
        return
    if (
        secrets.points.shape[1] == 2
        and secrets.unit == observables.unit
        and secrets.geographic == observables.geographic
    ):
        x, y = secrets.points[index]
        for colour, thickness, size in (("black", 4.0, 9), ("white", 1.8, 8)):
            axes.plot(x, y, "x", color=colour, markersize=size, markeredgewidth=thickness, zorder=6, clip_on=False)


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
        rasterized=len(errors) > 400,
        clip_on=False,
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
    axes.annotate(
        f"mean\n{short(mean)}" + (f" {unit}" if unit else ""),
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
    """Say how far the best attack errs on average, and how often by much less."""
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    mean = float(probabilities @ errors)
    if mean == 0:
        return "The best attack is never wrong: answers give the secret away"
    close = float(probabilities[errors < mean / 2].sum())
    measured = short(mean) + (f" {unit}" if unit else "")
    if close == 0:
        return f"The best attack errs by {measured} on average, nowhere by less than half of that"
    return f"The best attack errs by {measured} on average, by less than half of that for {percent(close)} of the prior"


_HEIGHT = 800.0
# Priors that lie further apart than this are on a logarithmic axis.
_WIDE = 30.0


def against_prior(errors: Floats, prior: Floats, scale: Scale, unit: str) -> str:
    """Return the picture: a point for each secret that can occur, and the mean as a line."""
    possible = np.flatnonzero(prior > 0)
    mean = float(prior @ errors)
    top = (float(errors.max()) or 1.0) * 1.05
    places, below, logarithmic = _across(prior[possible])
    lines = [f'<path class="rules" d="{_rules(scale, top)}"/>', '<g class="dots">']
    for index, x, level in zip(
        possible.tolist(), places.tolist(), levels(scale, errors[possible]).tolist(), strict=True
    ):
        y = _HEIGHT * (1 - errors[index] / top)
        lines.append(f'<circle class="{scale.hue}{level}" cx="{x:.1f}" cy="{y:.1f}" r="13"/>')
    level = _HEIGHT * (1 - mean / top)
    lines += ["</g>", f'<path class="mean" d="M0 {level:.1f}h{WIDTH:g}"/>']
    measured = short(mean) + (f" {plain(unit)}" if unit else "")
    label = escape(f"Expected error against prior for {len(possible)} secrets; the mean is {measured}")
    side = "".join(
        f'<span style="bottom:{100 * at * float(scale.norm.vmax or 1.0) / top:.1f}%">{escape(name)}</span>'
        for at, name in ticks(scale)
    )
    longest = max((name for _, name in ticks(scale)), key=len, default="")
    foot = "".join(f'<span style="left:{100 * at:.1f}%">{escape(name)}</span>' for at, name in below)
    axis = "prior probability" + (" (log scale)" if logarithmic else "")
    inside = "\n".join([
        f'<p class="title">Expected error against prior; dashed: the mean, {escape(measured)}</p>',
        '<div class="plot scatter">',
        f'<svg viewBox="0 0 {WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{label}">',
        *lines,
        "</svg>",
        f'<div class="side" aria-hidden="true"><b>{escape(longest)}</b>{side}</div>',
        f'<div class="below" aria-hidden="true">{foot}</div>',
        "</div>",
        f'<p class="axis">{axis}</p>',
    ])  # fmt: skip
    return f'<div class="panel">\n{inside}\n</div>'


def _across(prior: Floats) -> tuple[Floats, list[tuple[float, str]], bool]:
    """Return where priors are along the lower side, its ticks, and whether equal ratios have equal distances."""
    low, high = float(prior.min()), float(prior.max())
    if high / low <= _WIDE:
        end = high * 1.06
        values = np.asarray(round_ticks(4).tick_values(0.0, end)).tolist()
        return prior / end * WIDTH, [(value / end, percent(value)) for value in values if value <= end], False
    start, reach = math.log10(low) - 0.08, math.log10(high / low) + 0.16
    step = max(1, math.ceil(reach / 4))
    decades = range(math.ceil(start), math.floor(start + reach) + 1, step)
    return (np.log10(prior) - start) / reach * WIDTH, [((d - start) / reach, percent(10.0**d)) for d in decades], True


def _rules(scale: Scale, top: float) -> str:
    end = float(scale.norm.vmax or 1.0)
    return "".join(f"M0 {_HEIGHT * (1 - at * end / top):.1f}h{WIDTH:g}" for at, _ in ticks(scale))


@dataclass(frozen=True, eq=False)
class Pictures:
    """The figures of one page; each method takes the caption and returns HTML."""

    problem: Problem
    matrix: Floats
    error: Floats
    unit: str
    secrets: View
    observables: View
    explored: Explored
    outlines: tuple[str, str]
    data: str = field(repr=False)

    def prior(self, caption: str) -> str:
        """Return the map, or the bars, of the prior."""
        prior, shown = self.problem.prior, self.secrets
        scale = probability_scale(prior, "prior probability")
        zero = "prior of exactly 0" if (prior == 0).any() else ""
        picture = Panel(shown, prior, scale, "prior probability", shows="prior", outline=self.outlines[0])
        return framed("prior", prior_finding(prior), [panel(picture), *_key(shown, picture, zero)], caption)

    def answers(self, caption: str) -> str:
        """Return a picture of the answers of each of the most likely secrets, all on one scale."""
        prior, secrets = self.problem.prior, self.problem.secrets
        chosen = most_likely(prior)
        rows = self.matrix[chosen]
        scale = probability_scale(rows, "probability of the answer, p(o|s)")
        shown = [
            Panel(
                self.observables,
                self.matrix[index],
                scale,
                "probability of each answer",
                f"{_title(secrets, index)}, prior {percent(prior[index])}",
                f"row {index}",
                "secrets" if self.explored.same else "answers",
                _own_place(secrets, self.observables.domain, index) if not self.explored.same else index,
                self._cross(index),
                self.outlines[1],
            )
            for index in chosen.tolist()
        ]
        zero = "never answered" if (rows == 0).any() else ""
        return framed(
            "answers", outputs_finding(rows), [panels(shown), *_key(self.observables, shown[0], zero)], caption
        )

    def explorer(self) -> str:
        """Return the pictures of a chosen secret."""
        return explorer(self.explored, self.outlines)

    def errors(self, caption: str) -> str:
        """Return where the adversary still errs: for each secret, and against the prior."""
        prior = self.problem.prior
        label = "adversary’s expected error" + (f" ({plain(self.unit)})" if self.unit else "")
        scale = error_scale(self.error, label)
        picture = Panel(self.secrets, self.error, scale, label, shows="error", outline=self.outlines[0])
        left = "\n".join([panel(picture), *_key(self.secrets, picture, "")])
        right = against_prior(self.error, prior, scale, self.unit)
        body = ['<div class="pair">', f"<div>\n{left}\n</div>", right, "</div>"]
        return framed("error", error_finding(self.error, prior, self.unit), body, caption)

    def _cross(self, index: int) -> tuple[float, float] | None:
        """Return the place of a secret on a map of other observables, where both are in the same plane."""
        secrets, observables = self.problem.secrets, self.observables.domain
        if self.explored.same or secrets is None or observables is None or not self.observables.is_map:
            return None
        if _own_place(secrets, observables, index) is not None or not _one_plane(secrets, observables):
            return None
        ((x, y),) = self.observables.onto(secrets.points[[index]]).tolist()
        return x, y


def pictures(
    problem: Problem, channel: Channel, error: ArrayLike, unit: str, outline: Outline | None = None
) -> Pictures:
    """Return the pictures of a channel; `error` (n,) is that of the best attack for each secret, in `unit`.

    An `outline` is drawn on every map.
    """
    n, m = channel.numerators.shape
    domain = answers(problem)
    secrets, observables = view(problem.secrets, n), view(domain, m)
    same = domain is problem.secrets if problem.secrets is not None else domain is None and n == m
    errors = np.asarray(error, dtype=np.float64)
    first = int(most_likely(problem.prior, 1)[0])
    explored = explore(secrets, observables, channel.matrix, problem.prior, first, same)
    paths = {"outline-secrets": outline_path(outline, secrets), "outline-answers": outline_path(outline, observables)}
    drawn = "".join(
        f'<path id="{name}" vector-effect="non-scaling-stroke" d="{path}"/>' for name, path in paths.items() if path
    )
    names = tuple(name if path else "" for name, path in paths.items())
    data = (f'<svg class="defs" aria-hidden="true"><defs>{drawn}</defs></svg>\n' if drawn else "") + data_block(
        explored, {"prior": (problem.prior, "%"), "error": (errors, plain(unit))}
    )
    return Pictures(problem, channel.matrix, errors, unit, secrets, observables, explored, (names[0], names[1]), data)


def _key(shown: View, picture: Panel, zero: str) -> list[str]:
    return [key(picture.scale, zero, shown.form == "points")] if shown.is_map else []


def _title(domain: Domain | None, index: int) -> str:
    name = name_of(domain, index)
    return f"{name[0].upper()}{name[1:]}" if name.startswith("cell ") else f"Secret {name}"


def _one_plane(first: Domain, second: Domain) -> bool:
    return first.points.shape[1] == 2 and first.unit == second.unit and first.geographic == second.geographic
