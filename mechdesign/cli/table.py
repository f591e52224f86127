"""``mechdesign table``."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec import structs

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import ExportError, ReportError
from mechdesign.cli._arguments import example_for, example_option, input_files, naming_options
from mechdesign.cli._console import (
    Text,
    announce,
    load_pictures,
    no_series_option,
    number,
    output,
    say_note,
    say_warning,
    show_next,
    show_spending,
    show_verdict,
    table,
    wait_option,
)
from mechdesign.specification import examples

if TYPE_CHECKING:
    from mechdesign.leakage._entries import TimeStep
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.specification._table_specification import ReleaseSpecification
    from mechdesign.tables._files import Published
    from mechdesign.tables._query import Plan


_FILE = click.Path(path_type=Path)
_SEEDED = (
    "the noise comes from a seed: anyone who learns or guesses it can undo the noise. This is a rehearsal, charged to "
    "no ledger; never publish it"
)
_ROWS = 12
# Options of the arguments of a release.
_OPTIONS = {"(step|gap)": r"--\1", "series": "--no-series"}


def _as_step(_: click.Context, __: click.Parameter, text: str | None) -> TimeStep | None:
    from mechdesign.leakage._series import read_step

    return None if text is None else read_step(text, "--step")


step_option = click.option(
    "--step", metavar="STEP", callback=_as_step,
    help="Time step of a release of the ledger's series: an integer, or a month such as 2026-11.",
)  # fmt: skip
ledger_option = click.option(
    "--ledger", "ledger_file", metavar="FILE", type=_FILE,
    help="Take this ledger instead of the ledger in [ledger]. Create it with `mechdesign ledger new`.",
)  # fmt: skip


class _ReleaseUnlessNamed(click.Group):
    """A group whose first command runs if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *self.get_help_option_names(ctx)):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[release] SPEC.toml TABLE.csv [OPTIONS]")
        formatter.write_usage(ctx.command_path, "plan SPEC.toml [OPTIONS]", prefix="       ")


@click.group(cls=_ReleaseUnlessNamed)
def release_tables() -> None:
    """Release counts, distributions, ranges or clusters of a table under a policy; or plan a release without data.

    SPEC.toml gives the possible values of a record ([domain]), the column of people ([table]), and the pairs that must
    not be distinguished ([policy]). SPEC.toml also gives the queries and their budget ([release]), and the ledger
    ([ledger]).
    """


@release_tables.command()
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=_FILE)
@click.argument("records", metavar="[TABLE.csv]", required=False, type=_FILE)
@example_option("table")
@click.option(
    "-o", "--output", "folder", metavar="DIR", type=_FILE, default=Path("released"), show_default=True,
    help="Folder of the files that may be published.",
)  # fmt: skip
@ledger_option
@wait_option
@click.option("--report/--no-report", default=True, help="Also write report.html.")
@click.option("--seed", metavar="NUMBER", type=click.IntRange(min=0), help="Rehearse: the same answers every time.")
@click.option("--overwrite", is_flag=True, help="Replace an existing release in DIR.")
@click.option(
    "--together", is_flag=True,
    help="Allow a release that answers exactly what the policy of another release in the ledger protects, or the "
    "reverse; the ledger records it.",
)  # fmt: skip
@step_option
@click.option("--gap", is_flag=True, help="Steps between --step and the others were left out: nothing was released.")
@no_series_option
def release(
    specification: Path | None,
    records: Path | None,
    example: str | None,
    folder: Path,
    ledger_file: Path | None,
    wait: float,
    report: bool,
    seed: int | None,
    overwrite: bool,
    together: bool,
    step: TimeStep | None,
    gap: bool,
    series: Literal[False] | None,
) -> None:
    """Release the queries of SPEC.toml on TABLE.csv, which has a header and one record per line.

    DIR may be published: answers.csv, release.json and report.html depend on the table only through the noisy answers.
    The rows of each person are counted, and then the ledger is charged what a person loses, before any noise is drawn.
    If the budget of the ledger would be exceeded, nothing is released and the exit code is 2. Errors that do not depend
    on the table, such as a wrong DIR, are raised before the charge. Answers are written immediately, and the report
    last.

    Publish one release of a table: each further release adds its budget, even if it replaces the files of another
    release. So --overwrite is required to replace a release in DIR, but not to replace a rehearsal.

    If the ledger has a series, --step states the time step, and epsilon = "planned" is what its plan leaves.
    """
    started = time.perf_counter()
    if (gap and step is None) or (series is False and step is not None):
        raise click.UsageError(
            "--gap needs --step; --no-series excludes it, since nothing outside the series has a step"
        )
    given = _read_specification(specification, example, ledger_file)
    with contextlib.ExitStack() as opened:
        opened.enter_context(naming_options(_OPTIONS))
        if records is None and example is not None:
            records = opened.enter_context(examples.on_disk(example_for(example, "table").trace))
        if records is None:
            raise click.UsageError("give TABLE.csv: the records")
        # Imported late, so that wrong usage is rejected immediately.
        from mechdesign.synthesis._folders import ADD_UP, check_no_input_in, check_space
        from mechdesign.tables._files import FILES, check_target, holds_release

        # Check the folder before the ledger is charged.
        check_no_input_in(folder, FILES, {"TABLE.csv": records, **input_files(specification)})
        check_target(folder, overwrite)
        notes = [ADD_UP] if holds_release(folder) else []
        check_space(folder, given.output_size(report), FILES)
        if report:
            load_pictures("mechdesign.report._table_page")
        if seed is not None:
            say_warning(_SEEDED, UserWarning, "", 0)
        ledger = None
        if seed is None:
            ledger = given.ledger(wait)
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
            _save(found, folder, report, overwrite)
    _show(found, ledger, time.perf_counter() - started)
    names = ", ".join(sorted(entry.name for entry in folder.iterdir()))
    output().print(f"files     {folder}: {names}", soft_wrap=True)
    for note in (*notes, *found.release.description.remarks):
        say_note(note)
    if example is not None:
        show_next(_next(example, folder))


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


@release_tables.command()
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=_FILE)
@example_option("table")
@ledger_option
@step_option
def plan(specification: Path | None, example: str | None, ledger_file: Path | None, step: TimeStep | None) -> None:
    """Show the expected error of every known strategy, and the proven limit; no data are needed.

    A planned ε is read from the plan of the ledger for --step; nothing is charged.
    """
    given = _read_specification(specification, example, ledger_file)
    with naming_options(_OPTIONS):
        _show_plan(given.title, given.plan(step=step))


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


def _show(found: Published, ledger: Ledger | None, seconds: float) -> None:
    from mechdesign.report._headlines import table_headline

    release, console = found.release, output()
    described = release.description
    show_verdict(table_headline(release))
    console.print(Text(found.title or described.what, "bold"))
    console.print(f"{described.policy}: {described.what}, {len(release):,} answers", soft_wrap=True)
    console.print(f"{described.neighbours} {described.definition} {described.people}\n", soft_wrap=True)
    if found.ranges:
        shown = table(
            "range", "records", "standard error", "interval", numbers=("records", "standard error", "interval")
        )
        for each in found.ranges[:_ROWS]:
            estimate = each.estimate
            ends = f"{number(estimate.low)} to {number(estimate.high)}"
            shown.add_row(f"{each.first} to {each.last}", number(estimate.value), number(estimate.standard_error), ends)
        console.print(shown)
    elif found.quantiles:
        shown = table("probability", "value", "interval", numbers=("probability", "value", "interval"))
        for share in found.quantiles[:_ROWS]:
            shown.add_row(number(float(share.probability)), share.value, f"{share.low} to {share.high}")
        console.print(shown)
    else:
        _show_answers(found)
    spent = described.spent if described.epsilon or described.rho else "nothing"
    if described.rows_per_person > 1 and spent != "nothing":
        spent += f" per row, {described.spent_per_person} per person"
    console.print(f"\nspent     {spent}")
    if ledger is not None:
        show_spending(ledger)
    console.print(f"time      {seconds:.1f} s")


def _show_answers(found: Published) -> None:
    release = found.release
    shown = table(
        *release.labels, "answer", "standard error", "interval", numbers=("answer", "standard error", "interval")
    )
    for index in range(min(len(release), _ROWS)):
        labels = [Text(str(column[index])) for column in release.labels.values()]
        ends = f"{number(release.low[index])} to {number(release.high[index])}"
        shown.add_row(*labels, number(release.answers[index]), number(release.standard_errors[index]), ends)
    output().print(shown)
    if len(release) > _ROWS:
        output().print(f"… and {len(release) - _ROWS:,} more")


def _show_plan(title: str, found: Plan) -> None:
    console = output()
    console.print(Text(title or found.what, "bold"))
    queries = f"{found.queries:,} quer{'ies' if found.queries != 1 else 'y'}"
    console.print(f"{found.policy}: {found.what}, {queries}", soft_wrap=True)
    console.print(f"{found.neighbours}\n", soft_wrap=True)
    columns = ("expected error per query", "proven limit")
    shown = table("", "strategy", *columns, "", numbers=columns)
    for option in found.options:
        style = "bold" if option.taken else ""
        limit = "" if option.limit is None else number(option.limit)
        mark = "→" if option.taken else ""
        shown.add_row(mark, Text(option.name, style), number(option.error), limit, option.detail)
    console.print(shown)
    said = f"Errors are root mean squared errors of releases that spend {found.spends}. → marks the chosen strategy."
    console.print(f"\n{said}", soft_wrap=True)
    for remark in found.remarks:
        say_note(remark)


def _next(example: str, folder: Path) -> dict[str, str]:
    records = example_for(example, "table").trace
    return {
        f"{folder}/report.html": "the report, with figures: open it in a browser",
        f"mechdesign table plan --example {example}": "the errors of other strategies",
        f"mechdesign examples {example} > my.toml": "a specification of your own: change it",
        f"mechdesign examples {records} > my.csv": "a table of your own: replace its rows",
        "mechdesign table my.toml my.csv": "release it",
    }
