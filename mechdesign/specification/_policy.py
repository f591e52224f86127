"""Policy graphs in a specification, and how they and traces released under them are to be treated."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import networkx as nx
from msgspec import structs

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import SpecificationError
from mechdesign.certify._exact import exact_text
from mechdesign.data._resampling import Sampling
from mechdesign.graphs import _builders as graphs
from mechdesign.graphs._constraints import delta_set
from mechdesign.mechanisms import _registry as mechanisms
from mechdesign.model._grammar import ChainTable, DateColumn, PriorTable, Table, TimeFormat, TimeZone, says
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.specification._chains import Transitions, build_chain
from mechdesign.specification._graphs import Graphs
from mechdesign.specification._priors import build_prior
from mechdesign.specification._read import Source, choice
from mechdesign.traces._planner import OPTIMAL, Repaired

Within = Literal["component", "map"]
Isolated = Literal["refuse", "repair", "hull", "release"]
Repair = Literal["area", "nearest", "best", "exhaustive"]
Hull = Literal["component", "graph"]


class PolicyTable(Table, frozen=True):
    """How the graph of all ``[[privacy]]`` tables of kind "graph" together is kept; `isolated` needs no graph."""

    within: Annotated[
        Within,
        says("where the answers of an optimal channel may lie: in the connected component of the secret, or anywhere."),
    ] = "component"
    isolated: Annotated[
        Isolated,
        says(
            "what becomes of secrets that no requirement ties to another, such as those without an edge, which an "
            "optimal channel would reveal: refuse the specification, add edges that protect them, add those pairs "
            'that the sensitivity hull protects already, or reveal them; without a graph only "refuse" and '
            '"release"; along a trace `repaired` says it.'
        ),
    ] = "refuse"
    repair: Annotated[Repair, says("which edges a repair adds.")] = "area"
    repaired: Annotated[
        Repaired,
        says(
            'whom a repair protects along a trace: states whose neighbours are impossible ("disconnected"), or '
            'states without an edge in the policy, too ("all"); such states are released as they are otherwise.'
        ),
    ] = "disconnected"
    hull: Annotated[Hull, says("whose sensitivity hull noise is fitted to, and by which secrets count as exposed.")] = (
        "component"
    )
    support: Annotated[
        list[int | str] | None,
        says("the possible secrets, texts by label and integers by position; all of them unless given."),
    ] = None
    delta: Annotated[
        Fraction | None,
        says(
            "the possible secrets are the fewest of probability 1 − δ: of the prior, or, along a trace, of what is "
            "believed before each step; exact, at least 0 and below 1."
        ),
    ] = None

    def possible(self, prior: Floats) -> list[int] | None:
        """Return the possible secrets, sorted, where their probabilities are `prior`, (n,); None for all of them."""
        if self.delta is not None:
            return [int(node) for node in delta_set(prior, self.delta)]
        return None if self.support is None else [int(secret) for secret in self.support]


class ReleaseTable(Table, frozen=True):
    """How a trace is released."""

    mechanism: Annotated[
        str,
        says(
            'a mechanism of `mechdesign.mechanisms` by its name, such as "planar-isotropic" or "laplace", or "lp": '
            "the optimal channel, solved at each step as ``[solver]`` says."
        ),
    ] = "planar-isotropic"
    transition: Annotated[ChainTable | None, says("how states follow one another, as the adversary knows it, too.")] = (
        None
    )
    every: Annotated[
        str | None, says('the trace is brought to even steps of this length, such as "5 min", by its times.')
    ] = None
    gap: Annotated[
        str | None,
        says("the longest time without a state; a trace with a longer gap is refused; three steps unless given."),
    ] = None
    time: Annotated[str | None, says("the column of the trace with the time; one with a usual name unless given.")] = (
        None
    )
    date: DateColumn = None
    time_format: TimeFormat = None
    time_zone: TimeZone = None
    missing: Annotated[
        float | None,
        says("the share of steps of a trace with times that may be left out, such as 0.2; 0.05 unless given."),
    ] = None
    initial: Annotated[PriorTable | None, says("what is believed before the first step; the prior unless given.")] = (
        None
    )
    snap: Annotated[bool | None, says("answer with secrets, or with any places, where the mechanism can.")] = None
    seed: Annotated[
        int | None, says("for rehearsals only: whoever knows the seed of a published trace can recover the truth.")
    ] = None
    history: Annotated[
        Literal["others"] | None,
        says(
            '"others" states that the data that prior, chain and policy come from are not those of the person whose '
            "trace is released; the manifest repeats it as a statement."
        ),
    ] = None


@dataclass(frozen=True, eq=False)
class Policy:
    """The union of the policy graphs of a specification, the ε of each edge, and how they are to be kept."""

    graph: nx.Graph
    epsilon: Fraction
    settings: PolicyTable


@dataclass(frozen=True, eq=False)
class ReleaseSettings:
    """How a trace is to be released: what the table says, and the transitions and the prior that it names.

    `sampling` says how the trace is brought to even steps; `initial` is the prior of the first step.
    `notes` are for the user.
    """

    table: ReleaseTable
    transitions: Transitions
    sampling: Sampling
    initial: Prior
    notes: tuple[str, ...]

    @property
    def transition(self) -> MarkovChain | VaryingChain:
        """The Markov chain, or that of each step or hour."""
        chains = self.transitions.chains
        return chains[0] if self.transitions.by is None else VaryingChain(chains, cyclic=self.transitions.by == "hour")


def build_settings(table: PolicyTable, source: Source, made: Graphs) -> PolicyTable:
    """Return what the ``[policy]`` table says, in which the possible secrets are positions in ascending order."""
    if table.delta is not None:
        if table.support is not None:
            raise source.error("", "has support and delta, which exclude each other", bound="one of them")
        if not 0 <= table.delta < 1:
            found = exact_text(table.delta)
            raise source.error("delta", "is out of range", value=found, bound="at least 0 and below 1")
    if table.support is None:
        return table
    if not table.support:
        raise source.error("support", "is empty", bound="at least one secret")
    secrets = {made.secret(name, source / "support" / index) for index, name in enumerate(table.support)}
    return structs.replace(table, support=sorted(secrets))


def build_policy(problem: Problem, settings: PolicyTable) -> Policy:
    """Return the union of the graphs among the requirements of a problem, which must have one ε.

    Raises `SpecificationError` where there is no graph, or where they differ in ε.
    """
    if not problem.graphs:
        raise SpecificationError(
            "privacy", "has no policy graph", remedy='add [[privacy]] with kind = "graph" and blocks = 3, say'
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
    return Policy(graphs.union(*problem.graphs.values()), epsilon, settings)


def build_release(table: ReleaseTable, source: Source, made: Graphs, prior: Prior) -> ReleaseSettings:
    """Return what the ``[release]`` table says; `prior` is that of the first step unless the table has another."""
    choice(table.mechanism, (OPTIMAL, *mechanisms.MECHANISMS), (source / "mechanism").path)
    if table.seed is not None and table.seed < 0:
        raise source.error("seed", "is negative", value=table.seed, bound="a whole number >= 0")
    if table.transition is None:
        raise source.error(
            "transition",
            "is missing",
            remedy='add [release] with transition = { path = "P.csv" }, { estimated = true } or { neighbours = 8 }',
        )
    chain = build_chain(table.transition, source / "transition", made.secrets, made.prior)
    notes = chain.notes
    with source.keys():
        sampling = Sampling.of(table.every, table.gap)
    if table.initial is not None:
        prior, more = build_prior(table.initial, source / "initial", made.secrets)
        notes += more
    return ReleaseSettings(table, chain, sampling, prior, notes)
