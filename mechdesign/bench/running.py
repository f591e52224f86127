"""Run a suite: problems × contestants, each in a process of its own, into a folder that can be resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechdesign.bench.contestants import Contestant
from mechdesign.bench.contestants import chosen
from mechdesign.bench.families import FAMILIES
from mechdesign.bench.process import Outcome
from mechdesign.bench.process import run_apart
from mechdesign.bench.suites import find_suite
from mechdesign.bench.suites import problems
from mechdesign.bench.verdicts import Verdict
from mechdesign.base._errors import InputError
from mechdesign.records.store import Request
from mechdesign.records.row import Row
from mechdesign.records.row import State
from mechdesign.records.store import Store
from mechdesign.records.environment import processor
from mechdesign.base._check import as_number
from mechdesign.base._version import __version__

__all__ = ["COLUMNS", "Results", "request_of", "run"]

VERSION = 1
"""Of the meaning of a row: folders of another version are refused."""

COLUMNS = (
    "family",
    "n",
    "seed",
    "solver",
    "settings",
    "build_s",
    "solve_s",
    "certify_s",
    "peak_mb",
    "claimed",
    "certified",
    "tight_epsilon",
    "cost",
    "lower_bound",
    "relative_gap",
    "censored",
    "rounded",
    "cost_returned",
    "iterations",
    "rows",
    "columns",
    "ours",
)
"""The columns of the table."""

_SECONDS_BETWEEN_TABLES = 10.0


@dataclass(frozen=True)
class Results:
    """What a benchmark found.

    Attributes:
        directory: The folder.
        rows: A mapping of columns to values for each run, in order.
        missing: How many runs are still to be done, or are being done by another process.
    """

    directory: Path
    rows: tuple[Mapping[str, Any], ...]
    missing: int


def run(
    suite: str = "small",
    solvers: Sequence[str] | None = None,
    directory: str | os.PathLike[str] = "bench",
    *,
    resume: bool = False,
    time_limit: float | None = None,
    memory: float | None = None,
    threads: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> Results:
    """Run a suite of problems by several solvers, and write a table and a report.

    Every run has a process of its own. A row stays whatever came of it: what met a limit is censored. After Ctrl-C, or
    a kill, all finished rows are there, and `resume` runs the rest. Any number of processes may share a folder.

    Args:
        suite: "small", "medium" or "large".
        solvers: Their names; without, all that are installed.
        directory: The folder to write, with ``results.csv``, ``rows/``, ``environment.json`` and ``report.html``.
        resume: Whether the folder may hold rows of the same request already.
        time_limit: Seconds for one problem, or None for the suite's own limit.
        memory: Gigabytes for one problem, or None for the suite's own limit.
        threads: Threads that solvers may use.
        progress: Called after each row with how many there are, of how many, and which one it was.

    Raises:
        InputError: There is no such suite or solver, or a limit is out of range.
        MissingDependencyError: A solver that is named is not installed.
        RecordsError: The folder holds something else.
        ExportError: A file cannot be written; finished rows are kept.
    """
    from mechdesign.bench.report import write_report

    request = request_of(suite, solvers, time_limit=time_limit, memory=memory, threads=threads)
    store = Store(directory, request, resume=resume)
    total = len(request.identities)
    tabulated = time.monotonic()
    try:
        for key in store.missing():
            with store.claim(key) as mine:
                if not mine:
                    continue
                description: Mapping[str, Any] = request.by_identity[key]
                row = _row(key, description)
                store.write(row)
            if progress is not None:
                progress(total - len(store.missing()), total, _name(description, row))
            if time.monotonic() - tabulated > _SECONDS_BETWEEN_TABLES:
                store.tabulate()
                tabulated = time.monotonic()
    finally:
        store.tabulate()
    rows = tuple(row.values for row in store.rows())
    write_report(store.directory, request.about, rows, total)
    return Results(store.directory, rows, len(store.missing()))


def request_of(
    suite: str,
    solvers: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    memory: float | None = None,
    threads: int = 1,
) -> Request:
    """Return the rows of a suite: small problems first, and for each all contestants."""
    found = find_suite(suite)
    limits = {
        "time_limit": _limit("time_limit", time_limit, found.time_limit),
        "memory": _limit("memory", memory, found.memory),
    }
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError("threads", "must be a number of threads", value=threads, bound="an integer >= 1")
    contestants = chosen(solvers)
    about = {"suite": suite, "contestants": [each.name for each in contestants], **limits, "threads": threads}
    descriptions = [
        _description(family, n, seed, contestant, limits, threads)
        for family, n, seed in problems(found)
        for contestant in contestants
        if not (family == "row-pairs" and contestant.route != "rows")
    ]
    return Request("bench", VERSION, about, descriptions, COLUMNS)


def _description(
    family: str, n: int, seed: int, contestant: Contestant, limits: Mapping[str, float], threads: int
) -> dict[str, object]:
    return {
        "family": family,
        "parameters": dict(FAMILIES[family].parameters),
        "data": FAMILIES[family].data(),
        "n": n,
        "seed": seed,
        "contestant": contestant.name,
        "settings": contestant.description(),
        **limits,
        "threads": threads,
        "package": __version__,
    }


def _row(key: str, description: Mapping[str, Any]) -> Row:
    task = {name: description[name] for name in ("family", "n", "seed", "contestant", "threads", "time_limit")}
    outcome = run_apart(task, description["time_limit"], description["memory"], description["threads"])
    state = {"done": State.DONE, "time": State.CENSORED, "memory": State.CENSORED}.get(outcome.ended, State.FAILED)
    found = dict(outcome.found)
    values: dict[str, Any] = {
        "family": description["family"],
        "n": found.get("secrets", description["n"]),
        "seed": description["seed"],
        "solver": description["settings"]["solver"],
        "settings": description["settings"]["settings"],
        "ours": description["contestant"].startswith(("auto", "block")),
        **_ended(outcome, description["time_limit"]),
    }
    values |= {name: found[name] for name in COLUMNS if name in found and name not in values}
    known = {"message", "version", "blas", "primal_residual", "nonzeros"}
    details = {name: value for name, value in found.items() if name in known}
    details |= {"ended": outcome.ended, "threads": description["threads"], "machine": processor(), "load": _load()}
    if outcome.message:
        details["message"] = outcome.message
    return Row(key, state, values, details)


def _load() -> float | None:
    """Return the load of the last minute: where it is above the number of cores, times are too long."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _ended(outcome: Outcome, time_limit: float) -> dict[str, Any]:
    """Return what the way in which a run ended says about verdicts and times, beside what was found."""
    if outcome.ended == "done":
        return {"censored": False}
    if outcome.ended in ("time", "memory"):
        verdict = Verdict.TIMEOUT if outcome.ended == "time" else Verdict.FAILED
        known = sum(outcome.found.get(name, 0.0) for name in ("build_s", "solve_s"))
        # The phase that was not finished took at least what was left of the limit.
        phase = next(name for name in ("build_s", "solve_s", "certify_s") if name not in outcome.found)
        return {"censored": True, phase: max(0.0, time_limit - known), **_verdicts(outcome, verdict)}
    return {"censored": False, **_verdicts(outcome, Verdict.FAILED)}


def _verdicts(outcome: Outcome, verdict: Verdict) -> dict[str, str]:
    return {name: outcome.found.get(name, verdict.value) for name in ("claimed", "certified", "rounded")}


def _name(description: Mapping[str, Any], row: Row) -> str:
    which = f"{description['family']}, n = {row.values['n']}, {description['contestant']}"
    return f"{which}: claims {row.values.get('claimed', '')}, is {row.values.get('certified', '')}"


def _limit(name: str, value: float | None, default: float) -> float:
    if value is None:
        return default
    number = as_number(value, name)
    if number <= 0:
        raise InputError(name, "must be positive", value=value, bound="greater than 0")
    return number
