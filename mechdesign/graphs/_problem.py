"""The channel of least cost under a policy graph: one linear program for each connected component.

The rows of the program are the edges of the graph, p(o|s) <= e^ε p(o|t) in both directions (PGLP, Cao et al. 2020,
Definition 3): what the papers' mechanisms guarantee, too, and no more. No mechanism that keeps them, and gives only
answers that are permitted here, costs less on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_floats
from mechdesign.base._errors import InputError
from mechdesign.graphs._builders import check_graph, union
from mechdesign.graphs._exposure import protected_pairs
from mechdesign.graphs._repairs import repair
from mechdesign.model import distances
from mechdesign.model._claims import Claims
from mechdesign.model._components import label_tied_secrets
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._requirement import Requirement, as_requirements

Within = Literal["component", "map"]
Isolated = Literal["refuse", "hull", "repair", "release"]


def problem(
    domain: Domain | ArrayLike,
    *,
    graph: nx.Graph,
    epsilon: Number,
    prior: Prior | ArrayLike | None = None,
    cost: ArrayLike | None = None,
    within: Within = "component",
    isolated: Isolated = "refuse",
    requirements: Sequence[Requirement] = (),
    objective: str = "expected",
    observables: Domain | None = None,
    title: str = "",
) -> Problem:
    """State the problem of the least-cost channel under a policy graph.

    A node without an edge is released exactly by the best channel, even where a mechanism with a sensitivity hull K
    would hide it (unless another requirement ties it to others). So is a single node, which has nothing to hide among.
    Both are refused unless `isolated` says otherwise.

    Args:
        domain: A domain with n members, or their places as an array (n, d).
        graph: The policy graph. Its nodes are indices into the domain, and the rows of the channel are these nodes in
            ascending order: a constrained graph lacks some.
        epsilon: Nats per edge.
        prior: Probabilities (n,), uniform unless given; of a constrained graph, those of its nodes count relative to
            their sum.
        cost: (n, n), the Euclidean distance unless given.
        within: Which answers are permitted. "component": the members of the secret's own component. Answers then tell
            the component, which the policy allows; the other answers have an infinite cost in the problem, and the
            lower bound is one for channels that never give them. The columns of the channel are the nodes. "map": every
            member of the domain, and so n columns; or other observables, by a `cost` of shape (n, m), and by their
            domain `observables` where they have one.
        requirements: Further requirements about the nodes, in their order. Requirements on pairs may join components,
            which then count as one; distortion floors are met by all components together. The largest floor is one
            where answers tell the component and nothing else, or nothing at all with "map".
        isolated: What to do with nodes without an edge: "refuse"; "hull" joins each to all nodes j with f(j) − f(i) in
            K, K the hull of the whole graph, and refuses where there are none; "repair" first adds the edges of
            `repair`; "release" takes it as it is, and the certificate lists them as `revealed`.
        objective: "expected" or "worst" cost.
        observables: The domain of other answers than the nodes, for ``within="map"``.
        title: What reports call the problem.

    Returns:
        The problem, to be given to `mechdesign.design`. Its last requirement is the graph. Its `facts` say `within`,
        `isolated` and how many `edges_added` that graph has; the certificate of a design repeats them.

    Raises:
        InputError: Arguments do not fit together.
        InfeasibleError: No channel reaches a floor; the largest possible is named.
    """
    distances.refuse_distances(domain, "domain", "places are needed here, not the distances between them", least=3)
    everyone = domain if isinstance(domain, Domain) else Domain.from_points(domain)
    check_graph(graph, everyone.size)
    if within not in ("component", "map"):
        raise InputError("within", "is not known", value=within, bound='"component" or "map"')
    nodes = np.array(sorted(graph), dtype=np.int64)
    secrets = everyone.part(nodes)
    permitted = secrets if within == "component" else everyone
    costs = _costs(cost, everyone, nodes, secrets, permitted, within)
    if observables is not None and within == "component":
        raise InputError("observables", "are others than the secrets", remedy='leave them out, or use within="map"')
    if observables is None and costs.shape[1] == permitted.size:
        observables = permitted
    own = nx.relabel_nodes(graph, {node: index for index, node in enumerate(nodes.tolist())})
    as_requirements(requirements, len(nodes), ", the nodes of the graph")
    joined = _joined(own, epsilon, requirements, isolated, secrets, nodes)
    # Last, so that errors about the others count them as the caller does.
    asked = [*requirements, GraphPrivacy(epsilon, joined)]
    if within == "component":
        labels = _tied(asked, len(nodes))
        costs = np.where(labels[:, None] == labels, costs, np.inf)
    added = joined.number_of_edges() - own.number_of_edges()
    return Problem(
        _prior(prior, everyone, nodes),
        costs,
        asked,
        objective,
        secrets,
        observables,
        title,
        facts={"within": within, "isolated": isolated, "edges_added": added},
    )


def _prior(prior: Prior | ArrayLike | None, domain: Domain, nodes: Integers) -> Floats:
    if prior is None:
        return np.full(nodes.size, 1 / nodes.size)
    given = (prior if isinstance(prior, Prior) else Prior(as_floats(prior, "prior", "(n,)"))).probabilities
    if given.size != domain.size:
        raise InputError("prior", "is of another domain", value=given.size, bound=f"{domain.size} probabilities")
    if nodes.size == domain.size:
        return given
    total = float(given[nodes].sum())
    if total <= 0:
        raise InputError("prior", "is zero on every node of the graph", bound="above 0 on at least one")
    return np.asarray(given[nodes] / total)


def _costs(
    cost: ArrayLike | None, domain: Domain, nodes: Integers, secrets: Domain, observables: Domain, within: Within
) -> Floats:
    """Return the costs of the nodes' answers, before any is forbidden."""
    if cost is None:
        if not domain.points.shape[1]:
            raise InputError("cost", "is missing", remedy="give a cost: a domain of labels has no places")
        return distances.euclidean(secrets, None if observables is secrets else observables)
    costs = as_floats(cost, "cost", "(n, n)")
    columns = costs.shape[1] if within == "map" else domain.size
    if costs.shape != (domain.size, columns):
        shape = f"({domain.size}, {domain.size if within == 'component' else 'm'})"
        raise InputError("cost", "has another shape", value=costs.shape, bound=f'{shape} with within="{within}"')
    return costs[np.ix_(nodes, nodes)] if within == "component" else costs[nodes]


def _joined(
    graph: nx.Graph,
    epsilon: Number,
    requirements: Sequence[Requirement],
    isolated: Isolated,
    secrets: Domain,
    nodes: Integers,
) -> nx.Graph:
    """Return the graph, on 0, 1, …, with the edges that keep its isolated nodes from being released exactly."""
    if isolated not in ("refuse", "hull", "repair", "release"):
        raise InputError("isolated", "is not known", value=isolated, bound='"refuse", "hull", "repair" or "release"')

    def alone(asked: nx.Graph) -> Integers:
        labels = _tied([*requirements, GraphPrivacy(epsilon, asked)], len(nodes))
        return np.flatnonzero(np.bincount(labels)[labels] == 1)

    left = alone(graph)
    if isolated == "release" or not left.size:
        return graph
    if len(nodes) == 1:
        raise InputError(
            "graph",
            "has a single node, which every answer reveals",
            value=nodes.tolist(),
            remedy='let another one be possible, or accept it by isolated="release"',
        )
    if isolated == "refuse":
        raise InputError(
            "graph",
            "has nodes without an edge, which the best channel would release exactly",
            value=nodes[left].tolist(),
            remedy='join them to others, by isolated="hull" or isolated="repair", or accept it by isolated="release"',
        )
    joined = repair(secrets, graph).graph if isolated == "repair" else graph
    left = alone(joined)
    pairs = protected_pairs(secrets, joined)
    joined = union(joined)
    joined.add_edges_from(pairs[np.isin(pairs, left).any(axis=1)].tolist())
    left = alone(joined)
    if left.size:
        raise InputError(
            "graph",
            "has nodes without an edge, and no other node within the sensitivity hull of each",
            value=nodes[left].tolist(),
            remedy='join them to others, by isolated="repair", or accept their exact release by isolated="release"',
        )
    return joined


def _tied(requirements: Sequence[Requirement], n: int) -> Integers:
    """Return a label for each node, equal where requirements on pairs tie nodes together."""
    return label_tied_secrets(n, Claims(claim for requirement in requirements for claim in requirement.claims()))
