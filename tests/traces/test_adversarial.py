from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_examples import ANSWERS, FIGURE_3B, ring, strip

import mechdesign as md
from mechdesign.certify._exact import as_decimal
from mechdesign.traces._adversary import adversarial_level, adversarial_privacy
from mechdesign.traces._composition import stage_level
from mechdesign.traces._trace import Trace

WHOLE = 2**62


def channel_of(weights: np.ndarray) -> md.Channel:
    """Give the channel nearest to some rows, their last entries taking up what is left."""
    numerators = (weights / weights.sum(axis=1, keepdims=True) * 2**40).astype(np.int64) * 2**22
    numerators[:, -1] += WHOLE - numerators.sum(axis=1)
    return md.Channel(numerators)


def brute(channel: md.Channel, belief: np.ndarray) -> Fraction:
    """Try all pairs of a state and an output."""
    prior = [Fraction(p) / sum(map(Fraction, belief.tolist())) for p in belief.tolist()]
    rows = channel.numerators.tolist()
    found = []
    for output in range(len(rows[0])):
        evidence = sum(p * row[output] for p, row in zip(prior, rows, strict=True))
        if evidence:
            posterior = [p * row[output] / evidence for p, row in zip(prior, rows, strict=True)]
            found += [after / before for after, before in zip(posterior, prior, strict=True) if before]
    return max(found)


@settings(max_examples=50)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_against_all_pairs(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    channel = channel_of(rng.integers(0, 4, (n, m)) + rng.integers(0, 2) + 1e-3 * np.eye(n, m) + 1e-6)
    belief = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    belief = belief / belief.sum() if belief.sum() else np.eye(n)[0]
    found = adversarial_privacy(channel, belief)
    assert found.factor == brute(channel, belief)
    assert math.exp(found.epsilon) == pytest.approx(float(found.factor))
    total = sum(map(Fraction, belief.tolist()))
    column = channel.numerators[:, found.observable].tolist()
    evidence = sum(Fraction(p) * number for p, number in zip(belief.tolist(), column, strict=True))
    assert column[found.secret] * total / evidence == found.factor


def test_who_knows_the_state_learns_nothing() -> None:
    # DPHMM, section 10.6, Case I with a single state.
    channel = channel_of(np.array([[3.0, 1.0], [1.0, 3.0]]))
    assert adversarial_privacy(channel, [1, 0]).epsilon == 0


def test_a_channel_that_tells_all_raises_a_belief_to_certainty() -> None:
    found = adversarial_privacy(channel_of(np.eye(3) + np.zeros((3, 3))), [0.5, 0.25, 0.25])
    assert found.factor == 4
    assert as_decimal(found.epsilon) >= as_decimal(math.log(4))


def test_it_is_no_more_than_indistinguishability_and_comes_close_to_it() -> None:
    # DPHMM, Theorem 10.10: for all beliefs together, adversarial privacy is indistinguishability.
    stage = Trace(strip(4), md.graphs.complete(4), 1, ring(4), np.full(4, 0.25)).table(1)[0]
    levels = [adversarial_level(stage, belief) for belief in np.random.default_rng(1).dirichlet(np.ones(4), 30)]
    assert max(levels) < stage.realised <= 1
    sure = [0.999999 * np.eye(4)[j] + 0.000001 * np.eye(4)[i] for i in range(4) for j in range(4) if i != j]
    closest = max(adversarial_level(stage, belief) for belief in sure)
    assert stage.realised - 1e-5 < closest < stage.realised


@pytest.mark.parametrize("choice", ["graph", "component"])
def test_noise_against_a_search_over_places(choice: str) -> None:
    domain = md.Domain.from_points(ANSWERS)
    belief = np.array([0.1, 0.3, 0.25, 0.05, 0.2, 0.1])
    trace = Trace(domain, FIGURE_3B, 1, np.full((6, 6), 1 / 6), belief, "planar-isotropic", snap=False, hull=choice)
    stage = trace.table(1)[0]
    level = adversarial_level(stage, belief)
    grid = np.stack(np.meshgrid(np.linspace(-3, 8, 23), np.linspace(-4, 7, 23)), axis=-1).reshape(-1, 2)
    densities = np.exp([stage.log_likelihood(None, z) for z in [*ANSWERS, *grid]])
    with np.errstate(invalid="ignore"):
        factors = densities / (densities @ belief)[:, None]
    assert np.log(np.nanmax(factors)) <= level + 1e-9
    if choice == "graph":
        assert np.log(np.nanmax(factors[:6])) == pytest.approx(level)
        assert level <= stage_level(stage)


def test_noise_of_other_components_hides_nobody() -> None:
    """The level is max_i −ln Σ_j p_j exp(−ε ‖f(s_i) − f(s_j)‖_K), over the states j of the component of i alone."""
    triangle = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]])
    places, belief = np.concatenate((triangle, 2 * triangle + 0.5)), np.array([0.3, 0.1, 0.1, 0.1, 0.2, 0.2])
    g = md.graphs.categories([0, 0, 0, 1, 1, 1])
    trace = Trace(md.Domain.from_points(places), g, 2, np.eye(6), belief, snap=False)
    stage, sums = trace.table(1)[0], []
    for i in range(6):
        own = range(3) if i < 3 else range(3, 6)
        norms = [float(stage.fitted.mechanism.hull(i).norm(places[j] - places[i])) for j in own]
        sums.append(sum(belief[j] * math.exp(-2 * norm) for j, norm in zip(own, norms, strict=True)))
    assert adversarial_level(stage, belief) == pytest.approx(-math.log(min(sums)), rel=1e-12)


def test_states_that_the_designer_rules_out_are_ruled_out() -> None:
    trace = Trace(strip(3), md.graphs.complete(3), 1, ring(3), [0.5, 0.5, 0])
    stage = trace.table(1)[0]
    known = adversarial_level(stage, [0.5, 0.5, 0])
    assert adversarial_level(stage, [0.25, 0.25, 0.5]) == pytest.approx(known + math.log(2))
    assert adversarial_level(stage, [0, 0, 1]) == math.inf
