"""Optimal channels for one count and one attribute: closed forms, and the remapped geometric mechanism in fractions."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError, RevealedWarning
from mechdesign.mechanisms._finite import Geometric
from mechdesign.tables._domain import Domain
from mechdesign.tables._optimal import compare_counts, find_remapped_cost, optimal_attribute, optimal_count
from mechdesign.tables._policy import Policy

LINE = Domain({"floor": range(5)})


def exact_geometric(alpha, size):
    """Return the truncated geometric mechanism on 0, …, size − 1 in fractions, alpha = e^−ε a fraction."""
    rows = []
    for count in range(size):
        row = [(1 - alpha) / (1 + alpha) * alpha ** abs(count - answer) for answer in range(size)]
        row[0], row[-1] = alpha**count / (1 + alpha), alpha ** (size - 1 - count) / (1 + alpha)
        assert sum(row) == 1
        rows.append(row)
    return rows


def exact_remapped(rows):
    """Return the expected absolute error after the best remap, uniform prior, in fractions."""
    size = len(rows)
    total = Fraction(0)
    for answer in range(size):
        total += min(
            sum(rows[count][answer] * abs(count - guess) for count in range(size)) / size for guess in range(size)
        )
    return total


def test_the_figures_of_five_counts():
    (found,) = compare_counts(4, [0.1])
    assert found.geometric == pytest.approx(1.728, abs=5e-4)
    assert found.geometric_remapped == pytest.approx(1.2, abs=1e-12)
    assert found.bound <= 1.2 <= found.optimal + 1e-9
    assert found.constant == pytest.approx(1.2)


@pytest.mark.parametrize("size", [2, 5, 8])
def test_the_remapped_geometric_mechanism_lies_in_the_bracket(size):
    for alpha in (Fraction(1, 10), Fraction(1, 3), Fraction(2, 3), Fraction(9, 10)):
        lie_in_the_bracket(alpha, size)


def lie_in_the_bracket(alpha, size):
    wanted = exact_remapped(exact_geometric(alpha, size))
    made = optimal_count(size - 1, -np.log(float(alpha)))
    assert made.certificate.lower_bound <= float(wanted) * (1 + 1e-12)
    assert made.certificate.expected_cost == pytest.approx(float(wanted), rel=1e-7)
    floats = Geometric(-np.log(float(alpha)), size).matrix()
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    assert find_remapped_cost(floats, np.full(size, 1 / size), distance) == pytest.approx(float(wanted), rel=1e-12)


def test_nothing_is_better_than_the_optimum_and_the_picture_shows_all():
    found = compare_counts(6, [0.2, 0.7, 1.5], prior=np.arange(1, 8) / 28)
    for each in found:
        others = (each.geometric, each.laplace, each.geometric_remapped, each.laplace_remapped, each.constant)
        assert all(each.bound <= other for other in others)
        assert each.geometric_remapped == pytest.approx(each.optimal, rel=1e-7)
        assert each.geometric_remapped <= each.geometric
        assert each.laplace_remapped <= each.laplace
    figure = md.figures.compare_counts(found, 6)
    assert len(figure.axes[0].lines) == 6


def test_rounded_laplace_noise_is_a_channel():
    from mechdesign.tables._optimal import _make_laplace_channel

    rows = _make_laplace_channel(0.7, 4)
    assert rows.sum(axis=1) == pytest.approx(1)
    assert rows[1, 1] == pytest.approx(1 - np.exp(-0.35))
    assert rows[0, 0] == pytest.approx(1 - 0.5 * np.exp(-0.35))
    assert rows == pytest.approx(rows[::-1, ::-1])


def test_an_attribute_on_a_line_is_a_count():
    made, count = optimal_attribute(Policy.threshold(LINE, 1), 0.5), optimal_count(4, 0.5)
    assert made.certificate.expected_cost == pytest.approx(count.certificate.expected_cost, rel=1e-9)


def test_what_no_edge_joins_is_answered_exactly():
    policy = Policy.partition(LINE, [0, 0, 1, 1, 2])
    with pytest.raises(InputError, match=r"1 of 5 secrets \(4\).*isolated=\"release\""):
        optimal_attribute(policy, 1, cost="hamming")
    with pytest.warns(RevealedWarning, match=r"^1 of 5 secrets \(4\) has an answer that no other secret can produce"):
        made = optimal_attribute(policy, 1, cost="hamming", isolated="release")
    assert made.certificate.revealed == (4,)
    # Randomised response within each block of two, and the truth alone in its block.
    flipped = 1 / (1 + np.e)
    assert made.certificate.expected_cost == pytest.approx(4 / 5 * flipped, rel=1e-9)
    assert made.channel.matrix[4, 4] == 1


def test_randomised_response_under_the_full_policy():
    made = optimal_attribute(Policy.full(LINE), 1, cost="hamming")
    assert made.certificate.expected_cost == pytest.approx(4 / (4 + np.e), rel=1e-9)


def test_larger_sensitivity_is_the_threshold_policy():
    made = optimal_count(4, 1, sensitivity=2)
    other = optimal_attribute(Policy.threshold(LINE, 2), 1)
    assert made.certificate.expected_cost == pytest.approx(other.certificate.expected_cost, rel=1e-9)
    graph = nx.Graph(next(iter(made.problem.requirements)).graph)
    assert sorted(map(sorted, graph.edges)) == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4]]


def test_values_without_numbers():
    made = optimal_attribute(Policy.full(Domain({"sex": ["f", "m"]})), 1, cost="hamming")
    assert made.certificate.expected_cost == pytest.approx(1 / (1 + np.e), rel=1e-9)


def test_several_attributes_add_up():
    domain = Domain({"x": range(3), "y": [0.0, 0.5]})
    made = optimal_attribute(Policy.attribute(domain), 1)
    assert made.problem.cost[0, 5] == pytest.approx(2.5)
    assert optimal_attribute(Policy.attribute(domain), 1, cost="squared").problem.cost[0, 5] == pytest.approx(4.25)
