"""The guarantee of a result in the terms of NIST SP 800-226, as rows of a table.

The publication asks of every guarantee for its unit of privacy, its parameters, its trust model, its composition, its
implementation, and the data behind it. Each function below answers these questions from the values of one result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mechdesign.certify._certificate import Certificate
from mechdesign.certify._exact import exact_text
from mechdesign.measures._audit import Audit
from mechdesign.model._channel import Channel
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import claim_names
from mechdesign.model._words import format_bound
from mechdesign.report._private import private
from mechdesign.report._proved import count_bounded_pairs
from mechdesign.tables._release import Description
from mechdesign.traces._released import ReleasedTrace

Rows = list[tuple[str, str]]
"""Rows of a table: a term of the publication, and its meaning for this result."""

_UNIT = "Unit of privacy"
_PARAMETERS = "Privacy parameters"
_TRUST = "Trust model"
_COMPOSITION = "Composition"
_SIDE_CHANNELS = "Side channels"
_COLLECTION = "Data collection"
_NOT_COVERED = "Not covered"

_LOCAL = (
    "local, if the channel runs where the secret is known, such as on a person's device: the receiver of the answers "
    "need not be trusted. If a server collects the secrets and runs the channel, the server is trusted (central)"
)
_EXACT_SAMPLING = (
    "answers are drawn by comparing 62 random bits of the operating system with integers, so the last bits of floats "
    "reveal nothing. Time, memory and the fact of a request are not hidden"
)


def describe_design(problem: Problem, channel: Channel, certificate: Certificate, origin: Origin | None) -> Rows:
    """Return the rows on a certified channel."""
    told = certificate.revealed
    return [
        (_UNIT, _list_units(problem)),
        (_PARAMETERS, _list_parameters(problem, certificate)),
        (_TRUST, _LOCAL),
        (
            _COMPOSITION,
            "the certificate is about one answer. The ε of k answers about one secret add up to kε, and correlated "
            "secrets leak more",
        ),
        (_SIDE_CHANNELS, _EXACT_SAMPLING),
        (_COLLECTION, _describe_prior(problem, origin)),
        (_NOT_COVERED, _join(_list_gaps(problem, told))),
    ]


def _list_units(problem: Problem) -> str:
    n, counts = len(problem.prior), count_bounded_pairs(problem)
    units: list[str] = []
    for place, count in enumerate(counts):
        if place in problem.point_bounds:
            units.append("any two points of the rectangle, however close")
        elif place not in problem.floors:
            units.append(f"the secret behind one answer, for {count} of {n} secrets")
    if not units:
        return "none: no pair of secrets has a bound, so this is not differential privacy"
    return _join(dict.fromkeys(units))


def _list_parameters(problem: Problem, certificate: Certificate) -> str:
    said: list[str] = []
    for name, checked in zip(claim_names(problem), certificate.requirements, strict=True):
        if checked.at_least:
            said.append(f"{name}: no ε, but an expected error of at least {checked.nominal}")
        else:
            tight = format_bound(checked.realised, up=True)
            verdict = f"tight value {tight}" if checked.holds else f"not met, tight value {tight}"
            said.append(f"{name}: {checked.symbol} = {checked.nominal} ({verdict}), δ = 0")
    return _join(said) or "none: nothing was required"


def _describe_prior(problem: Problem, origin: Origin | None) -> str:
    if origin is not None and origin.has_substitute_prior:
        return (
            "the channel was designed for a private prior, which is not in the files. The choice of the channel still "
            "depends on it, and has no ε"
        )
    if said := private(problem, origin):
        return f"{said[0][0].lower()}{said[0][1:]}. These data have no ε: the holder of the files is trusted with them"
    known = "" if origin is None or not origin.prior else f" ({origin.prior})"
    return f"the prior was not counted in data{known}. The secrets are collected by the program that runs the channel"


def _list_gaps(problem: Problem, told: Sequence[int]) -> Iterator[str]:
    if told:
        yield f"{len(told)} of {len(problem.prior)} secrets, which an answer reveals for certain"
    if problem.floors:
        yield "adversaries with another prior than that of an error floor: they may guess better"
    if not problem.point_bounds and not any(count.startswith("all") for count in count_bounded_pairs(problem)):
        yield "pairs of secrets that no requirement bounds"
    yield "repeated answers, and everything that is not the secret: who asks, when and from where"


def describe_audit(found: Audit) -> Rows:
    """Return the rows on an audited channel."""
    n = len(found.matrix)
    if math.isfinite(found.epsilon):
        parameters = f"ε = {format_bound(found.epsilon, up=True)} per unit of distance (tight, rounded up), δ = 0"
    else:
        parameters = "no finite ε holds: this channel is not differentially private for these pairs"
    gaps = ["whether a program draws from these probabilities: the audit reads numbers, not code"]
    if found.deviation:
        gaps.append("rows as they are given, which do not sum to 1")
    if found.revealed:
        gaps.append(f"{len(found.revealed)} of {n} secrets, which an answer reveals for certain")
    return [
        (_UNIT, f"the secret behind one answer, for {len(found.bound)} ordered pairs of {n} secrets"),
        (_PARAMETERS, parameters),
        (_TRUST, _LOCAL),
        (_COMPOSITION, "the audit is about one answer. The ε of several answers about one secret add up"),
        (
            _SIDE_CHANNELS,
            "not audited. A sampler of floating-point noise may reveal more than its probabilities say",
        ),
        (_COLLECTION, "the prior weighs costs and attacks. The tight ε does not depend on it"),
        (_NOT_COVERED, _join(gaps)),
    ]


def describe_table(described: Description) -> Rows:
    """Return the rows on a release from a table."""
    free = not (described.epsilon or described.rho)
    if described.rho is not None:
        parameters = f"ρ = {exact_text(described.rho)} of zero-concentrated differential privacy"
    else:
        parameters = f"{described.spent}, δ = 0"
    if described.rows_per_person > 1:
        parameters += f"; for all rows of a person {described.spent_per_person}"
    gaps = ["pairs of databases that are not neighbours under this policy"]
    if described.rehearsal:
        gaps.insert(0, "this release: its noise came from a given generator, so it is a rehearsal without a guarantee")
    randomness = "of a given generator" if described.rehearsal else "of the operating system, on a lattice of integers"
    return [
        (_UNIT, f"{described.neighbours} {described.people}"),
        (_PARAMETERS, "ε = 0: the answers are equal for all neighbours" if free else parameters),
        (_TRUST, "central: the holder of the table reads all records, and adds the noise"),
        (
            _COMPOSITION,
            "budgets of releases under this policy add up. Releases under other policies have other neighbours, and "
            "are not covered by the sum",
        ),
        (_SIDE_CHANNELS, f"the noise is drawn with random bits {randomness}. Time and memory are not hidden"),
        (
            _COLLECTION,
            "policy and domain are taken to be public. The records themselves stay with the holder, and are not "
            "protected from the holder",
        ),
        (_NOT_COVERED, _join(gaps)),
    ]


def describe_trace(found: ReleasedTrace) -> Rows:
    """Return the rows on a released trace."""
    together = found.composition
    holds = math.isfinite(together.bound)
    gaps = ["states that no path of edges connects", "another run of the same trace, which adds its ε"]
    if any(found.revealed):
        gaps.insert(0, "states that an answer reveals for certain")
    if not found.certified:
        gaps.insert(0, "the stated parameter: outputs are floating-point numbers, and not certified")
    if found.seeded:
        gaps.insert(0, "this release: its randomness came from a seed, so it is a rehearsal without a guarantee")
    edges = together.graph.number_of_edges()
    return [
        (
            _UNIT,
            f"the state at each step of one trace, for {edges} pairs of states that an edge joins at every step",
        ),
        (
            _PARAMETERS,
            f"ε = {exact_text(together.epsilon)} for all {together.releases} steps together, δ = 0"
            + ("" if holds else ". No bound holds between all trajectories"),
        ),
        (_TRUST, "local: the program that knows the true states adds the noise, and its receivers need not be trusted"),
        (_COMPOSITION, "the steps of this trace are composed. The chain that correlates them is taken as given"),
        (
            _SIDE_CHANNELS,
            "outputs of certified channels are drawn with integers"
            if found.certified
            else "outputs are sums of floating-point noise, whose last bits may reveal more than ε allows",
        ),
        (_COLLECTION, f"{found.history.meaning[0].lower()}{found.history.meaning[1:].rstrip('.')}"),
        (_NOT_COVERED, _join(gaps)),
    ]


def _join(parts: Sequence[str] | Iterator[str] | dict[str, None]) -> str:
    return "; ".join(parts)
