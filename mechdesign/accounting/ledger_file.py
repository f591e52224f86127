"""The file of a ledger: JSON with exact numbers and a digest of itself, replaced as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.accounting.partition import Partition
from mechdesign.base._atomic import write_file
from mechdesign.certify._exact import exact
from mechdesign.certify._exact import exact_text
from mechdesign.base._errors import InputError
from mechdesign.base._errors import LedgerError
from mechdesign.base._files import read_regular
from mechdesign.base._locks import SHARE

__all__ = ["NUMBER", "Entry", "read_ledger", "write_ledger"]

_SCHEMA = "mechdesign.ledger/2"
_EARLIER = "mechdesign.ledger/1"
NUMBER = re.compile("[0-9a-f]{32}")
"""How the number of an entry is written."""


@dataclass(frozen=True)
class Entry:
    """One release, as a ledger keeps it.

    Attributes:
        when: the time of the entry in UTC, ISO 8601.
        what: what is released, in words.
        protects: whom it protects, in words.
        epsilon: its exact ε, 0 for a release without noise; None where ρ is given.
        rho: its exact ρ, or None.
        part: the division of the data and the part of it that the release is about, or None.
        policy: a name that all releases under the policy share, or None, as in files of earlier versions.
        number: 128 random bits in hexadecimal digits, which the release repeats; None in files of earlier versions.
        domain: the digest of the domain, or None where it has none that could be compared.
        components: the components of the policy, as classes of the values and, last, absence; None where that does not
            say what it protects, as under known counts.
        classes: the classes of values, and absence, that exact answers tell apart; None where all answers are noisy.
        together: whether somebody insisted on the release beside others, see `mechdesign.accounting.ledger.Ledger.spend`.
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
    """Write a ledger; raise `ExportError` when that fails, and then the old file is untouched.

    Each partition is written once, however many entries have it: entries name it by its place in the list of them.
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
    """Return the budgets ε and ρ and the entries of a ledger; raise `LedgerError` for anything else."""
    try:
        document = json.loads(read_regular(path).decode("utf-8"))
    except PermissionError as error:
        raise LedgerError(f"{path} belongs to another user ({error.strerror}). {SHARE}") from error
    except OSError as error:
        name = ". Name the file of a ledger" if path.is_dir() else ""
        raise LedgerError(f"{path} cannot be read ({error.strerror or error}){name}") from error
    except (ValueError, RecursionError) as error:
        raise LedgerError(
            f"{path} is not JSON, and so no ledger ({error}). Name a ledger, or restore a copy"
        ) from error
    if not isinstance(document, dict) or document.get("schema") not in (_SCHEMA, _EARLIER):
        raise LedgerError(f"{path} is not a ledger of this version or an earlier one ({_SCHEMA})")
    claimed = document.pop("sha256", None)
    if claimed != _digest(document):
        raise LedgerError(f"{path} was damaged or changed: its digest does not match. Restore a copy")
    try:
        texts = enumerate(document.get("partitions", []))
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
        _partition(entry.get(name), f"entries[{index}].{name}", partitions) for name in ("components", "classes")
    )
    exact = classes is not None and epsilon == 0
    if (epsilon is None) == (rho is None) or ((epsilon or rho or 0) <= 0 and not exact):
        raise InputError(f"entries[{index}]", "must spend a positive ε or ρ, or be exact", value=entry)
    part = None if entry["part"] is None else (str(entry["part"][0]), str(entry["part"][1]))
    policy = entry.get("policy")
    if policy is not None and not (isinstance(policy, str) and policy.strip()):
        raise InputError(f"entries[{index}].policy", "must be a name", value=policy)
    number, domain, together = entry.get("number"), entry.get("domain"), entry.get("together", False)
    if number is not None and not (isinstance(number, str) and NUMBER.fullmatch(number)):
        raise InputError(f"entries[{index}].number", "must be 32 hexadecimal digits", value=number)
    if domain is not None and not isinstance(domain, str):
        raise InputError(f"entries[{index}].domain", "must be a digest", value=domain)
    if not isinstance(together, bool):
        raise InputError(f"entries[{index}].together", "must be true or false", value=together)
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
        raise InputError(path, "names no partition", value=place, bound=f"from 0 to {len(partitions) - 1}")
    return partitions[place]


def _text(number: Fraction | None) -> str | None:
    return None if number is None else exact_text(number)


def _number(text: str | None, path: str) -> Fraction | None:
    return None if text is None else exact(text, path)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
