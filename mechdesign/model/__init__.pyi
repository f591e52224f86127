from . import distances as distances
from ._answers import Answers as Answers
from ._domain import BoundingBox as BoundingBox
from ._domain import Grid as Grid
from ._locate import Plane as Plane
from ._requirements._requirement import Requirement as Requirement
