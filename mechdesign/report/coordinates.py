"""What is said of real coordinates in the report: how close points are protected, and what snapping would leak."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mechdesign.certify._certificate import Certificate
from mechdesign.certify._claims import RatioBound
from mechdesign.certify._dithering import EUCLIDEAN
from mechdesign.certify._dithering import Dithered
from mechdesign.model._problem import Problem
from mechdesign.report.document import section
from mechdesign.report.document import table
from mechdesign.report.document import text
from mechdesign.model._words import short

__all__ = ["coordinates_section"]


def coordinates_section(problem: Problem, certificate: Certificate) -> Iterator[str]:
    """Yield the section on real coordinates; nothing where no requirement is about them."""
    pairs = list(zip(problem.claims, certificate.requirements, strict=True))
    for place, (claim, checked) in enumerate(pairs):
        if not isinstance(claim, Dithered):
            continue
        own = problem.places[place]
        beside = [
            found.realised
            for (other, found), at in zip(pairs, problem.places, strict=True)
            if at == own and isinstance(other, RatioBound)
        ]
        unit = problem.secrets.unit if problem.secrets is not None else ""
        yield section(
            "Real coordinates",
            "<p>The secrets are the corners of a grid, and every point between them is a secret, too: one of the four "
            "corners around it is drawn, the closer the likelier, and answers for it. What is certified holds between "
            "any two points, however close. Points outside are moved to the border first.</p>",
            table((), _rows(claim, checked.realised, max(beside, default=1.0), unit), "numbers"),
        )


def _rows(claim: Dithered, tight: float, snapped: float, unit: str) -> Iterator[tuple[str, str]]:
    behind = f" {text(unit)}" if unit else ""
    epsilon, steps = float(claim.epsilon), (float(claim.step_x), float(claim.step_y))
    apart = f"{short(steps[0])} × {short(steps[1])}{behind}"
    yield "Anchors", f"{claim.columns} × {claim.rows}, {apart} apart"
    near = 0.001 / epsilon
    yield (
        f"Two points {short(near, 2)}{behind} apart: the odds between them shift by a factor of at most",
        short(math.exp(tight * near), 6),
    )
    if math.isfinite(snapped):
        yield (
            "The same two points beside a border, if each were moved to the nearest anchor (snapping): up to",
            short(snapped, 4),
        )
        if snapped > 1:
            ratio = math.log(snapped) / (epsilon * near)
            yield "So snapping would leak, at this distance, as much as an ε of", f"{short(ratio * epsilon, 3)}"
    if claim.norm == EUCLIDEAN:
        yield "Planar Laplace noise with this ε moves a point, on average, by", f"{short(2 / epsilon, 4)}{behind}"
