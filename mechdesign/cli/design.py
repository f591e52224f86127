"""``mechdesign design``."""

from __future__ import annotations

import itertools
import shlex
import time
from dataclasses import replace
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._errors import ReportError
from mechdesign.certify._bundle import CERTIFICATE
from mechdesign.cli import exit_code
from mechdesign.cli._arguments import example_option, input_files, read_specification
from mechdesign.cli._certificates import certificate_facts
from mechdesign.cli._console import (
    STOPPED,
    WIDE,
    load_pictures,
    progress,
    say_error,
    say_gap,
    say_note,
    say_private,
)
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.cli._places import find_option
from mechdesign.solve._contract import Status
from mechdesign.specification._read import Source
from mechdesign.synthesis._bundle import find_design
from mechdesign.synthesis._folders import SET, Wanted, check_no_input_in, check_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mechdesign.specification._specification import Specification
    from mechdesign.synthesis._result import Design
    from mechdesign.synthesis._settings import SolveSettings


_DEFAULT = "city"
_EXAMPLE_FOLDER = "mechanism"
_EQUAL_ROWS = (
    "every secret gets the same answers: the channel reveals nothing about it. If this is not intended, check the unit "
    "of ε, of places and of a radius"
)


@command
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=FILE)
@example_option("design")
@click.option(
    "-o", "--output", "target", metavar="DIR", type=FILE,
    help="Folder to write.  [default: the name of SPEC.toml; mechanism for an example]",
)  # fmt: skip
@click.option("--tolerance", metavar="GAP", type=float, help="Largest relative gap.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="Stop after this time, with the best channel so far.")
@click.option("--no-report", "report", flag_value=False, default=True, type=bool, help="Write no report.html.")
@click.option("--estimate", is_flag=True, help="Only estimate the memory, and the largest problem that fits.")
@click.option("--overwrite", is_flag=True, help="Replace another design in DIR, or design again.")
def design(
    specification: Path | None,
    example: str | None,
    target: Path | None,
    report: bool,
    estimate: bool,
    overwrite: bool,
    **options: Any,
) -> Found:
    """Design the least-cost channel of a specification, prove it, and write it with a report.

    Without SPEC.toml, the design is for a small simulated city. --tolerance and --time-limit override [solver]. Nothing
    is solved if DIR holds the design of the same text, settings and data by this version. Any other design in DIR is
    replaced with --overwrite only; other files beside it stay. After Ctrl-C the best channel so far is saved, and the
    exit code is 130.

    A prior that was counted in data is private: DIR reveals the exact counts. `mechdesign export DIR --without-prior`
    writes a folder without them.

    Example: mechdesign design city.toml -o city
    """
    started = time.perf_counter()
    given = read_specification(specification, example, "design", _DEFAULT)
    folder = target or Path(_EXAMPLE_FOLDER if specification is None else specification.stem)
    changed = {name: value for name, value in options.items() if value is not None}
    with Source().keys({name: f"--{name.replace('_', '-')}" for name in changed}):
        settings = replace(given.settings, **changed)
    if estimate:
        return _estimate(given, settings)
    # Report errors of the specification before the folder is checked.
    given.check_size(settings)
    given.check()
    check_no_input_in(folder, SET, input_files(specification))
    origin = given.origin_with(changed)
    with progress("verifying the design in the folder"):
        done, why = find_design(folder, Wanted(origin.specification, origin.files, origin.settings))
    if done is not None and not overwrite:
        made, missing = _reuse(folder, report, settings)
    else:
        check_target(folder, overwrite, why)
        made, folder, missing = _solve(given, changed, folder, report)
    say_private(made.problem, made.origin)
    rows = made.channel.numerators
    if len(rows) > 1 and (rows == rows[0]).all():
        say_note(_EQUAL_ROWS)
    say_gap(made, settings.tolerance)
    if missing is not None:
        say_error(str(missing))
    code = _find_exit_code(made, settings) if missing is None else exit_code(missing)
    shown = example or (_DEFAULT if specification is None else None)
    return _found(made, folder, time.perf_counter() - started, shown, code)


def _reuse(folder: Path, report: bool, settings: SolveSettings) -> tuple[Design, ReportError | None]:
    """Return the design in a folder; add its page if it is requested and missing."""
    from mechdesign.synthesis._result import Design, warn_if_wide

    say_note(f"{folder} holds this design already: nothing is solved. --overwrite designs it again")
    made = warn_if_wide(Design.load(folder), settings)
    return made, _save(made, folder, report) if report and not (folder / "report.html").exists() else None


def _solve(
    given: Specification, changed: Mapping[str, Any], folder: Path, report: bool
) -> tuple[Design, Path, ReportError | None]:
    """Make a design and write it; return it with its folder, and the error if only the page is missing."""
    if report:
        load_pictures("mechdesign.report._design_page")
    for note in given.notes:
        say_note(note)
    with progress() as live:
        made = given.design(**changed, progress=live)
    if made.status is Status.INTERRUPTED and (folder / CERTIFICATE).exists():
        numbers = itertools.chain([""], map("-{}".format, itertools.count(2)))
        folder = next(each for n in numbers if not lexists(each := Path(f"{folder}-interrupted{n}")))
        say_note(f"the existing design is kept; the best channel so far goes to {folder}")
    return made, folder, _save(made, folder, report)


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
    """Return the exit code, which depends on whether the search was stopped, or ended with a wide bracket."""
    from mechdesign.synthesis._result import is_wide

    if made.status is Status.INTERRUPTED:
        return STOPPED
    return WIDE if is_wide(made, settings) else 0


def _estimate(given: Specification, settings: SolveSettings) -> Found:
    from mechdesign.synthesis._sizes import estimate, find_largest, format_bytes, list_remedies

    size = given.size
    if size is None:
        raise click.UsageError(
            "--estimate needs a metric requirement with a named distance or anchors, and no [policy]"
        )
    found = estimate(size, settings)
    facts = {
        "secrets": size.secrets,
        "observables": size.observables,
        "symmetries": size.symmetries,
        "bytes": Shown(found.memory, format_bytes(found.memory)),
        "allowed": None if found.allowed is None else Shown(found.allowed, format_bytes(found.allowed)),
        "most_secrets": find_largest(size, settings) if found.allowed is not None else None,
        "remedies": [] if found.fits else [list_remedies(size, settings)],
    }
    return Found(f"{found}: {'fits' if found.fits else 'does not fit'}.", facts)


def _found(made: Design, folder: Path, seconds: float, example: str | None, code: int) -> Found:
    from mechdesign.report._verdicts import judge_design

    problem, certificate, summary = made.problem, made.certificate, made.summary
    times = {
        "solving": summary.seconds,
        "of_it_for_the_bound": summary.proving_seconds,
        "rounding": summary.rounding_seconds,
        "certifying": summary.certifying_seconds,
        "in_all": round(seconds, 1),
    }
    facts = {
        "title": problem.title or None,
        "secrets": problem.cost.shape[0],
        "observables": problem.cost.shape[1],
        **certificate_facts(problem, certificate),
        "solved": [f"{summary.plan or summary.solver} ({summary.status})"],
        "seconds": {name: value for name, value in times.items() if value is not None},
        "files": [str(folder / name) for name in SET if (folder / name).is_file()],
        "next": _next(folder, made, example),
    }
    return Found(str(judge_design(problem, certificate)), facts, code)


def _next(folder: Path, made: Design, example: str | None) -> list[str]:
    """Return the possible next steps: commands, or files to open."""
    secret = find_option(made.problem.secrets, made.problem.cost.shape[0] // 2)
    name = shlex.quote(str(folder))
    found = [
        f"mechdesign verify {name}    # prove the design again, from the files alone",
        f"mechdesign sample {name} {secret}    # draw an answer for this secret, with new randomness each time",
    ]
    if (folder / "report.html").exists():
        found.insert(0, f"{name}/report.html    # the report, with figures: open it in a browser")
    if example is not None:
        found += [
            f"mechdesign examples {example} > my.toml    # a specification of your own: change it, then design it",
            "mechdesign examples    # other examples: a larger city, a policy, a trace, repeated releases",
        ]
    return found
