"""``mechdesign design``."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._errors import ReportError
from mechdesign.certify._bundle import CERTIFICATE
from mechdesign.cli._arguments import example_option, input_files, read_specification
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
from mechdesign.cli._places import find_option
from mechdesign.solve._contract import Status
from mechdesign.specification._read import Source
from mechdesign.synthesis._folders import SET, Wanted, check_no_input_in, check_target, compare_design

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    help="Folder to write.  [default: the name of SPEC.toml; mechanism for an example]",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as JSON, and nothing else.")
@click.option("--tolerance", metavar="GAP", type=float, help="Largest relative gap.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="Stop after this time, with the best channel so far.")
@click.option("--no-report", "report", flag_value=False, default=True, type=bool, help="Write no report.html.")
@click.option("--estimate", is_flag=True, help="Only estimate the memory, and the largest problem that fits.")
@click.option("--overwrite", is_flag=True, help="Replace another design in DIR, or design again.")
def design(
    specification: Path | None,
    example: str | None,
    target: str | None,
    as_json: bool,
    report: bool,
    estimate: bool,
    overwrite: bool,
    **options: Any,
) -> None:
    """Design the least-cost channel of a specification, prove it, and write it with a report.

    \b
    mechdesign design city.toml -o city

    Without SPEC.toml, the design is for a small simulated city. --tolerance and --time-limit override [solver]. Nothing
    is solved if DIR holds the design of the same text, settings and data by this version. Any other design in DIR is
    replaced with --overwrite only; other files beside it stay. After Ctrl-C the best channel so far is saved, and the
    exit code is 130.

    A prior that was counted in data is private: DIR reveals the exact counts. `mechdesign export DIR --without-prior`
    writes a folder without them.
    """  # noqa: D301 - click wants the control character
    started = time.perf_counter()
    given = read_specification(specification, example, "design", _DEFAULT)
    folder = Path(target or (_EXAMPLE_FOLDER if specification is None else specification.stem))
    changed = {name: value for name, value in options.items() if value is not None}
    with Source().keys({name: f"--{name.replace('_', '-')}" for name in changed}):
        settings = replace(given.settings, **changed)
    if estimate:
        _estimate(given, settings)
        return
    # Report errors of the specification before the folder is checked.
    given.check_size(settings)
    given.check()
    check_no_input_in(folder, SET, input_files(specification))
    origin = given.origin_with(changed)
    why = compare_design(folder, Wanted(origin.specification, origin.files, origin.settings))
    if not why and not overwrite:
        made, missing = _reuse(folder, report)
    else:
        check_target(folder, overwrite, why)
        made, folder, missing = _solve(given, changed, folder, overwrite, report)
    say_private(made.problem, made.origin)
    if as_json:
        click.echo(json.dumps(certificate_to_json(made.certificate), indent=2))
    else:
        _show(made, settings, folder)
        output().print(f"in all    {time.perf_counter() - started:.1f} s")
        shown = example or (_DEFAULT if specification is None else None)
        show_next(_next(folder, report and missing is None, made, shown))
    rows = made.channel.numerators
    if len(rows) > 1 and (rows == rows[0]).all():
        say_note(_EQUAL_ROWS)
    say_gap(made, settings.tolerance)
    if missing is not None:
        raise missing
    click.get_current_context().exit(_find_exit_code(made, settings))


def _reuse(folder: Path, report: bool) -> tuple[Design, ReportError | None]:
    """Return the design in a folder; add its page if it is requested and missing."""
    from mechdesign.synthesis._result import Design

    say_note(f"{folder} holds this design already: nothing is solved. --overwrite designs it again")
    made = Design.load(folder)
    return made, _save(made, folder, report) if report and not (folder / "report.html").exists() else None


def _solve(
    given: Specification, changed: Mapping[str, Any], folder: Path, overwrite: bool, report: bool
) -> tuple[Design, Path, ReportError | None]:
    """Make a design and write it; return it with its folder, and the error if only the page is missing."""
    if report:
        load_pictures("mechdesign.report._design_page")
    for note in given.notes:
        say_note(note)
    with progress() as live:
        made = given.design(**changed, progress=live)
    folder = _choose_folder(folder, made, overwrite)
    return made, folder, _save(made, folder, report)


def _choose_folder(folder: Path, made: Design, overwrite: bool) -> Path:
    """Return the folder for a design; an interrupted design does not replace a finished design."""
    if made.status is not Status.INTERRUPTED or not (folder / CERTIFICATE).exists():
        return folder
    folder = Path(f"{folder}-interrupted")
    check_target(folder, overwrite)
    say_note(f"the existing design is kept; the best channel so far goes to {folder}")
    return folder


def _save(made: Design, folder: Path, report: bool) -> ReportError | None:
    """Write a design, with or without its page; return the error if only the page is missing."""
    from mechdesign.report._saving import save

    try:
        save(made, folder, report=report)
    except ReportError as error:
        return error
    finally:
        if (signature := folder / f"{CERTIFICATE}.sig").exists():
            say_note(f"{signature} no longer fits: sign {CERTIFICATE} again")
    return None


def _find_exit_code(made: Design, settings: SolveSettings) -> int:
    """Return the exit code, which depends on whether the search was stopped, or stalled with a wide bracket."""
    from mechdesign.synthesis._result import has_stalled

    if made.status is Status.INTERRUPTED:
        return STOPPED
    return STALLED if has_stalled(made, settings) else 0


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


def _show(made: Design, settings: SolveSettings, folder: Path) -> None:
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
    console.print(f"time      {_parts(summary)}", soft_wrap=True)
    files = ", ".join(name for name in SET if (folder / name).is_file())
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


def _next(folder: Path, report: bool, made: Design, example: str | None) -> dict[str, str]:
    """Return the possible next steps: commands, or files to open, with descriptions."""
    found = {f"{folder}/report.html": "the report, with figures: open it in a browser"} if report else {}
    found[f"mechdesign verify {folder}"] = "prove the design again, from the files alone"
    found[f"mechdesign sample {folder} {find_option(made.problem.secrets, made.problem.cost.shape[0] // 2)}"] = (
        "draw an answer for this secret, with new randomness each time"
    )
    if example is not None:
        found[f"mechdesign examples {example} > my.toml"] = (
            "a specification of your own: change it, then `mechdesign design my.toml`"
        )
        found["mechdesign examples"] = "other examples: a larger city, a policy, a trace, repeated releases"
    return found
