"""How time and memory of the block method grow with the number of cells, by kernel, and on maps of policy graphs.

    python benchmarks/solvers/growth.py sizes [--grids 5x5 8x8] [--cost euclidean] [--kind differential] [--long]
        [--no-symmetry] [--plot growth.png]
    python benchmarks/solvers/growth.py kernels [--grids 12x12 15x15] [--cost euclidean] [--repeats 3] [--long]
    python benchmarks/solvers/growth.py policies [--side 50]

`sizes` solves every size twice: with a block for every observable, and with symmetry. `--long` adds 225, 300 and 500
cells, and 1,024 cells only with symmetry. The work of an iteration grows like m n³, so the measured exponent between
neighbouring sizes is printed with the theoretical exponent 4.

`kernels` compares seconds per iteration with NumPy and Numba, without symmetry. Numba is skipped where it is not
installed. `--long` adds a grid of 20x15 cells. The first solve of each kernel, which may compile, is not counted.

`policies` designs the least-cost channel of a map under PGLP's Gk9, Gk16 and Gk25. With a uniform prior, all blocks of
a size give the same program; with a random prior, every block gives a different program. Seconds count everything from
the grid to the certified design; "solving" is the part before the exact checks. By default the answers are the cells of
the block. The variant "map" permits every cell of the map as an answer. The variant "floor" sets one floor for all
blocks: the midpoint between the best attack's expected error without a floor and its maximum.

Each design of `sizes` and `policies` runs in a separate process, which gives its peak memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

import mechdesign as md
from mechdesign.errors import SolverError
from mechdesign.model._problem import largest_distortion
from mechdesign.report._style import ACCENT, INK, new_figure, report_style

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, apart, options, shape, show, side_by_side
from mechdesign.graphs._builders import components
from solvers.scenes import problem

LOOKS = ((ACCENT, "-", "o"), ("#D55E00", "--", "^"))


def measure_size(grid: str, cost: str, kind: str, symmetry: bool) -> Facts:
    """Design once."""
    asked = problem(*shape(grid), cost, kind)
    facts = md.design(asked, solver="block", tolerance=1e-6, options={"symmetry": symmetry}).certificate
    return {**facts.provenance, "gap": facts.relative_gap, "cells": asked.prior.size}


@report_style()
def growth(rows: list[Facts], title: str) -> Figure:
    """Draw time per iteration, total time and peak memory against the number of cells, with the theoretical slopes."""
    figure = new_figure(9.0, 3.6)
    panels = figure.subplots(1, 3)
    quantities = (
        ("each", "seconds per iteration", 4),
        ("solve_seconds", "seconds", 4),
        ("peak", "peak memory (bytes)", 3),
    )
    lines = {name: [row for row in rows if row["way"] == name] for name in dict.fromkeys(row["way"] for row in rows)}
    for panel, (key, label, exponent) in zip(panels, quantities, strict=True):
        for (name, sizes), (colour, line, marker) in zip(lines.items(), LOOKS, strict=False):
            places, values = [row["cells"] for row in sizes], [row[key] for row in sizes]
            panel.plot(places, values, color=colour, ls=line, marker=marker, ms=4, lw=1.4, label=name)
        last = next(iter(lines.values()))[-1]
        guide = np.array([last["cells"] / 3, last["cells"]])
        slope = last[key] * (guide / last["cells"]) ** exponent
        panel.plot(guide, slope, color=INK, ls=":", lw=1, label=f"slope {exponent}")
        panel.set(xscale="log", yscale="log", xlabel="cells", title=label)
        panel.xaxis.set_major_locator(FixedLocator([25, 100, 300, 1000]))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
        panel.grid(axis="y")
        panel.legend(fontsize=8)
    figure.suptitle(title, x=0.005, ha="left", size=11.0, weight="bold")
    return figure


def sizes(given: argparse.Namespace) -> None:
    """Print a table and draw the growth."""
    grids = [*(given.grids or ["5x5", "8x8", "10x10", "12x12"]), *(["15x15", "20x15", "25x20"] if given.long else [])]
    ways = {"all blocks": grids}
    if not given.no_symmetry:
        ways["symmetry"] = [*grids, *(["32x32"] if given.long else [])]
    rows: list[Facts] = []
    for way, own in ways.items():
        before: Facts | None = None
        for grid in own:
            row = apart(measure_size, grid, given.cost, given.kind, way == "symmetry") | {"way": way}
            row["each"] = row["solve_seconds"] / row["iterations"]
            if before:
                row["grows"] = math.log(row["each"] / before["each"]) / math.log(row["cells"] / before["cells"])
            before = row
            rows.append(row)
    columns = {"": "{way}", "cells": "{cells}", "blocks": "{blocks}", "steps": "{iterations}"}
    columns |= {"seconds": "{solve_seconds:.2f}", "a step": "{each:.3f}", "exponent of a step": "{grows:.1f}"}
    columns |= {"peak GB": "{peak:GB}", "told GB": "{memory_estimate:GB}", "gap": "{gap:.0e}"}
    show(columns, rows)
    if given.plot:
        title = f"{given.kind.capitalize()} privacy, {given.cost} cost, all pairs: how the block method grows"
        growth(rows, title).savefig(given.plot, dpi=150)


def kernels() -> dict[str, dict[str, str]]:
    """Return the solver options of every kernel that is available on this machine."""
    names = ["numpy", *(["numba"] if importlib.util.find_spec("numba") else [])]
    return {name: {"arrays": name} for name in names}


class Contestant:
    """One kernel on one problem, with the times of an iteration in all solves and the result of the last one."""

    def __init__(self, instance: md.Problem, kernel: dict[str, str]) -> None:
        self.instance, self.kernel = instance, kernel
        self.each: list[float] = []
        self.facts: Facts = {}

    def __call__(self) -> None:
        """Solve, and store the time of an iteration."""
        chosen = {"symmetry": False, **self.kernel}
        found = md.design(self.instance, solver="block", tolerance=1e-6, options=chosen).certificate
        self.facts = {**found.provenance, "cost": found.expected_cost, "gap": found.relative_gap}
        self.each.append(self.facts["solve_seconds"] / self.facts["iterations"])


def compare_kernels(given: argparse.Namespace) -> None:
    """Print a table."""
    for kernel in kernels().values():
        md.design(problem(3, 3), solver="block", options=kernel)
    rows: list[Facts] = []
    for grid in [*(given.grids or ["12x12", "15x15"]), *(["20x15"] if given.long else [])]:
        instance = problem(*shape(grid), given.cost)
        contestants = {name: Contestant(instance, kernel) for name, kernel in kernels().items()}
        for name in [*contestants]:
            try:
                contestants[name]()
            except SolverError as error:
                print(f"{grid}, {name}: {error}")
                del contestants[name]
        side_by_side(contestants, given.repeats - 1)
        each = {name: statistics.median(contestant.each) for name, contestant in contestants.items()}
        for name, contestant in contestants.items():
            own = {"cells": instance.prior.size, "kernel": name, "each": each[name]}
            rows.append(contestant.facts | own | {"share": each[name] / each.get("numpy", math.nan)})
    columns = {"cells": "{cells}", "kernel": "{kernel}", "iterations": "{iterations}", "s per iteration": "{each:.4f}"}
    show(columns | {"of NumPy's": "{share:.2f}", "cost": "{cost:.8f}", "gap": "{gap:.0e}"}, rows)


def measure_policy(side: int, k: int, prior: str, kind: str) -> Facts:
    """Design the channel of one map; the seconds do not count the search for a floor."""
    clock, cpu = time.perf_counter(), time.process_time()
    domain = md.Domain.grid(columns=side, rows=side, width=float(side), height=float(side))
    graph = md.graphs.blocks(domain, k)
    n = domain.size
    weights = np.full(n, 1 / n) if prior == "uniform" else np.random.default_rng(0).dirichlet(np.ones(n))
    extra: dict[str, Any] = {"within": "map" if kind == "map" else "component", "isolated": "hull"}
    if kind == "floor":
        error = md.distances.euclidean(domain)
        extra |= {"cost": error**2, "requirements": [half_way(domain, graph, weights, error)]}
        clock, cpu = time.perf_counter(), time.process_time()
    found = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=weights, **extra)).certificate
    times = {"seconds": time.perf_counter() - clock, "processor": time.process_time() - cpu}
    own = {"graph": f"Gk{k * k}", "prior": prior, "kind": kind, "gap": found.relative_gap, "cost": found.expected_cost}
    return {**found.provenance, **own, **times}


def half_way(domain: md.Domain, graph: Any, prior: np.ndarray, error: np.ndarray) -> md.DistortionPrivacy:
    """Return the floor halfway between the best attack's expected error without a floor and its maximum."""
    free = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=prior, cost=error**2, isolated="hull"))
    joined = free.problem.requirements[-1].graph
    blocks = np.zeros(domain.size, dtype=np.int64)
    for number, nodes in enumerate(components(joined)):
        blocks[nodes] = number
    least = md.attack.optimal(free.channel, prior, error).distortion
    middle = (least + float(largest_distortion(prior, error, blocks))) / 2
    return md.DistortionPrivacy(math.floor(middle * 1e6) / 1e6, error)


def policies(given: argparse.Namespace) -> None:
    """Print a table."""
    rows = []
    for kind, k, prior in itertools.product(("block", "map", "floor"), (3, 4, 5), ("uniform", "random")):
        rows.append(apart(measure_policy, given.side, k, prior, kind))
        print(*(rows[-1][name] for name in ("kind", "graph", "prior")), f"{rows[-1]['seconds']:.1f} s", flush=True)
    columns = {name: f"{{{name}}}" for name in ("graph", "prior", "kind", "parts", "programs")}
    columns |= {"seconds": "{seconds:.1f}", "CPU s": "{processor:.1f}", "solving s": "{solve_seconds:.1f}"}
    columns |= {"gap": "{gap:.1e}", "cost": "{cost:.6f}", "peak GB": "{peak:GB}"}
    show(columns, rows, title=f"{given.side} × {given.side} cells, ε = 1, Euclidean cost (squared with floors)")


def main() -> None:
    """Run one of the three."""
    given = options(
        __doc__,
        action=("sizes", "kernels", "policies"),
        grids=[],
        cost=("euclidean", "hamming"),
        kind=("differential", "joint", "distortion", "worst"),
        no_symmetry=False,
        long=False,
        plot=Path,
        repeats=3,
        side=50,
    )
    {"sizes": sizes, "kernels": compare_kernels, "policies": policies}[given.action](given)


if __name__ == "__main__":
    main()
