"""Many runs in one folder: a file for each row, resumed after any interruption, and a table of them all.

A folder holds ``manifest.json`` (what it is for), ``rows/`` (one file for each finished row), ``results.csv`` (all of
them, in the order asked for; ``results.parquet`` too where pyarrow is installed) and ``environment.json``.
"""

from mechdesign.records.environment import environment
from mechdesign.records.identity import identity
from mechdesign.records.row import Row
from mechdesign.records.row import State
from mechdesign.records.store import Request
from mechdesign.records.store import Store
from mechdesign.records.table import tabulate

__all__ = ["Request", "Row", "State", "Store", "environment", "identity", "tabulate"]


def __dir__() -> list[str]:
    return sorted(__all__)
