"""The block on NIST SP 800-226, with sentences that follow from the result."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
from report_examples import TERMS, certificate, channel

import mechdesign as md
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.report import _guarantee

UNIT, PARAMETERS, TRUST, _, SIDE, DATA, REST = TERMS
LINE = md.Domain.from_points([[0.0], [1.0], [2.0]], unit="km")
KM = md.distances.euclidean(LINE)
UNIFORM, COUNTED = md.Prior.uniform(3), md.Prior.from_counts([1, 2, 3])
FLAT = np.full((3, 3), 1 / 3)
AGES = md.tables.Domain({"age": range(10)})


def says(rows, *expected: tuple[str, str]) -> dict[str, str]:
    """Check that rows on a result say something for each term, and the expected texts; return them."""
    said = dict(rows)
    assert list(said) == TERMS
    assert all(text and text == text.strip() for text in said.values())
    assert [(term, said[term]) for term, text in expected if text not in said[term]] == []
    return said


def describe(requirements, matrix=FLAT, prior=UNIFORM, origin=None, domain=LINE, cost=KM):
    problem = md.Problem(prior, cost, requirements, secrets=domain, observables=domain)
    made = channel(matrix)
    return _guarantee.describe_design(problem, made, certificate(problem, made), origin)


def test_a_channel_is_described_by_its_requirements():
    privacy = "metric privacy, ε per km (Euclidean distance): ε = 0.8 (tight value 0), δ = 0"
    said = says(
        describe([md.MetricPrivacy("0.8", KM)]),
        (UNIT, "the secret behind one answer, for all 6 ordered pairs of 3 secrets"),
        (PARAMETERS, privacy),
        (TRUST, "local"),
        (SIDE, "62 random bits"),
    )
    free = "pairs of secrets that no requirement bounds"
    assert free not in said[REST]
    assert "revealed" not in said[REST]
    says(describe([md.ThresholdPrivacy("0.8", KM, 1)]), (UNIT, "4 of 6 ordered pairs"), (REST, free))
    says(
        describe([md.DistortionPrivacy("0.3", KM)]),
        (UNIT, "this is not differential privacy"),
        (PARAMETERS, "no ε, but an expected error of at least 0.3"),
        (REST, "adversaries with another prior"),
    )
    plan = md.Domain.anchors(columns=3, rows=3, width=2.0, height=2.0, unit="km")
    asked, apart = [md.ContinuousPrivacy("1", plan)], md.distances.euclidean(plan)
    rows = describe(asked, np.full((9, 9), 1 / 9), md.Prior.uniform(9), domain=plan, cost=apart)
    says(rows, (UNIT, "any two points of the rectangle"))


def test_what_does_not_hold_is_not_claimed():
    says(describe([]), (PARAMETERS, "none: nothing was required"), (UNIT, "none"))
    wide = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    says(describe([md.MetricPrivacy("0.1", KM)], wide), (PARAMETERS, "ε = 0.1 (not met, tight value 2.07944"))
    graph = nx.Graph([(0, 1)])
    graph.add_node(2)
    rows = describe([md.GraphPrivacy("1", graph)], [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]])
    says(rows, (REST, "1 of 3 secrets, which an answer reveals for certain; "))


def test_data_behind_the_prior():
    for origin, prior, expected in (
        (None, UNIFORM, "the prior was not counted in data"),
        (None, COUNTED, "the source of the prior is not known"),
        (Origin(prior="a uniform prior"), UNIFORM, "the prior was not counted in data (a uniform prior)"),
        (Origin(prior=STANDS_IN), UNIFORM, "the channel was designed for a private prior"),
        (Origin('prior.checkins.path = "c.csv"'), COUNTED, "the prior was counted in data"),
    ):
        says(describe([md.MetricPrivacy("0.8", KM)], prior=prior, origin=origin), (DATA, expected))


def test_an_audit_with_and_without_a_finite_epsilon():
    def audited(matrix, *expected):
        return says(_guarantee.describe_audit(md.audit(matrix, distance=KM)), *expected)

    fair = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    said = audited(fair, (PARAMETERS, "ε = 0.69"), (UNIT, "6 ordered pairs of 3 secrets"))
    assert "rows as they are given" not in said[REST]
    secrets = "3 of 3 secrets, which an answer reveals"
    audited(np.eye(3), (PARAMETERS, "no finite ε holds"), (REST, secrets))
    audited([[0.5, 0.25, 0.2501], *fair[1:]], (REST, "rows as they are given"))


def test_releases_from_tables():
    def released(policy, *expected, **options):
        release = md.tables.Histogram().release([1, 2, 2, 7], policy, **options)
        return says(_guarantee.describe_table(release.description), *expected)

    line, full = md.tables.Policy.threshold(AGES, 1), md.tables.Policy.full(AGES)
    said = released(
        line,
        (PARAMETERS, "ε = 0.5, δ = 0"),
        (TRUST, "central"),
        (SIDE, "of the operating system"),
        (UNIT, "Two databases are neighbours if"),
        (REST, "pairs of databases that are not neighbours under this policy"),
        epsilon="0.5",
    )
    assert released(full, epsilon=1)[UNIT] != said[UNIT]
    released(line, (PARAMETERS, "ρ = 0.5 of zero-concentrated differential privacy"), rho="0.5")
    given = "this release: its noise came from a given generator"
    released(line, (REST, given), (SIDE, "of a given generator"), epsilon=1, rng=1)


WALK = """
domain.grid = {{ columns = 3, rows = 2, width = 3.0, height = 2.0 }}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{{ kind = "graph", epsilon = "0.5", neighbours = 4 }}]
release = {{ mechanism = "{}", transition = {{ neighbours = 4 }}{} }}
"""


def test_traces(tmp_path: Path):
    def traced(mechanism, more, seed, *expected):
        (tmp_path / "t.csv").write_text("state\n0\n1\n1\n")
        made = md.specification.parse(WALK.format(mechanism, more)).release(tmp_path / "t.csv", seed=seed)
        return says(_guarantee.describe_trace(made), *expected)

    told = (PARAMETERS, "ε = 1.5 for all 3 steps together, δ = 0"), (UNIT, "for 7 pairs of states")
    said = traced("lp", "", None, *told, (SIDE, "outputs of certified channels are drawn with integers"))
    assert "rehearsal" not in said[REST]
    given = "this release: its randomness came from a seed"
    floats = "outputs are floating-point numbers"
    traced("planar-isotropic", ", snap = false", 1, (SIDE, "floating-point noise"), (REST, given), (REST, floats))
