"""The JavaScript module between anchors: the same draws as the package, bit for bit, and the same verdict."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.synthesis.formats._format import Exported
from mechdesign.synthesis.formats._registry import FORMATS

pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")

from javascript import Module


def made(distance: str = "euclidean", geographic: bool = False) -> md.Design:
    rng = np.random.default_rng(0)
    if geographic:
        anchors = md.Domain.geographic_anchors(5, 4, 40.0, 40.1, 10.0, 10.1)
        answers = md.Domain.geographic_grid(3, 3, 40.0, 40.1, 10.0, 10.1)
        points, epsilon = rng.uniform([40.0, 10.0], [40.1, 10.1], (100, 2)), "0.4"
    else:
        anchors, answers = md.Domain.anchors(5, 4, 4.1, 3.0), md.Domain.grid(3, 3, 4.1, 3.0)
        points, epsilon = rng.uniform(0, [4.1, 3.0], (100, 2)), "1.5"
    required = [md.ContinuousPrivacy(epsilon, anchors, distance)]  # type: ignore[arg-type]
    return md.design(md.Problem.from_visits(points, answers, required))


def module(design: md.Design, requirements: list[Requirement] | None = None) -> Module:
    problem = design.problem
    if requirements is not None:
        answers = problem.observables
        problem = md.Problem(problem.prior, problem.cost, requirements, secrets=problem.secrets, observables=answers)
    parts = FORMATS["js"].parts(Exported(problem, design.channel, design.certificate))
    return Module(b"".join(parts).decode())


@pytest.mark.parametrize("geographic", [False, True])
def test_draws_are_those_of_this_package(geographic: bool) -> None:
    design = made(geographic=geographic)
    code = module(design)
    low, high = ((40.0, 10.0), (40.1, 10.1)) if geographic else ((0.0, 0.0), (4.1, 3.0))
    names = ("lat", "lon") if geographic else ("x", "y")
    rng = np.random.default_rng(1)
    places = [*rng.uniform(low, high, (20, 2)).tolist(), low, high, (low[0], high[1]), (low[0] + 1e-17, low[1] + 1e-9)]
    for seed, place in enumerate(places):
        generator = np.random.default_rng(seed)
        expected = [int(design.sample_at(*place, rng=generator).index) for _ in range(10)]
        data = np.random.default_rng(seed).bytes(8 * 40)
        drawn = code.draw_from(dict(zip(names, place, strict=True)), data, 10)
        assert [each["index"] for each in drawn] == expected
        assert set(drawn[0]) == {"index", "label", *names}


def test_places_outside_are_refused_or_moved_to_the_border() -> None:
    code = module(made())
    data = np.random.default_rng(0).bytes(8 * 10)
    border = code.draw_from({"x": 0.0, "y": 3.0}, data, 3)
    assert code.draw_from({"x": -3.0, "y": 99.0}, data, 3, outside="nearest") == border
    # The side is 4.1, although its binary value is not exactly 41/10.
    assert "index" in code.draw_from({"x": 4.1, "y": 3.0}, data, 1)[0]
    away, here = {"x": -3.0, "y": 1.0}, {"x": 1.0, "y": 1.0}
    for place, options, said in (
        (away, {}, "x is outside the anchors, from 0 to"),
        (away, {"outside": "refuse"}, "x is outside the anchors, from 0 to"),
        (here, {"outside": "border"}, 'outside must be "refuse" or "nearest"'),
        (here, {"reach": 2}, "the option reach is not known: options are random, outside"),
    ):
        with pytest.raises(RuntimeError, match=said):
            code.draw_from(place, data, 1, **options)
    with pytest.raises(RuntimeError, match="has no single secret: use sample"):
        code.call("cell", here, {})
    assert "index" in code.draw_from({"secret": 3}, data, 1)[0]


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev"])
def test_the_verdict_on_all_points_is_that_of_the_kernel(distance: str) -> None:
    design = made(distance)
    found = module(design).verify()
    assert found["holds"]
    assert [each["holds"] for each in found["requirements"]] == [True, True, True]
    tight = Fraction(repr(design.certificate.epsilon[0]))
    anchors = design.problem.secrets
    # Just above and just below the channel's tight ε.
    for epsilon, holds in ((tight, True), (tight * (1 - Fraction(1, 10**12)), False)):
        asked = md.ContinuousPrivacy(epsilon, anchors, distance)  # type: ignore[arg-type]
        verdict = module(design, [asked]).verify()["requirements"][0]
        assert verdict["holds"] is holds
        assert ("changes too fast at anchor" in verdict["reason"]) is not holds
