"""``mechdesign design``."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from rich.text import Text

from mechdesign.certify.bundle import CERTIFICATE
from mechdesign.cli.console import STOPPED, certificate_tables, output, say_note
from mechdesign.cli.schedule import design_schedule
from mechdesign.cli.solving import say_gap, solve
from mechdesign.errors import InputError, SpecificationError
from mechdesign.export.files import SET, check_target
from mechdesign.solvers.contract import Status
from mechdesign.spec import specification as spec

if TYPE_CHECKING:
    from mechdesign.spec.specification import SolverSettings
    from mechdesign.synthesis.design import Design

__all__ = ["design"]


@click.command()
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "directory", metavar="DIR", default="mechanism", show_default=True, help="Folder to write."
)
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as JSON, and nothing else.")
@click.option("--solver", metavar="NAME", help='"auto", or a name that `mechdesign info` lists.')
@click.option("--tolerance", metavar="GAP", type=float, help="Relative gap to ask for.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="Stop then, with the best channel so far.")
@click.option("--rows", type=click.Choice(get_args(spec.Rows)), help="Which privacy rows the solver sees.")
@click.option("--threads", metavar="NUMBER", type=int, help="Threads that the solver may use.")
@click.option("--report/--no-report", default=True, help="Write report.html with pictures, or leave it out.")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files, beside them.")
def design(
    specification: Path | None,
    directory: str,
    as_json: bool,
    solver: str | None,
    tolerance: float | None,
    time_limit: float | None,
    rows: spec.Rows | None,
    threads: int | None,
    report: bool,
    force: bool,
) -> None:
    """Design the least-cost channel for a specification, certify it and write the files.

    Without SPEC.toml, a simulated city serves. Options given here count more than the [solver] table. An older export
    in the folder is replaced, unless Ctrl-C ended the search: then the best channel so far goes beside it, and the
    exit code is 130.

    Under policy graphs (kind = "graph") answers stay in the connected component of the secret, and secrets without an
    edge are refused, unless the [policy] table says otherwise; `mechdesign policy` shows the graph.

    Where SPEC.toml takes its ε from a file of budgets, there is a design for each distinct ε, with the same settings,
    in DIR/epsilon-…, and DIR/schedule.csv says which release uses which.
    """
    started = time.perf_counter()
    given = spec.default() if specification is None else spec.read(specification)
    settings = given.solver
    if solver is not None:
        settings = replace(settings, name=solver)
    if tolerance is not None:
        settings = replace(settings, tolerance=tolerance)
    if time_limit is not None:
        settings = replace(settings, time_limit=time_limit)
    if rows is not None:
        settings = replace(settings, rows=rows)
    if threads is not None:
        settings = replace(settings, threads=threads)
    _check_solver(settings.name, "--solver" if solver is not None else "solver.name")
    for name, value in (("--tolerance", tolerance), ("--time-limit", time_limit), ("--threads", threads)):
        if value is not None and not 0 < value < float("inf"):
            raise InputError(name, "is not positive", value=value, bound="> 0 and finite")
    if given.schedule is not None:
        design_schedule(given, given.schedule, settings, directory, force, report, as_json)
        return
    check_target(directory, force)
    problem = given.problem()
    for note in given.notes:
        say_note(note)
    made = solve(problem, settings, given.policy_settings)
    certified = time.perf_counter()
    stopped = made.status == Status.INTERRUPTED.value
    if stopped and (Path(directory) / CERTIFICATE).exists():
        # What was good enough to finish is not replaced by what was not.
        directory = f"{directory.rstrip('/')}-interrupted"
        check_target(directory, force)
        say_note(f"the export that stood there is kept; the best channel so far goes to {directory}")
    made.save(directory, report=report)
    if as_json:
        click.echo(json.dumps(made.certificate.to_json(), indent=2))
    else:
        _show(made, settings, certified - started, time.perf_counter() - started, directory)
    say_gap(made, settings)
    if stopped:
        click.get_current_context().exit(STOPPED)


def _show(made: Design, settings: SolverSettings, certified: float, finished: float, directory: str) -> None:
    from mechdesign.report.sentences import claimants, requirement_name
    from mechdesign.report.words import cost_measure

    problem, certificate = made.problem, made.certificate
    n, m = problem.cost.shape
    facts = certificate.provenance
    console = output()
    console.print(Text(problem.title or "Privacy mechanism", "bold"))
    console.print(f"{n} secrets, {m} observables\n")
    names = [requirement_name(problem, requirement) for requirement in claimants(problem)]
    for shown in certificate_tables(certificate, names, cost_measure(problem).unit, settings.tolerance):
        console.print(shown)
        console.print()
    console.print(f"solved    {facts.get('plan', facts.get('solver', ''))} ({made.status})")
    console.print(
        f"time      {facts.get('solve_seconds', '?')} s solving, {certified:.1f} s until certified, {finished:.1f} s "
        "in all"
    )
    console.print(f"files     {_files(directory)}", soft_wrap=True)


def _check_solver(name: str, path: str) -> None:
    from mechdesign import solvers
    from mechdesign.synthesis.plan import BLOCK

    if name in ("auto", BLOCK):
        return
    try:
        solvers.find(name)
    except InputError as error:
        raise SpecificationError(
            path, error.problem, value=name, bound=error.bound.replace("auto,", f"auto, {BLOCK},")
        ) from error


def _files(directory: str) -> str:
    names = [name for name in SET if (Path(directory) / name).is_file()]
    return f"{directory}: {', '.join(names)}"
