"""``mechdesign sweep``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._deadline import promising
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import STOPPED, Text, at_least, at_most, errors, output, say_note, show_next, table

if TYPE_CHECKING:
    from mechdesign.runs._points import Sweep


_OPTIONS = {name: f"--{name}" for name in ("jobs", "dask", "part")}
_MOST_SHOWN = 20


@click.command()
@click.argument("specification", metavar="SPEC.toml", type=click.Path(path_type=Path))
@click.option("-o", "--output", "folder", metavar="DIR", default="sweep", show_default=True, help="Folder to write.")
@click.option(
    "--jobs", metavar="N", type=int, help="Number of processes on this machine; default: one for each processor."
)
@click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster with this scheduler instead of local processes.")
@click.option("--part", metavar="K/N", help="Make only the K-th of each N points, and no table: for an array of jobs.")
@click.option("--retry", is_flag=True, help="Try failed points again, and points that ended on another machine.")
def sweep(specification: Path, folder: str, jobs: int | None, dask: str | None, part: str | None, retry: bool) -> None:
    """Make a certified design for each of many values of a specification.

    SPEC.toml is a specification with a [sweep] table, which lists values for the paths of keys, such as
    "privacy.0.epsilon" = [0.5, 1, 2]. By default all combinations are designed; mode = "zip" combines the first values
    of all lists, the second ones, and so on.

    DIR gets results.csv, costs.svg, and a folder with a certified bundle for each design, or with failed.json. The same
    command makes only what is missing: after Ctrl-C (exit code 130), a crash, or with further values. Failed points are
    rows of the table, and the exit code is 0.

    Each design uses one thread, unless [solver] sets another number. Results do not depend on the number of processes
    or on a Dask cluster. The workers of a cluster need the same package versions, and the data at the same path.
    """
    # Imported late, so that `mechdesign --help` is fast.
    from mechdesign.runs import sweep

    asked, started = sweep.read(specification), time.perf_counter()
    with naming_options(_OPTIONS), _progress() as say, promising("keeping the designs that are finished"):
        try:
            rows = sweep.run(asked, folder, jobs=jobs, dask=dask, part=part, retry=retry, progress=say)
        except KeyboardInterrupt:
            say_note("stopped; the same command makes the missing designs")
            click.get_current_context().exit(STOPPED)
    if asked.private:
        say_note(asked.private)
    _show(asked, rows, Path(folder), time.perf_counter() - started, part)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished points and the time left on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # The speed is that of the whole call, because one design may take an hour.
    with Progress(*columns, console=errors(), transient=True, speed_estimate_period=1e6) as bar:
        task = bar.add_task("checking the points", total=None)

        def say(done: int, total: int) -> None:
            nonlocal task
            if bar.tasks[0].total is None:
                # A new task does not count what earlier calls have done as its speed.
                bar.remove_task(task)
                task = bar.add_task("designs", total=total, completed=done)
            bar.update(task, completed=done)

        yield say


def _show(asked: Sweep, rows: Sequence[Mapping[str, Any]], folder: Path, seconds: float, part: str | None) -> None:
    console = output()
    console.print(Text(asked.title or "Privacy mechanisms", "bold"))
    states = [row["status"] for row in rows]
    ended = ", ".join(f"{states.count(state)} {state}" for state in sorted({*states}))
    console.print(f"{len(rows)} of {len(asked)} designs: {ended}\n" if part else f"{len(rows)} designs: {ended}\n")
    numbers = ("cost", "no less than", "relative gap", "tight ε")
    shown = table(*asked.values, "status", *numbers, numbers=numbers)
    for row in rows[:_MOST_SHOWN]:
        values = [row.get(name) for name in ("cost", "lower_bound", "relative_gap", "tight_epsilon")]
        writers = (at_most, at_least, "{:.3g}".format, at_most)
        texts = ["" if value is None else write(value) for value, write in zip(values, writers, strict=True)]
        style = "" if row["status"] == "done" else "yellow"
        shown.add_row(*(Text(str(row[key])) for key in asked.values), Text(row["status"], style), *texts)
    console.print(shown)
    if len(rows) > _MOST_SHOWN:
        console.print(f"… and {len(rows) - _MOST_SHOWN} more rows", soft_wrap=True)
    missing = [str(row["message"]) for row in rows if row["status"] == "missing"]
    for message in dict.fromkeys(missing):
        say_note(f"{missing.count(message)} missing: {message}")
    console.print(f"\ntime      {seconds:.1f} s")
    channel = next((row["channel"] for row in rows if "cost" in row), None)
    following = {} if part else {f"{folder}/costs.svg": "cost against privacy", f"{folder}/results.csv": "all numbers"}
    if channel is not None:
        following[f"mechdesign verify {folder}/{channel}"] = "prove one of the designs again"
    show_next(following)
