"""What the entries of a ledger cost together: sums, and the largest sum of any part of a division."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.accounting.ledger_file import Entry
from mechdesign.certify._exact import exact_text

__all__ = ["Totals", "rho_of", "totals"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Totals:
    """What the entries of a ledger cost together.

    Attributes:
        epsilon: the sum of ε under pure differential privacy, or None where an entry satisfies zCDP only.
        rho: the sum of ρ under zero-concentrated differential privacy; an ε-private release costs ε²/2 (Bun and
            Steinke 2016, Proposition 1.4).
    """

    epsilon: Fraction | None
    rho: Fraction

    def __str__(self) -> str:
        """Say it in the measure that all entries have."""
        return f"ρ = {exact_text(self.rho)}" if self.epsilon is None else f"ε = {exact_text(self.epsilon)}"


def totals(entries: Iterable[Entry]) -> Totals:
    """Return what entries cost together: sums, and within a division into parts the largest sum of any part."""
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
    """Return the ρ of an entry: ε²/2 where it is ε-private (Bun and Steinke 2016, Proposition 1.4)."""
    if entry.rho is not None:
        return entry.rho
    assert entry.epsilon is not None
    return entry.epsilon**2 / 2
