"""Design what a specification asks for: policy graphs as ``[policy]`` says, everything as ``[solver]`` says."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from mechdesign.base._errors import InfeasibleError
from mechdesign.base._errors import InputError
from mechdesign.base._errors import SpecificationError
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._requirements._graph import graph_requirements
from mechdesign.spec.tables import named

if TYPE_CHECKING:
    from mechdesign.model._domain import Domain
    from mechdesign.model._problem import Problem
    from mechdesign.spec.policy import PolicySettings
    from mechdesign.synthesis._result import Design
    from mechdesign.synthesis._settings import SolveSettings

__all__ = ["check_solver", "design_problem", "solver_keys"]

_KEYS = {
    "solver": "solver.name",
    "tolerance": "solver.tolerance",
    "time_limit": "solver.time_limit",
    "rows": "solver.rows",
    "threads": "solver.threads",
    "options": "solver.options",
}


def design_problem(
    problem: Problem, policy: PolicySettings, settings: SolveSettings, given: Collection[str] = ()
) -> Design:
    """Return the certified design of a problem, whose policy graphs, if it has any, are kept as `policy` says.

    Settings that do not come from the specification are named in `given`, as an error about one names them. Raises
    `SpecificationError` for secrets tied to no other; what is revealed is for the caller to say.
    """
    check_solver(settings.solver, "solver" if "solver" in given else "solver.name")
    # Imported late: wrong input is refused without waiting for solvers to load.
    from mechdesign.synthesis._design import synthesise
    from mechdesign.synthesis._isolation import check_isolated

    with _named_as_specified(solver_keys(given)):
        if graph_requirements(problem.requirements):
            return _design_policy(problem, policy, settings)
        check_isolated(problem, policy.isolated)
        made = synthesise(problem, settings)
        return made.noted(isolated=policy.isolated) if policy.isolated == "release" else made


def solver_keys(given: Collection[str]) -> Mapping[str, str]:
    """Return the keys of a specification that arguments of a solver stand for, but for those that are `given`."""
    return {argument: key for argument, key in _KEYS.items() if argument not in given}


def check_solver(name: str, path: str) -> None:
    """Raise an error for a solver that is not known, or not installed; `path` is where its name stands."""
    from mechdesign.solve import _registry as registry

    if name != "auto":
        with named({"solver": path}):
            registry.find(name)


def _design_policy(problem: Problem, policy: PolicySettings, settings: SolveSettings) -> Design:
    from mechdesign.graphs._problem import problem as policy_problem
    from mechdesign.synthesis._design import synthesise

    asked = _asked(problem, policy)
    other = problem.observables is not problem.secrets
    if other and policy.within == "component":
        raise SpecificationError(
            "observables",
            "are others than the secrets, and answers are to stay in the component of the secret",
            remedy='leave them out, or say [policy] within = "map"',
        )
    with _counted_as_specified(asked.places):
        stated = policy_problem(
            asked.domain,
            graph=asked.graph,
            epsilon=asked.epsilon,
            prior=problem.prior,
            cost=problem.cost,
            within=policy.within,
            isolated=policy.isolated,
            requirements=asked.others,
            objective=problem.objective,
            observables=problem.observables if other else None,
            title=problem.title,
        )
    made = synthesise(stated, settings)
    return made.noted(edges_added=int(stated.facts["edges_added"]) + asked.repaired)


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
    from mechdesign.graphs._builders import union
    from mechdesign.graphs._constraints import constrain
    from mechdesign.graphs._exposure import exposed
    from mechdesign.graphs._repairs import repair

    assert problem.secrets is not None
    graphs = [each for _, each in graph_requirements(problem.requirements)]
    epsilon = graphs[0].epsilon
    # What has another ε is a requirement of its own.
    one = [each for each in graphs if each.epsilon == epsilon]
    graph = union(*(each.graph for each in one))
    places = tuple(place for place, each in enumerate(problem.requirements) if each not in one)
    others = tuple(problem.requirements[place] for place in places)
    support = policy.possible(problem.prior)
    if support is not None:
        graph = constrain(graph, support)
        others = tuple(each.condition(np.array(support)) for each in others)
    added = 0
    if policy.isolated == "repair" and len(graph) > 1:
        with named({"points": "domain", "method": "policy.repair"}):
            if exposed(problem.secrets, graph, policy.hull).size:
                made = repair(problem.secrets, graph, policy.repair, hull=policy.hull)
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


@contextmanager
def _named_as_specified(keys: Mapping[str, str]) -> Iterator[None]:
    """Give the solver's own options, and the graph, the path that they have in a specification."""
    try:
        with named(keys):
            yield
    except InputError as error:
        remedy, path = error.remedy, error.path
        if path == "graph":
            path = "privacy"
            remedy = remedy.replace("isolated=", "[policy] isolated = ") + "; `mechdesign policy` shows them"
        elif path == "requirements":
            path, remedy = "privacy", remedy.replace("isolated=", "[policy] isolated = ")
        elif "options.extra" in path:
            # What a solver calls its own options.
            path = path.replace("options.extra", "options")
        else:
            raise
        raise SpecificationError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy) from error
