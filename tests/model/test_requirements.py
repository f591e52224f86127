from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import MetricWarning

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))


@each_row("value", [0.6, "0.6", "3/5", Decimal("0.6"), Fraction(3, 5), np.float64(0.6)])
def test_a_number_means_the_decimal_that_was_written(value):
    assert md.MetricPrivacy(value, LINE).epsilon == Fraction(3, 5)
    assert md.DistortionPrivacy(value, LINE).minimum == Fraction(3, 5)


def test_metric_privacy_bounds_every_ordered_pair():
    bound = md.MetricPrivacy(0.5, LINE).claims()[0]
    assert len(bound) == 6
    assert set(zip(bound.sources.tolist(), bound.targets.tolist(), bound.weights.tolist(), strict=True)) == {
        (0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0), (0, 2, 2.0), (2, 0, 2.0),
    }  # fmt: skip


def test_an_infinite_distance_asks_for_nothing():
    apart = np.array([[0, np.inf], [np.inf, 0]])
    assert len(md.MetricPrivacy(1, apart).claims()[0]) == 0


@each_row(("radius", "pairs"), [(0.5, 0), (1, 4), (1.9, 4), (2, 6)])
def test_threshold_privacy_bounds_pairs_up_to_and_including_the_radius(radius, pairs):
    assert len(md.ThresholdPrivacy(1, LINE, radius).claims()[0]) == pairs


def test_the_radius_includes_a_stored_distance_of_the_same_name():
    tenth = np.array([[0, 0.1], [0.1, 0]])  # the double 0.1 lies above the decimal 1/10
    assert len(md.ThresholdPrivacy(1, tenth, radius=0.1).claims()[0]) == 2
    assert len(md.ThresholdPrivacy(1, tenth, radius="0.1").claims()[0]) == 2


def test_graph_privacy_bounds_both_directions_of_every_edge():
    bound = md.GraphPrivacy(1, nx.path_graph(3)).claims()[0]
    assert sorted(zip(bound.sources.tolist(), bound.targets.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    loops = nx.Graph([(0, 0), (0, 1), (1, 1)])
    assert len(md.GraphPrivacy(1, loops).claims()[0]) == 2


def test_a_requirement_does_not_follow_later_changes_of_its_graph():
    graph = nx.path_graph(3)
    requirement = md.GraphPrivacy(1, graph)
    graph.add_edge(0, 2)
    assert len(requirement.claims()[0]) == 4
    with pytest.raises(nx.NetworkXError):
        requirement.graph.add_edge(0, 2)


def test_a_matrix_that_is_no_metric_warns_and_is_kept():
    odd = np.array([[0, 1, 5], [1, 0, 1], [5, 1, 0.0]])
    with pytest.warns(MetricWarning, match="triangle"):
        assert md.MetricPrivacy(1, odd).claims()[0].weights.max() == 5
    skew = np.array([[0, 1], [2, 0.0]])
    with pytest.warns(MetricWarning, match="symmetric"):
        md.MetricPrivacy(1, skew)


def test_estimates_may_differ_from_secrets():
    assert md.DistortionPrivacy(0, np.ones((5, 3))).size == 3
