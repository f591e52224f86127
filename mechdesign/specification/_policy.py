"""Policy graphs in a specification, and the release of traces under them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import networkx as nx
from msgspec import structs

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import SpecificationError
from mechdesign.certify._exact import exact_text
from mechdesign.data.resampling import Sampling
from mechdesign.graphs import _builders as graphs
from mechdesign.graphs._constraints import delta_set
from mechdesign.model._grammar import Members, Table, says
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.specification._chains import Transitions, build_chain
from mechdesign.specification._graphs import Graphs
from mechdesign.specification._priors import build_prior, sampling_of
from mechdesign.specification._read import Source
from mechdesign.specification._steps import ReleaseTable
from mechdesign.traces._planner import Repaired

Within = Literal["component", "map"]
Isolated = Literal["refuse", "repair", "hull", "release"]
Repair = Literal["area", "nearest"]
Hull = Literal["component", "graph"]


class PolicyTable(Table, frozen=True):
    """The treatment of the policy graph, the union of all ``[[privacy]]`` tables of kind "graph".

    The key `isolated` also applies without a graph.

    Attributes:
        within: The answers of an optimal channel: in the component of the secret, or anywhere.
        isolated: The treatment of secrets that no requirement joins to another secret.
        repair: The method that chooses the edges of a repair.
        repaired: The states that a repair protects along a trace.
        hull: The part of the graph whose sensitivity hull the noise fits.
        support: The possible secrets, or None for all.
        delta: If not None, the possible secrets are the fewest with a total probability of at least 1 − δ.

    >>> import numpy as np
    >>> PolicyTable(support=[0, 2]).possible(np.array([0.5, 0.25, 0.25]))
    [0, 2]
    """

    within: Annotated[
        Within,
        says("the answers of an optimal channel: in the connected component of the secret, or anywhere on the map."),
    ] = "component"
    isolated: Annotated[
        Isolated,
        says(
            "the treatment of isolated secrets, which no requirement joins to another and an optimal channel would "
            "reveal: refuse the specification, add edges that protect them, add the pairs that the sensitivity hull "
            'already protects, or reveal them. Without a graph only "refuse" and "release" are allowed; along a trace '
            "`repaired` decides."
        ),
    ] = "refuse"
    repair: Annotated[Repair, says("the method that chooses the edges of a repair.")] = "area"
    repaired: Annotated[
        Repaired,
        says(
            'the states that a repair protects along a trace: those whose neighbours are impossible ("disconnected"), '
            'or also those without an edge in the policy ("all"); other isolated states are revealed.'
        ),
    ] = "disconnected"
    hull: Annotated[
        Hull,
        says("the sensitivity hull for the noise, which determines the exposed secrets: of each component, or of all."),
    ] = "component"
    support: Annotated[
        Members | None,
        says("the possible secrets: strings are labels, integers are indices; the default is all secrets."),
    ] = None
    delta: Annotated[
        Fraction | None,
        says(
            "the possible secrets are the fewest with probability 1 − δ, under the prior or, along a trace, under the "
            "adversary's belief before each step; exact, at least 0 and below 1."
        ),
    ] = None

    def possible(self, prior: Floats) -> list[int] | None:
        """Return the possible secrets.

        Args:
            prior: Probabilities of the secrets, shape (n,).

        Returns:
            Sorted indices, or None if all secrets are possible.
        """
        if self.delta is not None:
            return [int(node) for node in delta_set(prior, self.delta)]
        return None if self.support is None else [int(secret) for secret in self.support]


@dataclass(frozen=True, eq=False)
class SpecifiedPolicy:
    """The union of the policy graphs of a specification, the ε of each edge, and the ``[policy]`` table."""

    graph: nx.Graph
    epsilon: Fraction
    settings: PolicyTable


@dataclass(frozen=True, eq=False)
class ReleaseSettings:
    """The settings for the release of a trace, with its transitions and prior.

    Attributes:
        table: The ``[release]`` table.
        transitions: The transitions between states.
        sampling: The time step and the longest gap for resampling.
        initial: The prior of the first step.
        notes: Sentences about the data, for the user.

    >>> import numpy as np
    >>> chain = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> settings = ReleaseSettings(ReleaseTable(), Transitions((chain,)), Sampling(), Prior.uniform(2), ())
    >>> settings.transition.size
    2
    """

    table: ReleaseTable
    transitions: Transitions
    sampling: Sampling
    initial: Prior
    notes: tuple[str, ...]

    @property
    def transition(self) -> MarkovChain | VaryingChain:
        """The Markov chain, or the chains of successive steps or hours."""
        chains = self.transitions.chains
        return chains[0] if self.transitions.by is None else VaryingChain(chains, cyclic=self.transitions.by == "hour")


def build_settings(table: PolicyTable, source: Source, made: Graphs) -> PolicyTable:
    """Return the ``[policy]`` table with the possible secrets as sorted indices."""
    if table.delta is not None:
        if table.support is not None:
            raise source.error("", "has both support and delta", bound="one of them")
        if not 0 <= table.delta < 1:
            found = exact_text(table.delta)
            raise source.error("delta", "is out of range", value=found, bound="at least 0 and below 1")
    if table.support is None:
        return table
    secrets = {made.secret(name, source / "support" / index) for index, name in enumerate(table.support)}
    return structs.replace(table, support=sorted(secrets))


def build_policy(problem: Problem, settings: PolicyTable) -> SpecifiedPolicy:
    """Return the union of the policy graphs of a problem.

    Raises `SpecificationError` if there is no graph, or if graphs have different ε.
    """
    if not problem.graphs:
        raise SpecificationError(
            "privacy", "has no policy graph", remedy='add [[privacy]] with kind = "graph", for example with blocks = 3'
        )
    first, *others = problem.graphs
    epsilon = problem.requirements[first].pair_bounds[0].nominal
    for place in others:
        other = problem.requirements[place].pair_bounds[0].nominal
        if other != epsilon:
            raise SpecificationError(
                f"privacy[{place}].epsilon",
                f"differs from privacy[{first}].epsilon",
                value=exact_text(other),
                bound=f"{exact_text(epsilon)}: the edges of one policy have one ε",
            )
    return SpecifiedPolicy(graphs.union(*problem.graphs.values()), epsilon, settings)


def build_release(table: ReleaseTable, source: Source, made: Graphs, prior: Prior) -> ReleaseSettings:
    """Return the settings of the ``[release]`` table; `prior` is the default belief before the first step."""
    if table.transition is None:
        raise source.error(
            "transition",
            "is missing",
            remedy='add [release] with transition = { path = "P.csv" }, { estimated = true } or { neighbours = 8 }',
        )
    chain = build_chain(table.transition, source / "transition", made.secrets, made.prior)
    notes = chain.notes
    if table.initial is not None:
        prior, more = build_prior(table.initial, source / "initial", made.secrets)
        notes += more
    return ReleaseSettings(table, chain, sampling_of(table, source), prior, notes)
