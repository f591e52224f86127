"""Record the results of 60 designs, 10 runs of column generation and 2 stopped runs, and compare two records.

    python benchmarks/record_solves.py record FILE.json [--only TEXT ...] [--jobs 2]
    python benchmarks/record_solves.py compare BEFORE.json AFTER.json [--loose] [--verbose]
    python benchmarks/record_solves.py list

`record` uses `mechdesign.design`, and for the ten runs of column generation also the block back end, `block_back_end`.
Each case runs in a separate process, with one BLAS thread and one solver thread. `compare` without `--loose` requires
equal numbers, to the last bit, and is for two records of one machine with the same libraries. `--loose` is for other
processors and BLAS libraries. Iteration counts may then differ by `ITERATIONS` and working sets by `WORKING_SET`;
brackets must contain the same optimum.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import math
import multiprocessing
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# These variables are set before NumPy is imported, here and in the processes of the cases, so that sums have one order.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
ONE_THREAD["PYTHONHASHSEED"] = "0"

# Tolerances of `--loose`. Counts of iterations may differ by a share of the larger count, or by a least number. Sizes
# of working sets may differ by a share of the larger size. Bounds may differ by a relative amount, in addition to the
# gaps of the two records. (With two BLAS kernels on one machine, iterations differed by up to 14 %, and working sets by
# up to 18 %.)
ITERATIONS, LEAST_ITERATIONS = 0.2, 3
WORKING_SET = 0.3
BOUND = 1e-9
# Memory estimates include the memory that the process already holds.
MEMORY = 0.1
# Memory limit of the block method [bytes], fixed because free memory must not influence results.
ALLOWED = 6_000_000_000

INF = math.inf


@dataclass(frozen=True)
class Case:
    """A named computation: "design" (one of the 60) or "generation" (one of the ten), and the packages it needs."""

    name: str
    group: str
    run: Callable[[], dict[str, Any]]
    needs: tuple[str, ...] = ()


# ---------------------------------------------------------------------------------------------------------------------
# Problems


def _cells(columns: int, rows: int) -> Any:
    import numpy as np

    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    return np.c_[x.ravel(), y.ravel()].astype(float)


def _bell(points: Any, width: float = 0.25) -> Any:
    import numpy as np

    apart = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    prior = np.exp(-apart / (2 * (width * (np.ptp(points, axis=0).max() + 1)) ** 2))
    return prior / prior.sum()


def _apart(points: Any, others: Any | None = None) -> Any:
    import numpy as np

    others = points if others is None else others
    return np.sqrt(((points[:, None] - others[None]) ** 2).sum(-1))


def _floor(share: float, distance: Any, mean: Any, *, own: bool = False) -> Any:
    """Return a floor at a share of the largest distortion under the prior `mean`, the adversary's prior if `own`."""
    import mechdesign as md

    minimum = share * float((distance @ mean).min())
    return md.DistortionPrivacy(minimum, distance, mean) if own else md.DistortionPrivacy(minimum, distance)


def _roads(count: int, seed: int) -> Any:
    """Return a random road network: a tree of shortest edges and some others between random places."""
    import networkx as nx
    import numpy as np

    rng = np.random.default_rng(seed)
    places = rng.random((count, 2)) * np.sqrt(count)
    apart = _apart(places)
    graph = nx.minimum_spanning_tree(nx.from_numpy_array(apart))
    for a, b in zip(*np.nonzero(np.triu(apart < 0.8, 1)), strict=True):
        if rng.random() < 0.5:
            graph.add_edge(int(a), int(b), weight=float(apart[a, b]))
    return graph


def _along(graph: Any, weight: str | None = "weight") -> Any:
    import networkx as nx
    import numpy as np

    return np.asarray(nx.floyd_warshall_numpy(graph, nodelist=range(graph.number_of_nodes()), weight=weight))


def _squares(columns: int, rows: int) -> Any:
    import networkx as nx

    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))


def _components(count: int, size: int, seed: int) -> tuple[Any, Any, Any]:
    """Return places in distant towns, a graph that joins the places of each town, and a prior."""
    import networkx as nx
    import numpy as np

    rng = np.random.default_rng(seed)
    towns = np.repeat(10.0 * np.arange(count), size)
    places = rng.random((count * size, 2)) * 2 + np.c_[towns, 0 * towns]
    graph = nx.empty_graph(count * size)
    for town in range(count):
        graph.add_edges_from(nx.complete_graph(range(town * size, (town + 1) * size)).edges)
    return places, graph, rng.dirichlet(np.ones(count * size))


def problems() -> dict[str, Callable[[], Any]]:
    """Return functions that build the twenty kinds of problems."""
    import networkx as nx
    import numpy as np

    import mechdesign as md

    def metric() -> Any:
        p = _cells(5, 5)
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.MetricPrivacy("0.6", d)])

    def hamming() -> Any:
        p = _cells(5, 4)
        d = _apart(p)
        return md.Problem(_bell(p), (d > 0).astype(float), [md.MetricPrivacy("0.6", d)])

    def manhattan() -> Any:
        p = _cells(7, 7)
        d = np.abs(p[:, None] - p[None]).sum(-1)
        prior = np.random.default_rng(1).dirichlet(np.ones(49))
        return md.Problem(prior, _apart(p) ** 2, [md.MetricPrivacy("0.5", d)])

    def places() -> Any:
        p = np.random.default_rng(5).uniform(0, 5, (22, 2))
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.MetricPrivacy("0.7", d)])

    def uniform() -> Any:
        p = _cells(6, 6)
        d = _apart(p)
        return md.Problem(np.full(36, 1 / 36), d, [md.MetricPrivacy("0.8", d)])

    def threshold() -> Any:
        p = _cells(6, 4)
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.ThresholdPrivacy("0.9", d, "1.5")])

    def graph() -> Any:
        g = _squares(8, 6)
        return md.Problem(_bell(_cells(8, 6)), _along(g, None), [md.GraphPrivacy("1", g)])

    def roads() -> Any:
        g = _roads(60, 1)
        prior = np.random.default_rng(2).dirichlet(np.ones(60))
        return md.Problem(prior, _along(g), [md.GraphPrivacy("0.8", nx.Graph(g.edges))])

    def distortion() -> Any:
        p = _cells(4, 4)
        d = _apart(p)
        return md.Problem(_bell(p), d, [_floor(0.7, d, _bell(p))])

    def joint() -> Any:
        p = _cells(5, 4)
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.MetricPrivacy("0.6", d), _floor(0.8, d, _bell(p))])

    def tight() -> Any:
        p = _cells(4, 4)
        d = _apart(p)
        return md.Problem(_bell(p), d**2, [md.MetricPrivacy("0.7", d), _floor(0.99, d, _bell(p))])

    def adversaries() -> Any:
        p = _cells(4, 4)
        d = _apart(p)
        beliefs = [np.random.default_rng(seed).dirichlet(np.ones(16)) for seed in (3, 4)]
        floors = [_floor(0.6, d, prior, own=True) for prior in beliefs]
        return md.Problem(_bell(p), d, [md.MetricPrivacy("0.6", d), *floors])

    def worst() -> Any:
        p = _cells(5, 4)
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.MetricPrivacy("0.6", d)], objective="worst")

    def worst_joint() -> Any:
        p = _cells(4, 3)
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.MetricPrivacy("0.6", d), _floor(0.8, d, _bell(p))], objective="worst")

    def forbidden() -> Any:
        p = _cells(5, 3)
        d = _apart(p)
        return md.Problem(_bell(p), np.where(d > 3.2, INF, d), [md.GraphPrivacy("1", _squares(5, 3))])

    def parts() -> Any:
        p, g, prior = _components(4, 7, 11)
        return md.Problem(prior, _apart(p), [md.GraphPrivacy("1", g)])

    def coupled() -> Any:
        p, g, prior = _components(4, 6, 12)
        town = np.arange(24) // 6
        d = _apart(p)
        cost = np.where(town[:, None] == town, d, INF)
        return md.Problem(prior, cost, [md.GraphPrivacy("1", g), _floor(0.05, d, prior)])

    def few_answers() -> Any:
        p = _cells(6, 5)
        d = _apart(p)
        return md.Problem(_bell(p), d[:, ::5], [md.MetricPrivacy("0.7", d)])

    def steep() -> Any:
        p = _cells(4, 4)
        d = _apart(p)
        return md.Problem(_bell(p), d, [md.MetricPrivacy("12", d)])

    def anchors() -> Any:
        domain = md.Domain.anchors(columns=6, rows=5, width=2.0, height=1.6)
        d = _apart(np.asarray(domain.points), _cells(4, 3) * 0.6)
        prior = _bell(np.asarray(domain.points))
        return md.Problem(prior, d, [md.ContinuousPrivacy("1.2", domain)], secrets=domain)

    return {
        "metric": metric, "hamming": hamming, "manhattan": manhattan, "places": places, "uniform": uniform,
        "threshold": threshold, "graph": graph, "roads": roads, "distortion": distortion, "joint": joint,
        "tight": tight, "adversaries": adversaries, "worst": worst, "worst joint": worst_joint,
        "forbidden": forbidden, "parts": parts, "coupled": coupled, "few answers": few_answers, "steep": steep,
        "anchors": anchors,
    }  # fmt: skip


# Solution methods, as keyword arguments of `md.design`. "block" methods that name a library of arrays do not use
# symmetry, so that every block is computed.
_PLAIN = {"symmetry": False, "memory": ALLOWED}
WAYS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "auto": ({}, ()),
    "block": ({"solver": "block", "options": {"memory": ALLOWED}}, ()),
    "block numpy": ({"solver": "block", "options": {**_PLAIN, "arrays": "numpy"}}, ()),
    "block numba": ({"solver": "block", "options": {**_PLAIN, "arrays": "numba"}}, ("numba",)),
    "block sparse": ({"solver": "block", "options": {**_PLAIN, "arrays": "sparse"}}, ()),
    "simplex all": ({"solver": "highs-simplex", "rows": "all"}, ()),
    "simplex reduced": ({"solver": "highs-simplex", "rows": "reduced"}, ()),
    "highs": ({"solver": "highs"}, ()),
    "ipx lazy": ({"solver": "highs-ipx", "rows": "lazy"}, ()),
    "ipx": ({"solver": "highs-ipx"}, ()),
    "pdlp": ({"solver": "highs-pdlp", "tolerance": 1e-3}, ()),
    "scipy": ({"solver": "scipy"}, ()),
    "cvxpy": ({"solver": "cvxpy"}, ()),
    "near": ({"rows": "near"}, ()),
    "lazy": ({"rows": "lazy"}, ()),
    "rays": ({"rows": "rays", "tolerance": 1e-2}, ()),
}

# Each kind of problem has three methods, so that together all back ends and all choices of rows occur.
DESIGNS: dict[str, tuple[str, str, str]] = {
    "metric": ("auto", "block numpy", "rays"),
    "hamming": ("auto", "block numba", "scipy"),
    "manhattan": ("auto", "block numpy", "rays"),
    "places": ("block", "ipx lazy", "rays"),
    "uniform": ("auto", "block numpy", "near"),
    "threshold": ("auto", "block numba", "simplex all"),
    "graph": ("auto", "block sparse", "lazy"),
    "roads": ("auto", "block sparse", "ipx"),
    "distortion": ("auto", "block numpy", "cvxpy"),
    "joint": ("auto", "block numpy", "block numba"),
    "tight": ("auto", "block numpy", "simplex reduced"),
    "adversaries": ("auto", "block numba", "highs"),
    "worst": ("auto", "block numpy", "scipy"),
    "worst joint": ("auto", "block numpy", "scipy"),
    "forbidden": ("auto", "ipx", "simplex all"),
    "parts": ("auto", "simplex reduced", "block"),
    "coupled": ("auto", "scipy", "simplex all"),
    "few answers": ("auto", "block numba", "pdlp"),
    "steep": ("auto", "block numpy", "scipy"),
    "anchors": ("auto", "near", "cvxpy"),
}


# ---------------------------------------------------------------------------------------------------------------------
# Running


@dataclass
class Trace:
    """The progress messages of a run: all brackets, and each new size of the working set."""

    stop_at: int | None = None
    """Number of the bracket at which Ctrl-C is sent."""
    stages: list[str] = field(default_factory=list)
    brackets: list[tuple[int, float | None, float | None]] = field(default_factory=list)
    working: list[int] = field(default_factory=list)

    def __call__(self, moment: Any) -> None:
        """Store a progress message."""
        self.stages.append(str(moment.stage))
        # Messages without bounds are ignored: HiGHS sends them at times that depend on the machine's load.
        if moment.lower is not None:
            self.brackets.append((int(moment.iteration), _plain(moment.lower), _plain(moment.upper)))
            if len(self.brackets) == self.stop_at:
                signal.raise_signal(signal.SIGINT)
        size = getattr(moment, "working_set", None)
        if size is None and (said := re.search(r"^([\d,]+) of [\d,]+ columns", str(moment.stage))):
            size = int(said[1].replace(",", ""))
        if size is not None and (not self.working or self.working[-1] != size):
            self.working.append(int(size))

    def facts(self) -> dict[str, Any]:
        """Return the stored messages."""
        words = {"priced": "pricing", "corrected": "correct", "trial_or_small": "small"}
        return {
            "working_sets": self.working,
            "brackets": self.brackets,
            "stages": {name: sum(text in stage for stage in self.stages) for name, text in words.items()},
        }


def _plain(value: Any) -> Any:
    """Return a value in a form that JSON stores to the last bit: floats become their shortest text."""
    if value is None or isinstance(value, bool | str | int):
        return value
    value = float(value)
    return value if math.isfinite(value) else repr(value)


def _digest(*arrays: Any) -> str:
    import numpy as np

    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def _facts_of_design(design: Any) -> dict[str, Any]:
    certificate, summary = design.certificate, design.summary
    names = (
        "solver", "rows_policy", "program_rows", "program_columns", "blocks", "symmetries", "rounds", "iterations",
        "memory_estimate", "primal_residual", "dilation", "parts", "programs", "proposals", "privacy_weight",
        "floor_weight",
    )  # fmt: skip
    facts = {name: _plain(getattr(summary, name, None)) for name in names}
    return {
        "status": design.status.name,
        "holds": certificate.holds,
        "upper": certificate.cost,
        "lower": certificate.lower_bound,
        "gap": certificate.relative_gap,
        "upper_text": certificate.worst_cost_text
        if certificate.objective == "worst"
        else certificate.expected_cost_text,
        "realised": [_plain(checked.realised) for checked in certificate.requirements],
        "channel": _digest(design.channel.numerators),
        "attempts": len(summary.tried),
        **facts,
    }


def _designed(make: Callable[[], Any], stop_at: int | None = None, **arguments: Any) -> dict[str, Any]:
    import mechdesign as md

    trace = Trace(stop_at)
    design = md.design(make(), threads=1, progress=trace, **arguments)
    return {**_facts_of_design(design), **trace.facts()}


def _block_program(make: Callable[[], Any]) -> Any:
    """Return the block program of a problem without ties, zero distances or infinite costs."""
    import numpy as np

    from mechdesign.solve._block_angular import BlockProgram, FloorBlock, WorstBlock

    cost, exponents, floors, worst = make()
    np.fill_diagonal(exponents, np.inf)
    blocks = tuple(FloorBlock(minimum, error) for minimum, error in floors)
    if worst is not None:
        return BlockProgram(0 * worst, exponents, blocks, WorstBlock(worst, np.arange(len(worst))))
    return BlockProgram(cost, exponents, blocks)


def _generated(
    make: Callable[[], Any], gap: float, arrays: str | None = None, threads: int = 1, always: bool | None = True,
    stop_at: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the block method's column generation, and return all facts of its solution."""
    import numpy as np

    from mechdesign import solve as solvers
    from mechdesign.solve._solve import block_back_end

    program, trace = _block_program(make), Trace(stop_at)
    extra: dict[str, Any] = {"memory": ALLOWED}
    if always is not None:
        extra["generation"] = always
    if arrays is not None:
        extra["arrays"] = arrays
    options = solvers.Options(threads=threads, extra=extra, progress=trace)
    found = block_back_end("block")(program, options, gap=gap)
    ratios = found.multipliers.ratios
    # With several threads, the order of the multipliers of priced columns depends on the order in which threads finish.
    order = np.lexsort((ratios.targets, ratios.sources, ratios.columns))
    history = [
        [each.iteration, *(_plain(getattr(each, name)) for name in ("lower", "upper", "mu", "primal", "dual")),
         each.correctors]
        for each in found.history
    ]  # fmt: skip
    return {
        "status": found.status.name,
        "holds": True,
        "upper": found.upper,
        "lower": found.lower,
        "gap": (found.upper - found.lower) / max(abs(found.upper), 1e-300),
        "iterations": len(found.history),
        "blocks": found.blocks,
        "memory_estimate": found.memory,
        "channel": _digest(found.x),
        "used_columns": int((found.x.sum(axis=0) > 1e-6).sum()),
        "multipliers": int(ratios.values.size),
        "multipliers_digest": _digest(
            *(getattr(ratios, each)[order] for each in ("sources", "targets", "columns", "values"))
        ),
        "history": history,
        **trace.facts(),
    }


def _city(
    columns: int, rows: int, eps: float, floor: float | None, answers: int = 1, power: int = 2, seed: int = 0
) -> Any:
    """Return a builder of a grid's block program with an uneven prior; every `answers`-th cell is an answer."""

    def make() -> Any:
        import numpy as np

        p = _cells(columns, rows)
        rng = np.random.default_rng(seed)
        d = _apart(p)
        centres = p[rng.integers(0, len(p), 4)]
        prior = np.exp(-(_apart(p, centres) ** 2) / (2 * (columns / 8) ** 2)).sum(axis=1) + 0.01
        prior /= prior.sum()
        floors = [] if floor is None else [(floor * float((d @ prior).min()), d * prior)]
        return prior[:, None] * d[:, ::answers] ** power, eps * d, floors, None

    return make


def _two_adversaries(columns: int, rows: int) -> Any:
    def make() -> Any:
        import numpy as np

        cost, exponents, floors, worst = _city(columns, rows, 0.8, 0.7)()
        d = _apart(_cells(columns, rows))
        other = np.random.default_rng(9).dirichlet(np.ones(len(d)))
        return cost, exponents, [*floors, (0.6 * float((d @ other).min()), d * other)], worst

    return make


def _worst_city(columns: int, rows: int) -> Any:
    def make() -> Any:
        d = _apart(_cells(columns, rows))
        _, exponents, floors, _ = _city(columns, rows, 0.6, 0.8)()
        return None, exponents, floors, d

    return make


def _road_program(count: int, seed: int) -> Any:
    def make() -> Any:
        import numpy as np

        graph = _roads(count, seed)
        exponents = np.full((count, count), np.inf)
        for a, b, data in graph.edges(data=True):
            exponents[a, b] = exponents[b, a] = 0.6 * max(data["weight"], 0.05)
        prior = np.random.default_rng(seed).dirichlet(np.ones(count))
        return prior[:, None] * _along(graph), exponents, [], None

    return make


def _coupled_towns() -> Any:
    """Return a problem of 24 towns that share two floors, which Dantzig–Wolfe decomposition solves."""
    import numpy as np

    import mechdesign as md

    p, g, prior = _components(24, 6, 21)
    town = np.arange(144) // 6
    d = _apart(p)
    cost = np.where(town[:, None] == town, d**2, INF)
    mine = np.where(town[:, None] == town, d, 3.0)
    other = np.random.default_rng(22).dirichlet(np.full(144, 3.0))

    def largest(belief: Any) -> float:
        """Return the largest possible floor if every answer reveals the town."""
        return sum(float((mine[:, town == k] @ belief[town == k]).min()) for k in range(24))

    floors = [
        md.DistortionPrivacy(0.9 * largest(prior), mine),
        md.DistortionPrivacy(0.9 * largest(other), mine, other),
    ]
    return md.Problem(prior, cost, [md.GraphPrivacy("3", g), *floors])


def _map(columns: int, rows: int, floor: float | None = None) -> Callable[[], Any]:
    def make() -> Any:
        import mechdesign as md

        p = _cells(columns, rows)
        d = _apart(p)
        requirements = [md.MetricPrivacy("0.6", d)]
        if floor is not None:
            requirements.append(_floor(floor, d, _bell(p)))
        return md.Problem(_bell(p), d if floor is None else d**2, requirements)

    return make


def generations() -> dict[str, tuple[Callable[[], dict[str, Any]], tuple[str, ...]]]:
    """Return the ten runs of column generation."""
    return {
        # Blocks with a floor use a coarse problem with a third of the rows, merging, pricing and bound correction.
        "blocks, floor, 15 x 12": (lambda: _generated(_city(15, 12, 0.8, 0.8), 1e-5, "numpy"), ()),
        # Two threads use the same kernel; the sums of both threads are added in a fixed order.
        "blocks, floor, 13 x 12, two threads": (
            lambda: _generated(_city(13, 12, 1.0, 0.7, seed=3), 1e-4, "numpy", 2),
            (),
        ),
        # The size of this program decides the method: its coarse problem keeps more than 40 % of the columns, so all
        # blocks are solved at once.
        "blocks, floor, 15 x 14, numba, auto": (
            lambda: _generated(_city(15, 14, 1.0, 0.7, seed=3), 1e-4, "numba", always=None),
            ("numba",),
        ),
        "blocks, two adversaries, 14 x 11": (lambda: _generated(_two_adversaries(14, 11), 1e-4, "numpy"), ()),
        # Dense blocks without a floor start with all columns, which are merged as the gap falls.
        "blocks, no floor, 15 x 14, auto": (
            lambda: _generated(_city(15, 14, 0.6, None, power=1), 1e-5, "numpy", always=None),
            (),
        ),
        "blocks, worst cost, 10 x 8": (lambda: _generated(_worst_city(10, 8), 1e-5, "numpy"), ()),
        "blocks, roads, 260": (lambda: _generated(_road_program(260, 5), 1e-4), ()),
        # With 812 rows, there are two coarse problems, a trial and a second start; pricing begins with near bounds.
        "blocks, trial, 29 x 28, few answers": (
            lambda: _generated(_city(29, 28, 0.5, 0.8, answers=40, seed=2), 8e-4, None),
            (),
        ),
        "parts, 24 towns, two floors": (lambda: _designed(_coupled_towns, tolerance=1e-7), ()),
        "rays, 14 x 12, floor": (lambda: _designed(_map(14, 12, 0.5), rows="rays", tolerance=1e-2), ()),
    }


def stopped() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return runs that Ctrl-C ends at a given bracket; the omitted columns are priced before the end."""
    return {
        "blocks, floor, 13 x 12, Ctrl-C": lambda: _generated(
            _city(13, 12, 1.0, 0.7, seed=3), 1e-4, "numpy", stop_at=112
        ),
        "rays, 12 x 10, Ctrl-C": lambda: _designed(_map(12, 10), stop_at=2, rows="rays", tolerance=1e-3),
    }


def cases() -> Iterator[Case]:
    """Yield all cases: the ten runs of column generation first, the stopped ones, and the 60 designs."""
    for name, (run, needs) in generations().items():
        yield Case(name, "generation", run, needs)
    for name, run in stopped().items():
        yield Case(name, "stopped", run)
    made = problems()
    for kind, ways in DESIGNS.items():
        for way in ways:
            arguments, needs = WAYS[way]
            yield Case(f"{kind}: {way}", "design", lambda k=kind, a=arguments: _designed(made[k], **a), needs)


def _run(name: str) -> dict[str, Any]:
    """Run one case in this process."""
    import warnings

    warnings.simplefilter("ignore")
    case = next(case for case in cases() if case.name == name)
    missing = [module for module in case.needs if importlib.util.find_spec(module) is None]
    if missing:
        return {"skipped": f"needs {', '.join(missing)}"}
    clock = time.perf_counter()
    try:
        found = case.run()
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    return {"group": case.group, **found, "seconds": round(time.perf_counter() - clock, 3)}


def environment() -> dict[str, str]:
    """Return the facts of the machine that the numbers may depend on."""
    names = ("numpy", "scipy", "numba", "highspy", "cvxpy", "clarabel", "mechdesign")
    found = {"python": platform.python_version(), "machine": platform.machine(), "processor": _processor()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "-"
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    found["blas"] = "; ".join(sorted({f"{b['internal_api']} {b['version']} {b.get('architecture')}" for b in blas}))
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def record(path: Path, only: list[str], jobs: int) -> int:
    """Run all cases, or those whose names contain one of the given texts, and write the results."""
    os.environ.update(ONE_THREAD)
    names = [case.name for case in cases() if not only or any(text in case.name for text in only)]
    clock, found = time.perf_counter(), {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(_run, name): name for name in names}
        for future in as_completed(waiting):
            name = waiting[future]
            found[name] = future.result()
            said = found[name].get("error") or found[name].get("skipped") or found[name].get("status")
            print(f"{time.perf_counter() - clock:6.0f} s  {name}: {said}", flush=True)
    ordered = {name: found[name] for name in names}
    document = {"environment": environment(), "seconds": round(time.perf_counter() - clock, 1), "cases": ordered}
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    wrong = [name for name in names if "error" in found[name]]
    print(f"{len(names)} cases in {document['seconds']:.0f} s, {len(wrong)} with an error; written to {path}")
    return 1 if wrong else 0


# ---------------------------------------------------------------------------------------------------------------------
# Comparing

# Facts about a run that are never compared.
_SAID = {"seconds", "stages", "group"}
# Facts that `--loose` does not compare, because they depend on the last bits of numbers.
_BITS = {
    "channel", "multipliers_digest", "multipliers", "history", "brackets", "realised", "primal_residual",
    "privacy_weight", "floor_weight", "used_columns", "upper_text",
}  # fmt: skip
_COUNTS = {
    "iterations": ITERATIONS, "rounds": ITERATIONS, "proposals": ITERATIONS, "program_rows": ITERATIONS,
    "program_columns": ITERATIONS, "blocks": WORKING_SET,
}  # fmt: skip


def _differences(name: str, old: dict[str, Any], new: dict[str, Any], loose: bool) -> list[str]:
    for key in ("error", "skipped"):
        if key in old or key in new:
            same = old.get(key) == new.get(key)
            return [] if same else [f"{key}: {old.get(key)!r} and {new.get(key)!r}"]
    found = []
    for key in sorted((set(old) | set(new)) - _SAID):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if key == "memory_estimate" and before and after and abs(before - after) <= MEMORY * max(before, after):
            continue
        if loose:
            if key in _BITS or key in ("lower", "upper", "gap", "memory_estimate"):
                continue
            if key in _COUNTS and _near(before, after, _COUNTS[key]):
                continue
            if key == "working_sets":
                first, second = (sizes[-1] if sizes else 0 for sizes in (before or [], after or []))
                if _near(first, second, WORKING_SET):
                    continue
        found.append(f"{key}: {_short(before)} and {_short(after)}{_where(before, after)}")
    if loose:
        found += _brackets(old, new)
    return found


def _near(before: float | None, after: float | None, share: float) -> bool:
    """Return whether two counts differ by at most a share of the larger one."""
    if before is None or after is None:
        return False
    return abs(before - after) <= max(LEAST_ITERATIONS, share * max(before, after))


def _where(before: Any, after: Any) -> str:
    """Describe the first difference of two lists."""
    if not (isinstance(before, list) and isinstance(after, list)):
        return ""
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    return f" (first at {at})"


def _brackets(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Check that two brackets of one optimum overlap, and that the newer one meets the required gap."""
    scale = max(abs(old["upper"]), abs(new["upper"]), 1e-300)
    found = []
    if old["lower"] > new["upper"] + BOUND * scale or new["lower"] > old["upper"] + BOUND * scale:
        found.append(
            f"brackets do not overlap: [{old['lower']:.12g}, {old['upper']:.12g}] and "
            f"[{new['lower']:.12g}, {new['upper']:.12g}]"
        )
    if new["gap"] > 2 * old["gap"] + 1e-8 and new["status"] != "OPTIMAL":
        found.append(f"gap: {old['gap']:.3g} and {new['gap']:.3g}")
    return found


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def compare(first: Path, second: Path, loose: bool, verbose: bool) -> int:
    """Print the differences; return 1 if there are any."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (first, second))
    for key in sorted(set(old["environment"]) | set(new["environment"])):
        before, after = old["environment"].get(key), new["environment"].get(key)
        if before != after:
            print(f"environment: {key}: {before} and {after}")
    names = list(dict.fromkeys([*old["cases"], *new["cases"]]))
    different = 0
    for name in names:
        if name not in old["cases"] or name not in new["cases"]:
            lines = ["only in the first" if name in old["cases"] else "only in the second"]
        else:
            lines = _differences(name, old["cases"][name], new["cases"][name], loose)
        if lines:
            different += 1
            print(f"{name}")
            for line in lines if verbose else lines[:6]:
                print(f"    {line}")
            if len(lines) > 6 and not verbose:
                print(f"    and {len(lines) - 6} more")
    both = [name for name in names if all("seconds" in run["cases"].get(name, {}) for run in (old, new))]
    for group in ("design", "generation", "stopped"):
        mine = [name for name in both if old["cases"][name]["group"] == group]
        before, after = (sum(run["cases"][name]["seconds"] for name in mine) for run in (old, new))
        if mine:
            print(f"{group}: {len(mine)} cases, {before:.1f} s and {after:.1f} s ({after / before - 1:+.1%})")
    skipped = [name for name in names if "skipped" in new["cases"].get(name, {})]
    print(
        f"{len(names)} cases: {len(names) - different} {'agree' if loose else 'are equal'}, {different} differ"
        + (f"; {len(skipped)} skipped ({', '.join(skipped)})" if skipped else "")
    )
    return 1 if different else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", nargs="+", default=[])
    recording.add_argument("--jobs", type=int, default=2)
    comparing = commands.add_parser("compare")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    comparing.add_argument("--loose", action="store_true")
    comparing.add_argument("--verbose", action="store_true")
    commands.add_parser("list")
    given = parser.parse_args()
    if given.command == "record":
        return record(given.file, given.only, given.jobs)
    if given.command == "compare":
        return compare(given.first, given.second, given.loose, given.verbose)
    for case in cases():
        print(f"{case.group:11} {case.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
