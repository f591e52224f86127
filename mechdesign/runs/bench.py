"""Benchmarks: suites of problems, and their runs by several solvers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mechdesign.base import _lazy
from mechdesign.base._atomic import write_file
from mechdesign.base._check import as_number, as_path, require_kind
from mechdesign.base._errors import ExportError, InputError
from mechdesign.base._version import __version__
from mechdesign.runs._contestants import CONTESTANTS, Contestant, select_contestants
from mechdesign.runs._families import FAMILIES, Family, RowPairs
from mechdesign.runs._identity import processor
from mechdesign.runs._phases import Verdict, reduce_pairs
from mechdesign.runs._store import Request, Row, State, Store
from mechdesign.solve._linear import to_mps
from mechdesign.synthesis.formats._plain import mps

if TYPE_CHECKING:
    from mechdesign.runs._worker import WorkerOutcome

__all__ = [
    "CONTESTANTS",
    "FAMILIES",
    "SUITES",
    "Contestant",
    "Family",
    "Results",
    "Suite",
    "Verdict",
    "export_mps",
    "run",
]
__dir__ = _lazy.listing(__all__)


_CHANNELS = ("grid", "roads", "blocks", "distortion", "joint", "worst-cost", "checkins")


@dataclass(frozen=True)
class Suite:
    """A suite of benchmark problems, and its limits.

    Attributes:
        name: Name of the suite.
        sizes: Numbers of secrets for each family.
        seeds: Seeds for each size.
        time_limit: Seconds for building, solving and certifying one problem.
        memory: Memory limit of one run, in gigabytes.

    Example:
        >>> SUITES["small"].sizes["grid"], SUITES["small"].time_limit
        ((16,), 10.0)
    """

    name: str
    sizes: Mapping[str, tuple[int, ...]]
    seeds: tuple[int, ...]
    time_limit: float
    memory: float


def _all_families(*sizes: int, rows: tuple[int, ...], **others: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
    return MappingProxyType({name: others.get(name, sizes) for name in _CHANNELS} | {"row-pairs": rows})


SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        suite.name: suite
        for suite in (
            Suite("small", _all_families(16, rows=(20,)), (0,), 10.0, 4.0),
            Suite("medium", _all_families(49, rows=(100,), grid=(36, 64, 100), roads=(49, 100)), (0,), 20.0, 8.0),
            Suite(
                "large", _all_families(100, rows=(200, 400), grid=(144,), roads=(144,), blocks=(144,)), (0,), 60.0, 8.0
            ),
        )
    }
)
"""Every suite by name."""


def find_suite(name: str) -> Suite:
    """Return a suite; raise `InputError` with all names if it is unknown."""
    require_kind(name, str, "suite", "the name of a suite")
    if name not in SUITES:
        raise InputError("suite", "is not known", value=name, bound=f"one of {', '.join(SUITES)}")
    return SUITES[name]


def problems(suite: Suite) -> list[tuple[str, int, int]]:
    """Return the problems of a suite as (family, n, seed), sorted by size, without families whose data are missing."""
    found = (
        (family, n, seed)
        for family, sizes in suite.sizes.items()
        if FAMILIES[family].available
        for n in sizes
        for seed in suite.seeds
    )
    return sorted(found, key=lambda each: each[1])


def export_mps(suite: str, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write every linear program of a suite in free MPS format, exactly as solvers of linear programs receive it.

    Args:
        suite: "small", "medium" or "large".
        folder: Folder of the files, created if missing.

    Returns:
        The files, one for each problem or pair of rows.

    Raises:
        InputError: If the suite is unknown.
        ExportError: If a file cannot be written.

    Example:
        >>> export_mps("small", "programs")  # doctest: +SKIP
    """
    folder = Path(as_path(folder, "folder"))
    found = problems(find_suite(suite))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{folder} cannot be made: {error.strerror or error}") from error
    written: list[Path] = []
    for family, n, seed in found:
        instance = FAMILIES[family].make(n, seed)
        name = f"{family}-{n}-{seed}"
        if isinstance(instance, RowPairs):
            programs = {f"{name}-{index}": to_mps(each.program) for index, each in enumerate(reduce_pairs(instance))}
        else:
            programs = {name: mps(instance)}
        for stem, lines in programs.items():
            path = folder / f"{stem}.mps"
            write_file(path, (line.encode() for line in lines))
            written.append(path)
    return tuple(written)


VERSION = 1
"""Version of the meaning of a row; folders of another version are rejected."""

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

_TABLE_INTERVAL_S = 10.0


@dataclass(frozen=True)
class Results:
    """The results of a benchmark.

    Attributes:
        folder: The folder of the results.
        rows: A mapping of columns to values for each run, in order.
        missing: Number of runs not finished, including runs of other processes.

    Example:
        >>> Results(Path("bench"), ({"solver": "auto", "cost": 1.5},), missing=3).missing
        3
    """

    folder: Path
    rows: tuple[Mapping[str, Any], ...]
    missing: int


def run(
    suite: str = "small",
    solvers: Sequence[str] | None = None,
    folder: str | os.PathLike[str] = "bench",
    *,
    resume: bool = False,
    time_limit: float | None = None,
    memory: float | None = None,
    threads: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> Results:
    """Run a suite of problems by several solvers, and write a table and a report.

    Every run has a separate process. All results are kept; a run that meets a limit is censored. After Ctrl-C or a
    crash, finished rows remain, and `resume` runs the others. Any number of processes may share a folder.

    Args:
        suite: "small", "medium" or "large".
        solvers: Names of solvers, or None for all installed solvers.
        folder: Folder of the results, with ``results.csv``, ``rows/``, ``environment.json`` and ``report.html``.
        resume: Whether the folder may already contain rows of the same request.
        time_limit: Seconds for one problem, or None for the limit of the suite.
        memory: Gigabytes for one problem, or None for the limit of the suite.
        threads: Number of threads of each solver.
        progress: Function that is called after each row with the number of finished rows, the number of all rows, and
            the name of the row.

    Returns:
        The rows, and the number of missing rows.

    Raises:
        InputError: If the suite or a solver is unknown, or a limit is out of range.
        MissingDependencyError: If a named solver is not installed.
        StateError: If the folder contains other files, or the results of another request.
        ExportError: If a file cannot be written; finished rows are kept.

    Example:
        >>> run("small", ["auto"], "bench")  # doctest: +SKIP
    """
    from mechdesign.runs import _worker  # noqa: F401 - each row needs it
    from mechdesign.runs._bench_page import write_report

    request = request_of(suite, solvers, time_limit=time_limit, memory=memory, threads=threads)
    store = Store(folder, request, resume=resume)
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
            if time.monotonic() - tabulated > _TABLE_INTERVAL_S:
                store.tabulate()
                tabulated = time.monotonic()
    finally:
        store.tabulate()
    rows = tuple(row.values for row in store.rows())
    write_report(store.folder, request.about, rows, total)
    return Results(store.folder, rows, len(store.missing()))


def request_of(
    suite: str,
    solvers: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    memory: float | None = None,
    threads: int = 1,
) -> Request:
    """Return the request for a suite: small problems first, each with all contestants."""
    found = find_suite(suite)
    limits = {
        "time_limit": _limit("time_limit", time_limit, found.time_limit),
        "memory": _limit("memory", memory, found.memory),
    }
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError("threads", "must be a number of threads", value=threads, bound="an integer >= 1")
    contestants = select_contestants(solvers)
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
    from mechdesign.runs._worker import run_in_worker

    outcome = run_in_worker(task, description["time_limit"], description["memory"], description["threads"])
    state = {"done": State.DONE, "time": State.CENSORED, "memory": State.CENSORED}.get(outcome.ended, State.FAILED)
    found = dict(outcome.found)
    values: dict[str, Any] = {
        "family": description["family"],
        "n": found.get("secrets", description["n"]),
        "seed": description["seed"],
        "solver": description["settings"]["solver"],
        "settings": description["settings"]["settings"],
        "ours": description["contestant"].startswith(("auto", "block")),
        **_describe_end(outcome, description["time_limit"]),
    }
    values |= {name: found[name] for name in COLUMNS if name in found and name not in values}
    known = {"message", "version", "blas", "primal_residual", "nonzeros"}
    details = {name: value for name, value in found.items() if name in known}
    details |= {"ended": outcome.ended, "threads": description["threads"], "machine": processor(), "load": _load()}
    if outcome.message:
        details["message"] = outcome.message
    return Row(key, state, values, details)


def _load() -> float | None:
    """Return the load average of the last minute; if it exceeds the number of cores, measured times are too long."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _describe_end(outcome: WorkerOutcome, time_limit: float) -> dict[str, Any]:
    """Return the verdicts and times that follow from the way in which a run ended, in addition to its results."""
    if outcome.ended == "done":
        return {"censored": False}
    if outcome.ended in ("time", "memory"):
        verdict = Verdict.TIMEOUT if outcome.ended == "time" else Verdict.FAILED
        known = sum(outcome.found.get(name, 0.0) for name in ("build_s", "solve_s"))
        # The unfinished phase took at least the remainder of the limit.
        phase = next(name for name in ("build_s", "solve_s", "certify_s") if name not in outcome.found)
        return {"censored": True, phase: max(0.0, time_limit - known), **_verdicts(outcome, verdict)}
    return {"censored": False, **_verdicts(outcome, Verdict.FAILED)}


def _verdicts(outcome: WorkerOutcome, verdict: Verdict) -> dict[str, str]:
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
