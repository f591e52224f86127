"""Sentences about a design: what is proved, what is only stated, and which private data its files reveal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mechdesign.certify._certificate import Certificate
from mechdesign.certify._dithering import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from mechdesign.certify._exact import exact_text
from mechdesign.model._disclosure import describe_disclosure
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem, claim_names
from mechdesign.model._words import recognise_measure, short

_HIDDEN = "No secret is revealed for certain: at least two secrets can produce each answer."


def describe_proof(problem: Problem, certificate: Certificate) -> tuple[str, ...]:
    """Return a sentence for each claim that holds, with the inequality, its range of validity, and its unit."""
    parts = zip(claim_names(problem), certificate.requirements, strict=True)
    return tuple(f"{name}: {_sentence(problem, place)}" for place, (name, checked) in enumerate(parts) if checked.holds)


def describe_revealed(problem: Problem, certificate: Certificate) -> tuple[str, ...]:
    """Return sentences on the secrets that answers reveal."""
    return (*(() if certificate.revealed else (_HIDDEN,)), *describe_disclosure(problem, certificate.revealed))


def count_bounded_pairs(problem: Problem) -> tuple[str, ...]:
    """Return for each claim the number of pairs that it bounds ("18 of 90 ordered pairs"), or "" if it bounds none."""
    n = len(problem.prior)
    bounds = problem.pair_bounds
    return tuple(_count(len(bounds[place]), n) if place in bounds else "" for place in range(len(problem.claims)))


def _count(pairs: int, n: int) -> str:
    every = "all" if pairs == n * (n - 1) else f"{pairs} of"
    return f"{every} {n * (n - 1)} ordered pairs"


def list_unproved(problem: Problem, origin: Origin | None) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each unproved statement about a problem."""
    yield "title", problem.title or "none"
    if problem.secrets is not None:
        unit = f"in {problem.secrets.unit}" if problem.secrets.unit else "without a unit"
        places = problem.secrets.points.shape[1] > 0
        yield "secrets", f"{problem.secrets.size} places, {unit}" if places else f"{problem.secrets.size} labels"
    said = "" if origin is None else origin.prior
    yield "prior", said or "its numbers are in the files; its source is not known"
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
    """Return the sentence of the claim at an index."""
    if (floor := problem.floors.get(place)) is not None:
        found = recognise_measure(floor.error, problem.secrets, problem.secrets)
        least = found.with_unit(exact_text(floor.minimum))
        believed = "the prior in the files" if floor.prior is None else "the prior of this requirement"
        return (
            f"an adversary who knows the channel and {believed} has an error of at least {least} on average, "
            f"with each of its {len(floor.error)} listed guesses"
        )
    n, m = problem.cost.shape
    if (claim := problem.point_bounds.get(place)) is not None:
        points = f"all points x, x' of the rectangle between {claim.columns} × {claim.rows} anchors"
        name = {CHEBYSHEV: "Chebyshev", MANHATTAN: "Manhattan", EUCLIDEAN: "Euclidean"}[claim.norm]
        return (
            f"p(o|x) ≤ e^({exact_text(claim.epsilon)}·d(x, x')) p(o|x') for {points}, and each of {m} answers o. Here "
            f"d is the {name} distance, and dithering draws one of the four anchors around a point with bilinear "
            "weights"
        )
    pairs = f"{_count(len(problem.pair_bounds[place]), n)} of secrets (s, t), and each of {m} answers o"
    factor, meaning = _factor(problem, place)
    return f"p(o|s) ≤ {factor} p(o|t) for {pairs}{meaning}"


def _factor(problem: Problem, place: int) -> tuple[str, str]:
    """Return the factor as a formula, and the meaning of its symbols."""
    claim = problem.claims.exponent_bounds.get(place)
    if claim is None:
        return "g(s, t)", ", with the exact factors g in the files"
    epsilon, weights = exact_text(claim.epsilon), claim.weights
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
    return f"e^({epsilon}·d(s, t))", f", with d {name}; at its maximum of {farthest} the factor is {much}"


HAND_ON = (
    "`mechdesign export DIR --without-prior -o OTHER` writes a folder without the prior. The channel still depends on "
    "it: only a design with a prior from public data hides the counts"
)
"""Advice on a copy of a design without its prior."""

COUNTED = (
    "The prior was counted in data: the folder is private. The files and the report reveal every count exactly to "
    "everyone who receives them. Notes, specification and digests of data reveal whose counts they are"
)
"""Sentences about a design whose prior was counted in data."""

_UNKNOWN = (
    "The source of the prior is not known. If the prior was counted in data, the folder is private: its files "
    "reveal every count exactly to everyone who receives them"
)
WRITTEN = (
    "The prior is computed from counts in the specification. If these counts come from data, the folder is private: "
    "its files reveal every count exactly to everyone who receives them"
)
"""Sentences about a design whose specification contains counts."""

STEPS = (
    "The policy graph was made from steps in data: its edges, which the files contain, reveal the observed steps. "
    "The edges are private, and remain in the files even if the prior is left out"
)
"""Sentences about a policy graph that was made from data."""


def private(problem: Problem, origin: Origin | None) -> tuple[str, ...]:
    """Return sentences, without a full stop, on the private data that the files of a design reveal.

    If the source of a nonuniform prior is unknown, the prior may have been counted in data. Counts in the specification
    may also come from data.
    """
    counted = () if origin is None else origin.counted
    said = []
    priors = {path for path in counted if "prior" in path}
    if priors and all(path.endswith("counts") for path in priors):
        said.append(WRITTEN)
    elif priors:
        said.append(COUNTED)
    elif (origin is None or not origin.says_how) and np.ptp(problem.prior) > 1e-9 / len(problem.prior):
        said.append(_UNKNOWN)
    if origin is not None and tells_steps(origin):
        said.append(STEPS)
    return tuple(said)


def tells_steps(origin: Origin) -> bool:
    """Return whether a policy graph was made from steps in data."""
    return any("prior" not in path for path in origin.counted)


def holds_counts(problem: Problem, origin: Origin | None) -> bool:
    """Return whether the prior was counted in data, or has an unknown source."""
    return bool({COUNTED, _UNKNOWN} & set(private(problem, origin)))
