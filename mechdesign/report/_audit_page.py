"""The page of an audit: the worst pairs in a table and on a map, ε by distance, cost and attacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.transforms import blended_transform_factory
from numpy.typing import ArrayLike

from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.measures._audit import Audit, DistanceLoss, PairLoss
from mechdesign.model._words import clip, format_bound, recognise_measure, short
from mechdesign.report import _maps as maps
from mechdesign.report._page import Picture, Prose, Row, Section, Table, members_table, page
from mechdesign.report._style import ACCENT, DASHES, MUTED, SERIES, drawn, report_style
from mechdesign.report._verdicts import (
    describe_pair,
    describe_rows,
    judge_audit,
    limit_audit,
    measure_distances,
    name_secret,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAIRS = 5
# Spread of ε, relative to the largest, below which rounded numbers at a scale would be equal.
_LEAST_SPREAD = 0.01
_MOST_AUDITS, _HEIGHT = 5, 2.8
# The height of lines without a finite ε, as a share of the panel, and the step between several of them.
_TOP, _STEP = 0.95, 0.06

_ATTACKS = {
    "optimal": "knows the prior; best single guess",
    "bayes": "knows the prior; guess drawn from the posterior",
    "prior_free": "knows no prior",
}


@report_style()
def html(found: Audit, stated: object = None, title: str = "", optimum: bool = True, note: str = "") -> str:
    """Return the page of an audit.

    `stated` is the ε that the author of the channel claims, if any. With `optimum` the page compares the cost with the
    least cost. `note` is a sentence about the data, without a full stop.
    """
    pairs = found.worst_pairs(_PAIRS)
    said = (*describe_rows(found), *([f"{note[0].upper()}{note[1:]}."] if note else []))
    heads = ("Secrets s and t", "Answer", "p(o|s)", "p(o|t)", "ε needed")
    worst = Table([describe_pair(found, pair) for pair in pairs], heads)
    sections = [
        Section("What holds", [Table(list(_facts(found, optimum))), Prose(said)]),
        *([Section("Worst pairs", [worst, *_pictures(found, pairs, stated)])] if pairs else []),
        Section("What this does not promise", [Prose(list(limit_audit(found)), "list")]),
        Section("Attacks", [
            Table(list(_attacks(found)), ("Attack", "The adversary", "Expected error")),
            Prose(["Errors are under the prior of the audit, in floating point."]),
        ]),
    ]  # fmt: skip
    return page(title.strip() or "Audit of a channel", judge_audit(found, stated), sections)


def pairs_figure(found: Audit, pairs: Sequence[PairLoss], stated: object = None) -> Figure:
    """Return the figure of the worst pairs of secrets as lines on a map; colours show the ε that each secret needs.

    Colours begin at the `stated` ε, or else at the least ε of a secret, but at 0 if all are almost equal. If no
    finite ε holds, colours show the number of other secrets that an answer can rule out.
    """
    return drawn(None, maps.height_of_figure(found.secrets), _draw_pairs, found, pairs, stated)


def _draw_pairs(axes: Axes, found: Audit, pairs: Sequence[PairLoss], stated: object) -> None:
    secrets, broken = found.secrets, pairs[0].epsilon == math.inf
    assert secrets is not None
    # Secrets at distance 0 with different rows need an infinite ε, which no scale shows.
    values = found.ruled_out.astype(np.float64) if broken else np.minimum(found.exposure, pairs[0].epsilon)
    least = float(values.min()) if stated is None else min(float(exact(stated)), float(values.min()))
    if broken or values.max() - least < _LEAST_SPREAD * values.max():
        least = 0.0
    label = "other secrets that an answer may rule out" if broken else "largest ε of the secret's pairs"
    maps.draw_numbers(axes, secrets, values, label, norm=maps.find_norm(values, least))
    lines = [secrets.points[list(pair.pair)] for pair in pairs]
    for colour, width in (("white", 3.2), (ACCENT, 1.6)):
        axes.add_collection(LineCollection(lines, color=colour, linewidth=width, zorder=6))
    for secret in sorted({secret for pair in pairs for secret in pair.pair}):
        x, y = secrets.points[secret].tolist()
        box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}
        name = clip(name_secret(found, secret), 12)
        axes.text(x, y, name, ha="center", va="center", fontsize=8.0, zorder=8, bbox=box)


def _pictures(found: Audit, pairs: Sequence[PairLoss], stated: object) -> Iterator[Picture]:
    if maps.is_map(found.secrets):
        said = f"Lines join the {len(pairs)} pairs of secrets that need the largest ε, whose labels are shown."
        if math.isinf(found.epsilon) and math.isfinite(pairs[0].epsilon):
            said += " The darkest colour also stands for secrets whose rows differ from those of others at distance 0."
        needed = members_table(
            "Secret", found.secrets, {"Largest ε of its pairs": found.exposure}, partial(format_bound, up=True)
        )
        yield Picture("pairs", "The worst pairs on the map", said, pairs_figure(found, pairs, stated), needed)
    measured = measure_distances(found)
    if measured.name and len(np.unique(found.bound.weights)) > 1:
        losses = found.epsilon_by_distance()
        heads = (f"distance{maps.in_unit(measured.unit)}", "ordered pairs", "least ε in nats, rounded up")
        rows = [(short(each.radius, 6), str(each.pairs), format_bound(each.epsilon, up=True)) for each in losses]
        made = drawn(None, _HEIGHT, _draw_epsilons, {"": losses}, measured.unit)
        said = "Each ε is for all pairs up to a distance; it is not per unit of distance."
        yield Picture("by-distance", "Least ε by distance", said, made, Table(rows, heads))


def _facts(found: Audit, optimum: bool) -> Iterator[Row]:
    n, m = found.matrix.shape
    yield "Channel", f"{n} secrets × {m} observables"
    yield "Bounded pairs of secrets", f"{len(found.bound)}, in both directions"
    yield "Tight ε per unit of distance, rounded up", format_bound(found.epsilon, up=True)
    if found.cost is not None:
        yield f"Cost ({found.objective}), rounded up", format_bound(found.cost, up=True)
    if optimum and found.optimum is not None and found.cost is not None:
        yield "Lower bound of the cost of all channels with the tight ε", format_bound(found.optimum, up=False)
        excess = found.cost / found.optimum - 1 if found.optimum > 0 else math.inf
        yield "Cost above this bound", f"{short(100 * excess)}%" if math.isfinite(excess) else "–"


def _attacks(found: Audit) -> Iterator[Row]:
    names = [name for name in _ATTACKS if name != "bayes" or found.error.shape[0] == found.error.shape[1]]
    errors = found.attacks(names)
    measured = recognise_measure(found.error, found.secrets, found.secrets)
    for name in names:
        yield name.replace("_", "-"), _ATTACKS[name], measured.with_unit(short(errors[name], 4))


def epsilon_by_distance(
    audits: Mapping[str, Audit], radii: ArrayLike | None = None, axes: Axes | None = None
) -> Figure:
    """Show the least ε for all pairs of secrets within each distance, for several channels.

    Between two radii, a line is at the ε of the larger one, so that it is never too low. Infinite values are drawn at
    the top, above a dashed line.

    Args:
        audits: The audits of the channels, by name. At most five.
        radii: The distances, increasing; by default all distances of pairs of each audit, or fifty of them.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InputError: No audit, more than five, an audit under a policy graph, or wrong radii.

    Example:
        >>> from mechdesign.measures._audit import audit
        >>> found = audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]])
        >>> epsilon_by_distance({"response": found}).axes[0].get_ylabel()
        'least ε in nats'
    """
    require_kind(audits, Mapping, "audits", "a mapping of names to audits")
    if not 0 < len(audits) <= _MOST_AUDITS:
        raise InputError("audits", "has the wrong size", value=len(audits), bound=f"1 to {_MOST_AUDITS} audits")
    for name, found in audits.items():
        require_kind(name, str, "audits", "a mapping of names to audits")
        require_kind(found, Audit, f"audits[{name!r}]", "an Audit")
        if found.bound.kind == "graph":
            hops = "audit with distance=md.distances.shortest_path(graph), which counts edges"
            raise InputError(f"audits[{name!r}]", "has a policy graph, without distances", remedy=hops)
    unit = next((found.secrets.unit for found in audits.values() if found.secrets is not None), "")
    losses = {name: found.epsilon_by_distance(radii) for name, found in audits.items()}
    return drawn(axes, _HEIGHT, _draw_epsilons, losses, unit)


def _draw_epsilons(axes: Axes, losses: Mapping[str, Sequence[DistanceLoss]], unit: str = "") -> None:
    """Draw a line for each channel, whose losses are at increasing distances in a unit."""
    finite = [each.epsilon for line in losses.values() for each in line if np.isfinite(each.epsilon)]
    largest = max(finite, default=0.0) or 1.0
    axes.set_ylim(0, 1.3 * largest)
    above = blended_transform_factory(axes.transData, axes.transAxes)
    broken = 0
    for number, (name, line) in enumerate(losses.items()):
        # A line begins at 0, and that of infinite values where the finite ones end.
        radius = np.array([0.0, *(each.radius for each in line)])
        epsilon = np.array([each.epsilon for each in (*line[:1], *line)])
        style: dict[str, Any] = {"color": SERIES[number], "linestyle": DASHES[number % len(DASHES)]}
        first = int(np.isfinite(epsilon).sum())
        axes.plot(radius[:first], epsilon[:first], label=name, drawstyle="steps-pre", **style)
        if first < len(epsilon):
            beyond = radius[max(first - 1, 0) :]
            axes.plot(beyond, np.full(len(beyond), _TOP - _STEP * broken), transform=above, **style)
            broken += 1
    if broken:
        axes.axhline(1.1 * largest, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.text(0.995, _TOP - 0.02, "∞", transform=axes.transAxes, ha="right", va="center", size=12)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"pairs of secrets at most this far apart{maps.in_unit(unit)}")
    maps.number_axis(axes.yaxis, 5)
    axes.set_ylabel("least ε in nats")
