# ruff: noqa: I001 (in four groups)
# values
from .model._domain import Domain as Domain
from .model._prior import Prior as Prior
from .model._markov import MarkovChain as MarkovChain
from .model._channel import Channel as Channel
from .model._problem import Problem as Problem
from .synthesis._result import Design as Design
from .certify._certificate import Certificate as Certificate
from .measures._audit import Audit as Audit
from .leakage.accounting import Ledger as Ledger
from .synthesis._settings import SolveSettings as SolveSettings
from .synthesis._result import SolveSummary as SolveSummary

# requirements
from .model._requirements._metric import MetricPrivacy as MetricPrivacy
from .model._requirements._threshold import ThresholdPrivacy as ThresholdPrivacy
from .model._requirements._graph import GraphPrivacy as GraphPrivacy
from .model._requirements._distortion import DistortionPrivacy as DistortionPrivacy
from .model._requirements._continuous import ContinuousPrivacy as ContinuousPrivacy

# functions
from .synthesis._design import design as design
from .certify._verify import verify as verify
from .report._saving import save as save
from .measures._audit import audit as audit
from .specification._specification import read_spec as read_spec

# modules
from .model import distances as distances
from . import graphs as graphs
from . import mechanisms as mechanisms
from . import leakage as leakage
from . import measures as measures
from .measures import attack as attack
from . import data as data
from . import traces as traces
from . import tables as tables
from . import report as report
from .report import figures as figures
from . import specification as specification
from . import solve as solve
from .runs import bench as bench
from .runs import sweep as sweep
from . import errors as errors

__version__: str
