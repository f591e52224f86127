"""Design, prove and export optimal privacy mechanisms.

Names are loaded when first used, so that reading or verifying an export never imports a solver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mechdesign.base._version import __version__

if TYPE_CHECKING:
    from mechdesign import bench
    from mechdesign import tables as blowfish
    from mechdesign.base import _errors as errors
    from mechdesign import graphs
    from mechdesign import leakage
    from mechdesign import mechanisms
    from mechdesign import traces as release
    from mechdesign import specification as spec
    from mechdesign import sweep
    from mechdesign.leakage.accounting import Ledger as Ledger
    from mechdesign.measures import attack
    from mechdesign.measures._audit import Audit as Audit
    from mechdesign.measures._audit import audit as audit
    from mechdesign.certify._certificate import Certificate as Certificate
    from mechdesign.certify._verify import verify as verify
    from mechdesign.data import _movement as traces
    from mechdesign.model import distances
    from mechdesign.model._channel import Channel as Channel
    from mechdesign.model._domain import Domain as Domain
    from mechdesign.model._markov import MarkovChain as MarkovChain
    from mechdesign.model._prior import Prior as Prior
    from mechdesign.model._problem import Problem as Problem
    from mechdesign.report import _design_figures as figures
    from mechdesign.model._requirements._continuous import ContinuousPrivacy as ContinuousPrivacy
    from mechdesign.model._requirements._distortion import DistortionPrivacy as DistortionPrivacy
    from mechdesign.model._requirements._graph import GraphPrivacy as GraphPrivacy
    from mechdesign.model._requirements._metric import MetricPrivacy as MetricPrivacy
    from mechdesign.model._requirements._threshold import ThresholdPrivacy as ThresholdPrivacy
    from mechdesign.specification._specification import read_spec as read_spec
    from mechdesign.synthesis._anchor_plan import plan_anchors as plan_anchors
    from mechdesign.synthesis._result import Design as Design
    from mechdesign.synthesis._design import design as design
    from mechdesign.synthesis._settings import SolveSettings as SolveSettings
    from mechdesign.synthesis._result import SolveSummary as SolveSummary

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
