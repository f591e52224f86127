"""Statistics over runs: shifted geometric means, and the performance profile of Dolan and Moré (2002)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.runs._phases import Verdict

Results = Sequence[Mapping[str, Any]]

SHIFT = 1.0
"""Seconds that are added before the mean and subtracted after it, so that tiny times do not dominate."""


@dataclass(frozen=True)
class Score:
    """Totals of a solver over all its runs.

    Attributes:
        runs: Number of runs.
        solved: Number of runs with a channel that is proved to be optimal after rounding.
        claimed: Number of runs that the solver claims to be optimal.
        not_private: Number of claimed optima whose returned matrix is not private.
        wrong: Number of claimed optima that violate another constraint or are not optimal.
        mean: Shifted geometric mean of the seconds of solved runs; NaN if no run is solved.
        censored_mean: Shifted geometric mean of the seconds of all runs, which includes the time limit for each
            unsolved run.
    """

    runs: int
    solved: int
    claimed: int
    not_private: int
    wrong: int
    mean: float
    censored_mean: float


def problem(row: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return family, n and seed of a row."""
    return str(row["family"]), int(row["n"]), int(row["seed"])


def is_solved(row: Mapping[str, Any]) -> bool:
    """Return whether a run ended with a channel, or a fraction, that is proved to be optimal."""
    return row.get("rounded") == Verdict.OPTIMAL and row["ended"] == "done"


def seconds(row: Mapping[str, Any]) -> float:
    """Return the total seconds of building, solving and certifying."""
    return math.fsum(row.get(name) or 0.0 for name in ("build_s", "solve_s", "certify_s"))


def scores(rows: Results, limit: float) -> dict[str, Score]:
    """Return the scores of all solvers: sorted by the number of solved problems, then by speed.

    Args:
        rows: The runs, each a mapping of columns to values.
        limit: Seconds used for an unsolved run.

    Returns:
        The score of each solver.
    """
    found: dict[str, Score] = {}
    for name in dict.fromkeys(row["solver"] for row in rows):
        mine = [row for row in rows if row["solver"] == name]
        said = [row for row in mine if row.get("claimed") == Verdict.OPTIMAL]
        faults = [
            row for row in said if row.get("certified") != Verdict.OPTIMAL and row.get("certified") != Verdict.TIMEOUT
        ]
        not_private = sum(row.get("certified") == Verdict.NOT_PRIVATE for row in faults)
        times = [seconds(row) for row in mine if is_solved(row)]
        found[name] = Score(
            runs=len(mine),
            solved=len(times),
            claimed=len(said),
            not_private=not_private,
            wrong=len(faults) - not_private,
            mean=compute_shifted_mean(times),
            censored_mean=compute_shifted_mean([seconds(row) if is_solved(row) else limit for row in mine]),
        )
    return dict(sorted(found.items(), key=lambda each: (-each[1].solved / each[1].runs, each[1].censored_mean)))


def compute_shifted_mean(values: Iterable[float], shift: float = SHIFT) -> float:
    """Return exp(mean ln(x + shift)) − shift; NaN without values.

    >>> round(compute_shifted_mean([1.0, 7.0]), 12)
    3.0
    """
    logarithms = [math.log(value + shift) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) - shift if logarithms else math.nan


def performance_profile(rows: Results) -> dict[str, Floats]:
    """Return, for each solver, the sorted ratios of its times to the best times on the same problems.

    The profile ρ(τ) of Dolan and Moré (2002, equation 2.1) is the share of a solver's problems with a ratio of at
    most τ. Unsolved problems have an infinite ratio. Problems that no solver solved are left out.
    """
    best: dict[tuple[str, int, int], float] = {}
    for row in rows:
        if is_solved(row):
            best[problem(row)] = min(seconds(row), best.get(problem(row), math.inf))
    found: dict[str, list[float]] = {}
    for row in rows:
        if problem(row) in best:
            ratio = seconds(row) / max(best[problem(row)], 1e-9) if is_solved(row) else math.inf
            found.setdefault(row["solver"], []).append(ratio)
    return {name: np.sort(np.array(ratios)) for name, ratios in found.items()}
