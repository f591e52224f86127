"""Write the files of a chain, from a specification or counted from tables.

Tables are one file for each time step, or one file with a column of time steps.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import structs

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError, SpecificationError, withholding_values
from mechdesign.base._files import read_regular
from mechdesign.certify._texts import csv_text
from mechdesign.data.table import read_table
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._entries import TimeStep
from mechdesign.leakage._estimate import Correlations, correlations_from_traces
from mechdesign.leakage._series import place_of, read_step, require_kind_of
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable
from mechdesign.model._locate import name_axes
from mechdesign.model._markov import MarkovChain, OpenChain
from mechdesign.model._words import format_bound
from mechdesign.specification._chains import build_correlations
from mechdesign.specification._specification import Specification
from mechdesign.specification._table_specification import ReleaseSpecification, people_of
from mechdesign.tables._charges import digest_of_domain
from mechdesign.tables._domain import refuse_counts
from mechdesign.tables._values import value_names


def chain_files(
    given: Specification,
    every: str | None = None,
    gap: str | None = None,
    ends: Literal["any", "stay"] | None = None,
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files ``forward.csv``, ``backward.csv`` and ``states.csv`` of a chain, and notes for the user.

    The chain comes from ``[release]``, or is counted from the data of the prior; it is never smoothed. The arguments
    `every`, `gap` and `ends` override keys of the chain. An unknown row is written as zeros.
    """
    stated, prior = given.document.release.transition, given.document.prior
    if stated is None and (prior.checkins or prior.plt) is None:
        remedy = "add [release] with transition = { … }"
        raise SpecificationError("prior", "does not come from data in order of time", remedy=remedy)
    options = {"every": every, "gap": gap, "ends": ends}
    changed = {name: value for name, value in options.items() if value is not None}
    chain = structs.replace(stated or ChainTable(estimated=True), **changed)
    found, notes = build_correlations(chain, given.source / "release" / "transition", given.domain, prior)
    if chain.smoothing:
        notes += ("the chain is counted without smoothing, which is for beliefs: it would lower the leakage",)
    files = {
        "forward.csv": matrix_bytes(found.forward),
        "backward.csv": matrix_bytes(found.backward),
        "states.csv": csv_text(state_rows(given.domain, found.states)).encode(),
    }
    return files, (*notes, *_notes(found, given.domain))


def _notes(found: Correlations, domain: Domain) -> Iterator[str]:
    """Yield notes about states that are left out, about unknown rows, and about private counts in the files."""
    if left_out := domain.size - len(found.states):
        yield f"{left_out} of {domain.size} states were never visited, and are left out"
    for name, verb, chain, states in (
        ("forward.csv", "leave", found.forward, found.never_left),
        ("backward.csv", "enter", found.backward, found.never_entered),
    ):
        if len(states):
            row = "are zeros, for any row" if isinstance(chain, OpenChain) else "have a 1 on the diagonal (ends = stay)"
            yield f"nobody was seen to {verb} {len(states)} of {len(found.states)} states: their rows in {name} {row}"
    if found.steps:
        yield (
            f"the matrices were counted from data: these files are private, because every count of {found.steps} steps "
            "can be read from them exactly"
        )


def matrix_bytes(chain: MarkovChain | OpenChain) -> bytes:
    """Return the content of the file of a matrix: a line of numbers for each row."""
    return "".join(f"{','.join(map(repr, row))}\n" for row in chain.matrix.tolist()).encode()


def state_rows(domain: Domain, states: Integers) -> list[list[object]]:
    """Return the rows of ``states.csv``, with its head, for the states of a chain."""
    degrees, axes = domain.degrees, name_axes(domain.points.shape[1])
    places, names = (domain.points, axes) if degrees is None else (degrees, ("latitude", "longitude"))
    rows: list[list[object]] = [["row", "state", "label", *names]]
    for row, state in enumerate(states.tolist()):
        rows.append([row, state, domain.labels[state], *map(repr, places[state].tolist())])
    return rows


DOMAIN = "domain.json"
"""The file of a chain of a table with the digest of its domain."""
FILES = {
    "forward.csv": "[0-9.e-]+[,\n]",
    "backward.csv": "[0-9.e-]+[,\n]",
    "states.csv": "row,(state,)?label",
    DOMAIN: r'\{"domain": ',
}
"""The files of a chain, each with a pattern of its beginning."""

# The promise and the number of time steps for which the console shows plans.
_ALPHA, _STEPS = 1, 12
# A month or an integer in the name of a file.
_NUMBER = re.compile("([0-9]{4}-[0-9]{1,2}(?![0-9])|[0-9]+)")


def table_chain_files(given: ReleaseSpecification, tables: Sequence[Path]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files of a chain over all values of the domain, and notes for the user.

    Two values of a person are a pair only if their time steps follow each other. Without a column of time steps, the
    names of the files state them.
    """
    people = given.people
    if not people.person:
        raise given.source.error(("table", "person"), "is false, but a chain follows each person", bound="a column")
    seen: dict[str, dict[int, int]] = defaultdict(dict)
    files: dict[TimeStep, Path] = {}
    named = [None] * len(tables) if people.step is not None else _steps_of_names(given, tables)
    for path, step in zip(tables, named, strict=True):
        _read(given, path, step, seen, files)
    steps = sorted(files, key=place_of)
    with withholding_values():
        for each, path in files.items():
            require_kind_of(steps[:1], each, f"{path}, column {people.step}")
    domain, runs = given.domain, []
    for states in seen.values():
        run: list[int] = []
        for place in sorted(states):
            if run and place - 1 not in states:
                runs.append(run)
                run = []
            run.append(states[place])
        runs.append(run)
    if all(len(run) < 2 for run in runs):
        bound = "rows of the same persons at a step and at the next one, such as 2025-01 and 2025-02"
        raise InputError(", ".join(map(str, tables)), "has no person at two successive steps", bound=bound)
    found = correlations_from_traces(runs, domain.size, only_visited=False)
    names = value_names(domain)
    rows: list[list[object]] = [["row", "label"], *([row, name] for row, name in enumerate(names))]
    written = {
        "forward.csv": matrix_bytes(found.forward),
        "backward.csv": matrix_bytes(found.backward),
        "states.csv": csv_text(rows).encode(),
        DOMAIN: json.dumps({"domain": digest_of_domain(domain)}).encode() + b"\n",
    }
    first, last = steps[0], steps[-1]
    holes = place_of(last) - place_of(first) + 1 - len(steps)
    notes = [
        f"first step: {first} ({files[first]}), last step: {last} ({files[last]}), missing between them: {holes}",
        f"{found.steps:,} pairs of {len(seen):,} people were counted: these files are private, because every count can "
        "be read from them exactly",
    ]
    for unseen, where in ((found.never_left, "forward.csv"), (found.never_entered, "backward.csv")):
        if len(unseen):
            notes.append(f"{len(unseen)} of {domain.size} values have a row of zeros in {where}, for any row")
    return written, (*notes, *_plans(found.backward, found.forward))


def domain_of(folder: Path) -> str | None:
    """Return the digest of the domain of the chain in a folder, or None for a chain of another specification."""
    file = folder / DOMAIN
    if not file.exists():
        return None
    try:
        return str(json.loads(read_regular(file))["domain"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        bound = "the file of mechdesign chain"
        raise InputError(str(file), f"cannot be read ({error})", bound=bound) from error


def _steps_of_names(given: ReleaseSpecification, tables: Sequence[Path]) -> list[TimeStep]:
    """Return the time step of each file, which is all that differs between their names, and ascends."""
    parts = [_NUMBER.split(str(path.with_suffix(""))) for path in tables]
    with suppress(ValueError):
        (texts,) = (texts for texts in zip(*parts, strict=True) if len(set(texts)) > 1)
        steps = [read_step(text) for text in texts]
        if all(type(now) is type(then) and place_of(now) < place_of(then) for now, then in itertools.pairwise(steps)):
            return steps
    raise given.source.error(
        ("table", "step"),
        "is missing, and the names of the files are not those of steps in their order",
        value=[path.name for path in tables],
        bound="names that differ only in an ascending month or integer: 2025-01.csv 2025-02.csv",
        remedy='name the column of the time step: [table] step = "COLUMN"; or rename the files',
    )


def _read(
    given: ReleaseSpecification,
    path: Path,
    step: TimeStep | None,
    seen: dict[str, dict[int, int]],
    files: dict[TimeStep, Path],
) -> None:
    """Add the state of each person at each place of a table, and the first file of each time step."""
    person, column = str(given.people.person), given.people.step or ""
    columns = (*given.domain.names, person, *([column] if step is None else []))
    table = read_table(path, columns, given.source.layout)
    refuse_counts(table.others)
    states = given.records.indices(table).tolist()
    with withholding_values():
        texts = table.texts(column) if step is None else []
        times = [read_step(text, table.where(row, column)) for row, text in enumerate(texts)]
    for row, (key, state) in enumerate(zip(people_of(table, person), states, strict=True)):
        now = times[row] if step is None else step
        at = place_of(now)
        files.setdefault(now, path)
        # Two spellings of one key must not pass as two people.
        own = seen[unicodedata.normalize("NFC", key).strip()]
        if at in own:
            raise InputError(
                table.where(row, person),
                "names a person twice in one time step",
                bound="one row of each person in each step",
                remedy="keep one row of each person, and give the file of each step once",
            )
        own[at] = state


def _plans(backward: Correlation, forward: Correlation) -> list[str]:
    """Return a note on the budgets that this chain allows, as an example."""
    found, plans = [], {"constant": "at every step, without an end", ("equal", _STEPS): f"at each of {_STEPS} steps"}
    for plan, what in plans.items():
        try:
            series = Ledger().add_series(alpha=_ALPHA, backward=backward, forward=forward, plan=plan, history="others")
        except InputError:
            found.append(f"none {what}")
        else:
            found.append(f"{format_bound(float(series.budgets[0]), up=False, digits=4)} {what}")
    return [f"with α = {_ALPHA}, this chain allows ε = {', or '.join(found)} (α/{_STEPS} is {_ALPHA / _STEPS:.4g})"]
