"""From numbers to colours, and to the words beside the colours."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LogNorm, Normalize
from numpy.typing import ArrayLike, NDArray

from mechdesign.report.numbers import percent, power, relative, short

__all__ = ["Scale", "error_scale", "percent", "power", "probability_scale", "relative", "short"]

# A linear scale shows nothing below this part of its end; when more than half of the values are there, take logarithms.
_INVISIBLE = 0.01
_DECADES = 4


@dataclass(frozen=True, eq=False)
class Scale:
    """A colour for every number: `norm` and `cmap`, the `label` of the colour bar, and how its ticks are written.

    With `zeros`, the number 0 has no colour: it is shown as absent. `below` says that smaller numbers share the first
    colour. Pictures side by side share one scale.
    """

    norm: Normalize
    cmap: Colormap
    label: str
    zeros: bool
    below: bool = False
    percent: bool = False

    def write(self, value: float) -> str:
        """Write one number of the scale."""
        return percent(value) if self.percent else short(value)


def probability_scale(values: ArrayLike, label: str) -> Scale:
    """Return the scale for probabilities: linear from 0, or logarithmic where a linear one would show but a few."""
    positive = _positive(values)
    top = float(positive.max()) if positive.size else 1.0
    cmap = _between("magma_r", 0.01, 0.96)
    if positive.size and float(np.mean(positive < _INVISIBLE * top)) > 0.5:
        lowest = float(positive.min())
        start = max(lowest, top * 10.0**-_DECADES)
        return Scale(LogNorm(start, top), cmap, f"{label} (log scale)", True, below=lowest < start, percent=True)
    return Scale(Normalize(0.0, top), cmap, label, True, percent=True)


def error_scale(values: ArrayLike, label: str) -> Scale:
    """Return the scale for the adversary's errors, linear from 0; the hue differs from that of probabilities."""
    positive = _positive(values)
    top = float(positive.max()) if positive.size else 1.0
    return Scale(Normalize(0.0, top), _between("viridis_r", 0.0, 1.0), label, False)


def _positive(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array) & (array > 0)]


def _between(name: str, start: float, stop: float) -> Colormap:
    """Return a part of a colour map: the ends of some are hard to tell from the paper or from black lines."""
    whole = matplotlib.colormaps[name]
    return matplotlib.colors.ListedColormap(whole(np.linspace(start, stop, 256)), name=f"{name}[{start}, {stop}]")
