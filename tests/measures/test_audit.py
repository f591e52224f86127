"""The tight ε is exact, whatever the numbers; wrong mechanisms are exposed with their pair; cost and optimum fit."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
import wrong_mechanisms as wrong
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.measures._tight import exact_rows
from mechdesign.model._words import format_bound
from mechdesign.report._audit_page import html, pairs_figure
from mechdesign.report._verdicts import describe_rows, judge_audit

LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
TWO = [[0, 1], [1, 0]]


def brute(matrix: np.ndarray, distance: np.ndarray) -> Decimal | None:
    """Return the tight ε to 40 digits, from fractions; None where no ε holds."""
    rows = [[max(Fraction(value), Fraction(0)) for value in row] for row in matrix.tolist()]
    rows = [[value / sum(row) for value in row] for row in rows]
    worst = Decimal(0)
    for s, above in enumerate(rows):
        for t, below in enumerate(rows):
            if s == t or math.isinf(distance[s, t]):
                continue
            for a, b in zip(above, below, strict=True):
                if a <= b:
                    continue
                if b == 0 or distance[s, t] == 0:
                    return None
                ratio = a / b
                with localcontext(prec=60):
                    logarithm = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
                    worst = max(worst, logarithm / Decimal(float(distance[s, t])))
    return worst


def random_channel(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    matrix = rng.dirichlet(np.full(m, 10 ** rng.uniform(-1, 1)), n)
    kind = rng.integers(0, 6)
    if kind == 0:
        matrix = matrix * 10.0 ** rng.integers(-300, 1, (n, 1))
    elif kind == 1:
        matrix[rng.random((n, m)) < 0.05] = 0.0
        matrix[:, 0] += matrix.sum(axis=1) == 0
    elif kind == 2:
        # All alike but for the last digits.
        matrix = matrix[:1] * (1 + rng.integers(-3, 4, (n, m)) * 2.0**-52)
    elif kind == 3:
        matrix = np.round(matrix * 8) / 8 + 2.0**-20
    elif kind == 4:
        matrix = matrix - 1e-18 * (rng.random((n, m)) < 0.05)
        matrix[:, 0] = np.abs(matrix[:, 0]) + 1e-3
    places = rng.integers(0, 6, (n, 2)).astype(float)
    distance = md.distances.manhattan(md.Domain.from_points(places)) if rng.random() < 0.5 else rng.random((n, n)) + 1
    distance = np.maximum(distance, distance.T)
    np.fill_diagonal(distance, 0.0)
    if rng.random() < 0.2:
        distance[0, -1] = distance[-1, 0] = np.inf
    return matrix, distance


def test_random_channels_against_brute_force_in_rationals() -> None:
    rng = np.random.default_rng(15)
    infinite = 0
    for _ in range(150):
        matrix, distance = random_channel(rng)
        found, truth = md.audit(matrix, distance, weights=True), brute(matrix, distance)
        if truth is None:
            assert found.epsilon == math.inf
            assert not found.holds(1e9)
            infinite += 1
        else:
            # Rounded up, and by no more than a float needs.
            assert truth <= Decimal(repr(found.epsilon))
            assert Decimal(repr(math.nextafter(found.epsilon, 0))) < truth or truth == 0 == found.epsilon
            assert found.holds(found.epsilon)
            assert truth == 0 or not found.holds(math.nextafter(found.epsilon, 0))
        assert (found.witness is None) == (found.epsilon == 0)
        if found.witness is not None and found.epsilon < math.inf:
            (s, t), o = found.witness
            rows = exact_rows(matrix, weights=True)
            ratio = rows.probability(s, o) / rows.probability(t, o)
            with localcontext(prec=60):
                logarithm = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
                assert abs(logarithm / Decimal(float(distance[s, t])) - truth) <= Decimal(10) ** -50
    assert 6 < infinite < 75


def test_floats_are_taken_as_they_are() -> None:
    found = md.audit([[0.1] * 10, [0.1] * 10], TWO)
    assert found.epsilon == 0.0
    assert found.witness is None
    # Ten floats 0.1 are more than 1.
    assert 0 < found.deviation < 1e-15
    assert Fraction(found.deviation) >= 10 * Fraction(0.1) - 1
    tenth = Fraction(1, 10)
    assert md.audit([[tenth] * 10] * 2, TWO).deviation == 0
    off = md.audit([[0.1] * 10, [math.nextafter(0.1, 1)] + [0.1] * 9], TWO)
    assert 0 < off.epsilon < 1e-15
    assert off.witness == ((1, 0), 0)


def test_an_exact_channel_keeps_what_its_certificate_says() -> None:
    problem = md.Problem([0.1, 0.2, 0.3, 0.4], LINE, [md.MetricPrivacy("0.7", LINE)])
    made = md.design(problem)
    found = md.audit(made.channel, LINE, prior=[0.1, 0.2, 0.3, 0.4], cost=LINE)
    assert found.epsilon == made.certificate.epsilon[0]
    assert found.holds("0.7")
    assert found.deviation == 0
    assert found.cost == pytest.approx(made.certificate.expected_cost, rel=1e-12)
    assert found.optimum is not None
    assert found.optimum <= found.cost <= found.optimum * (1 + 1e-6)


def test_a_policy_graph_and_other_measures() -> None:
    response = md.mechanisms.RandomisedResponse.of_graph(1, nx.complete_graph(4)).channel()
    path = nx.path_graph(4)
    by_edges, by_hops = md.audit(response, graph=path), md.audit(response, LINE)
    assert by_edges.epsilon == by_hops.epsilon == pytest.approx(1.0)
    assert md.audit(response, LINE * 2).epsilon == pytest.approx(0.5)
    apart = nx.Graph([(0, 1), (2, 3)])
    told = np.array([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]])
    assert md.audit(told, graph=apart).epsilon == 0.0
    assert md.audit(told, graph=path).epsilon == math.inf
    assert md.audit(told, graph=path).witness == ((1, 2), 0)


def test_the_optimum_at_the_ε_it_really_has() -> None:
    found = md.audit(md.mechanisms.Exponential(1.0, LINE).matrix(), LINE, cost=LINE)
    assert found.cost is not None
    assert found.optimum is not None
    assert found.design is not None
    assert found.design.certificate.epsilon[0] <= found.epsilon
    assert found.optimum < found.cost
    constant = md.audit(np.full((4, 4), 0.25), LINE, cost=LINE)
    assert constant.optimum == pytest.approx(1.0)
    assert constant.design is None
    open_ = md.audit(np.eye(4), LINE, cost=LINE)
    assert (open_.epsilon, open_.cost, open_.optimum) == (math.inf, 0.0, 0.0)
    graph = md.audit(
        md.mechanisms.Exponential(1.0, LINE).matrix(), graph=nx.path_graph(4), cost=LINE, objective="worst"
    )
    assert graph.optimum is not None
    assert graph.cost is not None
    assert graph.optimum <= graph.cost
    assert md.audit(np.eye(4), LINE).cost is None
    assert md.audit(np.eye(4), LINE).optimum is None


def test_a_nearly_constant_channel_needs_no_design() -> None:
    matrix = np.full((4, 4), 0.25)
    matrix[0, 0] += 1e-14
    found = md.audit(matrix, LINE, cost=LINE)
    assert 0 < found.epsilon < 1e-12
    assert found.optimum == pytest.approx(1.0)
    assert found.cost is not None
    assert found.optimum is not None
    assert found.optimum <= found.cost


def test_attacks_and_distortion() -> None:
    found = md.audit(md.mechanisms.Geometric(1.0, 4).matrix(), LINE)
    errors = found.attacks()
    assert found.distortion == errors["optimal"] == md.attack.optimal(found.matrix, found.prior, LINE).distortion
    assert set(errors) == {"optimal", "bayes", "prior_free", "minimax", "pairwise_minimax"}
    with pytest.raises(InputError, match="is not an attack"):
        found.attacks(["guess"])


def test_worst_pairs_are_sorted_and_stand_once() -> None:
    found = md.audit(md.mechanisms.Exponential(2.0, LINE).matrix(), LINE)
    pairs = found.worst_pairs(100)
    assert len(pairs) == 6
    assert [pair.epsilon for pair in pairs] == sorted((pair.epsilon for pair in pairs), reverse=True)
    assert pairs[0].epsilon == pytest.approx(found.epsilon)
    assert found.exposure.max() == pytest.approx(found.epsilon)


# Mechanisms that were said to keep ε.


def test_sums_of_clusters_leak_where_a_value_changes_cluster() -> None:
    found = md.audit(wrong.cluster_sums(0.4), graph=nx.path_graph(10))
    assert found.epsilon == pytest.approx(0.2 * 9, rel=1e-9)
    assert found.witness is not None
    assert set(found.witness.pair) == {4, 5}
    assert not found.holds("0.4")


def test_noise_from_a_finite_grid_of_directions_has_no_ε() -> None:
    matrix, distance = wrong.noise_on_rays(0.5)
    found = md.audit(matrix, distance)
    assert found.epsilon == math.inf
    assert found.witness is not None
    (s, t), o = found.witness
    assert matrix[s, o] > 0 == matrix[t, o]


def test_dropping_far_pairs_is_not_private_but_up_to_its_dilation() -> None:
    matrix, distance = wrong.far_pairs_dropped(1.0, 1.0)
    found = md.audit(matrix, distance)
    assert 1.2 < found.epsilon <= math.sqrt(2) * (1 + 1e-9)
    assert found.witness is not None
    s, t = found.witness.pair
    assert distance[s, t] > 1
    assert md.audit(matrix, np.where(distance <= 1, distance, np.inf)).holds(1)


def test_a_node_without_edges_is_released_as_it_is() -> None:
    graph = nx.empty_graph(3)
    graph.add_edge(0, 1)
    places = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    channel = md.mechanisms.PlanarIsotropic(1, places, graph).channel(places)
    assert md.audit(channel, graph=graph).holds(1)
    found = md.audit(channel, graph=nx.complete_graph(3))
    assert found.epsilon == math.inf
    assert found.witness is not None
    assert 2 in found.witness.pair


def test_rules() -> None:
    domain = md.Domain.grid(5, 4, 5.0, 4.0)
    distance = md.distances.euclidean(domain)
    snapped = md.audit(md.mechanisms.snapping(domain, 2.0), distance)
    assert snapped.epsilon == math.inf
    assert snapped.witness is not None
    # At the border of two cells of the rule.
    assert distance[snapped.witness.pair] == pytest.approx(1.0)
    cut = md.audit(md.mechanisms.PlanarLaplace(1.0, domain).density(), distance)
    assert 1.0 < cut.epsilon < 2.0
    assert md.audit(md.mechanisms.Exponential(1.0, distance).matrix(), distance).holds(1)
    assert md.audit(
        md.mechanisms.Geometric(0.5, 6).matrix(), np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    ).holds("0.5000000001")
    bounded = md.audit([[0.25, 0.5, 0.25, 0, 0], [0, 0.25, 0.5, 0.25, 0], [0, 0, 0.25, 0.5, 0.25]], LINE[:3, :3])
    assert bounded.epsilon == math.inf
    with pytest.raises(InputError, match="spacing: is not positive"):
        md.mechanisms.snapping(domain, 0)


# What is said of it.


@pytest.mark.slow
def test_the_page_shows_the_pair_and_the_verdict() -> None:
    domain = md.Domain.grid(4, 3, 4.0, 3.0, unit="km")
    distance = md.distances.euclidean(domain)
    cut = md.audit(md.mechanisms.PlanarLaplace(1.0, domain).density(), distance, cost=distance, secrets=domain)
    shown = html(cut, "1", "Cut <off>")
    assert "ε = 1 does not hold" in shown
    assert "Cut &lt;off&gt;" in shown
    assert format_bound(cut.epsilon, up=True) in shown
    assert 'id="pairs"' in shown
    snapped = md.audit(md.mechanisms.snapping(domain, 2.0), distance, secrets=domain)
    assert "No finite ε holds" in html(snapped)
    drawn = pairs_figure(snapped, snapped.worst_pairs(5))
    assert drawn.axes[1].get_xlabel() == "other secrets that an answer may rule out"


def test_sentences_say_what_the_sums_mean() -> None:
    assert describe_rows(md.audit([[0.5, 0.5]] * 2, TWO))[0] == "Every row sums to exactly 1."
    counted = describe_rows(md.audit([[5, 5], [1, 2]], TWO, weights=True))
    assert "divided by its exact sum" in counted[0]
    assert "The deviation is large" in counted[1]
    negative = describe_rows(md.audit([[1.0, -1e-17], [0.5, 0.5]], TWO))
    assert "Negative entries, which the audit replaces by 0: 1." in negative
    same_place = judge_audit(md.audit([[0.5, 0.5], [0.4, 0.6]], np.zeros((2, 2))))
    assert "distance 0" in str(same_place)


def test_the_verdict_names_the_claimed_and_the_tight_epsilon_and_the_worst_pair() -> None:
    found = md.audit([[0.75, 0.25], [0.25, 0.75]], TWO)
    assert str(judge_audit(found)).startswith(
        "Audited: the tight ε is 1.099; answer 0 is 3 times as likely for secret 0"
    )
    assert not judge_audit(found, "1").good
    assert "ε = 1 does not hold: the tight ε is 1.099; " in str(judge_audit(found, "1"))
    assert "ε = 1 allows 2.72 times" in str(judge_audit(found, "1"))
    assert judge_audit(found, "1.1").good
    assert "impossible for secret" in str(judge_audit(md.audit(np.eye(2), TWO)))
    assert "does not distinguish" in str(judge_audit(md.audit([[0.5, 0.5]] * 2, TWO)))


def test_wrong_input() -> None:
    one, point = [[1.0]], [[0.0]]
    rows = {
        "distance": [([[1.0, 0.0]], point, {"graph": nx.path_graph(1)}), ([[1.0, 0.0]], None, {}), (one, TWO, {})],
        "matrix[0,1]": [([[1.0, math.nan]], point, {})],
        "matrix[0]": [([[0.0, 0.0]], point, {})],
        "matrix": [([1.0], point, {}), ([["a"]], point, {})],
        "cost": [(one, point, {"cost": [[1.0, 2.0]]})],
        "prior": [(one, point, {"prior": [0.5, 0.5]})],
        "objective": [(one, point, {"objective": "least"})],
        "error": [(one, point, {"error": [[1.0, 2.0]]})],
    }
    assert_refused(
        Mistake(f"{place}, {number}", partial(md.audit, matrix, distance, **others), place)
        for place, given in rows.items()
        for number, (matrix, distance, others) in enumerate(given)
    )


def test_the_least_epsilon_is_tight_however_small_it_is() -> None:
    for digits in (20, 39, 40, 41, 61, 120, 299):
        be_tight(digits)


def be_tight(digits: int) -> None:
    small = Fraction(3, 10**digits)
    rows = [[Fraction(1), small], [Fraction(1), Fraction(0)]]
    found = md.audit(rows, distance=[[0, math.inf], [1, 0]])
    with localcontext() as context:
        context.prec = 700
        true = (1 + Decimal(small.numerator) / Decimal(small.denominator)).ln()
    assert Decimal(found.epsilon) == pytest.approx(true, rel=Decimal("1e-15"))
    assert found.witness == ((1, 0), 0)
    above, below = (Fraction(true) * (1 + Fraction(sign, 10**300)) for sign in (1, -1))
    assert found.holds(Fraction(str(float(above * Fraction(101, 100)))))
    assert not found.holds(Fraction(str(float(below * Fraction(99, 100)))))


def test_whether_an_epsilon_holds_is_decided_exactly() -> None:
    found = md.audit([[2, 1], [1, 2]], distance=TWO, weights=True)
    with localcontext() as context:
        context.prec = 300
        true = Fraction(Decimal(2).ln())
    for apart in (10, 37, 41, 100, 250):
        assert found.holds(true + Fraction(1, 10**apart))
        assert not found.holds(true - Fraction(1, 10**apart))
    assert not found.holds(0)
    assert md.audit([[1, 1], [1, 1]], distance=TWO, weights=True).holds(0)


def test_the_exposure_of_secrets_at_distance_zero_that_differ_is_infinite() -> None:
    rows, distance = [[5, 5], [4, 6], [1, 9], [1, 9]], [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]
    found = md.audit(
        rows, distance=distance, weights=True, secrets=md.Domain.grid(columns=2, rows=2, width=2.0, height=2.0)
    )
    assert found.epsilon == math.inf
    assert np.isinf(found.exposure).tolist() == [True, True, False, False]
    assert found.exposure[2] == pytest.approx(math.log(5))
    # On the map, they have the largest finite colour.
    (image,) = pairs_figure(found, found.worst_pairs(5)).axes[0].images
    assert np.asarray(image.get_array()).ravel() == pytest.approx([math.log(5)] * 4)


def test_fractions_smaller_than_every_float_count() -> None:
    for power in (300, 320, 330, 400, 800):
        count_the_smallest(power)


def count_the_smallest(power: int) -> None:
    tiny = Fraction(1, 10**power)
    rows = [[Fraction(1, 2) - 3 * tiny, Fraction(1, 2), 3 * tiny], [Fraction(3, 10) - tiny, Fraction(7, 10), tiny]]
    found = md.audit(np.array(rows, dtype=object), distance=TWO, weights=True)
    assert found.epsilon == pytest.approx(math.log(3), rel=1e-15)
    assert not found.holds("1.09")
    assert found.witness is not None
    assert found.witness.observable == 2
    assert found.exposure.tolist() == pytest.approx([math.log(3)] * 2)
    assert found.worst_pairs()[0].pair == (0, 1)


def test_rows_are_alike_whatever_they_are_multiplied_by() -> None:
    """Sums beyond the largest float, and entries of a few digits, divide as any others do."""
    for power in (-1074, -1060, 0, 1020, 1022):
        rows = np.array([[1.0, 2.0], [3.0, 1.0]]) * [[1.0], [2.0**power]]
        found = md.audit(rows, distance=TWO, weights=True)
        assert found.epsilon == md.audit([[1, 2], [3, 1]], distance=TWO, weights=True).epsilon, power
        assert found.ruled_out.tolist() == [0, 0]
        assert found.matrix == pytest.approx(np.array([[1 / 3, 2 / 3], [3 / 4, 1 / 4]])), power


def test_a_rate_beyond_the_largest_float_rules_nothing_out() -> None:
    for distance in (5e-324, 1e-310):
        found = md.audit([[0.5, 0.5], [0.25, 0.75]], distance=[[0, distance], [distance, 0]])
        assert found.epsilon == math.inf
        assert found.holds("1e330"), distance
        assert not found.holds("1e300"), distance
        assert found.exposure.tolist() == [math.inf, math.inf]
        assert found.ruled_out.tolist() == [0, 0]


@pytest.mark.parametrize(("epsilon", "cost"), [(1.0, 1.376), (2.0, 0.770), (3.0, 0.482)])
def test_planar_laplace_is_the_law_of_noise_that_is_drawn_and_snapped(epsilon: float, cost: float) -> None:
    domain = md.Domain.grid(5, 5, 5.0, 5.0)
    distance = md.distances.euclidean(domain)
    law = md.mechanisms.PlanarLaplace(epsilon, domain).matrix()
    assert float((law * distance).sum()) / 25 == pytest.approx(cost, abs=0.002)
    rng = np.random.default_rng(5)
    radius = rng.gamma(2.0, 1 / epsilon, 40_000)
    angle = rng.uniform(0, 2 * math.pi, radius.size)
    noisy = np.array([0.5, 1.5]) + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    column, row = np.clip(np.floor(noisy), 0, 4).astype(int).T
    drawn = np.bincount(row * 5 + column, minlength=25) / radius.size
    assert np.abs(drawn - law[5]).max() < 0.01
    assert md.audit(law, distance).epsilon <= epsilon * (1 + 1e-9)
    assert md.audit(md.mechanisms.PlanarLaplace(epsilon, domain).density(), distance).epsilon > epsilon


def test_planar_laplace_asks_for_different_places_in_the_plane() -> None:
    domain, planar = md.Domain, md.mechanisms.PlanarLaplace
    square, units = domain.grid(2, 2, 2.0, 2.0, unit="km"), domain.grid(2, 2, 2000.0, 2000.0, unit="m")
    north, south = (domain.geographic_grid(2, 2, low, low + 0.1, 139.7, 139.8) for low in (35.6, 34.6))
    shared = domain.from_points([[0.0, 0.0]] * 2, unit="km")
    assert_refused(
        [
            Mistake("a line", lambda: planar(1, domain.from_points([[0.0], [1.0]])), "points"),
            Mistake("one place", lambda: planar(1, shared).matrix(), "points"),
            Mistake("one answer", lambda: planar(1, square).matrix(shared), "observables"),
            Mistake("another unit", lambda: planar(1, square).matrix(units), "other", "'m'"),
            Mistake("another plane", lambda: planar(1, north).matrix(south), "other"),
            Mistake("no noise", lambda: planar(0, square), "epsilon"),
        ]
    )
    # Secrets may share a place, and then share a row.
    twice = md.Domain.from_points([[0.3, 0.4]] * 2, unit="km")
    assert len(np.unique(md.mechanisms.PlanarLaplace(1, twice).matrix(square), axis=0)) == 1


def test_rows_of_another_sum_are_weights_and_must_be_said_to_be() -> None:
    for matrix, remedy in (
        ([[50, 50], [30, 70]], "percentages"),
        ([[50.0, 50.0], [30.0, 70.0]], "percentages"),
        ([[0.9, 0.9], [0.1, 0.1]], "Transpose"),
        ([[0.4, 0.4], [0.3, 0.5]], "weights=True"),
        ([[0.498, 0.5], [0.5, 0.5]], "weights=True"),
        ([[1, 0, 0, 0]] * 3 + [[250, 250, 250, 250]], "weights=True"),
    ):
        hamming = 1.0 - np.eye(len(matrix))
        with pytest.raises(InputError, match=rf"matrix\[\d\]: does not sum to 1; .*{remedy}"):
            md.audit(matrix, hamming)
        assert md.audit(matrix, hamming, weights=True).epsilon > 0 or "Transpose" in remedy


def test_a_negative_entry_of_a_row_with_a_wrong_sum_is_named() -> None:
    exact = np.array([[1, 0], [Fraction(6, 5), Fraction(-1, 5)]], dtype=object)
    for matrix, value in (([[0.5, 0.5], [1.2, -0.2]], "-0.2"), (exact, "-0.2"), ([[1, 0], [-1, -2]], "-2")):
        with pytest.raises(
            InputError, match=rf"matrix\[1,1\]: is negative; found {value}; must be a prob.*\. Apply exp"
        ):
            md.audit(matrix, TWO)
    # What rounding left below 0 is not the reason.
    with pytest.raises(InputError, match=r"matrix\[1\]: does not sum to 1; found 0\.9"):
        md.audit([[0.5, 0.5], [0.9, -1e-17]], TWO)


def test_rows_that_are_rounded_to_three_places_are_probabilities() -> None:
    assert md.audit([[0.333, 0.333, 0.333], [0.5, 0.25, 0.25]], TWO).deviation < 0.0011


def test_a_secret_at_a_distance_from_itself_and_a_negative_epsilon_are_refused() -> None:
    with pytest.raises(InputError, match="distance of a secret from itself"):
        md.audit([[0.5, 0.5], [0.4, 0.6]], [[0.1, 1], [1, 0]])
    found = md.audit([[0.5, 0.5], [0.4, 0.6]], TWO)
    with pytest.raises(InputError, match="epsilon: is negative; found '-1'"):
        found.holds("-1")
    assert not found.holds(0)
