"""The figure of ε by distance, which compares the guarantees of several channels for pairs within a distance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory
from numpy.typing import ArrayLike

from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.measures._audit import Audit, DistanceLoss
from mechdesign.model._words import format_bound, short
from mechdesign.report._style import ACCENT, INK, MUTED, headline, in_report_style, new_figure, put_legend

_WIDTH, _HEIGHT = 7.4, 3.4
# Colours, markers and dashes, so that lines differ without colour, too.
_STYLES = ((ACCENT, "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"), (INK, "v", "-"))
# The height of lines without a finite ε, as a share of the panel, and the step between several of them.
_TOP, _STEP = 0.95, 0.06


@in_report_style
def epsilon_by_distance(audits: Mapping[str, Audit], radii: ArrayLike | None = None) -> Figure:
    """Show the least ε for all pairs of secrets within each distance, for several channels.

    Infinite values are drawn at the top, above a dashed line.

    Args:
        audits: The audits of the channels, by name. At most five.
        radii: The distances, increasing; by default ten equal steps up to the largest distance of each audit.

    Returns:
        The figure.

    Raises:
        InputError: No audit, more than five, or wrong radii.

    Example:
        >>> from mechdesign.measures import audit
        >>> found = audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]])
        >>> epsilon_by_distance({"response": found}).axes[0].get_ylabel()
        'least ε in nats'
    """
    require_kind(audits, Mapping, "audits", "a mapping of names to audits")
    if not 0 < len(audits) <= len(_STYLES):
        raise InputError("audits", "has the wrong size", value=len(audits), bound=f"1 to {len(_STYLES)} audits")
    for name, found in audits.items():
        require_kind(name, str, "audits", "a mapping of names to audits")
        require_kind(found, Audit, f"audits[{name!r}]", "an Audit")
    figure = new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    open_ = draw_epsilons(axes, audits, radii)
    if open_:
        said = f"No finite ε at any distance shown: {'; '.join(open_)}"
    else:
        said = "Least ε for all pairs of secrets within a distance"
    put_legend(axes, frameon=False)
    headline(figure, said)
    return figure


@in_report_style
def losses_picture(losses: Sequence[DistanceLoss], unit: str) -> Figure:
    """Show the losses of one channel by distance, whose unit is `unit`."""
    figure = new_figure(_WIDTH, _HEIGHT)
    _draw_losses(figure.subplots(), {"": losses}, unit)
    headline(figure, _describe_losses(losses, f" {unit}" if unit else ""))
    return figure


def _describe_losses(losses: Sequence[DistanceLoss], unit: str) -> str:
    """Return a sentence on the least ε for the nearest pairs, and for all pairs."""
    first, last = losses[0], losses[-1]
    if math.isinf(first.epsilon):
        return "No finite ε holds at any distance"
    near = f"Secrets up to {short(first.radius)}{unit} apart need ε = {format_bound(first.epsilon, up=True, digits=4)}"
    if math.isfinite(last.epsilon):
        return f"{near}; all bounded pairs need ε = {format_bound(last.epsilon, up=True, digits=4)}"
    least = next(each.radius for each in losses if math.isinf(each.epsilon))
    return f"{near}; no finite ε holds up to {short(least)}{unit}"


def draw_epsilons(axes: Axes, audits: Mapping[str, Audit], radii: ArrayLike | None = None) -> list[str]:
    """Draw a line for each audit; return the names of those that have no finite ε at any radius."""
    unit = next((found.secrets.unit for found in audits.values() if found.secrets is not None), "")
    return _draw_losses(axes, {name: found.epsilon_by_distance(radii) for name, found in audits.items()}, unit)


def _draw_losses(axes: Axes, lines: Mapping[str, Sequence[DistanceLoss]], unit: str) -> list[str]:
    finite = [each.epsilon for line in lines.values() for each in line if math.isfinite(each.epsilon)]
    largest = max(finite, default=0.0) or 1.0
    axes.set_ylim(0, 1.3 * largest)
    above = blended_transform_factory(axes.transData, axes.transAxes)
    names, broken = [], 0
    for (name, line), (colour, marker, dash) in zip(lines.items(), _STYLES, strict=False):
        radius = np.array([each.radius for each in line])
        epsilon = np.array([each.epsilon for each in line])
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "linestyle": dash}
        good = np.isfinite(epsilon)
        axes.plot(radius[good], epsilon[good], label=name, **style)
        if not good.all():
            height = np.full(int((~good).sum()), _TOP - _STEP * broken)
            axes.plot(radius[~good], height, transform=above, **style)
            broken += 1
        if len(line) and not good.any():
            names.append(name)
    if broken:
        axes.axhline(1.1 * largest, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.text(0.005, _TOP - 0.02, "∞", transform=axes.transAxes, va="center", size=12, color=INK)
    axes.set_xlim(left=0)
    axes.set_xlabel("pairs of secrets at most this far apart" + (f" ({unit})" if unit else ""))
    axes.set_ylabel("least ε in nats")
    return names
