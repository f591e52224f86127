"""Small models for the tests of releases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.traces._stage import Stage

Floats = NDArray[np.float64]

# The answers f(s1), ..., f(s6) of DPHMM, Example 3.2, and the graph of its Figure 3(b).
ANSWERS = np.array([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]], dtype=np.float64)
FIGURE_3B = nx.Graph()
FIGURE_3B.add_nodes_from(range(6))
FIGURE_3B.add_edges_from([(1, 2), (3, 4), (3, 5), (4, 5)])


def ring(n: int, stay: float = 0.5) -> Floats:
    """Return a walk that stays, or moves one state up or down, on a line that reflects."""
    matrix = stay * np.eye(n)
    for state in range(n):
        matrix[state, max(state - 1, 0)] += (1 - stay) / 2
        matrix[state, min(state + 1, n - 1)] += (1 - stay) / 2
    return matrix


def strip(n: int) -> md.Domain:
    """Return n cells of side 1 in a row."""
    return md.Domain.grid(n, 1, float(n), 1.0)


@contextmanager
def released(outputs: list[int]) -> Iterator[None]:
    """Let the next stages release these outputs, whatever the true state."""
    waiting = iter(outputs)

    def draw(self: Stage, state: int, rng: object = None) -> tuple[int, Floats]:
        output = next(waiting)
        return output, self.domain.points[output]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "draw", draw)
        yield
