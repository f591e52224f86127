"""Many runs in one folder: benchmarks and sweeps.

`bench` compares solvers on families of problems, each run in a process of its own. `sweep` solves a grid of
specifications. Both write rows that are resumed and read back by `_store`. The room imports `report`, `specification`
and what is below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
