"""The block method, column generation, rays and verification on problems with hundreds to thousands of secrets.

    python benchmarks/solvers/large.py scenes [--grid 20x15] [--scenes joint ...] [--tolerance 1e-6] [--symmetry]
    python benchmarks/solvers/large.py generation [--repeats 3] [--few] [--old CHECKOUT]
    python benchmarks/solvers/large.py random [--programs 1000]
    python benchmarks/solvers/large.py cells [--kind joint]
    python benchmarks/solvers/large.py rays [--sides 10 20 30] [--tolerance 0.05] [--exact] [--folder FOLDER]
    python benchmarks/solvers/large.py verify [--grid 20x15]

`scenes` solves each kind of requirement and real check-ins at the papers' own size, by default without symmetry.
`generation` compares column generation with all blocks at once on the example city and real check-ins, 300 cells,
joint. The methods alternate, and wall times are medians. `--old` names a checkout of an earlier commit, which solves
the same problems; `--few` leaves out all blocks at once. `random` solves small programs of all kinds by both methods
and by HiGHS on all rows, and compares the brackets of their optimal values. `cells` designs 32 × 32 cells without
symmetry, with all 1.07 billion inequalities, to a gap of 10⁻⁴, and verifies the bundle. The kind "joint" is the
example city, and "differential" a grid of `scenes.py`.

`rays` designs, saves and verifies grids of thousands of cells with their symmetries; `--exact` adds the exact block
method. `verify` times the exact check of all pairs and observables, on a grid (few distances) and on points (all
distances differ). 20 × 15 cells make 26.9 million inequalities. Some channels are exponential mechanisms with half of
ε = 0.6, which have some slack. The other channel has the columns exp(-ε·d), without normalisation: every row between
collinear cells is tight to the last unit.

Times include rounding and certification. Each design runs in a separate process, which gives its peak memory. "CPU" is
the processor time of all threads; on a busy machine it is more reliable than wall seconds. `-o` keeps the table.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.certify._claims import PairBound
from mechdesign.certify._privacy import check, realised

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import DATA, PROJECT, Facts, apart, options, origin, peak, shape, show, side_by_side
from solvers.scenes import CHECKINS, SCENES, checkins, problem

CITY = PROJECT / "mechdesign" / "specification" / "examples" / "city-300.toml"
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


def measure_scene(name: str, grid: str, tolerance: float, options: Facts, data: Path) -> Facts:
    """Design once."""
    asked = checkins(data, *shape(grid)) if name == CHECKINS else problem(*shape(grid), *SCENES[name])
    found = md.design(asked, solver="block", tolerance=tolerance, options=options).certificate
    return {
        **found.provenance,
        "scene": name,
        "cost": found.expected_cost if asked.objective == "expected" else found.worst_cost,
        "gap": found.relative_gap,
        "epsilon": " ".join(f"{value:.6g}" for value in found.epsilon),
        "error": " ".join(f"{value:.6g}" for value in found.distortion),
    }


def scenes(given: argparse.Namespace) -> None:
    """Print a table of all kinds of requirements."""
    chosen = {"symmetry": given.symmetry, **({"arrays": given.arrays} if given.arrays else {})}
    names = [name for name in given.scenes if name != CHECKINS or given.data.is_dir()]
    tolerance = given.tolerance or 1e-6
    rows = [apart(measure_scene, name, given.grid, tolerance, chosen, given.data) for name in names]
    columns = {"scene": "{scene}", "blocks": "{blocks}", "steps": "{iterations}", "seconds": "{seconds:.1f}"}
    columns |= {"peak GB": "{peak:GB}", "cost": "{cost:.7g}", "gap": "{gap:.0e}", "ε": "{epsilon}", "error": "{error}"}
    show(columns, rows, 110)


def store(stated: md.Problem, path: Path) -> Path:
    """Write the arrays of a joint problem, so that older versions can read it."""
    metric, distortion = stated.requirements
    assert isinstance(metric, md.MetricPrivacy)
    assert isinstance(distortion, md.DistortionPrivacy)
    assert metric.epsilon == 1
    np.savez(
        path, prior=stated.prior, cost=stated.cost, apart=metric.distance,
        minimum=float(distortion.minimum), error=distortion.distance,
    )  # fmt: skip
    return path


def generate(scene: Path, way: str, tolerance: float, root: Path, arrays: str | None) -> list[float]:
    """Design once in a separate process; return wall seconds, processor seconds, cost and relative gap."""
    chosen = {**WAYS[way], **({"arrays": arrays} if arrays else {})}
    code = RUN.format(root=str(root), scene=str(scene), tolerance=tolerance, options=chosen)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return list(json.loads(output.stdout.splitlines()[-1]))


def generation(given: argparse.Namespace) -> None:
    """Print a table of medians."""
    ways = [("few at a time", 1e-6), ("few at a time", 1e-2)]
    ways += [] if given.few else [("at once", 1e-6)]
    ways += [("old", 1e-6)] if given.old else []
    asked = {"city": md.read_spec(CITY).problem()}
    if given.data.is_dir():
        asked["check-ins"] = checkins(given.data, 20, 15)
    rows = []
    for scene, stated in asked.items():
        runs: dict[tuple[str, float], list[list[float]]] = {each: [] for each in ways}
        with tempfile.TemporaryDirectory() as folder:
            path = store(stated, Path(folder) / "scene.npz")
            for _ in range(given.repeats):
                for way, tolerance in ways:
                    root = given.old.resolve() if way == "old" else PROJECT
                    runs[way, tolerance].append(generate(path, way, tolerance, root, given.arrays))
        for (way, tolerance), found in runs.items():
            seconds, spent = (sorted(each[place] for each in found) for place in (0, 1))
            row = {"scene": scene, "way": way, "tolerance": tolerance, "seconds": statistics.median(seconds)}
            row |= {"least": seconds[0], "most": seconds[-1], "processor": statistics.median(spent)}
            rows.append(row | {"cost": found[-1][2], "gap": found[-1][3]})
    columns = {"scene": "{scene}", "way": "{way}", "tolerance": "{tolerance:g}", "seconds": "{seconds:.1f}"}
    columns |= {"of": "{least:.1f} to {most:.1f}", "CPU": "{processor:.1f}", "cost": "{cost:.7g}", "gap": "{gap:.0e}"}
    show(columns, rows, 110)


def cells(given: argparse.Namespace) -> None:
    """Design 1,024 cells, save and verify the bundle; print time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        if given.kind == "differential":
            asked = problem(32, 32)
        else:
            path = Path(folder) / "city.toml"
            text = CITY.read_text(encoding="utf-8").replace("columns = 20, rows = 15", "columns = 32, rows = 32")
            path.write_text(text, encoding="utf-8")
            asked = md.read_spec(path).problem()
        clock, spent = time.perf_counter(), time.process_time()
        design = md.design(asked, solver="block", tolerance=1e-4, options={"symmetry": False})
        clock, spent = time.perf_counter() - clock, time.process_time() - spent
        most = peak()
        md.save(design, Path(folder) / "export", report=False)
        begun = time.perf_counter()
        holds = md.verify(Path(folder) / "export").holds
        begun = time.perf_counter() - begun
    found = design.certificate
    print(
        f"1,024 cells, {given.kind}, no symmetry: {clock:.0f} s, {spent:.0f} s of the processor, {most / 1e9:.1f} GB; "
        f"cost {found.expected_cost:.7g}, gap {found.relative_gap:.1e}, {design.summary.message}; "
        f"{'verified' if holds else 'REFUSED'} in {begun:.0f} s"
    )


def random_programs(given: argparse.Namespace) -> None:
    """Compare the brackets that all methods prove for small programs of all kinds."""
    sys.path.insert(0, str(PROJECT / "tests" / "solve"))
    from block_cases import optimum, random_program

    from mechdesign.solve._blocks.column_generation import solve_block_program
    from mechdesign.solve._blocks.interior_point import solve_by_interior_point
    from mechdesign.solve._blocks.tuning import TUNING
    from mechdesign.solve._contract import Options

    # Even programs of two rows start with a coarse problem, and have a trial solve.
    merging, trial = replace(TUNING.merging, coarse_min_rows=2), replace(TUNING.trial, min_rows=2)
    tiny = replace(TUNING, merging=merging, trial=trial)
    differ = wrong = loose = 0
    for seed in range(given.programs):
        program = random_program(seed)
        expected = optimum(program)
        found = solve_block_program(program, Options(extra={"generation": True}), tuning=tiny)
        dense = solve_by_interior_point(program)
        coefficients = program.cost if program.worst is None else program.worst.cost
        tolerance = 1e-6 * max(expected, 1e-6 * float(coefficients.max()))
        wrong += not (found.lower <= expected + 1e-3 * tolerance and expected - tolerance <= found.upper)
        loose += not found.upper - found.lower <= 2 * tolerance
        differ += not (found.lower <= dense.upper + tolerance and dense.lower <= found.upper + tolerance)
    print(f"{given.programs} programs: {wrong} brackets without HiGHS's value,", end=" ")
    print(f"{differ} apart from all blocks at once, {loose} wide")


def step(name: str, side: int, tolerance: float, folder: Path) -> Facts:
    """Carry out one step of the rays: design and save, verify, or the exact design."""
    if name == "verify":
        certificate = md.verify(folder)
        return {"gap": certificate.relative_gap}
    if name == "exact":
        certificate = md.design(problem(side, side), tolerance=1e-4).certificate
        return {"cost": certificate.expected_cost, "bound": certificate.lower_bound, "gap": certificate.relative_gap}

    def told(now: md.solve.Progress) -> None:
        print(f"  {time.strftime('%H:%M:%S')} {now.stage}: [{now.lower}, {now.upper}]", file=sys.stderr, flush=True)

    design = md.design(problem(side, side), tolerance=tolerance, rows="rays", progress=told)
    md.save(design, folder, report=False)
    certificate = design.certificate
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    facts = {"cost": certificate.expected_cost, "bound": certificate.lower_bound, "gap": certificate.relative_gap}
    return facts | {"rounds": design.summary.rounds, "megabytes": size}


def rays(given: argparse.Namespace) -> None:
    """Print a table, and store it where asked."""
    rows = []
    for side in given.sides:
        with tempfile.TemporaryDirectory() as made:
            folder = (given.folder or Path(made)) / f"rays-{side}"
            for name in ("rays", "verify", *(["exact"] if given.exact else [])):
                rows.append(apart(step, name, side, given.tolerance or 0.05, folder) | {"step": name})
                if name == "rays":
                    rows[-1] |= {"cells": side**2, "pairs": f"{side**4 * (side**2 - 1) / 1e6:,.0f} million"}
    columns = {"cells": "{cells}", "rows of pairs": "{pairs}", "step": "{step}", "cost": "{cost:.6g}"}
    columns |= {"lower bound": "{bound:.6g}", "gap": "{gap:.2%}", "rounds": "{rounds}", "s": "{seconds:.0f}"}
    columns |= {"CPU s": "{processor:.0f}", "GB": "{peak:GB}", "export MB": "{megabytes:.0f}"}
    show(columns, rows, 130)
    if given.output:
        with given.output.open("w", encoding="utf-8") as file:
            show(columns, rows, 130, to=file)
            print(origin(), file=file)


def verify(given: argparse.Namespace) -> None:
    """Print the seconds of the exact check."""
    columns, lines = shape(given.grid)
    grid = np.stack(np.meshgrid(np.arange(columns), np.arange(lines)), axis=-1).reshape(-1, 2).astype(np.float64)
    scattered = np.random.default_rng(0).random(grid.shape) * [columns, lines]
    for name, points in (("grid", grid), ("scattered", scattered)):
        distance = np.linalg.norm(points[:, None] - points, axis=2)
        bound = PairBound.metric(Fraction(3, 5), distance)
        half = np.exp(-0.3 * distance)
        private = np.floor(half / half.sum(axis=1, keepdims=True) * 2.0**60).astype(np.int64)
        tight = np.floor(np.exp(-0.6 * distance) * 2.0**61).astype(np.int64)
        print(f"{name}: {len(bound) * len(points) / 1e6:.1f} million inequalities")
        asks = {
            f"{way}, {kind}": functools.partial(ask, channel, 62, bound)
            for kind, channel in (("private", private), ("tight", tight))
            for way, ask in (("check", check), ("least epsilon", realised))
        }
        for way, seconds in side_by_side(asks, 1).items():
            print(f"  {way:<28}{seconds[0]:7.2f} s")
    print(f"peak memory {peak() / 2**20:.0f} MiB")


def main() -> None:
    """Run one of the six."""
    actions = {"scenes": scenes, "generation": generation, "random": random_programs}
    actions |= {"cells": cells, "rays": rays, "verify": verify}
    given = options(
        __doc__,
        action=tuple(actions),
        grid="20x15",
        scenes=[(*SCENES, CHECKINS)],
        arrays=str,
        tolerance=float,
        symmetry=False,
        data=DATA,
        repeats=3,
        few=False,
        old=Path,
        programs=1000,
        kind=("joint", "differential"),
        sides=[10, 20, 30],
        exact=False,
        folder=Path,
        output=Path,
    )
    actions[given.action](given)


if __name__ == "__main__":
    main()
