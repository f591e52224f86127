"""Say in plain language what a channel guarantees and what it costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechdesign.certify.certificate import Certificate
from mechdesign.model.problem import Problem
from mechdesign.model.requirement import Requirement
from mechdesign.report.dots import Met
from mechdesign.report.scales import relative, short
from mechdesign.report.words import cost_measure, decimal, measure
from mechdesign.requirements.kinds import DistortionPrivacy, GraphPrivacy, MetricPrivacy, ThresholdPrivacy

__all__ = ["met", "requirement_name", "summary"]


def requirement_name(problem: Problem, requirement: Requirement) -> str:
    """Name a requirement by its kind, and by its distance where that is one of the library's."""
    if isinstance(requirement, GraphPrivacy):
        edges = len(requirement.edges)
        return f"graph privacy, ε per edge ({edges} edge{'' if edges == 1 else 's'})"
    if not isinstance(requirement, MetricPrivacy | ThresholdPrivacy | DistortionPrivacy):
        return f"{requirement.kind} privacy"
    found = measure(requirement.distance, problem.secrets, problem.secrets)
    if isinstance(requirement, MetricPrivacy):
        return f"metric privacy, ε per {found.unit or 'unit of distance'}" + _of(found.name)
    if isinstance(requirement, ThresholdPrivacy):
        return f"threshold privacy, ε within {found.with_unit(decimal(requirement.radius))}" + _of(found.name)
    return "distortion privacy, expected error" + (f" in {found.unit}" if found.unit else "") + _of(found.name)


def met(problem: Problem, certificate: Certificate) -> tuple[Met, ...]:
    """Pair the requirements of a problem with what was found about them."""
    return tuple(
        Met(
            requirement_name(problem, requirement).partition(" (")[0],
            float(Fraction(checked.nominal)),
            checked.realised,
            checked.kind == "distortion",
            checked.holds,
        )
        for requirement, checked in zip(problem.requirements, certificate.requirements, strict=True)
    )


def summary(problem: Problem, certificate: Certificate) -> str:
    """Return one paragraph for a reader who knows nothing of the field."""
    n, m = problem.cost.shape
    promises = [_promise(problem, requirement) for requirement in problem.requirements]
    sentences = [
        f"This mechanism answers with one of {m} observables, drawn at random, in place of one of {n} secrets.",
        *_permitted(problem),
        _listed(promises) if promises else "It promises nothing about the secret.",
        _cost(problem, certificate),
    ]
    if promises and not certificate.holds:
        sentences.insert(-1, "But at least one of these promises is broken, as stated above.")
    return " ".join(sentences)


def _permitted(problem: Problem) -> list[str]:
    """Say how many answers each secret may be given, where some are forbidden."""
    counts = np.isfinite(problem.cost).sum(axis=1)
    least, most = int(counts.min()), int(counts.max())
    if least == problem.cost.shape[1]:
        return []
    each = f"{least}" if least == most else f"{least} to {most}"
    return [f"For each secret only {each} of them are permitted, which may tell something about it by itself."]


def _promise(problem: Problem, requirement: Requirement) -> str:
    """Say what whoever sees an answer can, at most, do."""
    if isinstance(requirement, DistortionPrivacy):
        found = measure(requirement.distance, problem.secrets, problem.secrets)
        least = found.with_unit(short(float(requirement.minimum), 4))
        return f"guess the secret, even knowing the prior, but is then off by at least {least} on average"
    if isinstance(requirement, MetricPrivacy):
        found = measure(requirement.distance, problem.secrets, problem.secrets)
        length, example = _example(requirement)
        apart = f"{found.with_unit(short(length))} apart" if found.unit else f"at distance {short(length)}"
        factor = f"a factor of at most {_factor(example)} (closer ones by less)"
        return f"shift the odds between two secrets {apart} by {factor}"
    if isinstance(requirement, ThresholdPrivacy):
        found = measure(requirement.distance, problem.secrets, problem.secrets)
        within = found.with_unit(decimal(requirement.radius))
        factor = _factor(float(requirement.epsilon))
        return f"shift the odds between two secrets within {within} of each other by a factor of at most {factor}"
    if isinstance(requirement, GraphPrivacy):
        factor = _factor(float(requirement.epsilon))
        return (
            f"shift the odds between two secrets joined by an edge of the policy graph by a factor of at most {factor}"
        )
    return f"do no more than {requirement.kind} privacy allows"


def _example(requirement: MetricPrivacy) -> tuple[float, float]:
    """Return a distance to give as an example, 1 where the secrets are at such distances, and ε times it."""
    distances = requirement.distance[np.isfinite(requirement.distance) & (requirement.distance > 0)]
    length = 1.0
    if distances.size and not distances.min() / 2 <= 1.0 <= distances.max():
        # The power of ten next to the typical distance.
        length = 10.0 ** round(math.log10(float(np.median(distances))))
    return length, float(requirement.epsilon) * length


def _factor(exponent: float) -> str:
    return short(math.exp(exponent), 3) if exponent < 30 else f"e^{short(exponent)}"


def _listed(promises: list[str]) -> str:
    if len(promises) == 1:
        return f"Whoever sees an answer can {promises[0]}."
    first, *rest = promises
    return f"Whoever sees an answer can {first}" + "".join(f"; can {promise}" for promise in rest) + "."


def _cost(problem: Problem, certificate: Certificate) -> str:
    kind = "on average" if certificate.objective == "expected" else "in the worst case"
    found = cost_measure(problem)
    cost = found.with_unit(short(certificate.cost, 4))
    sentence = f"An answer costs {cost} {kind}" + (f" ({found.name} from the truth)" if found.name else "")
    gap = certificate.relative_gap
    if certificate.lower_bound <= 0 < certificate.cost:
        return f"{sentence}; that no channel does better has not been shown."
    bound = "exactly the least possible" if gap <= 0 else f"within {relative(gap)} of the least possible"
    among = " with the permitted answers" if certificate.forbidden else ""
    return f"{sentence}, which is proved to be {bound} under these requirements{among}."


def _of(name: str) -> str:
    return f" ({name})" if name else ""
