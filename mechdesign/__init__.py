"""Design, prove and export optimal privacy mechanisms.

Names are loaded when first used, so that reading or verifying an export never imports a solver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mechdesign.version import __version__

if TYPE_CHECKING:
    from . import bench as bench
    from . import blowfish as blowfish
    from . import errors as errors
    from . import graphs as graphs
    from . import leakage as leakage
    from . import mechanisms as mechanisms
    from . import release as release
    from . import spec as spec
    from . import sweep as sweep
    from .accounting.ledger import Ledger as Ledger
    from .attacks import attack as attack
    from .auditing.audit import Audit as Audit
    from .auditing.audit import audit as audit
    from .certify.certificate import Certificate as Certificate
    from .certify.verify import verify as verify
    from .data import traces as traces
    from .model import distances as distances
    from .model.channel import Channel as Channel
    from .model.domain import Domain as Domain
    from .model.markov import MarkovChain as MarkovChain
    from .model.prior import Prior as Prior
    from .model.problem import Problem as Problem
    from .report import figures as figures
    from .requirements.kinds import ContinuousPrivacy as ContinuousPrivacy
    from .requirements.kinds import DistortionPrivacy as DistortionPrivacy
    from .requirements.kinds import GraphPrivacy as GraphPrivacy
    from .requirements.kinds import MetricPrivacy as MetricPrivacy
    from .requirements.kinds import ThresholdPrivacy as ThresholdPrivacy
    from .spec.specification import read_spec as read_spec
    from .synthesis.anchors import plan_anchors as plan_anchors
    from .synthesis.certified import Design as Design
    from .synthesis.design import design as design
    from .synthesis.settings import SolveSettings as SolveSettings
    from .synthesis.summary import SolveSummary as SolveSummary

_MODULES = {
    "attack": ".attacks.attack",
    "bench": ".bench",
    "blowfish": ".blowfish",
    "distances": ".model.distances",
    "errors": ".errors",
    "figures": ".report.figures",
    "graphs": ".graphs",
    "leakage": ".leakage",
    "mechanisms": ".mechanisms",
    "release": ".release",
    "spec": ".spec",
    "sweep": ".sweep",
    "traces": ".data.traces",
}
_VALUES = {
    "Audit": ".auditing.audit",
    "Certificate": ".certify.certificate",
    "Channel": ".model.channel",
    "ContinuousPrivacy": ".requirements.kinds",
    "Design": ".synthesis.certified",
    "DistortionPrivacy": ".requirements.kinds",
    "Domain": ".model.domain",
    "GraphPrivacy": ".requirements.kinds",
    "Ledger": ".accounting.ledger",
    "MarkovChain": ".model.markov",
    "MetricPrivacy": ".requirements.kinds",
    "Prior": ".model.prior",
    "Problem": ".model.problem",
    "SolveSettings": ".synthesis.settings",
    "SolveSummary": ".synthesis.summary",
    "ThresholdPrivacy": ".requirements.kinds",
    "audit": ".auditing.audit",
    "design": ".synthesis.design",
    "plan_anchors": ".synthesis.anchors",
    "read_spec": ".spec.specification",
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
