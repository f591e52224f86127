"""Measure how far solvers exceed a time limit, and the gap of designs that are stopped early.

    python benchmarks/solvers/limits.py solvers [--secrets 36 60 80] [--limits 1]
    python benchmarks/solvers/limits.py designs [--scenes 15x12 14x14] [--shares 0.55 0.25] [--repeats 3] [-o FILE]

`solvers`: the programs require metric privacy on random places (seed 0) for every pair, with some n³ rows, far too many
for the limits. A solver may exceed a limit by at most 2 seconds plus a tenth of the limit; otherwise the script exits
with 1. The last lines of the table have no limit and a required gap of 1e-9. Their program has large rounding errors:
the costs of its two secrets differ by nine orders of magnitude.

`designs`: scenes have 180 to 210 cells, a Gaussian prior, ε = 0.8 per cell, and a floor at 0.8 of the largest
distortion. The block method uses column generation on one thread, and is stopped after a share of the time that it
needs. This time is measured in the same run, after a first solve that compiles. Gaps and seconds are medians. The
script exits with 1 if a gap at the largest share is above 0.05, or if any gap is 1 or more.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sparse

import mechdesign as md
from mechdesign.solve._contract import Options
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, options, shape, write

SOLVERS = (
    *("highs", "highs-simplex", "highs-ipx", "highs-pdlp", "scipy"),
    *("cvxpy", "cvxpy-scs", "cvxpy-osqp", "cvxpy-highs", "cvxpy-scipy"),
)
LARGEST_GAP = 0.05


def all_pairs(n: int) -> LinearProgram:
    """Return the program of n random places with the rows of all pairs."""
    random = np.random.default_rng(0)
    distance = md.distances.euclidean(4 * random.random((n, 2)))
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    pairs = np.arange(first.size)
    values = np.concatenate([np.ones(first.size), -np.exp(distance[first, second] / 2)])
    block = sparse.coo_array((values, (np.tile(pairs, 2), np.concatenate([first, second]))))
    privacy = sparse.kron(block, sparse.eye_array(n))
    rows = privacy.shape[0]
    return LinearProgram(
        (random.dirichlet(np.ones(n))[:, None] * distance).ravel(),
        sparse.csr_array(sparse.vstack([privacy, sparse.kron(sparse.eye_array(n), np.ones((1, n)))])),
        np.concatenate([np.full(rows, -np.inf), np.ones(n)]),
        np.concatenate([np.zeros(rows), np.ones(n)]),
        np.zeros(n * n),
        np.full(n * n, np.inf),
    )


def solvers(given: argparse.Namespace) -> int:
    """Print a line for each run, and return the number of limits that were passed by too much."""
    passed = 0
    print("solver         secrets  coefficients  limit  seconds  status")
    for n in given.secrets:
        program = all_pairs(n)
        for limit in given.limits:
            for name in SOLVERS:
                clock = time.perf_counter()
                status = solve(program, name, Options(time_limit=limit)).status.name
                seconds = time.perf_counter() - clock
                passed += seconds > 2 + 1.1 * limit
                print(f"{name:14} {n:7} {program.matrix.nnz:13} {limit:6} {seconds:8.2f}  {status}", flush=True)
    steep = md.Problem([0.6, 0.4], [[0, 10.0], [7e7, 1.0]], [md.MetricPrivacy("0.01", [[0, 1], [1, 0]])])
    for name in ("block", *SOLVERS):
        clock = time.perf_counter()
        made = md.design(steep, solver=name, tolerance=1e-9)
        gap, seconds = made.certificate.relative_gap, time.perf_counter() - clock
        end = f"{made.status.name}, relative gap {gap:.1e}"
        print(f"{name:14} {2:7} {'':13} {'none':>6} {seconds:8.2f}  {end}", flush=True)
    print(f"{passed} limits were passed by more than 2 seconds and a tenth")
    return passed


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
    chosen = {"generation": True, "symmetry": False}
    made = md.design(problem, solver="block", tolerance=1e-4, time_limit=limit, threads=1, options=chosen)
    return time.perf_counter() - clock, float(made.certificate.relative_gap)


def designs(given: argparse.Namespace) -> int:
    """Print a line for each scene and share, and return the number of gaps that are too wide."""
    found: list[Facts] = []
    wrong = 0
    run(scene(8, 7), None)
    print("scene   share  limit  seconds  gap")
    for name in given.scenes:
        problem = scene(*shape(name))
        whole = 0.0
        for share in [None, *given.shares]:
            limit = None if share is None else share * whole
            runs = [run(problem, limit) for _ in range(given.repeats)]
            seconds, gap = (statistics.median(values) for values in zip(*runs, strict=True))
            whole = seconds if share is None else whole
            wrong += share is not None and gap > (LARGEST_GAP if share == max(given.shares) else 1 - 1e-9)
            found.append({"scene": name, "share": share, "limit": limit, "seconds": seconds, "gap": gap})
            shown = f"{'none':>6}" if limit is None else f"{limit:6.1f}"
            print(f"{name:7} {share or 1:5.2f} {shown} {seconds:8.2f}  {gap:.2g}", flush=True)
    if given.output is not None:
        write(given.output, found)
    return wrong


def main() -> int:
    """Run one of the two."""
    given = options(
        __doc__,
        action=("solvers", "designs"),
        secrets=[36, 60, 80],
        limits=[1.0],
        scenes=["15x12", "14x14", "15x14"],
        shares=[0.55, 0.25],
        repeats=3,
        output=Path,
    )
    wrong = solvers(given) if given.action == "solvers" else designs(given)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
