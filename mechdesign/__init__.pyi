# ruff: noqa: I001 (in four groups)
# values
from .model import Domain as Domain
from .model import Prior as Prior
from .model import MarkovChain as MarkovChain
from .model import Channel as Channel
from .model import Problem as Problem
from .synthesis import Design as Design
from .certify import Certificate as Certificate
from .measures import Audit as Audit
from .leakage.accounting import Ledger as Ledger
from .synthesis import SolveSettings as SolveSettings
from .synthesis import SolveSummary as SolveSummary

# requirements
from .model import MetricPrivacy as MetricPrivacy
from .model import ThresholdPrivacy as ThresholdPrivacy
from .model import GraphPrivacy as GraphPrivacy
from .model import DistortionPrivacy as DistortionPrivacy
from .model import ContinuousPrivacy as ContinuousPrivacy

# functions
from .synthesis import design as design
from .certify import verify as verify
from .report._saving import save as save
from .measures import audit as audit
from .specification import read_spec as read_spec

# modules
from .model import distances as distances
from . import graphs as graphs
from . import mechanisms as mechanisms
from . import leakage as leakage
from .leakage import accounting as accounting
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
