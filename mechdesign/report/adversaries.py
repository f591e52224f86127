"""What adversaries with beliefs of their own expect, and what they really get: a table of the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mechdesign.measures import attack
from mechdesign.certify._claims import Floor
from mechdesign.model._channel import Channel
from mechdesign.model._problem import Problem
from mechdesign.report.document import section
from mechdesign.report.document import table
from mechdesign.report.document import text
from mechdesign.model._words import short
from mechdesign.model._words import recognised
from mechdesign.base._arrays import Floats

__all__ = ["Adversary", "adversaries", "adversaries_section"]


_SHOWN = 24


@dataclass(frozen=True)
class Adversary:
    """One adversary against a channel, in floating point.

    Attributes:
        name: Whose prior it is.
        minimum: The floor, or None where nothing is required under this prior.
        expected: The error that the best attack under this belief expects.
        real: The error of that attack under the prior of the problem.
        unit: The unit of errors.
        distance: The total variation distance between the belief and the prior of the problem.
    """

    name: str
    minimum: float | None
    expected: float
    real: float
    unit: str
    distance: float


def adversaries(problem: Problem, channel: Channel) -> tuple[Adversary, ...]:
    """Return the adversaries of all floors, and beside those with priors of their own the one who knows the true."""
    return tuple(_found(problem, channel))


def _found(problem: Problem, channel: Channel) -> Iterator[Adversary]:
    known: list[Floats] = []
    for place in dict.fromkeys(problem.places):
        floors = [
            claim
            for claim, own in zip(problem.claims, problem.places, strict=True)
            if own == place and isinstance(claim, Floor)
        ]
        believing = [floor for floor in floors if floor.prior is not None]
        if floors:
            first = floors[0]
            asked = None if believing else float(first.minimum)
            # Who knows the true prior is said once for each way to measure errors.
            if asked is not None or not any(np.array_equal(first.error, error) for error in known):
                yield _adversary(problem, channel, first, problem.prior, "the prior of the mechanism", asked)
            known.append(first.error)
        for index, floor in enumerate(believing):
            assert floor.prior is not None
            name = f"requirement {place + 1}, its own prior" + (f" {index + 1}" if len(believing) > 1 else "")
            yield _adversary(problem, channel, floor, floor.prior, name, float(floor.minimum))


def _adversary(
    problem: Problem, channel: Channel, floor: Floor, belief: Floats, name: str, minimum: float | None
) -> Adversary:
    expected = attack.optimal(channel, belief, floor.error)
    real = attack.optimal(channel, belief, floor.error, truth=problem.prior)
    unit = recognised(floor.error, problem.secrets, problem.secrets).unit
    apart = float(np.abs(belief - problem.prior).sum() / 2)
    return Adversary(name, minimum, expected.distortion, real.distortion, unit, apart)


def adversaries_section(problem: Problem, channel: Channel) -> Iterator[str]:
    """Yield the section on adversaries; nothing unless one has a prior of its own."""
    if not any(isinstance(claim, Floor) and claim.prior is not None for claim in problem.claims):
        return
    found = adversaries(problem, channel)
    left_out = len(found) - _SHOWN
    if left_out > 0:
        found = tuple(sorted(found, key=lambda one: one.expected))[:_SHOWN]
    rows = [
        (
            text(one.name),
            "" if one.minimum is None else f"at least {_number(one.minimum, one.unit)}",
            _number(one.expected, one.unit),
            _number(one.real, one.unit),
            short(one.distance, 3),
        )
        for one in found
    ]
    heads = ("What the adversary believes", "Asked for", "Error expected", "Error in truth", "Apart from the prior")
    notes = [
        "<p>Each adversary makes the guess that is best by their own belief. <em>Expected</em> is the error that they "
        "expect, which the floors bound; <em>in truth</em> is what their guess errs by under the prior of the "
        "mechanism, which nothing bounds from below but a floor under that prior. The last column is the total "
        "variation distance between the belief and that prior: 0 for the same, 1 where nothing is shared.</p>"
    ]
    if left_out > 0:
        notes.append(f"<p>Shown are the {_SHOWN} that expect least; {left_out} more expect no less.</p>")
    yield section("Adversaries", *notes, table(heads, rows, "numbers"))


def _number(value: float, unit: str) -> str:
    return f"{short(value, 4)} {text(unit)}".rstrip()
