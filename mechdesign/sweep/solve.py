"""One design of a sweep, made in whichever process, or on whichever machine, it was sent to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.certify._certificate import Certificate
from mechdesign.data._text import file_digest
from mechdesign.base._errors import BracketWarning
from mechdesign.base._errors import InputError
from mechdesign.base._errors import MetricWarning
from mechdesign.base._errors import RecordsError
from mechdesign.base._errors import RevealedWarning
from mechdesign.base._errors import SolverInterruptedError
from mechdesign.base._errors import TimeLimitError
from mechdesign.synthesis._bundle import encode
from mechdesign.records.row import Row
from mechdesign.records.row import State
from mechdesign.records.row import Value
from mechdesign.model._words import cost_measure
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.model._requirements._kinds import register
from mechdesign.solve._blas import blas_threads
from mechdesign.solve._contract import Status
from mechdesign.specification._specification import from_tables
from mechdesign.sweep.rows import Task
from mechdesign.sweep.rows import numbered
from mechdesign.sweep.rows import versions_for
from mechdesign.base._warnings import silenced

if TYPE_CHECKING:
    from mechdesign.synthesis._result import Design

__all__ = ["Outcome", "failed", "interrupted", "solve"]

_STATES = {Status.INTERRUPTED: State.INTERRUPTED, Status.TIME_LIMIT: State.CENSORED}


@dataclass(frozen=True)
class Outcome:
    """How a task ended: its row, and the files of its certified channel, none where there is no channel."""

    row: Row
    files: dict[str, bytes]


@in_own_arithmetic
def solve(task: Task) -> Outcome:
    """Make a design, with one thread unless its specification says otherwise; an error becomes a failed row.

    Raises:
        RecordsError: The data, or the versions of packages, are not those that the identity of the row names.
    """
    for kind in task.kinds:
        # Reading the task has imported its module, which registers it perhaps.
        if kind.kind not in KINDS:
            register(kind)
    _check_same(task)
    started = time.perf_counter()
    try:
        # The sweep has warned of metrics before; the row has the status, the gap, and how many secrets are revealed.
        with silenced(MetricWarning, BracketWarning, RevealedWarning):
            given = from_tables(task.tables, task.folder)
            threads = given.settings.threads or 1
            with blas_threads(threads):
                made = given.design(threads=threads)
                files = encode(made.problem, made.channel, made.certificate, made.evidence(), made.origin)
    except TimeLimitError as error:
        return _ended(task, State.CENSORED, str(error), started)
    except SolverInterruptedError as error:
        return _ended(task, State.INTERRUPTED, str(error), started)
    except Exception as error:  # Whatever it is, the other rows do not depend on it.
        return _ended(task, State.FAILED, f"{type(error).__name__}: {error}", started)
    return Outcome(_row(task, made, time.perf_counter() - started), files)


def failed(task: Task, message: str) -> Outcome:
    """Return the outcome of a task that cannot be made."""
    return Outcome(Row(task.key, State.FAILED, {**_before(task), "status": State.FAILED, "message": message}), {})


def interrupted(task: Task) -> Row:
    """Return the row of a task that was stopped."""
    values = {**_before(task), "status": State.INTERRUPTED, "message": "stopped by the user"}
    return Row(task.key, State.INTERRUPTED, values)


def _ended(task: Task, state: State, message: str, started: float) -> Outcome:
    seconds = round(time.perf_counter() - started, 3)
    values = {**_before(task), "status": state, "solve_seconds": seconds, "message": message}
    return Outcome(Row(task.key, state, values), {})


def _before(task: Task) -> dict[str, Value]:
    """Return what is known of a row without a channel."""
    return {name: value for name, value in task.columns.items() if name != "channel"}


def _row(task: Task, made: Design, seconds: float) -> Row:
    certificate, summary = made.certificate, made.summary
    state = _STATES.get(made.status, State.DONE)
    values: dict[str, Value] = {
        **task.columns,
        "status": state,
        "cost": certificate.cost,
        "lower_bound": certificate.lower_bound,
        "relative_gap": certificate.relative_gap,
        **_realised(certificate),
        "revealed": len(certificate.revealed or ()),
        "solver": summary.solver,
        "solve_seconds": summary.seconds if summary.seconds is not None else round(seconds, 3),
        "iterations": summary.iterations,
        "message": made.status.value,
    }
    details = {
        "provenance": dict(certificate.provenance),
        "objective": certificate.objective,
        "unit": cost_measure(made.problem).unit,
        "seconds": round(seconds, 3),
    }
    return Row(task.key, state, values, details)


def _realised(certificate: Certificate) -> dict[str, Value]:
    pairs, floors = certificate.epsilon, certificate.distortion
    names = numbered("tight_epsilon", len(pairs)) + numbered("distortion", len(floors))
    return dict(zip(names, pairs + floors, strict=True))


def _check_same(task: Task) -> None:
    solver = str(task.tables.get("solver", {}).get("name", "auto"))
    found = versions_for(solver, task.kinds)
    for name, wanted in task.versions.items():
        if found.get(name) != wanted:
            raise RecordsError(
                f"a worker has {name} {found.get(name, 'not at all')}, and the sweep was begun with {wanted}. Install "
                "the same version there, and resume"
            )
    for name, digest in task.data.items():
        path = task.folder / name
        if _digest_now(path) != digest:
            raise RecordsError(
                f"{path} is not as it was when the sweep began. Restore it and resume, or sweep into another folder"
            )


def _digest_now(path: Path) -> str:
    try:
        return file_digest(path)
    except InputError as error:
        raise RecordsError(f"{path} cannot be read by a worker: {error.problem}") from error
