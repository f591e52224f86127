"""Series of runs in one folder: benchmarks and sweeps.

`bench` compares solvers on families of problems, with a separate process for each run. `sweep` solves a grid of
specifications. This package imports `report`, `specification` and the packages below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
