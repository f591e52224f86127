"""A day of location reports, pair by pair: no paper has this figure.

The cells are those of New York. The chain is counted from check-ins, with the hour as its step; people stay at their
last place. Each report protects cells by ε per km. The figure shows what the reports so far tell of the present cell:
the largest bound per km. Reports at longer intervals have powers of the chain. A walk on the same cells, which stays
with probability ½ or moves to one of the neighbours, stands for a chain that reaches only near cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign import leakage
from papers.experiments import Experiment, Row
from papers.temporal_leakage_counts import BOX, CHECKINS, weeks

__all__ = ["PAIRS", "chains"]

WALK = "a walk, every hour"
HOURS = {"every hour": 1, "every 6 hours": 6, "every day": 24}


def chains(folder: Path, side: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the backward and the forward matrix from a report to the next, on side × side cells, by name."""
    people = [row for name in CHECKINS for row in weeks(folder / name, side)]
    # Before the first check-in, the place of a person is not known.
    traces = [row[row < side * side] for row in people if row.min() < side * side]
    found = leakage.correlations_from_traces(traces, side * side)
    hourly = found.backward.matrix, found.forward.matrix
    named = {name: tuple(np.linalg.matrix_power(each, hours) for each in hourly) for name, hours in HOURS.items()}
    beside = md.distances.manhattan(md.Domain.grid(side, side, float(side), float(side))) == 1
    walk = md.MarkovChain((np.eye(side * side) + beside / beside.sum(axis=1, keepdims=True)) / 2)
    return named | {WALK: (walk.reverse(walk.stationary()).matrix, walk.matrix)}


def day(folder: Path, *, side: int, epsilons: list[str], releases: int) -> Iterator[Row]:
    """Yield the largest bounds after each report.

    `present` is the largest bound per km that the reports so far give of the present cell, and `any` that of all
    reports on the cell of this report. `all` is the largest bound of `present` in nats. `diameter` is the bound of the
    present cell if the largest bound of a report is taken for every pair, per km of the nearest cells.
    """
    apart = md.distances.haversine(md.Domain.geographic_grid(side, side, **BOX))
    off = apart > 0
    for name, (back, ahead) in chains(folder, side).items():
        for epsilon in epsilons:
            bounds = leakage.pairs(md.MetricPrivacy(epsilon, apart))
            present = leakage.backward([bounds] * releases, back)
            total = leakage.temporal([bounds] * releases, back, ahead)
            largest = leakage.backward([float(bounds.max())] * releases, back)
            for step in range(releases):
                yield {
                    "chain": name,
                    "epsilon": float(epsilon),
                    "report": step + 1,
                    "stays": float(np.diagonal(back).mean()),
                    "present": float((present[step][off] / apart[off]).max()),
                    "any": float((total[step][off] / apart[off]).max()),
                    "all": float(present[step].max()),
                    "diameter": float(largest[step] / apart[off].min()),
                }


PAIRS = Experiment(
    "temporal_leakage_pairs",
    day,
    small={"side": 3, "epsilons": ["0.3"], "releases": 4},
    full={"side": 4, "epsilons": ["0.1", "0.3", "1"], "releases": 12},
    keys=("chain", "epsilon", "report"),
    spread=dict.fromkeys(("present", "any", "all", "diameter"), 1e-7),
    data=CHECKINS,
)
