"""Measure how the block method and HiGHS grow if each secret has few neighbours, on square grids and on roads.

    python benchmarks/solvers/thin_blocks.py [--sizes 100 225 400 900 1600 2500] [--graphs squares roads] [--highs 400]
        [-o benchmarks/results/thin_blocks.jsonl] [--plot FILE]

Every place is also an answer. The prior models a town with three unequal centres, so that there is no symmetry. ε is
0.4 per unit of length, which is the typical length of a road, and the cost is the distance along roads. Roads are half
of the edges of a Delaunay triangulation of random places, and a spanning tree of them. A relative gap of 10⁻³ is
required, and proved over all answers. Each design runs in a separate process, which gives its peak memory, and is saved
and verified there. Earlier measurements are kept, so that a stopped run continues. The script prints wall-clock and
processor seconds; on a busy machine only processor seconds are reliable. Exponents describe the growth of processor
seconds from the least to the largest size.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
import warnings
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
from matplotlib.figure import Figure
from scipy.sparse import csgraph
from scipy.spatial import Delaunay

import mechdesign as md
from mechdesign.report._style import report_style

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, Store, apart, options, peak, show
from papers.drawing import finish, label, line, logarithmic, panels

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]

EPSILON, GAP = "0.4", 1e-3
# All roads shorter than this length get this length.
SHORTEST = 0.05
LIMIT = 3600.0


def squares(count: int) -> tuple[Floats, Integers, Floats]:
    """Return places, edges and lengths of a square grid in which each place has four neighbours."""
    side = math.isqrt(count)
    index = np.arange(side * side).reshape(side, side)
    across = np.c_[index[:, :-1].ravel(), index[:, 1:].ravel()]
    along = np.c_[index[:-1].ravel(), index[1:].ravel()]
    edges = np.vstack([across, along])
    return np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(np.float64), edges, np.ones(len(edges))


def roads(count: int) -> tuple[Floats, Integers, Floats]:
    """Return places, edges and lengths of a random road network with about one place a unit of area."""
    rng = np.random.default_rng(count)
    places = rng.uniform(0.0, math.sqrt(count), (count, 2))
    corners = Delaunay(places).simplices
    edges = np.unique(np.sort(np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0)
    lengths = np.hypot(*(places[edges[:, 0]] - places[edges[:, 1]]).T)
    joined = sparse.coo_array((lengths, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    tree = csgraph.minimum_spanning_tree(joined).toarray()[edges[:, 0], edges[:, 1]] > 0
    kept = tree | ((rng.random(len(edges)) < 0.5) & (lengths < 2.0))
    return places, edges[kept], np.round(np.maximum(lengths[kept], SHORTEST), 3)


GRAPHS = {"squares": squares, "roads": roads}


def problem(graph: str, count: int) -> md.Problem:
    """Return a problem with bounds only between neighbours, which imply the bound exp(ε·length) along every path."""
    places, edges, lengths = GRAPHS[graph](count)
    n, (s, t) = len(places), edges.T
    network = sparse.coo_array((lengths, (s, t)), shape=(n, n)).tocsr()
    distance = csgraph.shortest_path(network, directed=False)
    steps = np.full((n, n), np.inf)
    steps[s, t] = steps[t, s] = lengths
    np.fill_diagonal(steps, 0.0)
    side = math.sqrt(n)
    centres = ((0.45, 0.55, 0.18, 1.0), (0.8, 0.3, 0.08, 0.25), (0.2, 0.15, 0.1, 0.2))
    density = np.full(n, 0.02)
    for x, y, spread, weight in centres:
        density += weight * np.exp(-((places / side - (x, y)) ** 2).sum(axis=1) / (2 * spread**2))
    with warnings.catch_warnings():
        # Bounds between neighbours alone are not a metric; the bounds implied by paths are a metric.
        warnings.simplefilter("ignore", md.errors.MetricWarning)
        required = md.MetricPrivacy(EPSILON, steps)
    return md.Problem(density / density.sum(), distance, [required])


def measure(graph: str, count: int, solver: str) -> Facts:
    """Design, export and verify once."""
    asked = problem(graph, count)
    rows = "reduced" if solver != "block" else "auto"
    clock, spent = time.perf_counter(), time.process_time()
    design = md.design(asked, solver=solver, rows=rows, tolerance=GAP, time_limit=LIMIT)
    seconds, spent, designed = time.perf_counter() - clock, time.process_time() - spent, peak()
    with tempfile.TemporaryDirectory() as folder:
        md.save(design, folder, report=False)
        clock = time.perf_counter()
        verified = md.verify(folder).holds
        checked = time.perf_counter() - clock
    summary = design.summary
    return {
        "graph": graph,
        "places": asked.prior.size,
        "solver": solver,
        "status": str(summary.status),
        "rows": summary.program_rows or 0,
        "cost": design.certificate.expected_cost,
        "lower": design.certificate.lower_bound,
        "gap": design.certificate.relative_gap,
        "iterations": summary.iterations or 0,
        "seconds": seconds,
        "processor": spent,
        "peak": designed,
        "told": summary.memory_estimate or 0,
        "verified": verified,
        "verify seconds": checked,
        "verify peak": peak(),
    }


def exponent(records: list[Facts], key: str) -> float:
    """Return the slope of `key` against places, between the least and the largest size."""
    first, last = records[0], records[-1]
    if first["places"] == last["places"]:
        return math.nan
    return math.log(last[key] / first[key]) / math.log(last["places"] / first["places"])


def series(records: list[Facts]) -> dict[tuple[str, str], list[Facts]]:
    """Return the records of each graph and solver, by size."""
    found: dict[tuple[str, str], list[Facts]] = {}
    for record in sorted(records, key=lambda record: record["places"]):
        found.setdefault((record["graph"], record["solver"]), []).append(record)
    return found


@report_style()
def growth(records: list[Facts]) -> Figure:
    """Draw processor time and peak memory against the number of places, with exponents."""
    figure, axes = panels(2)
    quantities = (("processor", 1.0, "processor seconds"), ("peak", 1e-9, "peak memory (GB)"))
    for panel, (key, unit, name) in zip(axes, quantities, strict=True):
        for kind, ((graph, solver), mine) in enumerate(series(records).items()):
            slope = exponent(mine, "processor")
            text = f"{graph}, {solver}" + ("" if math.isnan(slope) else f" (exponent {slope:.1f})")
            sizes, values = [record["places"] for record in mine], [unit * record[key] for record in mine]
            panel.plot(sizes, values, label=text, **line(kind))
        logarithmic(panel, "x")
        logarithmic(panel, "y")
        label(panel, "places, each an answer, too", name)
    return finish(figure, "Few neighbours: a certified gap of 0.1 % over all answers", legend=axes[0], columns=2)


COLUMNS = {
    "graph": "{graph}",
    "places": "{places}",
    "solver": "{solver}",
    "rows": "{rows:,}",
    "steps": "{iterations}",
    "seconds": "{seconds:.1f}",
    "CPU": "{processor:.1f}",
    "peak GB": "{peak:GB}",
    "told GB": "{told:GB}",
    "gap": "{gap:.1e}",
    "verify s": "{verify seconds:.1f}",
    "verified": "{verified}",
}


def main() -> None:
    """Measure the missing entries, print a table, draw the growth."""
    given = options(
        __doc__,
        sizes=[100, 225, 400, 900, 1600, 2500],
        graphs=[tuple(GRAPHS)],
        highs=400,  # the most places that HiGHS is given
        output=Path,
        plot=Path,
        one=[],
    )
    if given.one:
        graph, count, solver = given.one
        print(json.dumps(measure(graph, int(count), solver)))
        return
    store = Store(given.output, "graph", "places", "solver")
    for count in given.sizes:
        for graph in given.graphs:
            for solver in ("block", "highs-ipx"):
                if (graph, count, solver) in store.known or (solver != "block" and count > given.highs):
                    continue
                try:
                    store.add(apart(measure, graph, count, solver))
                except (BrokenProcessPool, md.errors.MechdesignError) as error:
                    print(f"{graph}, {count} places: {solver} ends without an answer: {error}")
    show(COLUMNS, (record for mine in series(store.rows).values() for record in mine), 130)
    if given.plot:
        growth(store.rows).savefig(given.plot, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
