"""States that nobody was seen to leave, or to enter: their rows are unknown, and may be any row."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from leakage_brute import best_of, close, subset_points

from mechdesign import leakage
from mechdesign.data.trajectories import Trajectory, Visits, to_grid
from mechdesign.errors import BudgetWarning, CorrelationWarning, InputError
from mechdesign.leakage._correlations import mismatch
from mechdesign.model._domain import Domain
from mechdesign.model._markov import ENDS, Ends, MarkovChain

# Steps between the places a, b and c, and to the destination e, which no step leaves.
COUNTS = np.array([[0, 6, 4, 0], [3, 0, 6, 1], [2, 2, 0, 6], [0, 0, 0, 0]])
STEPS = [[i, j] for i, j in itertools.product(range(4), repeat=2) for _ in range(COUNTS[i, j])]
KNOWN = COUNTS[:3] / COUNTS[:3].sum(axis=1, keepdims=True)
ALPHAS = (1e-9, 1.0, 30.0)


def rows(seed: int, n: int, unknown: int = 1, zeros: bool = False) -> np.ndarray:
    """Return a random matrix (n, n) whose last rows are unknown."""
    generator = np.random.default_rng(seed)
    weights = generator.exponential(size=(n, n)) + 0.05
    if zeros:
        weights[0, 1] = 0.0
    weights[n - unknown :] = 0.0
    totals = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, totals, out=np.zeros((n, n)), where=totals > 0)


# --- the loss function ---


def test_the_ratio_of_one_unknown_row_in_exact_fractions() -> None:
    generator = np.random.default_rng(5)
    for n in (2, 3):
        # All rows of multiples of 1/6, among them all unit rows.
        every = [Fraction(1, 6) * np.array(row) for row in itertools.product(range(7), repeat=n) if sum(row) == 6]
        known = [every[index] for index in generator.choice(len(every), n - 1)]
        m = min(entry for row in known for entry in row)
        for A in (Fraction(1, 1000), Fraction(2), Fraction(10**9)):
            ratios = []
            for row in every:
                for q, d in itertools.permutations([*known, row], 2):
                    for chosen in itertools.product((0, 1), repeat=n):
                        Q, D = (sum(itertools.compress(each, chosen)) for each in (q, d))
                        ratios.append((Q * A + 1) / (D * A + 1))
            assert max(ratios) == 1 + (1 - m) * A


def test_one_unknown_row_may_be_any_row() -> None:
    generator = np.random.default_rng(4)
    for n, sparsely in itertools.product((2, 3, 4), (False, True)):
        matrix = rows(n + sparsely, n)
        order = generator.permutation(n)
        given = matrix[order]
        loss = leakage.LossFunction(sparse.csr_array(given) if sparsely else given)
        assert loss.unknown.tolist() == [int(np.flatnonzero(order == n - 1)[0])]
        assert f"{n} states, 1 with an unknown row" in repr(loss)
        units = [subset_points(np.vstack([matrix[:-1], row])) for row in np.eye(n)]
        drawn = [np.vstack([matrix[:-1], row]) for row in generator.dirichlet(np.full(n, 0.3), 5)]
        for alpha in ALPHAS:
            value = loss(alpha)
            assert value == pytest.approx(math.log1p((1 - matrix[:-1].min()) * math.expm1(alpha)), rel=1e-14)
            # The worst row is a unit row, and no row is worse.
            assert close(value, max(best_of(each, alpha) for each in units))
            for completed in drawn:
                assert leakage.LossFunction(completed)(alpha) <= value * (1 + 1e-12)


def test_programs_with_the_worst_row_attain_the_loss() -> None:
    matrix = rows(6, 4)
    worst = matrix.copy()
    worst[3, int(np.argmin(matrix[:3].min(axis=0)))] = 1.0
    found = leakage.loss_by_programs(worst, [0.5, 3.0])
    values = leakage.LossFunction(matrix)([0.5, 3.0])
    assert (found.values <= values * (1 + 1e-12)).all()
    assert (values <= found.upper * (1 + 1e-12)).all()


def test_several_unknown_rows_or_a_zero_beside_one_may_leak_all() -> None:
    for unknown, zeros in ((1, True), (2, False), (2, True), (3, False)):
        matrix = rows(7, 4, unknown, zeros)
        loss = leakage.LossFunction(matrix)
        assert (loss.identity, loss(1.3), len(loss.unknown)) == (True, 1.3, unknown)
        known = matrix[: 4 - unknown]
        units = itertools.product(range(4), repeat=unknown)
        worst = max(best_of(subset_points(np.vstack([known, np.eye(4)[list(chosen)]])), 1.3) for chosen in units)
        assert worst == pytest.approx(1.3, rel=1e-15)


def test_a_tiny_entry_leaves_a_remainder() -> None:
    loss = leakage.LossFunction([[1e-300, 1.0], [0.0, 0.0]])
    assert not loss.identity
    assert loss(800.0) == pytest.approx(800.0 + math.log(1 + 1e-300), rel=1e-15)
    assert loss.split(800.0)[1] >= 0.0


def test_a_sparse_matrix_that_stays_sparse() -> None:
    n = 1600
    steps = sparse.csr_array((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))
    loss = leakage.LossFunction(steps, cache=False)
    assert (loss.unknown.tolist(), loss.identity) == ([n - 1], True)


def test_open_chains_arrays_and_saved_functions_are_the_same(tmp_path: Path) -> None:
    matrix = rows(3, 40)
    first = leakage.LossFunction(leakage.OpenChain(matrix))
    again = leakage.LossFunction(matrix)
    assert (first.digest, first.lines, again.cached) == (again.digest, again.lines, True)
    first.save(tmp_path / "loss.npz")
    loaded = leakage.LossFunction.load(tmp_path / "loss.npz", matrix)
    assert (loaded.lines, loaded.unknown.tolist()) == (first.lines, [39])
    stays = matrix + np.diag(np.arange(40) == 39)
    assert leakage.LossFunction(stays).digest != first.digest
    np.testing.assert_array_equal(np.asarray(leakage.OpenChain(matrix)), matrix)


# --- bounds ---


def test_what_any_row_leaks_for_ever() -> None:
    matrix = rows(1, 3)
    loss = leakage.LossFunction(matrix)
    last = math.log(1 / (1 - matrix[:2].min()))
    # x = ln(1 + Q(e^x − 1)) + ε ends for ε below ln(1/Q), and only there.
    for share, finite in ((0.9, True), (0.999, True), (1.001, False)):
        epsilon = share * last
        limit = loss.supremum(epsilon)
        assert math.isfinite(limit) is finite
        if finite:
            assert loss(limit) + epsilon == pytest.approx(limit, rel=1e-12)
    budget = leakage.constant_budget(1.0, forward=matrix)
    assert loss.supremum(budget) == pytest.approx(1.0, rel=1e-9)


def test_budgets_hold_for_every_row() -> None:
    matrix = rows(2, 3)
    constant, series = leakage.constant_budget(1.0, matrix), leakage.allocate_budget(1.0, 6, matrix)
    assert (constant > 0, (series > 0).all()) == (True, True)
    attained = []
    for row in (*np.eye(3), *np.random.default_rng(3).dirichlet(np.full(3, 0.3), 5)):
        completed = np.vstack([matrix[:-1], row])
        assert leakage.supremum(constant, completed) <= 1.0 + 1e-12
        attained.append(leakage.temporal(series, completed).max())
    assert max(attained) == pytest.approx(1.0, rel=1e-12)


def test_no_budget_where_rows_may_be_disjoint() -> None:
    for matrix, how in (([[1, 0], [0, 1]], "have disjoint"), (rows(1, 3, 2), "may have, because rows are unknown")):
        with pytest.warns(BudgetWarning, match=f"two rows of the forward matrix {how}"):
            assert leakage.constant_budget(1.0, forward=matrix) == 0.0


def test_chains_that_change_with_time() -> None:
    matrix = rows(1, 3)
    stays = leakage.LossFunction(matrix + np.diag([0, 0, 1]))
    found = leakage.forward([0.1] * 3, leakage.Varying([matrix, stays]))
    assert found[1] == pytest.approx(stays(0.1) + 0.1, rel=1e-14)
    assert found[0] == pytest.approx(leakage.LossFunction(matrix)(found[1]) + 0.1, rel=1e-14)
    options = leakage.Candidates([leakage.OpenChain(matrix), None])
    assert leakage.forward([0.1] * 3, options).tolist() == leakage.forward([0.1] * 3, matrix).tolist()


# --- counts ---


@pytest.mark.parametrize("ends", ENDS)
def test_a_destination(ends: Ends) -> None:
    found = leakage.correlations_from_traces(STEPS, 4, ends=ends)
    assert (found.states.tolist(), found.steps) == ([0, 1, 2, 3], 30)
    assert (found.never_left.tolist(), found.never_entered.tolist()) == ([3], [])
    np.testing.assert_allclose(found.forward.matrix[:3], KNOWN, rtol=1e-15)
    assert found.forward.matrix[3].tolist() == [0, 0, 0, float(ends == "stay")]
    # People who come to e were at b or c before.
    np.testing.assert_allclose(found.backward.matrix[3], [0, 1 / 7, 6 / 7, 0], rtol=1e-15)
    assert leakage.forward([0.1] * 6, found.forward).max() == pytest.approx(0.6, rel=1e-15)


def test_backwards_is_forwards_of_traces_read_backwards() -> None:
    generator = np.random.default_rng(5)
    for ends in ENDS:
        traces = [generator.integers(0, 5, 4) for _ in range(3)]
        ahead = leakage.correlations_from_traces(traces, 5, ends=ends)
        back = leakage.correlations_from_traces([trace[::-1] for trace in traces], 5, ends=ends)
        np.testing.assert_allclose(ahead.backward.matrix, back.forward.matrix, rtol=1e-14)
        assert ahead.never_entered.tolist() == back.never_left.tolist()


def test_a_cascade() -> None:
    found = leakage.correlations_from_traces([[0, 1, 0, 1, 0, 1, 2, 3]], 4, ends="stay")
    assert found.states.tolist() == [0, 1, 2, 3]
    assert found.forward.matrix.tolist() == [[0, 1, 0, 0], [2 / 3, 0, 1 / 3, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert (found.never_left.tolist(), found.never_entered.tolist()) == ([3], [])


def test_a_state_that_nobody_enters_and_one_without_steps() -> None:
    found = leakage.correlations_from_traces([[0, 1, 2, 1], [4]], 6)
    assert found.states.tolist() == [0, 1, 2, 4]
    assert (found.never_left.tolist(), found.never_entered.tolist()) == ([4], [0, 4])
    assert isinstance(found.backward, leakage.OpenChain)
    assert found.backward.unknown.tolist() == [0, 3]
    assert found.forward.matrix.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    stays = leakage.correlations_from_traces([[0, 1, 2, 1], [4]], 6, ends="stay")
    assert stays.forward.matrix[3].tolist() == stays.backward.matrix[3].tolist() == [0, 0, 0, 1]
    assert stays.backward.matrix[0].tolist() == [1, 0, 0, 0]
    # All states on request: the others have no step either.
    every = leakage.correlations_from_traces([[0, 1, 2, 1]], 4, only_visited=False)
    assert (every.never_left.tolist(), every.never_entered.tolist()) == ([3], [0, 3])


def test_one_state() -> None:
    found = leakage.correlations_from_traces([[0, 0, 0]], 1)
    assert found.forward.matrix.tolist() == found.backward.matrix.tolist() == [[1.0]]
    assert leakage.LossFunction(found.forward)(2.0) == 0.0


def test_steps_of_several_users_are_not_joined() -> None:
    found = leakage.correlations_from_traces([[0, 1], [2, 0]], 3)
    assert (found.steps, found.never_left.tolist(), found.never_entered.tolist()) == (2, [1], [2])


def test_smoothing_gives_each_state_a_row() -> None:
    for ends in ENDS:
        found = leakage.correlations_from_traces(STEPS, 4, smoothing=0.5, ends=ends)
        assert isinstance(found.forward, MarkovChain)
        assert found.forward.matrix[3].tolist() == [0.25] * 4
        assert found.never_left.tolist() == [3]
    chain = leakage.correlations_from_traces(STEPS, 4).forward
    assert leakage.smooth(chain, 0.5).matrix[3].tolist() == [0.25] * 4
    with pytest.raises(InputError, match="is a row of zeros"):
        leakage.smooth(chain, 0.0)


@pytest.mark.parametrize("ends", ENDS)
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
    for ends in ENDS:
        for _ in range(8):
            traces = [generator.integers(0, 6, 3) for _ in range(4)]
            found = leakage.correlations_from_traces(traces, 6, ends=ends)
            reason = mismatch(found.backward.matrix, found.forward.matrix)
            ended += bool(found.never_left.size + found.never_entered.size)
            # So few steps without an end may drift.
            assert reason == "" or ("stationary" in reason and not found.never_left.size + found.never_entered.size)
    assert ended > 10
    found = leakage.correlations_from_traces(STEPS, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorrelationWarning)
        leakage.temporal([0.1, 0.1], found.backward, found.forward)


def test_what_does_not_fit_is_found_beside_ends() -> None:
    found = leakage.correlations_from_traces(STEPS, 4, ends="stay")
    backward = found.backward.matrix.copy()
    assert mismatch(backward, found.forward.matrix) == ""
    # An unknown row contradicts nothing.
    half = np.full((2, 2), 0.5)
    assert mismatch(half, half * [[1], [0]]) == mismatch(half * [[0], [1]], half) == ""
    wrong = backward.copy()
    wrong[3] = [0.0, 0.9, 0.1, 0.0]
    assert "Bayes' rule" in mismatch(wrong, found.forward.matrix)
    wrong[3] = [0.5, 0.0, 0.5, 0.0]
    assert "a step from state 0 to state 3 is possible in the backward matrix" in mismatch(wrong, found.forward.matrix)
    # A 1 on the diagonal is an end only where the backward matrix knows of nobody who was there before.
    wrong[3] = [0.0, 1 / 7, 5 / 7, 1 / 7]
    assert mismatch(wrong, found.forward.matrix) != ""


def test_a_chain_counted_where_people_stay() -> None:
    found = leakage.correlations_from_traces(STEPS, 4).forward
    assert MarkovChain.from_counts(COUNTS, ends="stay").matrix[3].tolist() == [0, 0, 0, 1]
    with pytest.raises(InputError, match="no trace ever leaves state 3"):
        MarkovChain.from_counts(COUNTS)
    assert MarkovChain.from_traces(STEPS, 4, 1.0).matrix[3].tolist() == [0.25] * 4
    for chain in (found, found.matrix):
        with pytest.raises(InputError, match=r'matrix\[3\]: is a row of zeros.*1 of 4 rows.*ends = "stay"'):
            MarkovChain(chain)


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
    for ends in ENDS:
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
    assert away.forward.matrix.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    given_initial = leakage.correlations_from_traces(given, 2, initial=[0.5, 0.5], border="state")
    np.testing.assert_allclose(given_initial.backward.matrix[2], [0.4, 0.6, 0], rtol=1e-15)


def test_steps_of_points_without_an_order_are_not_counted() -> None:
    box = Domain.geographic_grid(2, 1, south=0, north=1, west=0, east=2)
    traces = [Trajectory("a", [0.5, 0.5, 0.5], [0.5, 1.5, 0.5], ties=ties) for ties in (0, 2, 1)]
    assert leakage.correlations_from_traces(to_grid(traces[:1], box), 2).steps == 2
    assert to_grid(traces, box).counts().tolist() == [6, 3]
    with pytest.raises(InputError, match="traces: have 3 points at the time of the point before"):
        leakage.correlations_from_traces(to_grid(traces, box), 2)
