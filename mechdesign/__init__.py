"""Design, prove and export optimal privacy mechanisms.

`design` computes and proves the channel of least cost for a `Problem`, and `verify` checks a bundle. All other
functions are in the modules listed here. Names load on first use, so that verification never imports a solver.
"""

from mechdesign.base import _lazy
from mechdesign.base._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
