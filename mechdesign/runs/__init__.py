"""Many runs in one folder: a file for each row, resumed after any interruption, and a table of them all.

A folder holds ``manifest.json`` (what it is for), ``rows/`` (one file for each finished row), ``results.csv`` (all of
them, in the order asked for; ``results.parquet`` too where pyarrow is installed) and ``environment.json``.
"""

from mechdesign.runs._identity import environment
from mechdesign.runs._identity import identity
from mechdesign.runs._store import Row
from mechdesign.runs._store import State
from mechdesign.runs._store import Request
from mechdesign.runs._store import Store
from mechdesign.runs._store import tabulate

__all__ = ["Request", "Row", "State", "Store", "environment", "identity", "tabulate"]


def __dir__() -> list[str]:
    return sorted(__all__)
