from mechdesign.base._names import Named as Named

from .movement import read_checkins as read_checkins
from .movement import read_places as read_places
from .movement import read_plt as read_plt
from .trajectories import Sampling as Sampling
from .trajectories import Trajectory as Trajectory
from .trajectories import Visits as Visits
from .trajectories import resample as resample
from .trajectories import to_grid as to_grid
