"""How much time the cache saves: loss functions and cost curves, computed, read from the disk, and found in memory.

    python benchmarks/leakage/cache_savings.py [--states 100 400 1000]

Each result is computed once with an empty cache, read with an empty memory, and found in memory. The figures are
medians of three in one process with one thread. The table is written to `results/cache_savings.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mechdesign as md
from mechdesign.base import _cache as cache
from mechdesign.leakage import LossFunction
from mechdesign.measures import cost_curve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from leakage.leakage_matrices import gaussian, random_matrix

RESULT = Path(__file__).parents[1] / "results" / "cache_savings.json"
BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0)


def measure(name: str, compute: Callable[[], Any]) -> dict[str, Any]:
    """Return the seconds of the three ways, and the bytes of the entry."""
    seconds: dict[str, list[float]] = {"computed": [], "disk": [], "memory": []}
    for _ in range(3):
        cache.clear()
        for way in seconds:
            if way == "disk":
                cache.MEMORY.clear()
            clock = time.perf_counter()
            result = compute()
            seconds[way].append(time.perf_counter() - clock)
            assert result.cached == (way != "computed")
    size = sum(entry.size for entry in cache.entries())
    row = {"name": name, "bytes": size} | {f"{way}_s": round(statistics.median(s), 6) for way, s in seconds.items()}
    print(row, flush=True)
    return row


def problem(columns: int) -> md.Problem:
    """Return a square grid with a uniform prior."""
    domain = md.Domain.grid(columns, columns, float(columns), float(columns))
    distance = md.distances.euclidean(domain)
    return md.Problem(np.full(columns**2, columns**-2.0), distance, [md.MetricPrivacy(1, distance)])


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, nargs="*", default=[100, 400, 1000])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[cache.VARIABLE] = folder
        rows = []
        for n in arguments.states:
            for name, P in {"random": random_matrix(n), "Gaussian 0.1": gaussian(n, 0.1)}.items():
                rows.append(measure(f"loss function, {name}, {n} states", lambda P=P: LossFunction(P)))
        for columns in (5, 8):
            rows.append(
                measure(f"cost curve, {columns**2} cells, 5 budgets", lambda c=columns: cost_curve(problem(c), BUDGETS))
            )
    RESULT.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
