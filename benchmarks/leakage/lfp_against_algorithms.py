"""The loss function by linear-fractional programs against Algorithms 1, 3 and 5 and the hull (Cao et al. 2019, 6.1).

    python benchmarks/leakage/lfp_against_algorithms.py run [--matrices 100] [--part I/K]
    python benchmarks/leakage/lfp_against_algorithms.py show

The matrices are random with 30 states, as in the paper, and those of the reference values. For each matrix, L(α) is
computed for α = 0.1, 1, 5 and 10 by both methods on two back ends. Each ordered pair of rows has its own program. Two
more back ends solve only the pairs that remain after pruning. The rows of a matrix are appended to
`results/lfp_against_algorithms.jsonl` as soon as they are known, and stored rows are not run again. `--part 1/2` takes
every second matrix, for two processes. `show` writes `results/lfp_against_algorithms.json`: the largest difference of
each route from the hull for each α, with seconds and counts.

Algorithm 1 is also run as printed. Algorithms 2, 3 and 5 as printed differ from the mended ones only for ties and for
entries of 0, and are not run. The printed recursion of Algorithm 4 on [α1, αm] does not end.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mechdesign as md
from mechdesign.leakage import cao2019, loss_by_programs
from papers.errata_runs import printed_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from leakage.leakage_matrices import random_matrix

FOLDER = Path(__file__).parents[1] / "results"
ROWS, RESULT = FOLDER / "lfp_against_algorithms.jsonl", FOLDER / "lfp_against_algorithms.json"
REFERENCE = Path(__file__).parents[2] / "tests" / "reference" / "leakage.json"
ALPHAS = (0.1, 1.0, 5.0, 10.0)
STATES = 30
METHODS = ("charnes-cooper", "dinkelbach")
ALL_PAIRS, PRUNED = ("highs-simplex", "highs-ipx"), ("highs-simplex", "highs-ipx", "scipy", "cvxpy")


def matrices(count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the reference matrices, and random ones, by name."""
    for entry in json.loads(REFERENCE.read_text())["loss_function"]:
        rows = np.array(entry["P"], dtype=np.float64)
        # Repeating a row adds no pair of distinct rows.
        square = np.vstack([rows, np.repeat(rows[:1], rows.shape[1] - len(rows), axis=0)])
        yield f"reference {entry['name']}", square
    for seed in range(count):
        yield f"random {STATES}, seed {seed}", random_matrix(STATES, seed)


def closed_forms(P: np.ndarray) -> dict[str, dict[str, Any]]:
    """Return L by the hull and by the algorithms, by route, with the seconds of the processor."""
    function = cao2019.algorithm4(P, max(ALPHAS))
    routes = {
        "hull": lambda: md.leakage.LossFunction(P, cache=False)(np.array(ALPHAS)),
        "Algorithm 1": lambda: cao2019.algorithm1(P, ALPHAS),
        "Algorithm 1 as printed": lambda: [printed_loss(P, alpha) for alpha in ALPHAS],
        "Algorithm 3": lambda: cao2019.algorithm3(P, ALPHAS),
        "Algorithm 5": lambda: cao2019.algorithm5(P, ALPHAS, function),
    }
    found = {}
    for name, route in routes.items():
        clock = time.process_time()
        values = np.asarray(route()).tolist()
        found[name] = {"values": values, "seconds": round(time.process_time() - clock, 6)}
    return found


def by_programs(P: np.ndarray, method: str, solver: str, prune: bool) -> dict[str, Any]:
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


def run(count: int, part: str) -> None:
    """Run all combinations that are not stored."""
    number, parts = (int(each) for each in part.split("/"))
    stored = {(row["matrix"], row["route"]) for row in read_rows()}
    for index, (name, P) in enumerate(matrices(count)):
        if index % parts != number - 1:
            continue
        if (name, "hull") not in stored:
            for route, values in closed_forms(P).items():
                _append({"matrix": name, "route": route} | values)
        for prune, solvers in ((True, PRUNED), (False, ALL_PAIRS)):
            for method in METHODS:
                for solver in solvers:
                    route = f"{method}, {solver}, {'pruned' if prune else 'all pairs'}"
                    if (name, route) not in stored:
                        _append({"matrix": name, "route": route} | by_programs(P, method, solver, prune))


def read_rows() -> list[dict[str, Any]]:
    """Return the stored rows; a line without its end was interrupted and does not count."""
    lines = ROWS.read_text(encoding="utf-8").splitlines(keepends=True) if ROWS.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _append(row: dict[str, Any]) -> None:
    with ROWS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(row["matrix"], row["route"], row["seconds"], flush=True)


def show() -> None:
    """Write and print the largest differences from the hull, for each route and α."""
    rows = read_rows()
    hull = {row["matrix"]: np.array(row["values"]) for row in rows if row["route"] == "hull"}
    routes: dict[str, dict[str, Any]] = {}
    for row in rows:
        difference = np.abs(np.array(row["values"]) - hull[row["matrix"]])
        route = routes.setdefault(row["route"], {"matrices": 0, "seconds": 0.0, "largest_difference": [0.0] * 4})
        route["matrices"] += 1
        route["seconds"] = round(route["seconds"] + row["seconds"], 3)
        route["largest_difference"] = np.maximum(route["largest_difference"], difference).tolist()
        if "upper" in row:
            bracket = float(np.max(np.array(row["upper"]) - np.array(row["values"])))
            route["largest_bracket"] = max(route.get("largest_bracket", 0.0), bracket)
            for count in ("programs", "left_out", "polished"):
                route[count] = route.get(count, 0) + sum(row[count])
    random = sum(name.startswith("random") for name in hull)
    result = {"alphas": ALPHAS, "states": STATES, "random": random, "reference": len(hull) - random, "routes": routes}
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, route in routes.items():
        print(f"{name}: {route['matrices']} matrices, {route['seconds']:.1f} s, {max(route['largest_difference']):.1e}")


def main() -> None:
    """Run or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "show"))
    parser.add_argument("--matrices", type=int, default=100)
    parser.add_argument("--part", default="1/1", metavar="I/K")
    arguments = parser.parse_args()
    if arguments.action == "run":
        run(arguments.matrices, arguments.part)
    else:
        show()


if __name__ == "__main__":
    main()
