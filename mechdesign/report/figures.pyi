from mechdesign.report._leakage_figures import leakage as leakage
from mechdesign.report._style import save_figure as save_figure

from ._design_figures import Designed as Designed
from ._design_figures import answers as answers
from ._design_figures import costs as costs
from ._design_figures import errors as errors
from ._design_figures import prior as prior
from ._design_figures import requirements as requirements
from ._design_figures import trace as trace
