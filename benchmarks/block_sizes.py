"""How the time and the memory of the block method grow with the number of cells.

    python benchmarks/block_sizes.py [--grids 5x5 8x8] [--cost euclidean] [--kind differential] [--no-symmetry] [--long]

`--long` adds 15x20, 20x25 and, with symmetry, 32x32. Each size runs in a process of its own, so that the peak is its
own. Per iteration the work grows like m n³: the exponent between neighbouring sizes is shown beside the theory's 4.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

import mechdesign as md


def problem(columns: int, rows: int, cost: str, kind: str) -> md.Problem:
    """Cells of a unit grid under a Gaussian prior, ε = 0.6 per cell, floor at 0.8 of the largest distortion."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    places = np.c_[x.ravel(), y.ravel()].astype(float)
    squared = ((places - places.mean(axis=0)) ** 2).sum(axis=1)
    prior = np.exp(-squared / (2 * (max(columns, rows) / 4) ** 2))
    prior /= prior.sum()
    distance = md.distances.euclidean(places)
    costs = distance if cost == "euclidean" else (distance > 0).astype(float)
    requirements: list[md.MetricPrivacy | md.DistortionPrivacy] = []
    if kind in ("differential", "joint", "worst"):
        requirements.append(md.MetricPrivacy("0.6", distance))
    if kind in ("joint", "distortion"):
        requirements.append(md.DistortionPrivacy(0.8 * float((distance @ prior).min()), distance))
    return md.Problem(prior, costs, requirements, objective="worst" if kind == "worst" else "expected")


def measure(grid: str, cost: str, kind: str, symmetry: bool) -> None:
    """Design once and print the facts as JSON."""
    columns, rows = (int(part) for part in grid.split("x"))
    design = md.design(
        problem(columns, rows, cost, kind), solver="block", tolerance=1e-6, options={"symmetry": symmetry}
    )
    certificate = design.certificate
    facts = {
        "cost": certificate.expected_cost,
        "gap": certificate.relative_gap,
        "iterations": certificate.provenance["iterations"],
        "blocks": certificate.provenance["blocks"],
        "estimate": certificate.provenance["memory_estimate"],
        "seconds": certificate.provenance["solve_seconds"],
        "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    print(json.dumps(facts))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", nargs="+", default=["5x5", "8x8", "10x10", "12x12"])
    parser.add_argument("--cost", default="euclidean", choices=("euclidean", "hamming"))
    parser.add_argument("--kind", default="differential", choices=("differential", "joint", "distortion", "worst"))
    parser.add_argument("--no-symmetry", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one, arguments.cost, arguments.kind, not arguments.no_symmetry)
        return
    grids = [*arguments.grids]
    if arguments.long:
        grids += ["20x15", "25x20"] if arguments.no_symmetry else ["20x15", "25x20", "32x32"]
    table = Table(
        "cells", "blocks", "iterations", "seconds", "per iteration", "exponent", "peak, GB", "estimate", "gap"
    )
    before: tuple[float, float] | None = None
    for grid in grids:
        same = ["--cost", arguments.cost, "--kind", arguments.kind, *(["--no-symmetry"] * arguments.no_symmetry)]
        output = subprocess.run(
            [sys.executable, __file__, "--one", grid, *same], check=True, capture_output=True, text=True
        ).stdout
        facts = json.loads(output.splitlines()[-1])
        cells = math.prod(int(part) for part in grid.split("x"))
        each = facts["seconds"] / facts["iterations"]
        exponent = math.log(each / before[1]) / math.log(cells / before[0]) if before else math.nan
        before = (cells, each)
        table.add_row(
            str(cells),
            str(facts["blocks"]),
            str(facts["iterations"]),
            f"{facts['seconds']:.2f}",
            f"{each:.3f}",
            f"{exponent:.1f} (4)",
            f"{facts['peak'] / 1e9:.2f}",
            f"{facts['estimate'] / 1e9:.2f}",
            f"{facts['gap']:.0e}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
