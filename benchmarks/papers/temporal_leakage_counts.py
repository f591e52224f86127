"""Example 1 of Cao et al. (2019) with a ledger: counts of people at each place, released again and again.

The check-ins are those of a week in New York; each week of a user counts as a person. People stay at their last place,
and are "elsewhere" before the first one. Other weeks determine the chain, with the hour as its step. The simulated
people start anywhere and move by the chain of section 6.2: the identity after Laplacian smoothing (Equation 28). Every
plan is the plan of a ledger's series, and its releases are charged to this ledger.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mechdesign as md
from mechdesign import leakage
from papers.experiments import Experiment, Row

__all__ = ["ALONE", "ALPHA", "COUNTS", "GROUP", "GUESS"]

Integers = NDArray[np.int64]
CHECKINS = tuple(f"foursquare_nyc_marc/specific_{part}.csv" for part in ("train", "test"))
BOX = {"south": 40.65, "north": 40.83, "west": -74.05, "east": -73.90}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = 168
ALPHA = 1
GROUP = "group privacy (α/T)"
ALONE = "ε = α each time"
GUESS = "no release (equal counts)"


def weeks(path: Path, side: int) -> Integers:
    """Return the cell of each person at each hour of the week, on side × side cells; side² is elsewhere."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    monday, hour = np.datetime64("2012-04-02T00:00"), np.timedelta64(1, "h")
    columns = {
        "user": [row["tid"] for row in rows],
        "latitude": [float(row["lat"]) for row in rows],
        "longitude": [float(row["lon"]) for row in rows],
        "time": [str(monday + (24 * DAYS.index(row["day"]) + int(row["hour"])) * hour) for row in rows],
    }
    visits = md.data.to_grid(md.data.read_checkins(columns, time="time"), md.Domain.geographic_grid(side, side, **BOX))
    people = {name: person for person, name in enumerate(dict.fromkeys(columns["user"]))}
    places = np.full((len(people), HOURS), side * side)
    # The stretches of a person are in the order of time, so the last place of an hour is kept.
    for name, cells, times in zip(visits.users, visits.cells, visits.times, strict=True):
        for cell, start in zip(cells, (times - monday) // hour, strict=True):
            places[people[name], start:] = cell
    return places


def simulated(chain: md.MarkovChain, people: int, steps: int) -> Integers:
    """Return the state of each person at each step of a chain, from the uniform distribution; the seed is fixed."""
    rng = np.random.default_rng(0)
    limits = np.cumsum(chain.matrix, axis=1)
    states = [rng.integers(chain.size, size=people)]
    while len(states) < steps:
        drawn = rng.random(people)[:, None] > limits[states[-1]][:, :-1]
        states.append(drawn.sum(axis=1))
    return np.stack(states, axis=1)


def counts(folder: Path, *, sides: list[int], states: int, smoothing: list[float], steps: int) -> Iterator[Row]:
    """Yield ε, leakage and expected error of each release, for each chain and each plan.

    The error is the root mean squared error of a count. `mean` is its mean over all releases, and `measured` is the
    mean of one run with a fixed seed. If a chain does not allow a plan, the plan has one row with ε = 0.
    """
    for side in sides:
        before, now = (weeks(folder / name, side)[:, :steps] for name in CHECKINS)
        found = leakage.correlations_from_traces(list(before), side * side + 1, only_visited=False)
        yield from _released(f"check-ins, {side * side} cells", found.backward, found.forward, now)
    for s in smoothing:
        chain = leakage.smooth(np.eye(states), s)
        # The chain is symmetric, so the reversed chain is the same.
        yield from _released(f"simulated, s = {s:g}", chain, chain, simulated(chain, 1000, steps))


def _released(name: str, backward: Any, forward: Any, places: Integers) -> Iterator[Row]:
    """Release the counts of all steps under each plan."""
    n, steps = forward.size, places.shape[1]
    policy = md.tables.Policy.full(md.tables.Domain({"place": range(n)}))
    query = md.tables.Histogram()
    true = np.stack([np.bincount(states, minlength=n) for states in places.T])
    row = {"chain": name, "people": len(places), "states": n}
    guesses = [_error(each, len(places) / n) for each in true]
    yield from _rows(row | {"plan": GUESS}, [0] * steps, [0] * steps, guesses, guesses)
    plans = {
        "equal plan": ("equal", steps),
        "Algorithm 7": "constant",
        "Algorithm 8": ("allocated", steps),
        GROUP: [Fraction(ALPHA, steps)] * steps,
    }
    for plan, asked in {**plans, ALONE: None}.items():
        ledger, rng = md.Ledger(), np.random.default_rng(0)
        try:
            if asked:
                ledger.add_series(alpha=ALPHA, backward=backward, forward=forward, plan=asked, history="others")
        except md.errors.InputError:
            yield row | {"plan": plan, "step": 0, "epsilon": 0} | dict.fromkeys(("TPL", "error", "mean", "measured"))
            continue
        measured = []
        for step in range(steps):
            given = {"epsilon": "planned", "step": step} if asked else {"epsilon": ALPHA}
            release = query.release(policy=policy, positions=places[:, step], ledger=ledger, rng=rng, **given)
            measured.append(_error(true[step], release.answers))
        spent = [float(entry.epsilon) for entry in ledger.entries]
        leaks = ledger.series.leakage.values() if asked else leakage.temporal(spent, backward, forward)
        errors = [query.plan(policy, epsilon=epsilon).taken.error for epsilon in spent]
        yield from _rows(row | {"plan": plan}, spent, list(leaks), errors, measured)


def _rows(
    row: Row, spent: list[float], leaks: list[float], errors: list[float], measured: list[float]
) -> Iterator[Row]:
    """Yield the steps at both ends and one of every day, with means over all steps."""
    steps, ends = len(spent), (0, 1, 5)
    means = {"mean": float(np.mean(errors)), "measured": float(np.mean(measured))}
    for step in sorted({*ends, *(steps - 1 - step for step in ends), *range(0, steps, 24)}):
        yield row | {"step": step, "epsilon": spent[step], "TPL": leaks[step], "error": errors[step]} | means


def _error(true: Integers, answers: Any) -> float:
    return float(np.sqrt(np.mean((true - answers) ** 2)))


COUNTS = Experiment(
    "temporal_leakage_counts",
    counts,
    small={"sides": [3, 5], "states": 5, "smoothing": [0.01], "steps": 12},
    full={"sides": [3, 5], "states": 50, "smoothing": [0.001, 0.01], "steps": HOURS},
    keys=("chain", "plan", "step"),
    # Measured errors depend on the sampled noise and are not compared.
    spread={"epsilon": 1e-9, "TPL": 1e-9, "error": 1e-9, "mean": 1e-9},
    data=CHECKINS,
)
