"""Hand on a design without its prior, which may be private: a uniform one stands in its place, and no cost is claimed.

Metric, threshold and graph privacy bound rows of the channel against one another, whatever the prior is. So they are
proved of the same integers under any prior. What rests on the prior goes: the multipliers, which bound the cost from
below, how the channel was found, and where the problem comes from. The integers stay as they are, and were chosen for
the true prior: see the guide on exports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mechdesign.base._errors import InputError
from mechdesign.base._version import __version__
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.synthesis._bundle import has_substitute_prior
from mechdesign.synthesis._folders import check_folder, check_writable

_REMEDY = "hand on the folder with its prior, or design again without it"


@dataclass(frozen=True, eq=False)
class PublicDesign:
    """What is written in place of a design, beside its channel: a problem with a uniform prior, and what is proved."""

    problem: Problem
    certificate: Certificate
    origin: Origin


def check_public_target(folder: Path) -> None:
    """Raise `ExportError` unless `folder` is new, empty, or holds a design without its prior.

    Files of a design with its prior that were changed since would stay there, and tell of it.
    """
    if folder.exists() and has_substitute_prior(folder):
        check_writable(folder)
    else:
        check_folder(folder, lambda entry: False, "a design without its prior")


def withhold_prior(problem: Problem, channel: Channel) -> PublicDesign:
    """Return what may be handed on of a design: two priors that led to the same channel give the same.

    Raises:
        InputError: A requirement is stated under the prior or one of its own, such as distortion privacy; or the
            secrets are anchors, whose costs are means over the visits that the prior counts.
    """
    for index, floor in problem.floors.items():
        raise InputError(
            f"requirements[{problem.places[index]}]",
            f"is {floor.kind} privacy, which is stated under a prior: without it nothing is proved",
            bound="requirements on pairs of secrets, such as metric, threshold and graph privacy",
            remedy=_REMEDY,
        )
    if problem.secrets is not None and problem.secrets.lattice is not None:
        raise InputError(
            "cost",
            "is that of anchors, a mean over visits, from which they follow as from the prior",
            bound="secrets that are no anchors",
            remedy=_REMEDY,
        )
    public = replace(problem, prior=Prior.uniform(len(problem.prior)).probabilities)
    evidence = Evidence(channel.numerators, EXPONENT, public.prior, public.cost, public.objective, public.stated)
    certificate = certify(evidence, {"mechdesign": __version__})
    certificate.require()
    return PublicDesign(public, certificate, Origin(prior=STANDS_IN))
