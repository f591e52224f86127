from __future__ import annotations

import numpy as np
import pytest
from trace_examples import ring, strip

import mechdesign as md
from mechdesign.measures import _utility as metrics
from mechdesign.traces._trace import Trace

CHANNEL = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]
PRIOR = [0.5, 0.25, 0.25]


def test_by_hand() -> None:
    places = [[0.0], [3.0], [4.0]]
    assert metrics.euclidean_error(CHANNEL, PRIOR, places) == 0.5 * 1.5 + 0.25 * (1 + 0.25)
    assert metrics.mismatch_error(CHANNEL, PRIOR, ["a", "b", "b"]) == 0.5 * 0.5 + 0.25 * 0.25
    assert metrics.mismatch_error(CHANNEL, PRIOR, ["a", "b", "b"], observables=["b", "b", "a"]) == 0.5 + 0.25 * 0.5


def test_expectations_match_samples() -> None:
    domain = strip(6)
    channel = Trace(domain, md.graphs.complete(6), 1, ring(6), np.full(6, 1 / 6)).table(1)[0].channel
    rng = np.random.default_rng(1)
    states = rng.integers(6, size=20_000)
    outputs = channel.sample(states, rng=rng)
    lengths = np.linalg.norm(domain.points[states] - domain.points[outputs], axis=1)
    prior = np.full(6, 1 / 6)
    assert lengths.mean() == pytest.approx(metrics.euclidean_error(channel, prior, domain), rel=0.02)
    regions = metrics.regions(domain, 3)
    wrong = regions[states] != regions[outputs]
    assert wrong.mean() == pytest.approx(metrics.mismatch_error(channel, prior, regions), rel=0.03)


def test_regions_are_the_blocks() -> None:
    domain = md.Domain.grid(5, 4, 5.0, 4.0)
    regions = metrics.regions(domain, 2)
    assert regions.reshape(4, 5).tolist() == [[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [3, 3, 4, 4, 5], [3, 3, 4, 4, 5]]
    assert set(md.graphs.categories(regions).edges) == set(md.graphs.blocks(domain, 2).edges)
    # Within its own region nothing that an optimal channel says is in another one (PGLP, Figure 7).
    trace = Trace(domain, md.graphs.blocks(domain, 2), 1, ring(20), np.full(20, 0.05), "lp", repair=None)
    assert metrics.mismatch_error(trace.table(1)[0].channel, np.full(20, 0.05), regions) == 0
