"""Optimisation programs as data objects, and solvers with a common interface.

A program is linear, linear-fractional, or a block program. `solve` runs a solver by name, and `register` adds a solver.
`_blocks` contains the interior-point method for block programs, with column generation. This package does not refer to
privacy, and imports only `mechdesign.base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
