from ._certificate import Checked as Checked
from ._evidence import Multipliers as Multipliers
