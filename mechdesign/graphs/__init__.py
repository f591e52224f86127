"""Policy graphs: which secrets must not be told apart, on a map or in a table.

Builders return plain networkx graphs on the numbers of the secrets; `constrain` keeps what is left when only some are
possible; `sensitivity_hull` is the body that K-norm noise is fitted to; `exposed` tells who is left unprotected, and
`repair` adds the edges that are missing. `problem` states what `mechdesign.synthesis._design.design` solves: the channel of least cost
under a graph. After PGLP (Cao et al. 2020) and DPHMM (Xiao et al. 2017).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.graphs._geometry._hull import SensitivityHull as SensitivityHull
    from mechdesign.graphs._builders import attribute as attribute
    from mechdesign.graphs._builders import blocks as blocks
    from mechdesign.graphs._builders import categories as categories
    from mechdesign.graphs._builders import complete as complete
    from mechdesign.graphs._builders import from_edges as from_edges
    from mechdesign.graphs._builders import line as line
    from mechdesign.graphs._builders import neighbours8 as neighbours8
    from mechdesign.graphs._builders import threshold as threshold
    from mechdesign.graphs._builders import transitions as transitions
    from mechdesign.graphs._builders import union as union
    from mechdesign.graphs._constraints import components as components
    from mechdesign.graphs._constraints import constrain as constrain
    from mechdesign.graphs._constraints import delta_set as delta_set
    from mechdesign.graphs._constraints import disconnected as disconnected
    from mechdesign.graphs._constraints import excluded as excluded
    from mechdesign.graphs._constraints import hop_distance as hop_distance
    from mechdesign.graphs._constraints import isolated as isolated
    from mechdesign.graphs._exposure import degree_of_protection as degree_of_protection
    from mechdesign.graphs._exposure import exposed as exposed
    from mechdesign.graphs._exposure import protectable as protectable
    from mechdesign.graphs._exposure import protected_pairs as protected_pairs
    from mechdesign.graphs._exposure import component_hulls as component_hulls
    from mechdesign.graphs._exposure import sensitivity_hull as sensitivity_hull
    from mechdesign.graphs._repairs import Repair as Repair
    from mechdesign.graphs._repairs import repair as repair
    from mechdesign.model._problem import Problem

    # From a room above this one, which no import may name.
    problem: Callable[..., Problem]

_VALUES = {
    "geometry.hull": ("SensitivityHull",),
    "graphs.builders": (
        "attribute", "blocks", "categories", "complete", "from_edges", "line", "neighbours8", "threshold",
        "transitions", "union",
    ),
    "graphs.constraint": (
        "components", "constrain", "delta_set", "disconnected", "excluded", "hop_distance", "isolated",
    ),
    "graphs.exposure": ("degree_of_protection", "exposed", "protectable", "protected_pairs"),
    "graphs.hulls": ("component_hulls", "sensitivity_hull"),
    "graphs.repairs": ("Repair", "repair"),
    "policy.optimal": ("problem",),
}  # fmt: skip
_MODULES = {name: module for module, names in _VALUES.items() for name in names}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"mechdesign.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
