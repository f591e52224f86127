"""The loss function by linear-fractional programs, by the paper's algorithms, and by the hull: times and differences.

    python benchmarks/leakage/routes.py time [--quick]
    python benchmarks/leakage/routes.py programs [--matrices 100] [--part I/K]
    python benchmarks/leakage/routes.py summary

`time` compares seconds on random matrices (Figure 6 of Cao et al. 2019). First, one α at n = 30: HiGHS solves
linear-fractional programs (LFP) for all 870 ordered pairs of rows. One evaluation of L after precomputation is the cost
of each further α; precomputation and evaluation are the cost of one α. Second, T releases at n = 100, with
precomputation. Third, one evaluation at different α, without precomputation. In the second and third comparisons, all
routes must give the same values: otherwise the script stops.

`programs` compares values (Section 6.1 of the paper). The matrices are random with 30 states, and those of the
reference values. For each matrix, L(α) is computed for α = 0.1, 1, 5 and 10 by both methods on two back ends. Each
ordered pair of rows has its own program. Two more back ends solve only the pairs that remain after pruning. The rows of
a matrix are appended to `build/benchmarks/programs.jsonl` as soon as they are known, and stored rows are not run again.
`--part 1/2` takes every second matrix, for two processes. `summary` writes `results/lfp_against_algorithms.json`: the
largest difference of each route from the hull for each α, with seconds and counts.

Algorithm 1 is also run as printed. Algorithms 2, 3 and 5 as printed differ from the mended ones only for ties and for
entries of 0, and are not run. The printed recursion of Algorithm 4 on [α1, αm] does not end.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.leakage import LossFunction, cao2019, loss_by_programs
from mechdesign.leakage._loss_by_programs import fractional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import PROJECT, RESULTS, ROWS, Facts, Store, options, origin, show, write
from leakage.matrices import random_matrix
from papers.errata_runs import printed_loss

EPSILON = 0.1
REPEATS = 7
RESULT = RESULTS / "lfp_against_algorithms.json"
REFERENCE = PROJECT / "tests" / "reference" / "leakage.json"
ALPHAS = (0.1, 1.0, 5.0, 10.0)
STATES = 30
METHODS = ("charnes-cooper", "dinkelbach")
ALL_PAIRS, PRUNED = ("highs-simplex", "highs-ipx"), ("highs-simplex", "highs-ipx", "scipy", "cvxpy")
Route = Callable[[np.ndarray], Callable[[float], float]]


def _prepare_3(P: np.ndarray) -> Callable[[float], float]:
    tables = cao2019.algorithm2(P)
    return lambda alpha: float(cao2019.algorithm3(P, alpha, tables))


def _prepare_5(P: np.ndarray, largest: float) -> Callable[[float], float]:
    function = cao2019.algorithm4(P, largest)
    return lambda alpha: float(cao2019.algorithm5(P, alpha, function))


def routes(largest: float) -> dict[str, Route]:
    """Return the routes by name: each route is a function that prepares a matrix and returns L."""
    return {
        "hull": lambda P: LossFunction(P, cache=False),
        "Algorithm 1": lambda P: lambda alpha: float(cao2019.algorithm1(P, alpha)),
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


def against_programs(n: int, alpha: float) -> None:
    """Compare programs with the hull for one α."""
    P = random_matrix(n)
    once = timed(lambda: LossFunction(P, cache=False)(alpha))
    loss = LossFunction(P, cache=False)
    evaluate = timed(lambda: loss(alpha))
    rows: list[Facts] = []
    for method in METHODS:
        clock = time.perf_counter()
        value = max(fractional(q, d, alpha, method) for q, d in permutations(P, 2))
        seconds = time.perf_counter() - clock
        times = {"seconds": f"{seconds:.3f}", "one": seconds / evaluate, "both": seconds / once}
        rows.append({"route": f"LFP, {method}, n = {n}", "difference": abs(value - loss(alpha)), **times})
    rows.append({"route": "hull: L(α)", "seconds": f"{evaluate:.2e}", "one": 1})
    rows.append({"route": "hull: precompute + L(α)", "seconds": f"{once:.2e}", "both": 1})
    columns = {"one α": "{route}", "seconds": "{seconds}", "times slower than L(α)": "{one:,.0f}"}
    show(columns | {"than precompute + L(α)": "{both:,.0f}", "difference": "{difference:.1e}"}, rows, 110)


def over_time(n: int, steps: list[int]) -> None:
    """Print the time of BPL over T releases, including precomputation."""
    P = random_matrix(n)
    rows: list[Facts] = []
    for T in steps:
        truth = hull = None
        for name, prepare in routes((T + 1) * EPSILON).items():
            found: list[float] = []
            # The table shows medians, because other work on the machine slows single runs; the slowest route runs only
            # once.
            while not found or (len(found) < REPEATS and sum(found) < 2.0):
                clock = time.perf_counter()
                function, leakage = prepare(P), 0.0
                for _ in range(T):
                    leakage = function(leakage) + EPSILON
                found.append(time.perf_counter() - clock)
            seconds = statistics.median(found)
            truth, hull = (leakage, seconds) if truth is None else (truth, hull)
            np.testing.assert_allclose(leakage, truth, rtol=1e-12)
            rows.append({"route": name, "T": T, "seconds": seconds, "slower": seconds / hull})
    columns = {f"BPL, n = {n}, ε = {EPSILON}": "{route}", "T": "{T}", "seconds": "{seconds:.3f}"}
    show(columns | {"times slower than the hull": "{slower:,.1f}"}, rows, 110)


def over_alpha(n: int, alphas: list[float]) -> None:
    """Print the time of one evaluation at different α, without precomputation."""
    P = random_matrix(n)
    rows: list[Facts] = []
    for name, prepare in routes(max(alphas)).items():
        function = prepare(P)
        values = [function(alpha) for alpha in alphas]
        np.testing.assert_allclose(values, rows[0]["values"] if rows else values, rtol=1e-12)
        seconds = {f"at_{k}": timed(lambda f=function, a=alpha: f(a)) for k, alpha in enumerate(alphas)}
        rows.append({"route": name, "values": values, **seconds})
    columns = {f"one evaluation, n = {n}": "{route}"}
    show(columns | {f"α = {each:g}": f"{{at_{k}:.2e}}" for k, each in enumerate(alphas)}, rows, 110)


def matrices(count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the reference matrices, and random ones, by name."""
    for entry in json.loads(REFERENCE.read_text())["loss_function"]:
        rows = np.array(entry["P"], dtype=np.float64)
        # Repeating a row adds no pair of distinct rows.
        square = np.vstack([rows, np.repeat(rows[:1], rows.shape[1] - len(rows), axis=0)])
        yield f"reference {entry['name']}", square
    for seed in range(count):
        yield f"random {STATES}, seed {seed}", random_matrix(STATES, seed)


def closed_forms(P: np.ndarray) -> dict[str, Facts]:
    """Return L by the hull and by the algorithms, by route, with the seconds of the processor."""
    function = cao2019.algorithm4(P, max(ALPHAS))
    ways = {
        "hull": lambda: md.leakage.LossFunction(P, cache=False)(np.array(ALPHAS)),
        "Algorithm 1": lambda: cao2019.algorithm1(P, ALPHAS),
        "Algorithm 1 as printed": lambda: [printed_loss(P, alpha) for alpha in ALPHAS],
        "Algorithm 3": lambda: cao2019.algorithm3(P, ALPHAS),
        "Algorithm 5": lambda: cao2019.algorithm5(P, ALPHAS, function),
    }
    found = {}
    for name, way in ways.items():
        clock = time.process_time()
        values = np.asarray(way()).tolist()
        found[name] = {"values": values, "seconds": round(time.process_time() - clock, 6)}
    return found


def by_programs(P: np.ndarray, method: str, solver: str, prune: bool) -> Facts:
    """Return L by linear-fractional programs, with the seconds of the processor and the counts."""
    clock = time.process_time()
    result = loss_by_programs(P, ALPHAS, method, solver, prune)
    seconds = time.process_time() - clock
    return {
        "values": result.values.tolist(),
        "upper": result.upper.tolist(),
        "programs": result.programs.tolist(),
        "left_out": result.left_out.tolist(),
        "polished": result.polished.tolist(),
        "seconds": round(seconds, 3),
    }


def run(store: Store, count: int, part: str) -> None:
    """Run all combinations that are not stored."""
    number, parts = map(int, part.split("/"))
    here = {"origin": origin()}
    for index, (name, P) in enumerate(matrices(count)):
        if index % parts != number - 1:
            continue
        if (name, "hull") not in store.known:
            for route, values in closed_forms(P).items():
                store.add({"matrix": name, "route": route} | values | here)
        for prune, solvers in ((True, PRUNED), (False, ALL_PAIRS)):
            for method in METHODS:
                for solver in solvers:
                    route = f"{method}, {solver}, {'pruned' if prune else 'all pairs'}"
                    if (name, route) not in store.known:
                        store.add({"matrix": name, "route": route} | by_programs(P, method, solver, prune) | here)
                        print(name, route, store.rows[-1]["seconds"], flush=True)


def summary(rows: list[Facts]) -> None:
    """Write and print the largest differences from the hull, for each route and α."""
    hull = {row["matrix"]: np.array(row["values"]) for row in rows if row["route"] == "hull"}
    found: dict[str, Facts] = {}
    for row in rows:
        difference = np.abs(np.array(row["values"]) - hull[row["matrix"]])
        route = found.setdefault(row["route"], {"matrices": 0, "seconds": 0.0, "largest_difference": [0.0] * 4})
        route["matrices"] += 1
        route["seconds"] = round(route["seconds"] + row["seconds"], 3)
        route["largest_difference"] = np.maximum(route["largest_difference"], difference).tolist()
        if "upper" in row:
            bracket = float(np.max(np.array(row["upper"]) - np.array(row["values"])))
            route["largest_bracket"] = max(route.get("largest_bracket", 0.0), bracket)
            for count in ("programs", "left_out", "polished"):
                route[count] = route.get(count, 0) + sum(row[count])
    random = sum(name.startswith("random") for name in hull)
    origins = sorted({row["origin"] for row in rows})
    result = {"origins": origins, "alphas": ALPHAS, "states": STATES, "random": random}
    write(RESULT, result | {"reference": len(hull) - random, "routes": found})
    for name, route in found.items():
        print(f"{name}: {route['matrices']} matrices, {route['seconds']:.1f} s, {max(route['largest_difference']):.1e}")


def main() -> None:
    """Run one of the three."""
    given = options(__doc__, action=("time", "programs", "summary"), quick=False, matrices=100, part="1/1")
    if given.action == "time":
        pairs, n, steps = (6, 20, [1, 10]) if given.quick else (30, 100, [1, 5, 20, 100, 300])
        against_programs(pairs, 1.0)
        over_time(n, steps)
        over_alpha(n, [0.01, 0.1, 1.0, 10.0, 20.0])
        return
    store = Store(ROWS / "programs.jsonl", "matrix", "route")
    if given.action == "programs":
        run(store, given.matrices, given.part)
    else:
        summary(store.rows)


if __name__ == "__main__":
    main()
