"""Headlines claim no more than what was proved, and name what fails."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from report_examples import certificate, channel, city

import mechdesign as md
from mechdesign.certify._certificate import Checked
from mechdesign.report._headlines import (
    describe_errors,
    describe_limits,
    design_headline,
    table_headline,
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


def test_a_design_opens_with_its_verdict():
    problem, _, found = city()
    proved = replace(found, lower_bound=found.cost * (1 - 1e-9), relative_gap=1e-9)
    assert design_headline(problem, found).short == "Private."
    assert "No lower bound" in design_headline(problem, found).long
    assert design_headline(problem, proved).short == "Private, and provably optimal."
    loose = design_headline(problem, replace(proved, relative_gap=0.0201))
    assert loose.short == "Private, and close to optimal: the gap is 2.1%."
    stopped = design_headline(problem, replace(proved, relative_gap=0.934))
    assert stopped.short == "Private, and not proved to be close to optimal: the gap is 94%."
    assert "has a lower cost" in design_headline(problem, replace(proved, relative_gap=0.0)).long
    fails = design_headline(problem, replace(found, holds=False, reason="too much is told", pair=(0, 1)))
    assert not fails.good
    assert str(fails).startswith("Does not hold. too much is told. Worst pair of secrets: ")


def test_limits_name_cells_floors_and_distant_places():
    problem, _, found = city(30, 3)
    said = " ".join(describe_limits(problem, found))
    assert "One answer only" in said
    assert "practically distinguishable" in said
    assert "error floor holds for its prior only" in said
    assert "Nothing between cells" in said
    labels = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))])
    short = " ".join(describe_limits(labels, certificate(labels, channel([[0.6, 0.4], [0.4, 0.6]]))))
    assert "cells" not in short
    assert "practically" not in short


def test_a_release_opens_with_its_budget_and_its_odds():
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(4)}))
    release = md.tables.Histogram().release([1, 2, 2], policy, epsilon=1, rng=1)
    assert table_headline(release).short == "A rehearsal."
    drawn = table_headline(replace(release, description=replace(release.description, rehearsal=False)))
    assert drawn.good
    assert str(drawn).startswith("Released; ε = 1 was spent. No answer is more than 2.72 times as likely")


def test_errors_that_are_written_alike_are_one_number():
    for errors, said in (
        ([10.041, 10.0412], "10.04"),
        ([2.0, 3.5], "2 to 3.5"),
        ([0.0, 3.5], "at most 3.5"),
        ([0.0, 0.0], ""),
    ):
        assert describe_errors(SimpleNamespace(standard_errors=np.array(errors))) == said, errors
