"""Sums over many runs: shifted geometric means, and the performance profile of Dolan and Moré (2002)."""

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
"""Seconds that are added before and taken off after, so that tiny times do not rule the mean."""


@dataclass(frozen=True)
class Score:
    """How a contestant did over all its runs.

    Attributes:
        runs: How many there were.
        solved: How many ended in a channel that is proved to be optimal, after rounding.
        claimed: How many it called optimal itself.
        not_private: How many of these are not private as returned.
        wrong: How many of these are otherwise not what was asked for, or not optimal.
        mean: The shifted geometric mean of the seconds of what it solved; NaN without any.
        censored_mean: That of all, those not solved at the limit of time: it rewards no failure.
        ours: Whether it is this package's own.
    """

    runs: int
    solved: int
    claimed: int
    not_private: int
    wrong: int
    mean: float
    censored_mean: float
    ours: bool


def contestant(row: Mapping[str, Any]) -> str:
    """Return the solver of a row with its settings."""
    return f"{row['solver']} ({row['settings']})" if row["settings"] else str(row["solver"])


def problem(row: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return family, n and seed of a row."""
    return str(row["family"]), int(row["n"]), int(row["seed"])


def solved(row: Mapping[str, Any]) -> bool:
    """Tell whether a run ended in a channel, or a fraction, that is proved to be optimal."""
    return row.get("rounded") == Verdict.OPTIMAL and not row.get("censored")


def seconds(row: Mapping[str, Any]) -> float:
    """Return the seconds that building, solving and certifying took together."""
    return math.fsum(row.get(name) or 0.0 for name in ("build_s", "solve_s", "certify_s"))


def scores(rows: Results, limit: float) -> dict[str, Score]:
    """Return how each contestant did, the one that solved most first, then the fastest.

    Args:
        rows: Runs, by column.
        limit: Seconds that what was not solved counts as.
    """
    found: dict[str, Score] = {}
    for name in dict.fromkeys(map(contestant, rows)):
        mine = [row for row in rows if contestant(row) == name]
        said = [row for row in mine if row.get("claimed") == Verdict.OPTIMAL]
        faults = [
            row for row in said if row.get("certified") != Verdict.OPTIMAL and row.get("certified") != Verdict.TIMEOUT
        ]
        not_private = sum(row.get("certified") == Verdict.NOT_PRIVATE for row in faults)
        times = [seconds(row) for row in mine if solved(row)]
        found[name] = Score(
            runs=len(mine),
            solved=len(times),
            claimed=len(said),
            not_private=not_private,
            wrong=len(faults) - not_private,
            mean=shifted_geometric_mean(times),
            censored_mean=shifted_geometric_mean([seconds(row) if solved(row) else limit for row in mine]),
            ours=any(row.get("ours") for row in mine),
        )
    return dict(sorted(found.items(), key=lambda each: (-each[1].solved / each[1].runs, each[1].censored_mean)))


def shifted_geometric_mean(values: Iterable[float], shift: float = SHIFT) -> float:
    """Return exp(mean ln(x + shift)) − shift; NaN without values.

    >>> round(shifted_geometric_mean([1.0, 7.0]), 12)
    3.0
    """
    logarithms = [math.log(value + shift) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) - shift if logarithms else math.nan


def performance_profile(rows: Results) -> dict[str, Floats]:
    """Return, for each contestant, in order, the ratios of its times to the best on each problem that it solved.

    The part of problems with a ratio of at most τ is its profile ρ(τ) (Dolan and Moré 2002, equation 2.1): the number
    of these ratios up to τ over the number of problems. Problems that nobody solved are left out; the part of a
    contestant is of the problems that it was given.
    """
    best: dict[tuple[str, int, int], float] = {}
    for row in rows:
        if solved(row):
            best[problem(row)] = min(seconds(row), best.get(problem(row), math.inf))
    found: dict[str, list[float]] = {}
    for row in rows:
        if problem(row) in best:
            ratio = seconds(row) / max(best[problem(row)], 1e-9) if solved(row) else math.inf
            found.setdefault(contestant(row), []).append(ratio)
    return {name: np.sort(np.array(ratios)) for name, ratios in found.items()}
