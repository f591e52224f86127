"""Brackets that are too wide to be passed over in silence."""

from __future__ import annotations

from mechdesign.base._errors import BracketWarning
from mechdesign.solve._contract import Status
from mechdesign.synthesis.certified import Design
from mechdesign.synthesis.settings import SolveSettings
from mechdesign.base._warnings import warn

__all__ = ["stalled", "warn_if_stalled"]

# A relative gap that rays are known to reach on what they are made for.
_USUAL = 0.02


def stalled(made: Design, settings: SolveSettings) -> bool:
    """Tell whether rays ended by themselves, with a bracket above the tolerance and above 2 %."""
    wide = made.certificate.relative_gap > max(settings.tolerance, _USUAL)
    return settings.rows == "rays" and made.status is Status.STALLED and wide


def warn_if_stalled(made: Design, settings: SolveSettings) -> Design:
    """Return a design; raise a `BracketWarning` first where it has stalled, with its bracket."""
    if stalled(made, settings):
        certificate = made.certificate
        worst = certificate.objective == "worst"
        cost = certificate.worst_cost if worst else certificate.expected_cost
        gap = certificate.relative_gap
        proved = f"{gap:.2g} of the cost" if gap < 1 else "all of the cost, which nothing bounds from below"
        warn(
            f"rays stalled: the least cost lies between {certificate.lower_bound:.6g} and {cost:.6g}, a bracket of "
            f"{proved}; {settings.tolerance:.3g} was asked for. Privacy is certified all the same. For up to a few "
            'hundred secrets leave rows at "auto"',
            BracketWarning,
            stacklevel=4,
        )
    return made
