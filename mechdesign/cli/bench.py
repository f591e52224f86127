"""``mechdesign bench``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from mechdesign.base._deadline import Progress, promising
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import progress
from mechdesign.cli._found import FILE, Found, Shown, command

_OPTIONS = {"suite": "--suite", "solver": "--solvers", "solvers": "--solvers", "time_limit": "--time-limit"}


@command
@click.option("--suite", metavar="NAME", default="small", show_default=True, help="small, medium or large.")
@click.option("--solvers", metavar="NAMES", help="Names separated by commas; default: all that are installed.")
@click.option(
    "-o", "--output", "folder", metavar="DIR", type=FILE, default="bench", show_default=True, help="Folder to write."
)
@click.option("--time-limit", metavar="SECONDS", type=float, help="Time limit for each problem.")
def bench(suite: str, solvers: str | None, folder: Path, time_limit: float | None) -> Found:
    """Run solvers on families of problems, and check their results.

    Each run is a process with limits of time and memory. DIR gets results.csv, which separates the claim of a solver,
    the check of its numbers and the result of rounding; scores.csv and report.html. Results in DIR/rows are kept: after
    Ctrl-C or a crash, the same command goes on; after a change of a solver, delete its results. `mechdesign info` lists
    the solvers.

    A family of real check-ins is included if the environment variable MECHDESIGN_DATA names a folder of data.

    Example: mechdesign bench --suite medium --solvers auto,highs-ipx
    """
    from mechdesign.runs._scores import scores
    from mechdesign.runs.bench import find_suite, run

    names = None if solvers is None else [name.strip() for name in solvers.split(",")]
    with naming_options(_OPTIONS), progress() as live, promising("keeping the runs that are finished"):

        def tell(done: int, total: int, what: str) -> None:
            live(Progress(f"{done} of {total}: {what}", 0.0))

        limit = find_suite(suite).time_limit if time_limit is None else time_limit
        rows = run(suite, names, folder, time_limit=time_limit, progress=tell)
    shown = [
        {"solver": name}
        | {
            key: Shown(value, f"{value:.3f}") if isinstance(value, float) else value
            for key, value in asdict(score).items()
        }
        for name, score in scores(rows, limit).items()
    ]
    return Found(f"{len(rows)} runs are in {folder}: results.csv, scores.csv, report.html.", {"solvers": shown})
