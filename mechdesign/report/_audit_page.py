"""The page of an audit: the verdict, the worst pairs in a table and on the map, cost and attacks."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.measures._audit import Audit
from mechdesign.model._disclosure import listed
from mechdesign.model._words import decimal, short
from mechdesign.report import _maps as maps
from mechdesign.report._pages import document, figure, section, table, text
from mechdesign.report._scales import error_scale
from mechdesign.report._style import drawn, headline, new_figure

# The colour of alarm of the other pictures.
_ALARM = "#D55E00"
_PAIRS, _LINES = 12, 40

_ATTACKS = {
    "optimal": "knows the prior; best single guess",
    "bayes": "knows the prior; guess drawn from the posterior",
    "prior_free": "knows no prior",
}


def page(found: Audit, stated: object = None, title: str = "", optimum: bool = True, note: str = "") -> str:
    """Return the page; `stated` is the ε that the maker claims, if any, and `optimum` asks for the least cost.

    `note` is a sentence about its data, without a full stop.
    """
    name = title.strip() or "Audit of a channel"
    sections = [_header(found, stated, name, note), _facts(found, optimum), _worst(found), _attacks(found)]
    return document(name, [each for each in sections if each])


def sentences(found: Audit) -> tuple[str, ...]:
    """Say what the numbers of the matrix mean: sums, negative entries, and where the guarantee is tight."""
    if found.deviation == 0:
        said = ["Every row sums to exactly 1."]
    else:
        said = [
            f"Rows sum to 1 only to within {found.deviation:.3g}, so each was divided by its exact sum: that is what "
            "a program draws that weighs answers by these numbers."
        ]
    if found.deviation > 0.01:
        said.append("That is far from 1: rows must be secrets and columns observables.")
    if found.negative:
        count = found.negative
        said.append(
            f"{count} entr{'y is' if count == 1 else 'ies are'} negative and count as 0: no program can draw with a "
            "probability below zero."
        )
    if found.witness is None:
        said.append("No bounded pair of secrets differs: an answer tells nothing about them.")
    else:
        (s, t), o = found.witness
        a, b = found.matrix[s, o], found.matrix[t, o]
        pair = f"answer {o} has probability {a:.6g} for secret {_name(found, s)} and {b:.6g} for {_name(found, t)}"
        if found.epsilon == math.inf and b == 0:
            said.append(f"No ε holds: {pair}, which it therefore rules out.")
        elif found.epsilon == math.inf:
            said.append(f"No ε holds: the two are at distance 0, and {pair}.")
        else:
            said.append(f"It is tight where {pair}.")
    if found.revealed:
        have = "have" if len(found.revealed) > 1 else "has"
        said.append(
            f"{listed(found.revealed, len(found.matrix), found.secrets)} {have} an answer that no other secret is "
            "given: whoever sees it knows the secret for certain."
        )
    return tuple(said)


@drawn
def pairs_picture(found: Audit, count: int = _LINES) -> Figure:
    """Show the worst pairs of secrets as lines on the map, above the ε that each secret needs.

    Where no ε holds, the map shows how many others an answer to each secret rules out. Raises `InputError` for an audit
    without secrets in the plane, or without a pair that differs.
    """
    secrets, pairs = found.secrets, found.worst_pairs(count)
    if secrets is None or maps.kind(secrets) not in ("grid", "points") or not pairs:
        raise InputError("found", "cannot be drawn", bound="an audit of secrets in the plane, of which some differ")
    broken = pairs[0].epsilon == math.inf
    values = found.ruled_out.astype(np.float64) if broken else found.exposure
    # Secrets at distance 0 that differ have no ε, and no place on a scale.
    told = ~np.isfinite(values)
    values = np.where(told, values[~told].max(initial=0.0), values)
    scale = error_scale(values, "others that an answer may rule out" if broken else "largest ε of its pairs")
    width, height = maps.panel_size(secrets, 6.6, 4.6)
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
        headline(made, "An answer can tell the secrets at the ends of these lines apart for certain")
    elif told.any():
        headline(made, f"No ε holds at distance 0; elsewhere the worst pair needs ε = {short(pairs[0].epsilon, 4)}")
    else:
        headline(made, f"The worst of these pairs (lines) needs ε = {short(pairs[0].epsilon, 4)}")
    return made


def _header(found: Audit, stated: object, title: str, note: str) -> str:
    if stated is None:
        kind = "holds" if math.isfinite(found.epsilon) else "fails"
        verdict = f"<strong>Tight ε: {_exact(found.epsilon)}.</strong>"
    else:
        kind = "holds" if found.holds(stated) else "fails"
        number = decimal(exact(stated))
        verdict = f"<strong>ε = {number} {'holds' if kind == 'holds' else 'does not hold'}.</strong> "
        verdict += f"The tight ε is {_exact(found.epsilon)}."
    said = " ".join(map(text, (*sentences(found), *([f"{note[0].upper()}{note[1:]}."] if note else []))))
    return f'<header>\n<h1>{text(title)}</h1>\n<p class="verdict {kind}">{verdict}</p>\n<p>{said}</p>\n</header>'


def _facts(found: Audit, optimum: bool) -> str:
    n, m = found.matrix.shape
    rows = [
        ("Channel", f"{n} secrets × {m} observables"),
        ("Bounded pairs of secrets", f"{len(found.bound)}, of both directions"),
        ("Tight ε, rounded up", _exact(found.epsilon)),
    ]
    if found.cost is not None:
        rows.append((f"Cost ({found.objective}), rounded up", _exact(found.cost)))
    if optimum and found.optimum is not None and found.cost is not None:
        rows.append(("No channel with this ε costs less than", _exact(found.optimum)))
        excess = found.cost / found.optimum - 1 if found.optimum > 0 else math.inf
        rows.append(("More than that by", f"{short(100 * excess)}%" if math.isfinite(excess) else "–"))
    return section("What holds", table((), rows, "numbers"))


def _worst(found: Audit) -> str:
    pairs = found.worst_pairs(_LINES)
    if not pairs:
        return ""
    rows = [
        (
            f"{text(_name(found, pair.pair[0]))} and {text(_name(found, pair.pair[1]))}",
            text(str(pair.observable)),
            short(pair.likely, 6),
            short(pair.unlikely, 6),
            short(pair.epsilon, 8),
        )
        for pair in pairs[:_PAIRS]
    ]
    parts = [table(("Secrets s and t", "Answer", "p(o|s)", "p(o|t)", "ε needed"), rows, "numbers")]
    if found.secrets is not None and maps.kind(found.secrets) in ("grid", "points"):
        parts.append(
            figure(
                pairs_picture(found),
                "pairs",
                "The worst pairs on the map",
                f"Lines join the {len(pairs)} pairs of secrets that need the largest ε. Colours show, for each secret, "
                "the largest ε that a pair with it needs, or, where no ε is enough, how many others an answer rules "
                "out.",
            )
        )
    return section("Worst pairs", *parts)


def _attacks(found: Audit) -> str:
    names = [name for name in _ATTACKS if name != "bayes" or found.error.shape[0] == found.error.shape[1]]
    errors = found.attacks(names)
    rows = [(text(name.replace("_", "-")), text(_ATTACKS[name]), short(errors[name], 6)) for name in names]
    return section(
        "What an adversary makes of it",
        table(("Attack", "The adversary", "Expected error"), rows, "numbers"),
        "<p>Under the prior of the audit, in floating point.</p>",
    )


def _name(found: Audit, secret: int) -> str:
    return str(secret) if found.secrets is None else found.secrets.labels[secret]


def _exact(value: float) -> str:
    return repr(value) if math.isfinite(value) else short(value)
