"""Solve a problem as a specification asks for it, with a live line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mechdesign.cli.console import progress, say_note
from mechdesign.errors import InputError, SpecificationError

if TYPE_CHECKING:
    from mechdesign.io.spec import SolverSettings
    from mechdesign.model.problem import Problem
    from mechdesign.synthesis.design import Design

__all__ = ["say_gap", "solve"]


def solve(problem: Problem, settings: SolverSettings, title: str = "") -> Design:
    """Return the certified design; `title` stands before the live line."""
    # Imported late: wrong input is refused without waiting for solvers to load.
    from mechdesign.synthesis.design import design

    with progress(title) as live, _named_as_specified():
        return design(
            problem,
            settings.name,
            settings.tolerance,
            settings.time_limit,
            rows=settings.rows,
            options=settings.options,
            threads=settings.threads,
            report=live,
        )


def say_gap(made: Design, settings: SolverSettings, which: str = "") -> None:
    """Say so when the gap that was asked for was not reached; `which` names the design where there are several."""
    gap = made.certificate.relative_gap
    if gap > settings.tolerance:
        say_note(
            f"{which}the gap asked for, {settings.tolerance:.3g}, was not reached: the channel is private as "
            f"certified, and its cost is within {gap:.3g} of the least possible ({made.status})"
        )


@contextmanager
def _named_as_specified() -> Iterator[None]:
    """Give the solver's own options the path that they have in a specification."""
    try:
        yield
    except InputError as error:
        if not error.path.startswith("options.extra"):
            raise
        path = error.path.replace("options.extra", "solver.options", 1)
        raise SpecificationError(
            path, error.problem, value=error.value, bound=error.bound, remedy=error.remedy
        ) from error
