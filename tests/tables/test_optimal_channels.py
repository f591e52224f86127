"""Optimal channels for one count and one attribute: closed forms, and the remapped geometric mechanism in fractions."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from mechdesign.errors import InputError, RevealedWarning
from mechdesign.mechanisms._finite import Geometric
from mechdesign.tables._domain import Domain
from mechdesign.tables._optimal import optimal_attribute, optimal_count
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


def remapped(channel, prior, cost):
    """Return the expected cost of a channel after the best remap of its answers."""
    return ((prior[:, None] * channel).T @ cost).min(axis=1).sum()


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
    assert remapped(floats, np.full(size, 1 / size), distance) == pytest.approx(float(wanted), rel=1e-12)


def test_the_remapped_geometric_mechanism_is_optimal_and_nothing_is_better():
    prior, distance = np.arange(1, 8) / 28, np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    for epsilon in (0.2, 0.7, 1.5):
        made = optimal_count(6, epsilon, prior=prior).certificate
        geometric = Geometric(epsilon, 7).matrix()
        plain = (prior[:, None] * geometric * distance).sum()
        best = remapped(geometric, prior, distance)
        assert best == pytest.approx(made.expected_cost, rel=1e-7)
        assert all(made.lower_bound <= other for other in (best, plain, (prior @ distance).min()))


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
