"""Budgets of least cost: width of the bracket, time, and the cost of Algorithms 7 and 8.

    python benchmarks/evidence/budgets_of_least_cost.py [--steps 50] [--seed 0]

The chains have three states with random correlations; α is 2, and each release costs w e^-2ε. The weights w are equal,
positive only for every fifth release, or rise from 0.1 to 2.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

from mechdesign import leakage
from mechdesign.errors import CorrelationWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, show


def main() -> None:
    """Run the three cases and print a table."""
    given = options(__doc__, steps=50, seed=0)
    rng = np.random.default_rng(given.seed)
    before, after = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3)
    axis = np.linspace(0, 2, 41)
    weights = {
        "alike": np.ones(given.steps),
        "every fifth": (np.arange(given.steps) % 5 == 0) * 1.0,
        "rising": np.linspace(0.1, 2.0, given.steps),
    }
    rows = []
    for name, own in weights.items():
        clock, used = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CorrelationWarning)
            best = leakage.best_budgets(2.0, [(axis, weight * np.exp(-2 * axis)) for weight in own], before, after)
        row = {"weights": name, "constant": best.constant, "allocated": best.allocated, "cost": best.cost}
        row |= {"bound": best.lower_bound, "gap": best.gap}
        rows.append(row | {"s": time.perf_counter() - clock, "cpu": time.process_time() - used})
    columns = {"weights": "{weights}", "Algorithm 7": "{constant:.4f}", "Algorithm 8": "{allocated:.4f}"}
    columns |= {"least cost": "{cost:.4f}", "lower bound": "{bound:.4f}", "gap": "{gap:.2%}"}
    show(columns | {"s": "{s:.1f}", "processor s": "{cpu:.1f}"}, rows)


if __name__ == "__main__":
    main()
