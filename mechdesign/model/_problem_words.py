"""A problem in words: how its costs, its adversary's errors and its claims are called."""

from __future__ import annotations

import numpy as np

from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._words import PLANE_DISTANCE, Measure, Words, clip, recognise_measure


def answers(problem: Problem) -> Domain | None:
    """Return the domain of the observables; without one, that of the secrets where the true answer costs least."""
    if problem.observables is not None or problem.secrets is None:
        return problem.observables
    square = problem.cost.shape[0] == problem.cost.shape[1]
    if square and (np.diagonal(problem.cost) == problem.cost.min(axis=1)).all():
        return problem.secrets
    return None


def cost_measure(problem: Problem) -> Measure:
    """Say in what the cost of a permitted answer is measured."""
    return recognise_measure(problem.cost, problem.secrets, answers(problem), np.isfinite(problem.cost))


def attack_measure(problem: Problem) -> Measure:
    """Return what an adversary wants small, estimates by secrets.

    That is the error of the first floor among the requirements; else the Euclidean distance of the secrets, or, on much
    of the globe, the great-circle distance; else, where they have no places, the Hamming distance.
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
    return Measure(distances.hamming(len(problem.prior)), "Hamming distance")


def requirement_name(problem: Problem, requirement: Requirement) -> str:
    """Name a requirement and what its number means; its distance, too, where that is one of the library's."""
    return requirement.title(Words(problem.secrets))


def claim_names(problem: Problem) -> tuple[str, ...]:
    """Name each claim, and so each entry of a certificate: by the requirement that makes it, or its part of it."""
    return tuple(name for requirement in problem.requirements for name in requirement.titles(Words(problem.secrets)))


def claimants(problem: Problem) -> tuple[Requirement, ...]:
    """Return for each claim, and so for each entry of a certificate, the requirement that makes it."""
    return tuple(problem.requirements[place] for place in problem.places)
