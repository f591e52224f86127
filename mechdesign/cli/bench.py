"""``mechdesign bench``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mechdesign.base._deadline import promising
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import Text, errors, output, say_note, show_next, table

if TYPE_CHECKING:
    from mechdesign.runs._scores import Score
    from mechdesign.runs.bench import Results


_OPTIONS = {"suite": "--suite", r"solvers\[\d+\]": "--solvers"}


@click.command()
@click.option("--suite", metavar="NAME", default="small", show_default=True, help="small, medium or large.")
@click.option("--solvers", metavar="NAMES", help="Names separated by commas; default: all installed solvers.")
@click.option("-o", "--output", "folder", metavar="DIR", default="bench", show_default=True, help="Folder to write.")
@click.option("--resume", is_flag=True, help="Run the missing rows of the folder.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="Time limit for each problem.")
@click.option("--memory", metavar="GB", type=float, help="Memory limit for each problem.")
@click.option("--threads", metavar="NUMBER", type=int, default=1, show_default=True, help="Threads of each solver.")
@click.option("--export-mps", "mps", metavar="DIR", help="Write the suite's programs as MPS files, and run nothing.")
@click.option("--list", "listed", is_flag=True, help="Show suites, families and solvers, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON, and nothing else.")
def bench(
    suite: str,
    solvers: str | None,
    folder: str,
    resume: bool,
    time_limit: float | None,
    memory: float | None,
    threads: int,
    mps: str | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Run solvers on families of problems, and check their results.

    Each run is a separate process with a time limit and a memory limit. Results go to DIR: results.csv, rows/,
    environment.json and report.html. Separate columns show the claim of the solver, the check of its returned numbers,
    and the result of rounding. After Ctrl-C all finished rows remain, and --resume runs the others.

    A family of real check-ins is included if the environment variable MECHDESIGN_DATA names a folder of data.
    """
    from mechdesign.runs._scores import scores
    from mechdesign.runs.bench import export_mps, find_suite, run

    if listed:
        _list()
        return
    if mps is not None:
        files = export_mps(suite, mps)
        output().print(f"{len(files)} files in {mps}", soft_wrap=True)
        return
    with naming_options(_OPTIONS):
        least = find_suite(suite).time_limit
    limit = least if time_limit is None else time_limit
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

        found = run(
            suite,
            names,
            folder,
            resume=resume,
            time_limit=time_limit,
            memory=memory,
            threads=threads,
            progress=tell,
        )
    if as_json:
        # JSON has no infinity.
        plain = [{name: "inf" if value == math.inf else value for name, value in row.items()} for row in found.rows]
        click.echo(json.dumps(plain, indent=1))
        return
    _show(found, scores(found.rows, limit))


def _show(found: Results, scores: Mapping[str, Score]) -> None:
    numbers = ("solved", "said optimal", "not private", "otherwise wrong", "mean s, solved", "mean s, all")
    shown = table("solver", *numbers, numbers=numbers)
    for name, score in scores.items():
        shown.add_row(
            Text(name, "bold" if score.ours else ""),
            f"{score.solved} of {score.runs}",
            str(score.claimed),
            Text(str(score.not_private), "red" if score.not_private else ""),
            str(score.wrong),
            f"{score.mean:.3f}",
            f"{score.censored_mean:.3f}",
        )
    output().print(shown)
    if found.missing:
        say_note(f"{found.missing} rows are missing: another process is running them, or --resume runs them")
    folder = found.folder
    show_next(
        {
            f"{folder / 'report.html'}": "tables and figures: open it in a browser",
            f"{folder / 'results.csv'}": "all runs, with a row for each run",
        }
    )


def _list() -> None:
    from mechdesign.runs._contestants import CONTESTANTS
    from mechdesign.runs._families import FAMILIES
    from mechdesign.runs.bench import SUITES, problems

    console = output()
    shown = table("suite", "problems", "seconds each", "GB each", numbers=("problems", "seconds each", "GB each"))
    for suite in SUITES.values():
        shown.add_row(suite.name, str(len(problems(suite))), f"{suite.time_limit:g}", f"{suite.memory:g}")
    console.print(shown)
    console.print()
    shown = table("family", "problem", *SUITES)
    for family in FAMILIES.values():
        sizes = [", ".join(map(str, suite.sizes.get(family.name, ()))) for suite in SUITES.values()]
        title = family.title if family.available else f"{family.title} (set MECHDESIGN_DATA)"
        shown.add_row(family.name, title, *sizes)
    console.print(shown)
    console.print()
    shown = table("solver", "settings", "")
    for contestant in CONTESTANTS:
        shown.add_row(contestant.solver, contestant.settings, "" if contestant.installed else "not installed")
    console.print(shown)
