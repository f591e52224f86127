"""Noise shaped like the sensitivity hull: the policy-based planar isotropic mechanism."""

from __future__ import annotations

import networkx as nx

from mechdesign.graphs._geometry._hull import SensitivityHull
from mechdesign.graphs._constraints import components
from mechdesign.graphs._exposure import degree_of_protection
from mechdesign.graphs._exposure import component_hulls
from mechdesign.graphs._exposure import sensitivity_hull
from mechdesign.mechanisms.knorm import HullChoice
from mechdesign.mechanisms.knorm import KNormMechanism
from mechdesign.base._arrays import Floats

__all__ = ["PlanarIsotropic"]


def __dir__() -> list[str]:
    return sorted(__all__)


class PlanarIsotropic(KNormMechanism):
    """The policy-based planar isotropic mechanism, P-PIM (PGLP, Cao et al. 2020, Algorithm 2).

    `PlanarIsotropic(epsilon, points, graph, hull="component")`: `epsilon` is in nats per edge; `points` are the places
    f(s), a domain or an array (n, d) with any d ≥ 1; the nodes of `graph` are indices into them. The output has the
    density ε^k / (k! vol K) exp(-ε ‖z - f(s)‖_K), with K the sensitivity hull and k its *affine* dimension: two nodes
    get noise on the line through them, of mean K-norm 1/ε.

    With ``hull="component"`` K comes from the edges of the node's own connected component. A node without edges then
    gets **no noise**: its place is released as it is. With ``hull="graph"`` K comes from all edges (DPHMM, Xiao et al.
    2017), and only a graph without any edge gives no noise. Raises InputError for an ε that is not positive, points
    that are not finite, a graph with other nodes, and a `hull` that is neither.
    """

    @staticmethod
    def _bodies(places: Floats, graph: nx.Graph, hull: HullChoice) -> list[SensitivityHull]:
        if hull == "component":
            return component_hulls(places, graph)
        return [sensitivity_hull(places, graph)] * len(components(graph))

    def degrees(self) -> dict[int, int]:
        """Return, for every node, how many nodes are released with an equal hull and lie within it, itself included."""
        shared = all(body is self._hulls[0] for body in self._hulls)
        found = degree_of_protection(self.points, self.graph, hull=self._hulls[0] if shared else "component")
        assert isinstance(found, dict)
        return found
