"""Check what `mechdesign release` is asked for, before anything is released, and prepare the trace."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.errors import InputError, SpecificationError
from mechdesign.export.files import check_writable
from mechdesign.requirements.graph import graph_requirements
from mechdesign.spec import specification as spec
from mechdesign.spec.policy import ReleaseSettings

if TYPE_CHECKING:
    from mechdesign.model.problem import Problem
    from mechdesign.release.trace import Trace
    from mechdesign.spec.specification import Specification

__all__ = ["check_private", "prepared_trace", "step_epsilons", "step_problem"]

# What the arguments of a trace are called in a specification.
_KEYS = {
    "g": "privacy",
    "mechanism": "release.mechanism",
    "transition": "release.transition",
    "initial": "release.initial",
    "snap": "release.snap",
    "delta": "policy.delta",
    "repair": "policy.repair",
    "hull": "policy.hull",
    "within": "policy.within",
}


def step_problem(given: Specification) -> Problem:
    """Return the problem of a step; raise `SpecificationError` for what cannot be kept along a trace."""
    if given.document.observables is not None:
        raise SpecificationError(
            "observables", "does not go with a trace, whose outputs are states", remedy="leave it out"
        )
    problem = next(given.problems())
    graphs = {index for index, _ in graph_requirements(problem.requirements)}
    for index, requirement in enumerate(problem.requirements):
        if index not in graphs:
            raise SpecificationError(
                f"privacy[{index}].kind",
                "cannot be kept along a trace",
                value=requirement.kind,
                bound='"graph"',
                remedy="leave it out; instead of a threshold, join secrets by radius and distance",
            )
    if given.policy.settings.support is not None:
        raise SpecificationError(
            "policy.support",
            "does not go with a trace: what is possible at a step follows from the transitions and from delta",
            remedy="leave it out",
        )
    if problem.objective != "expected":
        raise SpecificationError(
            "cost.objective", "does not go with a trace", value=problem.objective, bound='"expected"'
        )
    return problem


def step_epsilons(given: Specification, steps: int) -> Sequence[Fraction | None]:
    """Return the ε of each step: from the schedule where there is one; None stands for what the trace knows itself."""
    if given.schedule is None:
        return [None] * steps
    known = given.schedule.epsilons
    if len(known) < steps:
        raise SpecificationError(
            "privacy.epsilon.budgets",
            "ends before the trace",
            value=len(known),
            bound=f"a budget for each of {steps} steps",
        )
    return known[:steps]


def check_private(private: Path, public: Path) -> None:
    """Raise an error where what shows the truth would lie in the folder that may be published, or around it."""
    here, there = private.resolve(), public.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise InputError(
            "--truth",
            "is, holds or lies in the folder that may be published",
            value=str(private),
            bound="a folder apart",
        )
    check_writable(private)


def prepared_trace(given: Specification, problem: Problem, settings: ReleaseSettings, seed: int | None) -> Trace:
    """Return the trace before its first step; raise `SpecificationError` for keys that do not fit together."""
    from mechdesign.release.trace import Trace

    policy = given.policy
    assert problem.secrets is not None
    with spec.named(_KEYS):
        return Trace(
            problem.secrets,
            policy.graph,
            policy.epsilon,
            settings.transition,
            settings.initial,
            settings.mechanism,
            delta=policy.settings.delta,
            repair=policy.settings.repair,
            hull=policy.settings.hull,
            within=policy.settings.within,
            snap=settings.snap is not False,
            cost=problem.cost,
            tolerance=given.solver.tolerance,
            solving={
                "solver": given.solver.name,
                "time_limit": given.solver.time_limit,
                "rows": given.solver.rows,
                "threads": given.solver.threads,
                "options": given.solver.options,
            },
            rng=seed,
        )
