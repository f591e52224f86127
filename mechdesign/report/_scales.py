"""From numbers to colours, and to the words beside the colours."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.model._words import percent, short

LEVELS = 32
"""Colours of a map on a page: steps that the eye takes for a continuous scale."""

# A linear scale shows nothing below this part of its end; when more than half of the values are there, take logarithms.
_INVISIBLE = 0.01
_DECADES = 4


@dataclass(frozen=True, eq=False)
class Scale:
    """A colour for every number: `norm` and `cmap`, the `label` of the colour bar, and how its ticks are written.

    With `zeros`, the number 0 has no colour: it is shown as absent. `below` says that smaller numbers share the first
    colour. Pictures side by side share one scale. `hue` names the colours in the style sheet of a page.
    """

    norm: Normalize
    cmap: Colormap
    label: str
    zeros: bool
    below: bool = False
    percent: bool = False
    hue: str = "p"

    @property
    def logarithmic(self) -> bool:
        """Whether equal ratios, and not equal differences, have equal distances."""
        return isinstance(self.norm, LogNorm)

    def from_zero(self) -> Scale:
        """Return the linear scale from 0 to the same end: lengths of bars have no other."""
        return replace(self, norm=Normalize(0.0, self.norm.vmax), label=self.label.removesuffix(" (log scale)"))

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
    return Scale(Normalize(0.0, top), _between("viridis_r", 0.0, 1.0), label, False, hue="e")


def levels(scale: Scale, values: ArrayLike) -> Integers:
    """Return the step of the colour scale, from 0 to `LEVELS` − 1, of each of `values`, any shape."""
    numbers = np.asarray(values, dtype=np.float64)
    low, top = float(scale.norm.vmin or 0.0), float(scale.norm.vmax or 1.0)
    if scale.logarithmic:
        reach = math.log(top / low) or 1.0
        parts = np.log(np.maximum(numbers, low) / low) / reach
    else:
        parts = (numbers - low) / (top - low)
    found: Integers = np.clip(np.floor(parts * LEVELS), 0, LEVELS - 1).astype(np.int64)
    return found


def ticks(scale: Scale, most: int = 5) -> list[tuple[float, str]]:
    """Return ticks for the bar of a scale: where each is, as a part of the length of the bar, and its text."""
    low, top = float(scale.norm.vmin or 0.0), float(scale.norm.vmax or 1.0)
    if not scale.logarithmic:
        round_numbers = np.asarray(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, top))
        return [(value / top, scale.write(value)) for value in round_numbers.tolist() if 0 <= value <= top * (1 + 1e-9)]
    reach = math.log10(top / low) or 1.0
    steps = (1,) if reach >= 2.5 else (1, 3) if reach >= 1.2 else (1, 2, 5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(top)) + 1)
    found = [step * 10.0**decade for decade in decades for step in steps]
    kept = [value for value in found if low * (1 - 1e-9) <= value <= top * (1 + 1e-9)]
    return [(math.log10(value / low) / reach, scale.write(value)) for value in kept]


def ramps(dark: bool) -> str:
    """Return the rules of a style sheet for the colours of maps: little is close to the paper, in either mode."""
    rules = []
    for hue, light_map, dark_map in (("p", ("magma_r", 0.01, 0.96), ("magma", 0.14, 0.99)),
                                     ("e", ("viridis_r", 0.0, 1.0), ("viridis", 0.04, 1.0))):  # fmt: skip
        colours = [matplotlib.colors.to_hex(each) for each in _steps(*(dark_map if dark else light_map))]
        rules += [f".{hue}{step}{{fill:{colour}}}" for step, colour in enumerate(colours)]
        rules.append(f".ramp-{hue}{{background:linear-gradient(to right,{','.join(colours[::3] + colours[-1:])})}}")
    return "\n".join(rules)


def _steps(name: str, start: float, stop: float) -> Floats:
    colours: Floats = matplotlib.colormaps[name](np.linspace(start, stop, LEVELS))
    return colours


def _positive(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array) & (array > 0)]


def _between(name: str, start: float, stop: float) -> Colormap:
    """Return a part of a colour map: the ends of some are hard to tell from the paper or from black lines."""
    whole = matplotlib.colormaps[name]
    return matplotlib.colors.ListedColormap(whole(np.linspace(start, stop, 256)), name=f"{name}[{start}, {stop}]")
