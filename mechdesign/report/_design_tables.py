"""Tables of baselines and adversaries of a design's page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.certify._claims import Floor
from mechdesign.measures import attack
from mechdesign.measures._baselines import Baseline, bounds
from mechdesign.model._channel import Channel
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import attack_measure, cost_measure
from mechdesign.model._words import format_bound, recognise_measure, short
from mechdesign.report._page import Strong, Table
from mechdesign.synthesis._result import Design

_SHOWN = 24


@dataclass(frozen=True)
class DesignAdversary:
    """One adversary against a channel, with expected errors in floating point.

    Attributes:
        name: Name of the adversary's prior.
        minimum: The distortion floor, or None if nothing is required under this prior.
        expected: Expected error of the best attack under this prior.
        real: Error of that attack under the problem's prior.
        unit: Unit of errors.
        distance: Total variation distance between the adversary's prior and the problem's prior.
    """

    name: str
    minimum: float | None
    expected: float
    real: float
    unit: str
    distance: float


def adversaries(problem: Problem, channel: Channel) -> tuple[DesignAdversary, ...]:
    """Return the adversary of each floor and, if a floor has its own prior, the adversary who knows the true prior."""
    return tuple(_yield_adversaries(problem, channel))


def _yield_adversaries(problem: Problem, channel: Channel) -> Iterator[DesignAdversary]:
    known: list[Floats] = []
    for place in dict.fromkeys(problem.places):
        floors = problem.requirements[place].floors
        believing = [floor for floor in floors if floor.prior is not None]
        if floors:
            first = floors[0]
            asked = None if believing else float(first.minimum)
            # Yield the adversary who knows the true prior once for each error matrix.
            if asked is not None or not any(np.array_equal(first.error, error) for error in known):
                yield _adversary(problem, channel, first, problem.prior, "the prior of the mechanism", asked)
            known.append(first.error)
        for index, floor in enumerate(believing):
            assert floor.prior is not None
            name = f"the prior of requirement {place + 1}" + (f" {index + 1}" if len(believing) > 1 else "")
            yield _adversary(problem, channel, floor, floor.prior, name, float(floor.minimum))


def _adversary(
    problem: Problem, channel: Channel, floor: Floor, belief: Floats, name: str, minimum: float | None
) -> DesignAdversary:
    expected = attack.optimal(channel, belief, floor.error)
    real = attack.optimal(channel, belief, floor.error, truth=problem.prior)
    unit = recognise_measure(floor.error, problem.secrets, problem.secrets).unit
    apart = float(np.abs(belief - problem.prior).sum() / 2)
    return DesignAdversary(name, minimum, expected.distortion, real.distortion, unit, apart)


def list_adversaries(problem: Problem, channel: Channel) -> tuple[Table, int] | None:
    """Return the adversaries with the least expected errors, and how many are left out; None if all know the prior."""
    if not any(floor.prior is not None for floor in problem.floors.values()):
        return None
    found = adversaries(problem, channel)
    if len(found) > _SHOWN:
        found = tuple(sorted(found, key=lambda one: one.expected))
    rows = [
        (
            one.name,
            "" if one.minimum is None else f"at least {_number_with_unit(one.minimum, one.unit)}",
            _number_with_unit(one.expected, one.unit),
            _number_with_unit(one.real, one.unit),
            short(one.distance, 3),
        )
        for one in found[:_SHOWN]
    ]
    heads = ("What the adversary believes", "Required", "Error expected", "Error in truth", "Apart from the prior")
    return Table(rows, heads), max(0, len(found) - _SHOWN)


def _number_with_unit(value: float, unit: str) -> str:
    return f"{short(value, 4)} {unit}".rstrip()


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
