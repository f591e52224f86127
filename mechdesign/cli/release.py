"""``mechdesign release``."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from mechdesign.atomic import write_file
from mechdesign.certify.exact import exact_text, printed, text_up
from mechdesign.cli.console import STOPPED, output, progress, say_note, say_warning, table
from mechdesign.cli.preparing import check_private, prepared_trace, step_epsilons, step_problem
from mechdesign.data.states import read_states
from mechdesign.solvers.contract import Progress
from mechdesign.spec import specification as spec
from mechdesign.spec.policy import ReleaseSettings

if TYPE_CHECKING:
    from mechdesign.cli.releasing import Findings

__all__ = ["release"]

_FILE = click.Path(path_type=Path)
_SEEDED = (
    "these outputs come from a seed: whoever learns or guesses it can undo the noise and read the true states. They "
    "are a rehearsal; never publish them"
)
_UNSNAPPED = (
    "release.snap = false: outputs are floating-point numbers, whose last digits may tell more than ε allows, and no "
    "certificate covers them. They are for simulations"
)


@click.command()
@click.argument("specification", metavar="SPEC.toml", type=_FILE)
@click.argument("trace", metavar="TRACE.csv", type=_FILE)
@click.option(
    "-o", "--output", "directory", metavar="DIR", type=_FILE, default=Path("released"), show_default=True,
    help="Folder for what may be published.",
)  # fmt: skip
@click.option("--delimiter", metavar="CHARACTER", default=",", show_default=True, help="Between columns of TRACE.csv.")
@click.option("--channels", is_flag=True, help="Write the channel of each step, too, for `mechdesign verify`.")
@click.option(
    "--truth", "private", metavar="DIR2", type=_FILE,
    help="Write what shows the true states into another folder, for their owner only.",
)  # fmt: skip
@click.option("--seed", metavar="NUMBER", type=click.IntRange(min=0), help="Rehearse: the same outputs every time.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON instead of a table.")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files, beside them.")
def release(
    specification: Path,
    trace: Path,
    directory: Path,
    delimiter: str,
    channels: bool,
    private: Path | None,
    seed: int | None,
    as_json: bool,
    force: bool,
) -> None:
    """Release a trace, step by step, under a policy graph; certify each step, and say what all of them tell together.

    TRACE.csv holds the true state of each step: an index or a label a line, or columns state, x and y, or latitude and
    longitude under a header. SPEC.toml says which policy is kept ([[privacy]] with kind = "graph", [policy]) and what
    is known of how states follow one another ([release]).

    DIR may be published: nothing in it depends on the true states but through the outputs. release.json comes last;
    without it a run was not finished. After Ctrl-C the steps released so far are kept, without it, and the exit code is
    130; where a finished run stands in DIR they go to DIR-interrupted. Publish one run of a trace: each further one
    adds its ε.
    """
    started = time.perf_counter()
    given = spec.read(specification)
    problem, settings = step_problem(given), given.release
    assert problem.secrets is not None
    states = read_states(trace, problem.secrets, delimiter)
    epsilons = step_epsilons(given, len(states))
    seed = settings.seed if seed is None else seed
    # Imported late: wrong input is refused at once.
    from mechdesign.release.files import MANIFEST, check_release_target, manifest, write_release

    check_release_target(directory, force)
    if private is not None:
        check_private(private, directory)
    prepared = prepared_trace(given, problem, settings, seed)
    for note in (*given.notes, *settings.notes):
        say_note(note)
    for said, warning in ((seed is not None, _SEEDED), (settings.snap is False, _UNSNAPPED)):
        if said:
            say_warning(warning, UserWarning, "", 0)
    from mechdesign.cli.releasing import find, largest_gap, private_files, public_files, run

    with progress() as live:
        releases, stopped = run(prepared, states, epsilons, str(trace), live)
        if not releases:
            raise KeyboardInterrupt
        if live is not None:
            live(Progress("adding up and drawing", time.perf_counter() - started))
        found = find(releases, settings.transition, settings.initial)
        files = public_files(found)
        designs = [released.stage.design for released in releases] if channels else []
        described = manifest(given.title, settings.mechanism, found.composition, seed is not None, files)
        if stopped and (directory / MANIFEST).exists():
            # What was finished is not replaced by what was not.
            directory, private = _apart(directory), None if private is None else _apart(private)
            check_release_target(directory, force)
        write_release(directory, files, [each for each in designs if each], None if stopped else described)
        if private is not None:
            private.mkdir(parents=True, exist_ok=True)
            for name, content in private_files(found, states).items():
                write_file(private / name, [content])
    if as_json:
        click.echo(json.dumps(described, indent=2))
    else:
        _show(given.title, settings, found, time.perf_counter() - started)
        output().print(
            f"files     {directory}: {', '.join(sorted(entry.name for entry in directory.iterdir()))}", soft_wrap=True
        )
    if (gap := largest_gap(releases)) > given.solver.tolerance:
        say_note(
            f"the gap asked for, {given.solver.tolerance:.3g}, was not reached at every step: the channels are private "
            f"as certified, and their cost is within {gap:.3g} of the least possible"
        )
    if stopped:
        say_note(
            f"stopped after {len(releases)} of {len(states)} steps: {directory} holds them, and no manifest. Whoever "
            "sees them and another run of the same trace learns from both"
        )
        click.get_current_context().exit(STOPPED)


def _apart(directory: Path) -> Path:
    """Return where a run that was stopped goes when a finished one stands in `directory`."""
    return Path(f"{directory}-interrupted")


def _show(title: str, settings: ReleaseSettings, found: Findings, seconds: float) -> None:
    together = found.composition
    console = output()
    console.print(Text(title or "Released trace", "bold"))
    count = together.releases
    console.print(f"{count} step{'s' * (count != 1)} of {found.domain.size} states, {settings.mechanism}\n")
    shown = table("all steps together", "")
    shown.add_row("ε", exact_text(together.epsilon))
    shown.add_row("edges kept at every step", str(together.graph.number_of_edges()))
    bound = f"at most {text_up(printed(together.bound), 10)} apart" if math.isfinite(together.bound) else "no bound"
    shown.add_row("any two possible trajectories", bound)
    unit = f" {found.domain.unit}" if found.domain.unit else ""
    for name, which in (("at once", "posteriors"), ("from the whole trace", "smoothed")):
        error = found.beliefs.expected_error(found.lengths, which).mean()
        shown.add_row(f"best guess, {name}, is off by", f"{error:.4g}{unit} on average")
    proofs = [released.certificate for released in found.releases]
    certified = all(proof is not None and proof.holds for proof in proofs)
    shown.add_row("every step proved in exact arithmetic", Text("yes", "green") if certified else Text("no", "yellow"))
    console.print(shown)
    console.print(f"\ntime      {seconds:.1f} s")
