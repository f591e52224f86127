"""The file of a ledger: JSON with exact numbers and a digest of itself, replaced as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.atomic import write_file
from mechdesign.certify.exact import exact, exact_text
from mechdesign.errors import InputError, LedgerError

__all__ = ["Entry", "read_ledger", "write_ledger"]

_SCHEMA = "mechdesign.ledger/1"


@dataclass(frozen=True)
class Entry:
    """One release: when (UTC, ISO 8601), what, whom it protects, its exact ε or ρ, which part of the data, its policy.

    The policy is a name that all releases under it share, or None, as in files of earlier versions.
    """

    when: str
    what: str
    protects: str
    epsilon: Fraction | None
    rho: Fraction | None
    part: tuple[str, str] | None = None
    policy: str | None = None


def write_ledger(path: Path, epsilon: Fraction | None, rho: Fraction | None, entries: tuple[Entry, ...]) -> None:
    """Write a ledger; raise `ExportError` when that fails, and then the old file is untouched."""
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
            }
            for entry in entries
        ],
    }
    document["sha256"] = _digest(document)
    write_file(path, [json.dumps(document, indent=1, ensure_ascii=False).encode(), b"\n"])


def read_ledger(path: Path) -> tuple[Fraction | None, Fraction | None, tuple[Entry, ...]]:
    """Return the budgets ε and ρ and the entries of a ledger; raise `LedgerError` for anything else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LedgerError(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"{path} is not JSON ({error}). Restore a copy") from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise LedgerError(f"{path} is not a ledger of this version ({_SCHEMA})")
    claimed = document.pop("sha256", None)
    if claimed != _digest(document):
        raise LedgerError(f"{path} was damaged or changed: its digest does not match. Restore a copy")
    try:
        return (
            _number(document["epsilon"], "epsilon"),
            _number(document["rho"], "rho"),
            tuple(_read_entry(entry, index) for index, entry in enumerate(document["entries"])),
        )
    except (AttributeError, LookupError, TypeError, InputError) as error:
        raise LedgerError(f"{path} is incomplete ({error!r}). Restore a copy") from error


def _read_entry(entry: dict[str, Any], index: int) -> Entry:
    epsilon = _number(entry["epsilon"], f"entries[{index}].epsilon")
    rho = _number(entry["rho"], f"entries[{index}].rho")
    if (epsilon is None) == (rho is None) or (epsilon or rho or 0) <= 0:
        raise InputError(f"entries[{index}]", "must spend a positive ε or ρ", value=entry)
    part = None if entry["part"] is None else (str(entry["part"][0]), str(entry["part"][1]))
    policy = entry.get("policy")
    if policy is not None and not (isinstance(policy, str) and policy.strip()):
        raise InputError(f"entries[{index}].policy", "must be a name", value=policy)
    return Entry(str(entry["when"]), str(entry["what"]), str(entry["protects"]), epsilon, rho, part, policy)


def _text(number: Fraction | None) -> str | None:
    return None if number is None else exact_text(number)


def _number(text: str | None, path: str) -> Fraction | None:
    return None if text is None else exact(text, path)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
