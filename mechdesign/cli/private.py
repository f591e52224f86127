"""Say on standard error what files tell of data, and to whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mechdesign.cli.console import say_note

if TYPE_CHECKING:
    from mechdesign.model._problem import Origin
    from mechdesign.model._problem import Problem

__all__ = ["say_private", "say_private_folders"]


def say_private(problem: Problem, origin: Origin | None) -> None:
    """Show what the files of a design tell of data, and how a prior stays at home."""
    from mechdesign.report._private import COUNTED
    from mechdesign.report._private import HAND_ON
    from mechdesign.report._private import WRITTEN
    from mechdesign.report._private import private

    # Who wrote counts into a specification, which stands in the files, knows of them.
    for sentence in (said := [each for each in private(problem, origin) if each != WRITTEN]):
        say_note(sentence)
    if COUNTED in said:
        say_note(HAND_ON)


def say_private_folders(found: Iterable[tuple[str, Problem, Origin | None]], what: str) -> str:
    """Show, and return, which folders have a prior that was counted in data; `what` says what tells of it."""
    from mechdesign.report._private import COUNTED
    from mechdesign.report._private import private

    names = [name for name, problem, origin in found if COUNTED in private(problem, origin)]
    if not names:
        return ""
    said = f"the prior of {', '.join(names)} was counted in data: {what} rests on it, and is private"
    say_note(said)
    return said
