"""Secrets that answers may reveal: with a unique answer, without an effective bound, or in a cell far from others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.certify._exact import exact
from mechdesign.model._channel import EXPONENT
from mechdesign.model._claims import Claims
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._continuous import describe_spacing
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._words import HAMMING_DISTANCE, Words

# Logarithm of 2^62. Probabilities are multiples of 2^-62, so a bound p(o|s) <= g p(o|t) with g >= 2^62 only implies
# p(o|s) = 0 where p(o|t) = 0. The margin covers the downward rounding of claimed logarithms.
_VACUOUS = EXPONENT * math.log(2) * (1 - 2**-40)


def bounds_pairs(claims: Claims) -> bool:
    """Return whether some claim is not a floor, but a bound on pairs or points, even if it has no pairs."""
    return len(claims) > len(claims.floors)


def find_untied(n: int, claims: Claims) -> Integers:
    """Return, in ascending order, the secrets that occur in no bound on a pair of different secrets.

    An answer may reveal each of these secrets for certain.
    """
    # A bound on all points between the anchors ties all anchors together.
    tied = np.full(n, bool(claims.point_bounds))
    for bound in claims.pair_bounds.values():
        others = bound.sources != bound.targets
        tied[bound.sources[others]] = True
        tied[bound.targets[others]] = True
    return np.flatnonzero(~tied)


def find_loose(n: int, claims: Claims) -> Integers:
    """Return, in ascending order, the tied secrets s without any bound p(o|s) <= g p(o|t) with g < 2^62.

    Probabilities are multiples of 2^-62, so a bound with g >= 2^62 only implies p(o|s) = 0 where p(o|t) = 0. A bound in
    the opposite direction, p(o|t) <= g p(o|s), does not limit p(o|s) from above. An answer may therefore reveal s
    almost for certain.
    """
    tied = ~np.isin(np.arange(n), find_untied(n, claims))
    bounded = np.full(n, bool(claims.point_bounds))
    for bound in claims.pair_bounds.values():
        others, exponents = bound.sources != bound.targets, bound.exponents
        bounded[bound.sources[others & (exponents < _VACUOUS)]] = True
        # Rows sum to 1: if no entry of one row exceeds the same entry of the other row, both rows are equal.
        bounded[bound.targets[others & (exponents <= 0)]] = True
    return np.flatnonzero(tied & ~bounded)


# Largest number of secrets whose names a sentence lists.
_MAX_NAMED = 10


def describe_disclosure(problem: Problem, revealed: Sequence[int]) -> tuple[str, ...]:
    """Return sentences about the secrets that a channel may reveal, or an empty tuple.

    `revealed` lists the secrets that the channel reveals for certain, as stated in the certificate.
    """
    n, claims, domain = len(problem.prior), problem.claims, problem.secrets
    said = []
    if n == 1 and revealed:
        said.append("There is a single secret, and every answer reveals it.")
    elif revealed:
        have = "have" if len(revealed) > 1 else "has"
        said.append(
            f"{list_secrets(revealed, n, domain)} {have} an answer that no other secret can produce: anyone who sees "
            "it knows the secret for certain."
        )
    if claims and not bounds_pairs(claims):
        said.append(
            "No requirement bounds a pair of secrets: an answer may rule out any secret, if the adversary's average "
            "error remains large enough."
        )
    barely = sorted(set(find_loose(n, claims).tolist()) - set(revealed))
    if barely:
        said.append(
            "No bound below 2^62 limits how much likelier an answer may be for "
            f"{list_secrets(barely, n, domain)} than for any other secret. An answer may reveal the secret "
            "almost for certain. Check the unit of ε."
        )
    return tuple(said)


def describe_cells(problem: Problem) -> str:
    """Return sentences on the cells of a grid if they are too far apart for metric privacy, or an empty text."""
    domain, words = problem.secrets, Words(problem.secrets)
    if domain is None or (domain.cells is None and domain.within is None):
        return ""
    for each in problem.requirements:
        if not isinstance(each, MetricPrivacy):
            continue
        step = float(each.distance[each.distance > 0].min(initial=math.inf))
        exponent = float(each.epsilon) * step
        if exponent == math.inf:
            continue
        effect = (
            f"The odds between two of them may change by a factor of {words.factor(exponent)}, so the answer is often "
            "the true cell. Costs are between centres: real places add up to half the diagonal of a cell"
        )
        said = describe_spacing("neighbouring cells", each.epsilon, exact(step), domain.unit, effect)
        if not said or words.measure(each.distance).name in ("", HAMMING_DISTANCE):
            continue
        # Another requirement may bound neighbours more.
        others = (bound.exponents[bound.sources != bound.targets] for bound in problem.pair_bounds.values())
        if all(found.min(initial=math.inf) >= exponent * (1 - 1e-9) for found in others):
            return f"{said[0].upper()}{said[1:]}."
    return ""


def list_secrets(secrets: Iterable[int], n: int, domain: Domain | None) -> str:
    """Write the number of the given secrets and their labels, or their indices if the domain is None.

    >>> list_secrets([0, 2], 3, None)
    '2 of 3 secrets (0, 2)'
    >>> list_secrets(range(40), 40, None)
    '40 of 40 secrets (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)'
    """
    found = [str(secret if domain is None else domain.labels[secret]) for secret in secrets]
    named = ", ".join(found[:_MAX_NAMED]) + (", …" if len(found) > _MAX_NAMED else "")
    return f"{len(found)} of {n} secrets ({named})"
