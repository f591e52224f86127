"""Benchmark solvers on families of mechanism design problems.

    import mechdesign as md

    results = md.bench.run("small", ["auto", "highs-ipx"], "results")

What solvers claim of their numbers and what these are worth are two columns of the table.
"""

from mechdesign.bench.contestants import CONTESTANTS
from mechdesign.bench.contestants import Contestant
from mechdesign.bench.export import export_mps
from mechdesign.bench.families import FAMILIES
from mechdesign.bench.families.family import Family
from mechdesign.bench.running import Results
from mechdesign.bench.running import run
from mechdesign.bench.suites import SUITES
from mechdesign.bench.suites import Suite
from mechdesign.bench.verdicts import Verdict

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
