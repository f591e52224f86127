"""Mechanisms other than the optimal channel: a law, exact sampling, and an exact channel for each.

Under a policy graph: K-norm noise (`PlanarIsotropic`, `Laplace`), `Exponential`, `Geometric` and `RandomisedResponse`.
`available` lists those that a specification may name, `register` adds another one. Noise on the integers for databases:
`DiscreteLaplace` and `DiscreteGaussian`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.mechanisms._discrete import DiscreteGaussian as DiscreteGaussian
    from mechdesign.mechanisms._discrete import DiscreteLaplace as DiscreteLaplace
    from mechdesign.mechanisms._finite import Exponential as Exponential
    from mechdesign.mechanisms._finite import FiniteMechanism as FiniteMechanism
    from mechdesign.mechanisms._finite import additive as additive
    from mechdesign.mechanisms._finite import hops as hops
    from mechdesign.mechanisms._finite import snapping as snapping
    from mechdesign.mechanisms._finite import Geometric as Geometric
    from mechdesign.mechanisms._knorm import KNormMechanism as KNormMechanism
    from mechdesign.mechanisms._knorm import Laplace as Laplace
    from mechdesign.mechanisms._mechanism import Mechanism as Mechanism
    from mechdesign.mechanisms._knorm import PlanarIsotropic as PlanarIsotropic
    from mechdesign.mechanisms._planar_laplace import PlanarLaplace as PlanarLaplace
    from mechdesign.mechanisms._finite import RandomisedResponse as RandomisedResponse
    from mechdesign.mechanisms._registry import MechanismKind as MechanismKind
    from mechdesign.mechanisms._registry import available as available
    from mechdesign.mechanisms._registry import find as find
    from mechdesign.mechanisms._registry import register as register

_VALUES = {
    "DiscreteGaussian": "discrete",
    "DiscreteLaplace": "discrete",
    "Exponential": "exponential",
    "FiniteMechanism": "finite",
    "Geometric": "geometric",
    "KNormMechanism": "knorm",
    "Laplace": "laplace",
    "Mechanism": "mechanism",
    "MechanismKind": "registry",
    "PlanarIsotropic": "planar_isotropic",
    "PlanarLaplace": "planar_laplace",
    "RandomisedResponse": "randomised_response",
    "additive": "finite",
    "available": "registry",
    "find": "registry",
    "hops": "finite",
    "register": "registry",
    "snapping": "finite",
}

__all__ = [*_VALUES]


def __getattr__(name: str) -> object:
    if name not in _VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_VALUES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
