from ._specification import Specification as Specification
from ._specification import parse as parse
