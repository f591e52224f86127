from . import attack as attack
from ._audit import DistanceLoss as DistanceLoss
from ._audit import PairLoss as PairLoss
from ._tight import Witness as Witness
from ._utility import euclidean_error as euclidean_error
from ._utility import mismatch_error as mismatch_error
from ._utility import regions as regions
