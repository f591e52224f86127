"""Backward elimination of the block method's constants: each mechanism is switched off by itself, on several scenes.

    python benchmarks/eliminate_constants.py run [--scenes NAME ...] [--switches NAME ...] [--times 1] [--long]
    python benchmarks/eliminate_constants.py show

Every run is a separate process with one thread. The row of a run (iterations, processor seconds, peak memory, final
gap) is appended to `results/elimination.jsonl` as soon as it ends. Runs whose rows are stored are not repeated. `show`
prints the geometric means for each switch as multiples of the run with all constants, on the same scenes. It also names
each run that fails, stalls or takes more than `TIMEOUT_S`: the mechanism of such a run is needed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import mechdesign as md
import record_solves
from block_sizes import problem
from mechdesign.solve._blocks.column_generation import solve_block_program
from mechdesign.solve._blocks.tuning import TUNING, Tuning
from mechdesign.solve._contract import Options
from mechdesign.synthesis._blocks import BlockReduction
from mechdesign.synthesis._normal import normalise
from stopped_early import scene

ROWS = Path(__file__).parent / "results" / "elimination.jsonl"
TIMEOUT_S = 1800.0
GAP, ROAD_GAP = 1e-6, 1e-5
BASE = "all constants"
OFF = 10**9


def _change(**changes: dict[str, Any]) -> Callable[[Tuning], Tuning]:
    """Return a function that changes the given fields of each part of a tuning."""
    return lambda tuning: replace(
        tuning, **{part: replace(getattr(tuning, part), **values) for part, values in changes.items()}
    )


MERGING = TUNING.merging
SWITCHES: dict[str, Callable[[Tuning], Tuning]] = {
    BASE: lambda tuning: tuning,
    "no trial solve": _change(trial={"min_rows": OFF}),
    "no coarse problems": _change(merging={"coarse_min_rows": OFF}),
    "no merging": _change(merging={"with_floors": (), "without_floors": (), "sparse": ()}),
    "no bound correction": _change(correction={"few": 0.0, "max_loss": 0.0}),
    "no near bounds": _change(pricing={"near_min_rows": OFF}),
    "all estimates active": _change(estimates={"active_slack": math.inf, "chosen_slack": math.inf}),
    "one neighbour": _change(pricing={"neighbours": 1}),
    "one slack of estimates": _change(pricing={"similar_slack": TUNING.estimates.active_slack}),
    "one coarse schedule": _change(merging={"coarse_large": MERGING.coarse, "loose_factor": 1.0}),
    "one schedule with floors": _change(merging={"with_floors": MERGING.sparse}),
    "one schedule for all": _change(merging={"with_floors": MERGING.sparse, "without_floors": MERGING.sparse}),
    "merging as strict in each round": _change(generation={"merge_care": 1.0}),
    "inactive floors count": _change(generation={"inactive_floor": 0.0}),
    "no loose gap": _change(generation={"loose_gap": 0.0}),
    "one column enters": _change(generation={"min_entering_limit": 1}),
    "repair at any gap": _change(interior_point={"repair_gap": math.inf}),
    "one patience": _change(interior_point={"patience": ((-1.0, 5),)}),
    "no multipliers dropped": _change(interior_point={"dropped_share": 0.0}),
    "no column generation": lambda tuning: tuning,
    "all together": _change(
        correction={"few": 0.0, "max_loss": 0.0},
        pricing={"near_min_rows": OFF, "neighbours": 1, "similar_slack": TUNING.estimates.active_slack},
        merging={"coarse_large": MERGING.coarse, "loose_factor": 1.0, "with_floors": MERGING.sparse},
        generation={"merge_care": 1.0, "inactive_floor": 0.0, "loose_gap": 0.0, "min_entering_limit": 1},
        interior_point={"repair_gap": math.inf, "patience": ((-1.0, 5),), "dropped_share": 0.0},
    ),
}


def reduce_problem(stated: md.Problem) -> Any:
    """Return the block program of a problem."""
    return BlockReduction().apply(normalise(stated))[0]


def make_squared_city() -> Any:
    """Return a city with a floor and squared costs: with plain costs, the floor itself is the optimum."""
    city = scene(15, 12)
    return reduce_problem(md.Problem(city.prior, city.cost**2, city.requirements))


SCENES: dict[str, Callable[[], Any]] = {
    "city with floor, 180 cells": make_squared_city,
    "city, 210 cells": lambda: reduce_problem(problem(15, 14, "euclidean", "differential")),
    "Hamming, 210 cells": lambda: reduce_problem(problem(15, 14, "hamming", "differential")),
    "worst cost, 80 cells": lambda: reduce_problem(problem(10, 8, "euclidean", "worst")),
    "two adversaries, 154 cells": lambda: record_solves._block_program(record_solves._two_adversaries(14, 11)),
    "300 road places": lambda: record_solves._block_program(record_solves._road_program(300, 5)),
}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LONG: dict[str, Callable[[], Any]] = {
    "city with floor, 300 cells": lambda: record_solves._block_program(record_solves._city(20, 15, 0.8, 0.8)),
    "city with floor, 576 cells": lambda: record_solves._block_program(record_solves._city(24, 24, 0.8, 0.8)),
    "city with floor, 840 cells": lambda: record_solves._block_program(record_solves._city(30, 28, 0.8, 0.8)),
    "900 road places": lambda: record_solves._block_program(record_solves._road_program(900, 5)),
}


def measure(name: str, switch: str) -> dict[str, Any]:
    """Solve one scene with one switch, and return the facts."""
    program = {**SCENES, **LONG}[name]()
    generation = switch != "no column generation" and bool(program.floors)
    options = Options(threads=1, extra={"generation": generation})
    clock = time.process_time()
    solution = solve_block_program(
        program, options, gap=ROAD_GAP if "road" in name else GAP, tuning=SWITCHES[switch](TUNING)
    )
    return {
        "iterations": len(solution.history),
        "seconds": round(time.process_time() - clock, 2),
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "gap": solution.gap,
        "status": solution.status.name,
    }


def read_rows() -> list[dict[str, Any]]:
    """Return the stored rows."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()] if ROWS.exists() else []


def run(scenes: list[str], switches: list[str], times: int) -> None:
    """Run the rows that are not stored, each in a separate process."""
    done = [(row["scene"], row["switch"]) for row in read_rows()]
    for repetition in range(times):
        for name in scenes:
            for switch in switches:
                if done.count((name, switch)) > repetition:
                    continue
                command = [sys.executable, __file__, "one", "--scenes", name, "--switches", switch]
                row: dict[str, Any] = {"scene": name, "switch": switch}
                try:
                    output = subprocess.run(
                        command,
                        check=True,
                        capture_output=True,
                        text=True,
                        timeout=TIMEOUT_S,
                        env=os.environ | ONE_THREAD,
                    )
                    row |= json.loads(output.stdout.splitlines()[-1])
                except subprocess.TimeoutExpired:
                    row["status"] = f"no end within {TIMEOUT_S:g} s"
                except subprocess.CalledProcessError as error:
                    row["status"] = error.stderr.strip().splitlines()[-1][:200]
                with ROWS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)


def show() -> None:
    """Print the geometric means of each switch relative to all constants, and the runs that fail."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in read_rows():
        rows.setdefault((row["scene"], row["switch"]), []).append(row)
    print(f"{'switch':34} scenes  iterations  seconds  memory  failures")
    for switch in SWITCHES:
        ratios: dict[str, list[float]] = {"iterations": [], "seconds": [], "peak_bytes": []}
        failures = []
        for name in {**SCENES, **LONG}:
            found, base = rows.get((name, switch), []), rows.get((name, BASE), [])
            if not found or not base:
                continue
            if any(row["status"] != "OPTIMAL" for row in found):
                failures.append(f"{name}: {found[-1]['status']}")
                continue
            for key, values in ratios.items():
                median, whole = (statistics.median(row[key] for row in group) for group in (found, base))
                values.append(max(median, 1e-2) / max(whole, 1e-2))
        if ratios["seconds"]:
            means = [f"{statistics.geometric_mean(values):9.2f}" for values in ratios.values()]
            print(f"{switch:34} {len(ratios['seconds']):6}  {' '.join(means)}  {'; '.join(failures)}")
        elif failures:
            print(f"{switch:34}      0  {'; '.join(failures)}")


def main() -> None:
    """Run the scenes, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "one", "show"))
    parser.add_argument("--scenes", nargs="+", choices=[*SCENES, *LONG])
    parser.add_argument("--switches", nargs="+", choices=list(SWITCHES), default=list(SWITCHES))
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="the long scenes, in place of the short ones")
    arguments = parser.parse_args()
    scenes = arguments.scenes or list(LONG if arguments.long else SCENES)
    if arguments.action == "one":
        print(json.dumps(measure(scenes[0], arguments.switches[0])))
    elif arguments.action == "run":
        run(scenes, arguments.switches, arguments.times)
    else:
        show()


if __name__ == "__main__":
    main()
