"""Continuous geo-indistinguishability: the theorem, its verifier, the tight value, and costs of raw visits."""

import functools
import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.certify._certificate import certify
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._exact import exact
from mechdesign.certify._stated import Stated
from mechdesign.cli import main
from mechdesign.errors import InputError, OutsideWarning, SpacingWarning
from mechdesign.model import _answers as drawing
from mechdesign.model._answers import draw_anchors
from mechdesign.model._dithering import anchor_means
from mechdesign.model._requirements import _kinds
from mechdesign.model._requirements._kinds import ClaimedPrivacy

NORMS = {"euclidean": 2, "manhattan": 1, "chebyshev": 0}
ONE = 2**62


def visits(seed=0, count=300, width=4.0, height=3.0):
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal([width / 2, height / 2], [width / 4, height / 4], (count, 2)), 0, [width, height])


@functools.cache
def designed(epsilon=1.6, distance="euclidean", columns=6, rows=4, width=4.0, height=3.0, split=None):
    anchors = md.Domain.anchors(columns=columns, rows=rows, width=width, height=height)
    requirement = md.ContinuousPrivacy(epsilon, anchors, distance, split)
    answers = md.Domain.grid(4, 3, width, height)
    points = np.random.default_rng(0).uniform(0, [width, height], (300, 2))
    return md.design(md.Problem.from_visits(points, answers, [requirement]))


def exact_row(design, x, y):
    """Return Σ_a w_a(x, y) p(o|a) for all o as fractions, by the formula."""
    lattice = design.problem.secrets.lattice
    columns, rows = lattice.columns, lattice.rows
    u = min(max(Fraction(x) / exact(lattice.width), 0), 1) * (columns - 1)
    v = min(max(Fraction(y) / exact(lattice.height), 0), 1) * (rows - 1)
    i, j = min(int(u), columns - 2), min(int(v), rows - 2)
    u, v = u - i, v - j
    own = design.channel.numerators
    weights = {(0, 0): (1 - u) * (1 - v), (1, 0): u * (1 - v), (0, 1): (1 - u) * v, (1, 1): u * v}
    return [
        sum(w * int(own[(j + b) * columns + i + a, o]) for (a, b), w in weights.items()) / ONE
        for o in range(own.shape[1])
    ]


def length(distance, dx, dy):
    return {"euclidean": math.hypot(dx, dy), "manhattan": abs(dx) + abs(dy), "chebyshev": max(abs(dx), abs(dy))}[
        distance
    ]


@pytest.mark.parametrize(
    ("distance", "columns", "rows", "width", "height"),
    [
        ("euclidean", 6, 4, 4.0, 3.0),
        ("euclidean", 5, 3, 2.0, 2.1),
        ("manhattan", 3, 3, 2.0, 2.0),
        ("manhattan", 5, 3, 2.0, 2.1),
        ("chebyshev", 6, 4, 4.0, 3.0),
        ("chebyshev", 3, 3, 2.0, 2.0),
    ],
)
def test_random_pairs_keep_the_bound_exactly_and_close_pairs_come_near_it(distance, columns, rows, width, height):
    epsilon = 1.9
    design = designed(epsilon, distance, columns, rows, width, height)
    tight = design.certificate.epsilon[0]
    assert 0.4 * epsilon < tight <= epsilon
    rng = np.random.default_rng(1)
    for _ in range(60):
        p, q = rng.uniform([-0.5, -0.5], [width + 0.5, height + 0.5], (2, 2))
        if rng.random() < 0.5:
            q = p + rng.normal(0, 1e-3, 2)
        # exp rounded down, far below what is at stake.
        factor = Fraction(math.exp(epsilon * length(distance, *(p - q)))) * (1 - Fraction(1, 10**12))
        for above, below in zip(exact_row(design, *p), exact_row(design, *q), strict=True):
            assert above <= factor * below
            assert below <= factor * above
    assert near_pair(design, distance) == pytest.approx(tight, rel=1e-3)
    assert near_pair(design, distance) <= tight * (1 + 1e-9)


def near_pair(design, distance):
    """Return the largest ln ratio per distance, in fractions, of pairs 1e-6 apart where floats find it steepest."""
    lattice = design.problem.secrets.lattice
    hx, hy = (float(step) for step in lattice.steps)
    own = design.channel.matrix.reshape(lattice.rows, lattice.columns, -1)
    places = itertools.product(range(lattice.columns - 1), range(lattice.rows - 1), (0, 1), (0, 1), range(own.shape[2]))
    found = []
    for i, j, a, b, o in places:
        here = own[j + b, i + a, o]
        if not here:
            continue
        fx = (own[j + b, i + 1, o] - own[j + b, i, o]) / hx / here
        fy = (own[j + 1, i + a, o] - own[j, i + a, o]) / hy / here
        # The way, of length 1, on which ln f grows most.
        if distance == "euclidean":
            way = (fx / (math.hypot(fx, fy) or 1), fy / (math.hypot(fx, fy) or 1))
        elif distance == "manhattan":
            way = (math.copysign(1, fx), 0) if abs(fx) > abs(fy) else (0, math.copysign(1, fy))
        else:
            way = (math.copysign(1, fx), math.copysign(1, fy))
        inside = ((i + a) * hx + (1 - 2 * a) * 2e-6, (j + b) * hy + (1 - 2 * b) * 2e-6)
        found.append((fx * way[0] + fy * way[1], inside, way, o))
    best = 0.0
    for _, (x, y), way, o in sorted(found)[-5:]:
        end = (x + 1e-6 * way[0], y + 1e-6 * way[1])
        p, q = exact_row(design, *end)[o], exact_row(design, x, y)[o]
        apart = length(distance, *(float(Fraction(one) - Fraction(two)) for one, two in zip(end, (x, y), strict=True)))
        best = max(best, math.log1p(float((p - q) / q)) / apart)
    return best


@given(
    st.lists(st.integers(0, 6), min_size=18, max_size=18),
    st.sampled_from([0, 1, 2]),
    st.integers(1, 5),
    st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_the_slope_is_that_of_brute_force_in_fractions(entries, norm, hx, hy):
    channel = np.array(entries, dtype=np.int64).reshape(9, 2) * 2**40
    claim = Dithered("continuous", Fraction(1), norm, 3, 3, Fraction(hx, 3), Fraction(hy, 3))
    worst = Fraction(0)
    for i, j, a, b, o in itertools.product(range(2), range(2), (0, 1), (0, 1), range(2)):
        own, along_x, along_y = (
            int(channel[row * 3 + column, o])
            for column, row in ((i + a, j + b), (i + 1 - a, j + b), (i + a, j + 1 - b))
        )
        if own == 0:
            worst = None if worst is None or along_x or along_y else worst
            continue
        dx, dy = (
            Fraction(abs(along_x - own), own) / Fraction(hx, 3),
            Fraction(abs(along_y - own), own) / Fraction(hy, 3),
        )
        value = {2: dx * dx + dy * dy, 1: max(dx, dy), 0: dx + dy}[norm]
        worst = None if worst is None else max(worst, value)
    found = claim.steepest(channel)
    assert found.power == worst
    if worst is None:
        assert claim.least(found) == math.inf
        assert not claim.holds(found)
        return
    least = claim.least(found)
    power = exact(least) ** 2 if norm == 2 else exact(least)
    assert power >= worst
    if least:
        below = exact(math.nextafter(least, 0))
        assert (below**2 if norm == 2 else below) < worst
        # Just inside and just outside.
        assert replace(claim, epsilon=exact(least)).holds(found)
        assert not replace(claim, epsilon=below).holds(found)


def test_the_parallel_edges_of_a_patch_would_overstate_the_slope():
    # Along x the ratio is steep at the bottom, along y at the right: not at one corner.
    channel = np.array([[1, 7], [2, 6], [4, 4], [4, 4]], dtype=np.int64) * 2**59
    found = Dithered("continuous", Fraction(9), 2, 2, 2, Fraction(1), Fraction(1)).steepest(channel)
    assert found.power == Fraction(1) ** 2 + Fraction(3) ** 2


@pytest.mark.parametrize("distance", NORMS)
def test_the_rows_imply_the_claim_also_where_they_are_used_up(distance):
    """The steepest channel that the rows allow: products of (1 + ε h) along x and y."""
    anchors = md.Domain.anchors(columns=4, rows=3, width=1.5, height=3.0)
    requirement = md.ContinuousPrivacy("0.8", anchors, distance, None if distance == "manhattan" else "0.3")
    _, along_x, along_y = requirement.stated()
    numerators = np.empty((12, 2), dtype=np.int64)
    for index in range(12):
        row, column = divmod(index, 4)
        power = along_x.numbers["factor"] ** column * along_y.numbers["factor"] ** row
        # Rounding down on the way up keeps each ratio within its factor only nearly: one more unit for the last.
        numerators[index, 0] = int(power * 2**50)
        numerators[index, 1] = ONE - numerators[index, 0]
    claim = requirement.stated()[0].claim(12)
    assert isinstance(claim, Dithered)
    assert claim.least(claim.steepest(numerators)) <= 0.8 + 1e-12
    assert claim.least(claim.steepest(numerators)) >= 0.8 - 1e-6


def test_a_distance_splits_epsilon_as_its_dual_norm_says():
    anchors = md.Domain.anchors(columns=3, rows=3, width=2.0, height=2.0)
    for split in (None, "0.25", "0.9"):
        x, y = md.ContinuousPrivacy(1, anchors, "euclidean", split).rates
        assert x * x + y * y <= 1
        assert float(x * x + y * y) == pytest.approx(1, abs=1e-15)
        x, y = md.ContinuousPrivacy(1, anchors, "chebyshev", split).rates
        assert x + y == 1
    assert md.ContinuousPrivacy(1, anchors, "manhattan").rates == (1, 1)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1/3", "7.25", "1e6", "1e19"])
def test_factors_are_rounded_down_and_come_back_from_an_export(epsilon):
    anchors = md.Domain.anchors(columns=4, rows=3, width=8.3, height=1.7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpacingWarning)
        requirement = md.ContinuousPrivacy(epsilon, anchors)
    for rate, step, stated in zip(requirement.rates, requirement.steps, requirement.stated()[1:], strict=True):
        factor = stated.numbers["factor"]
        assert 1 < factor <= 1 + rate * step
        assert max(factor.as_integer_ratio()) < 2**63
    again = md.ContinuousPrivacy.from_stated(requirement.stated(), 12)
    for old, new in zip(requirement.stated(), again.stated(), strict=True):
        assert (old.kind, dict(old.numbers), old.part) == (new.kind, dict(new.numbers), new.part)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a design with its report."""
    folder = tmp_path_factory.mktemp("made") / "set"
    md.save(designed(), folder)
    return folder


def test_an_export_verifies_and_comes_back(exported):
    design, tmp_path = designed(), exported
    found = md.verify(tmp_path)
    assert not found.differences(design.certificate)
    assert found.epsilon == design.certificate.epsilon
    assert [checked.number for checked in found.requirements] == ["epsilon", "factor", "factor"]
    problem = md.Design.load(tmp_path).problem
    (requirement,) = problem.requirements
    assert isinstance(requirement, md.ContinuousPrivacy)
    assert (requirement.epsilon, requirement.distance, requirement.size) == (Fraction("1.6"), "euclidean", 24)
    assert problem.secrets.lattice == design.problem.secrets.lattice
    assert md.design(problem).certificate.cost == pytest.approx(design.certificate.cost, rel=1e-9)
    page = (tmp_path / "report.html").read_text()
    assert "continuous privacy, ε per km (Euclidean distance, all points)" in page
    assert "shift the odds between any two points 1 km apart by a factor of at most 4.96" in page


def test_who_has_never_heard_of_the_kind_proves_it_all_the_same(exported, monkeypatch):
    design, tmp_path = designed(), exported
    monkeypatch.setattr(_kinds, "KINDS", {})
    assert not md.verify(tmp_path).differences(design.certificate)
    (requirement,) = md.Design.load(tmp_path).problem.requirements
    assert isinstance(requirement, ClaimedPrivacy)


def test_a_zero_beside_a_number_has_no_epsilon():
    stated = Stated.dithered("continuous", Fraction(1), 2, (2, 2), (Fraction(1), Fraction(1)))
    numerators = np.array([[ONE, 0], [ONE - 5, 5], [ONE, 0], [ONE, 0]])
    found = certify(Evidence(numerators, 62, np.full(4, 0.25), np.ones((4, 2)), "expected", (stated,)))
    assert not found.holds
    assert found.epsilon == (math.inf,)
    assert "observable 1 has probability 0 at anchor 0 but not at its neighbour 1" in found.reason


def test_the_cost_is_that_of_raw_visits():
    design = designed()
    points = visits()
    answers = design.problem.observables.points
    cost = Fraction(0)
    for x, y in points[:25].tolist():
        row = exact_row(design, x, y)
        cost += sum(p * Fraction(math.hypot(x - a, y - b)) for p, (a, b) in zip(row, answers.tolist(), strict=True))
    same = md.Problem.from_visits(points[:25], design.problem.observables, design.problem.requirements)
    found = Fraction(0)
    for prior, costs, row in zip(same.prior, same.cost, design.channel.numerators, strict=True):
        found += Fraction(prior) * sum(Fraction(c) * int(n) for c, n in zip(costs, row, strict=True)) / ONE
    assert float(cost / 25) == pytest.approx(float(found), rel=1e-12)


def test_weights_and_arrays_of_costs_mean_the_same_as_repeated_visits():
    anchors = md.Domain.anchors(columns=3, rows=3, width=4.0, height=3.0)
    answers = md.Domain.grid(2, 2, 4.0, 3.0)
    required = [md.ContinuousPrivacy(0.5, anchors)]
    points = visits(count=5)
    repeated = md.Problem.from_visits(np.repeat(points, [1, 2, 3, 4, 5], axis=0), answers, required)
    weighted = md.Problem.from_visits(points, answers, required, weights=[1, 2, 3, 4, 5])
    by_array = md.Problem.from_visits(
        points, answers, required, md.distances.euclidean(points, answers), [1, 2, 3, 4, 5]
    )
    np.testing.assert_allclose(weighted.prior, repeated.prior, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        weighted.prior[:, None] * weighted.cost, repeated.prior[:, None] * repeated.cost, atol=1e-14
    )
    np.testing.assert_allclose(weighted.cost, by_array.cost, rtol=1e-12)
    with pytest.raises(InputError, match=r"^cost: has not one row for each point; found 4; must be 5 rows"):
        md.Problem.from_visits(points, answers, required, cost=np.ones((4, 2)))
    with pytest.raises(InputError, match=r"^cost\[1,0\]"):
        md.Problem.from_visits(points, answers, required, cost=[[1.0, 1.0], [np.inf, 1.0]] + 3 * [[1.0, 1.0]])


def test_a_floor_on_the_error_about_raw_visits_is_met_as_an_attack_sees_it():
    anchors = md.Domain.anchors(columns=3, rows=3, width=4.0, height=3.0)
    points = visits(count=40)
    floor = md.DistortionPrivacy.from_visits(0.9, points, anchors)
    other = md.DistortionPrivacy.from_visits(0.8, visits(3, count=30), anchors, believed=True)
    required = [md.ContinuousPrivacy("0.9", anchors), floor, other]
    design = md.design(md.Problem.from_visits(points, anchors, required))
    for seed, count, minimum in ((0, 40, 0.9), (3, 30, 0.8)):
        # Bayes on the visits themselves: what the adversary errs by about x.
        rows = np.array([[float(p) for p in exact_row(design, *x)] for x in visits(seed, count).tolist()])
        errors = md.distances.euclidean(anchors.points, visits(seed, count))
        assert (errors @ rows / count).min(axis=0).sum() >= minimum - 1e-9
    assert design.certificate.distortion[0] >= 0.9
    assert design.certificate.distortion[1] >= 0.8


def test_points_outside_are_projected_counted_and_said():
    anchors = md.Domain.anchors(columns=2, rows=2, width=1.0, height=1.0)
    with pytest.warns(OutsideWarning, match="points: 2 of 3 lie outside"):
        prior, means = anchor_means(anchors, [[0.5, 0.5], [2.0, 0.0], [-1.0, 3.0]], [[1.0], [2.0], [3.0]])
    # A quarter of the first each; the second goes to anchor 1, the third to anchor 2.
    np.testing.assert_allclose(prior, np.array([0.25, 1.25, 1.25, 0.25]) / 3)
    np.testing.assert_allclose(means[:, 0], [1, (0.25 + 2) / 1.25, (0.25 + 3) / 1.25, 1])


def test_an_anchor_that_is_never_drawn_counts_for_nothing():
    anchors = md.Domain.anchors(columns=3, rows=2, width=2.0, height=1.0)
    prior, means = anchor_means(anchors, [[0.5, 0.5], [0.25, 0.75]], [[1.0], [2.0]])
    assert prior[[2, 5]].tolist() == [0, 0]
    assert np.isfinite(means).all()


def test_far_anchors_are_warned_of_with_the_spacing_to_take():
    anchors = md.Domain.anchors(columns=2, rows=3, width=8.0, height=8.0)
    advice = r"apart, and ε times this spacing is 8\. .* Keep anchors at most 2 km .* 0\.5 km"
    with pytest.warns(SpacingWarning, match=advice):
        md.ContinuousPrivacy(1, anchors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        md.ContinuousPrivacy("0.25", anchors)


def test_wrong_input_is_named():
    anchors = md.Domain.anchors(2, 2, 1.0, 1.0)
    other = md.Domain.geographic_grid(2, 2, 35.6, 35.7, 139.6, 139.7)
    rows = [
        ("columns", lambda: md.Domain.anchors(1, 5, 1.0, 1.0)),
        ("rows", lambda: md.Domain.anchors(5, 1, 1.0, 1.0)),
        ("width", lambda: md.Domain.anchors(2, 2, 0.0, 1.0)),
        ("height", lambda: md.Domain.anchors(2, 2, 1.0, float("nan"))),
        ("domain", lambda: md.ContinuousPrivacy(1, md.Domain.grid(3, 3, 1.0, 1.0))),
        ("epsilon", lambda: md.ContinuousPrivacy(0, anchors)),
        ("distance", lambda: md.ContinuousPrivacy(1, anchors, "haversine")),
        *(("split", lambda each=each: md.ContinuousPrivacy(1, anchors, "euclidean", each)) for each in (0, 1, -0.5)),
        ("split", lambda: md.ContinuousPrivacy(1, anchors, "manhattan", 0.5)),
        ("points", lambda: problem(points=[[0.0, 1.0, 2.0]])),
        ("points[0,1]", lambda: problem(points=[[0.0, np.nan]])),
        ("weights", lambda: problem(weights=[1.0, 2.0])),
        ("weights[0]", lambda: problem(weights=[-1.0])),
        ("cost", lambda: problem(cost="taxi")),
        ("cost", lambda: problem(cost="haversine")),
        ("cost[0,0]", lambda: problem(cost=[[-1.0]])),
        ("observables", lambda: problem(observables=md.Domain.from_labels(["a"]))),
        ("observables", lambda: problem(observables=md.Domain.grid(1, 1, 1.0, 1.0, unit="m"))),
        ("observables", lambda: problem(observables=other)),
        ("requirements", lambda: problem(requirements=[])),
        ("place", lambda: designed().sample_at(9.0, 9.0)),
        ("outside", lambda: designed().sample_at(1.0, 1.0, outside="border")),
        ("reach", lambda: designed().sample_at(1.0, 1.0, reach=1.0)),
        ("size", lambda: designed().sample_at([1.0], [1.0], size=2)),
        ("x", lambda: designed().sample_at(float("nan"), 1.0)),
        ("north", lambda: md.Domain.geographic_anchors(4, 3, 80.0, 90.0, 10.0, 11.0)),
        ("channel", lambda: designed().problem.requirements[0].least_epsilon(md.Channel.from_matrix(np.eye(3)))),
    ]
    assert_refused(Mistake(f"{place}: {path}", make, path, error=InputError) for place, (path, make) in enumerate(rows))


def problem(**changed):
    anchors = md.Domain.anchors(2, 2, 1.0, 1.0)
    given = {
        "points": [[0.5, 0.5]],
        "observables": md.Domain.grid(1, 1, 1.0, 1.0),
        "requirements": [md.ContinuousPrivacy(1, anchors)],
    }
    return md.Problem.from_visits(**(given | changed))


def test_a_point_is_dithered_with_exactly_its_weights():
    design = designed()
    lattice = design.problem.secrets.lattice
    for x, y in [(0.1, 0.2), (4.0, 3.0), (0.8, 1.0), (3.999999, 1e-300), (5e-324, 2.5), (-1.0, 7.0)]:
        (column, u), (row, v), outside = lattice.place(x, y)
        assert 0 <= u <= 1
        assert 0 <= v <= 1
        assert outside == (x < 0)
        inside = (min(max(Fraction(x), 0), 4), min(max(Fraction(y), 0), 3))
        assert ((column + u) * lattice.steps[0], (row + v) * lattice.steps[1]) == inside
        corners = lattice.corners(np.array([x]), np.array([y]))
        np.testing.assert_allclose(corners.weights[0], [float(w) for w in products(u, v)], atol=1e-15)


def products(u, v):
    return (1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v


def test_dithered_draws_follow_the_weights_and_the_bits_that_decide_late():
    lattice = md.Domain.anchors(2, 2, 1.0, 1.0).lattice
    rng = np.random.default_rng(0)
    anchors, missed = draw_anchors(lattice, np.full(40_000, 0.25), np.full(40_000, 0.5), rng)
    assert missed == 0
    shares = np.bincount(anchors, minlength=4) / 40_000
    np.testing.assert_allclose(shares, [0.375, 0.125, 0.375, 0.125], atol=0.01)
    assert set(draw_anchors(lattice, np.full(99, 1.0), np.zeros(99), rng)[0].tolist()) == {1}
    assert set(draw_anchors(lattice, np.full(99, 0.0), np.ones(99), rng)[0].tolist()) == {2}
    # A share whose first 62 bits are all drawn equal is decided by the next ones.
    share = Fraction(1, 3)
    first = int(share * ONE)
    for later, expected in ((0, 1), (int((share * ONE - first) * ONE) + 1, 0)):
        bits = iter([np.array([first]), np.array([later])])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawing, "uniform_bits", lambda count, rng, bits=bits: next(bits))
            assert drawing._draw_bernoulli([share], np.array([0]), None).tolist() == [expected]


def test_sample_at_answers_for_raw_coordinates():
    design = designed()
    answer = design.sample_at(3.21, 2.56, rng=1)
    assert answer.index in range(12)
    assert answer.place.shape == (2,)
    assert design.sample_at(x=3.21, y=2.56, rng=1).index == answer.index
    many = design.sample_at([[0.5, 1.5]], [[0.5, 1.5]], rng=1)
    assert many.index.shape == (1, 2)
    drawn = design.sample_at(1.234, 2.345, size=20_000, rng=2).index
    exact_shares = [float(p) for p in exact_row(design, 1.234, 2.345)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=12) / 20_000, exact_shares, atol=0.015)
    with pytest.warns(OutsideWarning, match="place: 3 of 3 draws are for places outside the rectangle of the anchors"):
        design.sample_at(9.0, 9.0, size=3, outside="nearest")


def test_the_command_samples_at_coordinates(tmp_path, exported):
    run = CliRunner().invoke
    found = run(main, ["sample", str(exported), "--at", "3.21,2.56", "--size", "3"])
    assert found.exit_code == 0, found.output
    assert len(found.stdout.splitlines()) == 3
    (tmp_path / "places.csv").write_text("x,y\n0.5,0.5\n9,9\n")
    asked = ["sample", str(exported), "--input", str(tmp_path / "places.csv"), "--size", "2"]
    refused = run(main, asked)
    assert (refused.exit_code, "line 3: lies outside the anchors" in refused.stderr) == (2, True)
    found = run(main, [*asked, "--outside", "nearest"])
    assert found.exit_code == 0, found.output
    assert [line.split(",")[0] for line in found.stdout.splitlines()] == ["row", "0", "0", "1", "1"]
    assert "1 of 2 places lie outside the anchors" in found.stderr


def test_geographic_anchors_never_exceed_the_great_circle(tmp_path):
    anchors = md.Domain.geographic_anchors(4, 3, 59.0, 60.0, 10.0, 11.0)
    width, height = (float(step) * count for step, count in zip(anchors.lattice.steps, (3, 2), strict=True))
    corner = [
        md.Domain.from_coordinates([60.0, 60.0], [10.0, 11.0]),
        md.Domain.from_coordinates([59.0, 60.0], [10.0, 10.0]),
    ]
    for length_in_plane, domain in zip((width, height), corner, strict=True):
        along = md.distances.haversine(domain)[0, 1]
        assert length_in_plane <= along * (1 + 1e-12)
        assert length_in_plane == pytest.approx(along, rel=2e-3)
    rng = np.random.default_rng(0)
    points = rng.uniform([59.0, 10.0], [60.0, 11.0], (60, 2))
    answers = md.Domain.geographic_grid(3, 3, 59.0, 60.0, 10.0, 11.0)
    for cost in ("euclidean", "haversine"):
        problem = md.Problem.from_visits(points, answers, [md.ContinuousPrivacy("0.03", anchors)], cost)
        design = md.design(problem)
        assert 0.01 < design.certificate.epsilon[0] <= 0.03
    md.save(design, tmp_path, report=False)
    assert not md.verify(tmp_path).differences(design.certificate)
    assert md.Design.load(tmp_path).problem.secrets.lattice == anchors.lattice
    assert 59 <= design.sample_at(59.5, 10.5, rng=1).place[0] <= 60


def test_the_least_epsilon_of_any_channel_on_the_anchors():
    design = designed()
    (requirement,) = design.problem.requirements
    assert requirement.least_epsilon(design.channel) == design.certificate.epsilon[0]
    truth = md.Channel.from_matrix(np.eye(24))
    assert requirement.least_epsilon(truth) == math.inf
    assert requirement.least_epsilon(md.Channel.from_matrix(np.full((24, 2), 0.5))) == 0
