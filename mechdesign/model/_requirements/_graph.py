"""Graph privacy: the two ends of every edge of a policy graph are indistinguishable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from mechdesign.base._arrays import Integers, as_indices
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._requirement import Requirement, check_stated, with_fields
from mechdesign.model._words import Words

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GraphPrivacy(Requirement):
    """Graph privacy: p(o|s) <= e^ε p(o|s') for the two ends of every edge (PGLP, definition of the policy graph).

    The bounds imply p(o|s) <= e^(kε) p(o|s') for secrets that are connected by a path of k edges. If no path connects
    two secrets, an answer can distinguish them.

    Args:
        epsilon: ε in nats per edge, > 0.
        graph: An undirected networkx graph with the nodes 0, …, n−1, without self-loops and parallel edges.

    Raises:
        InputError: ε is not positive, or the graph is of another kind or has other nodes.

    >>> import networkx as nx
    >>> GraphPrivacy("0.5", nx.path_graph(3))
    GraphPrivacy(epsilon=0.5, 3 secrets, 2 edges)
    """

    kind: ClassVar[str] = "graph"
    epsilon: Fraction
    graph: nx.Graph

    def __init__(self, epsilon: Number, graph: nx.Graph) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        check_graph(graph, every=True)
        object.__setattr__(self, "graph", _frozen(graph))

    def __repr__(self) -> str:
        shape = f"{self.size} secrets, {self.graph.number_of_edges()} edges"
        return f"GraphPrivacy(epsilon={exact_text(self.epsilon)}, {shape})"

    @property
    def size(self) -> int:
        """The number of secrets."""
        return int(self.graph.number_of_nodes())

    @property
    def policy_graph(self) -> nx.Graph:
        """The policy graph."""
        return self.graph

    @property
    def edges(self) -> Integers:
        """The edges as an integer array of shape (k, 2)."""
        return np.array(sorted(tuple(sorted(edge)) for edge in self.graph.edges), dtype=np.int64).reshape(-1, 2)

    def stated(self) -> tuple[Stated, ...]:
        """Return the statement that bounds both directions of every edge."""
        return (Stated.graph(self.epsilon, self.edges),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement with the given statements.

        Args:
            stated: A list of exactly one statement.
            secrets: The number of secrets.

        Returns:
            The requirement.
        """
        import networkx as nx

        stated = check_stated(stated, 1)
        (only,) = stated
        graph = nx.empty_graph(secrets)
        graph.add_edges_from(only.arrays["edges"].tolist())
        return cls(only.numbers["epsilon"], graph)

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Self:
        """Return the requirement on a subset of the secrets, with the edges between them.

        Args:
            secrets: The ascending indices of the subset. The result numbers the secrets of the subset from 0.
            floors: Ignored, because the requirement has no floors.

        Returns:
            The requirement on the subset.
        """
        import networkx as nx

        chosen = as_indices(secrets, "secrets", self.size)
        number = {secret: index for index, secret in enumerate(chosen.tolist())}
        kept = nx.empty_graph(len(number))
        kept.add_edges_from((number[s], number[t]) for s, t in self.graph.subgraph(number).edges())
        return with_fields(self, graph=nx.freeze(kept))

    def title(self, words: Words) -> str:
        """Return the name of the requirement with its number of edges.

        Args:
            words: Ignored, because edges have no distance.

        Returns:
            The name for reports.
        """
        edges = len(self.edges)
        return f"graph privacy, ε per edge ({edges} edge{'' if edges == 1 else 's'})"

    def promise(self, words: Words) -> str:
        """Describe the largest change of the odds between the ends of an edge.

        Args:
            words: The object that formats numbers.

        Returns:
            The end of the sentence "Anyone who sees an answer can …".
        """
        factor = words.factor(float(self.epsilon))
        return (
            f"shift the odds between two secrets joined by an edge of the policy graph by a factor of at most {factor}"
        )


def _frozen(graph: nx.Graph) -> nx.Graph:
    import networkx as nx

    plain = nx.Graph()
    plain.add_nodes_from(range(graph.number_of_nodes()))
    plain.add_edges_from(graph.edges())
    return nx.freeze(plain)
