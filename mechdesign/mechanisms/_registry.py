"""The registry of the mechanisms that specifications, traces and comparisons refer to by name."""

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
    """An entry of the registry: a named mechanism and the function that builds it.

    Attributes:
        name: The name that specifications, traces and comparisons use.
        build: A function that builds the mechanism from ε, the places, the policy graph and the choice of hull.
        summary: One line that describes the mechanism.
        coordinates: Whether the mechanism can release coordinates, with `sample` and `log_likelihood`. Other mechanisms
            release nodes only.

    >>> kind = find("laplace")
    >>> kind.summary, kind.coordinates
    ('independent Laplace noise on each coordinate', True)
    >>> kind.build(1, [[0.0], [1.0]], nx.path_graph(2), "component")
    Laplace(epsilon=1, 2 nodes, 1 edges)
    """

    name: str
    build: Build
    summary: str
    coordinates: bool = False


MECHANISMS: Registry[MechanismKind] = Registry("mechanism")
"""The registered mechanisms, by name."""


def register(kind: MechanismKind) -> None:
    """Add a mechanism to the registry, so that specifications and traces can refer to it by name.

    Args:
        kind: The entry to add.

    Raises:
        InputError: The name is already registered.

    >>> register(MechanismKind("laplace", Laplace, "a second mechanism of that name"))
    Traceback (most recent call last):
    ...
    mechdesign.errors.InputError: mechanism: has a name that is taken; found 'laplace'; must be another name
    """
    require_kind(kind, MechanismKind, "kind", "a MechanismKind")
    MECHANISMS.register(kind.name, kind)


register(MechanismKind("planar-isotropic", PlanarIsotropic, "K-norm noise, where K is the sensitivity hull", True))
register(MechanismKind("laplace", Laplace, "independent Laplace noise on each coordinate", True))
register(
    MechanismKind(
        "exponential",
        lambda e, _, g, __: Exponential.of_graph(e, g),
        "probabilities that decrease exponentially with the number of hops",
    )
)
register(
    MechanismKind("geometric", lambda e, _, g, __: Geometric.of_graph(e, g), "truncated geometric noise on a path")
)
register(
    MechanismKind(
        "randomised-response",
        lambda e, _, g, __: RandomisedResponse.of_graph(e, g),
        "the true value, or each other value of the component with equal probability",
    )
)


def available() -> tuple[MechanismKind, ...]:
    """Return all registered mechanisms.

    Returns:
        The entries of the registry, in the order of registration.

    >>> [kind.name for kind in available()]
    ['planar-isotropic', 'laplace', 'exponential', 'geometric', 'randomised-response']
    """
    return tuple(MECHANISMS.values())


def find(name: str) -> MechanismKind:
    """Return the registered mechanism with the given name.

    Args:
        name: The name of a mechanism.

    Returns:
        The entry of the registry.

    Raises:
        InputError: The name is not registered. The message lists the registered names.

    >>> find("geometric").summary
    'truncated geometric noise on a path'
    """
    return MECHANISMS[name]
