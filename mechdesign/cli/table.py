"""``mechdesign table``."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource
from msgspec import structs

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import ExportError, ReportError
from mechdesign.cli._arguments import example_for, example_option, input_files, naming_options
from mechdesign.cli._console import load_pictures, say_note, say_warning
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.cli._ledgers import announce, no_series_option, spending
from mechdesign.model._words import short
from mechdesign.specification import examples

if TYPE_CHECKING:
    from mechdesign.leakage._entries import TimeStep
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.specification._table_specification import ReleaseSpecification
    from mechdesign.tables._files import Published
    from mechdesign.tables._query import Plan


_SEEDED = (
    "the noise comes from a seed: anyone who learns or guesses it can undo the noise. This is a rehearsal, charged to "
    "no ledger; never publish it"
)
_MOST = 12
# Options and keys of the arguments of a release.
_OPTIONS = {"(step|gap)": r"--\1", "series": "--no-series", "complete": "domain"}


def _as_step(_: click.Context, __: click.Parameter, text: str | None) -> TimeStep | None:
    from mechdesign.leakage._series import read_step

    return None if text is None else read_step(text, "--step")


@command
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=FILE)
@click.argument("records", metavar="[TABLE.csv]", required=False, type=FILE)
@example_option("table")
@click.option(
    "-o", "--output", "folder", metavar="DIR", type=FILE, default=Path("released"), show_default=True,
    help="Folder of the files that may be published.",
)  # fmt: skip
@click.option(
    "--ledger", "ledger_file", metavar="FILE", type=FILE, help="Take this ledger instead of the ledger in [ledger]."
)
@click.option("--no-report", is_flag=True, help="Do not write report.html.")
@click.option("--seed", metavar="NUMBER", type=click.IntRange(min=0), help="Rehearse: the same answers every time.")
@click.option("--overwrite", is_flag=True, help="Replace an existing release in DIR.")
@click.option(
    "--together", is_flag=True,
    help="Allow exact answers beside answers under a policy that protects them; the ledger records it.",
)  # fmt: skip
@click.option(
    "--step", metavar="STEP", callback=_as_step,
    help="Time step in the ledger's series: an integer, or a month such as 2026-11.",
)  # fmt: skip
@click.option("--gap", is_flag=True, help="Nothing was released in the steps between --step and the others.")
@no_series_option
def table(
    specification: Path | None,
    records: Path | None,
    example: str | None,
    folder: Path,
    ledger_file: Path | None,
    no_report: bool,
    seed: int | None,
    overwrite: bool,
    together: bool,
    step: TimeStep | None,
    gap: bool,
    series: Literal[False] | None,
) -> Found:
    """Release the queries of SPEC.toml on TABLE.csv under a policy; without TABLE.csv, show the errors to expect.

    DIR may be published: its files depend on the table only through the noisy answers. The ledger is charged before any
    noise is drawn; beyond its budget nothing is released, and the exit code is 2.

    Publish one release of a table: each further one adds its budget, even if it replaces files with --overwrite. If the
    ledger has a series, --step states the time step, and epsilon = "planned" is what its plan leaves.

    Example: mechdesign table status.toml may.csv --step 2026-05 -o may
    """
    started = time.perf_counter()
    if gap and step is None:
        raise click.UsageError("--gap needs --step")
    if series is False and step is not None:
        raise click.UsageError("give --step or --no-series, not both: nothing outside the series has a step")
    given = _read_specification(specification, example, ledger_file)
    with contextlib.ExitStack() as opened:
        opened.enter_context(naming_options(_OPTIONS))
        if records is None and example is not None:
            records = opened.enter_context(examples.on_disk(example_for(example, "table").trace))
        if records is None:
            _refuse_options_of_a_release()
            return _plan(given.title, given.plan(step=step))
        # Imported late, so that wrong usage is rejected immediately.
        from mechdesign.synthesis._folders import ADD_UP, check_no_input_in, check_space
        from mechdesign.tables._files import FILES, check_target, holds_release

        # Check the folder before the ledger is charged.
        check_no_input_in(folder, FILES, {"TABLE.csv": records, **input_files(specification)})
        check_target(folder, overwrite)
        notes = [ADD_UP] if holds_release(folder) else []
        check_space(folder, given.output_size(not no_report), FILES)
        if not no_report:
            load_pictures("mechdesign.report._table_page")
        if seed is not None:
            say_warning(_SEEDED, UserWarning, "", 0)
        ledger = None
        if seed is None:
            ledger = given.ledger()
            announce(ledger, folder)
        notes += given.remarks
        with Deadline().keeping("writing the answers, whose budget is already spent", at_once=False):
            found = given.release(
                records,
                ledger=ledger,
                rng=seed,
                together=together,
                step=step,
                gap=gap,
                series=series,
            )
            _save(found, folder, not no_report, overwrite)
    for note in (*notes, *found.release.description.remarks):
        say_note(note)
    facts = {
        "seconds": round(time.perf_counter() - started, 1),
        "files": sorted(str(entry) for entry in folder.iterdir()),
        "next": [] if example is None else _next(example),
    }
    return _released(found, ledger, facts)


def _refuse_options_of_a_release() -> None:
    """Raise `click.UsageError` if an option makes no sense without a table, which may have been forgotten."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is ParameterSource.COMMANDLINE and option.name not in ("specification", "ledger_file", "step"):
            raise click.UsageError(f"{option.opts[-1]} needs TABLE.csv: the records. Without it, a plan is shown")


def _save(found: Published, folder: Path, report: bool, overwrite: bool) -> None:
    """Write a release, or write the answers into a temporary folder if its folder cannot be written."""
    from mechdesign.report._saving import save

    try:
        save(found, folder, report=report, overwrite=overwrite)
    except ReportError:
        raise
    except ExportError as error:
        spent = found.release.description.is_spent
        try:
            rescued = Path(tempfile.mkdtemp(prefix="mechdesign-released-"))
            save(found, rescued, report=False)
        except (ExportError, OSError) as again:
            raise ExportError(f"{error}. {spent}, and the answers are lost ({again})") from error
        raise ReportError(f"{error}. {spent}; the answers are in {rescued}: move them") from error


def _read_specification(path: Path | None, example: str | None, ledger: Path | None) -> ReleaseSpecification:
    """Return the specification of a file or an example; `ledger` replaces the ledger that it names."""
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.specification._table_specification import DividedLedgerTable, parse, read

    if path is not None and example is not None:
        raise click.UsageError("give SPEC.toml or --example NAME, not both")
    if path is None and example is None:
        raise click.UsageError("give SPEC.toml, or --example NAME; `mechdesign examples` lists them")
    given = parse(example_for(example or "", "table").text) if path is None else read(path)
    if ledger is None:
        return given
    named, file = given.ledger_table or DividedLedgerTable(path=""), str(Ledger.existing(ledger).path)
    return replace(given, ledger_table=structs.replace(named, path=file, epsilon=None, rho=None))


def _released(found: Published, ledger: Ledger | None, facts: dict[str, object]) -> Found:
    from mechdesign.report._verdicts import judge_table

    release = found.release
    described = release.description
    spent = described.spent if described.epsilon or described.rho else "nothing"
    if described.rows_per_person > 1 and spent != "nothing":
        spent += f" per row, {described.spent_per_person} per person"
    shown = {
        "title": found.title or None,
        "policy": described.policy,
        "neighbours": described.neighbours,
        "definition": described.definition,
        "people": described.people,
        "answers": Shown(len(release), f"{len(release):,}: {described.what}"),
        **_first(found),
        "spent": spent,
        **({} if ledger is None else spending(ledger)),
    }
    return Found(str(judge_table(release)), shown | facts)


def _first(found: Published) -> dict[str, object]:
    """Return the first answers; the files hold all of them."""
    release = found.release
    if found.ranges:
        return {
            "first_ranges": [
                {
                    "range": f"{each.first} to {each.last}",
                    "records": each.estimate.value,
                    "standard_error": each.estimate.standard_error,
                    "interval": _interval(each.estimate.low, each.estimate.high),
                }
                for each in found.ranges[:_MOST]
            ]
        }
    if found.quantiles:
        return {
            "quantiles": [
                {
                    "probability": float(share.probability),
                    "value": share.value,
                    "interval": Shown((share.low, share.high), f"{share.low} to {share.high}"),
                }
                for share in found.quantiles[:_MOST]
            ]
        }
    return {
        "first_answers": [
            {
                **{name: str(column[index]) for name, column in release.labels.items()},
                "answer": float(release.answers[index]),
                "standard_error": float(release.standard_errors[index]),
                "interval": _interval(release.low[index], release.high[index]),
            }
            for index in range(min(len(release), _MOST))
        ]
    }


def _interval(low: float, high: float) -> Shown:
    return Shown((float(low), float(high)), f"{short(low, 4)} to {short(high, 4)}")


def _plan(title: str, found: Plan) -> Found:
    for remark in found.remarks:
        say_note(remark)
    said = f"{title or found.what}: releases that spend {found.spends} would take the strategy {found.taken.name}."
    strategies = [
        {
            "strategy": option.name,
            "taken": option.taken,
            "root_mean_squared_error": option.error,
            "proven_limit": option.limit,
            "detail": option.detail,
        }
        for option in found.options
    ]
    facts = {
        "policy": found.policy,
        "neighbours": found.neighbours,
        "queries": Shown(found.queries, f"{found.queries:,}: {found.what}"),
        "spends": found.spends,
        "strategies": strategies,
    }
    return Found(said, facts)


def _next(example: str) -> list[str]:
    records = example_for(example, "table").trace
    return [
        f"mechdesign examples {example} > my.toml    # a specification of your own: change it",
        "mechdesign table my.toml    # the errors of all strategies, without data",
        f"mechdesign examples {records} > my.csv    # a table of your own: replace its rows",
        "mechdesign table my.toml my.csv    # release it",
    ]
