"""Figures of released traces: maps, and series over the steps."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.model._domain import Domain
from mechdesign.model._words import clip, short
from mechdesign.report import _maps as maps
from mechdesign.report._maps import borders, extent, frame, in_unit
from mechdesign.report._style import (
    ACCENT,
    INK,
    MUTED,
    RULE,
    abreast,
    figure_bytes,
    fitting,
    headline,
    in_report_style,
    is_narrow,
    new_figure,
    put_legend,
)
from mechdesign.traces._adversary import degrees_of
from mechdesign.traces._released import ReleasedTrace

_WIDTH = 8.0
# This colour is distinguishable from the accent with any colour vision.
_TRUE = "#D55E00"
_STYLES: tuple[tuple[str, str], ...] = ((ACCENT, "-"), (_TRUE, "--"), (INK, ":"))
_MOST_DOTS = 60


@in_report_style
def over_time_picture(panels: Sequence[tuple[str, Mapping[str, ArrayLike]]], title: str) -> Figure:
    """Show series over the steps of a trace in stacked panels, with axes that start at zero.

    `panels` maps the label of each axis to up to three named series, each of shape (T,), T ≥ 1. Infinite values are
    left out.
    """
    figure = new_figure(_WIDTH, 2.1 * len(panels) + 0.7)
    for axes, (label, series) in zip(
        figure.subplots(len(panels), 1, sharex=True, squeeze=False).flat, panels, strict=True
    ):
        _draw_series(axes, series, last=label == panels[-1][0])
        axes.set_ylabel(label)
    _mark_steps(axes)
    headline(figure, title)
    return figure


@in_report_style
def trace_picture(
    domain: Domain, released: ArrayLike, truth: ArrayLike | None = None, places: ArrayLike | None = None
) -> Figure:
    """Show a released trace on a map; with the true trace, the figure is for its owner only.

    `released` and `truth` are states, indices into `domain`, of shape (T,). Outputs that are not states have `places`
    of shape (T, 2) instead. Domains without a map show states over the steps.
    """
    outputs = np.asarray(released, dtype=np.int64)
    states = None if truth is None else np.asarray(truth, dtype=np.int64)
    flat = maps.is_map(domain)
    if places is not None and not flat:
        raise InputError("places", "cannot be drawn", value=domain, bound="a domain in the plane")
    count = len(outputs) if places is None else len(np.asarray(places))
    if count == 0:
        raise InputError("released", "is empty", bound="at least one step")
    if not flat:
        return _over_states(domain, outputs, states)
    where = domain.points[outputs] if places is None else np.asarray(places, dtype=np.float64)
    west, east, south, north = _find_extent(domain, where if places is not None else where[:0])
    width, height = maps.fit_size((east - west) / (north - south), fitting(6.4, 0.9), 5.0)
    figure = new_figure(max(width + 0.9, 4.6), height + 1.2)
    axes = figure.subplots()
    _ground(axes, domain)
    # Repeated states are offset by small, reproducible distances, so that steps do not hide one another.
    spread = _spread(domain, count) if places is None else np.zeros((count, 2))
    if states is not None:
        _path(axes, domain.points[states] - spread, _TRUE, "true", "o")
    _path(axes, where + spread, ACCENT, "released", "s")
    # Set the limits before the frame is drawn, because the frame depends on them.
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    frame(axes, domain, ticks=True)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=8.5, ncols=abreast(3))
    steps = f"{count} step{'s' * (count > 1)}"
    key = _key(count, places is None)
    axes.set_title(textwrap.fill(key, 48) if is_narrow() else key, loc="left", fontsize=8.5, color=MUTED)
    headline(figure, f"{steps}, released and true: for their owner only" if states is not None else f"{steps} released")
    return figure


def _key(count: int, spread: bool) -> str:
    """Return the sentence that explains the colours and the offsets of a map."""
    time = "the later, the darker" if count > 1 else ""
    moved = "dots are spread within their state, so that they do not hide one another" if spread else ""
    said = "; ".join(part for part in (time, moved) if part)
    return said[:1].upper() + said[1:]


def _find_extent(domain: Domain, places: Floats) -> tuple[float, float, float, float]:
    """Return limits (west, east, south, north) that contain all places, since noise may add places outside the map."""
    west, east, south, north = extent(domain)
    if not len(places):
        return west, east, south, north
    (left, low), (right, high) = places.min(axis=0), places.max(axis=0)
    margin = 0.04 * max(max(east, right) - min(west, left), max(north, high) - min(south, low))
    return (
        min(west, float(left) - margin),
        max(east, float(right) + margin),
        min(south, float(low) - margin),
        max(north, float(high) + margin),
    )


def _draw_series(axes: Axes, series: Mapping[str, ArrayLike], last: bool) -> None:
    top = 0.0
    for (name, values), (colour, dash) in zip(series.items(), _STYLES, strict=False):
        numbers = np.asarray(values, dtype=np.float64)
        shown = np.where(np.isfinite(numbers), numbers, np.nan)
        marker = "o" if len(numbers) <= _MOST_DOTS else ""
        axes.plot(shown, color=colour, linestyle=dash, marker=marker, markersize=3, linewidth=1.3, label=name)
        top = max(top, float(np.max(numbers, where=np.isfinite(numbers), initial=0.0)))
    axes.set_ylim(0, 1.08 * top or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.grid(axis="y")
    # On a narrow screen the legend of the last panel is below the label of its axis.
    place = {"bbox_to_anchor": (0.0, -0.42)} if last and is_narrow() else {}
    put_legend(axes, handlelength=2.2, **place)


def _mark_steps(axes: Axes) -> None:
    """Label the steps along the axis, with a margin at both ends."""
    first, last = axes.get_xlim()
    axes.set_xlim(min(first, -0.5), max(last, 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axes.set_xlabel("step")


def _ground(axes: Axes, domain: Domain) -> None:
    if domain.cells is not None:
        columns, rows = borders(domain.cells)
        axes.vlines(columns, rows[0], rows[-1], color=RULE, linewidth=0.5, zorder=1)
        axes.hlines(rows, columns[0], columns[-1], color=RULE, linewidth=0.5, zorder=1)
        return
    axes.scatter(
        domain.points[:, 0], domain.points[:, 1], s=14, facecolor="none", edgecolor=MUTED, linewidth=0.7, zorder=1
    )


def _spread(domain: Domain, count: int) -> Floats:
    """Return a small offset for each step, on a spiral with the golden angle."""
    west, east, south, north = extent(domain)
    reach = 0.012 * max(east - west, north - south)
    if domain.cells is not None:
        reach = 0.3 * min(domain.cells.width / domain.cells.columns, domain.cells.height / domain.cells.rows)
    turn = np.arange(count) * np.pi * (3 - 5**0.5)
    lengths = reach * np.sqrt((np.arange(count) + 0.5) / count)
    found: Floats = np.column_stack((lengths * np.cos(turn), lengths * np.sin(turn)))
    return found


def _path(axes: Axes, places: Floats, colour: str, name: str, marker: str) -> None:
    axes.plot(places[:, 0], places[:, 1], color=colour, linewidth=0.8, alpha=0.45, zorder=2)
    # The colour is light at the first step, and full at the last.
    depths = np.linspace(0.25, 1.0, len(places)) if len(places) > 1 else np.ones(1)
    colours = [(*to_rgb(colour), depth) for depth in depths]
    axes.scatter(places[:, 0], places[:, 1], s=22, color=colours, marker=marker, linewidth=0, zorder=3)
    axes.scatter([], [], s=22, color=colour, marker=marker, linewidth=0, label=name)
    x, y = places[0]
    axes.scatter(x, y, s=90, facecolor="none", edgecolor=colour, linewidth=1.5, zorder=4, label=f"{name}, first step")


def _over_states(domain: Domain, outputs: Integers, truth: Integers | None) -> Figure:
    """Show states over the steps: at their positions along a line, or by name."""
    along = maps.kind(domain) == "line"
    heights = np.arange(domain.size, dtype=np.float64)
    if along:
        heights = domain.points[:, int(np.argmax(np.ptp(domain.points, axis=0)))]
    figure = new_figure(_WIDTH, 3.6)
    axes = figure.subplots()
    if truth is not None:
        axes.plot(heights[truth], color=_TRUE, marker="o", markersize=5, linewidth=1.0, label="true")
    axes.plot(heights[outputs], color=ACCENT, marker="s", markersize=3, linewidth=0.8, alpha=0.8, label="released")
    _mark_steps(axes)
    if along:
        axes.set_ylabel(f"position{in_unit(domain.unit)}")
    elif domain.size <= 30:
        axes.set_yticks(heights, [clip(label) for label in domain.labels])
    else:
        axes.set_ylabel("state")
    axes.grid(axis="y")
    put_legend(axes)
    steps = f"{len(outputs)} step{'s' * (len(outputs) > 1)}"
    headline(figure, f"{steps}, released and true: for their owner only" if truth is not None else f"{steps} released")
    return figure


def public_pictures(found: ReleasedTrace) -> dict[str, bytes]:
    """Return the figures that may be published, by name; `ReleasedTrace.history` lists the data they depend on."""
    files = {"over-time.svg": figure_bytes(over_time(found))}
    if has_map(found):
        files["map.svg"] = figure_bytes(trace_map(found))
    return files


def over_time(found: ReleasedTrace) -> Figure:
    """Show the degrees of protection and the expected errors of an adversary over the steps."""
    stages = [release.stage for release in found.releases]
    degrees = [stage.degrees[stage.members] for stage in stages]
    likely = [stage.prior[stage.members] / stage.prior[stage.members].sum() for stage in stages]
    least = [int(of.min()) for of in degrees]
    panels: list[tuple[str, dict[str, ArrayLike]]] = [
        ("degree of protection", {
            "of the least protected state": least,
            "expected": [float(weights @ of) for weights, of in zip(likely, degrees, strict=True)],
        }),
        (f"expected error{_in_unit(found.domain)}", {
            "from the outputs so far": found.beliefs.expected_error(found.lengths),
            "from the whole trace": found.beliefs.expected_error(found.lengths, "smoothed"),
        }),
    ]  # fmt: skip
    count = len(stages)
    title = f"{count} release{'s' * (count > 1)}, ε = {exact_text(found.composition.epsilon)} in all; " + (
        f"every state is hidden among at least {min(least)} states" if min(least) > 1 else "some state is exposed"
    )
    return over_time_picture(panels, title)


def private_files(found: ReleasedTrace, true: Integers) -> dict[str, bytes]:
    """Return the files with the true states (steps,), by name, for the owner of the trace only."""
    apart = np.sqrt(((found.places - found.domain.points[true]) ** 2).sum(axis=1))
    errors = found.beliefs.errors(true, found.lengths)
    degrees = degrees_of(found.releases, true)
    panels: list[tuple[str, dict[str, ArrayLike]]] = [
        ("degree of protection", {"of the true state": degrees}),
        (f"distance{_in_unit(found.domain)}", {
            "released from true": apart,
            "best guess from the outputs so far": errors,
            "from the whole trace": found.beliefs.errors(true, found.lengths, "smoothed"),
        }),
    ]  # fmt: skip
    unit = f" {found.domain.unit}" if found.domain.unit else ""
    title = f"For the owner only: outputs are {apart.mean():.3g}{unit} off, the best guess is {errors.mean():.3g} off"
    rows: list[Sequence[object]] = [("step", "state", "label", "distance", "degree_of_protection", "belief")]
    beliefs = found.beliefs.mass(true)
    for step, state in enumerate(true.tolist()):
        row = (step, state, found.domain.labels[state], float(apart[step]), int(degrees[step]), float(beliefs[step]))
        rows.append(row)
    files = {
        "true.csv": csv_text(rows).encode(),
        "true-over-time.svg": figure_bytes(over_time_picture(panels, title + unit)),
    }
    if has_map(found):
        files["true-map.svg"] = figure_bytes(trace_map(found, true))
    return files


def has_map(found: ReleasedTrace) -> bool:
    """Return whether a released trace can be drawn: its outputs are states, or its places are on a map."""
    return found.outputs is not None or maps.is_map(found.domain)


def trace_map(found: ReleasedTrace, truth: Integers | None = None) -> Figure:
    """Show the released trace; with `truth` (steps,), the figure is for its owner only."""
    outputs = found.outputs
    return trace_picture(
        found.domain, [] if outputs is None else outputs, truth, found.places if outputs is None else None
    )


def _in_unit(domain: Domain) -> str:
    return f" ({domain.unit})" if domain.unit else ""
