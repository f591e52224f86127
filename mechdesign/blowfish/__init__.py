"""Policies on databases, and releases that protect exactly what a policy names.

After Blowfish (He, Machanavajjhala and Ding 2014). A `Policy` says which values of a record must not be told apart (the
edges of its secret graph) and which counts are publicly known; its sensitivities say how much noise a query needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .constrained_histogram import ConstraintSensitivity as ConstraintSensitivity
    from .constrained_histogram import constraint_sensitivity as constraint_sensitivity
    from .constraints import marginal_constraints as marginal_constraints
    from .domain import Domain as Domain
    from .parallel import ParallelComposition as ParallelComposition
    from .parallel import parallel_composition as parallel_composition
    from .policy import Policy as Policy
    from .query_sensitivity import Sensitivity as Sensitivity
    from .query_sensitivity import sensitivity as sensitivity

_VALUES = {
    "ConstraintSensitivity": ".constrained_histogram",
    "Domain": ".domain",
    "ParallelComposition": ".parallel",
    "Policy": ".policy",
    "Sensitivity": ".query_sensitivity",
    "constraint_sensitivity": ".constrained_histogram",
    "marginal_constraints": ".constraints",
    "parallel_composition": ".parallel",
    "sensitivity": ".query_sensitivity",
}

__all__ = [*_VALUES]


def __getattr__(name: str) -> object:
    if name not in _VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_VALUES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
