"""Policy graphs in a specification, and how they and traces released under them are to be treated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import networkx as nx

from mechdesign.certify.exact import exact_text
from mechdesign.data.tables import PolicyTable, Raw, ReleaseTable, choice, convert
from mechdesign.errors import SpecificationError
from mechdesign.graphs import builders as graphs
from mechdesign.model.markov import MarkovChain
from mechdesign.model.prior import Prior
from mechdesign.model.requirement import Requirement
from mechdesign.requirements.graph import graph_requirements
from mechdesign.spec.chains import build_chain
from mechdesign.spec.graphs import Graphs
from mechdesign.spec.priors import build_prior

__all__ = ["Policy", "PolicySettings", "ReleaseSettings", "build_policy", "build_release", "build_settings"]

Within = Literal["component", "map"]
Isolated = Literal["refuse", "repair", "hull", "release"]
Repair = Literal["area", "nearest", "best", "exhaustive"]
Hull = Literal["component", "graph"]
Mechanism = Literal["planar-isotropic", "laplace", "lp"]


@dataclass(frozen=True)
class PolicySettings:
    """How a policy graph is to be kept; `support` holds indices, and is None where every secret is possible."""

    within: Within = "component"
    isolated: Isolated = "refuse"
    repair: Repair = "area"
    hull: Hull = "component"
    support: tuple[int, ...] | None = None
    delta: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Policy:
    """The union of the policy graphs of a specification, the ε of each edge, and how they are to be kept."""

    graph: nx.Graph
    epsilon: Fraction
    settings: PolicySettings


@dataclass(frozen=True, eq=False)
class ReleaseSettings:
    """How a trace is to be released: mechanism, Markov chain, prior of the first step, and where outputs may lie.

    `snap` is None where the specification does not say; `notes` are for the user.
    """

    mechanism: Mechanism
    transition: MarkovChain
    initial: Prior
    snap: bool | None
    seed: int | None
    notes: tuple[str, ...]


def build_settings(raw: Raw, made: Graphs) -> PolicySettings:
    """Return what the ``[policy]`` table says, of the secrets that `made` knows."""
    table = convert(raw, PolicyTable, "policy")
    support: tuple[int, ...] | None = None
    if table.support is not None:
        if table.delta is not None:
            raise SpecificationError("policy", "has support and delta, which exclude each other", bound="one of them")
        if not table.support:
            raise SpecificationError("policy.support", "is empty", bound="at least one secret")
        found = (made.secret(name, f"policy.support[{index}]") for index, name in enumerate(table.support))
        support = tuple(sorted(set(found)))
    if table.delta is not None and not 0 <= table.delta < 1:
        raise SpecificationError(
            "policy.delta", "is out of range", value=exact_text(table.delta), bound="at least 0 and below 1"
        )
    return PolicySettings(
        _one(table.within, Within, "policy.within"),
        _one(table.isolated, Isolated, "policy.isolated"),
        _one(table.repair, Repair, "policy.repair"),
        _one(table.hull, Hull, "policy.hull"),
        support,
        table.delta,
    )


def build_policy(requirements: Sequence[Requirement], settings: PolicySettings) -> Policy:
    """Return the union of the graphs among `requirements`, which must have one ε.

    Raises `SpecificationError` where there is no graph, or where they differ in ε.
    """
    found = graph_requirements(requirements)
    if not found:
        raise SpecificationError(
            "privacy", "has no policy graph", remedy='add [[privacy]] with kind = "graph" and blocks = 3, say'
        )
    first, privacy = found[0]
    for place, other in found[1:]:
        if other.epsilon != privacy.epsilon:
            raise SpecificationError(
                f"privacy[{place}].epsilon",
                f"differs from privacy[{first}].epsilon",
                value=exact_text(other.epsilon),
                bound=f"{exact_text(privacy.epsilon)}: the edges of one policy have one ε",
            )
    return Policy(graphs.union(*(each.graph for _, each in found)), privacy.epsilon, settings)


def build_release(raw: Raw, made: Graphs, prior: Prior) -> ReleaseSettings:
    """Return what the ``[release]`` table says; `prior` is that of the first step unless the table has another."""
    table = convert(raw, ReleaseTable, "release")
    mechanism = _one(table.mechanism, Mechanism, "release.mechanism")
    if table.seed is not None and table.seed < 0:
        raise SpecificationError("release.seed", "is negative", value=table.seed, bound="a whole number >= 0")
    if table.transition is None:
        raise SpecificationError(
            "release.transition",
            "is missing",
            remedy='add [release] with transition = { path = "P.csv" }, { estimated = true } or { neighbours = 8 }',
        )
    secrets, folder = made.secrets, made.folder
    chain, notes = build_chain(table.transition, "release.transition", secrets, folder, made.prior)
    if table.initial is not None:
        prior, more = build_prior(table.initial, "release.initial", secrets, folder)
        notes += more
    return ReleaseSettings(mechanism, chain, prior, table.snap, table.seed, notes)


def _one(value: str, kind: object, path: str) -> Any:
    """Return `value` if it is one of the texts of the `Literal` type `kind`."""
    return choice(value, get_args(kind), path)
