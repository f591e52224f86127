from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import each_row

from mechdesign.errors import InputError
from mechdesign.model._markov import MarkovChain, smooth
from mechdesign.model._prior import Prior

FEW = settings(max_examples=50)


def weights(smallest, largest=9):
    """Give square matrices of whole numbers without an empty row."""
    return st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(smallest, largest), min_size=n, max_size=n).filter(any), min_size=n, max_size=n
        )
    )


def chain_of(rows):
    """Return the chain with rows in these proportions, and its exact matrix."""
    exact = [[Fraction(x, sum(row)) for x in row] for row in rows]
    return MarkovChain([[float(x) for x in row] for row in exact]), exact


def exact_stationary(exact):
    """Solve πP = π, Σπ = 1 by Gaussian elimination in Fractions, for a chain with one solution."""
    n = len(exact)
    system = [[exact[j][i] - (i == j) for j in range(n)] + [Fraction(0)] for i in range(n)]
    system[-1] = [Fraction(1)] * (n + 1)
    for column in range(n):
        pivot = next(row for row in range(column, n) if system[row][column] != 0)
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [x / system[column][column] for x in system[column]]
        for row in range(n):
            if row != column:
                factor = system[row][column]
                system[row] = [a - factor * b for a, b in zip(system[row], system[column], strict=True)]
    return [row[-1] for row in system]


def test_is_kept_as_given_and_cannot_be_changed():
    values = np.array([[0.5, 0.5], [0.0, 1.0]])
    chain = MarkovChain(values)
    values[0, 0] = 9.0
    assert chain.matrix.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert chain.size == len(chain) == 2
    with pytest.raises(ValueError, match="read-only"):
        chain.matrix[0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        chain.matrix = values
    assert (np.ones(2) @ np.asarray(chain)).tolist() == [0.5, 1.5]
    copy = np.array(chain, copy=True)
    copy[0, 0] = 9.0
    assert chain.matrix[0, 0] == 0.5


@each_row(("error", "accepted"), [(0.9e-9, True), (1.1e-9, False), (-1.1e-9, False)])
def test_both_sides_of_the_tolerance(error, accepted):
    rows = [[1.0, 0.0], [0.5, 0.5 + error]]
    if accepted:
        MarkovChain(rows)
    else:
        with pytest.raises(InputError, match="normalise each row") as raised:
            MarkovChain(rows)
        assert raised.value.path == "matrix[1]"
        assert raised.value.value == pytest.approx(1 + error)


traces = st.lists(st.lists(st.integers(0, 3), max_size=12), max_size=5)


@FEW
@given(traces, st.sampled_from([0.0, 0.25, 2.0]))
def test_from_traces_against_counting_by_hand(given_traces, smoothing):
    counts = [[Fraction(smoothing)] * 4 for _ in range(4)]
    for trace in given_traces:
        for a, b in itertools.pairwise(trace):
            counts[a][b] += 1
    stuck = [i for i in range(4) if sum(counts[i]) == 0]
    arrays = (np.array(trace, dtype=np.int64) for trace in given_traces)
    if stuck:
        with pytest.raises(InputError, match=f"leaves state {stuck[0]} "):
            MarkovChain.from_traces(arrays, 4, smoothing)
        return
    chain = MarkovChain.from_traces(arrays, 4, smoothing)
    for i, j in itertools.product(range(4), repeat=2):
        assert chain.matrix[i, j] == float(counts[i][j] / sum(counts[i]))


@FEW
@given(weights(0), st.data())
def test_reverse_against_bayes(rows, data):
    chain, exact = chain_of(rows)
    n = len(rows)
    counts = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any))
    prior = [Fraction(c, sum(counts)) for c in counts]
    initial = Prior.from_counts(counts)
    reached = [sum(prior[i] * exact[i][j] for i in range(n)) for j in range(n)]
    if not all(reached):
        with pytest.raises(InputError, match=f"state {reached.index(0)} cannot be reached"):
            chain.reverse(initial)
        return
    backward = chain.reverse(initial)
    np.testing.assert_array_equal(chain.reverse(initial.probabilities).matrix, backward.matrix)
    for i, j in itertools.product(range(n), repeat=2):
        assert backward.matrix[j, i] == pytest.approx(float(prior[i] * exact[i][j] / reached[j]), rel=1e-14, abs=0)


def reversed_by_bayes(rows, prior):
    """Return Pr(before = i | now = j) at (j, i) in Fractions; the row of a state that is never entered is None."""
    joint = [[weight * p for p in row] for weight, row in zip(prior, rows, strict=True)]
    columns = [list(column) for column in zip(*joint, strict=True)]
    return [[x / sum(column) for x in column] if sum(column) else None for column in columns]


def estimated(counts, smoothing):
    """Return the exact rows that counts give, with the smoothing added; a row without counts stays where it is."""
    added = [[Fraction(count) + smoothing for count in row] for row in counts]
    stay = [[Fraction(i == j) for j in range(len(counts))] for i in range(len(counts))]
    return [[x / sum(row) for x in row] if sum(row) else stay[i] for i, row in enumerate(added)]


def assert_rows(matrix, exact):
    for place, row in enumerate(exact):
        # Nobody enters the state: as a chain it stays there.
        row = [Fraction(place == j) for j in range(len(exact))] if row is None else row
        np.testing.assert_allclose(matrix[place], [float(x) for x in row], rtol=1e-13, err_msg=f"row {place}")


@FEW
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n),
            st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any),
        )
    ),
    st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1), Fraction(5)]),
)
def test_the_reverse_of_counts_keeps_their_smoothing_and_the_prior(given_counts, smoothing):
    counts, weights = given_counts
    prior = [Fraction(weight, sum(weights)) for weight in weights]
    chain = MarkovChain.from_counts(counts, float(smoothing), ends="stay")
    smoothed, plain = (reversed_by_bayes(estimated(counts, s), prior) for s in (smoothing, Fraction(0)))
    if None in smoothed:
        with pytest.raises(InputError, match="cannot be reached"):
            chain.reverse([float(p) for p in prior])
        return
    backward = chain.reverse([float(p) for p in prior])
    assert_rows(backward.matrix, smoothed)
    assert_rows(backward.unsmoothed().matrix, plain)
    assert_rows(chain.unsmoothed().matrix, estimated(counts, Fraction(0)))
    # Further smoothing by Equation (28) lets the counts be.
    again = smooth(backward, 0.5)
    assert again.smoothing == max(0.5, float(smoothing))
    assert_rows(again.unsmoothed().matrix, plain)


def test_the_reverse_of_a_smoothed_chain():
    chain = MarkovChain.from_counts([[0, 3], [1, 1]], smoothing=1)
    backward = chain.reverse([0.9, 0.1])
    # Pr(0 -> 1) = 4/5 smoothed and 1 unsmoothed, Pr(1 -> 1) = 1/2 both.
    np.testing.assert_allclose(backward.matrix[1], [0.72 / 0.77, 0.05 / 0.77], rtol=1e-14)
    np.testing.assert_allclose(backward.unsmoothed().matrix[1], [0.9 / 0.95, 0.05 / 0.95], rtol=1e-14)


@FEW
@given(weights(1))
def test_reversing_twice_from_the_stationary_distribution_gives_the_chain_back(rows):
    chain, _ = chain_of(rows)
    stationary = chain.stationary()
    again = chain.reverse(stationary).reverse(stationary)
    np.testing.assert_allclose(again.matrix, chain.matrix, rtol=1e-12)


def test_reverse_keeps_tiny_probabilities():
    chain = MarkovChain([[1.0, 1e-200], [1.0, 3e-200]])
    assert chain.reverse([0.5, 0.5]).matrix[1].tolist() == [0.25, 0.75]


@FEW
@given(weights(1, 1000))
def test_stationary_against_fractions(rows):
    chain, exact = chain_of(rows)
    stationary = chain.stationary()
    np.testing.assert_allclose(stationary.probabilities, [float(x) for x in exact_stationary(exact)], rtol=1e-13)
    np.testing.assert_allclose(stationary.probabilities @ chain.matrix, stationary.probabilities, rtol=1e-13)


def test_stationary_of_chains_that_are_hard_for_linear_solvers():
    # Two states that are hardly ever left: the answer is the ratio of two tiny numbers.
    slow = MarkovChain([[1.0, 1e-20], [3e-20, 1.0]])
    np.testing.assert_allclose(slow.stationary().probabilities, [0.75, 0.25], rtol=1e-14)
    # A periodic chain, whose powers do not converge.
    assert MarkovChain([[0.0, 1.0], [1.0, 0.0]]).stationary().probabilities.tolist() == [0.5, 0.5]
    # A ladder whose probabilities span 300 orders of magnitude.
    n = 31
    ladder = np.diag(np.full(n - 1, 1e-10), 1) + np.diag(np.full(n - 1, 1 - 1e-10), -1)
    ladder += np.diag(1 - ladder.sum(axis=1))
    probabilities = MarkovChain(ladder).stationary().probabilities
    np.testing.assert_allclose(probabilities[1:] / probabilities[:-1], 1e-10 / (1 - 1e-10), rtol=1e-10)
    # Upside down and longer, the ratio of the last to the first is beyond float64.
    n = 41
    ladder = np.diag(np.full(n - 1, 1 - 1e-10), 1) + np.diag(np.full(n - 1, 1e-10), -1)
    ladder += np.diag(1 - ladder.sum(axis=1))
    probabilities = MarkovChain(ladder).stationary().probabilities[-25:]
    np.testing.assert_allclose(probabilities[:-1] / probabilities[1:], 1e-10 / (1 - 1e-10), rtol=1e-10)


def test_stationary_gives_zero_to_states_left_for_ever():
    chain = MarkovChain([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    stationary = chain.stationary()
    assert stationary.probabilities.tolist() == [0.0, 0.5, 0.5]
    assert stationary.zeros.tolist() == [0]
    assert MarkovChain([[1.0]]).stationary().probabilities.tolist() == [1.0]


def test_stationary_is_refused_when_there_are_several():
    with pytest.raises(InputError, match=r"2 closed sets of states.* (1 and 2|2 and 1)"):
        MarkovChain([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).stationary()


@FEW
@given(weights(0), st.floats(1e-6, 10).map(Fraction))
def test_smooth_is_equation_28(rows, s):
    chain, exact = chain_of(rows)
    smoothed = smooth(chain, float(s))
    for i, j in itertools.product(range(len(rows)), repeat=2):
        expected = (exact[i][j] + s) / sum(x + s for x in exact[i])
        assert smoothed.matrix[i, j] == pytest.approx(float(expected), rel=1e-14)
    np.testing.assert_array_equal(smooth(chain.matrix, float(s)).matrix, smoothed.matrix)


def test_smoothing_runs_from_the_chain_to_uniform():
    identity = np.eye(4)
    np.testing.assert_array_equal(smooth(identity, 0).matrix, identity)
    np.testing.assert_allclose(smooth(identity, 1e100).matrix, 0.25)
