"""Benchmark solvers on families of mechanism design problems.

    import mechdesign as md

    results = md.bench.run("small", ["auto", "highs-ipx"], "results")

What solvers claim of their numbers and what these are worth are two columns of the table.
"""

from mechdesign.runs._contestants import CONTESTANTS
from mechdesign.runs._contestants import Contestant
from mechdesign.runs.bench import export_mps
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._families import Family
from mechdesign.runs.bench import Results
from mechdesign.runs.bench import run
from mechdesign.runs.bench import SUITES
from mechdesign.runs.bench import Suite
from mechdesign.runs._phases import Verdict

__all__ = [
    "CONTESTANTS",
    "FAMILIES",
    "SUITES",
    "Contestant",
    "Family",
    "Results",
    "Suite",
    "Verdict",
    "export_mps",
    "run",
]


def __dir__() -> list[str]:
    return sorted(__all__)
