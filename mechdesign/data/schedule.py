"""The ε of successive releases, each release with its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Schedule"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Schedule:
    """The ε of each release in order of time, as the exact decimals of the file, in nats; all are positive."""

    epsilons: tuple[Fraction, ...]

    @property
    def distinct(self) -> tuple[Fraction, ...]:
        """Each ε once, in order of first use: one channel is designed for each."""
        return tuple(dict.fromkeys(self.epsilons))

    def steps(self, epsilon: Fraction) -> list[int]:
        """Return the releases that use `epsilon`, counted from 0."""
        return [step for step, used in enumerate(self.epsilons) if used == epsilon]
