"""Steps that can fail run before a ledger is charged, and refusals by size reveal nothing about a private table."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from releases import release_by, release_counts, strategy_of

import mechdesign as md
from mechdesign.certify._exact import nearest
from mechdesign.cli import main
from mechdesign.errors import InputError
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.specification._table_specification import parse
from mechdesign.tables._budget import scale_numbers
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy

B = md.tables
LEAST = 5e-324


def test_steps_below_every_normal_float_are_answered_exactly():
    for values, unbounded in itertools.product(
        ([0.0, LEAST], [0.0, 1e-310], [0, 3e-320, 9e-320], [0.0, 1e-300]), (False, True)
    ):
        policy = Policy.full(Domain({"x": values}), unbounded=unbounded)
        records = {"x": [values[0], values[1], values[1], values[-1]]}
        total = 2 * values[1] + values[-1]
        # With an ε this large the noise is 0.
        ledger = md.Ledger(epsilon=2 * 10**6)
        found = B.Sum().release(records, policy, epsilon=10**6, ledger=ledger)
        assert found.answers.tolist() == [nearest(sum(Fraction(repr(value)) for value in records["x"]))], values
        found = B.KMeans(1, iterations=2, initial=[[values[1]]]).release(records, policy, epsilon=10**6, ledger=ledger)
        assert found.centroids[0, 0] == pytest.approx(total / 4, rel=1e-9, abs=LEAST), values
        assert ledger.remaining_epsilon == 0
        assert B.Sum("x").plan(policy, epsilon=1).taken.error <= 2 * values[-1], values


def test_noise_in_subnormal_steps_is_as_wide_as_it_says():
    policy = Policy.full(Domain({"x": [0.0, 1e-320]}))
    found = B.Sum().release({"x": [0.0] * 10}, policy, epsilon="0.001", rng=1)
    assert found.answers[0] != 0
    assert found.standard_errors[0] == pytest.approx(1414 * 1e-320, rel=0.01)
    assert found.low[0] <= found.answers[0] <= found.high[0]


@pytest.mark.parametrize("kind", ["sum", "kmeans"])
def test_a_command_answers_in_subnormal_steps(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    more = "k = 1" if kind == "kmeans" else ""
    Path("s.toml").write_text(
        "table.person = false\ndomain.attributes.x = { values = [0.0, 1e-310] }\npolicy.kind = 'full'\n"
        f"[release]\nkind = '{kind}'\n{more}\n"
        "epsilon = 1\n[ledger]\npath = 'l.json'\nepsilon = 2\n",
        encoding="utf-8",
    )
    Path("t.csv").write_text("x\n0\n1e-310\n", encoding="utf-8")
    report = [] if kind == "sum" else ["--no-report"]
    result = CliRunner().invoke(main, ["table", "s.toml", "t.csv", "-o", "out", *report])
    assert result.exit_code == 0, result.output
    assert 0 < md.tables.load("out").description.step <= Fraction(1, 10**310)
    assert Path("out/report.html").exists() == (kind == "sum")


def test_multiples_of_a_step_are_the_nearest_floats():
    dice = np.random.default_rng(9)
    for power, size in itertools.product((0, 3, 280, 300, 310, 324, 330), (1, 2**52, 2**61)):
        step = Fraction(int(dice.integers(1, 1000)), 10**power)
        numbers = dice.integers(-size, size + 1, 5)
        for got, number in zip(scale_numbers(numbers, step), numbers.tolist(), strict=True):
            assert got == pytest.approx(nearest(number * step), rel=2**-51, abs=0)
    # Steps whose numerators and denominators exceed floats, and steps just inside and just outside their range.
    assert scale_numbers([3], Fraction(10**400 + 1, 10**400)).tolist() == [3.0]
    for bits in (899, 900, 901, 1074):
        assert scale_numbers([1.0, 3], Fraction(1, 2**bits)).tolist() == [2.0**-bits, 3 * 2.0**-bits]
    assert scale_numbers(np.zeros((2, 0)), Fraction(1, 2**1000)).shape == (2, 0)


def test_weights_in_steps_beyond_floats_are_answered():
    policy = Policy.full(Domain({"x": range(2)}))
    for step in (Fraction(10**320 + 1, 10**320), Fraction(1, 2**53), Fraction(2**53 - 1), "1e-200", "1e200"):
        unit, ledger = Fraction(step), md.Ledger(epsilon=10**6)
        asked = {"ledger": ledger}
        found = B.Linear([[unit, 2 * unit]], step).release([0, 1, 1], policy, epsilon=10**6, **asked)
        assert found.answers[0] == pytest.approx(nearest(5 * unit), rel=1e-12), step
        for wrong in ([[unit / 2, 0]], [[0, unit * 3 / 2]], [[unit * (2**61 + 1), 0]], np.array([[0.3, float("nan")]])):
            with pytest.raises(InputError, match=r"queries\[0,"):
                B.Linear(wrong, step).release([0], policy, epsilon=1, **asked)
        assert len(ledger.entries) == 1


WIDE = Domain({"x": [0, 2**49]})


def test_whether_a_total_is_too_large_is_decided_by_the_policy_where_the_number_of_records_is_private():
    policy = Policy.full(WIDE, unbounded=True)
    prepared = strategy_of(np.array([[0.0, 2.0**49]]), policy)
    ask = {
        "sum": lambda table: B.Sum().release(table, policy, epsilon=2**70),
        "linear": lambda table: B.Linear([[0, 2**49]]).release(table, policy, epsilon=2**70),
        "strategy": lambda table: release_by(prepared, table, rho=2**90),
    }
    for (name, release), values in itertools.product(ask.items(), ((0, 0), (0, 2**49), (2**49, 2**49))):
        for records in (1, 4096, 4097, 8192):
            table = np.array([values[0]] * (records // 2) + [values[1]] * (records - records // 2))
            exact = min(int((table > 0).sum()) * 2**49, LARGEST_VALUE)
            if name == "strategy":
                assert np.isfinite(release(table).answers).all()
            else:
                assert release(table).answers.tolist() == [float(exact)], (name, values, records)


def test_what_a_domain_is_too_wide_for_is_refused_whatever_the_table_holds():
    wide = Policy.full(Domain({"x": [0, 2**60]}), unbounded=True)
    said = set()
    for table in ([], [0], [2**60] * 5):
        with pytest.raises(InputError) as caught:
            B.KMeans(1, iterations=1).release(table, wide, epsilon=1)
        said.add(str(caught.value))
        with pytest.raises(InputError) as caught:
            B.Sum().release(table, wide, epsilon=1)
        said.add(str(caught.value))
    assert len(said) == 2


POLICY = Policy.threshold(Domain({"a": range(10)}), 3)
SPECIFIED = parse(
    'table.person = false\ndomain.attributes.a = { range = [0, 9] }\npolicy = { kind = "threshold", theta = 1 }\n'
    'release = { kind = "ranges", epsilon = 1, mechanism = "ordered", ranges = [[0, 3]] }'
)
WORKLOAD = parse(
    'table.person = false\ndomain.attributes.a = { range = [0, 9] }\npolicy = { kind = "threshold", theta = 1 }\n'
    'release = { kind = "ranges", rho = 1, ranges = [[0, 3]] }'
)
STRATEGY = strategy_of("prefixes", POLICY)
STEPS = [
    ("_query.scale_numbers", lambda ledger: B.Sum().release([1], POLICY, epsilon=1, ledger=ledger)),
    ("_charges.Description", lambda ledger: B.Linear(np.eye(10)).release([1], POLICY, epsilon=1, ledger=ledger)),
    ("_query.Release", lambda ledger: B.Linear(np.eye(10)).release([1], POLICY, epsilon=1, ledger=ledger)),
    ("_charges.components", lambda ledger: B.Linear(np.eye(10)).release([1], POLICY, epsilon=1, ledger=ledger)),
    ("_charges.digest_of_domain", lambda ledger: B.Linear(np.eye(10)).release([1], POLICY, epsilon=1, ledger=ledger)),
    ("_queries._cumulative._fit_monotone", lambda ledger: release_counts([1, 2, 1], 1, 1, ledger=ledger)),
    ("_queries._cumulative._fit_monotone", lambda ledger: B.Cumulative().release([1], POLICY, rho=1, ledger=ledger)),
    ("_queries._cumulative.CumulativeRelease", lambda ledger: release_counts([1, 2, 1], 1, 1, ledger=ledger)),
    (
        "_queries._trees.RangeTree.fit",
        lambda ledger: release_counts([1, 2, 1, 0, 0], 3, 1, "ordered-hierarchical", ledger=ledger),
    ),
    (
        "_queries._trees.Block.counts",
        lambda ledger: release_counts([1, 2, 1, 0, 0], 5, 1, "hierarchical", ledger=ledger),
    ),
    (
        "_queries._kmeans._nearest",
        lambda ledger: B.KMeans(2, iterations=2).release([1], POLICY, epsilon=1, ledger=ledger),
    ),
    (
        "_queries._kmeans.ClusteringRelease",
        lambda ledger: B.KMeans(2, iterations=2).release([1], POLICY, epsilon=1, ledger=ledger),
    ),
    ("_queries._trees.RangeNoise.half_widths", lambda ledger: release_counts([1, 2], 1, 1, ledger=ledger)),
    (
        "_queries._trees.RangeTree",
        lambda ledger: release_counts([1, 2, 4, 1], 4, 1, "hierarchical", ledger=ledger),
    ),
    ("_strategy.half_widths", lambda ledger: release_by(STRATEGY, [1], rho=1, ledger=ledger)),
    ("_strategy.true_answers", lambda ledger: release_by(STRATEGY, [1], rho=1, ledger=ledger)),
    ("_strategy.Release", lambda ledger: release_by(STRATEGY, [1], rho=1, ledger=ledger)),
    ("_workload.RangeQueries.answers", lambda ledger: release_by(STRATEGY, [1], rho=1, ledger=ledger)),
    ("_workload.RangeQueries.labels", lambda ledger: WORKLOAD.release({"a": [1]}, ledger=ledger)),
    ("_queries._cumulative.range_query", lambda ledger: SPECIFIED.release({"a": [1]}, ledger=ledger)),
]


def test_no_step_but_the_draw_can_fail_after_the_charge(monkeypatch):
    def fail(*arguments, **keywords):
        raise MemoryError("made to fail")

    def unprepared(law):
        raise MemoryError("no room for thresholds")

    for place, release in STEPS:
        ledger = md.Ledger()
        release(ledger)
        assert len(ledger.entries) == 1, place
        with monkeypatch.context() as patched:
            patched.setattr(f"mechdesign.tables.{place}", fail)
            with pytest.raises(MemoryError, match="made to fail"):
                release(ledger)
        assert len(ledger.entries) == 1, place
        # Nor do the tables of the noise.
        with monkeypatch.context() as patched:
            patched.setattr("mechdesign.mechanisms._discrete.prepare", unprepared)
            with pytest.raises(MemoryError, match="thresholds"):
                release(ledger)
        assert len(ledger.entries) == 1, place


def test_exact_answers_are_there_before_their_entry(monkeypatch):
    policy = Policy.partition(Domain({"a": range(4)}), range(4))
    asked = {
        "_query.scale_numbers": lambda ledger: B.Histogram().release([1], policy, epsilon=1, ledger=ledger),
        "_queries._cumulative.interval_about": lambda ledger: B.Cumulative(mechanism="ordered").release(
            [1], policy, epsilon=1, ledger=ledger
        ),
        "_queries._kmeans._totals": lambda ledger: B.KMeans(2, iterations=2).release(
            [1], policy, epsilon=1, ledger=ledger
        ),
        "_strategy.Release": lambda ledger: release_by(prepared, [1], rho=1, ledger=ledger),
    }
    prepared = strategy_of("identity", policy)

    def fail(*arguments, **keywords):
        raise MemoryError("made to fail")

    for place, release in asked.items():
        ledger = md.Ledger()
        release(ledger)
        with monkeypatch.context() as patched:
            patched.setattr(f"mechdesign.tables.{place}", fail)
            with pytest.raises(MemoryError):
                release(ledger)
        assert len(ledger.entries) == 1, place
