"""Compare lazy rows with one HiGHS call on all rows: lazy rows give the same optimum in less time.

    python benchmarks/solvers/lazy_rows.py [--side 8] [--repeats 3]

Both methods solve the same problem with the same solver (HiGHS IPX); the program is built, solved, rounded and
certified within the measured time. Run the script on an idle machine. The methods take turns, and the table shows
medians.
"""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.scenes import median, scene, side_by_side


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=8, help="cells along each side of the grid")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    table = Table("problem", "rows", "program rows", "seconds", "speed-up", "certified cost", "gap")
    for cost in ("euclidean", "hamming"):
        tested = scene(arguments.side, cost)
        results: dict[str, md.Design] = {}

        def run(rows: str, results: dict[str, md.Design] = results, problem: md.Problem = tested.problem) -> None:
            results[rows] = md.design(problem, solver="highs-ipx", rows=rows)

        policies = ("all", "reduced", "lazy")
        seconds = side_by_side({rows: functools.partial(run, rows) for rows in policies}, arguments.repeats)
        for rows in policies:
            certificate = results[rows].certificate
            table.add_row(
                tested.name,
                rows,
                f"{certificate.provenance['program_rows']:,}",
                f"{median(seconds[rows]):.2f}",
                f"{median(seconds['all']) / median(seconds[rows]):.1f}",
                f"{certificate.expected_cost:.12g}",
                f"{certificate.relative_gap:.1e}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
