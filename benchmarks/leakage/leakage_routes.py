"""Compare the time of the hull with linear programs and with the paper's algorithms, on random matrices (Figure 6).

    python benchmarks/leakage/leakage_routes.py [--output FOLDER] [--quick]

1. One α at n = 30: HiGHS solves linear-fractional programs (LFP) for all 870 ordered pairs of rows. The time is
   compared with one evaluation of L after precomputation, which is the cost of each further α. It is also compared
   with precomputation plus evaluation, which is the cost of a single α.
2. T releases at n = 100, with precomputation: vectorised Algorithm 1, Algorithms 2+3, Algorithms 2+4+5, and the hull.
3. One evaluation at different α with n = 100, without precomputation.

In comparisons 2 and 3, the routes must give the same values: otherwise the script stops. In comparison 1, the
difference in values is printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._row_pair import fractional
from mechdesign.leakage.cao2019 import algorithm1, algorithm2, algorithm3, algorithm4, algorithm5
from mechdesign.report import _leakage_figures as leakage_figures

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from leakage.leakage_matrices import random_matrix

EPSILON = 0.1
REPEATS = 7
Route = Callable[[np.ndarray], Callable[[float], float]]


def _prepare_3(P: np.ndarray) -> Callable[[float], float]:
    tables = algorithm2(P)
    return lambda alpha: float(algorithm3(P, alpha, tables))


def _prepare_5(P: np.ndarray, largest: float) -> Callable[[float], float]:
    function = algorithm4(P, largest)
    return lambda alpha: float(algorithm5(P, alpha, function))


def routes(largest: float) -> dict[str, Route]:
    """Return the routes by name: each route is a function that prepares a matrix and returns L."""
    return {
        "hull": lambda P: LossFunction(P, cache=False),
        "Algorithm 1": lambda P: lambda alpha: float(algorithm1(P, alpha)),
        "Algorithms 2+3": _prepare_3,
        "Algorithms 2+4+5": lambda P: _prepare_5(P, largest),
    }


def timed(call: Callable[[], object], least: float = 0.05) -> float:
    """Return seconds for one call, repeated until `least` seconds have passed."""
    count, clock = 0, time.perf_counter()
    while True:
        call()
        count += 1
        elapsed = time.perf_counter() - clock
        if elapsed >= least:
            return elapsed / count


def against_lfp(n: int, alpha: float, console: Console) -> None:
    """Compare LFP by HiGHS with the hull for one α."""
    P = random_matrix(n)
    table = Table("one α", "seconds", "times slower than L(α)", "than precompute + L(α)", "difference")
    once = timed(lambda: LossFunction(P, cache=False)(alpha))
    loss = LossFunction(P, cache=False)
    evaluate = timed(lambda: loss(alpha))
    for method in ("charnes-cooper", "dinkelbach"):
        clock = time.perf_counter()
        value = max(fractional(q, d, alpha, method) for q, d in permutations(P, 2))
        seconds = time.perf_counter() - clock
        table.add_row(
            f"LFP, {method}, n = {n}",
            f"{seconds:.3f}",
            f"{seconds / evaluate:,.0f}",
            f"{seconds / once:,.0f}",
            f"{abs(value - loss(alpha)):.1e}",
        )
    table.add_row("hull: L(α)", f"{evaluate:.2e}", "1", "", "")
    table.add_row("hull: precompute + L(α)", f"{once:.2e}", "", "1", "")
    console.print(table)


def over_time(n: int, steps: list[int], console: Console) -> dict[str, dict[float, float]]:
    """Print the time of BPL over T releases, including precomputation."""
    P = random_matrix(n)
    times: dict[str, dict[float, float]] = {}
    table = Table(f"BPL, n = {n}, ε = {EPSILON}", "T", "seconds", "times slower than the hull")
    for T in steps:
        truth = None
        for name, prepare in routes((T + 1) * EPSILON).items():
            found = []
            # The table shows medians, because other work on the machine slows single runs; the slowest route runs only
            # once.
            while not found or (len(found) < REPEATS and sum(found) < 2.0):
                clock = time.perf_counter()
                function, leakage = prepare(P), 0.0
                for _ in range(T):
                    leakage = function(leakage) + EPSILON
                found.append(time.perf_counter() - clock)
            times.setdefault(name, {})[T] = statistics.median(found)
            truth = leakage if truth is None else truth
            np.testing.assert_allclose(leakage, truth, rtol=1e-12)
            slower = times[name][T] / times["hull"][T]
            table.add_row(name, str(T), f"{times[name][T]:.3f}", f"{slower:,.1f}")
    console.print(table)
    return times


def over_alpha(n: int, alphas: list[float], console: Console) -> dict[str, dict[float, float]]:
    """Print the time of one evaluation at different α, without precomputation."""
    P = random_matrix(n)
    times: dict[str, dict[float, float]] = {}
    table = Table(f"one evaluation, n = {n}", *(f"α = {alpha:g}" for alpha in alphas))
    for name, prepare in routes(max(alphas)).items():
        function = prepare(P)
        times[name] = {alpha: timed(lambda f=function, a=alpha: f(a)) for alpha in alphas}
        table.add_row(name, *(f"{seconds:.2e}" for seconds in times[name].values()))
    console.print(table)
    return times


def main() -> None:
    """Print the tables, and save the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    arguments = parser.parse_args()
    console = Console(width=110)
    n_lfp, n, steps = (6, 20, [1, 10]) if arguments.quick else (30, 100, [1, 5, 20, 100, 300])
    against_lfp(n_lfp, 1.0, console)
    by_time = over_time(n, steps, console)
    by_alpha = over_alpha(n, [0.01, 0.1, 1.0, 10.0, 20.0], console)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        leakage_figures.leakage_runtime(by_time, "number of releases T", title=f"BPL of T releases, n = {n}").savefig(
            arguments.output / "runtime_T.png", dpi=150
        )
        leakage_figures.leakage_runtime(by_alpha, "α", title=f"one evaluation, n = {n}").savefig(
            arguments.output / "runtime_alpha.png", dpi=150
        )


if __name__ == "__main__":
    main()
