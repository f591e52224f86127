from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from functools import partial

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

import mechdesign
from mechdesign.errors import InputError, SolverError, SolverInterruptedError, TimeLimitError
from mechdesign.measures import attack
from mechdesign.measures.attack import Attack, bayes, minimax, optimal, pairwise_minimax, prior_free
from mechdesign.model._channel import Channel
from mechdesign.model._prior import Prior
from mechdesign.solve import _contract as contract
from mechdesign.solve import _solve as solvers
from mechdesign.solve._contract import Options, Status

ATTACKS: tuple[Callable[..., Attack], ...] = (optimal, bayes, prior_free, minimax, pairwise_minimax)
LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))


def hamming(n: int) -> np.ndarray:
    return 1 - np.eye(n)


def randomised_response(n: int, epsilon: float) -> np.ndarray:
    matrix = np.ones((n, n)) + (np.exp(epsilon) - 1) * np.eye(n)
    return matrix / matrix.sum(axis=1, keepdims=True)


def errors(channel: np.ndarray, strategy: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Compute E_s as the triple sum that it is."""
    n, m = channel.shape
    found = np.zeros(n)
    for s, o, guess in itertools.product(range(n), range(m), range(len(distance))):
        found[s] += channel[s, o] * strategy[o, guess] * distance[guess, s]
    return found


def deterministic(m: int, k: int) -> list[np.ndarray]:
    return [np.eye(k)[list(guesses)] for guesses in itertools.product(range(k), repeat=m)]


@st.composite
def games(draw: st.DrawFn, most: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a channel, a prior and a distance from small integers, with zeros, ties and repetitions."""
    n, m, k = (draw(st.integers(1, most)) for _ in range(3))
    weights = st.integers(0, 4)
    channel = np.array([[draw(weights) for _ in range(m)] for _ in range(n)], dtype=float)
    channel[channel.sum(axis=1) == 0] = 1
    prior = np.array([draw(weights) for _ in range(n)], dtype=float)
    prior = np.ones(n) if prior.sum() == 0 else prior
    distance = np.array([[draw(weights) for _ in range(n)] for _ in range(k)], dtype=float)
    return channel / channel.sum(axis=1, keepdims=True), prior / prior.sum(), distance


def square(game: tuple[np.ndarray, np.ndarray, np.ndarray]) -> bool:
    return len(game[2]) == len(game[1])


# ------------------------------------------------------------------------------------------------- what comes back


def test_attack_is_a_strategy_and_its_errors() -> None:
    channel = randomised_response(3, 1.0)
    for function in ATTACKS:
        found = function(channel, [0.5, 0.3, 0.2], LINE)
        assert found.name == function.__name__
        assert isinstance(found.distortion, float)
        assert found.strategy.shape == (3, 3)
        assert found.strategy.dtype == np.float64
        np.testing.assert_allclose(found.strategy.sum(axis=1), 1, rtol=1e-14, err_msg=found.name)
        assert (found.strategy >= 0).all(), found.name
        np.testing.assert_allclose(found.per_secret, errors(channel, found.strategy, LINE), rtol=1e-13)
        with pytest.raises(FrozenInstanceError):
            found.distortion = 0.0  # type: ignore[misc]
        for array in (found.strategy, found.per_secret):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_exact_channels_and_priors_are_accepted() -> None:
    channel = Channel(np.array([[3 << 60, 1 << 60], [1 << 60, 3 << 60]]))
    for function in ATTACKS:
        expected = function(channel.matrix, [0.25, 0.75], hamming(2))
        found = function(channel, Prior(np.array([0.25, 0.75])), hamming(2))
        assert found.distortion == expected.distortion, function


# ------------------------------------------------------------------------------------------------- closed forms


def test_identity_channel_hides_nothing() -> None:
    for function in ATTACKS:
        found = function(np.eye(3), [0.5, 0.25, 0.25], LINE)
        assert found.distortion == pytest.approx(0, abs=1e-12), function
        np.testing.assert_allclose(found.per_secret, 0, atol=1e-12)


def test_constant_channel() -> None:
    prior = np.array([0.5, 0.2, 0.3])
    channel = np.full((3, 4), 0.25)
    assert optimal(channel, prior, LINE).distortion == pytest.approx((LINE @ prior).min())
    assert bayes(channel, prior, LINE).distortion == pytest.approx(prior @ LINE @ prior)
    assert prior_free(channel, None, LINE).distortion == pytest.approx(LINE.sum(axis=1).min() / 3)
    # The middle is at most 1 away.
    assert minimax(channel, None, LINE).distortion == pytest.approx(1)
    # Guess the ends with probability x each and the middle with 1 - 2x: max(2x, 1 - 2x) is least at x = 1/4.
    assert pairwise_minimax(channel, None, LINE).distortion == pytest.approx(0.5)


def test_randomised_response() -> None:
    for n, epsilon in ((2, 0.1), (3, 1.0), (7, 2.5)):
        channel, uniform = randomised_response(n, epsilon), np.full(n, 1 / n)
        wrong = 1 - np.exp(epsilon) / (np.exp(epsilon) + n - 1)
        assert optimal(channel, uniform, hamming(n)).distortion == pytest.approx(wrong)
        for function, prior in ((prior_free, uniform), (prior_free, None), (minimax, None)):
            assert function(channel, prior, hamming(n)).distortion == pytest.approx(wrong), (function, n)
        assert pairwise_minimax(channel, None, hamming(n)).distortion == pytest.approx(wrong / (n - 1))
        # The posterior is the channel again.
        assert bayes(channel, uniform, hamming(n)).distortion == pytest.approx(1 - (channel @ channel)[0, 0])


def test_randomised_response_under_a_strong_prior() -> None:
    # Who is 90% sure beforehand ignores answers that are wrong in 1 of 4 cases.
    channel = np.array([[0.75, 0.25], [0.25, 0.75]])
    found = optimal(channel, [0.9, 0.1], hamming(2))
    assert found.strategy.tolist() == [[1, 0], [1, 0]]
    assert found.distortion == pytest.approx(0.1)
    assert found.per_secret.tolist() == [0, 1]


def test_bayes_draws_from_the_posterior() -> None:
    channel = np.array([[0.75, 0.25], [0.25, 0.75]])
    found = bayes(channel, [0.6, 0.4], hamming(2))
    np.testing.assert_allclose(found.strategy, [[0.45 / 0.55, 0.1 / 0.55], [0.15 / 0.45, 0.3 / 0.45]])


def test_minimax_is_the_value_of_a_game() -> None:
    for name, distance, value, guess in (
        ("matching pennies", [[0, 1], [1, 0]], 0.5, [0.5, 0.5]),
        ("unequal stakes", [[0, 2], [1, 0]], 2 / 3, [1 / 3, 2 / 3]),
        ("three estimates", [[0, 3], [4, 0], [2, 1]], 3 / 2, [1 / 4, 0, 3 / 4]),
        ("saddle point", [[0, 4], [4, 0], [1, 1]], 1, [0, 0, 1]),
        ("dominated", [[2, 1], [3, 1]], 2, [1, 0]),
        ("no choice", [[5, 7]], 7, [1]),
    ):
        # A channel that tells nothing leaves the matrix game alone.
        found = minimax(np.ones((2, 1)), None, distance)
        assert found.distortion == pytest.approx(value), name
        np.testing.assert_allclose(found.strategy, [guess], atol=1e-9, err_msg=name)


# ------------------------------------------------------------------------------------------------- brute force


@settings(max_examples=25)
@given(game=games())
def test_no_deterministic_strategy_beats_the_optimal_ones(game: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    channel, prior, distance = game
    strategies = deterministic(channel.shape[1], len(distance))
    found = [errors(channel, strategy, distance) for strategy in strategies]
    assert optimal(*game).distortion == pytest.approx(min(prior @ each for each in found), abs=1e-12)
    assert prior_free(channel, None, distance).distortion == pytest.approx(
        min(each.mean() for each in found), abs=1e-12
    )
    assert optimal(*game).distortion == pytest.approx(
        sum((distance @ (prior[:, None] * channel)).min(axis=0)), abs=1e-12
    )


@settings(max_examples=25)
@given(game=games())
def test_minimax_against_a_mixture_of_all_deterministic_strategies(
    game: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    # The matrix game whose rows are whole strategies, by another solver.
    channel, _, distance = game
    rows = np.array([errors(channel, each, distance) for each in deterministic(channel.shape[1], len(distance))])
    mixture = cvxpy.Variable(len(rows), nonneg=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.max(rows.T @ mixture)), [cvxpy.sum(mixture) == 1])
    problem.solve(solver="CLARABEL")
    assert minimax(*game).distortion == pytest.approx(problem.value, abs=1e-6)


@settings(max_examples=25)
@given(game=games(most=4))
def test_programs_against_an_independent_formulation(game: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    channel, _, distance = game
    q = cvxpy.Variable((channel.shape[1], len(distance)), nonneg=True)
    pairs = cvxpy.multiply(channel @ q, distance.T)
    rows = [cvxpy.sum(q, axis=1) == 1]
    for function, objective in ((minimax, cvxpy.sum(pairs, axis=1)), (pairwise_minimax, pairs)):
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.max(objective)), rows)
        problem.solve(solver="CLARABEL")
        assert function(*game).distortion == pytest.approx(problem.value, abs=1e-6)


# ------------------------------------------------------------------------------------------------- order of attacks


@settings(max_examples=25)
@given(game=games(most=4))
def test_order(game: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    channel, prior, distance = game
    attacks = {function: function(*game) for function in ATTACKS if function is not bayes or square(game)}
    best = attacks[optimal].distortion
    for function, found in attacks.items():
        np.testing.assert_allclose(found.strategy.sum(axis=1), 1, rtol=1e-12)
        assert (found.strategy >= 0).all()
        assert prior @ found.per_secret >= best - 1e-12
        assert found.per_secret.max() >= attacks[minimax].distortion - 1e-7
        assert ((channel @ found.strategy) * distance.T).max() >= attacks[pairwise_minimax].distortion - 1e-7
        assert found.per_secret.mean() >= prior_free(channel, None, distance).distortion - 1e-12
        if function in (optimal, bayes, prior_free):
            assert found.distortion == pytest.approx(prior @ found.per_secret, abs=1e-14)
    assert attacks[minimax].distortion == attacks[minimax].per_secret.max()
    # The worst secret is at least as bad as any average, and at most k times as bad as its worst pair.
    assert attacks[minimax].distortion >= best - 1e-9
    assert attacks[pairwise_minimax].distortion <= attacks[minimax].distortion + 1e-9
    # Releasing nothing is the most that can be hidden.
    assert best <= (distance @ prior).min() + 1e-12


@settings(max_examples=25)
@given(game=games(), seed=st.integers(0, 99))
def test_processing_an_answer_never_helps_the_attacker(
    game: tuple[np.ndarray, np.ndarray, np.ndarray], seed: int
) -> None:
    channel, prior, distance = game
    remap = np.random.default_rng(seed).dirichlet(np.ones(3), size=channel.shape[1])
    worse = channel @ remap
    for function in (optimal, minimax, pairwise_minimax):
        assert function(worse, prior, distance).distortion >= function(channel, prior, distance).distortion - 1e-7


@settings(max_examples=25)
@given(game=games(), factor=st.sampled_from([1e-6, 1e-3, 7.0, 1e6]))
def test_errors_have_a_unit(game: tuple[np.ndarray, np.ndarray, np.ndarray], factor: float) -> None:
    channel, prior, distance = game
    for function in (optimal, prior_free, minimax, pairwise_minimax):
        expected = factor * function(channel, prior, distance).distortion
        found = function(channel, prior, factor * distance).distortion
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-8 * factor)


# ------------------------------------------------------------------------------------------------- another prior


def test_a_wrong_prior_costs_the_attacker() -> None:
    channel, truth, believed = randomised_response(3, 1.0), [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]
    for function in (optimal, bayes):
        right, wrong = function(channel, truth, LINE), function(channel, believed, LINE, truth=truth)
        np.testing.assert_array_equal(wrong.strategy, function(channel, believed, LINE).strategy)
        assert wrong.distortion == pytest.approx(np.array(truth) @ wrong.per_secret)
        assert wrong.distortion > right.distortion
        assert function(channel, truth, LINE, truth=truth).distortion == right.distortion


@settings(max_examples=25)
@given(game=games(), seed=st.integers(0, 99))
def test_no_wrong_prior_beats_the_truth(game: tuple[np.ndarray, np.ndarray, np.ndarray], seed: int) -> None:
    channel, truth, distance = game
    believed = np.random.default_rng(seed).dirichlet(np.ones(len(truth)))
    wrong = optimal(channel, believed, distance, truth=truth)
    assert wrong.distortion >= optimal(channel, truth, distance).distortion - 1e-12


def test_prior_free_is_judged_by_whatever_prior_there_is() -> None:
    channel, prior, truth = randomised_response(3, 0.5), np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.2, 0.6])
    found = prior_free(channel, None, LINE)
    assert found.distortion == pytest.approx(found.per_secret.mean())
    assert prior_free(channel, prior, LINE).distortion == pytest.approx(prior @ found.per_secret)
    assert prior_free(channel, prior, LINE, truth=truth).distortion == pytest.approx(truth @ found.per_secret)
    assert prior_free(channel, None, LINE, truth=truth).distortion == pytest.approx(truth @ found.per_secret)
    np.testing.assert_array_equal(prior_free(channel, prior, LINE).strategy, found.strategy)


def test_no_prior_enters_the_minimax_attacks() -> None:
    channel = randomised_response(3, 0.5)
    for function in (minimax, pairwise_minimax):
        expected = function(channel, None, LINE).distortion
        assert function(channel, [1, 0, 0], LINE, truth=[0, 0, 1]).distortion == expected


def test_what_the_attacker_holds_impossible() -> None:
    # Observable 1 comes from secret 1 only, which the attacker excludes.
    channel = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])
    believed, truth = [0.3, 0, 0.7], [0.4, 0.4, 0.2]
    assert bayes(channel, believed, LINE, truth=truth).strategy[1].tolist() == believed
    assert optimal(channel, believed, LINE, truth=truth).strategy[1].tolist() == [0, 0, 1]


def test_observables_that_never_occur() -> None:
    channel = np.array([[0.75, 0, 0.25], [0.25, 0, 0.75]])
    for function in ATTACKS:
        found = function(channel, [0.5, 0.5], hamming(2))
        assert found.distortion == pytest.approx(function(channel[:, [0, 2]], [0.5, 0.5], hamming(2)).distortion)
        assert found.strategy[1].sum() == 1


# ------------------------------------------------------------------------------------------------- the programs


def test_observables_that_say_the_same_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(attack, "solve", lambda program, *rest: seen.append(program) or solvers.solve(program, *rest))
    channel = np.array([[0.25, 0.5, 0, 0.25], [0.125, 0.25, 0, 0.625]])
    found = minimax(channel, None, [[0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(found.strategy[0], found.strategy[1])
    # Two columns, two estimates that are not dominated, and y.
    assert seen[0].columns == 5
    assert found.strategy.shape == (4, 3)


def test_errors_of_zero_everywhere() -> None:
    for function in ATTACKS:
        assert function(np.full((2, 2), 0.5), [0.5, 0.5], np.zeros((2, 2))).distortion == 0


def test_other_solvers() -> None:
    channel = randomised_response(4, 0.7)
    distance = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) ** 2
    for function in (minimax, pairwise_minimax):
        expected = function(channel, None, distance).distortion
        for solver in ("highs-simplex", "highs-ipx", "scipy", "cvxpy"):
            found = function(channel, None, distance, solver=solver, options=Options(feasibility=1e-10))
            assert found.distortion == pytest.approx(expected, rel=1e-6), solver


@pytest.mark.parametrize("solver", ["highs-ipx", "highs", "scipy"])
def test_rare_observables_are_not_neglected(solver: str) -> None:
    """HiGHS drops coefficients below 1e-9; together, these observables have a probability of 8e-7."""
    odds = np.random.default_rng(1).uniform(0.2, 0.8, (2, 2000))
    odds *= 4e-10 / odds.mean()
    assert odds.max() < 1e-9
    common = np.array([[0.75, 0.25], [0.25, 0.75]]) * (1 - odds.sum(axis=1, keepdims=True))
    for function in (minimax, pairwise_minimax):
        found = function(np.hstack([common, odds]), None, hamming(2), solver=solver)
        # An attacker who guesses a secret for every rare observable errs by at least the common part.
        assert common[0, 1] - 1e-9 < found.distortion < common[0, 1] + 8e-7, function


@pytest.mark.slow
@pytest.mark.parametrize(("power", "epsilon", "value"), [(1, "1", 0.0638696211708), (2, "0.5", 0.0782020451956)])
def test_the_pairwise_attack_on_a_regular_grid_is_proved(power: int, epsilon: str, value: float) -> None:
    grid = mechdesign.Domain.grid(7, 7, 7.0, 7.0)
    distance = mechdesign.distances.euclidean(grid)
    requirement = mechdesign.MetricPrivacy(epsilon, distance)
    made = mechdesign.design(mechdesign.Problem(mechdesign.Prior.uniform(49), distance**power, [requirement]))
    found = pairwise_minimax(made.channel, distance=distance)
    assert found.distortion == pytest.approx(value, rel=1e-8)


@pytest.mark.slow
def test_a_hundred_secrets() -> None:
    points = np.array(list(itertools.product(range(10), repeat=2)), dtype=float)
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    channel = np.exp(-distance)
    channel /= channel.sum(axis=1, keepdims=True)
    found = minimax(channel, None, distance)
    assert found.distortion <= optimal(channel, np.full(100, 0.01), distance).per_secret.max() + 1e-9
    assert found.distortion >= optimal(channel, np.full(100, 0.01), distance).distortion - 1e-9


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    for function, part in itertools.product((minimax, pairwise_minimax), ("x", "row_dual")):

        def spoiled(*arguments: object, part: str = part) -> contract.Solution:
            solution = solvers.solve(*arguments)  # type: ignore[arg-type]
            return replace(solution, **{part: np.roll(getattr(solution, part), 1)})

        assert function(channel, None, LINE).distortion > 0
        with monkeypatch.context() as patched:
            patched.setattr(attack, "solve", spoiled)
            with pytest.raises(SolverError, match="prove only"):
                function(channel, None, LINE)


def test_a_solve_that_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, kind in (
        (Status.TIME_LIMIT, TimeLimitError),
        (Status.INTERRUPTED, SolverInterruptedError),
        (Status.FAILED, SolverError),
        (Status.ITERATION_LIMIT, SolverError),
    ):

        def ended(*arguments: object, status: Status = status) -> contract.Solution:
            return replace(solvers.solve(*arguments), status=status)  # type: ignore[arg-type]

        monkeypatch.setattr(attack, "solve", ended)
        with pytest.raises(kind) as caught:
            minimax(np.full((2, 2), 0.5), None, hamming(2))
        assert type(caught.value) is kind, status


# ------------------------------------------------------------------------------------------------- inputs


def test_wrong_inputs() -> None:
    rows = [
        ({"channel": [0.5, 0.5]}, "channel"),
        ({"channel": np.zeros((0, 2))}, "channel"),
        ({"channel": [[0.5, 0.6], [0.5, 0.5]]}, "channel[0]"),
        ({"channel": [[0.5, 0.5], [1.5, -0.5]]}, "channel[1,1]"),
        ({"channel": [[0.5, 0.5], [np.nan, 0.5]]}, "channel[1,0]"),
        ({"channel": [["a", "b"]]}, "channel"),
        ({"prior": [1.0]}, "prior"),
        ({"prior": [0.5, 0.6]}, "prior"),
        ({"prior": [1.5, -0.5]}, "prior[1]"),
        ({"truth": [0.2, 0.2, 0.6]}, "truth"),
        ({"truth": [0.2, np.nan]}, "truth[1]"),
        ({"truth": [0.2, 0.2]}, "truth"),
        ({"distance": [[0.0, 1.0, 2.0]]}, "distance"),
        ({"distance": [0.0, 1.0]}, "distance"),
        ({"distance": np.zeros((0, 2))}, "distance"),
        ({"distance": [[0.0, -1.0], [1.0, 0.0]]}, "distance[0,1]"),
        ({"distance": [[0.0, np.inf], [1.0, 0.0]]}, "distance[0,1]"),
    ]
    good: dict[str, object] = {"channel": np.eye(2), "prior": [0.5, 0.5], "distance": hamming(2)}
    assert_refused(
        Mistake(f"{function.__name__}, {number}", partial(function, **{**good, **changes}), path)
        for function in ATTACKS
        for number, (changes, path) in enumerate(rows)
    )
    for function in (optimal, bayes):
        with pytest.raises(InputError, match=r"^prior: is missing"):
            function(np.eye(2), None, hamming(2))


def test_bayes_guesses_secrets() -> None:
    with pytest.raises(InputError, match=r"^distance: is not square"):
        bayes(np.eye(2), [0.5, 0.5], [[0.0, 1.0]])
    assert optimal(np.eye(2), [0.5, 0.5], [[0.0, 1.0]]).distortion == 0.5


def test_the_minimax_attacks_need_no_prior() -> None:
    channel, distance = np.array([[0.75, 0.25], [0.25, 0.75]]), 1 - np.eye(2)
    for function in (minimax, pairwise_minimax):
        with_none = function(channel, None, distance)
        assert function(channel, distance=distance).distortion == pytest.approx(with_none.distortion)
        with pytest.raises(InputError, match="distance: is missing"):
            function(channel)
