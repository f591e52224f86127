"""Costs and requirements as bars of a page: names and numbers are text, and stand one below the other on a phone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from mechdesign.report.charts import framed
from mechdesign.report.dots import Met
from mechdesign.report.dots import _bracket
from mechdesign.report.dots import _how_met
from mechdesign.report.dots import _ratio
from mechdesign.measures._baselines import NO_INFORMATION
from mechdesign.measures._baselines import Reference
from mechdesign.model._words import power
from mechdesign.model._words import short
from mechdesign.model._words import plain

__all__ = ["cost_bars", "requirement_bars"]


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
