"""The page of an audit: the verdict, the worst pairs in a table and on the map, cost and attacks."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.measures._audit import Audit, PairLoss
from mechdesign.model._disclosure import list_secrets
from mechdesign.model._words import decimal, short
from mechdesign.report import _maps as maps
from mechdesign.report._guarantee import describe_audit
from mechdesign.report._pages import figure, render
from mechdesign.report._scales import error_scale
from mechdesign.report._style import fitting, headline, in_report_style, new_figure

# The warning colour, as in the other figures.
_ALARM = "#D55E00"
_PAIRS, _LINES = 12, 40

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
    pairs = found.worst_pairs(_LINES)
    said = (*sentences(found), *([f"{note[0].upper()}{note[1:]}."] if note else []))
    return render(
        "audit.html",
        title=title.strip() or "Audit of a channel",
        verdict=_verdict(found, stated),
        said=" ".join(said),
        facts=list(_facts(found, optimum)),
        worst=[_row(found, pair) for pair in pairs[:_PAIRS]],
        picture=_picture(found, len(pairs)),
        attacks=list(_attacks(found)),
        guarantee=describe_audit(found),
    )


def sentences(found: Audit) -> tuple[str, ...]:
    """Return sentences on the row sums, the negative entries, the tight ε and the revealed secrets of a matrix."""
    if found.deviation == 0:
        said = ["Every row sums to exactly 1."]
    else:
        said = [
            f"Row sums deviate from 1 by up to {found.deviation:.3g}; each row was divided by its exact sum, as a "
            "sampler that uses the entries as weights would do."
        ]
    if found.deviation > 0.01:
        said.append("The deviation is large: rows must be secrets, and columns must be observables.")
    if found.negative:
        count = found.negative
        said.append(
            f"{count} entr{'y is' if count == 1 else 'ies are'} negative; the audit replaces "
            f"{'it' if count == 1 else 'them'} by 0."
        )
    if found.witness is None:
        said.append("All bounded pairs of secrets have equal rows: an answer does not distinguish them.")
    else:
        (s, t), o = found.witness
        a, b = found.matrix[s, o], found.matrix[t, o]
        pair = f"answer {o} has probability {a:.6g} for secret {_name(found, s)} and {b:.6g} for {_name(found, t)}"
        if found.epsilon == math.inf and b == 0:
            said.append(f"No finite ε holds: {pair}, which this answer rules out.")
        elif found.epsilon == math.inf:
            said.append(f"No finite ε holds: the two secrets are at distance 0, but {pair}.")
        else:
            said.append(f"The worst case: {pair}.")
    if found.revealed:
        have = "have" if len(found.revealed) > 1 else "has"
        said.append(
            f"{list_secrets(found.revealed, len(found.matrix), found.secrets)} {have} an answer that no other secret "
            "can produce: anyone who sees it knows the secret for certain."
        )
    return tuple(said)


@in_report_style
def pairs_picture(found: Audit, count: int = _LINES) -> Figure:
    """Show the worst pairs of secrets as lines on a map; colours show the ε that each secret needs.

    If no finite ε holds, colours show the number of other secrets that an answer can rule out. Raises `InputError` if
    the secrets have no places in the plane, or if all rows are equal.
    """
    secrets, pairs = found.secrets, found.worst_pairs(count)
    if secrets is None or not maps.is_map(secrets) or not pairs:
        raise InputError("found", "cannot be drawn", bound="an audit of secrets in the plane with different rows")
    broken = pairs[0].epsilon == math.inf
    values = found.ruled_out.astype(np.float64) if broken else found.exposure
    # Secrets at distance 0 with different rows need an infinite ε, which no scale shows.
    told = ~np.isfinite(values)
    values = np.where(told, values[~told].max(initial=0.0), values)
    scale = error_scale(
        values, "other secrets that an answer may rule out" if broken else "largest ε of the secret's pairs"
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
    if broken:
        headline(made, "An answer can distinguish the secrets at the ends of each line with certainty")
    elif told.any():
        headline(made, f"No ε holds at distance 0; elsewhere the worst pair needs ε = {short(pairs[0].epsilon, 4)}")
    else:
        headline(made, f"The worst of these pairs (lines) needs ε = {short(pairs[0].epsilon, 4)}")
    return made


def _verdict(found: Audit, stated: object) -> dict[str, object]:
    if stated is None:
        return {"good": math.isfinite(found.epsilon), "short": f"Tight ε: {_exact(found.epsilon)}.", "long": ""}
    good = found.holds(stated)
    verdict = f"ε = {decimal(exact(stated))} {'holds' if good else 'does not hold'}."
    return {"good": good, "short": verdict, "long": f"The tight ε is {_exact(found.epsilon)}."}


def _facts(found: Audit, optimum: bool) -> Iterator[tuple[str, str]]:
    n, m = found.matrix.shape
    yield "Channel", f"{n} secrets × {m} observables"
    yield "Bounded pairs of secrets", f"{len(found.bound)}, in both directions"
    yield "Tight ε, rounded up", _exact(found.epsilon)
    if found.cost is not None:
        yield f"Cost ({found.objective}), rounded up", _exact(found.cost)
    if optimum and found.optimum is not None and found.cost is not None:
        yield "Lower bound of the cost of all channels with this ε", _exact(found.optimum)
        excess = found.cost / found.optimum - 1 if found.optimum > 0 else math.inf
        yield "Cost above this bound", f"{short(100 * excess)}%" if math.isfinite(excess) else "–"


def _row(found: Audit, pair: PairLoss) -> tuple[object, ...]:
    secrets = " and ".join(_name(found, secret) for secret in pair.pair)
    return secrets, pair.observable, short(pair.likely, 6), short(pair.unlikely, 6), short(pair.epsilon, 8)


def _picture(found: Audit, count: int) -> dict[str, object] | None:
    if not count or not maps.is_map(found.secrets):
        return None
    return figure(
        functools.partial(pairs_picture, found),
        "pairs",
        "The worst pairs on the map",
        f"Lines join the {count} pairs of secrets that need the largest ε. Colours show the largest ε that the pairs "
        "of each secret need. If no ε is enough, colours show how many other secrets an answer rules out.",
    )


def _attacks(found: Audit) -> Iterator[tuple[str, str, str]]:
    names = [name for name in _ATTACKS if name != "bayes" or found.error.shape[0] == found.error.shape[1]]
    errors = found.attacks(names)
    for name in names:
        yield name.replace("_", "-"), _ATTACKS[name], short(errors[name], 6)


def _name(found: Audit, secret: int) -> str:
    return str(secret) if found.secrets is None else found.secrets.labels[secret]


def _exact(value: float) -> str:
    return repr(value) if math.isfinite(value) else short(value)
