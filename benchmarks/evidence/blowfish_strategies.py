"""Quality of strategies for linear workloads, compared with their proven limit and with published results.

    python benchmarks/evidence/blowfish_strategies.py [--quick]

The script prints three tables:

- Gaussian noise: the root mean squared error of a query at unit sensitivity and unit noise, compared with the proven
  limit. Thresholds θ go from 1 to |T| − 1; θ = 0 stands for adding or removing a record, without a policy. Results of
  HDMM (McKenna, Miklau, Hay and Machanavajjhala 2018) are listed for workloads without a policy; these published
  results come without a bound.
- Laplace noise: the expected error of each strategy as a multiple of the limit for linear unbiased decoding.
- Inference: measured errors of the cumulative histogram of 256 values under a line policy. Answers are decoded
  linearly, and by bounded isotonic regression. Isotonic regression is neither linear nor unbiased, so its error can
  be below the limit.

Times are wall-clock times with all threads that NumPy's BLAS uses; set OMP_NUM_THREADS=1 for one core.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import isotonic_regression

from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._workload import strategy

GAUSSIAN = (
    ("ranges", 64, (1, 4, 16, 63)),
    ("ranges", 256, (0, 1, 16, 255)),
    ("prefixes", 256, (0, 1, 16, 255)),
    ("prefixes", 1024, (0, 16)),
    ("ranges", 1024, (0, 1, 2, 4, 16, 64, 256, 512, 1023)),
)
LAPLACE = (("ranges", 64, (0, 1, 4, 16, 63)), ("prefixes", 64, (0, 1, 4, 63)), ("ranges", 256, (0, 1, 16, 255)))
HDMM = {("ranges", 256, 0): 2.90, ("prefixes", 1024, 0): 3.07}


def policy_of(size: int, theta: int) -> Policy:
    """Return the threshold policy on an ordered attribute; with θ = 0, neighbours add or remove a record instead."""
    domain = Domain({"value": range(size)})
    if theta == 0:
        return Policy.graph(domain, [(value, None) for value in range(size)], unbounded=True)
    return Policy.threshold(domain, theta)


def gaussian(name: str, size: int, thetas: tuple[int, ...]) -> Table:
    table = Table(title="Gaussian noise: root mean squared error of a query at unit sensitivity and unit noise")
    for heading in ("workload", "|T|", "θ", "limit", "released", "bracket", "HDMM", "HDMM above", "seconds"):
        table.add_column(heading, justify="left" if heading == "workload" else "right")
    for theta in thetas:
        policy = policy_of(size, theta)
        start = time.perf_counter()
        found = strategy(name, policy, kind="optimal")
        seconds = time.perf_counter() - start
        # At unit sensitivity, ρ = 1/2 gives noise of unit variance.
        low, high = found.lower_bound(rho="0.5"), found.error(rho="0.5")
        limit, released = np.sqrt([low, high]) / np.sqrt(found.workload.count)
        published = HDMM.get((name, size, theta))
        table.add_row(
            name,
            str(size),
            str(theta) if theta else "none",
            f"{limit:.5f}",
            f"{released:.5f}",
            f"{high / low - 1:.1e}",
            f"{published:.2f}" if published else "",
            f"{published / released - 1:+.1%}" if published else "",
            f"{seconds:.1f}",
        )
    return table


def laplace(largest: int) -> Table:
    kinds = ("identity", "prefix", "hierarchical", "ordered-hierarchical", "optimal")
    table = Table(title="Laplace noise: expected error as a multiple of the limit for linear unbiased decoding")
    for heading in ("workload", "|T|", "θ", *kinds, "taken"):
        table.add_column(heading, justify="left" if heading in ("workload", "taken") else "right")
    for name, size, thetas in LAPLACE:
        for theta in thetas if size <= largest else ():
            found = strategy(name, policy_of(size, theta), noise="laplace")
            ratios = {kind: f"{ratio:.3f}" for kind, _, ratio in found.candidates}
            cells = [ratios.get(kind, "") for kind in kinds]
            table.add_row(name, str(size), str(theta) if theta else "none", *cells, found.kind)
    return table


def inference(repeats: int) -> Table:
    title = "Cumulative histogram of 256 values, line policy, ε = 1: measured total squared error"
    table = Table(title=title)
    for heading in ("data", "records", "limit", "promised", "decoded linearly", "after isotonic regression"):
        table.add_column(heading, justify="left" if heading == "data" else "right")
    found = strategy("prefixes", policy_of(256, 1), noise="laplace")
    rng = np.random.default_rng(7)
    for name, counts in _histograms().items():
        data, truth = np.repeat(np.arange(256), counts), np.cumsum(counts)
        before, after = [], []
        for _ in range(repeats):
            answers = found.release(data, epsilon=1, rng=rng).answers
            before.append(((answers - truth) ** 2).sum())
            after.append(((fitted(answers, len(data)) - truth) ** 2).sum())
        table.add_row(
            name,
            f"{len(data):,}",
            f"{found.lower_bound(epsilon=1):.1f}",
            f"{found.error(epsilon=1):.1f}",
            f"{np.mean(before):.1f}",
            f"{np.mean(after):.1f}",
        )
    return table


def fitted(cumulative: NDArray[np.float64], records: int) -> NDArray[np.float64]:
    """Return the non-decreasing counts from 0 to the number of records that are nearest to the given counts."""
    increasing: NDArray[np.float64] = isotonic_regression(cumulative).x
    return np.clip(increasing, 0, records)


def _histograms() -> dict[str, NDArray[np.int64]]:
    sparse = np.zeros(256, dtype=np.int64)
    sparse[[20, 90, 91, 200]] = (4000, 2500, 1500, 2000)
    steps = np.zeros(256, dtype=np.int64)
    steps[::32] = 1250
    return {"4 values": sparse, "8 values": steps, "uniform": np.full(256, 40)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="domains of at most 256 values, fewer repetitions")
    quick = parser.parse_args().quick
    console = Console(width=120)
    for name, size, thetas in GAUSSIAN:
        if size <= (256 if quick else 1024):
            console.print(gaussian(name, size, thetas))
    console.print(laplace(64 if quick else 256))
    console.print(inference(50 if quick else 500))


if __name__ == "__main__":
    main()
