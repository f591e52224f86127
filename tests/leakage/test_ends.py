"""States that nobody was seen to leave, or to enter: what is kept of them, and what their rows may be."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sparse
from leakage_brute import best_of, close, subset_points

from mechdesign import leakage
from mechdesign.data.trajectories import Trajectory, Visits, to_grid
from mechdesign.errors import BudgetWarning, CorrelationWarning, InputError
from mechdesign.leakage._correlations import mismatch
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain
from mechdesign.model._open_chain import Ends

# Steps between the places a, b and c, and to the destination e, which no step leaves.
COUNTS = np.array([[0, 6, 4, 0], [3, 0, 6, 1], [2, 2, 0, 6], [0, 0, 0, 0]])
STEPS = [[i, j] for i, j in itertools.product(range(4), repeat=2) for _ in range(COUNTS[i, j])]
KNOWN = COUNTS[:3] / COUNTS[:3].sum(axis=1, keepdims=True)


def counted_backwards(rows: np.ndarray, epsilon: float, releases: int) -> float:
    """Return the forward leakage of the first of several releases, by the definition of the loss."""
    points = subset_points(rows)
    leaked = epsilon
    for _ in range(releases - 1):
        leaked = best_of(points, leaked) + epsilon
    return leaked


@pytest.mark.parametrize(("ends", "value"), [("stay", 0.6), ("mixture", 0.3881), ("any", 0.6)])
def test_a_destination(ends: Ends, value: float) -> None:
    found = leakage.correlations_from_traces(STEPS, 4, ends=ends)
    assert (found.states.tolist(), found.steps) == ([0, 1, 2, 3], 30)
    assert (found.never_left.tolist(), found.never_entered.tolist()) == ([3], [])
    np.testing.assert_allclose(found.forward.matrix[:3], KNOWN, rtol=1e-15)
    assert found.forward.matrix[3].tolist() == [0, 0, 0, float(ends == "stay")]
    # People who come to e were at b or c before.
    np.testing.assert_allclose(found.backward.matrix[3], [0, 1 / 7, 6 / 7, 0], rtol=1e-15)
    assert float(leakage.forward([0.1] * 6, found.forward).max()) == pytest.approx(value, abs=5e-5)
    if ends == "mixture":
        assert close(leakage.forward([0.1] * 6, found.forward).max(), counted_backwards(KNOWN, 0.1, 6))
    # Without the state, in rows divided anew, less would leak than under any of the three.
    left_out = COUNTS[:3, :3] / COUNTS[:3, :3].sum(axis=1, keepdims=True)
    assert counted_backwards(left_out, 0.1, 6) < 0.29 < value


def test_backwards_is_forwards_of_traces_read_backwards() -> None:
    generator = np.random.default_rng(5)
    for ends in ("stay", "mixture", "any"):
        traces = [generator.integers(0, 5, 4) for _ in range(3)]
        ahead = leakage.correlations_from_traces(traces, 5, ends=ends)
        back = leakage.correlations_from_traces([trace[::-1] for trace in traces], 5, ends=ends)
        np.testing.assert_allclose(ahead.backward.matrix, back.forward.matrix, rtol=1e-14)
        assert type(ahead.backward) is type(back.forward)
        assert ahead.never_entered.tolist() == back.never_left.tolist()


def rows(seed: int, n: int, missing: int, zeros: bool = False) -> np.ndarray:
    """Return a random matrix (n, n) whose last rows are missing."""
    generator = np.random.default_rng(seed)
    weights = generator.exponential(size=(n, n)) + 0.05
    if zeros:
        weights[0, 1] = 0.0
    weights[n - missing :] = 0.0
    totals = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, totals, out=np.zeros((n, n)), where=totals > 0)


def test_one_row_that_may_be_any() -> None:
    generator = np.random.default_rng(4)
    for n, (seed, alpha) in itertools.product((2, 3, 4), ((1, 0.2), (2, 1.0), (3, 4.0))):
        matrix = rows(seed, n, 1)
        value = leakage.LossFunction(leakage.OpenChain(matrix, "any"))(alpha)
        assert value == pytest.approx(math.log1p((1 - matrix[:-1].min()) * math.expm1(alpha)), rel=1e-15)
        filled = [np.vstack([matrix[:-1], row]) for row in np.eye(n)]
        # The worst row is certain of one state, and no row is worse.
        assert close(value, max(best_of(subset_points(each), alpha) for each in filled))
        for row in generator.dirichlet(np.full(n, 0.3), 10):
            assert leakage.LossFunction(np.vstack([matrix[:-1], row]))(alpha) <= value * (1 + 1e-12)


@pytest.mark.parametrize(("missing", "zeros"), [(1, True), (2, False), (2, True)])
def test_several_rows_that_may_be_any_or_zeros_elsewhere(missing: int, zeros: bool) -> None:
    matrix = rows(7, 4, missing, zeros)
    loss = leakage.LossFunction(leakage.OpenChain(matrix, "any"))
    assert loss.identity
    assert loss(1.3) == 1.3
    worst = 0.0
    for chosen in itertools.product(range(4), repeat=missing):
        worst = max(worst, best_of(subset_points(np.vstack([matrix[: 4 - missing], np.eye(4)[list(chosen)]])), 1.3))
    assert worst == pytest.approx(1.3, rel=1e-15)


def test_a_mixture_adds_no_pair() -> None:
    generator = np.random.default_rng(2)
    for missing, seed in itertools.product((1, 2, 3), range(3)):
        matrix = rows(seed, 4, missing, zeros=seed == 2)
        known = matrix[: 4 - missing]
        loss = leakage.LossFunction(leakage.OpenChain(matrix, "mixture"))
        for alpha in (0.1, 1.0, 5.0):
            truth = best_of(subset_points(known), alpha)
            assert close(loss(alpha), truth)
            mixed = generator.dirichlet(np.full(len(known), 0.5), missing) @ known
            assert best_of(subset_points(np.vstack([known, mixed])), alpha) <= truth * (1 + 1e-12) + 1e-14


def test_what_any_row_leaks_for_ever() -> None:
    matrix = rows(1, 3, 1)
    loss = leakage.LossFunction(leakage.OpenChain(matrix, "any"))
    last = math.log(1 / (1 - matrix[:2].min()))
    # x = ln(1 + Q(e^x − 1)) + ε ends for ε below ln(1/Q), and only there.
    for share, finite in ((0.9, True), (0.999, True), (1.001, False)):
        epsilon = share * last
        limit = loss.supremum(epsilon)
        assert math.isfinite(limit) is finite
        if finite:
            assert loss(limit) + epsilon == pytest.approx(limit, rel=1e-12)
    budget = leakage.constant_budget(1.0, forward=leakage.OpenChain(matrix, "any"))
    assert 0 < budget < leakage.constant_budget(1.0, forward=leakage.OpenChain(matrix, "mixture"))
    assert loss.supremum(budget) == pytest.approx(1.0, rel=1e-9)


def test_a_cascade() -> None:
    found = leakage.correlations_from_traces([[0, 1, 0, 1, 0, 1, 2, 3]], 4)
    assert found.states.tolist() == [0, 1, 2, 3]
    assert found.forward.matrix.tolist() == [[0, 1, 0, 0], [2 / 3, 0, 1 / 3, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert (found.never_left.tolist(), found.never_entered.tolist()) == ([3], [])


def test_a_state_that_nobody_enters_and_one_without_steps() -> None:
    found = leakage.correlations_from_traces([[0, 1, 2, 1], [4]], 6, ends="any")
    assert found.states.tolist() == [0, 1, 2, 4]
    assert (found.never_left.tolist(), found.never_entered.tolist()) == ([4], [0, 4])
    assert isinstance(found.backward, leakage.OpenChain)
    assert found.backward.missing.tolist() == [0, 3]
    assert found.forward.matrix.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    stays = leakage.correlations_from_traces([[0, 1, 2, 1], [4]], 6)
    assert stays.forward.matrix[3].tolist() == stays.backward.matrix[3].tolist() == [0, 0, 0, 1]
    assert stays.backward.matrix[0].tolist() == [1, 0, 0, 0]
    # All states on request: the others have no step either.
    every = leakage.correlations_from_traces([[0, 1, 2, 1]], 4, only_visited=False, ends="mixture")
    assert (every.never_left.tolist(), every.never_entered.tolist()) == ([3], [0, 3])


def test_one_state() -> None:
    found = leakage.correlations_from_traces([[0, 0, 0]], 1, ends="any")
    assert found.forward.matrix.tolist() == found.backward.matrix.tolist() == [[1.0]]
    assert leakage.LossFunction(found.forward)(2.0) == 0.0


def test_steps_of_several_users_are_not_joined() -> None:
    found = leakage.correlations_from_traces([[0, 1], [2, 0]], 3, ends="mixture")
    assert (found.steps, found.never_left.tolist(), found.never_entered.tolist()) == (2, [1], [2])


def test_smoothing_gives_each_state_a_row() -> None:
    for ends in ("stay", "mixture", "any"):
        found = leakage.correlations_from_traces(STEPS, 4, smoothing=0.5, ends=ends)
        assert isinstance(found.forward, MarkovChain)
        assert found.forward.matrix[3].tolist() == [0.25] * 4
        assert found.never_left.tolist() == [3]
    chain = leakage.correlations_from_traces(STEPS, 4, ends="any").forward
    assert leakage.smooth(chain, 0.5).matrix[3].tolist() == [0.25] * 4
    with pytest.raises(InputError, match="is not a Markov chain"):
        leakage.smooth(chain, 0.0)


@pytest.mark.parametrize("ends", ["stay", "any"])
def test_an_initial_distribution_with_weight_on_an_end(ends: Ends) -> None:
    for weight in ([0.5, 0.2, 0.2, 0.1], [0.5, 0.2, 0.3 - 1e-9, 1e-9]):
        with pytest.raises(InputError, match="initial: has weight on state 3, which nobody was seen to leave"):
            leakage.correlations_from_traces(STEPS, 4, initial=weight, ends=ends)
    found = leakage.correlations_from_traces(STEPS, 4, initial=[0.5, 0.2, 0.3, 0.0], ends=ends)
    joint = np.array([0.5, 0.2, 0.3])[:, None] * KNOWN
    np.testing.assert_allclose(found.backward.matrix[:, :3], (joint / joint.sum(axis=0)).T, rtol=1e-14)
    with pytest.raises(InputError, match="initial: has weight on state 4"):
        leakage.correlations_from_traces(STEPS, 5, initial=[0.5, 0.2, 0.2, 0.0, 0.1], ends=ends)
    with pytest.raises(InputError, match="initial: state 1 cannot be reached"):
        leakage.correlations_from_traces([[0, 1], [2, 0], [1, 1]], 3, initial=[0.0, 0.0, 1.0], ends=ends)
    with pytest.raises(InputError, match=r"initial: has the wrong shape; found \(3,\); must be \(4,\)"):
        leakage.correlations_from_traces(STEPS, 4, initial=[0.5, 0.2, 0.3], ends=ends)


def test_backward_and_forward_of_data_with_ends_fit() -> None:
    generator = np.random.default_rng(1)
    ended = 0
    for ends in ("stay", "mixture", "any"):
        for _ in range(8):
            traces = [generator.integers(0, 6, 3) for _ in range(4)]
            found = leakage.correlations_from_traces(traces, 6, ends=ends)
            reason = mismatch(found.backward.matrix, found.forward.matrix)
            ended += bool(found.never_left.size + found.never_entered.size)
            # So few steps without an end may drift.
            assert reason == "" or ("stationary" in reason and not found.never_left.size + found.never_entered.size)
    assert ended > 16
    found = leakage.correlations_from_traces(STEPS, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorrelationWarning)
        leakage.temporal([0.1, 0.1], found.backward, found.forward)


def test_what_does_not_fit_is_found_beside_ends() -> None:
    found = leakage.correlations_from_traces(STEPS, 4)
    backward = found.backward.matrix.copy()
    assert mismatch(backward, found.forward.matrix) == ""
    wrong = backward.copy()
    wrong[3] = [0.0, 0.9, 0.1, 0.0]
    assert "Bayes' rule" in mismatch(wrong, found.forward.matrix)
    wrong[3] = [0.5, 0.0, 0.5, 0.0]
    assert "a step from state 0 to state 3 is possible in the backward matrix" in mismatch(wrong, found.forward.matrix)
    # A 1 on the diagonal is an end only where the backward matrix knows of nobody who was there before.
    wrong[3] = [0.0, 1 / 7, 5 / 7, 1 / 7]
    assert mismatch(wrong, found.forward.matrix) != ""


def test_no_budget_because_of_ends_alone() -> None:
    stays = leakage.correlations_from_traces(STEPS, 4).forward
    with pytest.warns(
        BudgetWarning, match="over an infinite horizon: because of ends alone, states of the forward matrix"
    ):
        assert leakage.constant_budget(1.0, forward=stays) == 0.0
    assert leakage.constant_budget(1.0, forward=leakage.LossFunction(stays).under_mixture()) > 0.13
    # All states are ends, or other rows are disjoint too.
    for matrix in (np.eye(3), [[0, 1, 0], [1, 0, 0], [0, 0, 1]]):
        with pytest.warns(BudgetWarning, match="two rows of the forward matrix have disjoint supports"):
            leakage.constant_budget(1.0, forward=matrix)


def test_under_a_mixture() -> None:
    matrix = rows(3, 5, 2)
    values = leakage.LossFunction(leakage.OpenChain(matrix, "mixture"))
    assert values.under_mixture() is values
    stays = matrix + np.diag([0, 0, 0, 1, 1])
    for given in (stays, sparse.csr_array(stays), leakage.OpenChain(matrix, "any")):
        loss = leakage.LossFunction(given)
        assert loss.identity
        assert loss.end_states.tolist() == [3, 4]
        np.testing.assert_allclose(loss.under_mixture()([0.1, 1.0, 9.0]), values([0.1, 1.0, 9.0]), rtol=1e-15)
    plain = leakage.LossFunction([[0.8, 0.2], [0.2, 0.8]])
    assert plain.under_mixture() is plain
    # A row that leads to another state for certain is no end.
    moves = np.array([[0, 1, 0], [0.5, 0.5, 0], [0, 0, 1]])
    for given in (moves, sparse.csr_array(moves)):
        assert leakage.LossFunction(given).end_states.tolist() == [2]
    still = leakage.LossFunction(np.eye(3))
    assert still.under_mixture() is still
    assert leakage.LossFunction.from_lines(plain.n, plain.digest, list(plain.lines)).end_states.size == 0


def test_the_cache_keeps_words_apart() -> None:
    matrix = rows(3, 40, 1)
    found = {}
    for ends in ("mixture", "any"):
        made = leakage.LossFunction(leakage.OpenChain(matrix, ends))
        again = leakage.LossFunction(leakage.OpenChain(matrix, ends))
        assert (made.digest, made.lines) == (again.digest, again.lines)
        found[made.digest] = made(1.0)
    assert len(found) == len(set(found.values())) == 2


def test_chains_that_change_with_time() -> None:
    open_chain = leakage.OpenChain(rows(1, 3, 1), "mixture")
    stays = leakage.LossFunction(rows(1, 3, 1) + np.diag([0, 0, 1]))
    found = leakage.forward([0.1] * 3, leakage.Varying([open_chain, stays]))
    assert found[1] == pytest.approx(stays(0.1) + 0.1, rel=1e-14)
    assert found[0] == pytest.approx(leakage.LossFunction(open_chain)(found[1]) + 0.1, rel=1e-14)
    options = leakage.Candidates([open_chain, None])
    assert leakage.forward([0.1] * 3, options).tolist() == leakage.forward([0.1] * 3, open_chain).tolist()


def test_a_chain_counted_where_people_stay() -> None:
    assert MarkovChain.from_counts(COUNTS, ends="stay").matrix[3].tolist() == [0, 0, 0, 1]
    with pytest.raises(InputError, match="no trace ever leaves state 3"):
        MarkovChain.from_counts(COUNTS)
    for ends in ("mixture", "any"):
        with pytest.raises(InputError, match=r'ends: does not give a Markov chain.*Use ends = "stay", which puts a 1'):
            MarkovChain.from_traces(STEPS, 4, ends=ends)
        assert MarkovChain.from_traces(STEPS, 4, 1.0, ends=ends).matrix[3].tolist() == [0.25] * 4


def visits(**paths: list[int]) -> Visits:
    """Return visits of users to the cells 0 and 1; 9 is out of the box."""
    box = Domain.geographic_grid(2, 1, south=0, north=1, west=0, east=2)
    inside = {0: (0.5, 0.5), 1: (0.5, 1.5), 9: (5.0, 5.0)}
    traces = []
    for user, path in paths.items():
        latitude, longitude = zip(*(inside[each] for each in path), strict=True)
        traces.append(Trajectory(user, np.array(latitude), np.array(longitude)))
    return to_grid(traces, box)


def test_steps_out_of_the_box() -> None:
    # The first user leaves the box twice and comes back once.
    given = visits(a=[0, 1, 0, 9, 9, 1, 9], b=[9, 0, 1])
    assert given.exits == (True, True, False)
    found = leakage.correlations_from_traces(given, 2)
    assert (found.states.tolist(), found.steps, found.leaving) == ([0, 1], 3, 2)
    assert found.never_left.size == 0
    for ends in ("stay", "mixture", "any"):
        found = leakage.correlations_from_traces(given, 2, border="state", ends=ends)
        assert (found.states.tolist(), found.steps, found.leaving) == ([0, 1, 2], 5, 2)
        assert (found.never_left.tolist(), found.never_entered.tolist()) == ([2], [])
        # From 0 twice to 1 and once out, from 1 once to 0 and once out.
        np.testing.assert_allclose(found.forward.matrix[:2], [[0, 2 / 3, 1 / 3], [0.5, 0, 0.5]], rtol=1e-15)
        assert found.forward.matrix[2].tolist() == [0, 0, float(ends == "stay")]
        assert found.backward.matrix[2].tolist() == [0.5, 0.5, 0]
    with pytest.raises(InputError, match="exits: have another length"):
        Visits(given.cells, given.users, given.inside, given.outside, given.domain, given.times, (True,))
    away = leakage.correlations_from_traces(visits(a=[0, 1, 9]), 2, border="state")
    assert away.forward.matrix.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    given_initial = leakage.correlations_from_traces(given, 2, initial=[0.5, 0.5], border="state")
    np.testing.assert_allclose(given_initial.backward.matrix[2], [0.4, 0.6, 0], rtol=1e-15)
