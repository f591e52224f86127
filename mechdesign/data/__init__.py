"""Read files of movement, matrices and budgets into checked arrays.

This package reads check-ins, GPS traces, matrices and budgets. Each file is read as its layout is declared. Errors name
file, line and column, but never show the content of a cell. The package imports `model`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
