"""Floors under priors of their own: against an independent program, in every room, and what is said of wrong ones."""

import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from click.testing import CliRunner
from rows import each_row
from scipy.optimize import linprog

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.certify import _bundle as bundle
from mechdesign.cli import main
from mechdesign.errors import (
    CertificateError,
    InfeasibleError,
    InputWarning,
    RevealedWarning,
    SpecificationError,
)
from mechdesign.model._problem import largest_distortion
from mechdesign.report._design_page import adversaries

HAMMING = 1.0 - np.eye(4)


def least_cost(prior, cost, floors, metric=None):
    """Return the optimum of the program with all its rows; `floors` holds (minimum, error, prior) of each adversary."""
    n, m = cost.shape
    width = n * m + len(floors) * m
    rows, limits = [], []
    if metric is not None:
        for s in range(n):
            for t in range(n):
                for o in range(m):
                    row = np.zeros(width)
                    row[s * m + o] += 1
                    row[t * m + o] -= np.exp(metric[s, t])
                    rows.append(row)
                    limits.append(0.0)
    for index, (minimum, error, belief) in enumerate(floors):
        start = n * m + index * m
        for o in range(m):
            for guess in error:
                row = np.zeros(width)
                row[start + o] = 1.0
                row[np.arange(n) * m + o] -= belief * guess
                rows.append(row)
                limits.append(0.0)
        row = np.zeros(width)
        row[start : start + m] = -1.0
        rows.append(row)
        limits.append(-minimum)
    sums = np.zeros((n, width))
    for s in range(n):
        sums[s, s * m : (s + 1) * m] = 1.0
    objective = np.concatenate([(prior[:, None] * cost).ravel(), np.zeros(len(floors) * m)])
    found = linprog(objective, np.array(rows), limits, sums, np.ones(n), method="highs")
    assert found.status == 0, found.message
    return found.fun


def exact_floor(numerators, prior, error):
    """Return Σ_o min_ŝ Σ_s π'_s p(o|s) a(ŝ,s) as a fraction, by brute force."""
    total = Fraction(0)
    for o in range(numerators.shape[1]):
        joint = [Fraction(float(w)) * int(n) for w, n in zip(prior, numerators[:, o], strict=True)]
        total += min(sum(Fraction(float(a)) * j for a, j in zip(row, joint, strict=True)) for row in error)
    return total / 2**62


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("block", range(8))
def test_two_floors_under_different_priors_against_an_independent_program(block):
    rng = np.random.default_rng(block)
    for _ in range(25):
        n, m = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        prior, other, third = rng.dirichlet(np.ones(n), size=3)
        cost, error = rng.random((n, m)), np.round(rng.random((int(rng.integers(2, 5)), n)), 3)
        beliefs = [None, other] if rng.random() < 0.5 else [third, other]
        minima, floors = [], []
        for belief in beliefs:
            own = prior if belief is None else belief
            minimum = Fraction(
                round(float(largest_distortion(own, error)) * rng.uniform(0.2, 0.9), 6)
            ).limit_denominator(10**6)
            minima.append(minimum)
            floors.append((float(minimum), error, own))
        required = [
            md.DistortionPrivacy(minimum, error, prior=belief) for minimum, belief in zip(minima, beliefs, strict=True)
        ]
        metric = None
        if rng.random() < 0.4:
            apart = rng.random((n, 2))
            metric = np.sqrt(((apart[:, None] - apart[None]) ** 2).sum(axis=2))
            required.append(md.MetricPrivacy(1, metric))
        design = md.design(md.Problem(prior, cost, required))
        assert design.certificate.cost == pytest.approx(least_cost(prior, cost, floors, metric), rel=1e-6, abs=1e-7)
        for (_, _, own), minimum, realised in zip(floors, minima, design.certificate.distortion, strict=True):
            left = exact_floor(design.channel.numerators, own, error)
            assert left >= minimum
            assert Fraction(realised) <= left + Fraction(1, 10**15)


@pytest.fixture(autouse=True)
def blank(monkeypatch):
    leave_pictures_blank(monkeypatch)


def floors_of(tmp_path, **prior):
    domain = md.Domain.grid(3, 2, 3.0, 2.0)
    error = md.distances.euclidean(domain)
    true = md.Prior.from_counts([6, 5, 4, 3, 2, 1])
    required = [md.MetricPrivacy(2, error), md.DistortionPrivacy(0.5, error, **prior)]
    design = md.design(md.Problem(true, error, required, secrets=domain, observables=domain))
    md.save(design, tmp_path / "set")
    return design, tmp_path / "set"


def test_a_set_of_priors_is_one_requirement_and_survives_the_export(tmp_path):
    priors = md.Prior.bootstrap([6, 5, 4, 3, 2, 1], samples=3, rng=3)
    design, folder = floors_of(tmp_path, prior=priors)
    assert len(design.certificate.distortion) == 3
    assert min(design.certificate.distortion) >= 0.5
    assert not md.verify(folder).differences(design.certificate)
    loaded = md.Design.load(folder).problem.requirements[1]
    assert isinstance(loaded, md.DistortionPrivacy)
    assert [each.probabilities.tolist() for each in loaded.priors] == [each.probabilities.tolist() for each in priors]
    page = (folder / "report.html").read_text()
    assert "<h2>Adversaries</h2>" in page
    assert page.count("the prior of requirement") == 3
    assert "believing any of 3 priors that were given for it" in page


def test_the_report_has_what_an_adversary_expects_and_really_gets(tmp_path):
    uniform = md.Prior.uniform(6)
    design, folder = floors_of(tmp_path, prior=uniform)
    knowing, ignorant = adversaries(design.problem, design.channel)
    error = design.problem.requirements[1].distance
    assert knowing.expected == pytest.approx(knowing.real)
    assert ignorant.expected == pytest.approx(design.certificate.distortion[0])
    real = md.attack.optimal(design.channel, uniform, error, truth=design.problem.prior).distortion
    assert ignorant.real == pytest.approx(real)
    assert real >= knowing.expected - 1e-12
    assert "believing all secrets equally likely" in (folder / "report.html").read_text()


def test_the_verifier_catches_a_floor_that_is_not_met_and_a_prior_that_was_changed(tmp_path):
    _, folder = floors_of(tmp_path, prior=md.Prior.uniform(6))
    found = bundle.read(folder)
    assert [stated.kind for stated in found.evidence.requirements] == ["metric", "floor"]
    assert found.evidence.requirements[1].name == "distortion"
    import json

    path = folder / bundle.CERTIFICATE
    document = json.loads(path.read_text())
    document["requirements"][1]["minimum"] = "0.9"
    document["digest"] = bundle.document_digest(document)
    path.write_text(json.dumps(document))
    with pytest.raises(CertificateError, match="expected error, under the prior of this requirement,"):
        md.verify(folder)


def test_a_wrong_adversary_may_err_less_in_truth():
    channel = np.array([[1.0], [1.0]])
    hamming = 1.0 - np.eye(2)
    believed = md.attack.optimal(channel, [0.6, 0.4], hamming)
    assert believed.distortion == pytest.approx(0.4)
    assert md.attack.optimal(channel, [0.6, 0.4], hamming, truth=[0.9, 0.1]).distortion == pytest.approx(0.1)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_just_inside_and_just_outside_the_largest_floor():
    belief, prior = [0.5, 0.25, 0.125, 0.125], [0.25] * 4
    assert (
        md.design(
            md.Problem(prior, HAMMING, [md.DistortionPrivacy("0.5", HAMMING, prior=belief)])
        ).certificate.distortion[0]
        >= 0.5
    )
    with pytest.raises(
        InfeasibleError, match=r"requirements\[0\].minimum: .*0\.500001 under the prior of this requ.* is 0\.5\."
    ):
        md.Problem(prior, HAMMING, [md.DistortionPrivacy("0.500001", HAMMING, prior=belief)])
    with pytest.raises(
        InfeasibleError, match=r"under all 2 priors of this requirement \(prior\[1\] allows the least error\)"
    ):
        md.Problem(prior, HAMMING, [md.DistortionPrivacy(0.6, HAMMING, prior=[prior, belief])])


def test_mass_where_the_prior_of_the_problem_has_none_is_said():
    requirement = md.DistortionPrivacy(0.5, HAMMING, prior=md.Prior.uniform(4))
    with pytest.warns(
        InputWarning, match=r"^requirements\[0\].prior: gives probability 0\.5 to 2 secret\(s\) with probability 0"
    ):
        problem = md.Problem([0.5, 0.5, 0.0, 0.0], HAMMING, [requirement])
    # What the warning says comes true: the floor costs nothing, and the two secrets that occur are told.
    with pytest.warns(RevealedWarning, match="No requirement bounds a pair of secrets"):
        design = md.design(problem)
    assert design.certificate.cost < 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        md.Problem([0.5, 0.5, 0.0, 0.0], HAMMING, [md.DistortionPrivacy(0, HAMMING, prior=md.Prior.uniform(4))])


SPECIFICATION = """
title = "Two adversaries"
domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
prior.counts = [6, 5, 4, 3, 2, 1]
cost.distance = "euclidean"

[[privacy]]
kind = "distortion"
minimum = 0.5
distance = "euclidean"

[[privacy]]
kind = "distortion"
minimum = 0.6
distance = "euclidean"
prior = { uniform = true }

[[privacy]]
kind = "distortion"
minimum = 0.3
distance = "euclidean"
prior = [{ counts = [1, 2, 3, 4, 5, 6] }, { probabilities = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1] }]
"""


def test_a_specification_names_priors(tmp_path: Path):
    (tmp_path / "spec.toml").write_text(SPECIFICATION)
    found = CliRunner().invoke(main, ["design", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "out")])
    assert found.exit_code == 0, found.output
    assert "under its own prior" in found.output
    assert found.output.count("under its own 2 priors") == 2
    verified = CliRunner().invoke(main, ["verify", str(tmp_path / "out")])
    assert verified.exit_code == 0, verified.output
    assert len(md.verify(tmp_path / "out").distortion) == 4


@each_row(
    ("old", "new", "message"),
    [
        ("{ uniform = true }", "{ uniform = false }", r"privacy[1].prior.uniform: cannot be false"),
        (
            "{ uniform = true }",
            "{ counts = [1] }",
            r"privacy[1].prior.counts: has another length than the domain; found 1",
        ),
        ("{ uniform = true }", "7", r"privacy[1].prior: has the wrong type; found 7"),
        ("{ uniform = true }", "{ flat = true }", r"privacy[1].prior.flat: is not a known key"),
        ("[0.5, 0.1,", "[0.6, 0.1,", r"privacy[2].prior[1].probabilities: does not sum to 1"),
        ("prior = [{ counts", "prior = []\nx = [{ counts", r"privacy[2].x: is not a known key"),
    ],
)
def test_wrong_priors_in_a_specification_name_the_key(old, new, message):
    with pytest.raises(SpecificationError, match=re.escape(message)):
        spec.parse(SPECIFICATION.replace(old, new)).problem()
