from . import bench as bench
from . import sweep as sweep
