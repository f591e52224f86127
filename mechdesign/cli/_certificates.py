"""Facts of certificates, which several commands print."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mechdesign.cli._found import Shown
from mechdesign.model._words import at_least, at_most

if TYPE_CHECKING:
    from mechdesign.certify._certificate import Certificate
    from mechdesign.model._origin import Origin
    from mechdesign.model._problem import Problem


def certificate_facts(problem: Problem, certificate: Certificate, origin: Origin | None = None) -> dict[str, object]:
    """Return the facts of a certificate: its requirements, costs, bound, and what answers reveal."""
    from mechdesign.model._problem import claim_names
    from mechdesign.report._statements import count_bounded_pairs
    from mechdesign.report._verdicts import write_achieved

    bounded = count_bounded_pairs(problem)
    requirements = []
    for name, pairs, checked in zip(claim_names(problem), bounded, certificate.requirements, strict=True):
        side, symbol = ("at_least", "≥") if checked.at_least else ("at_most", f"{checked.symbol} ≤")
        requirements.append({
            "requirement": name,
            "required": Shown({side: checked.nominal}, f"{symbol} {checked.nominal}"),
            "achieved": Shown(checked.realised, write_achieved(checked)),
            "holds": checked.holds,
            "bounded": pairs or None,
        })  # fmt: skip
    return {
        "holds": certificate.holds,
        **_costs(problem, certificate, origin),
        "revealed": Shown(certificate.revealed, str(len(certificate.revealed))),
        "forbidden": certificate.forbidden,
        "requirements": requirements,
    }


def _costs(problem: Problem, certificate: Certificate, origin: Origin | None) -> dict[str, object]:
    """Return the costs of both objectives, first the minimised one, the lower bound and the gap."""
    from mechdesign.model._problem import cost_measure

    measured = cost_measure(problem)

    def shown(value: float, write: Callable[[float], str]) -> Shown:
        return Shown(value, measured.with_root(value, write))

    other = "worst_cost" if certificate.objective == "expected" else "expected_cost"
    uniform = origin is not None and origin.has_substitute_prior
    return {
        "objective": f"{certificate.objective} cost{' under a uniform prior' if uniform else ''}",
        "unit": measured.unit or None,
        "cost": shown(certificate.cost, at_most),
        other: shown(getattr(certificate, other), at_most),
        "lower_bound": shown(certificate.lower_bound, at_least),
        "relative_gap": Shown(certificate.relative_gap, f"{certificate.relative_gap:.3g}"),
    }
