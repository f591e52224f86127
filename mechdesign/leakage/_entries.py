"""Entries of a ledger, and the sums of their costs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._partition import Partition

# Larger costs may add up to more than the largest float.
_MOST_COST = 10**200

TimeStep = int | str
"""A time step of a series: an integer, or an ISO month such as "2026-11"."""


def read_cost(value: object, path: str) -> Fraction:
    """Return the exact number of a budget or cost, which must not be too large for a float."""
    number = exact(value, path)
    if number > _MOST_COST:
        raise InputError(path, "is too large", value=value, bound="at most 1e200")
    return number


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
        step: The time step of a release of the series; None outside the series.
        series: False for a release that the leakage of the series does not count, by consent; else None.
        turn: The number of the planned budget that the release uses, from 0; None without a planned budget.
        who: Name of the user who charged the ledger.

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
    step: TimeStep | None = None
    series: bool | None = None
    turn: int | None = None
    who: str | None = None


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

    Costs add up. Within a division of the data into parts, only the part with the largest sum counts. People may change
    their part from one time step to the next, so that this holds within each time step, and the steps add up.

    Args:
        entries: Entries of a ledger.

    Returns:
        The sums of ε and of ρ.

    >>> entry = Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None)
    >>> str(totals([entry, entry]))
    'ε = 1'
    """
    entries = list(entries)
    steps = grouped(entries, lambda entry: entry.step).values()
    pure = all(entry.epsilon is not None for entry in entries)
    epsilon = sum((cost(group, epsilon_of) for group in steps), Fraction(0)) if pure else None
    return Totals(epsilon, sum((cost(group, rho_of) for group in steps), Fraction(0)))


def cost(entries: Iterable[Entry], amount: Callable[[Entry], Fraction]) -> Fraction:
    """Return the cost of entries about the people of one time: the largest part of each division counts.

    Args:
        entries: Entries of one time step, or entries outside the series.
        amount: The cost of an entry, `epsilon_of` or `rho_of`.

    Returns:
        The cost.

    >>> entry = Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None, ("clinics", "north"))
    >>> cost([entry, entry], rho_of)
    Fraction(1, 4)
    """
    divisions = grouped(entries, lambda entry: entry.part and entry.part[0])
    parts = (grouped(group, lambda entry: entry.part).values() for group in divisions.values())
    return sum((max(sum(map(amount, part), Fraction(0)) for part in each) for each in parts), Fraction(0))


def grouped(entries: Iterable[Entry], key: Callable[[Entry], Hashable]) -> dict[Hashable, list[Entry]]:
    """Return the entries by key, in the order of their first entries."""
    groups: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def are_apart(one: tuple[str, str] | None, other: tuple[str, str] | None) -> bool:
    """Return whether two parts are different parts of one division, and thus different people."""
    return one is not None and other is not None and one[0] == other[0] and one != other


def epsilon_of(entry: Entry) -> Fraction:
    """Return the ε of an entry, 0 if it has only ρ."""
    return entry.epsilon or Fraction(0)


def rho_of(entry: Entry) -> Fraction:
    """Return the ρ of an entry: ε²/2 if it is ε-private (Bun and Steinke 2016, Proposition 1.4).

    Args:
        entry: An entry with ε or ρ.

    Returns:
        The exact ρ.

    >>> rho_of(Entry("2026-01-01T00:00:00Z", "count", "a record", Fraction(1, 2), None))
    Fraction(1, 8)
    """
    return epsilon_of(entry) ** 2 / 2 if entry.rho is None else entry.rho


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
    groups = grouped(entries, lambda entry: (entry.policy is not None, entry.policy or entry.protects))
    return tuple(
        PolicyTotals(
            group[0].policy or group[0].protects,
            tuple(dict.fromkeys(entry.protects for entry in group)),
            tuple(group),
            totals(group),
        )
        for group in groups.values()
    )
