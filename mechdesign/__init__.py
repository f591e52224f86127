"""Design, prove and export optimal privacy mechanisms.

`design` computes and proves the channel of least cost for a `Problem`, and `verify` checks a bundle. Most other
functions are in the modules listed here. Names load on first use, so that verification never imports a solver.
"""

# Errors name this module as theirs; another process can receive them by name only if it is imported.
from mechdesign import errors as errors
from mechdesign.base import _lazy
from mechdesign.base._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
