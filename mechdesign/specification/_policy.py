"""Policy graphs in a specification, and how they and traces released under them are to be treated."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import networkx as nx

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import SpecificationError
from mechdesign.certify._exact import exact_text
from mechdesign.data._resampling import Sampling
from mechdesign.graphs import _builders as graphs
from mechdesign.graphs._constraints import delta_set
from mechdesign.mechanisms import _registry as mechanisms
from mechdesign.model._grammar import ChainTable, Raw, Table, holds
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.specification._chains import Transitions, build_chain
from mechdesign.specification._graphs import Graphs
from mechdesign.specification._priors import PriorTable, build_prior
from mechdesign.specification._read import at, choice, convert
from mechdesign.traces._planner import OPTIMAL, Repaired

Within = Literal["component", "map"]
Isolated = Literal["refuse", "repair", "hull", "release"]
Repair = Literal["area", "nearest", "best", "exhaustive"]
Hull = Literal["component", "graph"]


class PolicyTable(Table, frozen=True):
    """How the graph is kept that all ``[[privacy]]`` tables of kind "graph" have together; `isolated` needs no graph.

    Attributes:
        within: where the answers of an optimal channel may lie: in the connected component of the secret, or anywhere.
        isolated: what becomes of secrets that no requirement ties to another, such as those without an edge, which an
            optimal channel would reveal: refuse the specification, add edges that protect them, add those pairs that
            the sensitivity hull protects already, or reveal them; without a graph only "refuse" and "release"; along a
            trace `repaired` says it.
        repair: which edges a repair adds.
        repaired: whom a repair protects along a trace: states whose neighbours are impossible ("disconnected"), or
            states without an edge in the policy, too ("all"); such states are released as they are otherwise.
        hull: whose sensitivity hull noise is fitted to, and by which secrets count as exposed.
        support: the possible secrets, texts by label and integers by position; all of them unless given.
        delta: the possible secrets are the fewest of probability 1 − δ: of the prior, or, along a trace, of what is
            believed before each step; exact, at least 0 and below 1.
    """

    within: Within = "component"
    isolated: Isolated = "refuse"
    repair: Repair = "area"
    repaired: Repaired = "disconnected"
    hull: Hull = "component"
    support: list[int | str] | None = None
    delta: Fraction | None = None


class ReleaseTable(Table, frozen=True):
    """How a trace is released.

    Attributes:
        mechanism: a mechanism of `mechdesign.mechanisms` by its name, such as "planar-isotropic" or "laplace", or
            "lp": the optimal channel, solved at each step as ``[solver]`` says.
        transition: how states follow one another, as the adversary knows it, too.
        every: the trace is brought to even steps of this length, such as "5 min", by its times.
        gap: the longest time without a state; a trace with a longer gap is refused; three steps unless given.
        time: the column of the trace with the time; one with a usual name unless given.
        date: the column of the trace with the date, where `time` holds the time of day only.
        time_format: how the times of the trace are written, date first: a pattern such as "%Y%m%d", or "unix",
            "unix-ms", "unix-us" or "unix-ns" since 1970.
        time_zone: the zone of times of the trace that say none, such as "Europe/Zurich" or "+02:00"; UTC unless given.
        missing: the share of steps of a trace with times that may be left out, such as 0.2; 0.05 unless given.
        initial: what is believed before the first step; the prior unless given.
        snap: answer with secrets, or with any places, where the mechanism can.
        seed: for rehearsals only: whoever knows the seed of a published trace can recover the truth.
        history: "others" states that the data that prior, chain and policy come from are not those of the person whose
            trace is released; the manifest repeats it as a statement.
    """

    mechanism: str = "planar-isotropic"
    transition: Annotated[Raw, holds(ChainTable)] | None = None
    every: str | None = None
    gap: str | None = None
    time: str | None = None
    date: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    missing: float | None = None
    initial: Annotated[Raw, holds(PriorTable)] | None = None
    snap: bool | None = None
    seed: int | None = None
    history: Literal["others"] | None = None


class LedgerTable(Table, frozen=True):
    """The ledger that `mechdesign release` charges before each step: one for each person whose traces are released.

    Nothing else charges it: it goes with ``[release]`` and with policy graphs alone.

    Attributes:
        path: its file. It is made when something is first to be spent, only where a budget is given, and only in the
            folder of the specification or below.
        epsilon: the budget of all releases together under pure differential privacy, exact.
        rho: the budget of all releases together under zero-concentrated differential privacy, exact.
    """

    path: str
    epsilon: Fraction | None = None
    rho: Fraction | None = None


@dataclass(frozen=True)
class PolicySettings:
    """How a policy graph is to be kept; `support` holds indices, and is None where every secret is possible."""

    within: Within = "component"
    isolated: Isolated = "refuse"
    repair: Repair = "area"
    repaired: Repaired = "disconnected"
    hull: Hull = "component"
    support: tuple[int, ...] | None = None
    delta: Fraction | None = None

    def possible(self, prior: Floats) -> list[int] | None:
        """Return the possible secrets, sorted, where their probabilities are `prior`, (n,); None for all of them."""
        if self.delta is not None:
            return [int(node) for node in delta_set(prior, self.delta)]
        return None if self.support is None else list(self.support)


@dataclass(frozen=True, eq=False)
class Policy:
    """The union of the policy graphs of a specification, the ε of each edge, and how they are to be kept."""

    graph: nx.Graph
    epsilon: Fraction
    settings: PolicySettings


@dataclass(frozen=True, eq=False)
class ReleaseSettings:
    """How a trace is to be released: mechanism, transitions, prior of the first step, and where outputs may lie.

    `sampling` says how the trace is brought to even steps. `snap` is None where the specification does not say; `notes`
    are for the user. `others` says whether prior, chain and policy are stated to come from data of other people.
    """

    mechanism: str
    transitions: Transitions
    sampling: Sampling
    initial: Prior
    snap: bool | None
    seed: int | None
    notes: tuple[str, ...]
    others: bool = False

    @property
    def transition(self) -> MarkovChain | VaryingChain:
        """The Markov chain, or that of each step or hour."""
        chains = self.transitions.chains
        return chains[0] if self.transitions.by is None else VaryingChain(chains, cyclic=self.transitions.by == "hour")


def build_settings(raw: Raw, made: Graphs) -> PolicySettings:
    """Return what the ``[policy]`` table says, of the secrets that `made` knows."""
    table = convert(raw, PolicyTable, "policy")
    support: tuple[int, ...] | None = None
    if table.support is not None:
        if table.delta is not None:
            raise SpecificationError("policy", "has support and delta, which exclude each other", bound="one of them")
        if not table.support:
            raise SpecificationError("policy.support", "is empty", bound="at least one secret")
        found = (made.secret(name, f"policy.support[{index}]") for index, name in enumerate(table.support))
        support = tuple(sorted(set(found)))
    if table.delta is not None and not 0 <= table.delta < 1:
        raise SpecificationError(
            "policy.delta", "is out of range", value=exact_text(table.delta), bound="at least 0 and below 1"
        )
    return PolicySettings(table.within, table.isolated, table.repair, table.repaired, table.hull, support, table.delta)


def build_policy(problem: Problem, settings: PolicySettings) -> Policy:
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


def build_release(raw: Raw, made: Graphs, prior: Prior) -> ReleaseSettings:
    """Return what the ``[release]`` table says; `prior` is that of the first step unless the table has another."""
    table = convert(raw, ReleaseTable, "release")
    mechanism = _mechanism(table.mechanism)
    if table.seed is not None and table.seed < 0:
        raise SpecificationError("release.seed", "is negative", value=table.seed, bound="a whole number >= 0")
    if table.transition is None:
        raise SpecificationError(
            "release.transition",
            "is missing",
            remedy='add [release] with transition = { path = "P.csv" }, { estimated = true } or { neighbours = 8 }',
        )
    secrets, folder = made.secrets, made.folder
    chain = build_chain(table.transition, "release.transition", secrets, folder, made.prior)
    notes = chain.notes
    with at("release"):
        sampling = Sampling.of(table.every, table.gap)
    if table.initial is not None:
        prior, more = build_prior(table.initial, "release.initial", secrets, folder)
        notes += more
    others = table.history == "others"
    return ReleaseSettings(mechanism, chain, sampling, prior, table.snap, table.seed, notes, others)


def _mechanism(name: str) -> str:
    """Return the name of a mechanism that a trace can be released by."""
    return choice(name, (OPTIMAL, *mechanisms.MECHANISMS), "release.mechanism")
