"""Solve the parts of a problem one by one, equal ones once, and put their channels and multipliers together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mechdesign.model._channel import EXPONENT
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.synthesis.certified import Design
from mechdesign.synthesis.joined import Assembled
from mechdesign.synthesis.joined import Gathered
from mechdesign.synthesis.parts import Known
from mechdesign.synthesis.parts import Part
from mechdesign.synthesis.restriction import Piece
from mechdesign.synthesis.restriction import Restriction
from mechdesign.synthesis.summary import SolveSummary

__all__ = ["assemble"]


def assemble(problem: Problem, parts: Sequence[Part], solve: Callable[[Problem, str], Design]) -> Assembled:
    """Solve a problem without floors part by part, with `solve` given the problem and the name of a part.

    Rows of different parts have no requirement in common: for the expected cost the least costs add up, with the
    multipliers of each part weighted by its probability. For the worst cost every part is made as good as it can be,
    and the part with the largest bound proves it for all. A secret alone gets its cheapest answer.
    """
    numerators = np.zeros(problem.cost.shape, dtype=np.int64)
    gathered = Gathered(problem)
    known: Known[Design] = Known()
    designs: dict[int, Design] = {}
    worst: tuple[float, Part, Piece | None] | None = None
    for number, part in enumerate(parts, start=1):
        if part.secrets.size == 1:
            (secret,) = part.secrets
            numerators[secret, problem.cost[secret].argmin()] = 1 << EXPONENT
            bound, piece = float(problem.cost[secret].min()), None
        else:
            alone, inverse = Restriction(part).apply(problem)
            name = f"part {number} of {len(parts)}"
            piece = inverse(known.answer(alone, lambda alone=alone, name=name: solve(alone, name)))  # type: ignore[misc]
            designs[id(piece.design)] = piece.design
            numerators[np.ix_(part.secrets, piece.observables)] = piece.design.channel.numerators
            bound = piece.design.certificate.lower_bound
            if problem.objective == "expected" and part.mass:
                _gather(gathered, piece, part.mass)
        if worst is None or bound > worst[0]:
            worst = bound, part, piece
    assert worst is not None
    weights = None
    if problem.objective == "worst":
        weights = np.zeros(len(problem.prior))
        _, part, piece = worst
        proved = None if piece is None or piece.design.multipliers is None else piece.design.multipliers.weights
        weights[part.secrets] = 1 / part.secrets.size if proved is None else proved
        if piece is not None:
            _gather(gathered, piece, 1.0)
    summary = _summary(len(parts), [design.summary for design in designs.values()])
    return Assembled(numerators, gathered.multipliers(weights), summary)


def _gather(gathered: Gathered, piece: Piece, scale: float) -> None:
    for index, *ends, values in piece.multipliers():
        gathered.add(index, *ends, values * scale)


def _summary(parts: int, found: Sequence[SolveSummary]) -> SolveSummary:
    return SolveSummary(
        next((one.status for one in found if one.status is not Status.OPTIMAL), Status.OPTIMAL),
        plan=f"{parts} parts that nothing ties together, {len(found)} different ones solved",
        solver=", ".join(sorted({one.solver for one in found if one.solver})) or "closed form",
        solver_version=", ".join(sorted({one.solver_version for one in found if one.solver_version})),
        parts=parts,
        programs=len(found),
        iterations=sum(one.iterations or 0 for one in found),
        privacy_weight=max((one.privacy_weight or 0.0 for one in found), default=0.0),
        floor_weight=0.0,
        rounding_seconds=_total(one.rounding_seconds for one in found),
        proving_seconds=_total(one.proving_seconds for one in found),
        certifying_seconds=_total(one.certifying_seconds for one in found),
    )


def _total(seconds: Iterable[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return round(sum(known), 3) if known else None
