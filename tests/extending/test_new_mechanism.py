"""A mechanism of one's own: a class with its law, from which channel and sampler are made."""

from __future__ import annotations

import networkx as nx
import numpy as np

import mechdesign as md
from mechdesign.mechanisms import FiniteMechanism, hops


# [mechanism]
class Permute(FiniteMechanism):
    """Permute-and-flip (McKenna and Sheldon 2020) with the number of hops as the score.

    Only the law is written here; from it the base class makes the certified channel and the exact sampler.
    """

    @classmethod
    def of_graph(cls, epsilon, graph):
        return cls(epsilon, hops(graph), graph)

    def _masses(self, rate):
        accept = np.exp(-rate / 2 * self.distance)
        masses = np.zeros_like(accept)
        for row, chances in zip(masses, accept, strict=True):
            for answer, chance in enumerate(chances):
                # The chance that all who come earlier in a random order decline: an integral over when it comes.
                others = np.delete(chances, answer)
                nodes, weights = np.polynomial.legendre.leggauss(len(others) // 2 + 1)
                times = (nodes + 1) / 2
                row[answer] = chance * (weights / 2 @ np.prod(1 - times[:, None] * others, axis=1))
        return masses / masses.sum(axis=1, keepdims=True)


# [/mechanism]


def test_it_keeps_its_guarantee():
    mechanism = Permute.of_graph(1, md.graphs.complete(5))
    found = md.design(md.Problem(md.Prior.uniform(5), 1 - np.eye(5), [md.GraphPrivacy(1, nx.complete_graph(5))]))
    error = 1 - np.diag(mechanism.channel().matrix).mean()
    # Among all channels for this graph randomised response is optimal, and permute-and-flip can only come close.
    assert (
        found.certificate.expected_cost
        <= error
        < 1 - np.diag(md.mechanisms.Exponential.of_graph(1, nx.complete_graph(5)).channel().matrix).mean()
    )


def test_from_a_trace_to_a_verified_bundle(tmp_path):
    # [trace]
    city = md.Domain.grid(4, 2, 4.0, 2.0, unit="km")
    walk = md.MarkovChain(np.full((8, 8), 1 / 8))

    def build(epsilon, domain, graph, hull):
        return Permute.of_graph(epsilon, graph)

    trace = md.traces.Trace(city, md.graphs.blocks(city, 2), 1, walk, md.Prior.uniform(8), build)
    # [/trace]
    (stage,) = trace.table(1)
    md.save(stage.design, tmp_path / "step", report=False)
    assert md.verify(tmp_path / "step").epsilon[0] <= 1
