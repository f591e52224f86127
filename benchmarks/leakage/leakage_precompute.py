"""The cost of the loss function: precomputation against n, peak memory, and a million evaluations.

    python benchmarks/leakage/leakage_precompute.py [--sizes 30 100 300 1000] [--repeats 3] [--output FOLDER]

Every precomputation runs in a separate process without a cache, which gives its peak memory. CPU seconds are printed
with wall-clock seconds, for machines that are not idle. ``--sizes 3000`` takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from mechdesign.leakage._loss import LossFunction
from mechdesign.report import _leakage_figures as leakage_figures

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from leakage.leakage_matrices import KINDS


def measure(kind: str, n: int) -> dict[str, float]:
    """Measure one precomputation in this process."""
    P = KINDS[kind](n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, cpu = time.perf_counter(), time.process_time()
    loss = LossFunction(P, cache=False)
    seconds, cpu_seconds = time.perf_counter() - clock, time.process_time() - cpu
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    alphas = np.random.default_rng(1).uniform(0, 20, 1_000_000)
    clock = time.perf_counter()
    loss(alphas)
    million = time.perf_counter() - clock
    return {
        "pieces": len(loss.lines),
        "seconds": seconds,
        "cpu": cpu_seconds,
        "peak": after / 1024,
        "added": (after - before) / 1024,
        "million": million,
    }


def apart(kind: str, n: int) -> dict[str, float]:
    """Measure in a new process with one thread."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", kind, "--sizes", str(n)]
    answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def main() -> None:
    """Print a table of medians, and save how cost grows with n."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 100, 300, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.sizes[0])))
        return
    table = Table("matrix", "n", "pieces", "seconds", "CPU seconds", "peak MiB", "of it added", "a million L(α), s")
    times: dict[str, dict[float, float]] = {}
    for n in arguments.sizes:
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in arguments.kinds}
        for _ in range(arguments.repeats):
            for kind in arguments.kinds:
                runs[kind].append(apart(kind, n))
        for kind, found in runs.items():
            middle = {name: statistics.median(run[name] for run in found) for name in found[0]}
            times.setdefault(kind, {})[n] = middle["seconds"]
            table.add_row(
                kind,
                str(n),
                f"{middle['pieces']:.0f}",
                f"{middle['seconds']:.3f}",
                f"{middle['cpu']:.3f}",
                f"{middle['peak']:.0f}",
                f"{middle['added']:.0f}",
                f"{middle['million']:.3f}",
            )
    Console(width=110).print(table)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        figure = leakage_figures.leakage_runtime(times, "n", title="precompute of L")
        figure.savefig(arguments.output / "precompute_n.png", dpi=150)


if __name__ == "__main__":
    main()
