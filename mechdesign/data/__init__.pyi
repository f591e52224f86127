from mechdesign.base._names import Named as Named

from .budgets import read_budgets as read_budgets
from .budgets import write_budgets as write_budgets
from .matrices import read_labelled as read_labelled
from .matrices import read_matrix as read_matrix
from .movement import read_checkins as read_checkins
from .movement import read_places as read_places
from .movement import read_plt as read_plt
from .resampling import Resampled as Resampled
from .resampling import Sampling as Sampling
from .resampling import resample as resample
from .trajectories import Trajectory as Trajectory
from .trajectories import Visits as Visits
from .trajectories import to_grid as to_grid
