"""Names for the costs, the adversary's error and the claims of a problem."""

from __future__ import annotations

import numpy as np

from mechdesign.model import distances
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._words import HAMMING_DISTANCE, PLANE_DISTANCE, Measure, Words, clip, recognise_measure


def cost_measure(problem: Problem) -> Measure:
    """Return the name and unit of the costs of permitted answers."""
    return recognise_measure(problem.cost, problem.secrets, problem.observables, np.isfinite(problem.cost))


def attack_measure(problem: Problem) -> Measure:
    """Return the error that an adversary minimises, a matrix of estimates by secrets, with its name and unit.

    A problem with distortion floors uses the error of the first floor. Without a floor, the error is the Euclidean
    distance between secrets, or the great-circle distance if plane distances may exceed it. For secrets without places,
    the error is the Hamming distance.
    """
    for floor in problem.floors.values():
        return recognise_measure(floor.error, problem.secrets, problem.secrets)
    secrets = problem.secrets
    if secrets is not None and secrets.points.shape[1]:
        if secrets.plane is None:
            return Measure(distances.euclidean(secrets), "Euclidean distance", clip(secrets.unit))
        if secrets.plane.shorter:
            return Measure(distances.euclidean(secrets), PLANE_DISTANCE, clip(secrets.unit))
        return Measure(distances.haversine(secrets), "great-circle distance", "km")
    return Measure(distances.hamming(len(problem.prior)), HAMMING_DISTANCE)


def claim_names(problem: Problem) -> tuple[str, ...]:
    """Return the names that the requirements give to their claims; a certificate has an entry for each claim."""
    return tuple(name for requirement in problem.requirements for name in requirement.titles(Words(problem.secrets)))


def claimants(problem: Problem) -> tuple[Requirement, ...]:
    """Return the requirement of each claim; a certificate has an entry for each claim."""
    return tuple(problem.requirements[place] for place in problem.places)
