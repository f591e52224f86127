"""Optimal channels for one count: closed forms, and the remapped geometric mechanism in fractions."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from mechdesign.mechanisms._finite import Geometric
from mechdesign.tables._count_channel import optimal_count


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


def test_larger_sensitivity_joins_more_counts():
    graph = nx.Graph(next(iter(optimal_count(4, 1, sensitivity=2).problem.requirements)).graph)
    assert sorted(map(sorted, graph.edges)) == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4]]
