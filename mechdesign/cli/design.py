"""``mechdesign design``."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from mechdesign.base._errors import ReportError
from mechdesign.certify._bundle import CERTIFICATE
from mechdesign.cli._arguments import example_option, read_specification
from mechdesign.cli._console import (
    STALLED,
    STOPPED,
    Text,
    certificate_tables,
    certificate_to_json,
    load_pictures,
    output,
    progress,
    say_gap,
    say_note,
    say_private,
    show_next,
    show_verdict,
)
from mechdesign.model._locate import DEGREES, PLANE
from mechdesign.solve._contract import Status
from mechdesign.specification._read import Source
from mechdesign.synthesis._folders import SET, check_target
from mechdesign.synthesis._settings import Rows

if TYPE_CHECKING:
    from mechdesign.specification._specification import Specification
    from mechdesign.synthesis._result import Design, SolveSummary
    from mechdesign.synthesis._settings import SolveSettings


_DEFAULT = "city"
_EXAMPLE_FOLDER = "mechanism"
_EQUAL_ROWS = (
    "every secret gets the same answers: the channel reveals nothing about it. If this is not intended, check the unit "
    "of ε, of places and of a radius"
)


@click.command()
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=click.Path(path_type=Path))
@example_option("design")
@click.option(
    "-o", "--output", "target", metavar="DIR",
    help="Folder to write.  [default: the name of SPEC.toml without .toml; mechanism for an example]",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as JSON, and nothing else.")
@click.option("--solver", metavar="NAME", help='"auto", or a name listed by `mechdesign info`.')
@click.option("--tolerance", metavar="GAP", type=float, help="Largest relative gap.")
@click.option(
    "--time-limit", metavar="SECONDS", type=float, help="Stop the search after this time, with the best channel so far."
)
@click.option("--rows", type=click.Choice(get_args(Rows)), help="The privacy rows that the solver receives.")
@click.option("--threads", metavar="NUMBER", type=int, help="Threads that the solver may use.")
@click.option("--report/--no-report", default=True, help="Whether to write report.html with pictures.")
@click.option("--estimate", is_flag=True, help="Only estimate the memory, and the largest problem that fits into it.")
@click.option("--force", is_flag=True, help="Write into a folder that contains other files.")
@click.option("--overwrite", is_flag=True, help="Also replace a design of another specification.")
def design(
    specification: Path | None,
    example: str | None,
    target: str | None,
    as_json: bool,
    report: bool,
    estimate: bool,
    force: bool,
    overwrite: bool,
    **options: Any,
) -> None:
    """Design the least-cost channel for a specification, certify it and write the files.

    Without SPEC.toml, the design is for a small simulated city; `mechdesign examples` lists others. Options override
    the [solver] table. An existing design of the same specification (same text or file name) is replaced. After Ctrl-C,
    the best channel so far is saved next to that design, and the exit code is 130.

    Under policy graphs (kind = "graph") answers stay in the connected component of the secret. Secrets without an edge
    are rejected, unless the [policy] table allows them; `mechdesign policy` shows the graph.

    A prior that was counted in data is private: DIR and its report reveal the exact counts to everyone who receives
    them. `mechdesign export DIR --without-prior` writes a folder without the prior.

    With --rows rays the exit code is 3 if the final gap exceeds both the tolerance and 2 %. A design with such a gap is
    also certified and written, after a warning.
    """
    started = time.perf_counter()
    given = read_specification(specification, example, "design", _DEFAULT)
    folder = _folder(specification) if target is None else target
    changed = {name: value for name, value in options.items() if value is not None}
    with Source().keys({name: f"--{name.replace('_', '-')}" for name in changed}):
        settings = replace(given.settings, **changed)
    if "solver" in changed:
        from mechdesign.specification._designs import check_solver

        check_solver(settings.solver, "--solver")
    if estimate:
        _estimate(given, settings)
        return
    # Report errors of the specification before the folder is checked.
    given.check_size(settings)
    given.check()
    check_target(folder, force, overwrite, given.origin_with(changed))
    if report:
        load_pictures("mechdesign.report._design_page")
    for note in given.notes:
        say_note(note)
    with progress() as live:
        made = given.design(**changed, progress=live)
    certified = time.perf_counter()
    folder = _choose_folder(folder, made, force)
    missing = _save(made, folder, report)
    say_private(made.problem, made.origin)
    if as_json:
        click.echo(json.dumps(certificate_to_json(made.certificate), indent=2))
    else:
        _show(made, settings, certified - started, time.perf_counter() - started, folder)
        shown = example or (_DEFAULT if specification is None else None)
        show_next(_next(folder, report and missing is None, made, shown))
    rows = made.channel.numerators
    if len(rows) > 1 and (rows == rows[0]).all():
        say_note(_EQUAL_ROWS)
    say_gap(made, settings.tolerance)
    if missing is not None:
        raise missing
    click.get_current_context().exit(_find_exit_code(made, settings))


def _choose_folder(folder: str, made: Design, force: bool) -> str:
    """Return the folder for a design; an interrupted design does not replace a finished design."""
    if made.status is not Status.INTERRUPTED or not (Path(folder) / CERTIFICATE).exists():
        return folder
    folder = f"{folder.rstrip('/')}-interrupted"
    check_target(folder, force)
    say_note(f"the existing design is kept; the best channel so far goes to {folder}")
    return folder


def _save(made: Design, folder: str, report: bool) -> ReportError | None:
    """Write a design, with or without its page; return the error if only the page is missing."""
    from mechdesign.report._saving import save

    try:
        save(made, folder, report=report)
    except ReportError as error:
        return error
    return None


def _find_exit_code(made: Design, settings: SolveSettings) -> int:
    """Return the exit code, which depends on whether the search was stopped, or stalled with a wide bracket."""
    from mechdesign.synthesis._result import has_stalled

    if made.status is Status.INTERRUPTED:
        return STOPPED
    return STALLED if has_stalled(made, settings) else 0


def _folder(specification: Path | None) -> str:
    """Return the default folder of a design: one for each specification."""
    return _EXAMPLE_FOLDER if specification is None else specification.stem


def _estimate(given: Specification, settings: SolveSettings) -> None:
    from mechdesign.synthesis._sizes import estimate, find_largest, format_bytes, list_remedies

    size = given.size
    if size is None:
        raise click.UsageError(
            "--estimate needs a metric requirement with a named distance or anchors, and no [policy]"
        )
    console, found = output(), estimate(size, settings)
    symmetries = f", up to {size.symmetries} symmetries" if size.symmetries > 1 else ""
    console.print(f"{size.secrets} secrets, {size.observables} observables{symmetries}")
    console.print(f"{found}: {'fits' if found.fits else 'does not fit'}")
    if found.allowed is not None:
        most = find_largest(size, settings)
        largest = f"; up to {most} secrets fit" if most else ""
        console.print(f"{format_bytes(found.allowed)} of memory may be used{largest}")
    if not found.fits:
        console.print(list_remedies(size, settings), soft_wrap=True)


def _show(made: Design, settings: SolveSettings, certified: float, finished: float, folder: str) -> None:
    from mechdesign.model._problem_words import claim_names, cost_measure
    from mechdesign.report._headlines import design_headline
    from mechdesign.report._proved import count_bounded_pairs

    problem, certificate = made.problem, made.certificate
    n, m = problem.cost.shape
    summary = made.summary
    console = output()
    show_verdict(design_headline(problem, certificate))
    console.print(Text(problem.title or "Privacy mechanism", "bold"))
    console.print(f"{n} secrets, {m} observables\n")
    names = claim_names(problem)
    for shown in certificate_tables(
        certificate, names, cost_measure(problem), settings.tolerance, count_bounded_pairs(problem)
    ):
        console.print(shown)
        console.print()
    console.print(f"solved    {summary.plan or summary.solver} ({summary.status})", soft_wrap=True)
    times = f"{_parts(summary)}, {certified:.1f} s until certified, {finished:.1f} s in all"
    console.print(f"time      {times}", soft_wrap=True)
    files = ", ".join(name for name in SET if (Path(folder) / name).is_file())
    console.print(f"files     {folder}: {files}", soft_wrap=True)


def _parts(summary: SolveSummary) -> str:
    """Return the times of all measured phases as text."""
    parts = {
        "solving": summary.seconds,
        "of it for the proof of the bound": summary.proving_seconds,
        "rounding": summary.rounding_seconds,
        "certifying": summary.certifying_seconds,
    }
    return ", ".join(f"{seconds} s {part}" for part, seconds in parts.items() if seconds is not None)


def _next(folder: str, report: bool, made: Design, example: str | None) -> dict[str, str]:
    """Return the possible next steps: commands, or files to open, with descriptions."""
    found = {f"{folder}/report.html": "the report, with figures: open it in a browser"} if report else {}
    found[f"mechdesign verify {folder}"] = "prove the design again, from the files alone"
    found[f"mechdesign sample {folder} {_truth(made)}"] = (
        "draw an answer for this secret, with new randomness each time"
    )
    if example is not None:
        found[f"mechdesign examples {example} > my.toml"] = (
            "a specification of your own: change it, then `mechdesign design my.toml`"
        )
        found["mechdesign examples"] = "other examples: a larger city, a policy, a trace, repeated releases"
    return found


def _truth(made: Design) -> str:
    """Return the option of `mechdesign sample` for one secret: its coordinates if it has a place, or its index."""
    domain, middle = made.problem.secrets, made.problem.cost.shape[0] // 2
    for axes in (DEGREES, PLANE):
        if domain is not None and domain.places(axes) is not None:
            known = domain.degrees if axes == DEGREES else domain.points
            assert known is not None
            return "--at " + ",".join(f"{value:.6g}" for value in known[middle].tolist())
    return f"--secret {middle}"
