"""The mechanisms that a specification, a trace or a comparison may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
from numpy.typing import ArrayLike

from mechdesign.base._check import require_kind
from mechdesign.base._registry import Registry
from mechdesign.mechanisms._finite import Exponential, Geometric, RandomisedResponse
from mechdesign.mechanisms._knorm import HullChoice, Laplace, PlanarIsotropic
from mechdesign.mechanisms._mechanism import Mechanism
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number

Build = Callable[[Number, Domain | ArrayLike, nx.Graph, HullChoice], Mechanism]


@dataclass(frozen=True)
class MechanismKind:
    """A named mechanism: how it is built from ε, places, policy graph and choice of hull, and a line about it.

    `coordinates` says whether it can release coordinates, by `sample` and `log_likelihood`, or only named answers.
    """

    name: str
    build: Build
    summary: str
    coordinates: bool = False


MECHANISMS: Registry[MechanismKind] = Registry("mechanism")
"""Every mechanism by its name."""


def register(kind: MechanismKind) -> None:
    """Add a mechanism, for specifications and traces to name; raise `InputError` where the name is taken."""
    require_kind(kind, MechanismKind, "kind", "a MechanismKind")
    MECHANISMS.register(kind.name, kind)


register(MechanismKind("planar-isotropic", PlanarIsotropic, "K-norm noise of the sensitivity hull", True))
register(MechanismKind("laplace", Laplace, "independent Laplace noise on each coordinate", True))
register(MechanismKind("exponential", lambda e, _, g, __: Exponential.of_graph(e, g), "exponential in the hops"))
register(MechanismKind("geometric", lambda e, _, g, __: Geometric.of_graph(e, g), "truncated geometric on a path"))
register(
    MechanismKind(
        "randomised-response",
        lambda e, _, g, __: RandomisedResponse.of_graph(e, g),
        "the truth or any other value of the component",
    )
)


def available() -> tuple[MechanismKind, ...]:
    """Return every registered mechanism."""
    return tuple(MECHANISMS.values())


def find(name: str) -> MechanismKind:
    """Return the mechanism of that name; raise `UnknownNameError` listing the names there are for any other."""
    return MECHANISMS[name]
