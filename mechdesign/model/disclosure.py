"""What answers disclose beyond all bounds, in words: secrets that they reveal, for certain or nearly so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mechdesign.model.domain import Domain
from mechdesign.model.problem import Problem
from mechdesign.model.ties import bounds_pairs
from mechdesign.model.ties import loose

__all__ = ["disclosed", "listed"]

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
