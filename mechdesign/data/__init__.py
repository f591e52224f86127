"""Files of movement, matrices and budgets become checked arrays.

Check-ins, GPS traces, matrices, transition chains, budgets and maps are read here, with the form of each text found out
first. A row that cannot be used is counted and said. Errors name file, line and column, and print no cell. The room
imports `model`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
