"""The page and the figures of a released trace; the page may be published with the trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_indices
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import as_decimal, exact_text, text_up
from mechdesign.certify._texts import csv_text
from mechdesign.model._domain import Domain
from mechdesign.model._words import clip, short
from mechdesign.report import _maps as maps
from mechdesign.report._leakage_page import draw_series
from mechdesign.report._page import Picture, Prose, Section, Table, first_rows, page
from mechdesign.report._style import ACCENT, MUTED, RULE, SERIES, drawn, figure_bytes, report_style
from mechdesign.report._verdicts import judge_trace, limit_trace, write_odds
from mechdesign.traces._adversary import degrees_of
from mechdesign.traces._planner import OPTIMAL
from mechdesign.traces._released import ReleasedTrace, accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Names of mechanisms in words; other names are shown unchanged.
_MECHANISMS = {
    "planar-isotropic": "planar noise of equal strength in all directions",
    "planar-laplace": "planar Laplace noise",
    OPTIMAL: "channels of least cost",
}
# Maximal number of revealed states that are named.
_NAMED = 5
_TRUE, _HEIGHT = SERIES[1], 2.5
_MOST_NAMES = 30


@report_style()
def html(found: ReleasedTrace) -> str:
    """Return the page of a released trace."""
    together, unit = found.composition, f" {found.domain.unit}" if found.domain.unit else ""
    bound = "no bound"
    if math.isfinite(together.bound):
        nats = text_up(as_decimal(together.bound), 6)
        bound = f"a factor of at most {write_odds(together.bound)} ({nats} nats)"
    each_step = [release.stage.epsilon for release in found.releases]
    rows = [
        ("Steps", str(together.releases) + ("" if found.finished else ", then the run was stopped")),
        ("States", str(found.domain.size)),
        ("Mechanism", _MECHANISMS.get(found.mechanism, found.mechanism)),
        ("ε of a step", " to ".join(exact_text(each) for each in dict.fromkeys((min(each_step), max(each_step))))),
        ("ε of all steps together", exact_text(together.epsilon)),
        ("Edges that the policy graphs of all steps share", str(together.graph.number_of_edges())),
        ("Maximal change of the odds between any two possible trajectories", bound),
    ]
    if told := list_revealed(found):
        rows.append(("States that an answer reveals for certain", told))
    errors = [(row.name, f"{short(row.expected, 4)}{unit}") for row in accuracy(found)]
    files = "released.csv has the outputs, steps.json the proof of each step, release.json the digests of all files."
    sections = [
        Section("What all steps tell together", [
            Table(rows),
            Prose(["Every step was checked in exact arithmetic."] if found.certified else []),
        ]),
        Section("Step by step", list(_pictures(found))),
        Section("How far off", [
            Table(errors, ("Who", "Expects to be off by")),
            Prose([
                "Expected errors, averaged over the steps, for someone who knows the transitions and the outputs. The "
                "actual errors are not public."
            ]),
        ]),
        Section("What this does not promise", [Prose(list(limit_trace(found)), "list")]),
        Section("Files", [Prose([files])]),
    ]  # fmt: skip
    return page(found.title if found.title.strip() else "Released trace", judge_trace(found), sections)


def list_revealed(found: ReleasedTrace) -> str:
    """Return the numbers of states revealed for certain and of revealing steps, as text; "" if no state is revealed."""
    steps = [states for states in found.revealed if states]
    if not steps:
        return ""
    states = sorted(set().union(*steps))
    names = ", ".join(found.domain.labels[state] for state in states[:_NAMED]) + ", …" * (len(states) > _NAMED)
    return f"{len(states)} ({names}), at {len(steps)} of {len(found.revealed)} steps"


def _pictures(found: ReleasedTrace) -> Iterator[Picture]:
    if _can_draw(found):
        if found.outputs is not None:
            said = "The released state of each step."
            if maps.is_map(found.domain):
                said = "The released state of each step, spread within its place so that steps do not hide one another."
            released = [found.domain.labels[state] for state in found.outputs.tolist()]
        else:
            said = "The released places in their order."
            released = [", ".join(map(short, place)) for place in found.places.tolist()]
        numbers = first_rows([(str(step), each) for step, each in enumerate(released)], ("Step", "Released"))
        yield Picture("map", "The released trace", said, _trace_figure(found), numbers)
    stages = [release.stage for release in found.releases]
    degrees = [stage.degrees[stage.members] for stage in stages]
    likely = [stage.prior[stage.members] / stage.prior[stage.members].sum() for stage in stages]
    expected = [float(weights @ of) for weights, of in zip(likely, degrees, strict=True)]
    protection = {"of the least protected state": [float(of.min()) for of in degrees], "expected": expected}
    said = "The number of states among which a state is hidden."
    yield _over_time("protection", "Degree of protection", said, "", protection)
    names = {"posteriors": "from the outputs so far", "smoothed": "from the whole trace"}
    errors = {name: found.beliefs.expected_error(found.lengths, kind) for kind, name in names.items()}
    said = "The mean distance of the best guess, given the transitions and the outputs."
    yield _over_time("errors", "Expected error", said, maps.in_unit(found.domain.unit), errors)


def _over_time(name: str, title: str, said: str, unit: str, series: Mapping[str, Sequence[float] | Floats]) -> Picture:
    """Return the picture of named series over the steps."""
    steps = [(str(step), *map(short, each)) for step, each in enumerate(zip(*series.values(), strict=True))]
    made = _series_figure(f"{title.lower()}{unit}", series)
    return Picture(name, title, said, made, first_rows(steps, ("Step", *series)))


@in_own_arithmetic
def trace(domain: Domain, released: ArrayLike, truth: ArrayLike | None = None, axes: Axes | None = None) -> Figure:
    """Show a released trace on a map, or over the steps if the states are not in the plane.

    Args:
        domain: The states.
        released: Indices of the released states, shape (T,).
        truth: Indices of the true states, shape (T,), shown next to the released states. A figure with true states is
            private.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InputError: If `truth` has another number of steps than `released`.

    Example:
        >>> import mechdesign as md
        >>> trace(md.Domain.grid(2, 1, 2.0, 1.0), [0, 1]).axes[0].get_xlabel()
        'step'
    """
    require_kind(domain, Domain, "domain", "a Domain")
    states = as_indices(released, "released", domain.size)
    true = None if truth is None else as_indices(truth, "truth", domain.size)
    if true is not None and len(true) != len(states):
        raise InputError("truth", "has another number of steps", value=len(true), bound=f"{len(states)} steps")
    if not len(states):
        raise InputError("released", "is empty", bound="at least one step")
    return drawn(axes, _height_of(domain), draw_trace, domain, states, true)


def _height_of(domain: Domain) -> float:
    return maps.height_of_figure(domain) if maps.is_map(domain) else 3.0


def draw_trace(
    axes: Axes, domain: Domain, states: Integers | None, truth: Integers | None = None, places: Floats | None = None
) -> None:
    """Draw released states (T,), or released places (T, 2) of the plane, and true states, if given.

    Repeated states are offset by small, reproducible distances, so that steps do not hide one another.
    """
    if not maps.is_map(domain):
        assert states is not None
        _draw_states(axes, domain, states, truth)
        return
    released = domain.points[states] if states is not None else np.asarray(places, dtype=np.float64)
    west, east, south, north = maps.extent(domain)
    if domain.cells is not None:
        columns, rows = maps.borders(domain.cells)
        axes.vlines(columns, south, north, color=RULE, linewidth=0.5, zorder=1)
        axes.hlines(rows, west, east, color=RULE, linewidth=0.5, zorder=1)
    else:
        axes.plot(*domain.points.T, "o", markersize=3.5, markerfacecolor="none", markeredgecolor=MUTED, zorder=1)
    spread = _spread(domain, len(released)) if states is not None else np.zeros_like(released)
    if truth is not None:
        _draw_path(axes, domain.points[truth] - spread, _TRUE, "true", "o")
    _draw_path(axes, released + spread, ACCENT, "released", "s")
    # Noise may add places outside the map.
    (left, low), (right, high) = released.min(axis=0), released.max(axis=0)
    margin = 0.04 * max(max(east, right) - min(west, left), max(north, high) - min(south, low))
    axes.set_xlim(west if left >= west else left - margin, east if right <= east else right + margin)
    axes.set_ylim(south if low >= south else low - margin, north if high <= north else high + margin)
    maps.frame(axes, domain)


def _spread(domain: Domain, count: int) -> Floats:
    """Return a small offset for each step, on a spiral with the golden angle."""
    west, east, south, north = maps.extent(domain)
    reach = 0.012 * max(east - west, north - south)
    if domain.cells is not None:
        reach = 0.3 * min(domain.cells.width / domain.cells.columns, domain.cells.height / domain.cells.rows)
    turn = np.arange(count) * np.pi * (3 - 5**0.5)
    lengths = reach * np.sqrt((np.arange(count) + 0.5) / count)
    found: Floats = np.column_stack((lengths * np.cos(turn), lengths * np.sin(turn)))
    return found


def _draw_path(axes: Axes, places: Floats, colour: str, name: str, marker: str) -> None:
    """Draw places in their order, from light to dark, with a ring around the first."""
    x, y = places.T
    axes.plot(x, y, color=colour, linewidth=0.8, alpha=0.45, zorder=2)
    depths = np.linspace(0.25, 1.0, len(places)) if len(places) > 1 else np.ones(1)
    colours = [(*to_rgb(colour), depth) for depth in depths]
    axes.scatter(x, y, s=20, color=colours, marker=marker, linewidth=0, zorder=3)
    axes.plot([], [], marker, color=colour, markersize=4.5, label=f"{name}; the later, the darker")
    axes.scatter(x[:1], y[:1], s=90, facecolor="none", edgecolor=colour, linewidth=1.5, zorder=4, label="first step")


def _draw_states(axes: Axes, domain: Domain, released: Integers, truth: Integers | None) -> None:
    """Draw states over the steps: at their positions along a line, or by name."""
    along = maps.kind(domain) == "line"
    heights = np.arange(domain.size, dtype=np.float64)
    if along:
        heights = domain.points[:, int(np.argmax(np.ptp(domain.points, axis=0)))]
    if truth is not None:
        axes.plot(heights[truth], color=_TRUE, marker="o", markersize=5, linewidth=1.0, label="true")
    axes.plot(heights[released], color=ACCENT, marker="s", markersize=3, linewidth=0.8, alpha=0.8, label="released")
    axes.set_xlim(-0.5, len(released) - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axes.set_xlabel("step")
    if along:
        axes.set_ylabel(f"position{maps.in_unit(domain.unit)}")
    elif domain.size <= _MOST_NAMES:
        axes.set_yticks(heights, [clip(label) for label in domain.labels])
    else:
        axes.set_ylabel("state")
    axes.grid(axis="y")


def _can_draw(found: ReleasedTrace) -> bool:
    """Return whether a released trace can be drawn: its outputs are states, or its places are on a map."""
    return found.outputs is not None or maps.is_map(found.domain)


def _trace_figure(found: ReleasedTrace, truth: Integers | None = None) -> Figure:
    """Return the figure of a released trace; with `truth` (steps,), it is for its owner only."""
    return drawn(None, _height_of(found.domain), draw_trace, found.domain, found.outputs, truth, found.places)


def _series_figure(label: str, series: Mapping[str, Sequence[float] | Floats]) -> Figure:
    """Return the figure of named series over the steps of a trace."""
    return drawn(None, _HEIGHT, draw_series, series, "step", label)


def private_files(found: ReleasedTrace, true: Integers) -> dict[str, bytes]:
    """Return the files with the true states (steps,), by name, for the owner of the trace only."""
    apart = np.sqrt(((found.places - found.domain.points[true]) ** 2).sum(axis=1))
    degrees, beliefs = degrees_of(found.releases, true), found.beliefs.mass(true)
    errors = {
        "released from true": apart,
        "best guess from the outputs so far": found.beliefs.errors(true, found.lengths),
        "from the whole trace": found.beliefs.errors(true, found.lengths, "smoothed"),
    }
    heads = ("step", "state", "label", "distance", "degree_of_protection", "belief")
    states, labels = true.tolist(), [found.domain.labels[state] for state in true]
    rows = zip(range(len(true)), states, labels, apart.tolist(), degrees.tolist(), beliefs.tolist(), strict=True)
    over_time = _series_figure(f"distance{maps.in_unit(found.domain.unit)}", errors)
    files = {"true.csv": csv_text([heads, *rows]).encode(), "true-over-time.svg": figure_bytes(over_time)}
    if _can_draw(found):
        files["true-map.svg"] = figure_bytes(_trace_figure(found, true))
    return files
