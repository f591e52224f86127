"""Report page and figure of a sweep."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import ReportError
from mechdesign.model._words import clip, format_bound, relative, short
from mechdesign.report._guarantee import describe_sweep
from mechdesign.report._maps import in_unit, round_ticks
from mechdesign.report._pages import Strong, figure, render
from mechdesign.report._style import ACCENT, MUTED, abreast, headline, in_report_style, new_figure
from mechdesign.runs._identity import environment
from mechdesign.runs._store import Row, State, Value
from mechdesign.runs._tasks import Sweep, cell

# Colours and markers of lines; markers distinguish lines in greyscale and with any colour vision.
_SERIES = ((ACCENT, "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#56b4e9", "P"))
_MOST_PANELS = 12
# Keys that determine the privacy: the first axis shows the first swept key of this list.
_PRIVACY = ("epsilon", "minimum", "radius", "delta")
# Ratios of the largest to the smallest value above which an axis is logarithmic.
_WIDE_FIRST, _WIDE_COST = 8.0, 50.0
# Smallest visible gap, as a share of the cost.
_MIN_VISIBLE_GAP = 0.003
# Values are ticks if they are at least this share of a panel's width apart.
_MIN_TICK_DISTANCE = 0.13


@dataclass(frozen=True)
class SweepLayout:
    """The use of each swept key in the figure.

    Attributes:
        first: Key on the first axis.
        panels: Key with one panel for each of its values, or None for a single panel.
        lines: Keys with one line, in each panel, for each combination of their values.
        joined: Whether points are joined by lines, as in a product of lists.
    """

    first: str
    panels: str | None
    lines: tuple[str, ...]
    joined: bool


def choose_layout(values: Mapping[str, Sequence[Value]], mode: str) -> SweepLayout:
    """Choose the use of each swept key in the figure; `values` are the values of each key.

    >>> choose_layout({"prior.checkins.only": ["6", "41"], "privacy.0.epsilon": [0.5, 1, 2]}, "product")
    SweepLayout(first='privacy.0.epsilon', panels='prior.checkins.only', lines=(), joined=True)
    """
    numeric = [key for key, listed in values.items() if all(_is_number(value) for value in listed)]
    ranked = [key for word in _PRIVACY for key in numeric if key.rpartition(".")[2] == word]
    first = next(iter([*ranked, *numeric, *values]))
    others = [key for key in values if key != first and len(values[key]) > 1]
    if mode == "zip" or not others:
        return SweepLayout(first, None, (), mode != "zip")
    panels = max(others, key=lambda key: len(values[key]))
    return SweepLayout(first, panels, tuple(key for key in others if key != panels), True)


# Names of keys of a requirement, and whether the unit of the domain is their unit, or the unit of their reciprocal.
_NAMES = {"epsilon": "ε", "delta": "δ", "minimum": "least error", "radius": "radius"}


def name_keys(sweep: Sweep) -> dict[str, str]:
    """Return a name for each swept key, such as "ε per km" for ``privacy.0.epsilon``; other keys keep their path."""
    named = {key: _name_key(sweep.tables, key) for key in sweep.values}
    twice = [name for name in named.values() if list(named.values()).count(name) > 1]
    return {key: key if name in twice else name for key, name in named.items()}


def _name_key(tables: Mapping[str, object], key: str) -> str:
    table, _, rest = key.partition(".")
    place, _, last = rest.partition(".")
    listed = tables.get(table)
    if table != "privacy" or last not in _NAMES or not isinstance(listed, list) or not place.isdecimal():
        return key
    requirement = listed[int(place)] if int(place) < len(listed) else None
    if not isinstance(requirement, Mapping):
        return key
    unit, name = _find_unit(tables.get("domain")), _NAMES[last]
    if last == "epsilon":
        return f"{name} per {unit}" if unit and "distance" in requirement and "radius" not in requirement else name
    return f"{name} ({unit})" if unit and last != "delta" else name


def _find_unit(domain: object) -> str:
    """Return the unit of a domain's table: the stated one, km for latitudes and longitudes, or ""."""
    if not isinstance(domain, Mapping):
        return ""
    parts = [domain, *(part for part in domain.values() if isinstance(part, Mapping))]
    stated = [str(part["unit"]) for part in parts if isinstance(part.get("unit"), str)]
    if stated:
        return clip(stated[0])
    return "km" if any(key in part for part in parts for key in ("south", "latitude")) else ""


def hints(rows: Sequence[Row], keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the tooltips of points, by the identifiers of the points."""
    return {_name(row): {"title": _hint(row, keys)} for row in rows}


@in_report_style
def sweep_picture(
    rows: Sequence[Row],
    chosen: SweepLayout,
    unit: str = "",
    names: Mapping[str, str] = MappingProxyType({}),
) -> Figure:
    """Show the cost of each row; rows without a cost are crosses at the bottom of their panel.

    `names` are names of swept keys, which replace their paths.
    """
    first = _positions([row.values[chosen.first] for row in rows])
    panels = list(dict.fromkeys(_value(row, chosen.panels) for row in rows))[:_MOST_PANELS]
    lines = list(dict.fromkeys(_line(row, chosen.lines) for row in rows))
    columns = abreast(min(3, len(panels)))
    count = math.ceil(len(panels) / columns)
    legend = 0.25 * math.ceil(len(lines) / abreast(2)) if 1 < len(lines) <= len(_SERIES) else 0.0
    figure = new_figure(max(3.0 * columns, 8.0), 2.4 * count + 0.9 + legend)
    axes = figure.subplots(count, columns, squeeze=False, sharex=True, sharey=True)
    for panel, value in zip(axes.flat, panels, strict=False):
        members = [row for row in rows if _value(row, chosen.panels) == value]
        for number, line in enumerate(lines):
            found = [row for row in members if _line(row, chosen.lines) == line]
            _draw(panel, found, first, number if len(lines) <= len(_SERIES) else 0, chosen)
        if chosen.panels is not None:
            panel.set_title(
                f"{clip(names.get(chosen.panels, chosen.panels), 28)} = {_format_value(value)}", loc="left", fontsize=9
            )
        panel.grid(axis="y")
        panel.label_outer()
    for panel in axes.flat[len(panels) :]:
        panel.set_visible(False)
    for panel in axes.flat[max(0, len(panels) - columns) : len(panels)]:
        panel.tick_params(axis="x", labelbottom=True)
        panel.set_xlabel(clip(names.get(chosen.first, chosen.first), 40))
    _scale(axes[0, 0], rows, first)
    figure.supylabel(f"cost{in_unit(unit)}", fontsize=9)
    if legend:
        handles = [
            axes[0, 0].plot(
                [],
                [],
                color=colour,
                marker=marker,
                label=_name_line(line, [names.get(key, key) for key in chosen.lines]),
            )[0]
            for line, (colour, marker) in zip(lines, _SERIES, strict=False)
        ]
        figure.legend(handles=handles, loc="outside lower left", ncols=abreast(2), fontsize=8.5)
    headline(figure, _finding(rows, unit, len({_value(row, chosen.panels) for row in rows}) - len(panels)))
    return figure


def _draw(axes: Axes, rows: Sequence[Row], first: Mapping[Value, float], number: int, chosen: SweepLayout) -> None:
    """Draw the points of a line: filled if the gap is closed, hollow if a limit ended the search."""
    colour, marker = _SERIES[number]
    costly = sorted((row for row in rows if _is_number(_cost(row))), key=lambda row: first[row.values[chosen.first]])
    if chosen.joined and len(costly) > 1:
        places = [first[row.values[chosen.first]] for row in costly]
        axes.plot(places, [_cost(row) for row in costly], color=colour, linewidth=1.0, zorder=2)
    for row in costly:
        place, cost = first[row.values[chosen.first]], _cost(row)
        hollow = row.state is not State.DONE
        bound = float(row.values["lower_bound"])
        if cost - bound > _MIN_VISIBLE_GAP * cost:
            axes.plot([place, place], [bound, cost], color=colour, linewidth=2.5, alpha=0.5, zorder=2)
        axes.plot(
            place, cost, marker, color=colour, markersize=6, markerfacecolor="none" if hollow else colour,
            gid=_name(row), zorder=3, clip_on=False,
        )  # fmt: skip
    for row in rows:
        if not _is_number(_cost(row)):
            foot = axes.get_xaxis_transform()
            place = first[row.values[chosen.first]]
            axes.plot(place, 0.03, "x", color=MUTED, transform=foot, gid=_name(row), markersize=6, clip_on=False)


def _scale(axes: Axes, rows: Sequence[Row], first: Mapping[Value, float]) -> None:
    places = list(first.values())
    if all(_is_number(value) for value in first):
        if min(places) > 0 and max(places) / min(places) > _WIDE_FIRST:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
            axes.xaxis.set_minor_locator(NullLocator())
            apart = np.diff(np.sort(np.log(places))) / math.log(max(places) / min(places))
        else:
            axes.xaxis.set_major_locator(round_ticks(5))
            apart = np.diff(np.sort(places)) / ((max(places) - min(places)) or 1.0)
        if (apart > _MIN_TICK_DISTANCE).all():
            axes.set_xticks(places)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    else:
        axes.set_xticks(places, labels=[clip(_format_value(value), 12) for value in first])
        axes.margins(x=0.1)
    costs = [cost for row in rows if _is_number(cost := _cost(row))]
    if costs and min(costs) > 0 and max(costs) / min(costs) > _WIDE_COST:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif costs:
        axes.set_ylim(0, (max(costs) or 1.0) * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _positions(values: Sequence[Value]) -> dict[Value, float]:
    """Return the position of each value on the first axis: numbers at their values, others at 0, 1, 2, …."""
    distinct = list(dict.fromkeys(values))
    if all(_is_number(value) for value in distinct):
        return {value: float(value) for value in distinct}  # type: ignore[arg-type]
    return dict(zip(distinct, map(float, itertools.count()), strict=False))


def _finding(rows: Sequence[Row], unit: str, left_out: int) -> str:
    costs = [cost for row in rows if _is_number(cost := _cost(row))]
    if not costs:
        return "No design has a cost"
    low, high = (format_bound(each, up=True, digits=4) for each in (min(costs), max(costs)))
    spread = low if low == high else f"{low} to {high}"
    found = f"{len(costs)} design{'s' * (len(costs) > 1)} cost{'s' * (len(costs) == 1)} {spread}"
    found += f" {clip(unit)}" if unit else ""
    return found + (f"; {left_out} more panels are left out" if left_out else "")


def _hint(row: Row, keys: Sequence[str]) -> str:
    values = row.values
    lines = [f"{key} = {_format_value(values.get(key))}" for key in keys]
    if _is_number(_cost(row)):
        bound = _format_cell(values["lower_bound"], "lower_bound")
        lines.append(f"cost {_format_cell(_cost(row), 'cost')}, at least {bound}")
        lines.append(f"relative gap {relative(values['relative_gap'])}")
    epsilon = values.get("tight_epsilon")
    if isinstance(epsilon, float):
        lines.append(f"tight ε {_format_cell(epsilon, 'tight_epsilon')}")
    if row.state is not State.DONE:
        lines.append(f"{row.state}: {clip(str(values.get('message', '')), 80)}")
    return "\n".join(lines)


def _name(row: Row) -> str:
    return f"row-{row.identity[:16]}"


def _cost(row: Row) -> float:
    cost = row.values.get("cost")
    return float(cost) if isinstance(cost, int | float) else math.nan


def _value(row: Row, key: str | None) -> Value:
    found: Value = None if key is None else row.values[key]
    return found


def _line(row: Row, keys: Sequence[str]) -> tuple[Value, ...]:
    return tuple(row.values[key] for key in keys)


def _name_line(line: Sequence[Value], keys: Sequence[str]) -> str:
    return clip(", ".join(f"{key} = {_format_value(value)}" for key, value in zip(keys, line, strict=True)), 60)


def _format_value(value: Value) -> str:
    return short(value, 6) if isinstance(value, float) else clip(str(value), 24)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_FILE = "report.html"
_MOST_ROWS = 500
# Columns of the table on the page, with their heads.
_HEADS = {
    "status": "status", "cost": "cost", "lower_bound": "no less than", "relative_gap": "relative gap",
    "tight_epsilon": "tight ε", "distortion": "distortion", "solver": "solver", "solve_seconds": "seconds",
    "channel": "channel",
}  # fmt: skip


def write_report(folder: Path, sweep: Sweep, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Write ``report.html``; raise `ReportError` if that fails."""
    try:
        write_file(folder / _FILE, [html(sweep, rows, columns).encode()])
    except Exception as error:  # The rows are already written, so an error of drawing only prevents the page.
        raise ReportError(f"all rows were written to {folder}; only {_FILE} is missing ({error})") from error


def html(sweep: Sweep, rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return the report as one self-contained page."""
    done = sum(row.state is State.DONE for row in rows)
    missing = len(sweep) - len(rows)
    others = [f"{count} {state}" for state in State if state is not State.DONE and (count := _count(rows, state))]
    others += [f"{missing} not run yet"] if missing else []
    swept = "; ".join(f"{key}: {len(each)} value{'s' * (len(each) > 1)}" for key, each in sweep.values.items())
    shown = [name for name in columns if name in _HEADS and any(row.values.get(name) is not None for row in rows)]
    return render(
        "sweep.html",
        title=f"{sweep.title or 'Privacy mechanisms'}: {len(sweep)} designs",
        verdict={
            "good": not others,
            "short": f"{done} of {len(sweep)} designs are done.",
            "long": " ".join(filter(None, [", ".join(others) + "." * bool(others), _describe_costs(sweep, rows)])),
        },
        swept=swept,
        mode=sweep.mode,
        private=sweep.private,
        picture=_picture(sweep, rows) if rows else None,
        keys=", ".join(sweep.values),
        heads=(*name_keys(sweep).values(), *(_HEADS[name] for name in shown)),
        rows=[
            (*_values(sweep, row), *(_format_cell(row.values.get(name), name) for name in shown))
            for row in rows[:_MOST_ROWS]
        ],
        left_out=_MOST_ROWS if len(rows) > _MOST_ROWS else 0,
        messages=[
            (" ".join(_values(sweep, row)), row.state, str(row.values.get("message", "")))
            for row in rows
            if row.state is not State.DONE
        ],
        made=_describe_run(rows),
        guarantee=describe_sweep(list(sweep.values), sweep.private),
        channel=next((row.values["channel"] for row in rows if row.values.get("channel")), None),
    )


def _picture(sweep: Sweep, rows: Sequence[Row]) -> dict[str, object]:
    units = {str(row.details.get("unit", "")) for row in rows if "unit" in row.details}
    chosen = choose_layout({key: [cell(value) for value in values] for key, values in sweep.values.items()}, sweep.mode)
    unit = units.pop() if len(units) == 1 else ""
    caption = (
        "Each point is a design; its numbers appear under the pointer. A bar extends down to the proved lower bound if "
        "the gap is visible. Hollow points were stopped by a limit, and crosses have no channel."
    )
    draw = functools.partial(sweep_picture, rows, chosen, unit, name_keys(sweep))
    return figure(draw, "costs", "Cost of each design", caption, hints(rows, list(sweep.values)))


def _describe_costs(sweep: Sweep, rows: Sequence[Row]) -> str:
    """Return a sentence on the costs at both ends of the first axis, and on the proved gaps."""
    chosen = choose_layout({key: [cell(value) for value in values] for key, values in sweep.values.items()}, sweep.mode)
    found = [(row.values[chosen.first], _cost(row), row) for row in rows if _is_number(_cost(row))]
    units = {str(row.details.get("unit", "")) for *_, row in found}
    if not found or not all(_is_number(value) for value, *_ in found) or len(units) > 1:
        return ""
    name, unit = name_keys(sweep)[chosen.first], units.pop()

    def costs_at(end: float) -> str:
        costs = [cost for value, cost, _ in found if value == end]
        low, high = (format_bound(each, up=True, digits=4) for each in (min(costs), max(costs)))
        return (low if low == high else f"{low} to {high}") + (f" {clip(unit)}" if unit else "")

    first, last = min(float(value) for value, *_ in found), max(float(value) for value, *_ in found)
    symbol, _, per = name.partition(" per ")
    behind = f" per {per}" if per else ""
    said = f"The cost is {costs_at(first)} at {symbol} = {short(first)}{behind}"
    said += f", and {costs_at(last)} at {symbol} = {short(last)}{behind}" if last > first else ""
    gaps = [float(row.values["relative_gap"]) for *_, row in found if _is_number(row.values.get("relative_gap"))]
    return f"{said}. The largest proved gap is {relative(max(gaps))}." if gaps else f"{said}."


def _describe_run(rows: Sequence[Row]) -> list[tuple[str, str]]:
    known = environment()
    seconds = sum(float(row.values.get("solve_seconds") or 0.0) for row in rows)
    return [
        ("solver seconds, all rows together", short(seconds, 4)),
        ("versions", ", ".join(f"{name} {number}" for name, number in known["packages"].items())),
        ("this machine", f"{known['processor']}, {known['cores']} cores, Python {known['python']}"),
    ]


def _values(sweep: Sweep, row: Row) -> tuple[str, ...]:
    return tuple(_format_cell(row.values.get(key), key) for key in sweep.values)


def _format_cell(value: Value, name: str) -> str:
    if value is None:
        return ""
    if name == "status" and value != State.DONE:
        return Strong(value)
    if isinstance(value, float):
        if name == "relative_gap":
            return relative(value)
        if name == "cost" or name.startswith("tight_epsilon"):
            return format_bound(value, up=True, digits=6)
        if name == "lower_bound" or name.startswith("distortion"):
            return format_bound(value, up=False, digits=6)
        return short(value, 6)
    return str(value)


def _count(rows: Sequence[Row], state: State) -> int:
    return sum(row.state is state for row in rows)
