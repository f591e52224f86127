"""``mechdesign release``."""

from __future__ import annotations

import contextlib
import itertools
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from mechdesign.base._deadline import Progress, promising
from mechdesign.base._errors import InputError, ReportError
from mechdesign.certify._exact import exact_text
from mechdesign.cli._arguments import (
    example_for,
    example_option,
    input_files,
    naming_options,
    read_specification,
)
from mechdesign.cli._console import STOPPED, describe_gap, load_pictures, progress, say_note, say_warning
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.cli._ledgers import announce, no_series_option, spending
from mechdesign.model._words import at_most
from mechdesign.specification import examples
from mechdesign.synthesis._folders import ADD_UP, check_folder, check_no_input_in, check_space

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mechdesign.base._arrays import Integers
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.specification._specification import Specification
    from mechdesign.traces._released import ReleasedTrace


_SEEDED = (
    "these outputs come from a seed: anyone who learns or guesses it can undo the noise and read the true states. They "
    "are a rehearsal, charged to no ledger; never publish them"
)
_UNFINISHED = (
    "contains these steps, without a manifest. Anyone who sees these steps and another run of the same trace learns "
    "more about the trace"
)
_UNSNAPPED = (
    "release.snap = false: outputs are floating-point numbers, whose last digits may reveal more than ε allows, and no "
    "step is proved in exact arithmetic. They are a rehearsal; never publish them"
)


@command
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=FILE)
@click.argument("trace", metavar="[TRACE.csv]", required=False, type=FILE)
@example_option("release")
@click.option(
    "-o", "--output", "directory", metavar="DIR", type=FILE, default=Path("released"), show_default=True,
    help="Folder of the files that may be published.",
)  # fmt: skip
@click.option("--channels", is_flag=True, help="Also write the channel of each step, for `mechdesign verify`.")
@click.option(
    "--truth", "private", metavar="DIR2", type=FILE,
    help="Write figures and a table of the true states into another folder, for their owner only.",
)  # fmt: skip
@click.option(
    "--ledger", "ledger_file", metavar="FILE", type=FILE,
    help="Record the spending of each step here instead of in [ledger]; beyond its budget nothing is released.",
)  # fmt: skip
@click.option(
    "--own-history", is_flag=True,
    help='Accept history = "own": the published files depend on the data of this person.',
)  # fmt: skip
@click.option("--seed", metavar="NUMBER", type=click.IntRange(min=0), help="Rehearse: the same outputs every time.")
@click.option("--overwrite", is_flag=True, help="Replace an existing released trace in DIR.")
@no_series_option
def release(
    specification: Path | None,
    trace: Path | None,
    example: str | None,
    directory: Path,
    channels: bool,
    private: Path | None,
    ledger_file: Path | None,
    own_history: bool,
    seed: int | None,
    overwrite: bool,
    series: Literal[False] | None,
) -> Found:
    """Release a trace under a policy graph, step by step; certify each step, and the guarantee of all steps together.

    TRACE.csv contains the true state of each step under a header line. Columns are state, latitude and longitude, or x
    and y, and optionally time; [release] gives them other names.

    DIR may be published. If prior, chain or policy were counted in data, [release] states whose: history = "others", or
    "own" with --own-history.

    A folder without release.json contains an unfinished run. After Ctrl-C the steps released so far are kept, beside a
    finished run in DIR-interrupted, and the exit code is 130.

    Publish only one run of a trace: each further run adds its ε, even with --overwrite. Use one ledger for each person.

    Example: mechdesign release walks.toml monday.csv -o monday
    """
    started = time.perf_counter()
    given = read_specification(specification, example, "release")
    with contextlib.ExitStack() as opened:
        if trace is None and example is not None:
            trace = opened.enter_context(examples.on_disk(example_for(example, "release").trace))
        if trace is None:
            raise click.UsageError("give TRACE.csv: the true state of each step")
        # Imported late, so that wrong usage is rejected immediately.
        from mechdesign.leakage._plans import OUTSIDE
        from mechdesign.leakage.accounting import Ledger
        from mechdesign.specification._traces import require_steps

        folders = _Folders(directory, private, channels)
        require_steps(given.document)
        problem = given.problem()
        second = folders.check({"TRACE.csv": trace, **input_files(specification)}, overwrite)
        steps = given.steps(trace)
        states = steps.states
        folders.check_room(len(states), problem.cost.shape[0])
        load_pictures("mechdesign.report._trace_page")
        with progress() as live:
            seeded = _show_notes_before(
                given, seed, (*(f"trace: {note}" for note in steps.notes), *([ADD_UP] if second else []))
            )
            ledger = None
            if not seeded:
                ledger = given.ledger() if ledger_file is None else Ledger.existing(ledger_file)
                announce(ledger, directory)
            if ledger is not None and ledger.series is not None and series is False:
                say_note(OUTSIDE)
            with promising("keeping the steps released so far"), naming_options({"step|series": "--no-series"}):
                found = given.release(
                    trace, seed=seed, ledger=ledger, progress=live, keep=folders.keep, own_history=own_history,
                    series=series,
                )  # fmt: skip
            live(Progress("adding up and drawing", time.perf_counter() - started))
            folders = folders.save(found, states)
    if found.history.counted or found.history.given:
        say_note(found.history.meaning)
    if (gap := found.relative_gap) > (tolerance := given.settings.tolerance):
        say_note(f"at the worst step {describe_gap(gap, tolerance)}")
    if not found.finished:
        say_note(f"stopped after {len(found.releases)} of {len(states)} steps: {folders.public} {_UNFINISHED}")
    facts = {
        "seconds": round(time.perf_counter() - started, 1),
        "files": sorted(str(entry) for entry in folders.public.iterdir()),
        "next": [] if example is None or not found.finished else _next(example, folders.public),
    }
    return _released(found, states[: len(found.releases)], ledger, facts)


@dataclass(frozen=True)
class _Folders:
    """The folder that may be published, the private folder with the true states, and whether to write channels."""

    public: Path
    private: Path | None
    channels: bool

    def check(self, inputs: Mapping[str, Path], overwrite: bool) -> bool:
        """Raise an error if a folder must not be written; return whether the public folder contains a release."""
        from mechdesign.traces._released import FILES, PRIVATE, TRUTH, check_release_target, holds_release

        check_no_input_in(self.public, FILES, inputs)
        check_release_target(self.public, overwrite)
        second = holds_release(self.public)
        if self.private is not None:
            here, there = self.private.resolve(), self.public.resolve()
            if here == there or here in there.parents or there in here.parents:
                problem = "is, contains or is inside the folder that may be published"
                raise InputError("--truth", problem, value=str(self.private), bound="a separate folder")
            held = "" if overwrite or not any((self.private / name).exists() for name in TRUTH) else "true states"
            check_folder(self.private, PRIVATE, "true states", first=TRUTH, held=held)
            check_no_input_in(self.private, PRIVATE, inputs)
        return second

    def check_room(self, steps: int, states: int) -> None:
        """Raise an error if the disk has no space for the files, whose size is slightly overestimated."""
        from mechdesign.traces._released import FILES

        size = 2_000_000 + steps * (2_000 + 16 * states) + steps * 40 * states**2 * self.channels
        for folder in filter(None, (self.public, self.private)):
            check_space(folder, size, FILES)

    def apart(self) -> _Folders:
        """Return the folders of an interrupted run, which does not replace a finished run."""
        from mechdesign.traces._published import MANIFEST

        if not (self.public / MANIFEST).exists():
            return self
        return replace(
            self, public=_find_unused_folder(self.public), private=self.private and _find_unused_folder(self.private)
        )

    def save(self, found: ReleasedTrace, states: Integers) -> _Folders:
        """Write a release, then the files with the true states; return the folders that contain it.

        Raises `ReportError`, which names the written files, if only the files with the true states cannot be written.
        """
        from mechdesign.report import _saving as saving

        to = self if found.finished else self.apart()
        saving.save(found, to.public, channels=to.channels)
        try:
            if to.private is not None:
                saving.save_truth(found, to.private, states)
        except Exception as error:
            raise ReportError(
                f"the released files are in {to.public}, and complete. {found.is_spent}: do not release it again. Only "
                f"the files with the true states are missing ({error})"
            ) from error
        return to

    def keep(self, stopped: ReleasedTrace) -> None:
        """Write the steps that were released before a step failed, since their budget is spent."""
        from mechdesign.report import _saving as saving

        place = self.apart().public
        saving.save(stopped, place, channels=self.channels)
        say_note(f"{place} contains the {len(stopped.releases)} steps that were released. {stopped.is_spent}")


def _show_notes_before(given: Specification, seed: int | None, notes: Iterable[str]) -> bool:
    """Show notes and warnings before a release; return whether it is a rehearsal with a seed."""
    settings = given.release_settings
    for note in (*given.notes, *settings.notes, *notes):
        say_note(note)
    seeded = seed is not None or settings.table.seed is not None
    for said, warning in ((seeded, _SEEDED), (settings.table.snap is False, _UNSNAPPED)):
        if said:
            say_warning(warning, UserWarning, "", 0)
    return seeded


def _find_unused_folder(directory: Path) -> Path:
    """Return a new folder for an interrupted run, since `directory` contains a finished run."""
    names = itertools.chain([f"{directory}-interrupted"], (f"{directory}-interrupted-{k}" for k in itertools.count(2)))
    return next(path for path in map(Path, names) if not path.exists())


def _released(found: ReleasedTrace, states: Integers, ledger: Ledger | None, facts: dict[str, object]) -> Found:
    from mechdesign.report._trace_page import list_revealed
    from mechdesign.report._verdicts import judge_trace
    from mechdesign.traces._released import accuracy

    together = found.composition
    unit = f" {found.domain.unit}" if found.domain.unit else ""
    # True errors depend on the true states, so only a rehearsal shows them.
    errors = [
        {
            "on_average_over_the_steps": row.name,
            "expected": Shown(row.expected, f"{row.expected:.4g}{unit}"),
        }
        | ({} if row.true is None else {"true": Shown(row.true, f"{row.true:.4g}{unit}")})
        for row in accuracy(found, states if found.seeded else None)
    ]
    shown = {
        "title": found.title or None,
        "steps": together.releases,
        "states": found.domain.size,
        "mechanism": found.mechanism,
        "epsilon": exact_text(together.epsilon),
        "edges_kept_at_every_step": together.graph.number_of_edges(),
        "epsilon_of_any_two_possible_trajectories": Shown(together.bound, at_most(together.bound)),
        "every_step_proved_in_exact_arithmetic": found.certified,
        "states_revealed_for_certain": list_revealed(found) or None,
        "unit": found.domain.unit or None,
        "errors": errors,
        **({} if ledger is None else spending(ledger)),
    }
    return Found(str(judge_trace(found)), shown | facts, 0 if found.finished else STOPPED)


def _next(example: str, directory: Path) -> list[str]:
    trace = example_for(example, "release").trace
    return [
        f"{shlex.quote(str(directory))}/report.html    # the report, with a map and the steps: open it in a browser",
        f"mechdesign examples {example} > my.toml    # a specification of your own: change it",
        f"mechdesign examples {trace} > my.csv    # a trace of your own: replace its states",
        "mechdesign release my.toml my.csv    # release it",
    ]
