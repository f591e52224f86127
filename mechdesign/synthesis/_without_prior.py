"""Publish a design with a uniform prior in place of its private prior, and without a certified cost.

Metric, threshold and graph privacy compare rows of the channel, so their proofs hold under any prior. Everything that
depends on the prior is left out: the multipliers of the lower bound, the summary, and the origin of the problem. The
integers of the channel do not change; they were optimised for the true prior (see docs/howto/export.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mechdesign.base._errors import InputError
from mechdesign.base._version import __version__
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem

_REMEDY = "to publish a design, design again without it, or with a uniform prior or one from public data"


@dataclass(frozen=True, eq=False)
class PublicDesign:
    """The published version of a design: the problem with a uniform prior, its certificate and its origin."""

    problem: Problem
    certificate: Certificate
    origin: Origin


def find_obstacle(problem: Problem) -> InputError | None:
    """Return the error of `withhold_prior` for a problem, or None if its designs can be published."""
    for index, floor in problem.floors.items():
        return InputError(
            f"requirements[{problem.places[index]}]",
            f"is {floor.kind} privacy, which depends on a prior: it cannot be proved without one",
            bound="requirements on pairs of secrets, such as metric, threshold and graph privacy",
            remedy=_REMEDY,
        )
    if problem.secrets is not None and problem.secrets.lattice is not None:
        return InputError(
            "cost",
            "is the cost of anchors, a mean over visits, and reveals the visits like the prior",
            bound="secrets that are not anchors",
            remedy=_REMEDY,
        )
    return None


def withhold_prior(problem: Problem, channel: Channel) -> PublicDesign:
    """Return the publishable version of a design; it depends on the prior only through the channel.

    Args:
        problem: The problem with its true prior.
        channel: The certified channel.

    Returns:
        The problem with a uniform prior, its certificate and its origin.

    Raises:
        InputError: A requirement depends on a prior, such as distortion privacy. The error is also raised if the
            secrets are anchors, whose costs are means over the same visits as the prior.
    """
    obstacle = find_obstacle(problem)
    if obstacle is not None:
        raise obstacle
    public = replace(problem, prior=Prior.uniform(len(problem.prior)).probabilities)
    evidence = Evidence(channel.numerators, EXPONENT, public.prior, public.cost, public.objective, public.stated)
    certificate = certify(evidence, {"mechdesign": __version__})
    certificate.require()
    return PublicDesign(public, certificate, Origin(prior=STANDS_IN))
