"""The file of a ledger, and the sums of its entries."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import InputError, LedgerError
from mechdesign.base._files import read_regular
from mechdesign.base._locks import SHARE
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._partition import Partition

_SCHEMA = "mechdesign.ledger/1"
NUMBER = re.compile("[0-9a-f]{32}")
"""Format of entry numbers."""


@dataclass(frozen=True)
class Entry:
    """One release in a ledger.

    Attributes:
        when: Time of the entry in UTC, ISO 8601.
        what: Description of the release.
        protects: Description of the protected people.
        epsilon: Exact ε, 0 for a release without noise; None if ρ is given.
        rho: Exact ρ, or None.
        part: A division of the data, and the part of it that the release uses; or None.
        policy: Name shared by all releases under the policy; None if the entry names no policy.
        number: 128 random bits in hexadecimal digits, repeated in the release.
        domain: Digest of the domain, or None if domains cannot be compared.
        components: Components of the policy: a partition of the values and, as the last element, absence. None if the
            components do not describe the protection, for example under known counts.
        classes: Partition of the values and absence into the classes that exact answers distinguish; None if all
            answers are noisy.
        together: Whether the release was forced in spite of a conflict, see `mechdesign.Ledger.spend`.

    >>> Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None).epsilon
    Fraction(1, 2)
    """

    when: str
    what: str
    protects: str
    epsilon: Fraction | None
    rho: Fraction | None
    part: tuple[str, str] | None = None
    policy: str | None = None
    number: str | None = None
    domain: str | None = None
    components: Partition | None = None
    classes: Partition | None = None
    together: bool = False


def write_ledger(path: Path, epsilon: Fraction | None, rho: Fraction | None, entries: tuple[Entry, ...]) -> None:
    """Write a ledger; if that fails, raise `ExportError` and keep the old file.

    Each partition is written once. Entries refer to it by its index in the list of partitions.
    """
    places: dict[Partition, int] = {}

    def place(partition: Partition | None) -> int | None:
        return None if partition is None else places.setdefault(partition, len(places))

    document: dict[str, Any] = {
        "schema": _SCHEMA,
        "epsilon": _text(epsilon),
        "rho": _text(rho),
        "entries": [
            {
                "when": entry.when,
                "what": entry.what,
                "protects": entry.protects,
                "epsilon": _text(entry.epsilon),
                "rho": _text(entry.rho),
                "part": None if entry.part is None else list(entry.part),
                "policy": entry.policy,
                "number": entry.number,
                "domain": entry.domain,
                "components": place(entry.components),
                "classes": place(entry.classes),
                "together": entry.together,
            }
            for entry in entries
        ],
    }
    document["partitions"] = [partition.text() for partition in places]
    document["sha256"] = _digest(document)
    write_file(path, [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"], private=True, shared=True)


def read_ledger(path: Path) -> tuple[Fraction | None, Fraction | None, tuple[Entry, ...]]:
    """Return the budgets ε and ρ and the entries of a ledger; raise `LedgerError` for other files."""
    try:
        document = json.loads(read_regular(path).decode("utf-8"))
    except PermissionError as error:
        raise LedgerError(f"{path} belongs to another user ({error.strerror}). {SHARE}") from error
    except OSError as error:
        name = ". Name the file of a ledger" if path.is_dir() else ""
        raise LedgerError(f"{path} cannot be read ({error.strerror or error}){name}") from error
    except (ValueError, RecursionError) as error:
        raise LedgerError(
            f"{path} is not a ledger: it is not JSON ({error}). Name a ledger, or restore a copy"
        ) from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise LedgerError(f"{path} is not a ledger of this version ({_SCHEMA})")
    claimed = document.pop("sha256", None)
    if claimed != _digest(document):
        raise LedgerError(f"{path} was damaged or changed: its digest does not match. Restore a copy")
    try:
        texts = enumerate(document["partitions"])
        partitions = [Partition.read(text, f"partitions[{index}]") for index, text in texts]
        return (
            _number(document["epsilon"], "epsilon"),
            _number(document["rho"], "rho"),
            tuple(_read_entry(entry, index, partitions) for index, entry in enumerate(document["entries"])),
        )
    except (AttributeError, LookupError, TypeError, InputError) as error:
        raise LedgerError(f"{path} is incomplete ({error!r}). Restore a copy") from error


def _read_entry(entry: dict[str, Any], index: int, partitions: list[Partition]) -> Entry:
    epsilon = _number(entry["epsilon"], f"entries[{index}].epsilon")
    rho = _number(entry["rho"], f"entries[{index}].rho")
    components, classes = (
        _partition(entry[name], f"entries[{index}].{name}", partitions) for name in ("components", "classes")
    )
    exact = classes is not None and epsilon == 0
    if (epsilon is None) == (rho is None) or ((epsilon or rho or 0) <= 0 and not exact):
        raise InputError(f"entries[{index}]", "spends nothing", value=entry, bound="a positive ε or ρ, or exact")
    part = None if entry["part"] is None else (str(entry["part"][0]), str(entry["part"][1]))
    policy = entry["policy"]
    if policy is not None and not (isinstance(policy, str) and policy.strip()):
        raise InputError(f"entries[{index}].policy", "is not a name", value=policy, bound="a text that is not empty")
    number, domain, together = entry["number"], entry["domain"], entry["together"]
    if number is not None and not (isinstance(number, str) and NUMBER.fullmatch(number)):
        raise InputError(f"entries[{index}].number", "is not a number", value=number, bound="32 hexadecimal digits")
    if domain is not None and not isinstance(domain, str):
        raise InputError(f"entries[{index}].domain", "is not a digest", value=domain, bound="a text")
    if not isinstance(together, bool):
        raise InputError(f"entries[{index}].together", "is not a truth value", value=together, bound="true or false")
    return Entry(
        str(entry["when"]),
        str(entry["what"]),
        str(entry["protects"]),
        epsilon,
        rho,
        part,
        policy,
        number,
        domain,
        components,
        classes,
        together,
    )


def _partition(place: object, path: str, partitions: list[Partition]) -> Partition | None:
    if place is None:
        return None
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(partitions):
        raise InputError(path, "is not the index of a partition", value=place, bound=f"from 0 to {len(partitions) - 1}")
    return partitions[place]


def _text(number: Fraction | None) -> str | None:
    return None if number is None else exact_text(number)


def _number(text: str | None, path: str) -> Fraction | None:
    return None if text is None else exact(text, path)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Totals:
    """The total cost of the entries of a ledger.

    Attributes:
        epsilon: Sum of ε under pure differential privacy, or None if an entry satisfies only zCDP.
        rho: Sum of ρ under zero-concentrated differential privacy; an ε-private release costs ε²/2 (Bun and
            Steinke 2016, Proposition 1.4).

    >>> str(Totals(Fraction(1, 2), Fraction(1, 8)))
    'ε = 0.5'
    """

    epsilon: Fraction | None
    rho: Fraction

    def __str__(self) -> str:
        """Return the total ε, or the total ρ if an entry satisfies only zCDP."""
        return f"ρ = {exact_text(self.rho)}" if self.epsilon is None else f"ε = {exact_text(self.epsilon)}"


def totals(entries: Iterable[Entry]) -> Totals:
    """Return the total cost of entries.

    Costs add up. Within a division of the data into parts, only the part with the largest sum counts.

    Args:
        entries: Entries of a ledger.

    Returns:
        The sums of ε and of ρ.

    >>> entry = Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None)
    >>> str(totals([entry, entry]))
    'ε = 1'
    """
    pure = True
    epsilon, rho = Fraction(0), Fraction(0)
    parts: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        pure = pure and entry.epsilon is not None
        if entry.part is not None:
            parts[entry.part[0]][entry.part[1]].append(entry)
            continue
        epsilon += entry.epsilon or 0
        rho += rho_of(entry)
    for division in parts.values():
        epsilon += max(sum((entry.epsilon or Fraction(0) for entry in part), Fraction(0)) for part in division.values())
        rho += max(sum(map(rho_of, part), Fraction(0)) for part in division.values())
    return Totals(epsilon if pure else None, rho)


def rho_of(entry: Entry) -> Fraction:
    """Return the ρ of an entry: ε²/2 if it is ε-private (Bun and Steinke 2016, Proposition 1.4).

    Args:
        entry: An entry with ε or ρ.

    Returns:
        The exact ρ.

    >>> rho_of(Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None))
    Fraction(1, 8)
    """
    if entry.rho is not None:
        return entry.rho
    assert entry.epsilon is not None
    return entry.epsilon**2 / 2


APART = (
    "Policies are kept apart: each line covers the releases under its own policy. No bound is given for all policies "
    "together"
)
"""Sentence that explains why the total costs under several policies are not added up."""


@dataclass(frozen=True)
class PolicyTotals:
    """The entries of a ledger under one policy, and their total cost.

    For two databases that are neighbours under the policy, `spent` bounds the joint privacy loss of these entries. It
    does not bound the loss of releases under other policies.

    Attributes:
        policy: Name of the policy; for entries without a name, the description of the protected people.
        protects: Descriptions of the protected people; several if entries differ, as the steps of a trace do.
        entries: The entries, in order.
        spent: The total cost of these entries.

    >>> entry = Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None)
    >>> str(by_policy([entry])[0])
    'ε = 0.5 in 1 entry under: a record'
    """

    policy: str
    protects: tuple[str, ...]
    entries: tuple[Entry, ...] = field(repr=False)
    spent: Totals

    def __str__(self) -> str:
        count = len(self.entries)
        return f"{self.spent} in {count} {'entry' if count == 1 else 'entries'} under: {self.policy}"


def by_policy(entries: Iterable[Entry]) -> tuple[PolicyTotals, ...]:
    """Return the total cost under each policy, in the order of their first entries.

    Entries are grouped by the name of the policy, which includes its domain, edges and known counts. Entries without a
    name are grouped by their description of the protected people.

    Args:
        entries: Entries of a ledger.

    Returns:
        The entries and the cost of each policy.

    >>> entry = Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None)
    >>> [group.policy for group in by_policy([entry, entry])]
    ['a record']
    """
    groups: dict[tuple[bool, str], list[Entry]] = {}
    for entry in entries:
        named = entry.policy is not None
        groups.setdefault((named, entry.policy or entry.protects), []).append(entry)
    return tuple(
        PolicyTotals(name, tuple(dict.fromkeys(entry.protects for entry in group)), tuple(group), totals(group))
        for (_, name), group in groups.items()
    )
