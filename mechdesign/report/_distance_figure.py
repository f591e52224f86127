"""The figure of ε by distance, which compares the guarantees of several channels for pairs within a distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory
from numpy.typing import ArrayLike

from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.measures._audit import Audit, DistanceLoss
from mechdesign.report._maps import in_unit
from mechdesign.report._style import DASHES, INK, MARKERS, MUTED, SERIES, drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST, HEIGHT = 5, 2.8
# The height of lines without a finite ε, as a share of the panel, and the step between several of them.
_TOP, _STEP = 0.95, 0.06


def epsilon_by_distance(
    audits: Mapping[str, Audit], radii: ArrayLike | None = None, axes: Axes | None = None
) -> Figure:
    """Show the least ε for all pairs of secrets within each distance, for several channels.

    Infinite values are drawn at the top, above a dashed line.

    Args:
        audits: The audits of the channels, by name. At most five.
        radii: The distances, increasing; by default ten equal steps up to the largest distance of each audit.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InputError: No audit, more than five, or wrong radii.

    Example:
        >>> from mechdesign.measures._audit import audit
        >>> found = audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]])
        >>> epsilon_by_distance({"response": found}).axes[0].get_ylabel()
        'least ε in nats'
    """
    require_kind(audits, Mapping, "audits", "a mapping of names to audits")
    if not 0 < len(audits) <= _MOST:
        raise InputError("audits", "has the wrong size", value=len(audits), bound=f"1 to {_MOST} audits")
    for name, found in audits.items():
        require_kind(name, str, "audits", "a mapping of names to audits")
        require_kind(found, Audit, f"audits[{name!r}]", "an Audit")
    unit = next((found.secrets.unit for found in audits.values() if found.secrets is not None), "")
    losses = {name: found.epsilon_by_distance(radii) for name, found in audits.items()}
    return drawn(axes, HEIGHT, draw_epsilons, losses, unit)


def draw_epsilons(axes: Axes, losses: Mapping[str, Sequence[DistanceLoss]], unit: str = "") -> None:
    """Draw a line for each channel, whose losses are at increasing distances in a unit."""
    finite = [each.epsilon for line in losses.values() for each in line if np.isfinite(each.epsilon)]
    largest = max(finite, default=0.0) or 1.0
    axes.set_ylim(0, 1.3 * largest)
    above = blended_transform_factory(axes.transData, axes.transAxes)
    broken = 0
    for number, (name, line) in enumerate(losses.items()):
        radius, epsilon = (np.array([getattr(each, key) for each in line]) for key in ("radius", "epsilon"))
        style: dict[str, Any] = {"color": SERIES[number], "marker": MARKERS[number], "markersize": 4.5}
        style["linestyle"] = DASHES[number % len(DASHES)]
        good = np.isfinite(epsilon)
        axes.plot(radius[good], epsilon[good], label=name, **style)
        if not good.all():
            axes.plot(radius[~good], np.full((~good).sum(), _TOP - _STEP * broken), transform=above, **style)
            broken += 1
    if broken:
        axes.axhline(1.1 * largest, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.text(0.005, _TOP - 0.02, "∞", transform=axes.transAxes, va="center", size=12, color=INK)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"pairs of secrets at most this far apart{in_unit(unit)}")
    axes.set_ylabel("least ε in nats")
