import dataclasses

import numpy as np
import pytest

import mechdesign as md
from mechdesign.solvers import Status
from mechdesign.synthesis import search


def problem(k):
    domain = md.Domain.grid(k, k, float(k), float(k))
    d = md.distances.euclidean(domain)
    weights = np.arange(k * k) % 4 + 1.0
    return md.Problem(weights / weights.sum(), d, [md.MetricPrivacy(0.6, d)])


@pytest.fixture
def stalling(monkeypatch):
    """The block method, as if it had stalled after some progress."""
    solve = search.relax_block

    def stalled(form, options):
        options = dataclasses.replace(options, tolerance=1e-3)
        return dataclasses.replace(solve(form, options), status=Status.STALLED, message="stalled on purpose")

    monkeypatch.setattr(search, "relax_block", stalled)


def test_the_block_method_is_chosen_where_it_wins():
    assert md.design(problem(3)).certificate.provenance["solver"] == "highs-simplex"
    assert md.design(problem(6)).certificate.provenance["solver"] == "block"
    assert md.design(problem(6), rows="lazy").certificate.provenance["solver"] == "highs-ipx"


@pytest.mark.usefixtures("stalling")
def test_where_we_chose_it_and_it_stalls_another_solver_takes_over_and_says_so():
    moments = []
    certificate = md.design(problem(6), report=moments.append).certificate
    assert certificate.provenance["solver"] == "highs-ipx"
    assert "stalled on purpose" in certificate.provenance["fallback"]
    assert any("takes over" in moment.stage for moment in moments)
    assert certificate.relative_gap <= 1e-8


@pytest.mark.usefixtures("stalling")
def test_where_the_caller_chose_it_what_it_found_stands_with_its_own_gap():
    design = md.design(problem(6), solver="block")
    assert design.certificate.holds
    assert design.certificate.relative_gap > 1e-9
    assert design.status == Status.STALLED.value


@pytest.mark.usefixtures("stalling")
def test_where_another_solver_would_take_hours_what_was_found_stands(monkeypatch):
    monkeypatch.setattr(search, "_TOO_MANY", 100)
    certificate = md.design(problem(6)).certificate
    assert certificate.provenance["solver"] == "block"
    assert certificate.holds
