"""Verdicts claim no more than what was proved, and name what fails."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from report_examples import certificate, channel, city

import mechdesign as md
from mechdesign.certify._certificate import Checked
from mechdesign.report._verdicts import (
    describe_errors,
    judge_design,
    judge_table,
    limit_audit,
    limit_design,
    write_achieved,
    write_odds,
)


def test_odds_are_rounded_up():
    for exponent in (0.0, 1e-9, 0.1, 0.5, 1, 2.302585092994046, 5, 11.5, 11.6, 23.98, 100, 689.9):
        digits, _, power = write_odds(exponent).partition(" × 10")
        tens = int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")) or 0)
        shown = math.log(float(digits)) + tens * math.log(10)
        assert exponent <= shown + 1e-12
        assert shown <= exponent + math.log(1.11)
    assert write_odds(math.inf) == "∞"
    assert write_odds(1234.56789) == "e^1235"


def test_achieved_numbers_neither_overstate_nor_deny():
    for nominal, realised, number, holds, shown in (
        ("1", 0.9999999995, "epsilon", True, "1"),
        ("1", 0.87654321, "epsilon", True, "0.8766"),
        ("1", 1.00001, "epsilon", False, "1.001"),
        ("0.693147", 0.6931465, "epsilon", True, "0.693147"),
        ("1/3", 0.3333333333333333, "epsilon", True, "1/3"),
        ("2", 2.000000008, "minimum", True, "2"),
        ("2.00049", 2.000495, "minimum", True, "2.00049"),
        ("2", 1.99999, "minimum", False, "1.999"),
        ("1", math.inf, "epsilon", False, "∞"),
        ("0.1", 0.0, "minimum", False, "0"),
    ):
        checked = Checked("metric", nominal, realised, holds, number=number)
        assert write_achieved(checked) == shown
        if holds:
            exact = Fraction(shown), Fraction(nominal)
            assert exact[0] >= exact[1] if checked.at_least else exact[0] <= exact[1]


def test_the_verdict_on_a_design_is_one_sentence_with_its_cost_and_its_distance_from_the_optimum():
    problem, _, found = city()
    bare = replace(found, lower_bound=0.0, relative_gap=1.0)
    proved = replace(found, lower_bound=found.cost * (1 - 1e-9), relative_gap=1e-9)
    for changed, starts, says in (
        (bare, "Private: answers are off by at most", "; no lower bound of the cost has been proved."),
        (proved, "Private, and provably optimal: answers are off by at most", "lower by more than 2×10⁻⁷%."),
        (replace(proved, relative_gap=0.0201), "Private, and close to optimal: ", "lower by more than 2.1%."),
        (replace(proved, relative_gap=0.934), "Private, and not proved to be close to optimal: ", "more than 94%."),
        (replace(proved, relative_gap=0.0), "Private, and provably optimal: ", "has a lower cost."),
        (
            replace(found, holds=False, reason="too much is told", pair=(0, 1)),
            "Does not hold: too much is told",
            "0 and 1.",
        ),
    ):
        verdict = judge_design(problem, changed)
        assert verdict.good == changed.holds
        assert str(verdict).startswith(starts)
        assert says in str(verdict)
        assert str(verdict).count(". ") == 0


def test_limits_name_the_unit_cells_floors_and_distant_places():
    problem, _, found = city(30, 3)
    said = " ".join(limit_design(problem, found))
    for words in ("The unit of privacy is the secret behind one answer", "δ = 0", "One answer only", "far apart"):
        assert words in said
    assert "error floor holds for its prior only" in said
    assert "Nothing between cells" in said
    labels = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))])
    short = " ".join(limit_design(labels, certificate(labels, channel([[0.6, 0.4], [0.4, 0.6]]))))
    assert "cells" not in short
    assert "far apart" not in short
    floor = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.DistortionPrivacy("0.1", 1 - np.eye(2))])
    only = " ".join(limit_design(floor, certificate(floor, channel([[0.6, 0.4], [0.4, 0.6]]))))
    assert "this is not differential privacy" in only
    assert "δ" not in only
    assert "not differential privacy" in " ".join(limit_audit(md.audit(np.eye(2), [[0, 1], [1, 0]])))


def test_a_release_opens_with_its_budget_and_its_odds():
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(4)}))
    release = md.tables.Histogram().release([1, 2, 2], policy, epsilon=1, rng=1)
    assert str(judge_table(release)).startswith("A rehearsal: ")
    drawn = judge_table(replace(release, description=replace(release.description, rehearsal=False)))
    assert drawn.good
    assert str(drawn).startswith("Released; ε = 1 was spent: no answer is more than 2.72 times as likely")


def test_errors_that_are_written_alike_are_one_number():
    for errors, said in (
        ([10.041, 10.0412], "10.04"),
        ([2.0, 3.5], "2 to 3.5"),
        ([0.0, 3.5], "at most 3.5"),
        ([0.0, 0.0], ""),
    ):
        assert describe_errors(SimpleNamespace(standard_errors=np.array(errors))) == said, errors
