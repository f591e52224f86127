"""Budgets of least cost: width of the bracket, time, and the cost of Algorithms 7 and 8.

    python benchmarks/evidence/budgets_of_least_cost.py [--steps 50] [--seed 0]

The chains have three states with random correlations; α is 2, and each release costs w e^-2ε. The weights w are equal,
positive only for every fifth release, or rise from 0.1 to 2.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

from mechdesign import leakage
from mechdesign.errors import CorrelationWarning


def main() -> None:
    """Run the three cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    before, after = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3)
    steps = np.arange(options.steps)
    axis = np.linspace(0, 2, 41)
    table = Table("weights", "Algorithm 7", "Algorithm 8", "least cost", "lower bound", "gap", "s", "processor s")
    for name, weights in (
        ("alike", np.ones(len(steps))),
        ("every fifth", (steps % 5 == 0) * 1.0),
        ("rising", np.linspace(0.1, 2.0, len(steps))),
    ):
        clock, used = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CorrelationWarning)
            best = leakage.best_budgets(2.0, [(axis, weight * np.exp(-2 * axis)) for weight in weights], before, after)
        numbers = (best.constant, best.allocated, best.cost, best.lower_bound)
        times = (f"{time.perf_counter() - clock:.1f}", f"{time.process_time() - used:.1f}")
        table.add_row(name, *(f"{number:.4f}" for number in numbers), f"{best.gap:.2%}", *times)
    Console().print(table)


if __name__ == "__main__":
    main()
