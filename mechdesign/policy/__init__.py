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
    from mechdesign.geometry.hull import SensitivityHull as SensitivityHull
    from mechdesign.graphs.builders import attribute as attribute
    from mechdesign.graphs.builders import blocks as blocks
    from mechdesign.graphs.builders import categories as categories
    from mechdesign.graphs.builders import complete as complete
    from mechdesign.graphs.builders import from_edges as from_edges
    from mechdesign.graphs.builders import line as line
    from mechdesign.graphs.builders import neighbours8 as neighbours8
    from mechdesign.graphs.builders import threshold as threshold
    from mechdesign.graphs.builders import transitions as transitions
    from mechdesign.graphs.builders import union as union
    from mechdesign.graphs.constraint import components as components
    from mechdesign.graphs.constraint import constrain as constrain
    from mechdesign.graphs.constraint import delta_set as delta_set
    from mechdesign.graphs.constraint import disconnected as disconnected
    from mechdesign.graphs.constraint import excluded as excluded
    from mechdesign.graphs.constraint import hop_distance as hop_distance
    from mechdesign.graphs.constraint import isolated as isolated
    from mechdesign.graphs.exposure import degree_of_protection as degree_of_protection
    from mechdesign.graphs.exposure import exposed as exposed
    from mechdesign.graphs.exposure import protectable as protectable
    from mechdesign.graphs.exposure import protected_pairs as protected_pairs
    from mechdesign.graphs.hulls import component_hulls as component_hulls
    from mechdesign.graphs.hulls import sensitivity_hull as sensitivity_hull
    from mechdesign.graphs.repairs import Repair as Repair
    from mechdesign.graphs.repairs import repair as repair
    from mechdesign.mechanisms.laplace import Laplace as Laplace
    from mechdesign.mechanisms.planar_isotropic import PlanarIsotropic as PlanarIsotropic
    from mechdesign.policy import metrics as metrics
    from mechdesign.policy.optimal import design as design

_VALUES = {
    "Laplace": "mechdesign.mechanisms.laplace",
    "PlanarIsotropic": "mechdesign.mechanisms.planar_isotropic",
    "Repair": "mechdesign.graphs.repairs",
    "SensitivityHull": "mechdesign.geometry.hull",
    "attribute": "mechdesign.graphs.builders",
    "blocks": "mechdesign.graphs.builders",
    "categories": "mechdesign.graphs.builders",
    "complete": "mechdesign.graphs.builders",
    "component_hulls": "mechdesign.graphs.hulls",
    "components": "mechdesign.graphs.constraint",
    "constrain": "mechdesign.graphs.constraint",
    "degree_of_protection": "mechdesign.graphs.exposure",
    "delta_set": "mechdesign.graphs.constraint",
    "design": "mechdesign.policy.optimal",
    "disconnected": "mechdesign.graphs.constraint",
    "excluded": "mechdesign.graphs.constraint",
    "exposed": "mechdesign.graphs.exposure",
    "from_edges": "mechdesign.graphs.builders",
    "hop_distance": "mechdesign.graphs.constraint",
    "isolated": "mechdesign.graphs.constraint",
    "line": "mechdesign.graphs.builders",
    "neighbours8": "mechdesign.graphs.builders",
    "protectable": "mechdesign.graphs.exposure",
    "protected_pairs": "mechdesign.graphs.exposure",
    "repair": "mechdesign.graphs.repairs",
    "sensitivity_hull": "mechdesign.graphs.hulls",
    "threshold": "mechdesign.graphs.builders",
    "transitions": "mechdesign.graphs.builders",
    "union": "mechdesign.graphs.builders",
}

__all__ = [*_VALUES, "metrics"]


def __getattr__(name: str) -> object:
    if name == "metrics":
        return importlib.import_module("mechdesign.policy.metrics")
    if name not in _VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_VALUES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
