"""Measure what the documentation quotes: ``python docs/measure.py NAME ...`` writes ``docs/results/NAME.json``.

``first_minute`` installs into fresh environments and runs the README's first command; ``highs`` and ``sizes`` run the
benchmarks' own problems; ``bench`` runs the suites of ``mechdesign bench`` in ``build/bench``, where it goes on after a
stop, and keeps their tables in ``benchmarks/results``; ``peers`` installs and times libqif. Run it on a machine that
has nothing else to do; the load found is kept with the numbers. The README's tables are then written anew by
``python docs/measure.py --readme``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import mechdesign as md

DOCS = Path(__file__).parent
PROJECT = DOCS.parent
sys.path += [str(PROJECT / "benchmarks"), str(DOCS / "_ext")]

from stored import RESULTS, with_tables  # noqa: E402

from block_scenes import SCENES, problem  # noqa: E402
from scenes import scene, side_by_side  # noqa: E402

Table = tuple[list[str], list[list[str]], dict[str, float]]


def first_minute() -> Table:
    """Time the README's first command, with Numba and without."""
    rows, values = [], {}
    for name, extras in (("with Numba", "[fast]"), ("without Numba", "")):
        with tempfile.TemporaryDirectory() as folder:
            clock = time.perf_counter()
            subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
            pip = [f"{folder}/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, f"{PROJECT}{extras}"], check=True)
            installed = time.perf_counter()
            subprocess.run([f"{folder}/venv/bin/mechdesign", "design"], check=True, cwd=folder, capture_output=True)
            designed = time.perf_counter()
        values |= {f"install {name}": installed - clock, f"design {name}": designed - installed}
        rows.append([name, _seconds(installed - clock), _seconds(designed - installed)])
    return ["", "install", "`mechdesign design`"], rows, values


def highs() -> Table:
    """Time HiGHS with all rows beside the block method on metric privacy; every answer is certified."""
    contestants: dict[str, dict[str, Any]] = {
        "HiGHS IPX, all rows": {"solver": "highs-ipx", "rows": "all"},
        "HiGHS IPX, lazy rows": {"solver": "highs-ipx", "rows": "lazy"},
        "block method, no symmetry": {"solver": "block", "options": {"symmetry": False}},
        "block method": {"solver": "block"},
    }
    # What is compiled and loaded once is not the contestants' own time.
    for asked in contestants.values():
        md.design(scene(5).problem, tolerance=1e-6, **asked)
    rows, values = [], {}
    for side in (6, 8):
        for cost in ("euclidean", "hamming"):
            made = scene(side, cost).problem
            gaps: dict[str, float] = {}

            def run(name: str, made: md.Problem = made, gaps: dict[str, float] = gaps) -> None:
                gaps[name] = md.design(made, tolerance=1e-6, **contestants[name]).certificate.relative_gap

            timed = side_by_side({name: lambda name=name: run(name) for name in contestants}, 1 if side == 8 else 3)
            seconds = {name: float(np.median(found)) for name, found in timed.items()}
            label = f"{side * side} secrets, {cost.capitalize()} cost"
            values |= {f"{label}, {name}": found for name, found in seconds.items()}
            values |= {f"{label}, {name}, gap": found for name, found in gaps.items()}
            first = seconds["HiGHS IPX, all rows"]
            times = [f"{first / found:.1f} times faster" for found in list(seconds.values())[1:]]
            rows.append([label, _seconds(first), *times])
    return ["metric privacy, ε = 0.6 per cell", *contestants], rows, values


def sizes() -> Table:
    """Time the block method at 300 secrets, with Numba and with NumPy alone, without symmetry."""
    rows, values = [], {}
    for name in ("differential", "differential, Hamming"):
        asked = problem(20, 15, *SCENES[name])
        cost = "Hamming" if "Hamming" in name else "Euclidean"
        row = [f"metric privacy, {cost} cost"]
        for arrays in ("numba", "numpy"):
            clock = time.perf_counter()
            made = md.design(asked, solver="block", tolerance=1e-6, options={"symmetry": False, "arrays": arrays})
            spent = time.perf_counter() - clock
            values |= {f"{name}, {arrays}": spent, f"{name}, {arrays}, gap": made.certificate.relative_gap}
            row.append(_seconds(spent))
        rows.append([*row, f"{made.certificate.relative_gap:.0e}"])
    return ["300 secrets, all 26.9 million rows", "with Numba", "NumPy alone", "certified gap"], rows, values


def bench() -> Table:
    """Run the medium and the large suite with every solver that is installed."""
    columns, scores, values = ["solver"], {}, {}
    for suite in ("small", "medium", "large"):
        folder = PROJECT / "build" / "bench" / suite
        md.bench.run(suite, None, folder, resume=True)
        for source, target in (
            ("results.csv", f"bench-{suite}.csv"),
            ("scores.csv", f"bench-{suite}-scores.csv"),
            ("environment.json", f"bench-{suite}-environment.json"),
        ):
            shutil.copyfile(folder / source, PROJECT / "benchmarks" / "results" / target)
        with (folder / "scores.csv").open(encoding="utf-8", newline="") as file:
            scores[suite] = {row["solver"]: row for row in csv.DictReader(file)}
    for suite, limit in (("medium", "20 s"), ("large", "60 s")):
        columns += [f"{suite}, {limit}: solved", "“optimal”, not private", "otherwise wrong", "mean"]
        for solver, row in scores[suite].items():
            values |= {f"{suite}, {solver}, {name}": float(row[name]) for name in row if name != "solver" and row[name]}
    rows = []
    for solver in scores["medium"]:
        cells = [solver]
        for suite in ("medium", "large"):
            row = scores[suite][solver]
            cells += [f"{row['solved']} of {row['runs']}", row["not_private"], row["wrong"]]
            cells.append(_seconds(float(row["censored_mean"])))
        rows.append(cells)
    return columns, rows, values


def peers() -> Table:
    """Time libqif on the same grids, in an environment of its own; what it returns is judged as it is."""
    kept = PROJECT / "benchmarks" / "results" / "peers-qif.csv"
    script = [sys.executable, str(PROJECT / "benchmarks" / "peers_qif.py")]
    subprocess.run([*script, "--sizes", "16", "25", "36", "49", "--time-limit", "60", "-o", str(kept)], check=True)
    with kept.open(encoding="utf-8", newline="") as file:
        found = {(int(row["n"]), row["solver"]): row for row in csv.DictReader(file)}
    rows, values = [], {}
    for n in sorted({n for n, _ in found}):
        theirs, ours = found[n, "qif"], found[n, "mechdesign"]
        values |= {f"{n}, {name}": float(found[n, name]["solve_s"]) for name in ("qif", "mechdesign")}
        gap = float(ours["cost"]) / float(ours["lower_bound"]) - 1
        excess = f"{float(theirs['tight_epsilon']) / 0.6 - 1:.0e}" if theirs["tight_epsilon"] else theirs["claimed"]
        seconds = [_seconds(values[f"{n}, {name}"]) for name in ("qif", "mechdesign")]
        rows.append([f"{n} secrets", *seconds, excess, f"private, gap {gap:.0e}"])
    return ["metric privacy, ε = 0.6 per cell", "libqif", "mechdesign", "ε too high by", "certified"], rows, values


MEASUREMENTS: dict[str, Callable[[], Table]] = {
    "first_minute": first_minute,
    "highs": highs,
    "sizes": sizes,
    "bench": bench,
    "peers": peers,
}


def machine() -> dict[str, Any]:
    """Return what numbers depend on, beside the package."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), flags=re.M)
    return {
        "date": date.today().isoformat(),
        "processor": found[1] if found else platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mechdesign": md.__version__,
    }


def main() -> None:
    """Measure what is named, or write the README's tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MEASUREMENTS])
    parser.add_argument("--readme", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.names:
        # Before the load is our own.
        kept = {"command": f"python docs/measure.py {name}", "machine": machine()}
        columns, rows, values = MEASUREMENTS[name]()
        kept |= {"table": {"columns": columns, "rows": rows}, "values": values}
        (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name)
    if arguments.readme:
        readme = PROJECT / "README.md"
        readme.write_text(with_tables(readme.read_text(encoding="utf-8")), encoding="utf-8")


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


if __name__ == "__main__":
    main()
