"""Refuse secrets that a design would reveal, unless the caller accepts it; warn about revealed secrets afterwards."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from mechdesign.base._check import require_name
from mechdesign.base._errors import InputError, RevealedWarning, Shown
from mechdesign.base._warnings import warn
from mechdesign.model._disclosure import bounds_pairs, describe_disclosure, find_untied, list_secrets
from mechdesign.model._problem import Problem
from mechdesign.synthesis._result import Design

Isolated = Literal["refuse", "release"]


def check_isolated(problem: Problem, isolated: str) -> None:
    """Raise `InputError` for secrets without a pair bound to another secret, unless `isolated` is "release".

    Problems whose only requirements are distortion floors bound no pairs on purpose. This function accepts such
    problems, and `warn_revealed` later issues a warning. A problem is not checked again if its facts already contain a
    decision on isolated secrets ("isolated").
    """
    require_name(isolated, get_args(Isolated), "isolated")
    if "isolated" in problem.facts:
        return
    n, claims = len(problem.prior), problem.claims
    alone = find_untied(n, claims)
    if isolated == "release" or not alone.size or (claims and not bounds_pairs(claims)):
        return
    if n == 1:
        raise InputError(
            "requirements",
            "cannot protect the only secret, which every answer reveals",
            remedy='allow further secrets, or accept this with isolated="release"',
        )
    raise InputError(
        "requirements",
        "bound no pair of secrets, so the best channel would release the secret exactly"
        if alone.size == n
        else "leave some secrets without a bound, so the best channel would release them exactly",
        value=Shown(list_secrets(alone.tolist(), n, problem.secrets)),
        remedy=f'{_suggest_remedy(problem, int(alone[0]))}, or accept this with isolated="release"',
    )


def warn_revealed(result: Design) -> None:
    """Issue a `RevealedWarning` if answers reveal secrets, for certain or nearly so, or if no pair is bounded."""
    sentences = describe_disclosure(result.problem, result.certificate.revealed or ())
    if sentences:
        warn(" ".join([*sentences, "All certified claims hold."]), RevealedWarning, stacklevel=3)


def _suggest_remedy(problem: Problem, secret: int) -> str:
    """Suggest a radius that includes the nearest secret or, if no requirement has a radius, suggest further bounds."""
    for stated in problem.stated:
        if "radius" in stated.numbers and "distance" in stated.arrays:
            row = np.delete(np.asarray(stated.arrays["distance"][secret]), secret)
            if np.isfinite(row).any():
                name = secret if problem.secrets is None else problem.secrets.labels[secret]
                radius = float(stated.numbers["radius"])
                return f"increase the radius from {radius:.6g} to {row.min():.6g}, which reaches a neighbour of {name}"
    return "bound pairs that contain them, by finite distances or edges"
