"""The ε of successive releases, each release with its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Schedule"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Schedule:
    """The ε of each release in order of time, as the exact decimals of the file, in nats; 0 where it is left out.

    Leaving a release out is not to make it: a channel for ε = 0 would tell nothing, and cost as much.
    """

    epsilons: tuple[Fraction, ...]

    @property
    def distinct(self) -> tuple[Fraction, ...]:
        """Each positive ε once, in order of first use: one channel is designed for each."""
        return tuple(dict.fromkeys(epsilon for epsilon in self.epsilons if epsilon))

    @property
    def left_out(self) -> list[int]:
        """The releases that are not made, counted from 0."""
        return self.steps(Fraction(0))

    def steps(self, epsilon: Fraction) -> list[int]:
        """Return the releases that use `epsilon`, counted from 0."""
        return [step for step, used in enumerate(self.epsilons) if used == epsilon]
