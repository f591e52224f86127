from . import bench as bench
from . import sweep as sweep
from ._store import Row as Row
from ._store import State as State
