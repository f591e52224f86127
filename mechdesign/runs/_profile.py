"""The page of a benchmark: the performance profile of Dolan and Moré (2002), and the scores of the solvers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from mechdesign.base._arrays import Floats
from mechdesign.model._words import short
from mechdesign.report._page import Picture, Prose, Section, Table, page
from mechdesign.report._style import ACCENT, DASHES, SERIES, WIDTH, new_figure, put_legend, report_style
from mechdesign.report._verdicts import Verdict
from mechdesign.runs._phases import OURS
from mechdesign.runs._scores import Results, performance_profile


@report_style()
def html(rows: Results, scores: Sequence[Iterable[object]]) -> str:
    """Return the page of a benchmark; `scores` are the rows of `scores.csv`, below their heads."""
    heads, *found = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in scores]
    profile = performance_profile(rows)
    said = "The share of problems that each solver solves within a multiple of the best time on the same problem."
    picture = Picture("profile", "Performance profile", said, profile_figure(profile), Table(found, heads))
    files = "results.csv has a row for each run, and scores.csv the totals of each solver."
    sections = [Section("Time", [picture]), Section("Files", [Prose([files])])]
    return page("Benchmark", _judge(profile), sections)


def profile_figure(profile: Mapping[str, Floats]) -> Figure:
    """Return the figure of the share of problems that each solver solves within a multiple of the best time."""
    figure = new_figure(WIDTH, 3.8)
    axes = figure.subplots()
    last = 1.3 * max([ratio for ratios in profile.values() for ratio in ratios if math.isfinite(ratio)], default=2.0)
    for index, name in enumerate(sorted(profile, key=lambda name: name not in OURS)):
        ratios = profile[name]
        within = ratios[np.isfinite(ratios)]
        part = np.arange(within.size + 1) / ratios.size
        x, y = np.concatenate([[1.0], within, [last]]), np.concatenate([part, part[-1:]])
        # Other solvers have the other colours, of which there are not as many as there are solvers.
        colour, width = (ACCENT, 2.2) if name in OURS else (SERIES[1 + index % (len(SERIES) - 1)], 1.1)
        dashes = DASHES[index % len(DASHES)]
        axes.step(x, 100 * y, where="post", label=name, linestyle=dashes, color=colour, linewidth=width)
    axes.set_xscale("log")
    axes.set_xlim(1, last)
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if last < 200 else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, 103)
    axes.set_xlabel("time, as a multiple of the best time")
    axes.set_ylabel("problems solved, in percent")
    put_legend(figure)
    return figure


def _judge(profile: Mapping[str, Floats]) -> Verdict:
    if not profile:
        return Verdict(False, "Nothing was solved.")
    fastest = {name: float((ratios == 1.0).mean()) for name, ratios in profile.items()}
    first = max(fastest, key=fastest.__getitem__)
    whole = sum(bool(np.isfinite(ratios).all()) for ratios in profile.values())
    said = f"{whole} of {len(profile)} solvers solve all problems that they are given and that some solver solves"
    return Verdict(True, f"{first} is fastest most often: {said}.")
