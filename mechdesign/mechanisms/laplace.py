"""Independent Laplace noise on each coordinate: the policy-based Laplace mechanism."""

from __future__ import annotations

import networkx as nx
import numpy as np

from mechdesign.graphs._geometry._hull import SensitivityHull
from mechdesign.graphs._builders import edge_array
from mechdesign.graphs._constraints import components
from mechdesign.graphs._constraints import membership
from mechdesign.mechanisms.knorm import HullChoice
from mechdesign.mechanisms.knorm import KNormMechanism
from mechdesign.base._arrays import Floats

__all__ = ["Laplace"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Laplace(KNormMechanism):
    """The policy-based Laplace mechanism, P-LM (PGLP, Cao et al. 2020, Algorithm 1).

    `Laplace(epsilon, points, graph, hull="component")`: arguments as for `PlanarIsotropic`. Each coordinate gets
    independent Laplace noise of scale S/ε, with S the largest ‖f(s) - f(s')‖₁ over the *edges* of the node's component,
    or of the graph (Definition 7 says all pairs of the component; edges suffice, as losses add up along a path). That
    is the K-norm mechanism of the cross-polytope S·B₁, which contains the sensitivity hull.

    The noise fills all d dimensions unless S = 0, as for a node without edges under ``hull="component"``: then there is
    **no noise**, and the place is released as it is.
    """

    @staticmethod
    def _bodies(places: Floats, graph: nx.Graph, hull: HullChoice) -> list[SensitivityHull]:
        edges, parts = edge_array(graph), components(graph)
        owner = membership(parts, len(places))[edges[:, 0]]
        lengths = np.abs(places[edges[:, 0]] - places[edges[:, 1]]).sum(axis=1)
        largest = np.zeros(len(parts))
        np.maximum.at(largest, owner, lengths)
        if hull == "graph":
            largest[:] = largest.max()
        axes = np.eye(places.shape[1])
        bodies = {length: SensitivityHull.of(length * axes) for length in np.unique(largest).tolist()}
        return [bodies[length] for length in largest.tolist()]

    def _noise(self, body: SensitivityHull, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
        size = (*shape, self.points.shape[1])
        return generator.laplace(0.0, body.radius / float(self.epsilon), size)
