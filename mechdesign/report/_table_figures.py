"""Figures of a release from a table: counts, distribution functions, ranges and clusters, with their intervals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import require_kind
from mechdesign.model._words import clip, short
from mechdesign.report._maps import round_ticks
from mechdesign.report._style import ACCENT, INK, MUTED, abreast, headline, in_report_style, new_figure
from mechdesign.tables._queries._cumulative_release import CumulativeRelease, NamedQuantile, NamedRange
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import Release

_WIDTH = 8.0
# This colour is distinguishable from the accent with any colour vision.
_SECOND = "#D55E00"
# Maximal number of queries that are shown by name.
_NAMED = 40
# Maximal number of bars; more are drawn as a line with a band.
_BARS = 150
# Maximal number of points of a line, which is finer than the resolution of the figure.
_POINTS = 2000
_PAIRS = 6
# Largest number of values between which steps are drawn; with more values, steps would be invisible.
_STEPS = 400


def release(release: Release) -> Figure:
    """Show a release from a table: its clusters, its distribution function, or its answers with their intervals.

    Args:
        release: A release from a table.

    Returns:
        The figure.

    Raises:
        InputError: If `release` is not a release from a table.

    Example:
        >>> from mechdesign.tables import Cumulative, Domain, Policy
        >>> policy = Policy.threshold(Domain({"age": range(5)}), 1)
        >>> found = Cumulative().release(policy=policy, counts=[5, 0, 0, 7, 1], epsilon=100, rng=1)
        >>> release(found).axes[0].get_ylabel()
        'share of records'
    """
    require_kind(release, Release, "release", "a release from a table")
    if isinstance(release, ClusteringRelease):
        return clusters_picture(release)
    return cdf_picture(release) if isinstance(release, CumulativeRelease) else answers_picture(release)


@in_report_style
def answers_picture(release: Release) -> Figure:
    """Show answers with their intervals: over the values of a numeric attribute, or one query per line."""
    along = _numbers(next(iter(release.labels.values()))) if len(release.labels) == 1 else None
    name = next(iter(release.labels))
    sure = _percent(release)
    if along is not None and len(along) > 2:
        figure = new_figure(_WIDTH, 3.6)
        axes = figure.subplots()
        if len(along) <= _BARS:
            _bars(axes, along, release)
        else:
            _band(axes, along, release)
        axes.axhline(0, color=MUTED, linewidth=0.6)
        axes.set_xlabel(clip(name, 40))
        axes.set_ylabel(_name_answers(release))
        _plain_numbers(axes, both=True)
        headline(figure, f"{len(release):,} answers with their {sure} intervals")
        return figure
    order = _largest(release.answers)
    names = [_name(release, int(index)) for index in order]
    columns = (release.answers[order], release.low[order], release.high[order])
    shown = "" if len(order) == len(release) else f"the {len(order)} largest of "
    title = f"{shown}{len(release):,} answers with their {sure} intervals".capitalize()
    return _queries(names, *columns, title, _name_answers(release))


@in_report_style
def ranges_picture(ranges: Sequence[NamedRange]) -> Figure:
    """Show the number of records in each range, with its interval."""
    chosen = ranges[:_NAMED]
    names = [f"{clip(each.first)} to {clip(each.last)}" for each in chosen]
    values, low, high = (
        np.array([getattr(each.estimate, column) for each in chosen]) for column in ("value", "low", "high")
    )
    sure = f"{float(chosen[0].estimate.confidence):.4g}"
    shown = "" if len(chosen) == len(ranges) else f"the first {len(chosen)} of "
    title = f"{shown}{len(ranges)} range{'s' * (len(ranges) > 1)}, each with its interval of confidence {sure}"
    return _queries(names, values, low, high, title.capitalize(), "records")


@in_report_style
def cdf_picture(release: CumulativeRelease, quantiles: Sequence[NamedQuantile] = ()) -> Figure:
    """Show the share of records at or below each value, with a band, and quantiles if given."""
    name, labels = next(iter(release.labels.items()))
    found = _numbers(labels)
    along = np.arange(len(release), dtype=np.float64) if found is None else found
    keep = _thin_indices(len(along))
    figure = new_figure(_WIDTH, 3.8)
    axes = figure.subplots()
    share = release.records
    stepped = len(along) <= _STEPS
    low, high = (ends[keep] / share for ends in (release.low, release.high))
    axes.fill_between(along[keep], low, high, step="post" if stepped else None, color=ACCENT, alpha=0.22, linewidth=0)
    drawstyle = "steps-post" if stepped else "default"
    axes.plot(along[keep], release.answers[keep] / share, color=ACCENT, linewidth=1.4, drawstyle=drawstyle)
    for each in quantiles:
        at, left, right = (_position(text, along, labels) for text in (each.value, each.low, each.high))
        height = float(each.probability)
        axes.plot([left, right], [height, height], color=_SECOND, linewidth=1.6, solid_capstyle="butt", zorder=4)
        axes.plot(at, height, "o", color=_SECOND, markersize=4.5, zorder=5)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(clip(name, 40))
    axes.set_ylabel("share of records")
    axes.grid(axis="y")
    _plain_numbers(axes)
    told = f"Distribution function of {share:,} records, with {_percent(release)} intervals"
    headline(figure, told + (f" and {len(quantiles)} quantile{'s' * (len(quantiles) > 1)}" if quantiles else ""))
    return figure


@in_report_style
def clusters_picture(release: ClusteringRelease) -> Figure:
    """Show centroids over pairs of attributes, as dots as large as the clusters, or over many attributes as lines."""
    centroids, names = release.centroids, release.attributes
    sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
    title = f"{len(centroids)} centroids, as large as the released sizes of their clusters"
    pairs = list(itertools.combinations(range(len(names)), 2))
    if len(names) == 1:
        figure = new_figure(_WIDTH, 1.9)
        axes = figure.subplots()
        _dots(axes, centroids[:, 0], np.zeros(len(centroids)), sizes)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylim(-1, 1)
        axes.set_xlabel(clip(names[0], 40))
        _plain_numbers(axes)
    elif len(pairs) <= _PAIRS:
        columns = abreast(min(len(pairs), 3))
        rows = -(-len(pairs) // columns)
        figure = new_figure(min(_WIDTH, 1.2 + 3.4 * columns), 0.8 + 2.7 * rows)
        panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for panel, (first, second) in zip(panels, pairs, strict=False):
            _dots(panel, centroids[:, first], centroids[:, second], sizes)
            panel.set_xlabel(clip(names[first], 24))
            panel.set_ylabel(clip(names[second], 24))
            _plain_numbers(panel, both=True)
    else:
        figure = new_figure(_WIDTH, 3.6)
        axes = figure.subplots()
        for number, centroid in enumerate(centroids):
            axes.plot(centroid, color=ACCENT, linewidth=1.2, alpha=0.8, marker="o", markersize=4)
            axes.annotate(
                str(number), (len(names) - 1, centroid[-1]), xytext=(6, -3), textcoords="offset points", size=8.5
            )
        axes.set_xticks(range(len(names)), [clip(name, 12) for name in names])
        title = f"{len(centroids)} centroids, attribute by attribute"
    headline(figure, title)
    return figure


def _queries(names: Sequence[str], values: Floats, low: Floats, high: Floats, title: str, what: str) -> Figure:
    """Draw one answer per line, the first on top."""
    figure = new_figure(_WIDTH, 1.3 + 0.27 * len(names))
    axes = figure.subplots()
    places = np.arange(len(names))
    axes.hlines(places, low, high, color=ACCENT, linewidth=3.5, alpha=0.35)
    axes.plot(values, places, "o", color=ACCENT, markersize=4.5)
    axes.set_yticks(places, [clip(name, 44) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(what)
    axes.grid(axis="x")
    _plain_numbers(axes)
    headline(figure, title)
    return figure


def _name_answers(release: Release) -> str:
    return "records" if release.description.what.startswith("histogram") else "answer"


def _bars(axes: Axes, along: Floats, release: Release) -> None:
    width = 0.8 * float(np.diff(np.sort(along)).min())
    axes.bar(along, release.answers, width=width, color=ACCENT, alpha=0.45, linewidth=0)
    axes.vlines(along, release.low, release.high, color=INK, linewidth=0.9)


def _band(axes: Axes, along: Floats, release: Release) -> None:
    keep = _thin_indices(len(along))
    axes.fill_between(along[keep], release.low[keep], release.high[keep], color=ACCENT, alpha=0.22, linewidth=0)
    axes.plot(along[keep], release.answers[keep], color=ACCENT, linewidth=0.8)


def _dots(axes: Axes, x: Floats, y: Floats, sizes: Floats) -> None:
    area = np.clip(sizes, 0, None) / max(float(sizes.max(initial=0)), 1.0)
    axes.scatter(x, y, s=40 + 500 * area, color=ACCENT, alpha=0.35, linewidth=0)
    axes.scatter(x, y, s=14, color=INK, linewidth=0)
    for number, place in enumerate(zip(x, y, strict=True)):
        axes.annotate(str(number), place, xytext=(6, 5), textcoords="offset points", size=8.5)
    axes.margins(0.18)
    axes.grid(True)


def _plain_numbers(axes: Axes, both: bool = False) -> None:
    for axis in (axes.xaxis, axes.yaxis)[: 1 + both]:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]) if axis is axes.xaxis else round_ticks(6))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _numbers(labels: NDArray[Any]) -> Floats | None:
    """Return labels as numbers, or None if one is not a number or two are equal."""
    try:
        found = np.asarray(labels, dtype=np.float64)
    except ValueError:
        return None
    return found if np.isfinite(found).all() and len(np.unique(found)) == len(found) else None


def _position(text: str, along: Floats, labels: NDArray[Any]) -> float:
    try:
        return float(text)
    except ValueError:
        return float(along[[str(label) for label in labels].index(text)])


def _name(release: Release, index: int) -> str:
    columns = list(release.labels)
    if columns == ["first", "last"]:
        return f"{release.labels['first'][index]} to {release.labels['last'][index]}"
    if len(columns) == 1:
        return str(release.labels[columns[0]][index])
    return ", ".join(f"{name} = {release.labels[name][index]}" for name in columns)


def _largest(answers: Floats) -> Integers:
    """Return the indices of the queries that are shown: all in order, or those with the largest answers."""
    if len(answers) <= _NAMED:
        return np.arange(len(answers))
    return np.argsort(-answers, kind="stable")[:_NAMED]


def _thin_indices(size: int) -> Integers:
    return np.unique(np.linspace(0, size - 1, min(size, _POINTS)).round().astype(np.int64))


def _percent(release: Release) -> str:
    return f"{short(100 * float(release.description.confidence), 4)} %"
