"""Graph privacy: the two ends of every edge of a policy graph are indistinguishable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from mechdesign.base._arrays import Integers, read_only, require_below
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import pairs
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._requirement import Requirement, check_stated
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
    edges: Integers
    secrets: int

    def __init__(self, epsilon: Number, graph: nx.Graph) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        check_graph(graph, every=True)
        self._keep(np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2), graph.number_of_nodes())

    def _keep(self, edges: Integers, size: int) -> None:
        """Set the sorted edges and the number of secrets."""
        proper = np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1)
        object.__setattr__(self, "edges", read_only(np.unique(proper, axis=0)))
        object.__setattr__(self, "secrets", size)

    def __repr__(self) -> str:
        shape = f"{self.size} secrets, {len(self.edges)} edges"
        return f"GraphPrivacy(epsilon={exact_text(self.epsilon)}, {shape})"

    @property
    def size(self) -> int:
        """The number of secrets."""
        return self.secrets

    @cached_property
    def graph(self) -> nx.Graph:
        """The policy graph."""
        # Imported late, because a verification needs no graph.
        import networkx as nx

        graph = nx.empty_graph(self.size)
        graph.add_edges_from(self.edges.tolist())
        return nx.freeze(graph)

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
        (only,) = check_stated(stated, 1)
        edges = pairs(only.arrays["edges"], "edges")
        require_below(edges, secrets, "edges")
        made = object.__new__(cls)
        object.__setattr__(made, "epsilon", positive(only.numbers["epsilon"], "epsilon"))
        made._keep(edges, secrets)
        return made

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
