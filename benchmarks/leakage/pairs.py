"""The time and memory of leakage pair by pair: steps of the recursion, and bounds at every future step.

    python benchmarks/leakage/pairs.py [--cases grid edges dense supremum scale] [-o OUTPUT]

Each case runs in a process of its own with one thread:

- `grid`: a walk on 10 × 10 cells, all pairs, ε = 0.5 per cell;
- `edges`: the same on 50 × 50 cells, on the edges of neighbours only;
- `dense`: a chain of 50 states without zeros, ε = 0.2 for each pair of successive states;
- `supremum`: bounds of all pairs of the walk on 10 × 10 cells at every future step;
- `scale`: the largest ε per cell that keeps twelve releases of the walk on 6 × 10 cells below 2 per cell.

The walk stays with probability ½ or moves to one of the 2 to 4 neighbours. A step of `grid`, `edges` and `dense` is the
mean of those from the first release to the fourth. Peak memory includes the interpreter and its libraries.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import sys
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sparse

import mechdesign as md
from mechdesign import leakage

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import RESULTS, Facts, apart, options, origin, show, write

RELEASES = 4


def walk(rows: int, columns: int) -> tuple[Any, nx.Graph]:
    """Return the backward matrix of a stationary walk on rows × columns cells, which is the walk, and its graph."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns), ordering="sorted")
    beside = nx.to_scipy_sparse_array(graph, format="csr")
    moves = sparse.diags_array(1 / beside.sum(axis=1)) @ beside
    return sparse.csr_array((sparse.eye_array(rows * columns) + moves) / 2), graph


def steps(matrix: Any, bounds: Any, edges: nx.Graph | None = None) -> Facts:
    """Measure the steps from a release to the next."""
    loss = leakage.LossFunction(matrix, cache=False)
    spent = time.process_time()
    found = leakage.backward([bounds] * RELEASES, loss, edges=edges)
    seconds = (time.process_time() - spent) / (RELEASES - 1)
    return {"states": loss.n, "a step": seconds, "largest": float(found[-1].max())}


def grid() -> Facts:
    """Measure all pairs of 10 × 10 cells."""
    matrix, graph = walk(10, 10)
    return steps(matrix, leakage.pairs(md.GraphPrivacy(0.5, graph)))


def edges() -> Facts:
    """Measure the edges of 50 × 50 cells."""
    matrix, graph = walk(50, 50)
    return steps(matrix, 0.5 * md.distances.shortest_path(graph), graph)


def dense() -> Facts:
    """Measure a chain without zeros."""
    rows = np.random.default_rng(0).exponential(size=(50, 50))
    places = np.arange(50)
    return steps(rows / rows.sum(axis=1, keepdims=True), 0.2 * np.abs(places[:, None] - places))


def supremum() -> Facts:
    """Measure bounds at every future step."""
    matrix, graph = walk(10, 10)
    bounds = leakage.pairs(md.GraphPrivacy(0.5, graph))
    loss = leakage.LossFunction(matrix, cache=False)
    spent = time.process_time()
    found = leakage.supremum(bounds, backward=loss)
    finite = np.isfinite(found.bounds)
    seconds = time.process_time() - spent
    facts = {"states": 100, "all": seconds, "finite": int(finite.sum()), "proved": found.proved}
    return facts | {"largest": float(found.bounds[finite].max())}


def scale() -> Facts:
    """Measure the search for the largest scale."""
    matrix, graph = walk(6, 10)
    distances = md.distances.shortest_path(graph)
    loss = leakage.LossFunction(matrix, cache=False)
    told: list[md.Progress] = []
    spent = time.process_time()
    found = leakage.largest_scale(distances, 2, 12, loss, loss, progress=told.append)
    return {"states": 60, "all": time.process_time() - spent, "scales tried": len(told), "largest": found}


CASES = {"grid": grid, "edges": edges, "dense": dense, "supremum": supremum, "scale": scale}


def main() -> None:
    """Measure the cases, show them and write them to the output."""
    given = options(__doc__, cases=[tuple(CASES)], output=RESULTS / "leakage_pairs.json")
    rows = [{"case": name, **apart(CASES[name])} for name in given.cases]
    columns = {"case": "{case}", "states": "{states}", "seconds a step": "{a step:.2f}", "in all": "{all:.1f}"}
    show(columns | {"peak in GB": "{peak:GB}", "largest bound": "{largest:.4f}"}, rows)
    write(given.output, {"origin": origin(), "rows": rows})


if __name__ == "__main__":
    main()
