"""What every requirement on a channel can do; the kinds of requirement are in `mechdesign.requirements`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from mechdesign.certify.claims import Claim, Stated
from mechdesign.validation import Integers

__all__ = ["Requirement"]


class Requirement(ABC):
    """A requirement on a channel; it knows how many secrets it speaks of and what it claims, exactly."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of secrets."""

    @abstractmethod
    def stated(self) -> Stated:
        """Return the requirement in the words of the verifier: its exact numbers and its array."""

    @abstractmethod
    def restrict(self, secrets: Integers) -> Self:
        """Return what the requirement says of some secrets alone, given by ascending indices, numbered anew from 0."""

    def claim(self) -> Claim:
        """Return what the requirement claims of a channel: a bound on pairs, or a floor on the adversary's error."""
        return self.stated().claim(self.size)
