"""Design a channel for each ε of a schedule: what `mechdesign design` does with a file of budgets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base import _interrupts as interrupts
from mechdesign.certify._exact import exact_text
from mechdesign.cli.console import Text
from mechdesign.cli.console import number
from mechdesign.cli.console import output
from mechdesign.cli.console import progress
from mechdesign.cli.console import say_gap
from mechdesign.cli.console import say_note
from mechdesign.cli.console import table
from mechdesign.cli.pictures import load_pictures
from mechdesign.cli.private import say_private
from mechdesign.synthesis._folders import SCHEDULE
from mechdesign.synthesis._folders import check_schedule_target
from mechdesign.synthesis._folders import folder_name
from mechdesign.synthesis._folders import unused_folders
from mechdesign.model._problem import Origin

if TYPE_CHECKING:
    from mechdesign.certify._certificate import Certificate
    from mechdesign.data._budgets import Schedule
    from mechdesign.specification._specification import Specification
    from mechdesign.synthesis._result import Design

__all__ = ["design_schedule"]


def design_schedule(
    given: Specification,
    schedule: Schedule,
    changed: Mapping[str, Any],
    directory: str,
    report: bool,
    as_json: bool,
    *,
    force: bool,
    overwrite: bool,
) -> bool:
    """Design, certify and write a channel for each distinct ε, then the schedule, and show a summary.

    Return whether all have the brackets asked for, or narrow ones: none of them stalled.

    Each set is written when it is done, and the schedule last: after an interruption there is none, unless nothing was
    done yet. Raises `SolverInterruptedError` then; a channel that the search had not finished is not written.
    """
    check_schedule_target(directory, schedule, force, overwrite, Origin(given.kept_text, name=given.name))
    if report:
        load_pictures("mechdesign.report._saving")
    for note in given.notes:
        say_note(note)
    from mechdesign.synthesis._result import stalled

    save = _with_page if report else None
    certificates: dict[Fraction, Certificate] = {}
    settings, whole = replace(given.settings, **changed), True
    with progress() as live, interrupts.promised("keeping the designs that are finished"):
        for epsilon, made in given.save_designs(directory, save=save, force=force, **changed, progress=live):
            say_gap(made, changed.get("tolerance", given.settings.tolerance), f"{folder_name(epsilon)}: ")
            certificates[epsilon] = made.certificate
            whole = whole and not stalled(made, settings)
    say_private(next(given.problems()), given.origin)
    if schedule.left_out:
        say_note(f"nothing is designed for releases with an ε of 0, which are left out: {_ranges(schedule.left_out)}")
    unused = unused_folders(directory, schedule)
    if unused:
        say_note(f"{directory} still holds designs that this schedule does not use: {', '.join(unused)}")
    if as_json:
        click.echo(json.dumps([_described(schedule, *pair) for pair in certificates.items()], indent=2))
    else:
        _show(given, schedule, certificates, directory)
    return whole


def _with_page(made: Design, folder: Path) -> None:
    from mechdesign.report import _saving as saving

    saving.save(made, folder)


def _described(schedule: Schedule, epsilon: Fraction, certificate: Certificate) -> dict[str, Any]:
    return {
        "epsilon": exact_text(epsilon),
        "steps": schedule.steps(epsilon),
        "folder": folder_name(epsilon),
        "certificate": certificate.to_json(),
    }


def _show(
    given: Specification, schedule: Schedule, certificates: Mapping[Fraction, Certificate], directory: str
) -> None:
    from mechdesign.model._words import cost_measure

    unit = cost_measure(next(given.problems())).unit
    console = output()
    console.print(Text(given.title or "Privacy mechanisms", "bold"))
    releases = len(schedule.epsilons) - len(schedule.left_out)
    console.print(f"{releases} release{'s' * (releases > 1)}, {len(certificates)} distinct ε\n")
    objective = next(iter(certificates.values())).objective
    cost = f"{objective} cost" + (f", {unit}" if unit else "")
    shown = table(
        "ε", "releases", cost, "no less than", "relative gap", "folder", numbers=(cost, "no less than", "relative gap")
    )
    for epsilon, certificate in certificates.items():
        reached = certificate.expected_cost if objective == "expected" else certificate.worst_cost
        shown.add_row(
            f"{float(epsilon):.6g}",
            _ranges(schedule.steps(epsilon)),
            number(reached),
            number(certificate.lower_bound),
            f"{certificate.relative_gap:.3g}",
            folder_name(epsilon),
        )
    console.print(shown)
    console.print(
        "\nOf each ε the privacy is certified; what the releases leak together, the α, is not", soft_wrap=True
    )
    console.print(f"files     {directory}: {SCHEDULE}, which says when, and a folder for each ε", soft_wrap=True)


def _ranges(steps: Sequence[int]) -> str:
    """Write ascending numbers with runs joined: 0, 2–5, 9."""
    parts = []
    for _, run in itertools.groupby(enumerate(steps), lambda pair: pair[1] - pair[0]):
        members = [step for _, step in run]
        parts.append(f"{members[0]}" if len(members) == 1 else f"{members[0]}–{members[-1]}")
    return ", ".join(parts)
