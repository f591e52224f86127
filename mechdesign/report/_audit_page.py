"""The page of an audit: the worst pairs in a table and on a map, ε by distance, cost and attacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from mechdesign.certify._exact import exact
from mechdesign.measures._audit import Audit, PairLoss
from mechdesign.model._words import clip, format_bound, recognise_measure, short
from mechdesign.report import _maps as maps
from mechdesign.report._distance_figure import HEIGHT, draw_epsilons
from mechdesign.report._page import Picture, Prose, Row, Section, Table, members_table, page
from mechdesign.report._style import ACCENT, drawn, report_style
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
    return drawn(None, maps.height_with_scale(found.secrets), _draw_pairs, found, pairs, stated)


def _draw_pairs(axes: Axes, found: Audit, pairs: Sequence[PairLoss], stated: object) -> None:
    secrets, broken = found.secrets, pairs[0].epsilon == math.inf
    assert secrets is not None
    values = found.ruled_out.astype(np.float64) if broken else found.exposure
    # Secrets at distance 0 with different rows need an infinite ε, which no scale shows.
    told = ~np.isfinite(values)
    values = np.where(told, values[~told].max(initial=0.0), values)
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
        said = (
            f"Lines join the {len(pairs)} pairs of secrets that need the largest ε, whose labels are shown. If no "
            "finite ε is enough, colours show how many other secrets an answer rules out."
        )
        needed = members_table("Secret", found.secrets, {"Largest ε of its pairs": found.exposure}, _write_bound)
        yield Picture("pairs", "The worst pairs on the map", said, pairs_figure(found, pairs, stated), needed)
    measured = measure_distances(found)
    if measured.name and len(np.unique(found.bound.weights)) > 1:
        losses = [each for each in found.epsilon_by_distance() if each.pairs]
        heads = (f"distance{maps.in_unit(measured.unit)}", "ordered pairs", "least ε in nats, rounded up")
        rows = [(short(each.radius, 6), str(each.pairs), _write_bound(each.epsilon)) for each in losses]
        made = drawn(None, HEIGHT, draw_epsilons, {"": losses}, measured.unit)
        said = "Each ε is for all pairs up to a distance; it is not per unit of distance."
        yield Picture("by-distance", "Least ε by distance", said, made, Table(rows, heads))


def _facts(found: Audit, optimum: bool) -> Iterator[Row]:
    n, m = found.matrix.shape
    yield "Channel", f"{n} secrets × {m} observables"
    yield "Bounded pairs of secrets", f"{len(found.bound)}, in both directions"
    yield "Tight ε, rounded up", _write_bound(found.epsilon)
    if found.cost is not None:
        yield f"Cost ({found.objective}), rounded up", _write_bound(found.cost)
    if optimum and found.optimum is not None and found.cost is not None:
        yield "Lower bound of the cost of all channels with the tight ε", _write_bound(found.optimum, up=False)
        excess = found.cost / found.optimum - 1 if found.optimum > 0 else math.inf
        yield "Cost above this bound", f"{short(100 * excess)}%" if math.isfinite(excess) else "–"


def _attacks(found: Audit) -> Iterator[Row]:
    names = [name for name in _ATTACKS if name != "bayes" or found.error.shape[0] == found.error.shape[1]]
    errors = found.attacks(names)
    measured = recognise_measure(found.error, found.secrets, found.secrets)
    for name in names:
        yield name.replace("_", "-"), _ATTACKS[name], measured.with_unit(short(errors[name], 4))


def _write_bound(value: float, *, up: bool = True) -> str:
    return format_bound(value, up=up, digits=7)
