"""Report page and figures of a benchmark."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from mechdesign.base._atomic import write_file
from mechdesign.certify._texts import csv_text
from mechdesign.model._words import power, short
from mechdesign.report._guarantee import describe_benchmark
from mechdesign.report._pages import Strong, figure, render
from mechdesign.report._style import ACCENT, INK, MUTED, abreast, headline, in_report_style, new_figure, put_legend
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._identity import environment
from mechdesign.runs._phases import OPTIMAL_GAP, SLACK, Verdict
from mechdesign.runs._scores import SHIFT, contestant, is_solved, performance_profile, scores, seconds

Results = Sequence[Mapping[str, Any]]

_BAD = "#D55E00"
_WIDTH = 9.0
_MARKERS = "osD^v<>PX*hdp8H"
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))


@in_report_style
def profile_picture(rows: Results) -> Figure:
    """Show the performance profile: the share of problems solved within a multiple of the best time."""
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
    _number_decades(axes.xaxis)
    axes.set_xlabel("time, as a multiple of the best time on the same problem")
    axes.set_ylabel("problems solved, in percent")
    put_legend(axes, fontsize=8, handlelength=3)
    headline(figure, _find_headline(profile))
    return figure


@in_report_style
def runs_picture(rows: Results) -> Figure:
    """Show the time of every run, whether a proved optimum was found, and whether the returned numbers are private."""
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
        _number_decades(axes.xaxis)
        axes.set_xlabel("seconds")
    said = sum(row.get("claimed") == Verdict.OPTIMAL for row in rows)
    bad = sum(_is_false_optimum(row) for row in rows)
    figure.legend(handles=_key(), loc="outside lower center", ncols=abreast(4), fontsize=8)
    headline(figure, f"{bad} of {said} matrices that solvers call optimal are not private as returned")
    return figure


def multi_size_families(rows: Results) -> tuple[str, ...]:
    """Return the families with several sizes."""
    sizes: dict[str, set[int]] = {}
    for row in rows:
        sizes.setdefault(row["family"], set()).add(row["n"])
    return tuple(family for family, found in sizes.items() if len(found) > 1)


@in_report_style
def growth_picture(rows: Results) -> Figure:
    """Show times against sizes, in a panel for each family, up to the largest size that each contestant solved."""
    families = multi_size_families(rows)
    figure = new_figure(_WIDTH, 4.6 if abreast(2) == 2 else 2.6 * len(families) + 1.5)
    columns = abreast(len(families))
    panels = figure.subplots(len(families) // columns, columns, sharey=True, squeeze=False).ravel()
    names = _by_ours(rows, dict.fromkeys(contestant(row) for row in rows))
    for axes, family in zip(panels, families, strict=True):
        mine = [row for row in rows if row["family"] == family]
        for name in names:
            points: dict[int, list[float]] = {}
            for row in mine:
                if contestant(row) == name and is_solved(row):
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
        _number_decades(axes.yaxis)
        axes.set_title(family, loc="left")
        axes.set_xlabel("secrets")
    panels[0].set_ylabel("seconds to a proved optimum")
    put_legend(panels[-1], fontsize=8, handlelength=3)
    headline(figure, "Time to a proved optimum, by the number of secrets; a line ends where a limit was met")
    return figure


def _number_decades(axis: Axis) -> None:
    """Label powers of ten along a logarithmic axis, and some numbers between them if it shows few powers."""

    def between(value: float, _: int) -> str:
        low, high = axis.get_view_interval()
        return short(value) if high < 30 * low and f"{value:e}"[0] in "235" else ""

    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(FuncFormatter(between))


def _dot(axes: Axes, row: Mapping[str, Any], place: int, size: float) -> None:
    colour = _BAD if _is_false_optimum(row) else ACCENT if row.get("ours") else INK
    marker = "o" if is_solved(row) else "x"
    face = "none" if _is_false_optimum(row) else colour
    time = max(seconds(row), 1e-3)
    axes.plot(time, place, marker, markersize=size, markeredgecolor=colour, markerfacecolor=face, markeredgewidth=1.2)


def _key() -> list[Line2D]:
    shapes = (
        ("o", ACCENT, ACCENT, "ours, solved"),
        ("o", INK, INK, "solved"),
        ("o", "none", _BAD, "claimed optimal, not private; optimal after rounding"),
        ("x", INK, INK, "not solved, or out of time"),
    )
    return [
        Line2D([], [], linestyle="", marker=marker, markerfacecolor=face, markeredgecolor=edge, label=label)
        for marker, face, edge, label in shapes
    ]


def _is_false_optimum(row: Mapping[str, Any]) -> bool:
    return row.get("claimed") == Verdict.OPTIMAL and row.get("certified") == Verdict.NOT_PRIVATE


def _by_ours(rows: Results, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with this package's contestants first."""
    ours = {contestant(row) for row in rows if row.get("ours")}
    return {name: named[name] for name in sorted(named, key=lambda name: name not in ours)}


def _style(name: str, rows: Results) -> dict[str, Any]:
    """Return the line style of a contestant: coloured and thick for solvers of this package, else grey and dashed."""
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


def _find_headline(profile: Mapping[str, Any]) -> str:
    if not profile:
        return "Nothing was solved"
    parts = {name: float(np.isfinite(ratios).mean()) for name, ratios in profile.items()}
    fastest = {name: float((ratios == 1.0).mean()) for name, ratios in profile.items()}
    first = max(fastest, key=lambda name: fastest[name])
    everything = [name for name, part in parts.items() if part == 1.0]
    whole = f"{len(everything)} of {len(parts)} solve every problem that they are given"
    return f"{first} is fastest most often; {whole}"


def write_report(folder: Path, about: Mapping[str, Any], rows: Results, total: int) -> Path:
    """Write ``report.html`` and ``scores.csv`` into a folder of results; raise `ExportError` if that fails.

    Args:
        folder: The folder.
        about: Suite, limits and threads, as described by `mechdesign.runs.bench.request_of`.
        rows: The runs, each a mapping of columns to values.
        total: Number of requested runs.

    Returns:
        The path of the page.
    """
    write_file(folder / "scores.csv", [_csv(rows, float(about["time_limit"])).encode()])
    write_file(folder / "report.html", [html(about, rows, total).encode()])
    return folder / "report.html"


def html(about: Mapping[str, Any], rows: Results, total: int) -> str:
    """Return the page."""
    said = [row for row in rows if row.get("claimed") == Verdict.OPTIMAL]
    bad = [row for row in said if _is_false_optimum(row)]
    found = environment()
    families = [FAMILIES[name] for name in dict.fromkeys(row["family"] for row in rows) if name in FAMILIES]
    return render(
        "bench.html",
        title=f"Solver benchmark, suite {about['suite']}",
        about=about,
        said=len(said),
        bad=len(bad),
        best=_describe_best(rows, float(about["time_limit"])),
        problems=len({(row["family"], row["n"], row["seed"]) for row in rows}),
        solvers=len(set(map(contestant, rows))),
        runs=len(rows),
        total=total,
        scores=list(_scores(rows, float(about["time_limit"]))),
        optimal_gap=power(OPTIMAL_GAP),
        shift=f"{SHIFT:g}",
        slack=power(SLACK),
        pictures=list(_pictures(rows)) if rows else [],
        not_private=list(map(_not_private, bad)),
        all=list(map(_run, rows)),
        guarantee=describe_benchmark(
            {each.name: each.title for each in families}, [each.name for each in families if each.data() != ""]
        ),
        machine=[
            ("Processor", f"{found['processor']}, {found['cores']} cores, {found['memory_gb']} GB"),
            ("Python", f"{found['python']} on {found['system']}"),
            ("Packages", ", ".join(f"{name} {version}" for name, version in found["packages"].items())),
        ],
    )


def _describe_best(rows: Results, limit: float) -> str:
    """Return a sentence on the contestant that solved the most problems, and among these was the fastest."""
    found = scores(rows, limit) if rows else {}
    if not found:
        return ""
    name, score = max(found.items(), key=lambda pair: (pair[1].solved, -pair[1].censored_mean))
    return (
        f"{name} solved the most problems, {score.solved} of {score.runs}, in {_seconds(score.mean)} s on average "
        "(shifted geometric mean)."
        if score.solved
        else "No problem was solved."
    )


def _csv(rows: Results, limit: float) -> str:
    """Return the scores of all contestants as a CSV table."""
    names = ("solved", "runs", "claimed", "not_private", "wrong", "mean", "censored_mean")
    lines: list[list[object]] = [["solver", *names]]
    for name, score in scores(rows, limit).items():
        found = (getattr(score, each) for each in names)
        lines.append([name, *(round(value, 3) if isinstance(value, float) else value for value in found)])
    return csv_text(lines)


def _scores(rows: Results, limit: float) -> Iterator[tuple[str, ...]]:
    for name, score in scores(rows, limit).items() if rows else ():
        yield (
            Strong(name) if score.ours else name,
            f"{score.solved} of {score.runs}",
            str(score.claimed),
            Strong(score.not_private) if score.not_private else "0",
            str(score.wrong),
            _seconds(score.mean),
            _seconds(score.censored_mean),
        )


def _pictures(rows: Results) -> Iterator[dict[str, object]]:
    yield figure(
        functools.partial(profile_picture, rows),
        "profile",
        "Performance profile",
        "Performance profile (Dolan and Moré 2002): a better curve is further up and to the left. Thick lines are "
        "solvers of this package.",
    )
    yield figure(
        functools.partial(runs_picture, rows),
        "runs",
        "Time of every run",
        "Each time ends with a certified channel or at a limit. Larger marks are larger problems.",
    )
    if multi_size_families(rows):
        yield figure(
            functools.partial(growth_picture, rows),
            "growth",
            "Time by number of secrets",
            "Geometric means over seeds, for families with several sizes in the suite.",
        )


def _not_private(row: Mapping[str, Any]) -> tuple[str, ...]:
    problem = f"{row['family']}, n = {row['n']}"
    return (contestant(row), problem, *(_number(row.get(key)) for key in ("tight_epsilon", "cost_returned", "cost")))


def _run(row: Mapping[str, Any]) -> tuple[str, ...]:
    gap = row.get("relative_gap")
    return (
        f"{row['family']}, n = {row['n']}" + (f", seed {row['seed']}" if row["seed"] else ""),
        contestant(row),
        *(_format_verdict(row.get(key)) for key in ("claimed", "certified", "rounded")),
        _number(row.get("cost")),
        power(max(float(gap), 0.0)) if gap is not None else "–",
        ("> " if row.get("censored") else "") + _seconds(seconds(row)),
        short(float(row["peak_mb"]), 4) if row.get("peak_mb") else "–",
    )


def _number(value: float | None) -> str:
    return short(float(value), 7) if value is not None else "–"


def _format_verdict(verdict: object) -> str:
    name = str(verdict or "–")
    return Strong(name) if name in (Verdict.NOT_PRIVATE, Verdict.INFEASIBLE) else name


def _seconds(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"
