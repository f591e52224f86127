"""Solve a problem as a specification asks for it, with a live line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mechdesign.cli.console import progress, say_note
from mechdesign.errors import InfeasibleError, InputError, SpecificationError
from mechdesign.model.requirement import Requirement
from mechdesign.requirements.graph import graph_requirements
from mechdesign.spec.specification import named

if TYPE_CHECKING:
    from mechdesign.model.domain import Domain
    from mechdesign.model.problem import Problem
    from mechdesign.spec.policy import PolicySettings
    from mechdesign.spec.specification import SolverSettings
    from mechdesign.synthesis.design import Design

__all__ = ["possible", "say_gap", "solve"]


def solve(problem: Problem, settings: SolverSettings, policy: PolicySettings, title: str = "") -> Design:
    """Return the certified design; `policy` says how policy graphs are kept, `title` stands before the live line."""
    # Imported late: wrong input is refused without waiting for solvers to load.
    from mechdesign.policy.optimal import design as design_policy
    from mechdesign.synthesis.design import design

    with progress(title) as live, _named_as_specified():
        if not graph_requirements(problem.requirements):
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
        asked = _asked(problem, policy)
        other = problem.observables is not problem.secrets
        if other and policy.within == "component":
            raise SpecificationError(
                "observables",
                "are others than the secrets, and answers are to stay in the component of the secret",
                remedy='leave them out, or say [policy] within = "map"',
            )
        with _counted_as_specified(asked.places):
            made = design_policy(
                asked.domain,
                asked.graph,
                asked.epsilon,
                problem.prior,
                problem.cost,
                policy.within,
                requirements=asked.others,
                isolated=policy.isolated,
                objective=problem.objective,
                observables=problem.observables if other else None,
                solver=settings.name,
                tolerance=settings.tolerance,
                time_limit=settings.time_limit,
                rows=settings.rows,
                options=settings.options,
                threads=settings.threads,
                report=live,
                title=problem.title,
            )
    facts = dict(made.certificate.provenance)
    facts["edges_added"] = int(facts["edges_added"]) + asked.repaired
    return replace(made, certificate=replace(made.certificate, provenance=facts))


def possible(policy: PolicySettings, prior: NDArray[np.float64]) -> list[int] | None:
    """Return the secrets that a specification calls possible, or None for all of them."""
    from mechdesign.graphs.constraint import delta_set

    if policy.delta is not None:
        return [int(node) for node in delta_set(prior, policy.delta)]
    return None if policy.support is None else list(policy.support)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A policy graph on the possible secrets, and what else is required of them, with its places in the problem."""

    domain: Domain
    graph: nx.Graph
    epsilon: Fraction
    others: tuple[Requirement, ...]
    places: tuple[int, ...]
    repaired: int


def _asked(problem: Problem, policy: PolicySettings) -> _Asked:
    from mechdesign.graphs.builders import union
    from mechdesign.graphs.constraint import constrain
    from mechdesign.graphs.exposure import exposed
    from mechdesign.graphs.repairs import repair

    assert problem.secrets is not None
    graphs = [each for _, each in graph_requirements(problem.requirements)]
    epsilon = graphs[0].epsilon
    # What has another ε is a requirement of its own.
    one = [each for each in graphs if each.epsilon == epsilon]
    graph = union(*(each.graph for each in one))
    places = tuple(place for place, each in enumerate(problem.requirements) if each not in one)
    others = tuple(problem.requirements[place] for place in places)
    support = possible(policy, problem.prior)
    if support is not None:
        graph = constrain(graph, support)
        others = tuple(each.condition(np.array(support)) for each in others)
    added = 0
    if policy.isolated == "repair" and len(graph) > 1:
        with named({"points": "domain", "method": "policy.repair"}):
            if exposed(problem.secrets, graph, policy.hull).size:
                made = repair(problem.secrets, graph, policy.repair, policy.hull)
                graph, added = made.graph, len(made.added)
    return _Asked(problem.secrets, graph, epsilon, others, places, added)


@contextmanager
def _counted_as_specified(places: Sequence[int]) -> Iterator[None]:
    """Let an error about a requirement count it as the specification does; `places` are those of the requirements."""

    def renamed(text: str) -> str:
        return re.sub(r"^requirements\[(\d+)\]", lambda found: f"privacy[{places[int(found[1])]}]", text)

    try:
        yield
    except InfeasibleError as error:
        raise InfeasibleError(renamed(str(error))) from error


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
    """Give the solver's own options, and the graph, the path that they have in a specification."""
    try:
        yield
    except InputError as error:
        if error.path == "g":
            remedy = error.remedy.replace("isolated=", "[policy] isolated = ") + "; `mechdesign policy` shows them"
            raise SpecificationError(
                "privacy", error.problem, value=error.value, bound=error.bound, remedy=remedy
            ) from error
        if not error.path.startswith(("options.extra", "options.symmetry")):
            raise
        path = "solver.options" + error.path.removeprefix("options").removeprefix(".extra")
        raise SpecificationError(
            path, error.problem, value=error.value, bound=error.bound, remedy=error.remedy
        ) from error
