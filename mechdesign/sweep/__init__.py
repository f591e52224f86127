"""A design for each of many values: a specification with a ``[sweep]`` table, solved on one machine or on many.

    [sweep]
    "privacy.0.epsilon" = [0.2, 0.5, 1, 2]
    "prior.checkins.only" = ["6", "41", "185"]
    mode = "product"                # or "zip"

The folder of a sweep holds ``results.csv`` (and ``results.parquet`` where pyarrow is installed), ``report.html``,
``channels/`` with a certified set of files for each design, and ``rows/``, from which it can be resumed.
"""

from mechdesign.runs.sweep import Moment
from mechdesign.runs.sweep import Result
from mechdesign.runs.sweep import run
from mechdesign.runs._tasks import Sweep
from mechdesign.runs._tasks import parse
from mechdesign.runs._tasks import read

__all__ = ["Moment", "Result", "Sweep", "parse", "read", "run"]


def __dir__() -> list[str]:
    return sorted(__all__)
