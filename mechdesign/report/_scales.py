"""Scales that map numbers to colours, and the labels of their colour bars."""

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
"""Number of colours of a map on a page; steps between them are hardly visible."""

# Numbers below this share of the largest number are invisible on a linear scale. If more than half of the numbers are
# invisible, the scale is logarithmic.
_INVISIBLE = 0.01
_DECADES = 4


@dataclass(frozen=True, eq=False)
class Scale:
    """A map from numbers to colours for several panels.

    Attributes:
        norm: Map from numbers to [0, 1].
        cmap: Map from [0, 1] to colours.
        label: Label of the colour bar.
        zeros: Whether the number 0 has a special symbol instead of a colour.
        below: Whether numbers below the scale share its first colour.
        percent: Whether numbers are written in percent.
    """

    norm: Normalize
    cmap: Colormap
    label: str
    zeros: bool
    below: bool = False
    percent: bool = False

    @property
    def logarithmic(self) -> bool:
        """Whether equal ratios have equal distances, instead of equal differences."""
        return isinstance(self.norm, LogNorm)

    def write(self, value: float) -> str:
        """Return one number of the scale as text."""
        return percent(value) if self.percent else short(value)


def probability_scale(values: ArrayLike, label: str) -> Scale:
    """Return the scale for probabilities: linear from 0, or logarithmic if most probabilities would be invisible."""
    positive = _positive(values)
    top = float(positive.max()) if positive.size else 1.0
    cmap = _colours("p")
    if positive.size and float(np.mean(positive < _INVISIBLE * top)) > 0.5:
        lowest = float(positive.min())
        start = max(lowest, top * 10.0**-_DECADES)
        return Scale(LogNorm(start, top), cmap, f"{label} (log scale)", True, below=lowest < start, percent=True)
    return Scale(Normalize(0.0, top), cmap, label, True, percent=True)


def error_scale(values: ArrayLike, label: str, start: float = 0.0) -> Scale:
    """Return the scale for the adversary's errors, linear from `start`; its hue differs from the hue of probabilities.

    If no value exceeds `start`, the scale begins at 0.
    """
    positive = _positive(values)
    top = float(positive.max()) if positive.size else 1.0
    return Scale(Normalize(start if start < top else 0.0, top), _colours("e"), label, False)


_HUES = {"p": (("magma_r", 0.01, 0.96), ("magma", 0.14, 0.99)), "e": (("viridis_r", 0.0, 1.0), ("viridis", 0.04, 1.0))}
"""Colour map, and its range in use, for probabilities ("p") and for errors ("e"), each in light and in dark mode.

The ends of some colour maps are left out, because they are too similar to the background or to black lines.
"""


def ramps(dark: bool) -> str:
    """Return style rules for the colours of maps; in light and dark mode, small numbers resemble the background."""
    return "\n".join(
        f".{hue}{step}{{fill:{matplotlib.colors.to_hex(colour)}}}"
        for hue, modes in _HUES.items()
        for step, colour in enumerate(_steps(*modes[dark], LEVELS))
    )


@functools.cache
def colour_classes() -> dict[str, str]:
    """Return the class of a page's style sheet for each colour of the scales."""
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
