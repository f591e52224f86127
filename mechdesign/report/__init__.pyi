from . import figures as figures
from ._saving import html as html
from ._saving import save_truth as save_truth
