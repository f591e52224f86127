"""Benchmarks: suites of problems, and their runs by several solvers."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mechdesign.base import _lazy
from mechdesign.base._atomic import write_file
from mechdesign.base._check import as_path, as_positive, require_name
from mechdesign.base._errors import ExportError, InputError, StateError
from mechdesign.base._machine import name_processor
from mechdesign.base._process import ignore_warnings
from mechdesign.base._version import __version__
from mechdesign.certify._texts import csv_text
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._phases import TOLERANCE, Verdict
from mechdesign.runs._scores import Score, scores
from mechdesign.runs._worker import Outcome, Task, run_in_worker
from mechdesign.solve import _registry as registry
from mechdesign.solve._cvxpy import takes_options
from mechdesign.solve._registry import Solver
from mechdesign.synthesis._settings import Rows, SolveSettings

__all__ = ["Suite", "run"]
__dir__ = _lazy.listing(__all__)

Row = Mapping[str, Any]

_CHANNELS = ("grid", "roads", "blocks", "distortion", "joint", "worst-cost", "checkins")


@dataclass(frozen=True)
class Suite:
    """A suite of benchmark problems, and its limits.

    Attributes:
        name: Name of the suite.
        sizes: Numbers of secrets for each family, by its name in `FAMILIES`.
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


def find_suite(suite: str | Suite) -> Suite:
    """Return a suite; raise `InputError` with all names if its name is unknown."""
    if isinstance(suite, Suite):
        return suite
    return SUITES[require_name(suite, SUITES, "suite")]


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


# Solvers that take part through CVXPY if they are installed.
_PEERS = (
    "clarabel", "piqp", "qoco", "scs", "glop", "scip", "glpk", "cbc", "gurobi", "mosek", "xpress", "copt",
    "cplex",
)  # fmt: skip
# Second names of solvers.
_ALIASES = ("highs", "cvxpy")


def select_solvers(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the solvers that take part; without names, all installed ones.

    Raises `InputError` if a name is unknown or the list is empty. Raises `MissingDependencyError` if a named solver is
    not installed.
    """
    if names is None:
        # CVXPY warns about missing optional packages.
        with ignore_warnings(module="cvxpy"):
            import cvxpy
        by_cvxpy: list[str] = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
        known = [each.name for each in registry.available() if each.installed and each.name not in _ALIASES]
        return ("auto", *known, *(f"cvxpy-{name}" for name in _PEERS if name.upper() in by_cvxpy))
    if isinstance(names, str) or not names:
        raise InputError("solvers", "must be a list of names", value=names, bound='such as ["auto", "highs-ipx"]')
    for name in names:
        if name != "auto":
            registry.find(name).load()
    return tuple(dict.fromkeys(names))


COLUMNS = (
    "family",
    "n",
    "seed",
    "solver",
    "version",
    "build_s",
    "solve_s",
    "certify_s",
    "processor_s",
    "peak_mb",
    "claimed",
    "certified",
    "tight_epsilon",
    "cost",
    "lower_bound",
    "relative_gap",
    "ended",
    "rounded",
    "cost_returned",
    "iterations",
    "given",
    "rows",
    "columns",
    "message",
    "machine",
    "load",
)
"""The columns of the table."""

_ROWS = "rows"


def run(
    suite: str | Suite = "small",
    solvers: Sequence[str] | None = None,
    folder: str | os.PathLike[str] = "bench",
    *,
    time_limit: float | None = None,
    memory: float | None = None,
    rows: Rows = "auto",
    threads: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[Row, ...]:
    """Run a suite of problems by several solvers, and write tables and a page.

    Every run has a separate process, which is ended with all processes that it started. A run that meets a limit is a
    result, too. Each result is a file in the folder as soon as it is known, and is not computed again. After Ctrl-C or
    a crash, the next call goes on.

    Args:
        suite: "small", "medium", "large", or a suite of your own.
        solvers: Names of solvers, as for `mechdesign.design`; None for all installed and registered ones.
        folder: Folder of the results, with ``rows/``, ``results.csv``, ``scores.csv`` and ``report.html``.
        time_limit: Seconds for one problem, or None for the limit of the suite.
        memory: Gigabytes for one problem, or None for the limit of the suite.
        rows: Privacy rows that solvers of rows receive, as for `mechdesign.design`.
        threads: Number of threads of each solver.
        progress: Function that is called after each run with the number of finished runs, the number of all runs, and
            a sentence about the run.

    Returns:
        The rows of ``results.csv``: a mapping of columns to values for each run.

    Raises:
        InputError: If the suite or a solver is unknown, or a limit is out of range.
        MissingDependencyError: If a named solver is not installed.
        StateError: If the folder contains other files, or a damaged result.
        ExportError: If a file cannot be written; finished runs are kept.

    Example:
        >>> run("small", ["auto"], "bench")  # doctest: +SKIP
    """
    found = find_suite(suite)
    seconds = as_positive(found.time_limit if time_limit is None else time_limit, "time_limit")
    gigabytes = as_positive(found.memory if memory is None else memory, "memory")
    contestants = [_set_up(name, rows, threads) for name in select_solvers(solvers)]
    tasks = [
        Task(FAMILIES[family], n, seed, solver, settings)
        for family, n, seed in problems(found)
        for solver, settings in contestants
        if family != "row-pairs" or (solver is not None and solver.takes == "rows")
    ]
    home = _open(Path(as_path(folder, "folder")))
    files = [home / _ROWS / f"{_identity(task, seconds, gigabytes)}.json" for task in tasks]
    known = [_read(file) for file in files]
    try:
        for index, (task, file) in enumerate(zip(tasks, files, strict=True)):
            if known[index] is not None:
                continue
            row = _describe(task, run_in_worker(task, seconds, gigabytes), seconds)
            write_file(file, [json.dumps(row, indent=1).encode(), b"\n"])
            known[index] = row
            if progress is not None:
                said = f"claims {row['claimed']}, is {row['certified']}"
                done = sum(each is not None for each in known)
                progress(done, len(tasks), f"{task.family.name}, n = {task.n}, {task.settings.solver}: {said}")
    finally:
        finished = tuple(row for row in known if row is not None)
        _tabulate(home, finished, seconds)
    return finished


def _set_up(name: str, rows: Rows, threads: int) -> tuple[Solver | None, SolveSettings]:
    """Return the solver of a name and its settings; some solvers of CVXPY take no number of threads."""
    settings = SolveSettings(name, TOLERANCE, rows=rows, threads=threads)
    if name == "auto":
        return None, replace(settings, rows="auto")
    solver = registry.find(name)
    if solver.takes == "blocks":
        return solver, replace(settings, rows="auto")
    bare = name.startswith("cvxpy-") and not takes_options(name.removeprefix("cvxpy-").upper())
    return solver, replace(settings, threads=None) if bare else settings


def _open(folder: Path) -> Path:
    """Make the folder of the results, or return an existing one; raise `StateError` if it contains other files."""
    try:
        if folder.exists() and not (folder / _ROWS).is_dir() and any(folder.iterdir()):
            raise StateError(f"{folder} contains other files, such as {min(folder.iterdir()).name}. Choose another")
        (folder / _ROWS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{folder} cannot be used: {error.strerror or error}") from error
    return folder


def _identity(task: Task, time_limit: float, memory: float) -> str:
    """Return a name for the result of a task: its subject, and a digest of everything that it depends on."""
    family, settings = task.family, task.settings
    about = [family.name, task.n, task.seed, settings.solver, dict(family.parameters), family.data()]
    about += [time_limit, memory, settings.tolerance, settings.rows, settings.threads, __version__]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    return re.sub(r"[^\w.-]", "-", f"{family.name}-{task.n}-{task.seed}-{settings.solver}-{digest}")


def _read(file: Path) -> Row | None:
    try:
        row = json.loads(file.read_bytes())
        return {name: row[name] for name in COLUMNS}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(f"{file} is not a valid result ({error}). Delete it, and it will be computed again") from error


def _describe(task: Task, outcome: Outcome, time_limit: float) -> Row:
    """Return the row of a run."""
    found = outcome.found
    row: dict[str, Any] = {"family": task.family.name, "n": task.n, "seed": task.seed}
    row |= {"solver": task.settings.solver, "given": task.settings.rows}
    if outcome.ended != "done":
        verdict = Verdict.TIMEOUT if outcome.ended == "time" else Verdict.FAILED
        row |= dict.fromkeys(("claimed", "certified", "rounded"), verdict.value)
    if outcome.ended in ("time", "memory"):
        # The unfinished phase took at least the remainder of the limit.
        phase = next((name for name in ("build_s", "solve_s") if name not in found), "certify_s")
        row[phase] = max(0.0, time_limit - sum(found.get(name, 0.0) for name in ("build_s", "solve_s")))
    row |= {**found, "ended": outcome.ended, "machine": name_processor(), "load": _load()}
    return {name: row.get(name) for name in COLUMNS}


def _load() -> float | None:
    """Return the load average of the last minute; if it exceeds the number of cores, measured times are too long."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _tabulate(folder: Path, rows: Sequence[Row], time_limit: float) -> None:
    tables = {"results.csv": [COLUMNS, *(row.values() for row in rows)]}
    tables["scores.csv"] = [
        ["solver", *(each.name for each in fields(Score))],
        *([name, *astuple(score)] for name, score in scores(rows, time_limit).items()),
    ]
    for name, table in tables.items():
        write_file(folder / name, [csv_text(table).encode()])
    from mechdesign.runs._profile import html

    write_file(folder / "report.html", [html(rows, tables["scores.csv"]).encode()])
