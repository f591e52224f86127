"""Secrets that a design would reveal: refused beforehand unless that is accepted, and said afterwards."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mechdesign.base._errors import InputError, RevealedWarning, Shown
from mechdesign.base._warnings import warn
from mechdesign.model._disclosure import bounds_pairs, describe_disclosure, find_untied, list_secrets
from mechdesign.model._problem import Problem
from mechdesign.synthesis._result import Design

Isolated = Literal["refuse", "release"]


def check_isolated(problem: Problem, isolated: str) -> None:
    """Raise `InputError` for secrets that no bound on pairs ties to another, unless `isolated` is "release".

    Where nothing but floors on the adversary's error is required, no pair is meant to be bounded, and nothing is
    refused: `warn_revealed` says so. Nor is it where the facts of the problem say that this was asked before.
    """
    if isolated not in ("refuse", "release"):
        raise InputError("isolated", "is not known", value=isolated, bound='"refuse" or "release"')
    if "isolated" in problem.facts:
        return
    n, claims = len(problem.prior), problem.claims
    alone = find_untied(n, claims)
    if isolated == "release" or not alone.size or (claims and not bounds_pairs(claims)):
        return
    if n == 1:
        raise InputError(
            "requirements",
            "tie nothing to the only secret, which every answer reveals",
            remedy='let another secret be possible, or accept it by isolated="release"',
        )
    raise InputError(
        "requirements",
        "bound no pair of secrets, and the best channel would release the secret exactly"
        if alone.size == n
        else "tie some secrets to no other, and the best channel would release these exactly",
        value=Shown(list_secrets(alone.tolist(), n, problem.secrets)),
        remedy=f'{_remedy(problem, int(alone[0]))}, or accept it by isolated="release"',
    )


def warn_revealed(made: Design, stacklevel: int = 3) -> None:
    """Warn with `RevealedWarning` where answers reveal secrets, for certain or nearly so, or no pair is bounded."""
    said = describe_disclosure(made.problem, made.certificate.revealed or ())
    if said:
        warn(" ".join([*said, "What is certified holds."]), RevealedWarning, stacklevel=stacklevel)


def _remedy(problem: Problem, secret: int) -> str:
    """Say how the secret could be tied to others: to the nearest one where a radius is too small for that."""
    for stated in problem.stated:
        if "radius" in stated.numbers and "distance" in stated.arrays:
            row = np.delete(np.asarray(stated.arrays["distance"][secret]), secret)
            if np.isfinite(row).any():
                name = secret if problem.secrets is None else problem.secrets.labels[secret]
                radius = float(stated.numbers["radius"])
                return f"take a radius of {row.min():.6g} for {name}, say, where it is {radius:.6g}"
    return "bound pairs with them, by finite distances or edges"
