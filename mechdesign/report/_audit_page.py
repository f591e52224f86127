"""The page of an audit: the verdict, the worst pairs in a table and on the map, ε by distance, cost and attacks."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.measures._audit import Audit
from mechdesign.model._words import clip, format_bound, recognise_measure, short
from mechdesign.report import _maps as maps
from mechdesign.report._distance_figure import losses_picture
from mechdesign.report._guarantee import describe_audit
from mechdesign.report._headlines import (
    audit_headline,
    describe_pair,
    describe_rows,
    measure_distances,
    name_secret,
)
from mechdesign.report._pages import figure, render
from mechdesign.report._scales import error_scale
from mechdesign.report._style import fitting, headline, in_report_style, new_figure

# The warning colour, as in the other figures.
_ALARM = "#D55E00"
_PAIRS = 5

_ATTACKS = {
    "optimal": "knows the prior; best single guess",
    "bayes": "knows the prior; guess drawn from the posterior",
    "prior_free": "knows no prior",
}


def page(found: Audit, stated: object = None, title: str = "", optimum: bool = True, note: str = "") -> str:
    """Return the page of an audit.

    `stated` is the ε that the author of the channel claims, if any. With `optimum` the page compares the cost with the
    least cost. `note` is a sentence about the data, without a full stop.
    """
    pairs = found.worst_pairs(_PAIRS)
    said = (*describe_rows(found), *([f"{note[0].upper()}{note[1:]}."] if note else []))
    return render(
        "audit.html",
        title=title.strip() or "Audit of a channel",
        verdict=audit_headline(found, stated, optimum),
        said=" ".join(said),
        facts=list(_facts(found, optimum)),
        worst=[describe_pair(found, pair) for pair in pairs],
        picture=_picture(found, len(pairs), stated),
        by_distance=_draw_losses(found),
        attacks=list(_attacks(found)),
        guarantee=describe_audit(found),
    )


@in_report_style
def pairs_picture(found: Audit, stated: object = None) -> Figure:
    """Show the worst pairs of secrets as lines on a map; colours show the ε that each secret needs.

    Colours begin at the `stated` ε, or else at the least ε of a secret. If no finite ε holds, colours show the number
    of other secrets that an answer can rule out. Raises `InputError` if the secrets have no places in the plane, or if
    all rows are equal.
    """
    secrets, pairs = found.secrets, found.worst_pairs(_PAIRS)
    if secrets is None or not maps.is_map(secrets) or not pairs:
        raise InputError("found", "cannot be drawn", bound="an audit of secrets in the plane with different rows")
    broken = pairs[0].epsilon == math.inf
    values = found.ruled_out.astype(np.float64) if broken else found.exposure
    # Secrets at distance 0 with different rows need an infinite ε, which no scale shows.
    told = ~np.isfinite(values)
    values = np.where(told, values[~told].max(initial=0.0), values)
    least = float(values.min()) if stated is None else min(float(exact(stated)), float(values.min()))
    scale = error_scale(
        values,
        "other secrets that an answer may rule out" if broken else "largest ε of the secret's pairs",
        0.0 if broken else least,
    )
    width, height = maps.panel_size(secrets, fitting(6.6, 0.9), 4.6)
    wider, higher = maps.bar_room(secrets, height)
    made = new_figure(max(width + 0.9 + wider, 4.5), height + 1.25 + higher)
    axes = made.subplots()
    maps.draw(axes, secrets, values, scale)
    maps.scale_bar(made, [axes], scale, height)
    lines = [secrets.points[list(pair.pair)] for pair in pairs]
    axes.add_collection(LineCollection(lines, color=_ALARM, linewidth=1.6, zorder=6))
    ends = np.concatenate(lines)
    axes.scatter(ends[:, 0], ends[:, 1], s=12, color=_ALARM, zorder=7, linewidth=0)
    if not maps.numbers_cells(secrets):
        for secret in sorted({secret for pair in pairs for secret in pair.pair}):
            label = clip(name_secret(found, secret), 12)
            axes.annotate(
                label, secrets.points[secret], xytext=(4, 3), textcoords="offset points", fontsize=8, zorder=8
            )
    if broken:
        headline(made, "An answer can distinguish the secrets at the ends of each line with certainty")
    elif told.any():
        headline(made, f"No ε holds at distance 0; elsewhere the worst pair needs ε = {short(pairs[0].epsilon, 4)}")
    else:
        headline(made, f"The worst of these pairs (lines) needs ε = {short(pairs[0].epsilon, 4)}")
    return made


def _facts(found: Audit, optimum: bool) -> Iterator[tuple[str, str]]:
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


def _picture(found: Audit, count: int, stated: object) -> dict[str, object] | None:
    if not count or not maps.is_map(found.secrets):
        return None
    return figure(
        functools.partial(pairs_picture, found, stated=stated),
        "pairs",
        "The worst pairs on the map",
        f"Lines join the {count} pairs of secrets that need the largest ε, whose labels are shown. Colours show the "
        "largest ε that the pairs of each secret need. If no ε is enough, they show how many other secrets an answer "
        "rules out.",
    )


def _draw_losses(found: Audit) -> dict[str, object] | None:
    """Return the figure of ε by distance, or None for secrets without several distances between places."""
    measured = measure_distances(found)
    if not measured.name or len(np.unique(found.bound.weights)) < 2:
        return None
    losses = [each for each in found.epsilon_by_distance() if each.pairs]
    data = [(f"distance{maps.in_unit(measured.unit)}", "ordered pairs", "least ε in nats, rounded up")]
    data += [(short(each.radius, 6), str(each.pairs), _write_bound(each.epsilon)) for each in losses]
    return figure(
        functools.partial(losses_picture, losses, measured.unit),
        "by-distance",
        "Least ε by distance",
        "Each ε is for all pairs up to a distance; it is not per unit of distance.",
        data=data,
    )


def _attacks(found: Audit) -> Iterator[tuple[str, str, str]]:
    names = [name for name in _ATTACKS if name != "bayes" or found.error.shape[0] == found.error.shape[1]]
    errors = found.attacks(names)
    measured = recognise_measure(found.error, found.secrets, found.secrets)
    for name in names:
        yield name.replace("_", "-"), _ATTACKS[name], measured.with_unit(short(errors[name], 4))


def _write_bound(value: float, *, up: bool = True) -> str:
    return format_bound(value, up=up, digits=7)
