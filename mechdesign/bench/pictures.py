"""The pictures of a benchmark: profile, times run by run, and growth with size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from mechdesign.bench.statistics import contestant
from mechdesign.bench.statistics import performance_profile
from mechdesign.bench.statistics import seconds
from mechdesign.bench.statistics import solved
from mechdesign.bench.verdicts import Verdict
from mechdesign.model._words import short
from mechdesign.report._style import ACCENT
from mechdesign.report._style import INK
from mechdesign.report._style import MUTED
from mechdesign.report._style import abreast
from mechdesign.report._style import drawn
from mechdesign.report._style import headline
from mechdesign.report._style import new_figure
from mechdesign.report._style import put_legend

__all__ = ["growing", "growth_picture", "profile_picture", "runs_picture"]

Results = Sequence[Mapping[str, Any]]

_BAD = "#D55E00"
_WIDTH = 9.0
_MARKERS = "osD^v<>PX*hdp8H"
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))


@drawn
def profile_picture(rows: Results) -> Figure:
    """Show the performance profile: which part of the problems each solved within a multiple of the best time."""
    profile = performance_profile(rows)
    figure = new_figure(_WIDTH, 4.6)
    axes = figure.subplots()
    finite = [ratio for ratios in profile.values() for ratio in ratios if math.isfinite(ratio)]
    last = max([*finite, 2.0]) * 1.3
    for name, ratios in _by_ours(rows, profile).items():
        within = ratios[np.isfinite(ratios)]
        part = np.arange(1, within.size + 1) / ratios.size
        x, y = np.concatenate([[1.0], within, [last]]), np.concatenate([[0.0], part, [part[-1] if part.size else 0.0]])
        axes.step(x, 100 * y, where="post", label=name, **_style(name, rows))
    axes.set_xscale("log")
    axes.set_xlim(1, last)
    axes.set_ylim(0, 103)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.set_xlabel("time, as a multiple of the fastest on the same problem")
    axes.set_ylabel("problems solved, in percent")
    put_legend(axes, fontsize=8, handlelength=3)
    headline(figure, _best(profile))
    return figure


@drawn
def runs_picture(rows: Results) -> Figure:
    """Show every run: its time, whether it ended in a proved optimum, and whether the solver's own numbers hold."""
    names = list(dict.fromkeys(contestant(row) for row in rows))
    families = list(dict.fromkeys(row["family"] for row in rows))
    columns = abreast(min(len(families), 4))
    lines = math.ceil(len(families) / columns)
    figure = new_figure(_WIDTH, lines * (0.6 + 0.19 * len(names)) + 1.3)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, family in zip(panels.flat, families, strict=False):
        sizes = sorted({row["n"] for row in rows if row["family"] == family})
        for row in (row for row in rows if row["family"] == family):
            _dot(axes, row, names.index(contestant(row)), 4.0 + 2.0 * sizes.index(row["n"]))
        axes.set_title(f"{family}, n = {', '.join(map(str, sizes))}", loc="left")
        axes.set_xscale("log")
        axes.grid(axis="y")
    for axes in panels.flat[len(families) :]:
        axes.set_visible(False)
    panels[0, 0].set_yticks(range(len(names)), names)
    panels[0, 0].set_ylim(len(names) - 0.5, -0.5)
    for axes in panels[-1]:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.set_xlabel("seconds")
    said = sum(row.get("claimed") == Verdict.OPTIMAL for row in rows)
    bad = sum(_said_and_is_not_private(row) for row in rows)
    figure.legend(handles=_key(), loc="outside lower center", ncols=abreast(4), fontsize=8)
    headline(figure, f"{bad} of {said} matrices that solvers call optimal are not private as returned")
    return figure


def growing(rows: Results) -> tuple[str, ...]:
    """Return the families of which there are several sizes."""
    sizes: dict[str, set[int]] = {}
    for row in rows:
        sizes.setdefault(row["family"], set()).add(row["n"])
    return tuple(family for family, found in sizes.items() if len(found) > 1)


@drawn
def growth_picture(rows: Results) -> Figure:
    """Show how times grow with size, family by family, as far as each contestant came."""
    families = growing(rows)
    figure = new_figure(_WIDTH, 4.6 if abreast(2) == 2 else 2.6 * len(families) + 1.5)
    columns = abreast(len(families))
    panels = figure.subplots(len(families) // columns, columns, sharey=True, squeeze=False).ravel()
    names = _by_ours(rows, dict.fromkeys(contestant(row) for row in rows))
    for axes, family in zip(panels, families, strict=True):
        mine = [row for row in rows if row["family"] == family]
        for name in names:
            points: dict[int, list[float]] = {}
            for row in mine:
                if contestant(row) == name and solved(row):
                    points.setdefault(row["n"], []).append(seconds(row))
            sizes = sorted(points)
            means = [float(np.exp(np.mean(np.log(points[n])))) for n in sizes]
            marker = _MARKERS[list(names).index(name) % len(_MARKERS)]
            axes.plot(sizes, means, marker=marker, markersize=4, label=name, **_style(name, rows))
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticks = sorted({row["n"] for row in mine})
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.set_title(family, loc="left")
        axes.set_xlabel("secrets")
    panels[0].set_ylabel("seconds to a proved optimum")
    put_legend(panels[-1], fontsize=8, handlelength=3)
    headline(figure, "Time to a proved optimum, by the number of secrets; a line ends where a limit was met")
    return figure


def _dot(axes: Axes, row: Mapping[str, Any], place: int, size: float) -> None:
    colour = _BAD if _said_and_is_not_private(row) else ACCENT if row.get("ours") else INK
    marker = "o" if solved(row) else "x"
    face = "none" if _said_and_is_not_private(row) else colour
    time = max(seconds(row), 1e-3)
    axes.plot(time, place, marker, markersize=size, markeredgecolor=colour, markerfacecolor=face, markeredgewidth=1.2)


def _key() -> list[Line2D]:
    shapes = (
        ("o", ACCENT, ACCENT, "ours, solved"),
        ("o", INK, INK, "solved"),
        ("o", "none", _BAD, "said optimal, is not private; optimal once mended"),
        ("x", INK, INK, "not solved, or out of time"),
    )
    return [
        Line2D([], [], linestyle="", marker=marker, markerfacecolor=face, markeredgecolor=edge, label=label)
        for marker, face, edge, label in shapes
    ]


def _said_and_is_not_private(row: Mapping[str, Any]) -> bool:
    return row.get("claimed") == Verdict.OPTIMAL and row.get("certified") == Verdict.NOT_PRIVATE


def _by_ours(rows: Results, named: Mapping[str, Any]) -> dict[str, Any]:
    """Put this package's own first."""
    ours = {contestant(row) for row in rows if row.get("ours")}
    return {name: named[name] for name in sorted(named, key=lambda name: name not in ours)}


def _style(name: str, rows: Results) -> dict[str, Any]:
    """Return how a line looks: ours in colour and thick, others in greys and dashes."""
    ours = list(dict.fromkeys(contestant(row) for row in rows if row.get("ours")))
    if name in ours:
        return {"color": ACCENT, "linewidth": 2.2, "linestyle": _DASHES[ours.index(name) % len(_DASHES)]}
    others = [other for other in dict.fromkeys(contestant(row) for row in rows) if other not in ours]
    index = others.index(name)
    return {
        "color": (INK, MUTED)[index // len(_DASHES) % 2],
        "linewidth": 1.1,
        "linestyle": _DASHES[index % len(_DASHES)],
    }


def _best(profile: Mapping[str, Any]) -> str:
    if not profile:
        return "Nothing was solved"
    parts = {name: float(np.isfinite(ratios).mean()) for name, ratios in profile.items()}
    fastest = {name: float((ratios == 1.0).mean()) for name, ratios in profile.items()}
    first = max(fastest, key=lambda name: fastest[name])
    everything = [name for name, part in parts.items() if part == 1.0]
    whole = f"{len(everything)} of {len(parts)} solve every problem that they are given"
    return f"{first} is fastest most often; {whole}"
