"""The pictures of single secrets: prior, answers, and errors; each a pure function from numbers to a figure.

Figures are plain `matplotlib.figure.Figure` values, apart from pyplot and from the user's settings; save them with
``figure.savefig``. Titles say what is found.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from mechdesign.model._domain import Domain
from mechdesign.report import maps
from mechdesign.report.frame import round_ticks
from mechdesign.report.scales import Scale
from mechdesign.report.scales import error_scale
from mechdesign.model._words import percent
from mechdesign.report.scales import probability_scale
from mechdesign.model._words import short
from mechdesign.report.style import INK
from mechdesign.report.style import MUTED
from mechdesign.report.style import drawn
from mechdesign.report.style import headline
from mechdesign.report.style import new_figure
from mechdesign.model._words import clip
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = [
    "error_finding",
    "error_picture",
    "most_likely",
    "outputs_finding",
    "outputs_picture",
    "prior_finding",
    "prior_picture",
]


_WIDTH = 9.0
_MOST_PANELS = 6


@drawn
def prior_picture(prior: ArrayLike, secrets: Domain | None = None) -> Figure:
    """Show the prior (n,): where secrets are likely, unlikely, and impossible."""
    probabilities = np.asarray(prior, dtype=np.float64)
    scale = probability_scale(probabilities, "prior probability")
    width, height = maps.panel_size(secrets, 6.6, 3.8)
    wider, higher = maps.bar_room(secrets, height)
    figure = new_figure(max(width + 0.9 + wider, 4.5), height + 1.25 + higher)
    axes = figure.subplots()
    maps.draw(axes, secrets, probabilities, scale)
    if _is_map(secrets):
        maps.scale_bar(figure, [axes], scale, height)
    if (probabilities == 0).any():
        maps.zero_key(figure, secrets, "prior of exactly 0")
    headline(figure, prior_finding(probabilities))
    return figure


def prior_finding(prior: ArrayLike) -> str:
    """Say on how many secrets half of a prior is, and how many never occur."""
    probabilities = np.asarray(prior, dtype=np.float64)
    n = len(probabilities)
    half = int(np.searchsorted(np.cumsum(np.sort(probabilities)[::-1]), 0.5 - 1e-12)) + 1
    finding = f"Half of the prior is on {half} of {n} secrets" if n > 1 else "There is one secret only"
    impossible = int((probabilities == 0).sum())
    if impossible:
        finding += f"; {impossible} never occur" if impossible > 1 else "; one never occurs"
    return finding


@drawn
def outputs_picture(
    matrix: ArrayLike,
    prior: ArrayLike,
    secrets: Domain | None = None,
    observables: Domain | None = None,
    count: int = _MOST_PANELS,
) -> Figure:
    """Show the rows p(·|s) of a channel (n, m) for the `count` most likely secrets, each marking its own place."""
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    chosen = most_likely(probabilities, count)
    rows = channel[chosen]
    scale = probability_scale(rows, "probability of the answer, p(o|s)" if _is_map(observables) else "p(o|s)")
    columns = min(3, len(chosen)) if len(chosen) != 4 else 2
    lines = math.ceil(len(chosen) / columns)
    limit = (_WIDTH - 1.2) / columns
    width, height = maps.panel_size(observables, min(limit, 4.2), 3.2)
    if maps.kind(observables) == "labels" and observables is not None:
        height += 0.3
    wider, higher = maps.bar_room(observables, lines * height)
    figure = new_figure(max(columns * width + 0.2 + wider, 4.5), lines * (height + 0.3) + 0.75 + higher)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for panel, index in zip(axes.flat, chosen, strict=False):
        mark = _own_place(secrets, observables, int(index))
        maps.draw(panel, observables, channel[index], scale, mark=mark, ticks=False)
        _mark_elsewhere(panel, secrets, observables, int(index), mark)
        name = clip(secrets.labels[index], 34) if secrets is not None else str(index)
        panel.set_title(f"secret {name}, prior {percent(probabilities[index])}", loc="left", fontsize=9)
    used = list(axes.flat[: len(chosen)])
    for panel in axes.flat[len(chosen) :]:
        panel.set_visible(False)
    for panel in used:
        panel.label_outer()
    for panel in used[-columns:]:
        # The lowest panel of each column, also above one that is not used.
        panel.tick_params(axis="x", labelbottom=True)
        panel.xaxis.label.set_visible(True)
    if _is_map(observables):
        maps.scale_bar(figure, used, scale, lines * height)
    if (rows == 0).any():
        maps.zero_key(figure, observables, "never answered")
    headline(figure, outputs_finding(rows))
    return figure


def outputs_finding(rows: ArrayLike) -> str:
    """Say over how many observables the answers spread, for the rows (k, m) of the likeliest secrets."""
    shown = np.asarray(rows, dtype=np.float64)
    spread = np.exp(_entropy(shown))
    low, high = short(float(spread.min()), 2), short(float(spread.max()), 2)
    over = low if low == high else f"{low} to {high}"
    subject = "The answer spreads" if len(shown) == 1 else f"For the {len(shown)} likeliest secrets, answers spread"
    return f"{subject} over {over} of {shown.shape[1]} observables"


@drawn
def error_picture(per_secret: ArrayLike, prior: ArrayLike, secrets: Domain | None = None, unit: str = "") -> Figure:
    """Show where the adversary still errs: the expected error of the best attack, for each secret and by its prior.

    `per_secret` (n,) is E_s, the error expected when the secret is s; `prior` (n,) is the adversary's.
    """
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    mean = float(probabilities @ errors)
    short_label = f"expected error ({unit})" if unit else "expected error"
    label = f"adversary's {short_label}" if _is_map(secrets) else short_label
    scale = error_scale(errors, label)
    width, height = maps.panel_size(secrets, 4.6, 4.2)
    higher = maps.bar_room(secrets, height)[1]
    figure = new_figure(_WIDTH, max(height + higher, 2.6) + 1.0)
    left, right = figure.subplots(1, 2, width_ratios=[width + 0.8, 3.0])
    maps.draw(left, secrets, errors, scale)
    if _is_map(secrets):
        maps.scale_bar(figure, [left], scale, height)
    _against_prior(right, errors, probabilities, scale, mean, unit)
    headline(figure, error_finding(errors, probabilities, unit))
    return figure


def most_likely(prior: ArrayLike, count: int = _MOST_PANELS) -> Integers:
    """Return the indices of at most `count` secrets that can occur, most likely first, the first of equals first."""
    probabilities = np.asarray(prior, dtype=np.float64)
    order = np.argsort(-probabilities, kind="stable")[: max(1, count)].astype(np.int64)
    return order[probabilities[order] > 0]


def _is_map(domain: Domain | None) -> bool:
    return maps.kind(domain) in ("grid", "points")


def _own_place(secrets: Domain | None, observables: Domain | None, index: int) -> int | None:
    """Return the observable that is the secret itself, if there is one."""
    if secrets is None or observables is None:
        return index if secrets is observables else None
    if secrets is observables:
        return index
    if secrets.labels == observables.labels and np.array_equal(secrets.points, observables.points):
        return index
    return None


def _mark_elsewhere(
    axes: Axes, secrets: Domain | None, observables: Domain | None, index: int, mark: int | None
) -> None:
    """Mark the place of a secret on a map of other observables, where both are in the same plane."""
    if mark is not None or secrets is None or observables is None or not _is_map(observables):
        return
    if (
        secrets.points.shape[1] == 2
        and secrets.unit == observables.unit
        and secrets.geographic == observables.geographic
    ):
        x, y = secrets.points[index]
        for colour, thickness, size in (("black", 4.0, 9), ("white", 1.8, 8)):
            axes.plot(x, y, "x", color=colour, markersize=size, markeredgewidth=thickness, zorder=6, clip_on=False)


def _entropy(rows: Floats) -> Floats:
    """Return the entropy of each row, in nats."""
    logarithms = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    entropy: Floats = -(rows * logarithms).sum(axis=1)
    return entropy


def _against_prior(axes: Axes, errors: Floats, prior: Floats, scale: Scale, mean: float, unit: str) -> None:
    positive = prior > 0
    axes.scatter(
        prior[positive],
        errors[positive],
        s=18,
        c=errors[positive],
        norm=scale.norm,
        cmap=scale.cmap,
        edgecolor=MUTED,
        linewidth=0.4,
        zorder=3,
        rasterized=len(errors) > 400,
        clip_on=False,
    )
    spread = prior[positive].max() / prior[positive].min()
    if spread > 30:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=5))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, prior.max() * 1.06)
        axes.xaxis.set_major_locator(round_ticks(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.axhline(mean, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    axes.annotate(
        f"mean\n{short(mean)}" + (f" {unit}" if unit else ""),
        (1.0, mean),
        xycoords=("axes fraction", "data"),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        annotation_clip=False,
    )
    axes.set_ylim(0, (errors.max() or 1.0) * 1.05)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.set_xlabel("prior probability" + (" (log scale)" if spread > 30 else ""))
    axes.set_ylabel(f"expected error ({unit})" if unit else "expected error")
    axes.grid(axis="y")


def error_finding(per_secret: ArrayLike, prior: ArrayLike, unit: str = "") -> str:
    """Say how far the best attack errs on average, and how often by much less."""
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    mean = float(probabilities @ errors)
    if mean == 0:
        return "The best attack is never wrong: answers give the secret away"
    close = float(probabilities[errors < mean / 2].sum())
    measured = short(mean) + (f" {unit}" if unit else "")
    if close == 0:
        return f"The best attack errs by {measured} on average, nowhere by less than half of that"
    return f"The best attack errs by {measured} on average, by less than half of that for {percent(close)} of the prior"
