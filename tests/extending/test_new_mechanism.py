"""Add a mechanism from outside the package: a class, a registration, and it can be named in a specification."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.mechanisms import MECHANISMS, FiniteMechanism, MechanismKind, hops, register


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


KIND = MechanismKind("permute-and-flip", lambda epsilon, _, graph, __: Permute.of_graph(epsilon, graph), "a new one")
# [/mechanism]


# [specification]
SPECIFICATION = """
[domain]
grid = { columns = 4, rows = 2, width = 4.0, height = 2.0, unit = "km" }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 1
blocks = 2
[release]
mechanism = "permute-and-flip"
transition = { neighbours = 8 }
"""
# [/specification]


@pytest.fixture
def registered():
    register(KIND)
    yield
    MECHANISMS.unregister(KIND.name)


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


@pytest.mark.usefixtures("registered")
def test_from_specification_to_verified_export(tmp_path):
    (tmp_path / "city.toml").write_text(SPECIFICATION)
    (tmp_path / "trace.csv").write_text("0\n1\n5\n")
    done = CliRunner().invoke(
        main, ["release", str(tmp_path / "city.toml"), str(tmp_path / "trace.csv"), "-o", str(tmp_path / "released")]
    )
    assert done.exit_code == 0, done.output
    # The same from Python: each step settles a channel, and its proof is exported like that of an optimal one.
    city = md.Domain.grid(4, 2, 4.0, 2.0, unit="km")
    walk = md.MarkovChain(np.full((8, 8), 1 / 8))
    trace = md.traces.Trace(city, md.graphs.blocks(city, 2), 1, walk, md.Prior.uniform(8), "permute-and-flip")
    (stage,) = trace.table(1)
    md.save(stage.design, tmp_path / "step", report=False)
    assert md.verify(tmp_path / "step").epsilon[0] <= 1


def test_without_registration_it_is_unknown(tmp_path):
    (tmp_path / "city.toml").write_text(SPECIFICATION)
    (tmp_path / "trace.csv").write_text("0\n")
    done = CliRunner().invoke(main, ["release", str(tmp_path / "city.toml"), str(tmp_path / "trace.csv")])
    assert done.exit_code != 0
    assert "release.mechanism" in done.output
