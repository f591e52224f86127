"""Time the least-cost channel of a 50 × 50 map under PGLP's Gk9, Gk16 and Gk25, including the certificate.

Run ``python benchmarks/solvers/policy_scale.py [side]``. With a uniform prior, all blocks of a size give the same program; with
a random prior, every block gives a different program. Each line of the output comes from a separate process, which
gives its peak memory. Seconds count everything from the grid to the certified design; "solving" is the part before the
exact checks. By default the answers are the cells of the block. The variant "map" permits every cell of the map as an
answer. The variant "floor" sets one floor for all blocks: the midpoint between the best attack's expected error without
a floor and its maximum.
"""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

import mechdesign as md
from mechdesign.model._problem import largest_distortion

COLUMNS = "{:<6}{:<9}{:<7}{:>6}{:>10}{:>11}{:>9}{:>10}{:>12}{:>10}{:>9}"


def measure(side: int, k: int, prior: str, kind: str) -> str:
    clock, cpu = time.perf_counter(), time.process_time()
    domain = md.Domain.grid(columns=side, rows=side, width=float(side), height=float(side))
    graph = md.graphs.blocks(domain, k)
    n = domain.size
    weights = np.full(n, 1 / n) if prior == "uniform" else np.random.default_rng(0).dirichlet(np.ones(n))
    extra = {"within": "map" if kind == "map" else "component", "isolated": "hull"}
    if kind == "floor":
        error = md.distances.euclidean(domain)
        extra |= {"cost": error**2, "requirements": [half_way(domain, graph, weights, error)]}
        clock, cpu = time.perf_counter(), time.process_time()
    made = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=weights, **extra))
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    facts, found = made.certificate.provenance, made.certificate
    return COLUMNS.format(
        f"Gk{k * k}",
        prior,
        kind,
        facts["parts"],
        facts["programs"],
        f"{seconds:.1f}",
        f"{used:.1f}",
        f"{facts['solve_seconds']:.1f}",
        f"{found.relative_gap:.1e}",
        f"{found.expected_cost:.6f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    )


def half_way(domain: md.Domain, graph, prior: np.ndarray, error: np.ndarray) -> md.DistortionPrivacy:
    free = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=prior, cost=error**2, isolated="hull"))
    joined = free.problem.requirements[-1].graph
    blocks = np.zeros(domain.size, dtype=np.int64)
    for number, nodes in enumerate(md.graphs.components(joined)):
        blocks[nodes] = number
    least = md.attack.optimal(free.channel, prior, error).distortion
    return md.DistortionPrivacy(round((least + float(largest_distortion(prior, error, blocks))) / 2, 6), error)


def main(side: int = 50) -> None:
    print(f"{side} × {side} cells, ε = 1, Euclidean cost (squared with floors)")
    heads = ("graph", "prior", "kind", "parts", "programs", "seconds", "CPU s", "solving s", "gap", "cost", "MiB")
    print(COLUMNS.format(*heads))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for kind in ("block", "map", "floor"):
            for k in (3, 4, 5):
                for prior in ("uniform", "random"):
                    print(pool.submit(measure, side, k, prior, kind).result(), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
