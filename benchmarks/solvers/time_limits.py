"""Measure how far every solver of rows exceeds a time limit, and how a program with too large rounding errors ends.

    python benchmarks/solvers/time_limits.py [--secrets 36 60 80] [--limits 1]

The programs require metric privacy on random places (seed 0) for every pair, with some n³ rows, far too many for the
limits. A solver may exceed a limit by at most 2 seconds plus a tenth of the limit. The last lines of the table use two
secrets whose costs differ by nine orders of magnitude, a required gap of 1e-9, and no limit. The script exits with 1 if
a solver exceeds a limit by more than this allowance.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import scipy.sparse as sparse

import mechdesign as md
from mechdesign.solve._contract import Options
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve

SOLVERS = (
    *("highs", "highs-simplex", "highs-ipx", "highs-pdlp", "scipy", "scipy-ds", "scipy-ipm"),
    *("cvxpy", "cvxpy-scs", "cvxpy-osqp", "cvxpy-highs", "cvxpy-scipy"),
)


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


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--secrets", type=int, nargs="+", default=[36, 60, 80])
    parser.add_argument("--limits", type=float, nargs="+", default=[1.0])
    arguments = parser.parse_args()
    passed = 0
    print("solver         secrets  coefficients  limit  seconds  status")
    for n in arguments.secrets:
        program = all_pairs(n)
        for limit in arguments.limits:
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
        print(
            f"{name:14} {2:7} {'':13} {'none':>6} {seconds:8.2f}  {made.status.name}, relative gap {gap:.1e}",
            flush=True,
        )
    print(f"{passed} limits were passed by more than 2 seconds and a tenth")
    sys.exit(int(passed > 0))


if __name__ == "__main__":
    main()
