"""Exponential, geometric and randomised response: their laws, their exact channels, and answers within a component."""

from __future__ import annotations

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.certify._privacy import check, realised
from mechdesign.errors import InputError
from mechdesign.graphs._builders import components
from mechdesign.measures import _utility as metrics
from mechdesign.mechanisms._kinds import HULLED, MECHANISMS


def mechanisms(epsilon: object = 1) -> list[md.mechanisms.FiniteMechanism]:
    line = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    return [
        md.mechanisms.Exponential(epsilon, line),
        md.mechanisms.Geometric(epsilon, 5),
        md.mechanisms.RandomisedResponse(epsilon, 5),
        md.mechanisms.Exponential.of_graph(epsilon, md.graphs.blocks(md.Domain.grid(4, 2, 4.0, 2.0), 2)),
        md.mechanisms.RandomisedResponse.of_graph(epsilon, nx.Graph([(0, 1), (1, 2), (4, 5)])),
        md.mechanisms.Geometric.of_graph(epsilon, nx.Graph([(3, 1), (1, 7), (7, 2)])),
    ]


@pytest.mark.parametrize("epsilon", ["0.001", 1, "7/3", 40])
def test_channels_keep_the_guarantee_and_are_close_to_the_law(epsilon):
    for mechanism in mechanisms(epsilon):
        channel = mechanism.channel()
        law = mechanism.matrix()
        np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-14, err_msg=repr(mechanism))
        np.testing.assert_allclose(channel.matrix, law, atol=1e-8, err_msg=repr(mechanism))
        assert check(channel.numerators, 62, mechanism.bound) is None, mechanism
        assert (channel.numerators.sum(axis=1) == 2**62).all(), mechanism


def test_the_guarantee_is_tight():
    for which in (1, 2, 5):
        mechanism = mechanisms()[which]
        assert realised(mechanism.channel().numerators, 62, mechanism.bound) == pytest.approx(1, abs=1e-9), mechanism


def test_closed_forms():
    a = math.exp(-0.5)
    geometric = md.mechanisms.Geometric(0.5, 4).matrix()
    assert geometric[1, 0] == pytest.approx(a / (1 + a))
    assert geometric[1, 2] == pytest.approx((1 - a) / (1 + a) * a)
    response = md.mechanisms.RandomisedResponse(2, 7).matrix()
    assert 1 - response[0, 0] == pytest.approx(6 / (6 + math.exp(2)))
    exponential = md.mechanisms.Exponential(3, [[0, 2], [2, 0]]).matrix()
    assert exponential[0, 1] / exponential[0, 0] == pytest.approx(math.exp(-3))
    assert md.mechanisms.Geometric(1, 1).channel().numerators.tolist() == [[2**62]]


def test_randomised_response_is_what_the_linear_program_finds():
    found = md.design(md.Problem(md.Prior.uniform(4), 1 - np.eye(4), [md.GraphPrivacy(1, md.graphs.complete(4))]))
    law = md.mechanisms.RandomisedResponse(1, 4).channel()
    assert found.certificate.expected_cost == pytest.approx(1 - law.matrix[0, 0], abs=1e-9)


@pytest.mark.slow
@given(st.integers(2, 6), st.fractions(Fraction(1, 100), 5), st.integers(0, 10**6))
def test_any_metric_and_any_graph(n, epsilon, seed):
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(n, 2)).round(3)
    distance = np.sqrt(((places[:, None] - places) ** 2).sum(axis=-1))
    mechanism = md.mechanisms.Exponential(epsilon, distance)
    assert check(mechanism.channel().numerators, 62, mechanism.bound) is None
    graph = nx.gnp_random_graph(n, 0.4, seed=seed)
    response = md.mechanisms.RandomisedResponse.of_graph(epsilon, graph)
    channel = response.channel()
    assert check(channel.numerators, 62, response.bound) is None
    for s, t in graph.edges:
        assert (channel.numerators[s] > 0).tolist() == (channel.numerators[t] > 0).tolist()
    apart = np.isinf(response.distance)
    assert not channel.numerators[apart].any()


def test_samples_are_nodes_of_the_component():
    mechanism = md.mechanisms.RandomisedResponse.of_graph(1, nx.Graph([(2, 5), (7, 9)]))
    drawn = mechanism.sample(5, 2000, rng=1)
    assert set(drawn.tolist()) == {2, 5}
    assert (drawn == 5).mean() == pytest.approx(math.e / (1 + math.e), abs=0.04)
    assert mechanism.sample(9).shape == (1,)


def test_levels_and_degrees_are_those_of_the_metric():
    far = md.mechanisms.Exponential(1, [[0, 5, 1], [5, 0, 5], [1, 5, 0]], nx.path_graph(3))
    assert far.level() == 5
    assert far.degrees() == {0: 2, 1: 1, 2: 2}
    for mechanism in [far, *mechanisms()]:
        logarithm = np.full((len(mechanism.nodes),) * 2, -np.inf)
        law = mechanism.matrix()
        np.log(law, out=logarithm, where=law > 0)
        with np.errstate(invalid="ignore"):
            loss = np.nan_to_num(logarithm[:, None] - logarithm, nan=0.0, posinf=np.inf).max(axis=2)
        assert loss.max() <= mechanism.level() + 1e-9, mechanism
        degrees = (loss <= float(mechanism.epsilon) + 1e-9).sum(axis=1)
        assert (degrees >= [mechanism.degrees()[node] for node in mechanism.nodes.tolist()]).all(), mechanism


def test_columns_of_a_domain():
    domain = md.Domain.grid(3, 1, 3.0, 1.0)
    channel = md.mechanisms.Geometric.of_graph(1, nx.path_graph(2)).channel(domain)
    assert channel.numerators.shape == (2, 3)
    assert not channel.numerators[:, 2].any()


class TestWithinTheComponent:
    """Noise clipped to the secret's own component, as PGLP's experiments need (Figure 7)."""

    city = md.Domain.grid(6, 3, 6.0, 3.0, unit="km")
    graph = md.graphs.blocks(city, 3)

    @pytest.mark.parametrize("kind", [md.mechanisms.PlanarIsotropic, md.mechanisms.Laplace])
    def test_answers_stay_and_the_guarantee_holds(self, kind):
        channel = kind(1, self.city, self.graph).channel(self.city, within="component")
        labels = np.zeros(18, dtype=int)
        labels[components(self.graph)[1]] = 1
        assert not channel.numerators[labels[:, None] != labels].any()
        assert check(channel.numerators, 62, md.GraphPrivacy(1, self.graph).claims()[0]) is None

    def test_the_error_of_a_block(self):
        """The figure for a 3 × 3 clique at ε = 1: 1.340 km, against 4.59 of the noise as drawn and 1.0495 at best."""
        block = md.Domain.grid(3, 3, 3.0, 3.0)
        channel = md.mechanisms.PlanarIsotropic(1, block, md.graphs.complete(9)).channel(block, within="component")
        error = metrics.euclidean_error(channel, md.Prior.uniform(9), block)
        assert error == pytest.approx(1.340, abs=5e-4)


def test_traces_are_released_by_any_of_them():
    line = md.Domain.grid(5, 1, 5.0, 1.0)
    walk = md.MarkovChain(np.full((5, 5), 0.2))
    for name in MECHANISMS:
        trace = md.traces.Trace(line, md.graphs.line(5), 1, walk, md.Prior.uniform(5), name, rng=3)
        release = trace.step(2)
        assert release.certificate is not None
        assert release.certificate.holds
        assert release.posterior.sum() == pytest.approx(1)
        assert md.traces.compose([release]).bound > 0.99
        if name not in HULLED:
            with pytest.raises(InputError, match="releases states"):
                md.traces.Trace(line, md.graphs.line(5), 1, walk, md.Prior.uniform(5), name, snap=False)
