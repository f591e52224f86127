from mechdesign.base._deadline import Progress as Progress
from mechdesign.base._deadline import Stop as Stop

from ._contract import Answer as Answer
from ._contract import Options as Options
from ._contract import Status as Status
from ._linear import LinearProgram as LinearProgram
from ._registry import Solver as Solver
from ._registry import register as register
