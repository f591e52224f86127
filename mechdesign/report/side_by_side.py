"""A table of the report: the design beside mechanisms that a reader knows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mechdesign.measures import attack
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._claims import RatioBound
from mechdesign.model._channel import Channel
from mechdesign.model._problem import Problem
from mechdesign.measures._baselines import Baseline
from mechdesign.measures._baselines import bounds
from mechdesign.report.document import table
from mechdesign.report.document import text
from mechdesign.model._words import short
from mechdesign.model._words import attack_measure
from mechdesign.model._words import cost_measure

__all__ = ["side_by_side"]


def side_by_side(problem: Problem, channel: Channel, certificate: Certificate, compared: Iterable[Baseline]) -> str:
    """Return the table, cheapest first, under a line about what is compared: HTML."""
    error = attack_measure(problem)
    cost = cost_measure(problem)
    asked = bounds(problem)
    tight: tuple[float, ...] | None = tuple(certificate.requirements[index].realised for index in asked)
    factors = [isinstance(problem.claims[index], RatioBound) for index in asked]
    erred = attack.optimal(channel, problem.prior, error.matrix).distortion
    rows = [("<strong>this design</strong>", certificate.cost, erred, tight, "")]
    rows += [(text(item.name), item.cost, item.error, item.tight, item.note) for item in compared]
    rows.sort(key=lambda row: row[1])
    shown = [
        (
            name + (f" ({text(note)})" if note else ""),
            _tight(levels, factors),
            text(cost.with_root(paid, _number)),
            text(error.with_unit(_number(wrong))),
        )
        for name, paid, wrong, levels, note in rows
    ]
    heads = ("Mechanism", "Tight ε", f"{problem.objective.capitalize()} cost", "Adversary’s error")
    note = (
        "<p>All answer with the same observables, as channels of whole numbers. The tight ε, one for each bound on "
        "pairs, is the least that holds, rounded up; where it is below the one asked for, a mechanism protects more "
        "than it was asked to. The adversary’s error is that of the best attack.</p>"
    )
    return table(heads, shown, "numbers") + "\n" + note


def _tight(levels: tuple[float, ...] | None, factors: Sequence[bool]) -> str:
    if levels is None:
        return "not computed at this size"
    named = zip(levels, factors, strict=True)
    return text(", ".join("factor " * is_factor + short(level, 4) for level, is_factor in named)) or "–"


def _number(value: float) -> str:
    return short(float(np.float64(value)), 4) if math.isfinite(value) else "∞"
