"""Design, prove and export optimal privacy mechanisms.

Names are loaded when first used, so that reading or verifying an export never imports a solver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import blowfish as blowfish
    from . import errors as errors
    from . import leakage as leakage
    from . import policy as policy
    from . import release as release
    from .certify.certificate import Certificate as Certificate
    from .certify.verify import verify as verify
    from .games import attack as attack
    from .io import traces as traces
    from .model import distances as distances
    from .model.channel import Channel as Channel
    from .model.domain import Domain as Domain
    from .model.markov import MarkovChain as MarkovChain
    from .model.prior import Prior as Prior
    from .model.problem import Problem as Problem
    from .model.requirements import DistortionPrivacy as DistortionPrivacy
    from .model.requirements import GraphPrivacy as GraphPrivacy
    from .model.requirements import MetricPrivacy as MetricPrivacy
    from .model.requirements import ThresholdPrivacy as ThresholdPrivacy
    from .synthesis.design import Design as Design
    from .synthesis.design import design as design

_MODULES = {
    "attack": ".games.attack",
    "blowfish": ".blowfish",
    "distances": ".model.distances",
    "errors": ".errors",
    "leakage": ".leakage",
    "policy": ".policy",
    "release": ".release",
    "traces": ".io.traces",
}
_VALUES = {
    "Certificate": ".certify.certificate",
    "Channel": ".model.channel",
    "Design": ".synthesis.design",
    "DistortionPrivacy": ".model.requirements",
    "Domain": ".model.domain",
    "GraphPrivacy": ".model.requirements",
    "MarkovChain": ".model.markov",
    "MetricPrivacy": ".model.requirements",
    "Prior": ".model.prior",
    "Problem": ".model.problem",
    "ThresholdPrivacy": ".model.requirements",
    "design": ".synthesis.design",
    "verify": ".certify.verify",
}

__all__ = ["__version__", *_MODULES, *_VALUES]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = importlib.import_module(_MODULES[name], __name__)
    elif name in _VALUES:
        value = getattr(importlib.import_module(_VALUES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
