"""Measure the numbers on the pages: ``python docs/measure.py NAME ...`` writes ``docs/results/NAME.json``.

``first_minute`` installs into fresh environments and runs the README's first command; ``solvers`` and ``sizes`` run the
benchmarks' own problems; ``same_epsilon``, ``requirements`` and ``epsilons`` design for the town of the landing page;
``costs`` measures time and memory by the number of cells, each in a separate process; ``bench`` runs the suites of
``mechdesign bench`` in ``build/bench``, where it goes on after a stop, and keeps runs in ``benchmarks/results``;
``peers`` installs and times libqif. Run it on a machine that has nothing else to do; the load found is kept with the
numbers. ``python docs/measure.py --readme`` then rewrites the table of the README.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import math
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import mechdesign as md
from mechdesign.measures._baselines import ON_CELLS, TUNED, baselines
from mechdesign.runs._families import FAMILIES, Family

DOCS = Path(__file__).parent
PROJECT = DOCS.parent
sys.path += [str(PROJECT / "benchmarks"), str(DOCS / "_ext")]

from stored import RESULTS, with_tables  # noqa: E402
from town import town  # noqa: E402

from harness import commit  # noqa: E402
from solvers.scenes import SCENES, problem, squared  # noqa: E402

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


SOLVERS = {"cvxpy-piqp": "PIQP", "cvxpy-qoco": "QOCO", "cvxpy-clarabel": "Clarabel", "highs-ipx": "HiGHS IPX"}
_PROBLEMS = {"squared": "", "squared-floor": ", a floor"}
# Rows, families and sizes, seeds, and solvers: the longest programs are solved once, and not by all.
_RUNS: tuple[tuple[Any, dict[str, tuple[int, ...]], tuple[int, ...], list[str]], ...] = (
    ("reduced", {"squared": (36, 64), "squared-floor": (36,)}, (0, 1, 2), ["auto", *SOLVERS]),
    ("lazy", {"squared": (36, 64, 100), "squared-floor": (36,)}, (0, 1, 2), ["auto", *SOLVERS]),
    ("reduced", {"squared-floor": (64,)}, (0, 1, 2), ["auto", "highs-ipx"]),
    ("lazy", {"squared-floor": (64,)}, (0, 1, 2), ["highs-ipx"]),
    ("reduced", {"squared-floor": (64,)}, (0,), ["cvxpy-piqp", "cvxpy-qoco", "cvxpy-clarabel"]),
    ("reduced", {"squared": (100,)}, (0,), ["cvxpy-piqp"]),
)
_STORED = PROJECT / "benchmarks" / "results" / "solvers.csv"


def solvers() -> Table:
    """Run peers on metric privacy with squared error; each gets its rows at once, and added where they are violated."""
    for name, floor in _PROBLEMS.items():
        make = functools.partial(squared, floor=bool(floor))
        FAMILIES[name] = Family(name, f"squared error{floor}", {"epsilon": "1 per km"}, make)
    folder, found = PROJECT / "build" / "bench" / "solvers", list[Any]()
    for rows, sizes, seeds, names in _RUNS:
        suite = md.bench.Suite("solvers", sizes, seeds, time_limit=400.0, memory=8.0)
        found += [row for row in md.bench.run(suite, names, folder, rows=rows) if row not in found]
    with _STORED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    return compare_solvers()


def compare_solvers() -> Table:
    """Return medians of processor seconds over the priors, and the largest tight ε, of the stored runs."""
    with _STORED.open(encoding="utf-8", newline="") as file:
        groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in csv.DictReader(file):
            groups.setdefault((row["family"], row["n"], row["solver"], row["given"]), []).append(row)
    runs: dict[tuple[str, ...], dict[str, tuple[bool, float, str, float]]] = {}
    values: dict[str, float] = {}
    for (family, n, solver, given), mine in sorted(groups.items(), key=lambda each: (each[0][0], int(each[0][1]))):
        solved = all(row["rounded"] == "optimal" and row["ended"] == "done" for row in mine)
        seconds = float(np.median([float(row["processor_s"]) for row in mine]))
        epsilon = max(float(row["tight_epsilon"] or "nan") for row in mine)
        best = runs.setdefault((family, n), {})
        best[solver] = min(best.get(solver, (True, math.inf, "", 0.0)), (not solved, seconds, given, epsilon))
        if solved:
            values |= {f"{family}, {n}, {solver}, {given}": seconds, f"{family}, {n}, {solver}, {given}, ε": epsilon}
    table = []
    for (family, n), best in runs.items():
        ours = best["auto"][1]
        cells = [f"{n} places{_PROBLEMS[family]}", f"{ours:.2f} s"]
        for solver in SOLVERS:
            stopped, seconds, given, epsilon = best[solver]
            said = f"{seconds / ours:.1f} times{' lazily' if given == 'lazy' else ''}"
            said += f", ε = {'∞' if math.isinf(epsilon) else f'{epsilon:.2f}'}"
            cells.append(f"> {seconds / ours:.0f} times" if stopped else said)
        table.append(cells)
    return ["ε = 1 per km, squared error", "mechdesign", *SOLVERS.values()], table, values


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
    for suite in ("medium", "large"):
        folder = PROJECT / "build" / "bench" / suite
        md.bench.run(suite, None, folder)
        shutil.copyfile(folder / "results.csv", PROJECT / "benchmarks" / "results" / f"bench-{suite}.csv")
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
    script = [sys.executable, str(PROJECT / "benchmarks" / "solvers" / "peers_qif.py")]
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


def same_epsilon() -> Table:
    """Compare the mean errors of mechanisms at the same ε, for the town of the landing page."""
    epsilon = 1.0
    asked = town(epsilon)
    made = md.design(asked)
    found = {item.name: item for item in baselines(asked)}
    tuned = f"{TUNED}, λ = {found[TUNED].rate:.2f}"
    names = {
        ON_CELLS: ON_CELLS,
        "planar Laplace, remapped": "planar Laplace, each output replaced by the best answer",
        TUNED: tuned,
        f"{TUNED}, remapped": f"{tuned}, each output replaced by the best answer",
        "no information: always the same answer": "always the same answer",
    }
    # The mean length of planar Laplace noise is 2/ε; its outputs are points of the plane.
    errors = {"planar Laplace, any point of the plane": 2 / epsilon}
    errors |= {label: found[name].cost for name, label in names.items()}
    least = made.certificate.cost
    values = {"optimal": least, "optimal, gap": made.certificate.relative_gap} | errors
    values |= {f"{label}, less": 1 - least / error for label, error in errors.items()}
    rows = [["**optimal channel**", f"**{least:.2f} km**", ""]]
    rows += [[label, f"{error:.2f} km", f"{1 - least / error:.0%}"] for label, error in errors.items()]
    return ["ε = 1 per km, 48 cells", "mean error", "the optimum is lower by"], rows, values


def requirements() -> Table:
    """Design for each kind of requirement, for the town of the landing page."""
    asked = town(1.0)
    cells, distance, prior = asked.secrets, asked.cost, asked.prior
    assert cells is not None
    x, y = cells.points.T
    district = (x > 4) + 2 * (y > 3)
    anchors = md.Domain.anchors(columns=17, rows=13, width=8.0, height=6.0, unit="km")
    metric = md.MetricPrivacy(1, distance)
    floor = md.DistortionPrivacy("1.3", distance)
    stated: dict[str, list[Any]] = {
        "metric, ε = 1 per km": [metric],
        "threshold, ε = 1 within 1.5 km": [md.ThresholdPrivacy(1, distance, 1.5)],
        "graph, ε = 1 between cells that touch": [md.GraphPrivacy(1, md.graphs.neighbours8(cells))],
        "graph, ε = 1 within each of four districts": [md.GraphPrivacy(1, md.graphs.categories(district))],
        "distortion, best attack off by 1.3 km": [floor],
        "metric and distortion together": [metric, floor],
    }
    problems = {
        name: md.Problem(prior, distance, kinds, secrets=cells, observables=cells) for name, kinds in stated.items()
    }
    problems["continuous, ε = 1 per km, anchors 500 m apart"] = md.Problem.from_visits(
        cells.points, cells, requirements=[md.ContinuousPrivacy(1, anchors)], cost="euclidean", weights=prior
    )
    rows, values = [], {}
    for name, each in problems.items():
        # Distortion alone bounds no pair, which a warning says.
        with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
            made = md.design(each, tolerance=1e-3)
        revealed = len(made.certificate.revealed)
        values |= {name: made.certificate.cost, f"{name}, gap": made.certificate.relative_gap}
        rows.append([name, f"{made.certificate.cost:.2f} km", f"{revealed} of {len(each.prior)}"])
    return ["requirement", "mean error", "secrets that an answer reveals"], rows, values


def epsilons() -> Table:
    """Sweep ε for the town of the landing page."""
    rows, values = [], {}
    nothing = next(item.cost for item in baselines(town(1.0)) if item.name.startswith("no information"))
    for epsilon in (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0):
        made = md.design(town(epsilon), tolerance=1e-4)
        found = made.certificate.cost
        values |= {f"{epsilon:g}": found, f"{epsilon:g}, gap": made.certificate.relative_gap}
        factors = [f"{x:.3g}" if x < 1000 else f"{x:,.0f}" for x in np.exp(epsilon * np.array([0.5, 1.0, 2.0]))]
        rows.append([f"{epsilon:g} per km", *factors, f"{found:.2f} km", f"{1 - found / nothing:.0%}"])
    values["nothing"] = nothing
    rows.append(["0: always the same answer", "1", "1", "1", f"{nothing:.2f} km", "0%"])
    head = ["ε", "factor at 0.5 km", "at 1 km", "at 2 km", "mean error", "below always the same answer"]
    return head, rows, values


def costs() -> Table:
    """Measure design and verification of metric privacy between all pairs, each size in a separate process."""
    rows, values = [], {}
    for columns, lines in ((8, 6), (10, 10), (20, 10), (20, 15), (25, 20)):
        command = [sys.executable, __file__, "--one", f"{columns}x{lines}"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = json.loads(output.splitlines()[-1])
        cells = columns * lines
        values |= {f"{cells}, {name}": value for name, value in found.items()}
        row = [
            f"{cells}",
            f"{cells * (cells - 1) * cells:,}",
            _seconds(found["design"]),
            f"{found['memory'] / 1e9:.1f} GB",
        ]
        rows.append([*row, _seconds(found["verify"]), f"{found['bundle'] / 1e6:.1f} MB", f"{found['gap']:.0e}"])
    head = ["cells", "inequalities", "design, processor time", "memory", "verify, processor time", "bundle", "gap"]
    return head, rows, values


def _measure_one(grid: str) -> dict[str, float]:
    """Design, save and verify the problem of a grid; the peak memory is that of this process."""
    columns, lines = (int(part) for part in grid.split("x"))
    asked = problem(columns, lines)
    begun = time.process_time()
    made = md.design(asked, solver="block", options={"symmetry": False})
    designed = time.process_time()
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        md.save(made, f"{folder}/bundle", report=False)
        size = sum(file.stat().st_size for file in Path(folder, "bundle").iterdir())
        saved = time.process_time()
        md.verify(f"{folder}/bundle")
        verified = time.process_time()
    return {
        "design": designed - begun,
        "memory": peak,
        "verify": verified - saved,
        "bundle": size,
        "gap": made.certificate.relative_gap,
    }


MEASUREMENTS: dict[str, Callable[[], Table]] = {
    "first_minute": first_minute,
    "solvers": solvers,
    "sizes": sizes,
    "bench": bench,
    "peers": peers,
    "same_epsilon": same_epsilon,
    "requirements": requirements,
    "epsilons": epsilons,
    "costs": costs,
}


def machine() -> dict[str, Any]:
    """Return what numbers depend on, beside the package."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), flags=re.M)
    return {
        "date": date.today().isoformat(),
        "commit": commit(),
        "processor": found[1] if found else platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mechdesign": md.__version__,
    }


def main() -> None:
    """Run the named measurements, or write the README's tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MEASUREMENTS])
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measure_one(arguments.one)))
        return
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
