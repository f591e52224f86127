"""From numbers to colours, and to the words beside the colours."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LogNorm, Normalize
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.model._words import percent, short
from mechdesign.report._style import is_on_page

LEVELS = 32
"""Colours of a map on a page: steps that the eye takes for a continuous scale."""

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

    @property
    def logarithmic(self) -> bool:
        """Whether equal ratios, and not equal differences, have equal distances."""
        return isinstance(self.norm, LogNorm)

    def write(self, value: float) -> str:
        """Write one number of the scale."""
        return percent(value) if self.percent else short(value)


def probability_scale(values: ArrayLike, label: str) -> Scale:
    """Return the scale for probabilities: linear from 0, or logarithmic where a linear one would show but a few."""
    positive = _positive(values)
    top = float(positive.max()) if positive.size else 1.0
    cmap = _colours("p")
    if positive.size and float(np.mean(positive < _INVISIBLE * top)) > 0.5:
        lowest = float(positive.min())
        start = max(lowest, top * 10.0**-_DECADES)
        return Scale(LogNorm(start, top), cmap, f"{label} (log scale)", True, below=lowest < start, percent=True)
    return Scale(Normalize(0.0, top), cmap, label, True, percent=True)


def error_scale(values: ArrayLike, label: str) -> Scale:
    """Return the scale for the adversary's errors, linear from 0; the hue differs from that of probabilities."""
    positive = _positive(values)
    top = float(positive.max()) if positive.size else 1.0
    return Scale(Normalize(0.0, top), _colours("e"), label, False)


_HUES = {"p": (("magma_r", 0.01, 0.96), ("magma", 0.14, 0.99)), "e": (("viridis_r", 0.0, 1.0), ("viridis", 0.04, 1.0))}
"""Colours of probabilities and of errors, in light and in dark mode: a map of colours, and the part of it that serves.

The ends of some are hard to tell from the paper or from black lines.
"""


def ramps(dark: bool) -> str:
    """Return the rules of a style sheet for the colours of maps: little is close to the paper, in either mode."""
    return "\n".join(
        f".{hue}{step}{{fill:{matplotlib.colors.to_hex(colour)}}}"
        for hue, modes in _HUES.items()
        for step, colour in enumerate(_steps(*modes[dark], LEVELS))
    )


@functools.cache
def colour_classes() -> dict[str, str]:
    """Return the class of a page's style sheet for each colour that figures on pages take from scales."""
    return {
        matplotlib.colors.to_hex(colour): f"{hue}{step}"
        for hue, (light, _) in _HUES.items()
        for step, colour in enumerate(_steps(*light, LEVELS))
    }


def _colours(hue: str) -> Colormap:
    name, start, stop = _HUES[hue][0]
    levels = LEVELS if is_on_page() else 256
    return matplotlib.colors.ListedColormap(_steps(name, start, stop, levels), name=f"{name}[{start}, {stop}]")


def _steps(name: str, start: float, stop: float, count: int) -> Floats:
    colours: Floats = matplotlib.colormaps[name](np.linspace(start, stop, count))
    return colours


def _positive(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array) & (array > 0)]
