"""Read the schedule of ε that a specification takes from a file of budgets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mechdesign.data._budgets import read_exact_budgets
from mechdesign.data._budgets import Schedule
from mechdesign.model._grammar import BudgetsFile
from mechdesign.model._grammar import Raw
from mechdesign.base._errors import InputError
from mechdesign.base._errors import SpecificationError
from mechdesign.spec.tables import convert

__all__ = ["read_schedule", "scheduled"]


def scheduled(privacy: Sequence[Raw]) -> int | None:
    """Return which ``[[privacy]]`` table takes its ε from a file, or None; raise `SpecificationError` for several."""
    places = [place for place, raw in enumerate(privacy) if isinstance(raw.get("epsilon"), dict)]
    if len(places) > 1:
        raise SpecificationError(
            f"privacy[{places[1]}].epsilon",
            f"is taken from a file, as privacy[{places[0]}].epsilon is",
            bound="a file of budgets in one requirement at most",
            remedy="write a number in all others",
        )
    return places[0] if places else None


def read_schedule(raw: Raw, path: str, folder: Path) -> Schedule:
    """Return the schedule that ``epsilon = { budgets = "…" }`` at `path` names.

    Releases with a budget of 0 are left out. Raises `SpecificationError` for a file that cannot be read, and for one in
    which all releases are left out.
    """
    key = f"{path}.budgets"
    file = folder / convert(raw, BudgetsFile, path).budgets
    try:
        epsilons = read_exact_budgets(file)
    except InputError as error:
        raise SpecificationError(
            key, f"{error.path} {error.problem}", value=error.value, bound=error.bound, remedy=error.remedy
        ) from error
    schedule = Schedule(epsilons)
    if not schedule.distinct:
        raise SpecificationError(
            key,
            f"{file} leaves all releases out",
            value=f"{len(epsilons)} budgets of 0",
            bound="at least one budget greater than 0",
            remedy="a budget of 0 means that nothing may be released then; those for a smoothed matrix are positive",
        )
    return schedule
