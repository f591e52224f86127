"""Names that moved to `mechdesign.errors`; they are kept here for programs that import them from this module."""

from __future__ import annotations

from mechdesign.errors import BudgetWarning, LeakageExceededError, StateError

__all__ = ["BudgetWarning", "LeakageExceededError", "StateError"]


def __dir__() -> list[str]:
    return sorted(__all__)
