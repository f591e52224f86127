"""The contents of a ledger: budgets, entries and series, the largest ε that they allow, and the file."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import InputError, LedgerError
from mechdesign.base._files import read_regular
from mechdesign.base._locks import SHARE
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._entries import Entry, TimeStep, are_apart, cost, epsilon_of, grouped, read_cost, rho_of, totals
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._partition import Partition
from mechdesign.leakage._series import LONGEST, Plan, Series, as_step, place_of
from mechdesign.leakage._support import Line, are_pieces

# Number of binary digits to which a square root is rounded down.
_ROOT_PLACES = 100


@dataclass(frozen=True)
class Contents:
    """The contents of a ledger at one moment: budgets in ε and ρ, entries and series; and the file, if there is one."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    entries: tuple[Entry, ...] = ()
    series: Series | None = None
    path: Path | None = None

    @property
    def left(self) -> tuple[Fraction | None, Fraction | None]:
        """What is left of the total budgets in ε and in ρ; None without one."""
        spent = totals(self.entries)
        epsilon = None if self.epsilon is None or spent.epsilon is None else self.epsilon - spent.epsilon
        return epsilon, None if self.rho is None else self.rho - spent.rho

    @property
    def steps(self) -> dict[TimeStep, list[Entry]]:
        """The entries of each time step of the series, in the order of time."""
        steps = grouped((entry for entry in self.entries if entry.step is not None), lambda entry: entry.step)
        return dict(sorted(steps.items(), key=lambda item: place_of(item[0])))  # type: ignore[arg-type]

    @property
    def spent(self) -> dict[int, Fraction]:
        """The ε of each place of the series that has an entry."""
        return {place_of(step): cost(entries, epsilon_of) for step, entries in self.steps.items()}

    def continues(self, known: Contents) -> bool:
        """Return whether all entries of earlier contents and their series remain."""
        was, now = known.series, self.series
        kept = was is None or (now is not None and now.promise == was.promise and len(now.plans) >= len(was.plans))
        # A series without entries may be replaced.
        anew = now is not None and not known.steps
        return (kept or anew) and self.entries[: len(known.entries)] == known.entries

    @property
    def turns(self) -> dict[TimeStep, int]:
        """The turn of each time step that has one under the plan."""
        assert self.series is not None
        found = self.entries[self.series.plan.since :]
        return {entry.step: entry.turn for entry in found if entry.step is not None and entry.turn is not None}

    def turn_of(self, step: TimeStep) -> int | None:
        """Return the turn of a time step under the plan, or None if it spent something before the plan was made."""
        assert self.series is not None
        since = self.series.plan.since
        if any(entry.step == step and entry.epsilon for entry in self.entries[:since]):
            return None
        return self.turns.get(step, len(self.turns))

    def planned(self, step: TimeStep, part: tuple[str, str] | None) -> Fraction | None:
        """Return the remaining planned budget of a time step for a part; None without a plan."""
        assert self.series is not None
        if self.series.plan.kind == "none":
            return None
        turn = self.turn_of(step)
        if turn is None:
            return Fraction(0)
        # Other parts of the division are other people, and have the whole budget too.
        same = [entry for entry in self.steps.get(step, []) if not are_apart(entry.part, part)]
        return max(self.series.plan.budget(turn) - cost(same, epsilon_of), Fraction(0))

    def largest(self, step: TimeStep, part: tuple[str, str] | None) -> Fraction:
        """Return the largest ε that a release of a time step may spend, 0 if none."""
        assert self.series is not None
        series, steps, spent, place = self.series, self.steps, self.spent, place_of(step)
        places = [*spent, place]
        other_kind = any(isinstance(step, int) != isinstance(other, int) for other in steps)
        if other_kind or max(places) - min(places) >= LONGEST:
            return Fraction(0)
        now = steps.get(step, [])
        same = [entry for entry in now if not are_apart(entry.part, part)]
        epsilon, rho = self.left
        # This part may spend so much without raising the cost of the step.
        free = cost(now, epsilon_of) - cost(same, epsilon_of)
        more = series.largest(lambda more: series.leakages({**spent, place: cost(now, epsilon_of) + more}), Fraction(0))
        bounds = [free + more, self.planned(step, part)]
        bounds += [] if epsilon is None else [free + epsilon]
        bounds += [] if rho is None else [epsilon_within(rho + cost(now, rho_of) - cost(same, rho_of))]
        return max(min(bound for bound in bounds if bound is not None), Fraction(0))


def epsilon_within(rho: Fraction) -> Fraction:
    """Return the largest ε with ε²/2 ≤ ρ, rounded down."""
    square = 2 * max(rho, Fraction(0))
    return Fraction(math.isqrt((square.numerator << 2 * _ROOT_PLACES) // square.denominator), 1 << _ROOT_PLACES)


_SCHEMA = "mechdesign.ledger/2"
NUMBER = re.compile("[0-9a-f]{32}")
"""Format of entry numbers."""


def write_ledger(path: Path, contents: Contents) -> None:
    """Write a ledger; if that fails, raise `ExportError` and keep the old file.

    Each partition is written once. Entries refer to it by its index in the list of partitions.
    """
    places: dict[Partition, int] = {}

    def place(partition: Partition | None) -> int | None:
        return None if partition is None else places.setdefault(partition, len(places))

    document: dict[str, Any] = {
        "schema": _SCHEMA,
        "epsilon": _text(contents.epsilon),
        "rho": _text(contents.rho),
        "series": None if contents.series is None else _series_to_json(contents.series),
        "entries": [
            vars(entry)
            | {
                "epsilon": _text(entry.epsilon),
                "rho": _text(entry.rho),
                "part": None if entry.part is None else list(entry.part),
                "components": place(entry.components),
                "classes": place(entry.classes),
            }
            for entry in contents.entries
        ],
    }
    document["partitions"] = [partition.text() for partition in places]
    document["sha256"] = _digest(document)
    write_file(path, [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"], private=True, shared=True)


def read_ledger(path: Path) -> Contents:
    """Return the contents of a ledger; raise `LedgerError` for other files."""
    try:
        document = json.loads(read_regular(path).decode("utf-8"))
    except PermissionError as error:
        raise LedgerError(f"{path} belongs to another user ({error.strerror}). {SHARE}") from error
    except OSError as error:
        name = ". Name the file of a ledger" if path.is_dir() else ""
        raise LedgerError(f"{path} cannot be read ({error.strerror or error}){name}") from error
    except (ValueError, RecursionError) as error:
        message = f"{path} is not a ledger: it is not JSON ({error}). Name a ledger, or restore a copy"
        raise LedgerError(message) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != _SCHEMA:
        if isinstance(schema, str) and schema.startswith("mechdesign.ledger/"):
            raise LedgerError(
                f"{path} was written by another version ({schema}, not {_SCHEMA}). Use that version, or begin a ledger "
                "with what is left of its budget"
            )
        raise LedgerError(f"{path} is not a ledger ({_SCHEMA}). Name a ledger")
    claimed = document.pop("sha256", None)
    if claimed != _digest(document):
        raise LedgerError(f"{path} was damaged or changed: its digest does not match. Restore a copy")
    try:
        texts = enumerate(document["partitions"])
        partitions = [Partition.read(text, f"partitions[{index}]") for index, text in texts]
        entries = tuple(_read_entry(entry, f"entries[{i}]", partitions) for i, entry in enumerate(document["entries"]))
        series = None if document["series"] is None else _read_series(document["series"], entries)
        epsilon, rho = (_number(document[name], name) for name in ("epsilon", "rho"))
        return Contents(epsilon, rho, entries, series, path)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise LedgerError(f"{path} is incomplete ({error!r}). Restore a copy") from error


def _read_entry(said: dict[str, Any], path: str, partitions: list[Partition]) -> Entry:
    names = ("components", "classes")
    components, classes = (_partition(said[name], f"{path}.{name}", partitions) for name in names)
    entry = msgspec.convert(said | dict.fromkeys(names), Entry, dec_hook=lambda _, text: read_cost(text, path))
    entry = replace(entry, components=components, classes=classes)
    if entry.policy is not None and not entry.policy.strip():
        raise InputError(f"{path}.policy", "is not a name", value=entry.policy, bound="a text that is not empty")
    if entry.number is not None and not NUMBER.fullmatch(entry.number):
        raise InputError(f"{path}.number", "is not a number", value=entry.number, bound="32 hexadecimal digits")
    if entry.step is not None:
        as_step(entry.step)
    spent, exact_answer = entry.epsilon or entry.rho or 0, entry.classes is not None and entry.epsilon == 0
    if (entry.epsilon is None) == (entry.rho is None) or (spent <= 0 and not exact_answer):
        raise InputError(path, "spends nothing", value=said, bound="a positive ε or ρ, or exact")
    return entry


def _partition(place: object, path: str, partitions: list[Partition]) -> Partition | None:
    if place is None:
        return None
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(partitions):
        raise InputError(path, "is not the index of a partition", value=place, bound=f"from 0 to {len(partitions) - 1}")
    return partitions[place]


def _series_to_json(series: Series) -> dict[str, Any]:
    return {
        "alpha": exact_text(series.alpha),
        "history": series.history,
        "domain": series.domain,
        "backward": [_loss_to_json(loss) for loss in series.backward],
        "forward": [_loss_to_json(loss) for loss in series.forward],
        "plans": [
            vars(plan) | {"budgets": [[exact_text(each), len([*run])] for each, run in itertools.groupby(plan.budgets)]}
            for plan in series.plans
        ],
    }


def _read_series(said: dict[str, Any], entries: tuple[Entry, ...]) -> Series:
    steps = [entry.step for entry in entries if entry.step is not None]
    places = list(map(place_of, steps))
    if len(set(map(type, steps))) > 1 or max(places, default=0) - min(places, default=0) >= LONGEST:
        raise ValueError("the steps of a series are of one kind and not too far from each other")
    domain, history = said["domain"], said["history"]
    if not isinstance(domain, str | None) or history not in ("others", "own"):
        raise ValueError(f"{[domain, history]!r} are not the domain and the history of a series")
    backward, forward = (tuple(map(_read_loss, said[name])) for name in ("backward", "forward"))
    alpha, plans = exact(said["alpha"]), tuple(_read_plan(plan, len(entries)) for plan in said["plans"])
    if alpha <= 0 or not backward or not forward or not any((*backward, *forward)) or not plans:
        raise ValueError("a series has a positive α, a matrix and a plan")
    return Series(alpha, backward, forward, history, domain, plans)


def _read_plan(said: dict[str, Any], entries: int) -> Plan:
    counts = [count for _, count in said["budgets"]]
    if not all(type(count) is int and count > 0 for count in counts) or sum(counts) > LONGEST:
        raise ValueError(f"a plan has from 1 to {LONGEST} budgets")
    budgets = tuple(each for text, count in said["budgets"] for each in [exact(text)] * count)
    kind, since = said["kind"], said["since"]
    known = kind in ("none", "equal", "constant", "allocated", "list") and (kind == "none") == (not budgets)
    if not known or type(since) is not int or not 0 <= since <= entries or any(each <= 0 for each in budgets):
        raise ValueError(f"{kind!r} of {len(budgets)} budgets since entry {since!r} is not a plan")
    return Plan(kind, budgets, since, str(said["when"]))


def _loss_to_json(loss: LossFunction | None) -> dict[str, Any] | None:
    return None if loss is None else {"n": loss.n, "matrix_sha256": loss.digest, "lines": loss.lines}


def _read_loss(said: dict[str, Any] | None) -> LossFunction | None:
    return None if said is None else _loss(int(said["n"]), str(said["matrix_sha256"]), tuple(map(tuple, said["lines"])))


@functools.lru_cache(maxsize=64)
def _loss(n: int, digest: str, numbers: tuple[tuple[float, ...], ...]) -> LossFunction:
    lines = [Line(*map(float, each)) for each in numbers]
    if not are_pieces(lines):
        raise ValueError("the pieces of a loss function are out of order or out of range")
    return LossFunction.from_lines(n, digest, lines)


def _text(number: Fraction | None) -> str | None:
    return None if number is None else exact_text(number)


def _number(text: str | None, path: str) -> Fraction | None:
    return None if text is None else read_cost(text, path)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
