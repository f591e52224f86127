"""Chains that are counted from tables: one file for each time step, or one file with a column of time steps."""

from __future__ import annotations

import json
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mechdesign.base._errors import InputError, withholding_values
from mechdesign.base._files import read_regular
from mechdesign.certify._texts import csv_text
from mechdesign.data.table import read_table
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._estimate import correlations_from_traces
from mechdesign.leakage._series import place_of, read_step
from mechdesign.leakage.accounting import Ledger
from mechdesign.specification._chain_files import matrix_bytes
from mechdesign.specification._table_specification import ReleaseSpecification, people_of
from mechdesign.tables._charges import digest_of_domain
from mechdesign.tables._columns import refuse_counts
from mechdesign.tables._values import value_names

DOMAIN = "domain.json"
"""The file of a chain of a table with the digest of its domain."""

# The promise and the number of time steps for which the console shows plans.
_ALPHA, _STEPS = 1, 12


def table_chain_files(given: ReleaseSpecification, tables: Sequence[Path]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files of a chain over all values of the domain, and notes for the user.

    A pair of values of a person counts only from one time step to the next. Without a column of time steps, the files
    are the steps in their order.
    """
    people = given.people
    if not people.person:
        raise given.source.error(("table", "person"), "is false, but a chain follows each person", bound="a column")
    if len(tables) == 1 and people.step is None:
        remedy = "name the column of the time step, or give one file for each step, in their order"
        raise given.source.error(("table", "step"), "is missing", bound="a column", remedy=remedy)
    seen: dict[str, dict[int, int]] = defaultdict(dict)
    for place, path in enumerate(tables):
        _read(given, path, place if people.step is None else None, seen)
    domain, runs = given.domain, []
    for states in seen.values():
        run: list[int] = []
        for place in sorted(states):
            if run and place - 1 not in states:
                runs.append(run)
                run = []
            run.append(states[place])
        runs.append(run)
    found = correlations_from_traces(runs, domain.size, only_visited=False)
    names = value_names(domain)
    rows: list[list[object]] = [["row", "label"], *([row, name] for row, name in enumerate(names))]
    files = {
        "forward.csv": matrix_bytes(found.forward),
        "backward.csv": matrix_bytes(found.backward),
        "states.csv": csv_text(rows).encode(),
        DOMAIN: json.dumps({"domain": digest_of_domain(domain)}).encode() + b"\n",
    }
    notes = [
        f"{found.steps:,} pairs of {len(seen):,} people were counted: these files are private, because every count can "
        "be read from them exactly"
    ]
    for unseen, where in ((found.never_left, "forward.csv"), (found.never_entered, "backward.csv")):
        if len(unseen):
            notes.append(f"{len(unseen)} of {domain.size} values have a row of zeros in {where}, for any row")
    return files, (*notes, *_plans(found.backward, found.forward))


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


def _read(given: ReleaseSpecification, path: Path, place: int | None, seen: dict[str, dict[int, int]]) -> None:
    """Add the state of each person at each place of a table."""
    person, step = str(given.people.person), given.people.step or ""
    columns = (*given.domain.names, person, *([step] if place is None else []))
    table = read_table(path, columns, given.source.layout)
    refuse_counts(table.others)
    states = given.records.indices(table).tolist()
    with withholding_values():
        texts = table.texts(step) if place is None else []
        places = [place_of(read_step(text, table.where(row, step))) for row, text in enumerate(texts)]
    for row, (key, state) in enumerate(zip(people_of(table, person), states, strict=True)):
        at = places[row] if place is None else place
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
            found.append(f"{float(series.budgets[0]):.4g} {what}")
    return [f"with α = {_ALPHA}, this chain allows ε = {', or '.join(found)} (α/{_STEPS} is {_ALPHA / _STEPS:.4g})"]
