"""``mechdesign sweep``."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from mechdesign.base._deadline import Progress, promising
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import progress, say_note
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.model._words import at_least, at_most

_OPTIONS = {name: f"--{name}" for name in ("jobs", "dask", "part")}
_ROUNDED = {"cost": at_most, "lower_bound": at_least, "relative_gap": "{:.3g}".format, "tight_epsilon": at_most}


@command
@click.argument("specification", metavar="SPEC.toml", type=FILE)
@click.option(
    "-o", "--output", "folder", metavar="DIR", type=FILE, default="sweep", show_default=True,
    help="Folder to write.",
)  # fmt: skip
@click.option(
    "--jobs", metavar="N", type=int, help="Number of processes on this machine; default: one for each processor."
)
@click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster with this scheduler instead of local processes.")
@click.option("--part", metavar="K/N", help="Make only the K-th of each N points, and no table: for an array of jobs.")
@click.option("--retry", is_flag=True, help="Try failed points again, and points that ended on another machine.")
def sweep(
    specification: Path, folder: Path, jobs: int | None, dask: str | None, part: str | None, retry: bool
) -> Found:
    """Make a certified design for each of many values of a specification.

    SPEC.toml is a specification with a [sweep] table, which lists values for the paths of keys, such as
    "privacy.0.epsilon" = [0.5, 1, 2]. By default all combinations are designed; mode = "zip" combines the first values
    of all lists, the second ones, and so on.

    DIR gets results.csv, report.html, and a folder with a certified bundle for each design, or with failed.json. The
    same command makes only what is missing: after Ctrl-C, a crash, or with further values. Failed points are rows of
    the table, and the exit code is 0.

    Each design uses one thread, unless [solver] sets another number. Results do not depend on the number of processes
    or on a Dask cluster. The workers of a cluster need the same package versions, and the data at the same path.

    Example: mechdesign sweep city.toml -o swept --jobs 4
    """
    # Imported late, so that `mechdesign --help` is fast.
    from mechdesign.runs import sweep
    from mechdesign.runs._points import read

    asked, started = read(specification), time.perf_counter()
    with naming_options(_OPTIONS), progress("checking") as live, promising("keeping the designs that are finished"):

        def tell(done: int, total: int) -> None:
            live(Progress(f"{min(done + 1, total)} of {total}: designing", 0.0))

        try:
            rows = sweep.run(asked, folder, jobs=jobs, dask=dask, part=part, retry=retry, progress=tell)
        except KeyboardInterrupt:
            say_note("the same command makes the missing designs")
            raise
    if asked.private:
        say_note(asked.private)
    missing = [str(row["message"]) for row in rows if row["status"] == "missing"]
    for message in dict.fromkeys(missing):
        say_note(f"{missing.count(message)} missing: {message}")
    states = [str(row["status"]) for row in rows]
    ended = ", ".join(f"{states.count(state)} {state}" for state in sorted({*states}))
    count = f"{len(rows)} of {len(asked)} designs" if part else f"{len(rows)} designs"
    shown = ("status", *_ROUNDED)
    name = shlex.quote(str(folder))
    following = (
        [] if part else [f"{name}/report.html    # cost against privacy", f"{name}/results.csv    # all numbers"]
    )
    channel = next((row["channel"] for row in rows if "cost" in row), None)
    if channel is not None:
        following.append(f"mechdesign verify {name}/{channel}    # prove one of the designs again")
    facts = {
        "designs": [
            {key: row[key] for key in asked.values} | {name: _round(name, row.get(name)) for name in shown}
            for row in rows
        ],
        "failures": list(dict.fromkeys(row["message"] for row in rows if row["status"] == "failed")),
        "seconds": round(time.perf_counter() - started, 1),
        "next": following,
    }
    return Found(f"{asked.title or 'Privacy mechanisms'}: {count}: {ended}.", facts)


def _round(name: str, value: object) -> object:
    return Shown(value, _ROUNDED[name](value)) if isinstance(value, float) else value
