"""The block solver's kernels side by side: seconds per iteration with NumPy, Numba and PyTorch.

    python benchmarks/solvers/block_kernels.py [--grids 12x12 15x15] [--cost euclidean] [--repeats 3] [--long]

Kernels that are not installed are skipped; CUDA runs if PyTorch finds a device. `--long` adds a grid of 20x15 cells
and, only on CUDA, grids of 30x20 and 40x25 cells. Symmetry is not used. The first solve of each kernel, which may
compile, is not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.errors import SolverError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.block_sizes import problem
from solvers.scenes import median, side_by_side

_LARGEST_ON_THE_CPU = 400


def kernels() -> dict[str, dict[str, str]]:
    """Return the solver options of every kernel that is available on this machine."""
    names = ["numpy", *(name for name in ("numba", "torch") if importlib.util.find_spec(name))]
    found = {name: {"arrays": name} for name in names}
    if "torch" in found:
        import torch

        if torch.cuda.is_available():
            found["torch, cuda"] = {"arrays": "torch", "device": "cuda"}
    return found


class Contestant:
    """One kernel on one problem, with the times of all solves and the result of the last one."""

    def __init__(self, instance: md.Problem, options: dict[str, str]) -> None:
        self.instance, self.options = instance, options
        self.each: list[float] = []
        self.facts: md.Certificate | None = None

    def __call__(self) -> None:
        """Solve, and store the time of an iteration."""
        options = {"symmetry": False, **self.options}
        certificate = md.design(self.instance, solver="block", tolerance=1e-6, options=options).certificate
        self.each.append(certificate.provenance["solve_seconds"] / certificate.provenance["iterations"])
        self.facts = certificate


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", nargs="+", default=["12x12", "15x15"])
    parser.add_argument("--cost", default="euclidean", choices=("euclidean", "hamming"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--long", action="store_true")
    arguments = parser.parse_args()
    console = Console()
    table = Table("cells", "kernel", "iterations", "s per iteration", "of NumPy's", "cost", "gap")
    for options in kernels().values():
        md.design(problem(3, 3, "euclidean", "differential"), solver="block", options=options)
    for grid in [*arguments.grids, *(["20x15", "30x20", "40x25"] if arguments.long else [])]:
        columns, rows = (int(part) for part in grid.split("x"))
        instance = problem(columns, rows, arguments.cost, "differential")
        contestants = {
            name: Contestant(instance, options)
            for name, options in kernels().items()
            if columns * rows <= _LARGEST_ON_THE_CPU or "device" in options
        }
        for name in [*contestants]:
            try:
                contestants[name]()
            except SolverError as error:
                console.print(f"{grid}, {name}: {error}")
                del contestants[name]
        side_by_side({**contestants}, arguments.repeats - 1)
        reference = median(contestants["numpy"].each) if "numpy" in contestants else math.nan
        for name, contestant in contestants.items():
            each, facts = median(contestant.each), contestant.facts
            assert facts is not None
            table.add_row(
                str(columns * rows),
                name,
                str(facts.provenance["iterations"]),
                f"{each:.4f}",
                f"{each / reference:.2f}",
                f"{facts.expected_cost:.8f}",
                f"{facts.relative_gap:.0e}",
            )
    console.print(table)


if __name__ == "__main__":
    main()
