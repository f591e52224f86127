"""The certificate: whether a channel meets its requirements, which secrets it reveals, and bounds on its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from mechdesign.base._check import require_kind
from mechdesign.base._errors import CertificateError
from mechdesign.certify import _bracket as bracket
from mechdesign.certify import _costs as costs
from mechdesign.certify import _privacy as privacy
from mechdesign.certify._claims import Claim, Floor, PairBound
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._exact import as_decimal, exact_text, float_down, float_up, text_up
from mechdesign.certify._privacy import revealed
from mechdesign.certify._stated import FORMS

# The displayed symbol of each number.
_SYMBOLS = {"epsilon": "ε", "factor": "factor", "minimum": "error"}

# Maximum number of revealed secrets that a certificate displays.
_MAX_LISTED = 5

# The name of the first number of each kind; explicit claims are missing, because their certificates state the name.
_NUMBERS = {kind: form.numbers[0] for kind, form in FORMS.items() if not form.named}


@dataclass(frozen=True)
class Checked:
    """The verdict on one requirement.

    Attributes:
        kind: The kind of the requirement, such as "metric".
        nominal: The exact text of the required number.
        realised: The least ε or factor for which the bound holds, rounded up; for a floor, the distortion, rounded
            down.
        holds: Whether the requirement holds, decided exactly and not by comparing `nominal` and `realised`.
        radius: The exact text of the radius of threshold privacy, empty for other kinds.
        number: The name of the number: "epsilon" or "factor" of a pair bound, or "minimum" of a floor.

    >>> from mechdesign.certify import Checked
    >>> Checked("metric", "1.5", 1.4, True).symbol
    'ε'
    """

    kind: str
    nominal: str
    realised: float
    holds: bool
    radius: str = ""
    number: str = "epsilon"

    @property
    def symbol(self) -> str:
        """The symbol of the number: "ε", "factor" or "error"."""
        return _SYMBOLS[self.number]

    @property
    def at_least(self) -> bool:
        """Whether the number is a minimum, as for a floor."""
        return self.number == Floor.number


@dataclass(frozen=True, repr=False)
class Certificate:
    """The proved facts about a channel.

    Every float represents exactly the decimal that its repr prints.

    Attributes:
        holds: Whether all requirements hold and no forbidden answer is given.
        objective: "expected" or "worst".
        expected_cost: Σ_s π_s Σ_o p(o|s) c(s,o), rounded up; infinite if a forbidden answer is given.
        expected_cost_text: The expected cost with 30 digits.
        worst_cost: max_s Σ_o p(o|s) c(s,o), rounded up.
        worst_cost_text: The worst cost with 30 digits.
        lower_bound: A lower bound on the objective of all channels that meet the requirements, rounded down.
        relative_gap: (cost - lower_bound) / max(cost, 1e-9 · largest finite cost), rounded up.
        requirements: The verdict on each requirement.
        forbidden: The number of pairs of a secret and an observable with infinite cost. The lower bound applies to
            channels that never give forbidden answers.
        reason: Empty if the certificate holds; otherwise a sentence about the violated requirement or the forbidden
            answer.
        pair: The worst pair of secrets, if one violates a requirement.
        provenance: The solver and its settings; nothing in it is proved.
        revealed: The secrets, ascending, that some observable identifies because no other secret gives it.

    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> certificate = md.design(problem).certificate
    >>> certificate.holds, round(certificate.cost, 6)
    (True, 0.268941)
    """

    holds: bool
    objective: str
    expected_cost: float
    expected_cost_text: str
    worst_cost: float
    worst_cost_text: str
    lower_bound: float
    relative_gap: float
    requirements: tuple[Checked, ...]
    forbidden: int = 0
    reason: str = ""
    pair: tuple[int, int] | None = None
    provenance: Mapping[str, str | float | int] = field(default_factory=dict)
    revealed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling and copying, which mapping views do not support."""
        return {**vars(self), "provenance": dict(self.provenance)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, provenance=MappingProxyType(state["provenance"]))

    def __repr__(self) -> str:
        """Show whether the certificate holds, the realised numbers and the cost, with few digits."""
        return f"Certificate({', '.join(f'{name}: {value}' for name, value in self.facts)})"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The facts of the certificate: names and values, with few digits."""
        found = [("holds", "yes" if self.holds else f"no, {self.reason}")]
        for checked in self.requirements:
            name = f"{checked.kind} privacy"
            found.append((name, f"{checked.symbol} {checked.realised:.6g} of {checked.nominal}"))
        gap = f"{self.relative_gap:.2g}" if self.lower_bound > 0 or self.cost == 0 else "no bound"
        found += [("cost", f"{self.cost:.6g}"), ("relative gap", gap)]
        if self.revealed:
            more = ", …" if len(self.revealed) > _MAX_LISTED else ""
            secrets = "secret" if len(self.revealed) == 1 else "secrets"
            named = ", ".join(map(str, self.revealed[:_MAX_LISTED])) + more
            found.append(("reveals", f"{len(self.revealed)} {secrets} for certain ({named})"))
        return found

    @property
    def cost(self) -> float:
        """The cost that the objective minimises, rounded up."""
        return self.worst_cost if self.objective == "worst" else self.expected_cost

    @property
    def epsilon(self) -> tuple[float, ...]:
        """The realised ε of every requirement with an ε, in the order of the requirements."""
        return tuple(checked.realised for checked in self.requirements if checked.number == "epsilon")

    @property
    def distortion(self) -> tuple[float, ...]:
        """The realised distortion of every floor, in the order of the requirements."""
        return tuple(checked.realised for checked in self.requirements if checked.at_least)

    def require(self) -> None:
        """Raise `CertificateError` with the reason and the pair unless the certificate holds."""
        if not self.holds:
            raise CertificateError(self.reason, self.pair)

    def differences(self, other: Certificate) -> tuple[str, ...]:
        """Return the fields in which this certificate differs from another certificate.

        Args:
            other: The other certificate. Provenance is not compared.

        Returns:
            The names of the fields that differ.
        """
        require_kind(other, Certificate, "other", "a Certificate")
        names = (item.name for item in fields(self) if item.name != "provenance")
        return tuple(name for name in names if getattr(self, name) != getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as JSON values, from which `from_json` restores it."""
        return {
            "holds": self.holds,
            "objective": self.objective,
            "expected_cost": _to_json(self.expected_cost),
            "expected_cost_text": self.expected_cost_text,
            "worst_cost": _to_json(self.worst_cost),
            "worst_cost_text": self.worst_cost_text,
            "lower_bound": _to_json(self.lower_bound),
            "relative_gap": _to_json(self.relative_gap),
            "requirements": [_verdict_to_json(checked) for checked in self.requirements],
            "forbidden": self.forbidden,
            "reason": self.reason,
            "pair": None if self.pair is None else list(self.pair),
            "provenance": {
                name: _to_json(value) if isinstance(value, float) else value for name, value in self.provenance.items()
            },
            "revealed": list(self.revealed),
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Certificate:
        """Read a certificate from JSON values.

        Args:
            values: The values that `to_json` returned.

        Returns:
            The certificate.

        Raises:
            CertificateError: A field is missing or malformed.
        """
        pair = _take(values, "pair", (list, type(None)))
        if pair is not None and not (len(pair) == 2 and all(type(secret) is int for secret in pair)):
            raise CertificateError("malformed certificate: pair is not a pair of integers")
        provenance = _take(values, "provenance", (dict,))
        if not all(isinstance(value, str | float | int) for value in provenance.values()):
            raise CertificateError(
                "malformed certificate: provenance contains a value that is neither a text nor a number"
            )
        entries = _take(values, "requirements", (list,))
        secrets = _take(values, "revealed", (list,))
        if not all(type(secret) is int for secret in secrets):
            raise CertificateError("malformed certificate: revealed contains a value that is not an integer")
        return Certificate(
            holds=_take(values, "holds", (bool,)),
            objective=_take(values, "objective", (str,)),
            expected_cost=_take_float(values, "expected_cost"),
            expected_cost_text=_take(values, "expected_cost_text", (str,)),
            worst_cost=_take_float(values, "worst_cost"),
            worst_cost_text=_take(values, "worst_cost_text", (str,)),
            lower_bound=_take_float(values, "lower_bound"),
            relative_gap=_take_float(values, "relative_gap"),
            requirements=tuple(_verdict_from_json(entry) for entry in entries),
            forbidden=_take(values, "forbidden", (int,)),
            reason=_take(values, "reason", (str,)),
            pair=None if pair is None else (pair[0], pair[1]),
            provenance=provenance,
            revealed=tuple(secrets),
        )

    @staticmethod
    def unknown(values: Mapping[str, Any]) -> tuple[str, ...]:
        """Find the keys that this version of mechdesign does not recognise.

        Args:
            values: Values that `from_json` has read.

        Returns:
            The paths of the unknown keys.
        """
        found = [f"certificate.{name}" for name in values if name not in {item.name for item in fields(Certificate)}]
        for index, entry in enumerate(values["requirements"]):
            known = {item.name for item in fields(Checked)}
            found += [f"certificate.requirements[{index}].{name}" for name in entry if name not in known]
        return tuple(found)


def certify(evidence: Evidence, provenance: Mapping[str, str | float | int] | None = None) -> Certificate:
    """Compute the certificate of a channel from its evidence.

    Args:
        evidence: The channel, the problem and the multipliers.
        provenance: The solver and its settings, stored as they are.

    Returns:
        The certificate. If a requirement is violated, `holds` of the certificate is false, and `reason` is a sentence.

    Raises:
        CertificateError: A multiplier belongs to a pair that its requirement does not bound.

    >>> from fractions import Fraction
    >>> from mechdesign.certify._stated import Stated
    >>> half = 1 << 61
    >>> stated = Stated.metric(Fraction(1), [[0, 1], [1, 0]])
    >>> certify(Evidence([[half, half]] * 2, 62, [0.5, 0.5], [[0, 1], [1, 0]], "expected", (stated,))).cost
    0.5
    """
    checked: list[Checked] = []
    reason, pair = "", None
    for index, claim in enumerate(evidence.claims()):
        found, sentence, secrets = _check(evidence, claim)
        radius = evidence.requirements[index].numbers.get("radius")
        checked.append(found if radius is None else replace(found, radius=exact_text(radius)))
        if not found.holds and not reason:
            name = f"requirements[{index}] ({claim.kind} privacy, {claim.number} {found.nominal})"
            reason, pair = f"{name} does not hold: {sentence}", secrets
    stray = costs.forbidden_answer(evidence.numerators, evidence.cost)
    expected = worst = None
    if stray is None:
        expected = costs.expected_cost(evidence.numerators, evidence.exponent, evidence.prior, evidence.cost)
        worst = costs.worst_cost(evidence.numerators, evidence.exponent, evidence.cost)
    elif not reason:
        reason = f"secret {stray[0]} gives observable {stray[1]}, which an infinite cost forbids"
    lower = float_down(Fraction(bracket.lower_bound(evidence)))
    return Certificate(
        holds=not reason,
        objective=evidence.objective,
        expected_cost=math.inf if expected is None else float_up(expected),
        expected_cost_text="inf" if expected is None else text_up(expected),
        worst_cost=math.inf if worst is None else float_up(worst),
        worst_cost_text="inf" if worst is None else text_up(worst),
        lower_bound=lower,
        relative_gap=_relative_gap(worst if evidence.objective == "worst" else expected, lower, evidence),
        requirements=tuple(checked),
        forbidden=int(np.isinf(evidence.cost).sum()),
        reason=reason,
        pair=pair,
        provenance=provenance or {},
        revealed=revealed(evidence.numerators),
    )


def _check(evidence: Evidence, claim: Claim) -> tuple[Checked, str, tuple[int, int] | None]:
    """Return the verdict and, for a violated claim, a sentence and the pair of secrets (None for a floor)."""
    if isinstance(claim, Dithered):
        slope = claim.steepest(evidence.numerators)
        found = Checked(claim.kind, exact_text(claim.nominal), claim.least(slope), claim.holds(slope))
        if found.holds:
            return found, "", None
        return found, claim.sentence(slope), (slope.neighbour, slope.anchor)
    if isinstance(claim, PairBound):
        violation = privacy.check(evidence.numerators, evidence.exponent, claim)
        realised = privacy.realised(evidence.numerators, evidence.exponent, claim)
        found = Checked(claim.kind, exact_text(claim.nominal), realised, violation is None, number=claim.number)
        if violation is None:
            return found, "", None
        name = claim.number
        least = f"no {name} holds" if realised == math.inf else f"the least {name} that holds is {realised!r}"
        return found, f"{violation.sentence}; {least}", violation.pair
    prior = claim.prior_or(evidence.prior)
    total = costs.distortion(evidence.numerators, evidence.exponent, prior, claim.error)
    holds = total >= claim.minimum
    found = Checked(claim.kind, exact_text(claim.nominal), float_down(total), holds, number=claim.number)
    own = "" if claim.prior is None else ", under the prior of this requirement,"
    return found, f"the best attack's expected error{own} is only {found.realised!r}", None


def _relative_gap(cost: Fraction | None, lower: float, evidence: Evidence) -> float:
    if cost is None:
        return math.inf
    scale = max(cost, Fraction(float(evidence.cost[np.isfinite(evidence.cost)].max())) / 10**9)
    return float_up((cost - as_decimal(lower)) / scale) if scale else 0.0


def _verdict_to_json(checked: Checked) -> dict[str, Any]:
    written = {
        "kind": checked.kind,
        "nominal": checked.nominal,
        "realised": _to_json(checked.realised),
        "holds": checked.holds,
        "radius": checked.radius,
    }
    # Only the entries of explicit claims store the name of the number.
    return written if checked.kind in _NUMBERS else {**written, "number": checked.number}


def _verdict_from_json(entry: object) -> Checked:
    if not isinstance(entry, dict):
        raise CertificateError("malformed certificate: an entry of requirements is not an object")
    kind = _take(entry, "kind", (str,))
    number = _take(entry, "number", (str,)) if kind not in _NUMBERS or "number" in entry else _NUMBERS[kind]
    if number != _NUMBERS.get(kind, number):
        raise CertificateError(f"malformed certificate: the number of {kind} privacy is not {number}")
    if number not in _SYMBOLS:
        raise CertificateError(f"malformed certificate: number is not one of {', '.join(_SYMBOLS)}")
    return Checked(
        kind,
        _take(entry, "nominal", (str,)),
        _take_float(entry, "realised"),
        _take(entry, "holds", (bool,)),
        _take(entry, "radius", (str,)),
        number,
    )


def _to_json(number: float) -> float | str:
    """Return a finite float unchanged, and the repr of a float that JSON cannot represent."""
    return number if math.isfinite(number) else repr(number)


def _take(values: Mapping[str, Any], name: str, types: tuple[type, ...]) -> Any:
    if name not in values:
        raise CertificateError(f"malformed certificate: {name} is missing")
    if type(values[name]) not in types:
        raise CertificateError(f"malformed certificate: {name} is not {types[0].__name__}")
    return values[name]


def _take_float(values: Mapping[str, Any], name: str) -> float:
    value = _take(values, name, (float, str))
    if isinstance(value, str):
        if value != "inf":
            raise CertificateError(f"malformed certificate: {name} is not a number")
        return math.inf
    return float(value)
