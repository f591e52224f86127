"""The block interior-point method against HiGHS IPX on all rows: all pairs, Euclidean and Hamming cost.

    python benchmarks/solvers/block_against_highs.py [--sides 6 8 10] [--repeats 3] [--tolerance 1e-6]

Both methods solve the same problem, and the measured time includes rounding and certification. The methods take turns,
and the table shows medians. The block method runs with and without symmetry. For a side of 10, HiGHS takes two minutes
and is run only once.
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
    parser.add_argument("--sides", type=int, nargs="+", default=[6, 8])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    arguments = parser.parse_args()
    table = Table("problem", "contestant", "iterations", "seconds", "speed-up", "certified cost", "lower bound", "gap")
    contestants = {
        "HiGHS IPX, all rows": {"solver": "highs-ipx", "rows": "all"},
        "block": {"solver": "block", "options": {"symmetry": False}},
        "block, symmetry": {"solver": "block"},
    }
    for side in arguments.sides:
        for cost in ("euclidean", "hamming"):
            tested = scene(side, cost)
            results: dict[str, md.Design] = {}

            def run(name: str, results: dict[str, md.Design] = results, problem: md.Problem = tested.problem) -> None:
                results[name] = md.design(problem, tolerance=arguments.tolerance, **contestants[name])

            runs = {name: functools.partial(run, name) for name in contestants}
            if side < 10:
                timed = side_by_side(runs, arguments.repeats)
            else:
                first = next(iter(runs))
                timed = side_by_side({first: runs.pop(first)}, 1) | side_by_side(runs, arguments.repeats)
            seconds = {name: median(values) for name, values in timed.items()}
            for name in contestants:
                certificate = results[name].certificate
                table.add_row(
                    tested.name,
                    name,
                    str(certificate.provenance["iterations"]),
                    f"{seconds[name]:.3f}",
                    f"{seconds['HiGHS IPX, all rows'] / seconds[name]:.0f}",
                    f"{certificate.expected_cost:.9f}",
                    f"{certificate.lower_bound:.9f}",
                    f"{certificate.relative_gap:.0e}",
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
