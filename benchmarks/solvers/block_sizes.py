"""Measure how the time and the memory of the block method grow with the number of cells.

    python benchmarks/solvers/block_sizes.py [--grids 5x5 8x8] [--cost euclidean] [--kind differential] [--no-symmetry] [--long]
        [--plot growth.png]

Every size is solved twice: with a block for every observable, and with symmetry. `--long` adds 225, 300 and 500 cells,
and 1,024 cells only with symmetry. Each size runs in a separate process, which gives its peak memory. The work of an
iteration grows like m n³, so the measured exponent between neighbouring sizes is printed with the theoretical exponent
4.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.report._style import ACCENT, INK, headline, in_report_style, new_figure

LOOKS = ((ACCENT, "-", "o"), ("#D55E00", "--", "^"))


def problem(columns: int, rows: int, cost: str, kind: str) -> md.Problem:
    """Return a problem on a unit grid: Gaussian prior, ε = 0.6 per cell, a floor at 0.8 of the largest distortion."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    places = np.c_[x.ravel(), y.ravel()].astype(float)
    squared = ((places - places.mean(axis=0)) ** 2).sum(axis=1)
    prior = np.exp(-squared / (2 * (max(columns, rows) / 4) ** 2))
    prior /= prior.sum()
    distance = md.distances.euclidean(places)
    costs = distance if cost == "euclidean" else (distance > 0).astype(float)
    requirements: list[md.MetricPrivacy | md.DistortionPrivacy] = []
    if kind in ("differential", "joint", "worst"):
        requirements.append(md.MetricPrivacy("0.6", distance))
    if kind in ("joint", "distortion"):
        requirements.append(md.DistortionPrivacy(0.8 * float((distance @ prior).min()), distance))
    return md.Problem(prior, costs, requirements, objective="worst" if kind == "worst" else "expected")


def measure(grid: str, cost: str, kind: str, symmetry: bool) -> None:
    """Design once and print the facts as JSON."""
    columns, rows = (int(part) for part in grid.split("x"))
    design = md.design(
        problem(columns, rows, cost, kind), solver="block", tolerance=1e-6, options={"symmetry": symmetry}
    )
    certificate = design.certificate
    facts = {
        "cost": certificate.expected_cost,
        "gap": certificate.relative_gap,
        "iterations": certificate.provenance["iterations"],
        "blocks": certificate.provenance["blocks"],
        "estimate": certificate.provenance["memory_estimate"],
        "seconds": certificate.provenance["solve_seconds"],
        "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    print(json.dumps(facts))


def measured(grid: str, cost: str, kind: str, symmetry: bool) -> dict[str, float]:
    """Measure in a separate process."""
    same = ["--cost", cost, "--kind", kind, *([] if symmetry else ["--no-symmetry"])]
    command = [sys.executable, __file__, "--one", grid, *same]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    facts: dict[str, float] = json.loads(output.splitlines()[-1])
    return facts


@in_report_style
def growth(found: dict[str, dict[int, dict[str, float]]], title: str) -> Figure:
    """Draw time per iteration, total time and peak memory against the number of cells, with the theoretical slopes."""
    figure = new_figure(9.0, 3.6)
    panels = figure.subplots(1, 3)
    quantities = (("each", "seconds per iteration", 4), ("seconds", "seconds", 4), ("peak", "peak memory (GB)", 3))
    for panel, (key, label, exponent) in zip(panels, quantities, strict=True):
        for (name, sizes), (colour, line, marker) in zip(found.items(), LOOKS, strict=False):
            values = [facts[key] for facts in sizes.values()]
            panel.plot(list(sizes), values, color=colour, ls=line, marker=marker, ms=4, lw=1.4, label=name)
        cells, last = list(next(iter(found.values())).items())[-1]
        guide = np.array([cells / 3, cells])
        panel.plot(guide, last[key] * (guide / cells) ** exponent, color=INK, ls=":", lw=1, label=f"slope {exponent}")
        panel.set(xscale="log", yscale="log", xlabel="cells", title=label)
        panel.xaxis.set_major_locator(FixedLocator([25, 100, 300, 1000]))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_minor_formatter(NullFormatter())
        panel.grid(axis="y")
        panel.legend(fontsize=8)
    headline(figure, title)
    return figure


def main() -> None:
    """Print a table and draw the growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", nargs="+", default=["5x5", "8x8", "10x10", "12x12"])
    parser.add_argument("--cost", default="euclidean", choices=("euclidean", "hamming"))
    parser.add_argument("--kind", default="differential", choices=("differential", "joint", "distortion", "worst"))
    parser.add_argument("--no-symmetry", action="store_true", help="without symmetry only")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--plot", type=Path, help="where to save the picture")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one, arguments.cost, arguments.kind, not arguments.no_symmetry)
        return
    grids = [*arguments.grids, *(["15x15", "20x15", "25x20"] if arguments.long else [])]
    lines = {"all blocks": grids}
    if not arguments.no_symmetry:
        lines["symmetry"] = [*grids, *(["32x32"] if arguments.long else [])]
    heads = ("cells", "blocks", "steps", "seconds", "each", "grows", "peak GB", "told GB", "gap")
    table = Table(*heads, caption="each: seconds per step; grows: its exponent, 4 in theory")
    found: dict[str, dict[int, dict[str, float]]] = {}
    for name, sizes in lines.items():
        found[name] = {}
        before: tuple[int, float] | None = None
        for grid in sizes:
            facts = measured(grid, arguments.cost, arguments.kind, name == "symmetry")
            cells = math.prod(int(part) for part in grid.split("x"))
            each = facts["seconds"] / facts["iterations"]
            exponent = f"{math.log(each / before[1]) / math.log(cells / before[0]):.1f}" if before else ""
            before = (cells, each)
            found[name][cells] = {**facts, "each": each, "peak": facts["peak"] / 1e9}
            table.add_row(
                str(cells),
                str(facts["blocks"]),
                str(facts["iterations"]),
                f"{facts['seconds']:.2f}",
                f"{each:.3f}",
                exponent,
                f"{facts['peak'] / 1e9:.2f}",
                f"{facts['estimate'] / 1e9:.2f}",
                f"{facts['gap']:.0e}",
            )
    Console(width=100).print(table)
    if arguments.plot:
        title = f"{arguments.kind.capitalize()} privacy, {arguments.cost} cost, all pairs: how the block method grows"
        growth(found, title).savefig(arguments.plot, dpi=150)


if __name__ == "__main__":
    main()
