"""``mechdesign bench``."""

from __future__ import annotations

import json
import math

import click

from mechdesign.base._deadline import promising
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import Text, errors, output, show_next, table

_OPTIONS = {"suite": "--suite", "solver": "--solvers", "time_limit": "--time-limit"}


@click.command()
@click.option("--suite", metavar="NAME", default="small", show_default=True, help="small, medium or large.")
@click.option("--solvers", metavar="NAMES", help="Names separated by commas; default: all that are installed.")
@click.option("-o", "--output", "folder", metavar="DIR", default="bench", show_default=True, help="Folder to write.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="Time limit for each problem.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON, and nothing else.")
def bench(suite: str, solvers: str | None, folder: str, time_limit: float | None, as_json: bool) -> None:
    """Run solvers on families of problems, and check their results.

    Each run is a process with limits of time and memory. DIR gets results.csv, with separate columns for the claim of
    the solver, the check of its numbers and the result of rounding; scores.csv and profile.svg. Results that are there
    are kept: after Ctrl-C or a crash, the same command goes on. `mechdesign info` lists the solvers.

    A family of real check-ins is included if the environment variable MECHDESIGN_DATA names a folder of data.
    """
    from mechdesign.runs._scores import scores
    from mechdesign.runs.bench import find_suite, run

    names = None if solvers is None else [name.strip() for name in solvers.split(",")]
    console = errors()
    with (
        naming_options(_OPTIONS),
        console.status(Text("starting")) as status,
        promising("keeping the runs that are finished"),
    ):

        def tell(done: int, total: int, what: str) -> None:
            if console.is_terminal:
                status.update(Text(f"{done} of {total} · {what}"))
            elif not as_json:
                console.print(f"{done} of {total} · {what}", soft_wrap=True)

        limit = find_suite(suite).time_limit if time_limit is None else time_limit
        rows = run(suite, names, folder, time_limit=time_limit, progress=tell)
    if as_json:
        # JSON has no infinity.
        plain = [{name: "inf" if value == math.inf else value for name, value in row.items()} for row in rows]
        click.echo(json.dumps(plain, indent=1))
        return
    numbers = ("solved", "said optimal", "not private", "otherwise wrong", "mean s, solved", "mean s, all")
    shown = table("solver", *numbers, numbers=numbers)
    for name, score in scores(rows, limit).items():
        counts = (score.claimed, score.not_private, score.wrong)
        means = (f"{score.mean:.3f}", f"{score.censored_mean:.3f}")
        shown.add_row(name, f"{score.solved} of {score.runs}", *map(str, counts), *means)
    output().print(shown)
    show_next({f"{folder}/results.csv": "a row for each run", f"{folder}/profile.svg": "the performance profile"})
