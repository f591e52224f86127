"""Quality of strategies for linear workloads, compared with their proven limit and with published results.

    python benchmarks/evidence/blowfish_strategies.py [--quick]

The script prints three tables:

- Gaussian noise: the root mean squared error of a query at unit sensitivity and unit noise, compared with the proven
  limit. Thresholds θ go from 1 to |T| − 1; θ = 0 stands for adding or removing a record, without a policy. Results of
  HDMM (McKenna, Miklau, Hay and Machanavajjhala 2018) are listed for workloads without a policy; these published
  results come without a bound.
- Laplace noise: the expected error of each strategy as a multiple of the limit for linear unbiased decoding.
- Inference: measured errors of the cumulative histogram of 256 values under a threshold of 1. Answers are decoded
  linearly, and by bounded isotonic regression. Isotonic regression is neither linear nor unbiased, so its error can
  be below the limit.

Times are wall-clock times with all threads that NumPy's BLAS uses; set OMP_NUM_THREADS=1 for one core.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._workload import all_ranges, prefixes

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, options, show

WORKLOADS = {"ranges": all_ranges, "prefixes": prefixes}
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


def gaussian(largest: int) -> None:
    """Print the errors of strategies with Gaussian noise."""
    columns = {"workload": "{workload}", "|T|": "{size}", "θ": "{theta}", "limit": "{limit:.5f}"}
    columns |= {"released": "{released:.5f}", "bracket": "{bracket:.1e}", "HDMM": "{hdmm:.2f}"}
    columns |= {"HDMM above": "{above:+.1%}", "seconds": "{seconds:.1f}"}
    rows: list[Facts] = []
    for name, size, theta in ((name, size, theta) for name, size, thetas in GAUSSIAN for theta in thetas):
        if size > largest:
            continue
        policy = policy_of(size, theta)
        start = time.perf_counter()
        found = WORKLOADS[name](size).using("optimal").strategy(policy)
        seconds = time.perf_counter() - start
        # At unit sensitivity, ρ = 1/2 gives noise of unit variance.
        low, high = found.lower_bound(rho="0.5"), found.error(rho="0.5")
        limit, released = np.sqrt([low, high]) / np.sqrt(found.workload.count)
        row: Facts = {"workload": name, "size": size, "theta": theta or "none", "limit": limit, "released": released}
        row |= {"bracket": high / low - 1, "seconds": seconds, "hdmm": HDMM.get((name, size, theta))}
        rows.append(row | {"above": row["hdmm"] and row["hdmm"] / released - 1})
    title = "Gaussian noise: root mean squared error of a query at unit sensitivity and unit noise"
    show(columns, rows, title=title)


def laplace(largest: int) -> None:
    """Print the errors of strategies with Laplace noise."""
    kinds = ("identity", "prefix", "hierarchical", "ordered-hierarchical", "optimal")
    rows = []
    for name, size, theta in ((name, size, theta) for name, size, thetas in LAPLACE for theta in thetas):
        if size <= largest:
            found = WORKLOADS[name](size).strategy(policy_of(size, theta), noise="laplace")
            ratios = {kind: ratio for kind, _, ratio in found.candidates}
            rows.append({"workload": name, "size": size, "theta": theta or "none", "taken": found.kind, **ratios})
    title = "Laplace noise: expected error as a multiple of the limit for linear unbiased decoding"
    columns = {"workload": "{workload}", "|T|": "{size}", "θ": "{theta}"}
    show(columns | {kind: f"{{{kind}:.3f}}" for kind in kinds} | {"taken": "{taken}"}, rows, title=title)


def inference(repeats: int) -> None:
    """Print measured errors of the cumulative histogram."""
    policy, workload = policy_of(256, 1), prefixes(256)
    found = workload.strategy(policy, noise="laplace")
    rng, rows = np.random.default_rng(7), []
    for name, counts in _histograms().items():
        data, truth = np.repeat(np.arange(256), counts), np.cumsum(counts)
        before, after = [], []
        for _ in range(repeats):
            answers = workload.release(data, policy, epsilon=1, rng=rng).answers
            before.append(((answers - truth) ** 2).sum())
            after.append(((fitted(answers, len(data)) - truth) ** 2).sum())
        row = {"data": name, "records": len(data), "linear": np.mean(before), "isotonic": np.mean(after)}
        rows.append(row | {"limit": found.lower_bound(epsilon=1), "promised": found.error(epsilon=1)})
    columns = {"data": "{data}", "records": "{records:,}", "limit": "{limit:.1f}", "promised": "{promised:.1f}"}
    columns |= {"decoded linearly": "{linear:.1f}", "after isotonic regression": "{isotonic:.1f}"}
    title = "Cumulative histogram of 256 values, threshold 1, ε = 1: measured total squared error"
    show(columns, rows, title=title)


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
    """Print the three tables."""
    quick = options(__doc__, quick=False).quick
    gaussian(256 if quick else 1024)
    laplace(64 if quick else 256)
    inference(50 if quick else 500)


if __name__ == "__main__":
    main()
