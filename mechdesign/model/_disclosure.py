"""Secrets that answers reveal, or that no bound ties to another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.model._channel import EXPONENT
from mechdesign.model._claims import Claims
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem

# The logarithm of a factor from which on a bound between multiples of 2^-62 only says that zero goes with zero, less
# what the logarithms of claims may be rounded down by.
_VACUOUS = EXPONENT * math.log(2) * (1 - 2**-40)


def bounds_pairs(claims: Claims) -> bool:
    """Tell whether any of the claims is about pairs of secrets, be it none of them: a floor is about the adversary."""
    return len(claims) > len(claims.floors)


def untied(n: int, claims: Claims) -> Integers:
    """Return the secrets, of n, that no bound on a pair ties to another one, in either direction; ascending.

    Nothing keeps an answer from telling them for certain.
    """
    # A bound on all points between the anchors is about all of them.
    tied = np.full(n, bool(claims.point_bounds))
    for bound in claims.pair_bounds.values():
        others = bound.sources != bound.targets
        tied[bound.sources[others]] = True
        tied[bound.targets[others]] = True
    return np.flatnonzero(~tied)


def loose(n: int, claims: Claims) -> Integers:
    """Return the secrets s, of n, that are tied to others, but by no bound p(o|s) <= g p(o|t) with g < 2^62; ascending.

    Between numerators over 2^62 a larger g only says that zero goes with zero, and a bound in the other direction says
    nothing of how much likelier an answer may be for s: it may tell s all but for certain.
    """
    tied = ~np.isin(np.arange(n), untied(n, claims))
    bounded = np.full(n, bool(claims.point_bounds))
    for bound in claims.pair_bounds.values():
        others, exponents = bound.sources != bound.targets, bound.exponents
        bounded[bound.sources[others & (exponents < _VACUOUS)]] = True
        # Rows sum to 1: where no entry of one exceeds that of the other, both are equal.
        bounded[bound.targets[others & (exponents <= 0)]] = True
    return np.flatnonzero(tied & ~bounded)


# So many secrets are named where there are more.
_SHOWN = 10


def disclosed(problem: Problem, revealed: Sequence[int]) -> tuple[str, ...]:
    """Return sentences on the secrets of a problem that a channel reveals; none where it keeps all within bounds.

    `revealed` lists those revealed for certain, as the certificate does.
    """
    n, claims, domain = len(problem.prior), problem.claims, problem.secrets
    said = []
    if n == 1 and revealed:
        said.append("There is a single secret, and every answer reveals it.")
    elif revealed:
        have = "have" if len(revealed) > 1 else "has"
        said.append(
            f"{listed(revealed, n, domain)} {have} an answer that no other secret is given: whoever sees it "
            "knows the secret for certain."
        )
    if claims and not bounds_pairs(claims):
        said.append(
            "No requirement bounds a pair of secrets: an answer may rule out any of them, as long as the adversary "
            "errs by enough on average."
        )
    barely = np.setdiff1d(loose(n, claims), np.asarray(revealed, dtype=np.int64))
    if barely.size:
        said.append(
            f"No bound below 2^62 limits how much likelier an answer may be for {listed(barely.tolist(), n, domain)} "
            "than for any other: it may reveal them all but for certain. Check the unit of ε."
        )
    return tuple(said)


def listed(secrets: Iterable[int], n: int, domain: Domain | None) -> str:
    """Write how many secrets these are, and which: by their labels where there are any.

    >>> listed([0, 2], 3, None)
    '2 of 3 secrets (0, 2)'
    >>> listed(range(40), 40, None)
    '40 of 40 secrets (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)'
    """
    found = [str(secret if domain is None else domain.labels[secret]) for secret in secrets]
    named = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
    return f"{len(found)} of {n} secrets ({named})"
