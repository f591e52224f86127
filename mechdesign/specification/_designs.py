"""Design channels under ``[policy]``, and predict the size of programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from msgspec import structs

from mechdesign.base._errors import InfeasibleError, InputError, SpecificationError
from mechdesign.model._domain import Domain, Grid
from mechdesign.model._locate import Lattice
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.solve._blocks.memory import Sparsity, measure_sparsity
from mechdesign.specification._document import ARGUMENTS, Document
from mechdesign.specification._measures import ContinuousTable, DistortionTable, MetricTable
from mechdesign.specification._policy import PolicyTable
from mechdesign.specification._read import Source
from mechdesign.synthesis._sizes import Size, count_symmetries

if TYPE_CHECKING:
    from mechdesign.model._problem import Problem
    from mechdesign.synthesis._result import Design
    from mechdesign.synthesis._settings import SolveSettings


def design_problem(
    problem: Problem, policy: PolicyTable, settings: SolveSettings, given: Collection[str] = ()
) -> Design:
    """Return the certified design of a problem, with its policy graphs treated according to `policy`.

    `given` names the settings that do not come from the specification, so that errors name them as arguments. Raises
    `SpecificationError` for isolated secrets. The caller must warn of revealed secrets.
    """
    check_solver(settings.solver, "solver" if "solver" in given else "solver.name")
    # Imported here, so that wrong input is refused without loading solvers.
    from mechdesign.synthesis._design import check_isolated, synthesise

    with _rename_arguments(given):
        if problem.graphs:
            return _design_policy(problem, policy, settings)
        check_isolated(problem, policy.isolated)
        made = synthesise(problem, settings)
        return made.noted(isolated=policy.isolated) if policy.isolated == "release" else made


def check_solver(name: str, path: str) -> None:
    """Raise an error at `path` for a solver that is unknown or not installed."""
    from mechdesign.solve import _registry as registry

    if name != "auto":
        with Source().keys({"solver": path}):
            registry.find(name)


def _design_policy(problem: Problem, policy: PolicyTable, settings: SolveSettings) -> Design:
    from mechdesign.graphs._problem import problem as policy_problem
    from mechdesign.synthesis._design import synthesise

    asked = _split_requirements(problem, policy)
    other = problem.observables is not problem.secrets
    if other and policy.within == "component":
        raise SpecificationError(
            "observables",
            "differ from the secrets, but answers must stay in the component of the secret",
            remedy='remove the table, or set [policy] within = "map"',
        )
    try:
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
    except InfeasibleError as error:
        places = {f"requirements[{index}]": f"privacy[{place}]" for index, place in enumerate(asked.places)}
        raise error.under((), places) from error
    made = synthesise(stated, settings)
    return made.noted(edges_added=int(stated.facts["edges_added"]) + asked.repaired)


@dataclass(frozen=True, eq=False)
class _PolicyRequirements:
    """A policy graph on the possible secrets, and the other requirements with their indices in the problem."""

    domain: Domain
    graph: nx.Graph
    epsilon: Fraction
    others: tuple[Requirement, ...]
    places: tuple[int, ...]
    repaired: int


def _split_requirements(problem: Problem, policy: PolicyTable) -> _PolicyRequirements:
    from mechdesign.graphs._builders import constrain, union
    from mechdesign.graphs._exposure import exposed
    from mechdesign.graphs._repairs import repair

    assert problem.secrets is not None
    epsilons = {place: problem.requirements[place].pair_bounds[0].nominal for place in problem.graphs}
    epsilon = next(iter(epsilons.values()))
    # Graphs with a different ε remain separate requirements.
    graph = union(*(problem.graphs[place] for place in epsilons if epsilons[place] == epsilon))
    places = tuple(place for place in range(len(problem.requirements)) if epsilons.get(place) != epsilon)
    others = tuple(problem.requirements[place] for place in places)
    support = policy.possible(problem.prior)
    if support is not None:
        graph = constrain(graph, support)
        others = tuple(each.restrict(np.array(support), floors=True) for each in others)
    added = 0
    if policy.isolated == "repair" and len(graph) > 1 and exposed(problem.secrets, graph, policy.hull).size:
        made = repair(problem.secrets, graph, policy.repair, hull=policy.hull)
        graph, added = made.graph, len(made.added)
    return _PolicyRequirements(problem.secrets, graph, epsilon, others, places, added)


@contextmanager
def _rename_arguments(given: Collection[str]) -> Iterator[None]:
    """Make errors name keys of the specification, except for arguments in `given`."""
    own = {name: name for name in given} | ({"options.extra": "options"} if "options" in given else {})
    try:
        with Source().keys({**ARGUMENTS, **own}):
            yield
    except SpecificationError as error:
        if error.keys == ("privacy",):
            of_graph = isinstance(error.__cause__, InputError) and error.__cause__.keys == ("graph",)
            shows = "; `mechdesign policy` shows them" if of_graph else ""
            error.remedy = error.remedy.replace("isolated=", "[policy] isolated = ") + shows
        raise


# A prior from data of these kinds has no symmetries; any other prior may have some.
_COUNTED = ("checkins", "plt", "simulated")
# With a named distance, a requirement of these kinds joins all secrets by bounds, so that the problem cannot be split.
_JOINS_ALL = (MetricTable, ContinuousTable)


def predict_size(document: Document, secrets: Domain, observables: Domain) -> Size | None:
    """Return the size of the program, or None if it may split into several programs.

    A distance between all secrets joins them in one program. Edges of a graph, thresholds and distances from files need
    not join all secrets, and a policy may exclude secrets.
    """
    kinds = [(type(table), getattr(table, "distance", None)) for table in document.privacy]
    kept = structs.replace(document.policy, isolated="refuse") == PolicyTable()
    if not kept or not any(kind in _JOINS_ALL and isinstance(distance, str) for kind, distance in kinds):
        return None
    floors = sum(kind is DistortionTable for kind, _ in kinds)
    cells = secrets.cells
    sparsity = None
    if not floors:
        # Bounds between neighbours imply all others.
        if secrets.lattice is not None:
            sparsity = _grid_sparsity(secrets.lattice)
        elif cells is not None and all(distance == "manhattan" for _, distance in kinds):
            sparsity = _grid_sparsity(cells)
    worst = document.cost.objective == "worst"
    # The worst cost does not depend on the prior, so it has all symmetries of the map.
    counted = not (worst and not floors) and document.prior.form in _COUNTED
    most = 1 if counted else min(count_symmetries(secrets), secrets.size)
    return Size(secrets.size, observables.size, floors, most, worst=worst, sparsity=sparsity)


def _grid_sparsity(cells: Grid | Lattice) -> Sparsity | None:
    """Return the sparsity of the bounds between neighbouring cells or anchors; None if it is not sparse."""
    index = np.arange(cells.size).reshape(cells.rows, cells.columns)
    ends = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    pairs = np.hstack([np.stack([one.ravel(), other.ravel()]) for one, other in ends])
    sources, targets = np.hstack([pairs, pairs[::-1]])
    return measure_sparsity(cells.size, sources, targets) if is_sparse(cells.size, sources.size, 0) else None
