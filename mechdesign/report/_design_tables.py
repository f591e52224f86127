"""Tables of baselines and adversaries of a design's page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.measures import attack
from mechdesign.measures._baselines import Baseline, bounds
from mechdesign.model._channel import Channel
from mechdesign.model._problem import Problem, attack_measure, cost_measure
from mechdesign.model._words import format_bound, recognise_measure, short
from mechdesign.report._page import Strong, Table, first_rows
from mechdesign.synthesis._result import Design


@dataclass(frozen=True)
class DesignAdversary:
    """One adversary against a channel, with expected errors in floating point.

    Attributes:
        name: Name of the adversary's prior.
        expected: Expected error of the best attack under this prior.
        real: Error of that attack under the problem's prior.
        unit: Unit of errors.
    """

    name: str
    expected: float
    real: float
    unit: str


def adversaries(problem: Problem, channel: Channel) -> Iterator[DesignAdversary]:
    """Yield the adversary of each floor with its own prior, and for each error matrix the one with the true prior."""
    known: list[Floats] = []
    for place in dict.fromkeys(problem.places):
        floors = problem.requirements[place].floors
        believed = [floor.prior for floor in floors if floor.prior is not None]
        name = f"the prior of requirement {place + 1}"
        named = [(f"{name} {at}" if len(believed) > 1 else name, own) for at, own in enumerate(believed, 1)]
        if floors and not any(np.array_equal(floors[0].error, error) for error in known):
            known.append(floors[0].error)
            named.insert(0, ("the prior of the mechanism", problem.prior))
        for name, belief in named:
            error = floors[0].error
            expected = attack.optimal(channel, belief, error).distortion
            real = attack.optimal(channel, belief, error, truth=problem.prior).distortion
            unit = recognise_measure(error, problem.secrets, problem.secrets).unit
            yield DesignAdversary(name, expected, real, unit)


def list_adversaries(design: Design) -> Table:
    """Return the adversaries, those with the least expected errors first."""
    found = sorted(adversaries(design.problem, design.channel), key=lambda one: one.expected)
    rows = [
        (one.name, *(f"{short(each, 4)} {one.unit}".rstrip() for each in (one.expected, one.real))) for one in found
    ]
    return first_rows(rows, ("What the adversary believes", "Error expected", "Error in truth"))


def side_by_side(design: Design, compared: Iterable[Baseline]) -> Table:
    """Return a row for each mechanism, cheapest first, with its name, tight ε, cost and the adversary's error."""
    problem, certificate = design.problem, design.certificate
    error, cost, asked = attack_measure(problem), cost_measure(problem), bounds(problem)
    tight = tuple(certificate.requirements[index].realised for index in asked)
    factors = [problem.claims[index].number == "factor" for index in asked]
    erred = attack.optimal(design.channel, problem.prior, error.matrix).distortion
    rows: list[tuple[str, float, float, tuple[float, ...] | None]] = [
        (Strong("this design"), certificate.cost, erred, tight)
    ]
    rows += [
        (item.name + (f" ({item.note})" if item.note else ""), item.cost, item.error, item.tight) for item in compared
    ]
    shown = [
        (name, _tight(levels, factors), cost.with_root(paid, _finite_number), error.with_unit(_finite_number(wrong)))
        for name, paid, wrong, levels in sorted(rows, key=lambda row: row[1])
    ]
    return Table(shown, ("Mechanism", "Tight ε", "Cost", "Adversary’s error"))


def _tight(levels: tuple[float, ...] | None, factors: Sequence[bool]) -> str:
    if levels is None:
        return "not computed at this size"
    named = zip(levels, factors, strict=True)
    return (
        ", ".join("factor " * is_factor + format_bound(level, up=True, digits=4) for level, is_factor in named) or "–"
    )


def _finite_number(value: float) -> str:
    return short(float(np.float64(value)), 4) if math.isfinite(value) else "∞"
