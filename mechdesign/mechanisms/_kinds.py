"""The mechanisms that specifications and traces name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import networkx as nx

from mechdesign.mechanisms._finite import Exponential, Geometric, RandomisedResponse
from mechdesign.mechanisms._knorm import HullChoice, Laplace, PlanarIsotropic
from mechdesign.mechanisms._mechanism import Mechanism
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number

Build = Callable[[Number, Domain, nx.Graph, HullChoice], Mechanism]
"""A function that builds a mechanism from ε, the states, the policy graph and the choice of hull."""

MECHANISMS: Mapping[str, Build] = MappingProxyType(
    {
        "planar-isotropic": PlanarIsotropic,
        "laplace": Laplace,
        "exponential": lambda epsilon, _, graph, __: Exponential.of_graph(epsilon, graph),
        "geometric": lambda epsilon, _, graph, __: Geometric.of_graph(epsilon, graph),
        "randomised-response": lambda epsilon, _, graph, __: RandomisedResponse.of_graph(epsilon, graph),
    }
)
"""The functions that build mechanisms, by the names that specifications and traces use."""

HULLED = ("planar-isotropic", "laplace")
"""The mechanisms that protect all states in a hull, and can release coordinates; all others release states only."""
