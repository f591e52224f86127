"""The expected error for each secret against its prior, as a part of a page."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from mechdesign.report.frame import round_ticks
from mechdesign.report.scales import Scale
from mechdesign.report.scales import levels
from mechdesign.model._words import percent
from mechdesign.model._words import short
from mechdesign.report.scales import ticks
from mechdesign.report.views import WIDTH
from mechdesign.model._words import plain
from mechdesign.base._arrays import Floats

__all__ = ["against_prior"]


_HEIGHT = 800.0
# Priors that lie further apart than this are on a logarithmic axis.
_WIDE = 30.0


def against_prior(errors: Floats, prior: Floats, scale: Scale, unit: str) -> str:
    """Return the picture: a point for each secret that can occur, and the mean as a line."""
    possible = np.flatnonzero(prior > 0)
    mean = float(prior @ errors)
    top = (float(errors.max()) or 1.0) * 1.05
    places, below, logarithmic = _across(prior[possible])
    lines = [f'<path class="rules" d="{_rules(scale, top)}"/>', '<g class="dots">']
    for index, x, level in zip(
        possible.tolist(), places.tolist(), levels(scale, errors[possible]).tolist(), strict=True
    ):
        y = _HEIGHT * (1 - errors[index] / top)
        lines.append(f'<circle class="{scale.hue}{level}" cx="{x:.1f}" cy="{y:.1f}" r="13"/>')
    level = _HEIGHT * (1 - mean / top)
    lines += ["</g>", f'<path class="mean" d="M0 {level:.1f}h{WIDTH:g}"/>']
    measured = short(mean) + (f" {plain(unit)}" if unit else "")
    label = escape(f"Expected error against prior for {len(possible)} secrets; the mean is {measured}")
    side = "".join(
        f'<span style="bottom:{100 * at * float(scale.norm.vmax or 1.0) / top:.1f}%">{escape(name)}</span>'
        for at, name in ticks(scale)
    )
    longest = max((name for _, name in ticks(scale)), key=len, default="")
    foot = "".join(f'<span style="left:{100 * at:.1f}%">{escape(name)}</span>' for at, name in below)
    axis = "prior probability" + (" (log scale)" if logarithmic else "")
    inside = "\n".join([
        f'<p class="title">Expected error against prior; dashed: the mean, {escape(measured)}</p>',
        '<div class="plot scatter">',
        f'<svg viewBox="0 0 {WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{label}">',
        *lines,
        "</svg>",
        f'<div class="side" aria-hidden="true"><b>{escape(longest)}</b>{side}</div>',
        f'<div class="below" aria-hidden="true">{foot}</div>',
        "</div>",
        f'<p class="axis">{axis}</p>',
    ])  # fmt: skip
    return f'<div class="panel">\n{inside}\n</div>'


def _across(prior: Floats) -> tuple[Floats, list[tuple[float, str]], bool]:
    """Return where priors are along the lower side, its ticks, and whether equal ratios have equal distances."""
    low, high = float(prior.min()), float(prior.max())
    if high / low <= _WIDE:
        end = high * 1.06
        values = np.asarray(round_ticks(4).tick_values(0.0, end)).tolist()
        return prior / end * WIDTH, [(value / end, percent(value)) for value in values if value <= end], False
    start, reach = math.log10(low) - 0.08, math.log10(high / low) + 0.16
    step = max(1, math.ceil(reach / 4))
    decades = range(math.ceil(start), math.floor(start + reach) + 1, step)
    return (np.log10(prior) - start) / reach * WIDTH, [((d - start) / reach, percent(10.0**d)) for d in decades], True


def _rules(scale: Scale, top: float) -> str:
    end = float(scale.norm.vmax or 1.0)
    return "".join(f"M0 {_HEIGHT * (1 - at * end / top):.1f}h{WIDTH:g}" for at, _ in ticks(scale))
