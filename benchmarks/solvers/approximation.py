"""Paper 004's approximation (its Figure 8) compared with the exact program: time, claimed and actual privacy.

    python benchmarks/solvers/approximation.py [--grid 10x8] [--radii 1.5 2.5 3.5] [--cost hamming] [--time-limit 600]

The approximation keeps only rows in which the two secrets, and secret and observable, lie within a radius. HiGHS IPX
solves the approximation without crossover. The actual ε of the approximation is the largest log-ratio per cell over
*all* pairs with numerators above 10⁻⁶. Denominators are raised to 10⁻¹², because a zero would make ε infinite; the
computed ε is therefore a lower bound. The exact program (joint: ε = 0.6 per cell, floor at 0.8 of the largest
distortion) keeps all rows. The block method solves the exact program without symmetry; the result is rounded and
certified.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.solve._contract import Options
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.block_sizes import problem

EPSILON = 0.6
SHARE = 0.8
_SEEN, _LEAST = 1e-6, 1e-12

Array = NDArray[np.float64]


def approximation(exact: md.Problem, distance: Array, radius: float) -> LinearProgram:
    """Return the program with only the rows within the radius, for p (n²) and the n parts of the distortion."""
    prior, n = exact.prior, len(exact.prior)
    near = distance <= radius
    s, t = np.nonzero(near & ~np.eye(n, dtype=bool))
    pair, o = np.nonzero(near[s])
    s, t = s[pair], t[pair]
    ratio = _sparse(n, [s * n + o, t * n + o], [-np.ones(len(o)), np.exp(EPSILON * distance[s, t])])
    guess, seen = np.nonzero(near)
    columns = [np.full(len(seen), s) * n + seen for s in range(n)]
    errors = _sparse(
        n,
        [*columns, n * n + seen],
        [*(distance[guess, s] * prior[s] for s in range(n)), -np.ones(len(seen))],
    )
    sums = sparse.hstack([sparse.kron(sparse.eye_array(n), np.ones((1, n))), sparse.csr_array((n, n))])
    floor = sparse.csr_array(np.concatenate([np.zeros(n * n), np.ones(n)])[None])
    free = ratio.shape[0] + errors.shape[0]
    return LinearProgram(
        cost=np.concatenate([(prior[:, None] * exact.cost).ravel(), np.zeros(n)]),
        matrix=sparse.csr_array(sparse.vstack([ratio, errors, sums, floor])),
        row_lower=np.concatenate([np.zeros(free), np.ones(n), [SHARE * float((distance @ prior).min())]]),
        row_upper=np.concatenate([np.full(free, np.inf), np.ones(n), [np.inf]]),
        lower=np.zeros(n * n + n),
        upper=np.full(n * n + n, np.inf),
    )


def _sparse(n: int, columns: list[NDArray[np.int64]], values: list[Array]) -> sparse.csr_array:
    """Return sparse rows; the k-th entry of each row is values[k] in the column columns[k]."""
    rows = np.arange(len(columns[0]))
    places = (np.tile(rows, len(columns)), np.concatenate(columns))
    return sparse.csr_array((np.concatenate(values), places), shape=(len(rows), n * n + n))


def real_epsilon(channel: Array, distance: Array) -> float:
    """Return a lower bound on the ε per cell that the channel keeps."""
    logs = np.log(np.maximum(channel, _LEAST))
    worst = 0.0
    for s, row in enumerate(channel):
        seen = row > _SEEN
        apart = distance[s] > 0
        worst = max(worst, float(((logs[s, seen] - logs[apart][:, seen]).max(axis=1) / distance[s, apart]).max()))
    return worst


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", default="10x8")
    parser.add_argument("--radii", type=float, nargs="+", default=[1.5, 2.5, 3.5])
    parser.add_argument("--cost", default="hamming", choices=("euclidean", "hamming"))
    parser.add_argument("--time-limit", type=float, default=600.0)
    arguments = parser.parse_args()
    columns, rows = (int(part) for part in arguments.grid.split("x"))
    exact = problem(columns, rows, arguments.cost, "joint")
    distance = md.distances.euclidean(md.Domain.grid(columns, rows, width=float(columns), height=float(rows)))
    prior, n = exact.prior, columns * rows
    table = Table("radius", "rows", "seconds", "real ε per cell", "distortion", "cost", "gap", "proved")
    for radius in arguments.radii:
        program = approximation(exact, distance, radius)
        clock = time.perf_counter()
        found = solve(program, "highs-ipx", Options(1e-7, time_limit=arguments.time_limit, vertex=False))
        seconds = time.perf_counter() - clock
        name = f"{radius:g}"
        if not np.isfinite(found.x).all():
            table.add_row(name, f"{program.rows:,}", f"{seconds:.1f}", found.status.value.split(":")[0])
            continue
        channel = np.maximum(found.x[: n * n].reshape(n, n), 0.0)
        channel /= channel.sum(axis=1, keepdims=True)
        kept = float((distance @ (prior[:, None] * channel)).min(axis=0).sum())
        cost = float((prior[:, None] * channel * exact.cost).sum())
        values = f"≥ {real_epsilon(channel, distance):.2f}", f"{kept:.4f}", f"{cost:.4f}", "", "no"
        table.add_row(name, f"{program.rows:,}", f"{seconds:.1f}", *values)
    clock = time.perf_counter()
    options = {"symmetry": False}
    certificate = md.design(exact, solver="block", tolerance=1e-6, options=options).certificate
    seconds = time.perf_counter() - clock
    kept = certificate.distortion[0]
    values = f"{EPSILON}", f"{kept:.4f}", f"{certificate.expected_cost:.4f}", f"{certificate.relative_gap:.0e}", "yes"
    table.add_row("all", f"{n * n * (n - 1) + n * n + n + 1:,}", f"{seconds:.1f}", *values)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
