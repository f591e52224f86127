"""Policy graphs: what must not be told apart, how much noise that needs, and who is left unprotected.

After PGLP (Cao et al. 2020) and DPHMM (Xiao et al. 2017). Builders such as `blocks` and `threshold` return plain
networkx graphs on the numbers of the secrets, an edge for each pair that must be ε-indistinguishable; `constrain` keeps
what is left of one when only some secrets are possible. `sensitivity_hull` is the convex body K to which the papers'
noise is fitted; `degree_of_protection` and `exposed` tell whom it protects, `repair` adds the edges that are missing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.model.graphs import attribute as attribute
    from mechdesign.model.graphs import blocks as blocks
    from mechdesign.model.graphs import categories as categories
    from mechdesign.model.graphs import complete as complete
    from mechdesign.model.graphs import from_edges as from_edges
    from mechdesign.model.graphs import line as line
    from mechdesign.model.graphs import neighbours8 as neighbours8
    from mechdesign.model.graphs import threshold as threshold
    from mechdesign.model.graphs import transitions as transitions
    from mechdesign.model.graphs import union as union
    from mechdesign.policy import metrics as metrics
    from mechdesign.policy.constraint import components as components
    from mechdesign.policy.constraint import constrain as constrain
    from mechdesign.policy.constraint import delta_set as delta_set
    from mechdesign.policy.constraint import disconnected as disconnected
    from mechdesign.policy.constraint import excluded as excluded
    from mechdesign.policy.constraint import hop_distance as hop_distance
    from mechdesign.policy.constraint import isolated as isolated
    from mechdesign.policy.hull import SensitivityHull as SensitivityHull
    from mechdesign.policy.hull import component_hulls as component_hulls
    from mechdesign.policy.hull import sensitivity_hull as sensitivity_hull
    from mechdesign.policy.laplace import Laplace as Laplace
    from mechdesign.policy.optimal import design as design
    from mechdesign.policy.planar_isotropic import PlanarIsotropic as PlanarIsotropic
    from mechdesign.policy.protection import degree_of_protection as degree_of_protection
    from mechdesign.policy.protection import exposed as exposed
    from mechdesign.policy.protection import protectable as protectable
    from mechdesign.policy.protection import protected_pairs as protected_pairs
    from mechdesign.policy.repairs import Repair as Repair
    from mechdesign.policy.repairs import repair as repair

_VALUES = {
    "Laplace": "mechdesign.policy.laplace",
    "PlanarIsotropic": "mechdesign.policy.planar_isotropic",
    "Repair": "mechdesign.policy.repairs",
    "SensitivityHull": "mechdesign.policy.hull",
    "attribute": "mechdesign.model.graphs",
    "blocks": "mechdesign.model.graphs",
    "categories": "mechdesign.model.graphs",
    "complete": "mechdesign.model.graphs",
    "component_hulls": "mechdesign.policy.hull",
    "components": "mechdesign.policy.constraint",
    "constrain": "mechdesign.policy.constraint",
    "degree_of_protection": "mechdesign.policy.protection",
    "delta_set": "mechdesign.policy.constraint",
    "design": "mechdesign.policy.optimal",
    "disconnected": "mechdesign.policy.constraint",
    "excluded": "mechdesign.policy.constraint",
    "exposed": "mechdesign.policy.protection",
    "from_edges": "mechdesign.model.graphs",
    "hop_distance": "mechdesign.policy.constraint",
    "isolated": "mechdesign.policy.constraint",
    "line": "mechdesign.model.graphs",
    "neighbours8": "mechdesign.model.graphs",
    "protectable": "mechdesign.policy.protection",
    "protected_pairs": "mechdesign.policy.protection",
    "repair": "mechdesign.policy.repairs",
    "sensitivity_hull": "mechdesign.policy.hull",
    "threshold": "mechdesign.model.graphs",
    "transitions": "mechdesign.model.graphs",
    "union": "mechdesign.model.graphs",
}

__all__ = [*_VALUES]


def __getattr__(name: str) -> object:
    if name == "metrics":
        return importlib.import_module("mechdesign.policy.metrics")
    if name not in _VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_VALUES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "metrics"])
