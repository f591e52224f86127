"""What a certificate proves and what is stated, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mechdesign.certify._certificate import Certificate
from mechdesign.certify._dithering import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from mechdesign.model import distances
from mechdesign.model._disclosure import describe_disclosure
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import claim_names, requirement_name
from mechdesign.model._words import decimal, recognise_measure, short
from mechdesign.report._private import private

_HIDDEN = "No secret is revealed for certain: each answer that is ever given is given to two secrets or more."


def proved(problem: Problem, certificate: Certificate) -> tuple[str, ...]:
    """Return a sentence for each claim of a certificate: the inequality, for whom it holds, and in which unit."""
    parts = zip(claim_names(problem), certificate.requirements, strict=True)
    return tuple(f"{name}: {_sentence(problem, place)}" for place, (name, checked) in enumerate(parts) if checked.holds)


def told(problem: Problem, certificate: Certificate) -> tuple[str, ...]:
    """Return sentences on the secrets that answers reveal; none where the certificate does not say which."""
    if certificate.revealed is None:
        return ()
    return (*(() if certificate.revealed else (_HIDDEN,)), *describe_disclosure(problem, certificate.revealed))


def bounded_pairs(problem: Problem) -> tuple[str, ...]:
    """Say for each claim how many pairs it bounds: "18 of 90 ordered pairs"; nothing where it is about no pairs."""
    n = len(problem.prior)
    bounds = problem.pair_bounds
    return tuple(_count(len(bounds[place]), n) if place in bounds else "" for place in range(len(problem.claims)))


def left_free(problem: Problem) -> tuple[str, ...]:
    """Say of requirements that an earlier version stated how many pairs at their radius they leave free."""
    margin = 0.0 if problem.secrets is None else distances.margin(problem.secrets)
    n = len(problem.prior)
    free = [requirement.left_free(margin) for requirement in problem.requirements]
    return tuple(
        f"requirements[{index}] ({requirement_name(problem, problem.requirements[index])}) leaves {count} of "
        f"{n * (n - 1)} ordered pairs free that lie at its radius, to within rounding. An earlier version stated it: "
        "design it again"
        for index, count in enumerate(free)
        if count
    )


def _count(pairs: int, n: int) -> str:
    every = "all" if pairs == n * (n - 1) else f"{pairs} of"
    return f"{every} {n * (n - 1)} ordered pairs"


def stated(problem: Problem, origin: Origin | None) -> Iterator[tuple[str, str]]:
    """Yield what is stated about a problem and not proved: what it is, and what is said of it."""
    yield "title", problem.title or "none"
    if problem.secrets is not None:
        unit = f"in {problem.secrets.unit}" if problem.secrets.unit else "without a unit"
        places = problem.secrets.points.shape[1] > 0
        yield "secrets", f"{problem.secrets.size} places, {unit}" if places else f"{problem.secrets.size} labels"
    said = "" if origin is None else origin.prior
    yield "prior", said or "its numbers are in the files; where they come from is not said"
    for sentence in private(problem, origin):
        yield "private", sentence
    if origin is None:
        return
    for note in origin.notes:
        yield "", note
    for name, digest in origin.files.items():
        yield "data", f"{name}, SHA-256 {digest}"
    if origin.specification:
        lines = len(origin.specification.splitlines())
        yield "specification", f"{lines} lines, kept in certificate.json (metadata, origin)"


def _sentence(problem: Problem, place: int) -> str:
    """Say what the claim at a place among all says."""
    if (floor := problem.floors.get(place)) is not None:
        found = recognise_measure(floor.error, problem.secrets, problem.secrets)
        least = found.with_unit(decimal(floor.minimum))
        believed = "the prior in the files" if floor.prior is None else "the prior of this requirement"
        return f"whoever knows the channel, and {believed}, errs by at least {least} on average, however they guess"
    n, m = problem.cost.shape
    if (claim := problem.point_bounds.get(place)) is not None:
        points = f"all points x, x' of the rectangle between {claim.columns} × {claim.rows} anchors"
        name = {CHEBYSHEV: "Chebyshev", MANHATTAN: "Manhattan", EUCLIDEAN: "Euclidean"}[claim.norm]
        return (
            f"p(o|x) ≤ e^({decimal(claim.epsilon)}·d(x, x')) p(o|x') for {points}, and each of {m} answers o, with d "
            f"the {name} distance, where one of the four anchors around a point is drawn with bilinear weights"
        )
    pairs = f"{_count(len(problem.pair_bounds[place]), n)} of secrets (s, t), and each of {m} answers o"
    factor, meaning = _factor(problem, place)
    return f"p(o|s) ≤ {factor} p(o|t) for {pairs}{meaning}"


def _factor(problem: Problem, place: int) -> tuple[str, str]:
    """Return the factor as a formula, and what the letters in it mean."""
    claim = problem.claims.exponent_bounds.get(place)
    if claim is None:
        return "g(s, t)", ", with the exact factors g in the files"
    epsilon, weights = decimal(claim.epsilon), claim.weights
    if (weights == 1).all():
        return (f"e^({epsilon})" if "/" in epsilon else f"e^{epsilon}"), ""
    distance = getattr(problem.requirements[problem.places[place]], "distance", None)
    if not isinstance(distance, np.ndarray):
        return f"e^({epsilon}·w(s, t))", ", with the exact weights w in the files"
    found = recognise_measure(distance, problem.secrets, problem.secrets)
    name = f"the {found.name}" if found.name else "the distance in the files"
    farthest = found.with_unit(short(float(weights.max())))
    most = float(claim.exponents.max())
    much = f"e^{short(most)}" if math.isfinite(most) else "any factor"
    return f"e^({epsilon}·d(s, t))", f", with d {name}: up to {farthest}, and there {much}"
