import math
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import least_cost
from refusals import Mistake, assert_refused
from rows import each_row

import mechdesign as md
from mechdesign.certify._certificate import certify
from mechdesign.errors import CertificateError, InfeasibleError
from mechdesign.graphs._builders import blocks, from_edges
from mechdesign.model._problem import largest_distortion
from mechdesign.solve._contract import Status
from mechdesign.synthesis import _design as road
from mechdesign.synthesis import _parts as restriction
from mechdesign.synthesis._parts import find_undominated, split
from mechdesign.synthesis.formats._plain import mps

INF = math.inf
EXACT = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def assert_least(problem, value=None):
    """Design, and check the result against the whole program solved by SciPy; return the design."""
    made = md.design(problem, isolated="release")
    assert made.certificate.relative_gap <= 1e-6
    if made.certificate.relative_gap > 1e-8:
        # The feasibility tolerance of HiGHS is 1e-7, and one of several hundred programs needs it.
        made = md.design(problem, solver=made.summary.solver, options=EXACT, isolated="release")
    expected = least_cost(problem) if value is None else value
    assert made.certificate.holds
    # One of thousands of programs keeps a gap of about 2e-7.
    assert made.certificate.relative_gap <= 1e-6
    slack = 1e-7 * abs(expected) + 1e-10
    assert made.certificate.lower_bound - slack <= expected <= made.certificate.cost + slack
    assert (made.channel.numerators[np.isinf(problem.cost)] == 0).all()
    return made


@st.composite
def problems(draw):
    """Draw problems with few parts: all kinds of requirements, forbidden answers, floors, and priors with zeros."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = int(random.integers(2, 8)), int(random.integers(2, 6))
    places = random.random((n, 2)) * 4
    labels = random.integers(0, draw(st.integers(1, 4)), n)
    graph = nx.empty_graph(n)
    graph.add_edges_from((s, t) for s in range(n) for t in range(s) if labels[s] == labels[t] and random.random() < 0.7)
    components = np.zeros(n, dtype=int)
    for number, members in enumerate(nx.connected_components(graph)):
        components[list(members)] = number
    apart = components[:, None] != components
    distance = np.array(md.distances.euclidean(places))
    own = draw(st.sampled_from(["shared", "own", "some"]))
    if own == "own":
        # Answers are the secrets, and each component has its own answers.
        cost = random.random((n, n)) * (1 - np.eye(n))
        cost[apart] = INF
    else:
        cost = random.random((n, m))
        if own == "some":
            # Each component lacks some answers, but not all.
            lacking = random.random((n, m)) < 0.4
            lacking[np.arange(n), random.integers(0, m, n)] = False
            cost[lacking[components]] = INF
            cost[np.isinf(cost).all(axis=1)] = 1.0
    epsilon = round(float(random.uniform(0.1, 3)), 3)
    kind = draw(st.sampled_from(["graph", "metric", "threshold"]))
    if kind == "graph":
        requirements = [md.GraphPrivacy(epsilon, graph)]
    else:
        near = np.where(apart, INF, distance)
        requirements = [
            md.MetricPrivacy(epsilon, near) if kind == "metric" else md.ThresholdPrivacy(epsilon, near, radius=2)
        ]
    prior = random.random(n) * (random.random(n) > draw(st.sampled_from([0.0, 0.3])))
    prior[0] += prior.sum() == 0
    prior /= prior.sum()
    objective = draw(st.sampled_from(["expected", "worst"]))
    if own != "some" and (own == "shared" or objective == "expected"):
        for error in (distance, 1 - np.eye(n))[: draw(st.integers(0, 2))]:
            told = components if own == "own" else None
            largest = float(largest_distortion(prior, error, told))
            share = draw(st.sampled_from([0.3, 0.9, 0.999]))
            requirements.append(md.DistortionPrivacy(f"{largest * share:.9f}", error))
    return md.Problem(prior, cost, requirements, objective)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@settings(max_examples=60)
@given(problems())
def test_parts_together_are_as_good_as_the_whole_program(problem):
    assert_least(problem)


def test_equal_parts_are_solved_once_and_never_change_the_result(monkeypatch):
    solved = []
    whole = road._design_whole
    monkeypatch.setattr(road, "_design_whole", lambda problem, *rest: solved.append(problem) or whole(problem, *rest))
    distance = md.distances.euclidean(np.array([[0.0, 0], [0, 1], [2, 1]]))
    cost = np.full((9, 9), INF)
    for start in range(0, 9, 3):
        cost[start : start + 3, start : start + 3] = distance
    graph = nx.Graph([(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)])
    weights = np.array([1, 2, 3])
    requirement = md.GraphPrivacy(1, graph)
    # The priors of the parts are proportional. The last part has probability 0, so its prior is uniform.
    prior = np.concatenate([weights, 5 * weights, 0 * weights]) / 36
    made = assert_least(md.Problem(prior, cost, [requirement]))
    assert len(solved) == 2
    assert made.certificate.provenance["parts"] == 3
    assert made.certificate.provenance["programs"] == 2
    assert np.array_equal(made.channel.matrix[:3, :3], made.channel.matrix[3:6, 3:6])
    alone = md.design(md.Problem(weights / 6, distance, [md.GraphPrivacy(1, nx.path_graph(3))]))
    assert made.certificate.cost == pytest.approx(alone.certificate.cost, rel=1e-13)
    solved.clear()
    assert_least(md.Problem(prior[[0, 1, 2, 3, 5, 4, 6, 7, 8]], cost, [requirement]))
    assert len(solved) == 3
    solved.clear()
    # One part has a cost that differs by more than rounding errors.
    cost[4, 3] *= 1 + 1e-9
    assert_least(md.Problem(np.full(9, 1 / 9), cost, [requirement]))
    assert len(solved) == 2


def test_only_parts_with_identical_bounds_share_a_solution():
    """Distances in the second part are smaller by one unit in the last place; the first channel would not meet them."""
    distance = np.full((4, 4), INF)
    distance[:2, :2] = distance[2:, 2:] = 1 - np.eye(2)
    distance[2, 3] = distance[3, 2] = np.nextafter(1, 0)
    cost = np.array([[0, 1, INF, INF], [1, 0, INF, INF], [INF, INF, 0, 1], [INF, INF, 1, 0]])
    made = assert_least(md.Problem(np.full(4, 0.25), cost, [md.MetricPrivacy(1, distance)]))
    assert made.certificate.provenance["programs"] == 2


@pytest.mark.parametrize("epsilon", ["0.3", "1"])
def test_dominated_answers_are_left_out_with_a_proof(epsilon, monkeypatch):
    """Cells of other blocks are dominated; without multipliers for the near ones the lower bound would be too low."""
    domain = md.Domain.grid(columns=12, rows=3, width=12.0, height=3.0)
    cost = md.distances.euclidean(domain)
    graph = blocks(domain, 3)
    problem = md.Problem(np.full(36, 1 / 36), cost, [md.GraphPrivacy(epsilon, graph)])
    made = md.design(problem)
    assert made.certificate.relative_gap < 1e-13
    assert made.certificate.provenance["programs"] == 1
    own = np.isin(np.arange(36) % 12, range(3))
    assert (made.channel.numerators[own][:, ~own] == 0).all()
    proved = made.multipliers.requirements[0]
    mine = own[proved.sources]
    # The nearest column of the next block needs multipliers, the columns at the far end do not.
    assert 3 in proved.observables[mine] % 12
    assert 11 not in proved.observables[mine] % 12
    monkeypatch.setattr(
        restriction, "_find_copies", lambda *found: [np.array([column]) for column in found[2].tolist()]
    )
    assert md.design(problem).certificate.relative_gap > 0.05


@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_undominated_columns_against_all_pairs(seed):
    random = np.random.default_rng(seed)
    cost = random.integers(0, 4, (random.integers(1, 4), random.integers(1, 9))).astype(float)
    kept, replaced = find_undominated(cost)
    assert (cost[:, replaced] <= cost).all()
    assert np.array_equal(np.unique(replaced), kept)
    assert np.array_equal(replaced[kept], kept)
    for column in kept:
        better = (cost[:, kept] <= cost[:, [column]]).all(axis=0)
        assert better.sum() == 1


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_isolated_secrets_get_their_cheapest_answer():
    cost = np.array([[3.0, 1, 2], [INF, 5, 4], [0, INF, INF]])
    for objective, value in (("expected", 0.2 * 1 + 0.3 * 4), ("worst", 4.0)):
        made = assert_least(md.Problem([0.2, 0.3, 0.5], cost, [], objective), value)
        assert (made.channel.matrix == np.eye(3)[[1, 2, 0]]).all()
        assert made.certificate.relative_gap <= 1e-15
        assert made.status == "optimal"


def test_the_costliest_part_decides_the_worst_cost():
    cost = np.full((4, 4), INF)
    cost[:2, :2], cost[2:, 2:] = 1 - np.eye(2), 3 * (1 - np.eye(2))
    graph = nx.Graph([(0, 1), (2, 3)])
    made = assert_least(md.Problem([0.4, 0.5, 0.1, 0], cost, [md.GraphPrivacy(1, graph)], "worst"))
    assert made.certificate.cost == pytest.approx(3 / (1 + math.e))
    # The cheaper part is optimal, too.
    assert made.channel.matrix[0, 1] == pytest.approx(1 / (1 + math.e))
    assert made.multipliers.weights[:2].tolist() == [0, 0]


@each_row("share", ["1e-6", "0.5", "0.999999", "1"])
def test_a_floor_over_parts_is_met_exactly(share):
    """Three pairs with different distances and Hamming cost, so that error and cost differ."""
    places = np.array([[0.0], [1], [10], [13], [20], [22]])
    error = np.array(md.distances.euclidean(places))
    told = np.repeat(np.arange(3), 2)
    cost = np.where(told[:, None] == told, 1 - np.eye(6), INF)
    prior = np.array([0.3, 0.2, 0.1, 0.15, 0.05, 0.2])
    floor = largest_distortion(prior, error, told) * Fraction(share)
    graph = nx.Graph([(0, 1), (2, 3), (4, 5)])
    problem = md.Problem(prior, cost, [md.DistortionPrivacy(floor, error), md.GraphPrivacy(4, graph)])
    made = md.design(problem)
    found = made.certificate
    assert found.holds
    assert Fraction(repr(found.distortion[0])) >= floor * (1 - Fraction(1, 10**15))
    assert found.cost == pytest.approx(least_cost(problem), rel=1e-7)
    assert found.relative_gap < 1e-7


def test_a_floor_above_the_largest_is_named():
    cost = np.where(np.repeat([0, 1], 2)[:, None] == np.repeat([0, 1], 2), 1 - np.eye(4), INF)
    with pytest.raises(InfeasibleError, match=r"2 sets .* contains the secret, is 0\.4\."):
        md.Problem([0.3, 0.2, 0.3, 0.2], cost, [md.DistortionPrivacy("0.401", 1 - np.eye(4))])


def test_unsupported_solvers_and_rows_are_refused():
    error = 1 - np.eye(4)
    told = np.repeat([0, 1], 2)
    own = np.where(told[:, None] == told, 1 - np.eye(4), INF)
    floor = md.DistortionPrivacy("0.1", error)
    graph = md.GraphPrivacy(1, nx.Graph([(0, 1), (2, 3)]))
    wrong = [("solver", [graph, floor], {"solver": "block"}), ("rows", [graph, floor], {"rows": "lazy"})]
    wrong += [("solver", [graph], {"solver": "abacus"})]
    assert_refused(
        Mistake(str(given), partial(md.design, md.Problem(np.full(4, 0.25), own, required), **given), place)
        for place, required, given in wrong
    )


def test_requirements_and_floors_connect_parts():
    graph = md.GraphPrivacy(1, from_edges(5, [(0, 2), (1, 3)]))
    near = np.full((5, 5), INF)
    near[3, 4] = near[4, 3] = 1
    np.fill_diagonal(near, 0)
    metric = md.MetricPrivacy(1, near)
    cost = np.ones((5, 5))
    prior = np.full(5, 0.2)

    def sets(problem):
        return [part.secrets.tolist() for part in split(problem)]

    assert sets(md.Problem(prior, cost, [graph])) == [[0, 2], [1, 3], [4]]
    assert sets(md.Problem(prior, cost, [graph, metric])) == [[0, 2], [1, 3, 4]]
    floor = md.DistortionPrivacy("0.1", 1 - np.eye(5))
    assert sets(md.Problem(prior, cost, [graph, floor])) == [[0, 1, 2, 3, 4]]
    assert sets(md.Problem(prior, cost, [graph, md.DistortionPrivacy(0, 1 - np.eye(5))])) == [[0, 2], [1, 3], [4]]


def test_parts_share_the_time_limit_and_any_limit_gives_a_certified_channel():
    points = np.random.default_rng(0).random((60, 2))
    told = np.arange(60) // 20
    cost = np.where(told[:, None] == told, md.distances.euclidean(points), INF)
    graph = nx.Graph([(s, t) for s in range(60) for t in range(s) if told[s] == told[t]])
    for requirements in ([], [md.DistortionPrivacy("0.05", md.distances.euclidean(points))]):
        problem = md.Problem(np.full(60, 1 / 60), cost, [md.GraphPrivacy(1, graph), *requirements])
        made = md.design(problem, time_limit=1e-9)
        assert made.certificate.holds
        assert made.status != "optimal"


def test_progress_names_the_parts():
    told = np.repeat([0, 1, 2], 2)
    cost = np.where(told[:, None] == told, 1 - np.eye(6), INF)
    graph, heard = md.GraphPrivacy(1, nx.Graph([(0, 1), (2, 3), (4, 5)])), []
    md.design(stages(3), progress=heard.append)
    assert {moment.stage.partition(":")[0] for moment in heard} >= {"part 1 of 3", "part 2 of 3", "certifying"}
    floor = md.DistortionPrivacy("0.4", 1 - np.eye(6))
    md.design(md.Problem(np.full(6, 1 / 6), cost, [graph, floor]), progress=heard.append)
    rounds = [moment for moment in heard if moment.stage.startswith("round")]
    assert rounds
    assert all(moment.lower <= moment.upper * (1 + 1e-9) for moment in rounds)


def test_a_bundle_with_a_forbidden_answer_does_not_verify(tmp_path, monkeypatch):
    leave_pictures_blank(monkeypatch)
    told = np.repeat([0, 1], 3)
    domain = md.Domain.grid(columns=6, rows=1, width=6.0, height=1.0)
    cost = np.where(told[:, None] == told, md.distances.euclidean(domain), INF)
    graph = nx.Graph([(0, 1), (1, 2), (3, 4), (4, 5)])
    problem = md.Problem(np.arange(1.0, 7) / 21, cost, [md.GraphPrivacy(1, graph)], secrets=domain, observables=domain)
    made = md.design(problem)
    assert made.certificate.forbidden == 18
    md.save(made, tmp_path)
    found = md.verify(tmp_path)
    assert found.differences(made.certificate) == ()
    page = (tmp_path / "report.html").read_text()
    assert "18 of 36" in page
    assert "Each secret permits only 3 of 6 answers" in page
    assert "answers are off by at most 0.4197 km on average" in page
    assert np.array_equal(md.Design.load(tmp_path).problem.cost, problem.cost)

    moved = made.channel.numerators.copy()
    moved[0, 3] += 1
    moved[0, 1] -= 1
    evidence = replace(made.evidence(), numerators=moved)
    with pytest.raises(CertificateError, match="secret 0 gives observable 3 and secret 1 never does") as caught:
        certify(evidence).require()
    assert caught.value.pair == (0, 1)
    moved[1:3] += moved[0] - made.channel.numerators[0]
    with pytest.raises(CertificateError, match="secret 0 gives observable 3, which an infinite cost forbids"):
        certify(replace(evidence, numerators=moved)).require()


def test_forbidden_answers_are_fixed_at_zero():
    cost = np.array([[0, 1, INF], [1, 0, INF], [INF, 1, 2]])
    lines = list(mps(md.Problem(np.full(3, 1 / 3), cost, [md.GraphPrivacy(1, from_edges(3, [(0, 1)]))])))
    text = "".join(lines)
    fixed = re.findall(r"^ (\w+) bound (\S+) 0\b", text, re.MULTILINE)
    assert {name for _, name in fixed} == {"p_2", "p_5", "p_6"}
    assert "inf" not in text.lower()


def stages(count):
    """Return a problem with so many unconnected pairs of secrets, each of other costs."""
    cost = np.full((2 * count, 2 * count), INF)
    for part in range(count):
        cost[2 * part : 2 * part + 2, 2 * part : 2 * part + 2] = (1 + part) * (1 - np.eye(2))
    graph = nx.Graph([(2 * part, 2 * part + 1) for part in range(count)])
    return md.Problem(np.full(2 * count, 0.5 / count), cost, [md.GraphPrivacy(1, graph)])


def assert_stopped(made, limits):
    """Check that the parts after the second had hardly any time."""
    assert limits[:2] == [None, None]
    assert all(limit is not None and limit < 0.01 for limit in limits[2:])
    assert made.status == Status.INTERRUPTED.value
    assert made.certificate.holds


def test_after_an_interruption_the_other_parts_take_the_first_channel(monkeypatch):
    limits = []
    whole = road._design_whole

    def interrupted(problem, settings, deadline):
        limits.append(deadline.left())
        made = whole(problem, settings, deadline)
        return made.noted(status=Status.INTERRUPTED) if len(limits) == 2 else made

    monkeypatch.setattr(road, "_design_whole", interrupted)
    assert_stopped(md.design(stages(4)), limits)


@pytest.mark.parametrize("times", [1, 2])
def test_an_interruption_between_solves_counts_too(monkeypatch, times):
    calls = []
    whole = road._design_whole

    def interrupted(problem, settings, deadline):
        calls.append(deadline.left())
        if 1 < len(calls) <= 1 + times:
            raise KeyboardInterrupt
        return whole(problem, settings, deadline)

    monkeypatch.setattr(road, "_design_whole", interrupted)
    if times == 1:
        assert_stopped(md.design(stages(3)), calls)
        return
    with pytest.raises(KeyboardInterrupt):
        md.design(stages(3))
