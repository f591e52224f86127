"""Measure the gap of designs with a floor if they are stopped after a share of the time that they need.

    python benchmarks/solvers/stopped_early.py [--scenes "15 x 12"] [--shares 0.55 0.25] [--times 3] [--json FILE]

Scenes have 180 to 210 cells, a Gaussian prior, ε = 0.8 per cell, and a floor at 0.8 of the largest distortion. The
block method uses column generation on one thread. The time that a design needs is measured in the same run, after a
first solve that compiles. Gaps and seconds are medians. The script exits with 1 if a gap at the largest share is above
0.05, or if any gap is 1 or more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import mechdesign as md

SCENES = {"15 x 12": (15, 12), "14 x 14": (14, 14), "15 x 14": (15, 14)}
LARGEST_GAP = 0.05


def scene(columns: int, rows: int) -> md.Problem:
    """Return a problem for a city, with a floor on the adversary's error."""
    domain = md.Domain.grid(columns, rows, float(columns), float(rows))
    middle = np.array([columns / 2, rows / 2])
    weights = np.exp(-((domain.points - middle) ** 2).sum(axis=1) / (columns + rows))
    prior, distance = weights / weights.sum(), md.distances.euclidean(domain)
    floor = 0.8 * float((distance @ prior).min())
    return md.Problem(prior, distance, [md.MetricPrivacy("0.8", distance), md.DistortionPrivacy(floor, distance)])


def run(problem: md.Problem, limit: float | None) -> tuple[float, float]:
    """Return the seconds that a design takes, and its relative gap."""
    clock = time.perf_counter()
    options = {"generation": True, "symmetry": False}
    made = md.design(problem, solver="block", tolerance=1e-4, time_limit=limit, threads=1, options=options)
    return time.perf_counter() - clock, float(made.certificate.relative_gap)


def main() -> None:
    """Print a line for each scene and share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.55, 0.25])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found, wrong = [], 0
    run(scene(8, 7), None)
    print("scene      share  limit  seconds  gap")
    for name in arguments.scenes:
        problem = scene(*SCENES[name])
        whole = 0.0
        for share in [None, *arguments.shares]:
            limit = None if share is None else share * whole
            runs = [run(problem, limit) for _ in range(arguments.times)]
            seconds, gap = (statistics.median(values) for values in zip(*runs, strict=True))
            whole = seconds if share is None else whole
            wrong += share is not None and gap > (LARGEST_GAP if share == max(arguments.shares) else 1 - 1e-9)
            found.append({"scene": name, "share": share, "limit": limit, "seconds": seconds, "gap": gap})
            shown = f"{'none':>6}" if limit is None else f"{limit:6.1f}"
            print(f"{name:10} {share or 1:5.2f} {shown} {seconds:8.2f}  {gap:.2g}", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
