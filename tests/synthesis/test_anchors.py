"""Anchors for a desired accuracy: the cost predicted from coarse runs matches the cost of the designed anchors."""

from functools import partial

import numpy as np
import pytest
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import InputError

ANSWERS = md.Domain.grid(3, 3, 4.0, 3.0)


def visits():
    return np.clip(np.random.default_rng(0).normal([2.0, 1.5], [1.0, 0.8], (40, 2)), 0, [4.0, 3.0])


def test_predicted_cost_matches_the_design():
    plan = md.plan_anchors(1.5, visits(), ANSWERS, width=4.0, height=3.0, accuracy=0.08)
    assert plan.reached
    assert [run.columns for run in plan.runs] == sorted(run.columns for run in plan.runs)
    assert plan.limit <= plan.cost <= 1.08 * plan.limit * (1 + 1e-9)
    required = [md.ContinuousPrivacy(1.5, plan.anchors)]
    found = md.design(md.Problem.from_visits(visits(), ANSWERS, required), tolerance=1e-4).certificate.cost
    assert found == pytest.approx(plan.cost, rel=0.03)
    lattice = plan.anchors.lattice
    assert (lattice.width, lattice.height) == (4.0, 3.0)
    # The spacing along x and along y is about equal.
    assert 0.5 < float(lattice.steps[0] / lattice.steps[1]) < 2


def test_a_limit_on_the_number_of_anchors_is_kept_and_reported():
    with pytest.warns(md.errors.SpacingWarning, match=r"most: 30 anchors do not reach the accuracy 0\.001"):
        plan = md.plan_anchors(1.5, visits(), ANSWERS, width=4.0, height=3.0, accuracy=0.001, most=30)
    assert plan.anchors.size <= 30
    assert not plan.reached


def test_wrong_arguments_are_named():
    given = {"epsilon": 1, "points": visits(), "observables": ANSWERS, "width": 4.0, "height": 3.0}
    wrong = [("accuracy", 0), ("accuracy", 1.0), ("epsilon", 0), ("most", 3), ("width", -1.0)]
    wrong += [("cost", "taxi"), ("distance", "haversine")]
    assert_refused(
        Mistake(f"{name}={value}", partial(md.plan_anchors, **given | {name: value}), name, error=InputError)
        for name, value in wrong
    )
