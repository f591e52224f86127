"""What this room warns of and refuses, beyond wrong input."""

from __future__ import annotations

from mechdesign.errors import MechdesignError

__all__ = ["BudgetWarning", "LeakageExceededError", "StateError"]


class BudgetWarning(UserWarning):
    """A budget is zero, or a leakage target is passed; the numbers returned are still correct."""


class LeakageExceededError(MechdesignError):
    """A release would make some release leak more than was promised; nothing was recorded.

    Attributes: `step` (the release that would leak most, from 0), `leakage` (how much), `alpha` (the promise).
    """

    def __init__(self, step: int, leakage: float, alpha: float, remedy: str) -> None:
        self.step = step
        self.leakage = leakage
        self.alpha = alpha
        super().__init__(f"release {step} would leak {leakage:.6g}; must be <= {alpha:.6g}. {remedy}")


class StateError(MechdesignError, ValueError):
    """A saved accountant cannot be trusted: it is damaged, incomplete, or of another version."""
