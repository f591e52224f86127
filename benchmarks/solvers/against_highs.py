"""Compare the block method, other ways to give rows to HiGHS, and an approximation with HiGHS on all rows.

    python benchmarks/solvers/against_highs.py block [--sides 6 8 10] [--repeats 3] [--tolerance 1e-6]
    python benchmarks/solvers/against_highs.py rows [--sides 8] [--repeats 3]
    python benchmarks/solvers/against_highs.py approximation [--grid 10x8] [--radii 1.5 2.5 3.5] [--cost hamming]

The problems are those of `scenes.py`, on square grids, where every pair of secrets is bounded.

- `block` compares the block interior-point method, with and without its use of symmetry, with the interior-point solver
  of HiGHS (IPX), which is given all rows.
- `rows` compares IPX on all rows, on the reduced rows, and on rows that are added where they are violated (lazy).
- `approximation` leaves rows out, as Figure 8 of Shokri (2015), *Privacy Games*, does, and shows which ε remains.

In `block` and `rows`, a time includes rounding and certification. The contestants take turns, and the table shows
medians. From a side of 10 on, IPX on all rows runs only once, because it takes minutes.

The approximation keeps only the rows of two secrets within a radius of each other, for observables within this radius
of the first. In the distortion floor, only guesses within the radius of the observable count. IPX solves it without
crossover. The ε that its channel keeps is measured over *all* pairs: it is the largest log-ratio per cell with a
numerator above 10⁻⁶. Denominators are raised to 10⁻¹², because a zero would make ε infinite, so the
measured ε is a lower bound. The last row of the table is the exact program with all rows. It has ε = 0.6 per cell, and
a distortion floor at 0.8 of the largest distortion. The block method solves it without symmetry; its result is rounded
and certified.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.solve._contract import Options
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, options, shape, show, side_by_side
from solvers.scenes import problem

EPSILON = 0.6
SHARE = 0.8
_SEEN, _LEAST = 1e-6, 1e-12

Array = NDArray[np.float64]
BLOCK: dict[str, Facts] = {
    "HiGHS IPX, all rows": {"solver": "highs-ipx", "rows": "all"},
    "block": {"solver": "block", "options": {"symmetry": False}},
    "block, symmetry": {"solver": "block"},
}
POLICIES: dict[str, Facts] = {rows: {"solver": "highs-ipx", "rows": rows} for rows in ("all", "reduced", "lazy")}


def compare(contestants: dict[str, Facts], sides: list[int], repeats: int, tolerance: float) -> list[Facts]:
    """Return a row for each contestant and problem; the speed-up is that over the first contestant."""
    found = []
    for side in sides:
        for cost in ("euclidean", "hamming"):
            made: dict[str, md.Design] = {}

            def run(name: str, asked: md.Problem, made: dict[str, md.Design] = made) -> None:
                made[name] = md.design(asked, tolerance=tolerance, **contestants[name])

            runs = {name: functools.partial(run, name, problem(side, side, cost)) for name in contestants}
            first = next(iter(runs))
            timed = side_by_side({first: runs.pop(first)}, 1) if side >= 10 else {}
            timed |= side_by_side(runs, repeats)
            seconds = {name: statistics.median(timed[name]) for name in contestants}
            for name in contestants:
                facts = made[name].certificate
                found.append(
                    {
                        "problem": f"{side * side} secrets, {cost}",
                        "contestant": name,
                        "seconds": seconds[name],
                        "faster": seconds[first] / seconds[name],
                        "cost": facts.expected_cost,
                        "bound": facts.lower_bound,
                        "gap": facts.relative_gap,
                        **facts.provenance,
                    }
                )
    return found


def approximation(exact: md.Problem, distance: Array, radius: float) -> LinearProgram:
    """Return the program with the rows within the radius; it has n² probabilities and the n parts of the distortion."""
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


def approximate(grid: str, radii: list[float], cost: str, time_limit: float) -> list[Facts]:
    """Return a row for the approximation with each radius, and one for the exact program."""
    columns, rows = shape(grid)
    exact = problem(columns, rows, cost, "joint")
    distance = md.distances.euclidean(md.Domain.grid(columns, rows, width=float(columns), height=float(rows)))
    prior, n = exact.prior, columns * rows
    found: list[Facts] = []
    for radius in radii:
        program = approximation(exact, distance, radius)
        clock = time.perf_counter()
        solved = solve(program, "highs-ipx", Options(1e-7, time_limit=time_limit, vertex=False))
        row: dict[str, Any] = {"radius": f"{radius:g}", "rows": program.rows, "seconds": time.perf_counter() - clock}
        if np.isfinite(solved.x).all():
            channel = np.maximum(solved.x[: n * n].reshape(n, n), 0.0)
            channel /= channel.sum(axis=1, keepdims=True)
            kept = float((distance @ (prior[:, None] * channel)).min(axis=0).sum())
            row |= {"epsilon": f"≥ {real_epsilon(channel, distance):.2f}", "distortion": kept, "proved": "no"}
            row["cost"] = float((prior[:, None] * channel * exact.cost).sum())
        else:
            row["epsilon"] = solved.status.value.split(":")[0]
        found.append(row)
    clock = time.perf_counter()
    facts = md.design(exact, solver="block", tolerance=1e-6, options={"symmetry": False}).certificate
    row = {"radius": "all", "rows": n * n * (n - 1) + n * n + n + 1, "seconds": time.perf_counter() - clock}
    row |= {"epsilon": f"{EPSILON}", "distortion": facts.distortion[0], "cost": facts.expected_cost, "proved": "yes"}
    return [*found, row | {"gap": facts.relative_gap}]


def main() -> None:
    """Print a table."""
    given = options(
        __doc__,
        action=("block", "rows", "approximation"),
        sides=[6, 8],
        repeats=3,
        tolerance=1e-6,
        grid="10x8",
        radii=[1.5, 2.5, 3.5],
        cost=("hamming", "euclidean"),
        time_limit=600.0,
    )
    if given.action == "approximation":
        columns = {"radius": "{radius}", "rows": "{rows:,}", "seconds": "{seconds:.1f}", "real ε per cell": "{epsilon}"}
        columns |= {"distortion": "{distortion:.4f}", "cost": "{cost:.4f}", "gap": "{gap:.0e}", "proved": "{proved}"}
        show(columns, approximate(given.grid, given.radii, given.cost, given.time_limit), 100)
        return
    columns = {"problem": "{problem}", "contestant": "{contestant}", "program rows": "{program_rows:,}"}
    columns |= {"iterations": "{iterations}", "seconds": "{seconds:.3f}", "speed-up": "{faster:.1f}"}
    columns |= {"certified cost": "{cost:.9f}", "lower bound": "{bound:.9f}", "gap": "{gap:.0e}"}
    contestants = BLOCK if given.action == "block" else POLICIES
    show(columns, compare(contestants, given.sides, given.repeats, given.tolerance))


if __name__ == "__main__":
    main()
