"""Column generation compared with all blocks at once: the example city and real check-ins, 300 cells, joint.

    python benchmarks/solvers/block_generation.py [--arrays numpy] [--repeat 3] [--old CHECKOUT] [--data FOLDER]
    python benchmarks/solvers/block_generation.py --large joint
    python benchmarks/solvers/block_generation.py --random 1000

Each run is a separate process, and the methods alternate. Wall times, including rounding and certificate, are medians.
`--old` names a checkout of an earlier commit, which solves the same specifications. `--large` designs 32 × 32 cells
without symmetry, with all 1.07 billion inequalities, to a gap of 10⁻⁴, and verifies the bundle. The scene "joint" of
`--large` is the same city; its scene "differential" is that of `block_sizes.py`. `--random` solves the given number of
small programs of all kinds by both methods and by HiGHS on all rows. It compares the brackets of their optimal values.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.block_scenes import checkins
from solvers.block_sizes import problem as sized

HERE = Path(__file__).resolve().parent
CITY = HERE.parents[1] / "mechdesign" / "specification" / "examples" / "city-300.toml"
DATA = Path(os.environ.get("MECHDESIGN_DATA") or HERE.parents[2] / "shared" / "data")
WAYS = {
    "few at a time": {"generation": True, "symmetry": False},
    "at once": {"generation": False, "symmetry": False},
    "old": {"symmetry": False},
}
# This code runs in a separate process with this or an older checkout, so it uses only names that exist in both.
RUN = """
import json, sys, time
sys.path[:0] = [{root!r}]
import numpy as np
import mechdesign as md
scene, tolerance, options = np.load({scene!r}), {tolerance!r}, {options!r}
apart, least = md.MetricPrivacy("1", scene["apart"]), md.DistortionPrivacy(float(scene["minimum"]), scene["error"])
problem = md.Problem(scene["prior"], scene["cost"], [apart, least])
clock, spent = time.perf_counter(), time.process_time()
certificate = md.design(problem, solver="block", tolerance=tolerance, options=options).certificate
clock, spent = time.perf_counter() - clock, time.process_time() - spent
print(json.dumps([clock, spent, certificate.expected_cost, certificate.relative_gap]))
"""


def city() -> md.Problem:
    """Return the problem of the example "city-300"."""
    return md.read_spec(CITY).problem()


def store(problem: md.Problem, path: Path) -> Path:
    """Write the arrays of a joint problem, so that older versions can read it."""
    metric, distortion = problem.requirements
    assert isinstance(metric, md.MetricPrivacy)
    assert isinstance(distortion, md.DistortionPrivacy)
    assert metric.epsilon == 1
    np.savez(
        path, prior=problem.prior, cost=problem.cost, apart=metric.distance,
        minimum=float(distortion.minimum), error=distortion.distance,
    )  # fmt: skip
    return path


def run(scene: Path, way: str, tolerance: float, root: Path, arrays: str | None) -> list[float]:
    """Design once in a separate process; return wall seconds, processor seconds, cost and relative gap."""
    options = {**WAYS[way], **({"arrays": arrays} if arrays else {})}
    code = RUN.format(root=str(root), scene=str(scene), tolerance=tolerance, options=options)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return list(json.loads(output.stdout.splitlines()[-1]))


def compare(arguments: argparse.Namespace) -> None:
    """Print a table of medians."""
    ways = [("few at a time", 1e-6), ("few at a time", 1e-2)]
    if not arguments.few:
        ways.append(("at once", 1e-6))
    roots = dict.fromkeys(("few at a time", "at once"), HERE.parents[1])
    if arguments.old:
        ways.append(("old", 1e-6))
        roots["old"] = arguments.old.resolve()
    table = Table("scene", "way", "tolerance", "seconds", "of", "CPU", "cost", "gap")
    scenes = {"city": city()}
    if arguments.data.is_dir():
        scenes["check-ins"] = checkins(arguments.data, 20, 15)
    for scene, problem in scenes.items():
        found: dict[tuple[str, float], list[list[float]]] = {each: [] for each in ways}
        with tempfile.TemporaryDirectory() as folder:
            path = store(problem, Path(folder) / "scene.npz")
            for _ in range(arguments.repeat):
                for way, tolerance in ways:
                    found[way, tolerance].append(run(path, way, tolerance, roots[way], arguments.arrays))
        for (way, tolerance), runs in found.items():
            seconds = sorted(each[0] for each in runs)
            spread = f"{seconds[0]:.1f} to {seconds[-1]:.1f}"
            spent = statistics.median(each[1] for each in runs)
            cost, gap = runs[-1][2:]
            times = f"{statistics.median(seconds):.1f}", spread, f"{spent:.1f}"
            values = [f"{tolerance:g}", *times, f"{cost:.7g}", f"{gap:.0e}"]
            table.add_row(scene, way, *values)
    Console(width=110).print(table)


def large_problem(kind: str, folder: Path) -> md.Problem:
    """Return a problem with 1,024 cells."""
    if kind == "differential":
        return sized(32, 32, "euclidean", kind)
    text = CITY.read_text(encoding="utf-8").replace("columns = 20, rows = 15", "columns = 32, rows = 32")
    path = folder / "city.toml"
    path.write_text(text, encoding="utf-8")
    return md.read_spec(path).problem()


def large(kind: str) -> None:
    """Design 1,024 cells, save and verify the bundle; print time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        problem = large_problem(kind, Path(folder))
        clock, spent = time.perf_counter(), time.process_time()
        design = md.design(problem, solver="block", tolerance=1e-4, options={"symmetry": False})
        clock, spent = time.perf_counter() - clock, time.process_time() - spent
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        design.save(Path(folder) / "export")
        begun = time.perf_counter()
        holds = md.verify(Path(folder) / "export").holds
        begun = time.perf_counter() - begun
    found = design.certificate
    print(
        f"1,024 cells, {kind}, no symmetry: {clock:.0f} s, {spent:.0f} s of the processor, {peak / 1e9:.1f} GB; cost "
        f"{found.expected_cost:.7g}, gap {found.relative_gap:.1e}, {design.summary.message}; "
        f"{'verified' if holds else 'REFUSED'} in {begun:.0f} s"
    )


def random_programs(count: int) -> None:
    """Compare the brackets that all methods prove for small programs of all kinds."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "solve"))
    from block_cases import optimum, random_program

    from mechdesign.solve._blocks.column_generation import solve_block_program
    from mechdesign.solve._blocks.interior_point import solve_by_interior_point
    from mechdesign.solve._blocks.tuning import TUNING
    from mechdesign.solve._contract import Options

    # Even programs of two rows start with a coarse problem, and have a trial solve.
    merging, trial = replace(TUNING.merging, coarse_min_rows=2), replace(TUNING.trial, min_rows=2)
    tiny = replace(TUNING, merging=merging, trial=trial)
    apart = wrong = loose = 0
    for seed in range(count):
        program = random_program(seed)
        expected = optimum(program)
        found = solve_block_program(program, Options(extra={"generation": True}), tuning=tiny)
        dense = solve_by_interior_point(program)
        coefficients = program.cost if program.worst is None else program.worst.cost
        tolerance = 1e-6 * max(expected, 1e-6 * float(coefficients.max()))
        wrong += not (found.lower <= expected + 1e-3 * tolerance and expected - tolerance <= found.upper)
        loose += not found.upper - found.lower <= 2 * tolerance
        apart += not (found.lower <= dense.upper + tolerance and dense.lower <= found.upper + tolerance)
    print(
        f"{count} programs: {wrong} brackets without HiGHS's value, {apart} apart from all blocks at once, {loose} wide"
    )


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arrays", choices=("numpy", "numba"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--few", action="store_true", help="without all answers at once")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--random", type=int)
    parser.add_argument("--large", choices=("joint", "differential"))
    arguments = parser.parse_args()
    if arguments.large:
        large(arguments.large)
    elif arguments.random:
        random_programs(arguments.random)
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
