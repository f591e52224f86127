"""The channel of least cost under a policy graph: one linear program for each connected component.

The constraints are p(o|s) <= e^ε p(o|t) for the edges of the graph in both directions (PGLP, Cao et al. 2020,
Definition 3). The mechanisms of the papers satisfy the same constraints. So a mechanism of the papers costs at least as
much as the optimal channel, if it gives only permitted answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_floats
from mechdesign.base._check import require_name
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels
from mechdesign.graphs._builders import sort_nodes, union
from mechdesign.graphs._exposure import protected_pairs
from mechdesign.graphs._repairs import repair
from mechdesign.model import distances
from mechdesign.model._claims import Claims, label_tied_secrets
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number
from mechdesign.model._prior import Prior, as_prior
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
    """Return the problem of the least-cost channel under a policy graph.

    The optimal channel releases a node without an edge exactly, unless another requirement bounds it. Even a node that
    noise with a sensitivity hull would protect is released exactly by the optimal channel. If the graph has a single
    node, this node is also released exactly. By default, a node without an edge is an error; see `isolated`.

    Args:
        domain: A domain with n members, or their places as an array (n, d).
        graph: The policy graph. Its nodes are indices into the domain; a constrained graph has only some of them. The
            rows of the channel are these nodes in ascending order.
        epsilon: ε in nats per edge.
        prior: Probabilities (n,); None means uniform. Under a constrained graph, the probabilities of its nodes are
            normalised.
        cost: Costs (n, n); None means the Euclidean distance.
        within: The permitted answers. With "component" the answers are the nodes in the component of the secret. An
            answer then reveals the component, which the policy permits. All other answers have infinite cost, so the
            lower bound holds only for channels without these answers. The columns of the channel are the nodes. With
            "map" the answers are all members of the domain (n columns), or the m observables if `cost` has the shape
            (n, m).
        isolated: The treatment of nodes without an edge. With "refuse" these nodes are an error. With "hull" edges join
            each of these nodes to all nodes that the hull of the whole graph, centred at the node, contains. With
            "repair" the edges that the function `repair` chooses are added first. With "hull" and "repair", a node that
            is still without an edge is an error. With "release" these nodes are released exactly, and the certificate
            lists them as `revealed`.
        requirements: Further requirements; their secrets are the nodes in ascending order. Pair bounds may connect
            components. A distortion floor applies to all components jointly. A floor can be at most the expected error
            of an adversary who knows the prior and, unless `within` is "map", the component.
        objective: The objective, "expected" or "worst" cost.
        observables: The domain of the m observables, for ``within="map"``.
        title: The name of the problem in reports.

    Returns:
        The problem, with the graph privacy as its last requirement. The `facts` of the problem contain `within`,
        `isolated` and `edges_added`, the number of added edges. The certificate of a design repeats these facts.

    Raises:
        InputError: An argument is invalid or does not match the others.
        InfeasibleError: A floor exceeds the largest possible floor, which the message states.

    >>> problem([[0.0], [1.0], [2.0]], graph=nx.path_graph(3), epsilon=1)
    Problem(3 secrets, 3 observables, expected cost; graph)
    """
    distances.refuse_distances(
        domain, "domain", "give the places of the secrets, not the distances between them", least=3
    )
    everyone = domain if isinstance(domain, Domain) else Domain.from_points(domain)
    check_graph(graph, everyone.size)
    require_name(within, get_args(Within), "within")
    nodes = sort_nodes(graph)
    secrets = everyone.part(nodes)
    permitted = secrets if within == "component" else everyone
    answers = observables if isinstance(observables, Domain) else everyone
    costs = _costs(cost, everyone, nodes, secrets, permitted, within, answers.labels)
    if observables is not None and within == "component":
        raise InputError("observables", 'are not used with within="component"', remedy='omit them, or use within="map"')
    if observables is None and costs.shape[1] == permitted.size:
        observables = permitted
    own = nx.relabel_nodes(graph, {node: index for index, node in enumerate(nodes.tolist())})
    requirements = as_requirements(requirements, len(nodes), ", the nodes of the graph", labels=secrets.labels)
    joined = _join_isolated(own, epsilon, requirements, isolated, secrets, nodes)
    # The graph is the last requirement, so errors number the other requirements as the caller does.
    all_requirements = [*requirements, GraphPrivacy(epsilon, joined)]
    if within == "component":
        labels = _label_tied(all_requirements, len(nodes))
        costs = np.where(labels[:, None] == labels, costs, np.inf)
    added = joined.number_of_edges() - own.number_of_edges()
    return Problem(
        _prior(prior, everyone, nodes),
        costs,
        all_requirements,
        objective,
        secrets,
        observables,
        title,
        facts={"within": within, "isolated": isolated, "edges_added": added},
    )


def _prior(prior: Prior | ArrayLike | None, domain: Domain, nodes: Integers) -> Floats:
    if prior is None:
        return np.full(nodes.size, 1 / nodes.size)
    given = as_prior(prior, labels=domain.labels, size=domain.size).probabilities
    if nodes.size == domain.size:
        return given
    total = float(given[nodes].sum())
    if total <= 0:
        raise InputError("prior", "is zero on every node of the graph", bound="positive on at least one node")
    return np.asarray(given[nodes] / total)


def _costs(
    cost: ArrayLike | None,
    domain: Domain,
    nodes: Integers,
    secrets: Domain,
    observables: Domain,
    within: Within,
    labels: Labels,
) -> Floats:
    """Return the costs of answers for the nodes, without forbidden answers."""
    if cost is None:
        if not domain.points.shape[1]:
            raise InputError("cost", "is missing", remedy="give a cost: a domain of labels has no places")
        return distances.euclidean(secrets, None if observables is secrets else observables)
    costs = as_floats(cost, "cost", "(n, n)", domain.labels, labels)
    columns = costs.shape[1] if within == "map" else domain.size
    if costs.shape != (domain.size, columns):
        shape = f"({domain.size}, {domain.size if within == 'component' else 'm'})"
        raise InputError("cost", "has the wrong shape", value=costs.shape, bound=f'{shape} with within="{within}"')
    return costs[np.ix_(nodes, nodes)] if within == "component" else costs[nodes]


def _join_isolated(
    graph: nx.Graph,
    epsilon: Number,
    requirements: Sequence[Requirement],
    isolated: Isolated,
    secrets: Domain,
    nodes: Integers,
) -> nx.Graph:
    """Return the graph on the nodes 0, 1, … with added edges that prevent the exact release of isolated nodes."""
    require_name(isolated, get_args(Isolated), "isolated")

    def find_isolated(policy: nx.Graph) -> Integers:
        labels = _label_tied([*requirements, GraphPrivacy(epsilon, policy)], len(nodes))
        return np.flatnonzero(np.bincount(labels)[labels] == 1)

    left = find_isolated(graph)
    if isolated == "release" or not left.size:
        return graph
    if len(nodes) == 1:
        raise InputError(
            "graph",
            "has a single node, which every answer reveals",
            value=nodes.tolist(),
            remedy='add a possible secret, or accept the exact release with isolated="release"',
        )
    if isolated == "refuse":
        raise InputError(
            "graph",
            "has nodes without an edge, which the best channel would release exactly",
            value=nodes[left].tolist(),
            remedy='join them to others with isolated="hull" or isolated="repair", or use isolated="release"',
        )
    joined = repair(secrets, graph).graph if isolated == "repair" else graph
    left = find_isolated(joined)
    pairs = protected_pairs(secrets, joined)
    joined = union(joined)
    joined.add_edges_from(pairs[np.isin(pairs, left).any(axis=1)].tolist())
    left = find_isolated(joined)
    if left.size:
        raise InputError(
            "graph",
            "has nodes without an edge, and there is no other node within the sensitivity hull around them",
            value=nodes[left].tolist(),
            remedy='join them to others with isolated="repair", or accept their exact release with isolated="release"',
        )
    return joined


def _label_tied(requirements: Sequence[Requirement], n: int) -> Integers:
    """Return a label for each node; two nodes have the same label if a chain of pair bounds connects them."""
    return label_tied_secrets(n, Claims(claim for requirement in requirements for claim in requirement.claims()))
