from __future__ import annotations

import numpy as np
import pytest
from hmm_brute import enumerate_paths
from trace_examples import released, ring, strip

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.traces._adversary import Adversary, expected_error
from mechdesign.traces._trace import Trace

INITIAL = np.array([0.4, 0.3, 0.2, 0.1])


def run(steps: int = 4, **choices: object) -> list[md.traces.Release]:
    trace = Trace(strip(4), md.graphs.line(4), 1, ring(4), INITIAL, rng=1, **choices)  # type: ignore[arg-type]
    return [trace.step(state) for state in (0, 1, 1, 2)[:steps]]


def test_who_knows_what_the_designer_knows_believes_the_same() -> None:
    releases = run()
    beliefs = Adversary(ring(4), INITIAL).watch(releases)
    np.testing.assert_allclose(beliefs.priors, [release.stage.prior for release in releases], rtol=1e-12)
    np.testing.assert_allclose(beliefs.posteriors, [release.posterior for release in releases], rtol=1e-12)
    np.testing.assert_allclose(
        beliefs.mass([0, 1, 1, 2]), [r.posterior[s] for r, s in zip(releases, [0, 1, 1, 2], strict=True)]
    )


def test_other_beliefs_against_all_paths() -> None:
    releases = run()
    rng = np.random.default_rng(2)
    likelihoods = np.exp([release.log_likelihood for release in releases])
    for initial in (np.array([0, 0, 0.5, 0.5]), rng.dirichlet(np.ones(4))):
        chain = rng.dirichlet(np.ones(4), size=4)
        beliefs = Adversary(chain, initial).watch(releases)
        priors, posteriors, smoothed, evidence = enumerate_paths(initial, chain, likelihoods)
        np.testing.assert_allclose(beliefs.priors, priors, rtol=1e-10)
        np.testing.assert_allclose(beliefs.posteriors, posteriors, rtol=1e-10)
        np.testing.assert_allclose(beliefs.smoothed, smoothed, rtol=1e-10)
        assert beliefs.log_evidence.sum() == pytest.approx(np.log(evidence))


def test_expected_errors_are_those_of_the_optimal_attack() -> None:
    stage = Trace(strip(4), md.graphs.line(4), 1, ring(4), INITIAL).table(1)[0]
    distance = md.distances.euclidean(strip(4))
    total = 0.0
    for output in range(4):
        joint = INITIAL * np.exp(stage.log_likelihood(output))
        total += joint.sum() * expected_error([joint / joint.sum()], distance)[0][0]
    assert total == pytest.approx(md.attack.optimal(stage.channel, INITIAL, distance).distortion)
    beliefs = Adversary(ring(4), INITIAL).watch(run())
    estimates = expected_error(beliefs.posteriors, distance)[1]
    np.testing.assert_array_equal(beliefs.errors([0, 1, 1, 2], distance), np.abs(estimates - [0, 1, 1, 2]))


def test_who_holds_fewer_states_for_possible_finds_the_policy_kept() -> None:
    # DPHMM, section 10.6, Case I: the odds of two joined states change by at most e^ε.
    for release in run(2):
        for one, other in release.stage.graph.edges:
            gain = release.log_likelihood[one] - release.log_likelihood[other]
            assert abs(gain) <= 1
    only = Adversary(np.eye(4), [0, 0.5, 0.5, 0]).watch(run(1))
    assert abs(np.log(only.posteriors[0, 1] / only.posteriors[0, 2])) <= 1
    known = Adversary(np.eye(4), [0, 1, 0, 0]).watch(run(1))
    assert known.posteriors[0].tolist() == [0, 1, 0, 0]


def test_who_holds_more_states_for_possible_rules_them_out_at_once() -> None:
    # Case II, with the full support: the designer knows that states 2 and 3 cannot be.
    trace = Trace(strip(4), md.graphs.complete(4), 1, np.eye(4), [0.5, 0.5, 0, 0], rng=4)
    releases = [trace.step(0)]
    wide = Adversary(np.eye(4), np.full(4, 0.25)).watch(releases)
    np.testing.assert_allclose(wide.posteriors[0], releases[0].posterior)
    with pytest.raises(InputError, match=r"releases\[0\]: is impossible"):
        Adversary(np.eye(4), [0, 0, 0.5, 0.5]).watch(releases)


def test_under_a_delta_set_the_others_pass_for_their_surrogates() -> None:
    trace = Trace(strip(4), md.graphs.complete(4), 1, np.eye(4), [0.5, 0.5, 0, 0], delta=0, rng=4)
    release = trace.step(3)
    wide = Adversary(np.eye(4), np.full(4, 0.25)).watch([release])
    assert wide.posteriors[0, 1] == wide.posteriors[0, 2] == wide.posteriors[0, 3]


def test_nothing_was_released_yet() -> None:
    assert Adversary(ring(4), INITIAL).watch([]).posteriors.shape == (0, 4)


def test_an_output_that_no_state_explains() -> None:
    trace = Trace(
        strip(3), md.graphs.from_edges(3, [(0, 1)]), 1, np.eye(3), [0.4, 0.4, 0.2], "lp", repair=None, within="map"
    )
    with released([2]):
        release = trace.step(2)
    assert release.posterior.tolist() == [0, 0, 1]
    with released([0]), pytest.raises(InputError, match="output: is impossible"):
        trace.step(2)
    assert trace.belief.tolist() == [0, 0, 1]
