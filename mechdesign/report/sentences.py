"""Say in plain language what a channel guarantees and what it costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mechdesign.certify._certificate import Certificate
from mechdesign.certify._claims import Floor
from mechdesign.certify._claims import PairBound
from mechdesign.model._problem import Problem
from mechdesign.report.dots import Met
from mechdesign.model._words import InWords
from mechdesign.model._words import claim_names
from mechdesign.model._words import claimants
from mechdesign.model._words import requirement_name
from mechdesign.model._words import bounded
from mechdesign.model._words import relative
from mechdesign.model._words import short
from mechdesign.model._words import cost_measure

__all__ = ["claimants", "met", "requirement_name", "summary"]


def met(problem: Problem, certificate: Certificate) -> tuple[Met, ...]:
    """Pair the requirements of a problem with what was found about them."""
    return tuple(
        Met(
            name.partition(" (")[0],
            float(Fraction(checked.nominal)),
            checked.realised,
            checked.at_least,
            checked.holds,
            isinstance(claim, PairBound) and not len(claim),
        )
        for name, checked, claim in zip(claim_names(problem), certificate.requirements, problem.claims, strict=True)
    )


def summary(problem: Problem, certificate: Certificate) -> str:
    """Return one paragraph for a reader who knows nothing of the field."""
    n, m = problem.cost.shape
    words = InWords(problem)
    promises = [
        requirement.promise(words) + _reached(problem, certificate, place)
        for place, requirement in enumerate(problem.requirements)
    ]
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


def _reached(problem: Problem, certificate: Certificate, place: int) -> str:
    """Say by how much the best guess is off, where a requirement asks for less than that."""
    errors = [
        (checked.realised, float(Fraction(checked.nominal)), claim)
        for of, claim, checked in zip(problem.places, problem.claims, certificate.requirements, strict=True)
        if of == place and isinstance(claim, Floor)
    ]
    if len(errors) != 1:
        return ""
    ((realised, asked, claim),) = errors
    shown = bounded(realised, up=False, digits=4)
    if realised <= asked or shown == bounded(asked, up=False, digits=4):
        return ""
    return f" (with this mechanism by {InWords(problem).measure(claim.error).with_unit(shown)})"


def _listed(promises: list[str]) -> str:
    first, *rest = promises
    return " ".join([f"Whoever sees an answer can {first}.", *(f"They can also {promise}." for promise in rest)])


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
