"""Cut a problem into parts: sets of secrets that nothing ties to the others, each a program of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mechdesign.certify._claims import Floor
from mechdesign.certify._claims import PairBound
from mechdesign.certify._dithering import Dithered
from mechdesign.model._components import sharing
from mechdesign.model._components import tied
from mechdesign.model._problem import Problem
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Known", "Part", "has_floors", "restricted", "split", "undominated"]


T = TypeVar("T")

# Parts of a map differ in the last digits of their coordinates, and so of their costs.
_RESOLUTION = 1e-12

# Of a part that is less likely than this not even a relative gap of 1e-9 can tell how well it is served.
_NEVER = 1e-200


@dataclass(frozen=True, eq=False)
class Part:
    """Secrets that are solved together, with the observables permitted to any of them; ascending indices of both.

    `mass` is the probability of the secrets; 0 where it is too small to matter. `alike` tells whether all of them are
    permitted the same observables.
    """

    secrets: Integers
    observables: Integers
    mass: float
    alike: bool = True


def has_floors(problem: Problem) -> bool:
    """Tell whether a distortion floor couples all secrets."""
    return any(isinstance(claim, Floor) and claim.minimum > 0 for claim in problem.claims)


def split(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a problem, in the order of their first secrets.

    Without floors these are the sets that bounds on pairs tie together. A floor also joins secrets with a common
    permitted answer, since the adversary's error about that answer does not split. The members of a part may be
    permitted different answers: by a floor over answers that they share in part, or by bounds in one direction.
    """
    labels = sharing(problem.cost, problem.claims) if has_floors(problem) else tied(len(problem.prior), problem.claims)
    order = np.argsort(labels, kind="stable")
    permitted = np.isfinite(problem.cost)
    parts = []
    for secrets in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        to_any = permitted[secrets].any(axis=0)
        alike = bool((permitted[secrets] == to_any).all())
        mass = float(problem.prior[secrets].sum())
        parts.append(Part(secrets, np.flatnonzero(to_any), mass if mass > _NEVER else 0.0, alike))
    return tuple(parts)


def restricted(problem: Problem, part: Part, observables: Integers) -> Problem:
    """Return the problem of a part alone, with some of its observables and a prior that sums to 1.

    Secrets that never occur count as equally likely. Floors are left out: every floor becomes one of 0.
    """
    size = part.secrets.size
    prior = problem.prior[part.secrets] / part.mass if part.mass else np.full(size, 1 / size)
    requirements = [requirement.restrict(part.secrets) for requirement in problem.requirements]
    return Problem(prior, problem.cost[np.ix_(part.secrets, observables)], requirements, problem.objective)


class Known(Generic[T]):
    """Answers to parts, found again for parts that are equal: to the bit in bounds, to 12 digits in all else.

    The multipliers of one then prove the cost of the other to about as many digits; what is lost is shown by the
    certificate, which is computed from the true numbers.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], list[tuple[Floats, T]]] = {}

    def answer(self, problem: Problem, make: Callable[[], T]) -> T:
        """Return what `make` gave for an equal problem, or what it gives for this one."""
        bounds, numbers = _fingerprint(problem)
        same = self._found.setdefault(bounds, [])
        if same:
            known = np.array([other for other, _ in same])
            close = (np.abs(known - numbers) <= _RESOLUTION * numbers).all(axis=1)
            if close.any():
                return same[int(close.argmax())][1]
        made = make()
        same.append((numbers, made))
        return made


def _fingerprint(problem: Problem) -> tuple[tuple[object, ...], Floats]:
    """Return what must be equal to the bit, and what may differ in the last digits."""
    permitted = np.isfinite(problem.cost)
    bounds: list[object] = [problem.objective, problem.cost.shape, permitted.tobytes()]
    numbers = [problem.prior, problem.cost[permitted]]
    for claim in problem.claims:
        if isinstance(claim, PairBound):
            arrays = (claim.sources, claim.targets, *claim.terms)
            bounds += [claim.number, claim.nominal, *(array.tobytes() for array in arrays)]
        elif isinstance(claim, Dithered):
            bounds += [claim]
        else:
            bounds += [claim.minimum > 0, claim.error.shape, claim.prior is None]
            numbers += [claim.error.ravel(), claim.prior_or(problem.prior)]
    return tuple(bounds), np.concatenate(numbers)


def undominated(cost: Floats) -> tuple[Integers, Integers]:
    """Return the columns of `cost` (k, m) that are worth using, ascending, and for each column one that replaces it.

    Column j replaces column o where cost[:, j] <= cost[:, o]: whatever a channel answers by o it may answer by j, under
    the same bounds on pairs and at no higher cost. A column worth using is replaced by itself.
    """
    replaced = np.full(cost.shape[1], -1, dtype=np.int64)
    # What replaces a column has no larger sum; of equal columns the first is kept.
    for column in np.argsort(cost.sum(axis=0), kind="stable").tolist():
        if replaced[column] < 0:
            replaced[(cost[:, [column]] <= cost).all(axis=0) & (replaced < 0)] = column
    return np.unique(replaced), replaced
