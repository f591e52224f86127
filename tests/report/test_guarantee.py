"""The block on NIST SP 800-226: on every page, with sentences that follow from the result."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from report_examples import certificate, channel
from sweep_examples import sweep

import mechdesign as md
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.report import _audit_page, _compare_page, _design_page, _guarantee, _table_page
from mechdesign.report._compare_page import attack_design
from mechdesign.runs import _sweep_page
from mechdesign.tables._files import Publication

TERMS = [
    "Unit of privacy", "Privacy parameters", "Trust model", "Composition", "Side channels", "Data collection",
    "Not covered",
]  # fmt: skip
HEADING = "<h2>In the terms of NIST SP 800-226</h2>"
LINE = md.Domain.from_points([[0.0], [1.0], [2.0]], unit="km")
KM = md.distances.euclidean(LINE)
UNIFORM = md.Prior.uniform(3)
FLAT = np.full((3, 3), 1 / 3)


def describe(requirements, matrix=FLAT, prior=UNIFORM, origin=None):
    """Return the rows on a channel as a dict."""
    problem = md.Problem(prior, KM, requirements, secrets=LINE, observables=LINE)
    made = channel(matrix)
    proved = certificate(problem, made)
    rows = _guarantee.describe_design(problem, made, proved, origin)
    assert [term for term, _ in rows] == TERMS
    assert all(said and said == said.strip() and not said.endswith(".") for _, said in rows)
    return dict(rows)


def test_metric_privacy_of_a_channel():
    said = describe([md.MetricPrivacy("0.8", KM)])
    assert said["Unit of privacy"] == "the secret behind one answer, for all 6 ordered pairs of 3 secrets"
    expected = "metric privacy, ε per km (Euclidean distance): ε = 0.8 (tight value 0), δ = 0"
    assert said["Privacy parameters"] == expected
    assert said["Trust model"].startswith("local")
    assert "62 random bits" in said["Side channels"]
    assert "pairs of secrets that no requirement bounds" not in said["Not covered"]
    assert "revealed" not in said["Not covered"]


def test_threshold_privacy_leaves_pairs_free():
    said = describe([md.ThresholdPrivacy("0.8", KM, 1)])
    assert "4 of 6 ordered pairs" in said["Unit of privacy"]
    assert "pairs of secrets that no requirement bounds" in said["Not covered"]


def test_a_floor_is_not_differential_privacy():
    said = describe([md.DistortionPrivacy("0.3", KM)])
    assert said["Unit of privacy"].endswith("this is not differential privacy")
    assert "no ε, but an expected error of at least 0.3" in said["Privacy parameters"]
    assert "adversaries with another prior" in said["Not covered"]


def test_without_requirements_nothing_is_claimed():
    said = describe([])
    assert said["Privacy parameters"] == "none: nothing was required"
    assert said["Unit of privacy"].startswith("none")


def test_a_requirement_that_is_not_met_is_not_claimed():
    said = describe([md.MetricPrivacy("0.1", KM)], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    assert "ε = 0.1 (not met, tight value 2.07944" in said["Privacy parameters"]


def test_revealed_secrets_are_counted():
    graph = nx.Graph([(0, 1)])
    graph.add_node(2)
    said = describe([md.GraphPrivacy("1", graph)], [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]])
    assert said["Not covered"].startswith("1 of 3 secrets, which an answer reveals for certain; ")


@pytest.mark.parametrize(
    ("origin", "prior", "expected"),
    [
        (None, UNIFORM, "the prior was not counted in data"),
        (None, md.Prior.from_counts([1, 2, 3]), "the source of the prior is not known"),
        (Origin(prior="a uniform prior"), UNIFORM, "the prior was not counted in data (a uniform prior)"),
        (Origin(prior=STANDS_IN), UNIFORM, "the channel was designed for a private prior"),
        (
            Origin('prior.checkins.path = "c.csv"'),
            md.Prior.from_counts([1, 2, 3]),
            "the prior was counted in data",
        ),
    ],
)
def test_data_behind_the_prior(origin, prior, expected):
    assert describe([md.MetricPrivacy("0.8", KM)], prior=prior, origin=origin)["Data collection"].startswith(expected)


def test_a_continuous_requirement_has_points_as_unit():
    plan = md.Domain.anchors(columns=3, rows=3, width=2.0, height=2.0, unit="km")
    distance = md.distances.euclidean(plan)
    problem = md.Problem(
        md.Prior.uniform(9), distance, [md.ContinuousPrivacy("1", plan)], secrets=plan, observables=plan
    )
    made = channel(np.full((9, 9), 1 / 9))
    said = dict(_guarantee.describe_design(problem, made, certificate(problem, made), None))
    assert "any two points of the rectangle" in said["Unit of privacy"]


def audited(matrix):
    rows = _guarantee.describe_audit(md.audit(matrix, distance=KM))
    assert [term for term, _ in rows] == TERMS
    return dict(rows)


def test_an_audit_with_and_without_a_finite_epsilon():
    said = audited([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    assert said["Privacy parameters"].startswith("ε = 0.69")
    assert "6 ordered pairs of 3 secrets" in said["Unit of privacy"]
    assert "rows as they are given" not in said["Not covered"]
    said = audited(np.eye(3))
    assert said["Privacy parameters"].startswith("no finite ε holds")
    assert "3 of 3 secrets, which an answer reveals" in said["Not covered"]
    said = audited([[0.5, 0.25, 0.2501], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    assert "rows as they are given" in said["Not covered"]


AGES = md.tables.Domain({"age": range(10)})


def released(policy=None, **options):
    policy = md.tables.Policy.line(AGES) if policy is None else policy
    release = md.tables.release_histogram([1, 2, 2, 7], policy, **options)
    rows = _guarantee.describe_table(release.description)
    assert [term for term, _ in rows] == TERMS
    return dict(rows)


def test_releases_from_tables():
    said = released(epsilon="0.5")
    assert said["Privacy parameters"] == "ε = 0.5, δ = 0"
    assert said["Trust model"].startswith("central")
    assert "of the operating system" in said["Side channels"]
    assert said["Unit of privacy"].startswith("Two databases are neighbours if")
    assert said["Not covered"] == "pairs of databases that are not neighbours under this policy"
    said = released(rho="0.5")
    assert said["Privacy parameters"] == "ρ = 0.5 of zero-concentrated differential privacy"


def test_a_rehearsal_has_no_guarantee():
    said = released(epsilon=1, rng=1)
    assert said["Not covered"].startswith("this release: its noise came from a given generator")
    assert "of a given generator" in said["Side channels"]


def test_policies_have_their_own_neighbours():
    full = released(md.tables.Policy.full(AGES), epsilon=1)
    assert full["Unit of privacy"] != released(epsilon=1)["Unit of privacy"]


WALK = """
domain.grid = {{ columns = 3, rows = 2, width = 3.0, height = 2.0 }}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{{ kind = "graph", epsilon = "0.5", neighbours = 4 }}]
release = {{ mechanism = "{}", transition = {{ neighbours = 4 }}{} }}
"""


def traced(folder: Path, mechanism: str, more: str = "", seed: int | None = 1):
    (folder / "t.csv").write_text("state\n0\n1\n1\n")
    made = md.specification.parse(WALK.format(mechanism, more)).release(folder / "t.csv", seed=seed)
    rows = _guarantee.describe_trace(made)
    assert [term for term, _ in rows] == TERMS
    return dict(rows)


def test_traces(tmp_path):
    said = traced(tmp_path, "lp", seed=None)
    assert "ε = 1.5 for all 3 steps together, δ = 0" in said["Privacy parameters"]
    assert "for 7 pairs of states" in said["Unit of privacy"]
    assert said["Side channels"] == "outputs of certified channels are drawn with integers"
    assert "rehearsal" not in said["Not covered"]
    said = traced(tmp_path, "planar-isotropic", ", snap = false")
    assert "floating-point noise" in said["Side channels"]
    assert said["Not covered"].startswith("this release: its randomness came from a seed")
    assert "outputs are floating-point numbers" in said["Not covered"]


def test_sweeps():
    asked = sweep()
    rows = dict(_guarantee.describe_sweep(list(asked.values), ""))
    assert list(rows) == TERMS
    assert all(key in rows["Privacy parameters"] for key in asked.values)
    assert HEADING in _sweep_page.html(asked, [], [*asked.values])
    said = dict(_guarantee.describe_sweep(["prior.counts"], "The prior was counted"))
    assert said["Data collection"] == "the prior was counted"


def test_every_page_has_the_block():
    found = md.audit([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]], distance=KM)
    release = md.tables.release_histogram([1, 2], md.tables.Policy.line(AGES), epsilon=1)
    for page in (_audit_page.page(found), _table_page.html(Publication(release))):
        assert page.count(HEADING) == 1
        assert all(f'<th scope="row">{term}</th>' in page for term in TERMS)


def test_an_answer_that_all_designs_share_is_said_once():
    one = {"Unit": "u", "Privacy": "p"}
    rows = _guarantee.describe_comparison({"a": list(one.items()), "b": [("Unit", "u"), ("Privacy", "q")]})
    assert rows == [("Unit", "u"), ("Privacy", "a: p. b: q")]
    with pytest.raises(ValueError, match="zip"):
        _guarantee.describe_comparison({"a": list(one.items()), "b": [("Unit", "u")]})


def test_a_comparison_says_the_source_of_each_prior():
    problem = md.Problem(UNIFORM, KM, [md.MetricPrivacy("0.8", KM)], secrets=LINE, observables=LINE)
    made = channel(FLAT)
    designs = [
        attack_design(name, problem, made, certificate(problem, made), origin)
        for name, origin in (("a", None), ("b", Origin(prior="a uniform prior")))
    ]
    page = _compare_page.html(designs)
    assert page.count(HEADING) == 1
    assert all(f'<th scope="row">{term}</th>' in page for term in TERMS)
    assert "b: the prior was not counted in data (a uniform prior)" in page


def test_a_benchmark_says_which_problems_come_from_data():
    said = dict(_guarantee.describe_benchmark({"grid": "a grid", "checkins": "check-ins"}, ["checkins"]))
    assert list(said) == TERMS
    assert "grid (a grid), checkins (check-ins)" in said["Privacy parameters"]
    assert "except checkins, whose priors were counted in data" in said["Data collection"]
    assert "except" not in dict(_guarantee.describe_benchmark({"grid": "a grid"}, []))["Data collection"]
    assert "No problem was run" in dict(_guarantee.describe_benchmark({}, []))["Privacy parameters"]


def test_texts_are_escaped():
    problem = md.Problem(UNIFORM, KM, [md.MetricPrivacy(1, KM)], secrets=LINE, observables=LINE)
    made = channel(FLAT)
    page = _design_page.html(problem, made, certificate(problem, made), Origin(prior="<script>alert(1)</script>"))
    assert "<script>alert" not in page
    assert page.count(HEADING) == 1
