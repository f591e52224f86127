"""The page of a sweep: the cost of each design against one swept key, with a line for each value of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from mechdesign.model._words import clip, format_bound, short
from mechdesign.report._page import Picture, Prose, Section, first_rows, page
from mechdesign.report._style import ACCENT, MARKERS, MUTED, SERIES, WIDTH, new_figure, put_legend, report_style
from mechdesign.report._verdicts import Verdict
from mechdesign.runs._points import Sweep, cell

# Keys that determine the privacy: the first axis shows the first swept key of this list.
_PRIVACY = ("epsilon", "minimum", "radius", "delta")
# Ratios of the largest to the smallest value above which an axis is logarithmic.
_WIDE_FIRST, _WIDE_COST = 8.0, 50.0
_MOST_TICKS = 12


@report_style()
def html(sweep: Sweep, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of a sweep, with a row of `results.csv` for each point."""
    columns = (*sweep.values, "status", "cost", "lower_bound", "relative_gap")
    cells = [[_write(row[name]) if name in row else "" for name in columns] for row in rows]
    said = "A bar extends down to the proved lower bound; a cross has no cost."
    cost = Picture("cost", "The cost of each design", said, costs_figure(sweep, rows), first_rows(cells, columns))
    files = "results.csv has a row for each point, with all digits; each folder of a point has its certified bundle."
    sections = [Section("Cost", [cost]), Section("Files", [Prose([files])])]
    notes = [f"{sweep.private}."] if sweep.private else []
    return page(sweep.title if sweep.title.strip() else "Sweep", _judge(rows), sections, notes=notes)


def costs_figure(sweep: Sweep, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the figure of the cost of each row, down to its lower bound; rows without a cost are crosses."""
    values = {key: [cell(value) for value in listed] for key, listed in sweep.values.items()}
    first = choose_axis(values)
    others = [key for key in values if key != first and len(values[key]) > 1 and sweep.mode == "product"]
    places: dict[Any, Any] = {value: number for number, value in enumerate(dict.fromkeys(values[first]))}
    if all(_is_number(value) for value in places):
        places = {value: value for value in places}
    figure = new_figure(WIDTH, 3.4)
    axes = figure.subplots()
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = ", ".join(f"{key} = {_write(row[key])}" for key in others)
        lines.setdefault(name, []).append(row)
    few = len(lines) <= len(SERIES)
    for (name, members), (colour, marker) in zip(
        lines.items(), zip(SERIES, MARKERS, strict=True) if few else [(ACCENT, ".")] * len(lines), strict=False
    ):
        found = sorted((places[row[first]], row["cost"], row["lower_bound"]) for row in members if "cost" in row)
        if found:
            at, cost, bound = zip(*found, strict=True)
            below = [high - low for high, low in zip(cost, bound, strict=True)]
            axes.errorbar(
                at, cost, (below, [0.0] * len(at)), color=colour, marker=marker, linewidth=1.0, label=clip(name, 60)
            )
    # An empty line would break the layout.
    if foot := [places[row[first]] for row in rows if "cost" not in row]:
        axes.plot(foot, [0.03] * len(foot), "x", color=MUTED, transform=axes.get_xaxis_transform(), clip_on=False)
    if few and others:
        put_legend(figure)
    costs = [row["cost"] for row in rows if "cost" in row]
    _scale(axes, places, costs)
    axes.set_xlabel(clip(first, 60))
    axes.set_ylabel("cost")
    axes.grid(axis="y")
    return figure


def choose_axis(values: Mapping[str, Sequence[Any]]) -> str:
    """Return the key on the first axis; `values` are the values of each swept key.

    >>> choose_axis({"prior.checkins.only": ["6", "41"], "privacy.0.epsilon": [0.5, 1, 2]})
    'privacy.0.epsilon'
    """
    numeric = [key for key, listed in values.items() if all(_is_number(value) for value in listed)]
    ranked = [key for word in _PRIVACY for key in numeric if key.rpartition(".")[2] == word]
    return next(iter([*ranked, *numeric, *values]))


def _scale(axes: Axes, places: Mapping[Any, Any], costs: Sequence[float]) -> None:
    at = [*places.values()]
    if min(at) > 0 and max(at) / min(at) > _WIDE_FIRST:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if len(at) <= _MOST_TICKS:
        axes.set_xticks(at, labels=[_write(value) for value in places])
    if costs and min(costs) > 0 and max(costs) / min(costs) > _WIDE_COST:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif costs:
        axes.set_ylim(0, (max(costs) or 1.0) * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _judge(rows: Sequence[Mapping[str, Any]]) -> Verdict:
    costs = [row["cost"] for row in rows if "cost" in row]
    done = f"{len(costs)} of {len(rows)} designs are made"
    if not costs:
        return Verdict(False, f"{done}.")
    low, high = (format_bound(each, up=True, digits=4) for each in (min(costs), max(costs)))
    spread = low if low == high else f"{low} to {high}"
    return Verdict(len(costs) == len(rows), f"{done}: {'they cost' if len(costs) > 1 else 'it costs'} {spread}.")


def _write(value: object) -> str:
    return short(value, 6) if isinstance(value, float) else clip(str(value), 24)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
