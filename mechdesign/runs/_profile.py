"""The figure of a benchmark: the performance profile of Dolan and Moré (2002)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from mechdesign.base._arrays import Floats
from mechdesign.report._style import ACCENT, DASHES, MUTED, WIDTH, in_report_style, new_figure, put_legend
from mechdesign.runs._phases import OURS
from mechdesign.runs._scores import Results, performance_profile


@in_report_style
def draw_profile(rows: Results) -> Figure:
    """Show the share of problems that each solver solves within a multiple of the best time."""
    profile = performance_profile(rows)
    figure = new_figure(1.4 * WIDTH, 4.6)
    axes = figure.subplots()
    last = 1.3 * max([ratio for ratios in profile.values() for ratio in ratios if math.isfinite(ratio)], default=2.0)
    for index, name in enumerate(sorted(profile, key=lambda name: name not in OURS)):
        ratios = profile[name]
        within = ratios[np.isfinite(ratios)]
        part = np.arange(within.size + 1) / ratios.size
        x, y = np.concatenate([[1.0], within, [last]]), np.concatenate([part, part[-1:]])
        colour, width = (ACCENT, 2.2) if name in OURS else (MUTED, 1.1)
        dashes = DASHES[index % len(DASHES)]
        axes.step(x, 100 * y, where="post", label=name, linestyle=dashes, color=colour, linewidth=width)
    axes.set_xscale("log")
    axes.set_xlim(1, last)
    axes.set_ylim(0, 103)
    axes.set_xlabel("time, as a multiple of the best time on the same problem")
    axes.set_ylabel("problems solved, in percent")
    axes.set_title(_find_headline(profile))
    put_legend(figure)
    return figure


def _find_headline(profile: Mapping[str, Floats]) -> str:
    if not profile:
        return "Nothing was solved"
    fastest = {name: float((ratios == 1.0).mean()) for name, ratios in profile.items()}
    first = max(fastest, key=fastest.__getitem__)
    whole = sum(bool(np.isfinite(ratios).all()) for ratios in profile.values())
    return f"{first} is fastest most often; {whole} of {len(profile)} solve all problems"
