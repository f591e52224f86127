"""Measure rays for thousands of secrets under metric privacy between all pairs: design, export and verification.

    python benchmarks/solvers/rays.py [--sides 10 20 30] [--tolerance 0.05] [--exact] [--folder FOLDER] [--store rays.txt]

The scenes are square grids with a Gaussian prior (standard deviation a quarter of the side), ε = 0.6 per cell, and
Euclidean cost. Their symmetries are used. Each step runs in a separate process, which gives its peak memory. The column
"cpu" is the processor time of all threads of a step; on a busy machine it is more reliable than wall seconds. `--exact`
adds the exact block method.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.block_sizes import problem


def step(name: str, side: int, tolerance: float, folder: Path) -> dict[str, object]:
    """Carry out one step, and return its facts."""
    if name == "verify":
        certificate = md.verify(folder)
        return {"gap": certificate.relative_gap, "holds": certificate.holds}
    stated = problem(side, side, "euclidean", "differential")
    if name == "exact":
        certificate = md.design(stated, tolerance=1e-4).certificate
        return {"cost": certificate.expected_cost, "bound": certificate.lower_bound, "gap": certificate.relative_gap}

    def told(now: md.Progress) -> None:
        print(f"  {time.strftime('%H:%M:%S')} {now.stage}: [{now.lower}, {now.upper}]", file=sys.stderr, flush=True)

    design = md.design(stated, tolerance=tolerance, rows="rays", progress=told)
    solved, cpu = time.perf_counter(), time.process_time()
    design.save(folder)
    certificate, summary = design.certificate, design.summary
    return {
        "cost": certificate.expected_cost,
        "bound": certificate.lower_bound,
        "gap": certificate.relative_gap,
        "holds": certificate.holds,
        "rounds": summary.rounds,
        "solving": summary.seconds,
        "saving": time.perf_counter() - solved,
        "saving cpu": time.process_time() - cpu,
        "answers": int(design.channel.numerators.any(axis=0).sum()),
        "megabytes": sum(file.stat().st_size for file in folder.iterdir()) / 1e6,
    }


def measured(name: str, side: int, arguments: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Run a step in a separate process."""
    command = [sys.executable, __file__, "--one", name, "--sides", str(side), "--folder", str(folder)]
    command += ["--tolerance", str(arguments.tolerance)]
    facts: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return facts


def main() -> None:
    """Print a table, and store it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="+", type=int, default=[10, 20, 30])
    parser.add_argument("--tolerance", type=float, default=0.05)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        clock = time.perf_counter()
        facts = step(arguments.one, arguments.sides[0], arguments.tolerance, arguments.folder)
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9
        print(json.dumps({**facts, "all": time.perf_counter() - clock, "cpu": time.process_time(), "peak": peak}))
        return
    table = Table(
        "cells", "rows of pairs", "step", "cost", "lower bound", "gap", "rounds", "s", "cpu s", "GB", "export MB"
    )
    for side in arguments.sides:
        with tempfile.TemporaryDirectory() as made:
            folder = (arguments.folder or Path(made)) / f"rays-{side}"
            for name in ("rays", "verify", *(["exact"] if arguments.exact else [])):
                facts = measured(name, side, arguments, folder)
                numbers = [f"{facts[key]:.6g}" if key in facts else "" for key in ("cost", "bound")]
                times = [f"{facts[key]:.0f}" for key in ("all", "cpu")]
                size = f"{facts['megabytes']:.0f}" if "megabytes" in facts else ""
                cells = side**2
                shape = (
                    [str(cells), f"{cells * cells * (cells - 1) / 1e6:,.0f} million"] if name == "rays" else ["", ""]
                )
                rounds = str(facts.get("rounds", ""))
                gap = f"{100 * facts['gap']:.2f} %"
                table.add_row(*shape, name, *numbers, gap, rounds, *times, f"{facts['peak']:.2f}", size)
    for file in (None, arguments.store):
        if file is None:
            Console(width=130).print(table)
        else:
            with file.open("w", encoding="utf-8") as stream:
                Console(file=stream, width=130).print(table)
                print(f"mechdesign {md.__version__}, {os.cpu_count()} cores", file=stream)


if __name__ == "__main__":
    main()
