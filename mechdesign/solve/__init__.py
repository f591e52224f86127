"""Programs as values, and solvers behind one contract.

A program is a linear, a linear-fractional or a block program; `solve` hands it to a solver by name, and `register` adds
a solver. `_blocks` holds the interior-point method for block programs, with its column generation. Nothing here knows
of privacy. The room imports `base` alone.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
