"""What was spent under each policy: sums that hold for pairs of neighbours, one policy at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mechdesign.accounting.ledger_file import Entry
from mechdesign.accounting.totals import Totals
from mechdesign.accounting.totals import totals

__all__ = ["APART", "PolicyTotals", "by_policy"]


def __dir__() -> list[str]:
    return sorted(__all__)


APART = (
    "Policies are kept apart: each line is about the releases under its own policy, and nothing is said of all of them "
    "together"
)
"""What the lines of several policies mean."""


@dataclass(frozen=True)
class PolicyTotals:
    """The entries of a ledger under one policy, and what they cost together.

    Of two databases that are neighbours under the policy, the releases of these entries together tell no more than
    `spent` allows. Of releases under other policies that says nothing.

    Attributes:
        policy: its name; of entries that name no policy, whom they protect.
        protects: whom the entries protect, in words; several texts where entries differ, as the steps of a trace do.
        entries: the entries, in order.
        spent: what they cost together.
    """

    policy: str
    protects: tuple[str, ...]
    entries: tuple[Entry, ...] = field(repr=False)
    spent: Totals

    def __str__(self) -> str:
        count = len(self.entries)
        return f"{self.spent} in {count} {'entry' if count == 1 else 'entries'} under: {self.policy}"


def by_policy(entries: Iterable[Entry]) -> tuple[PolicyTotals, ...]:
    """Return what was spent under each policy, in the order in which they first occur.

    Entries belong together if they name the same policy, which includes its domain, edges and known counts. Those that
    name none, such as entries of earlier versions, belong together if they protect the same in the same words.
    """
    groups: dict[tuple[bool, str], list[Entry]] = {}
    for entry in entries:
        named = entry.policy is not None
        groups.setdefault((named, entry.policy or entry.protects), []).append(entry)
    return tuple(
        PolicyTotals(name, tuple(dict.fromkeys(entry.protects for entry in group)), tuple(group), totals(group))
        for (_, name), group in groups.items()
    )
