"""The papers' mechanisms: sampling laws, densities, certified channels, and what they refuse."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from long import mostly_long
from numpy.typing import ArrayLike, NDArray
from policy_examples import ANSWERS, states, under
from scipy import integrate, special, stats

import mechdesign as md
from mechdesign.certify._claims import PairBound
from mechdesign.certify._privacy import check, realised
from mechdesign.errors import CertificateError, InputError
from mechdesign.graphs._cells import nearest
from mechdesign.graphs._exposure import protected_pairs
from mechdesign.mechanisms import _knorm as knorm
from mechdesign.mechanisms import _masses as masses
from mechdesign.mechanisms._knorm import KNormMechanism
from mechdesign.mechanisms._masses import certify_numerators
from mechdesign.model._numbers import Number

Floats = NDArray[np.float64]
Kinds = type[md.mechanisms.Laplace] | type[md.mechanisms.PlanarIsotropic]

BLOCK = np.array([[i, j] for i in range(3) for j in range(3)], dtype=float)
# Cells far enough off that the whole of them is e^ε times as likely from one end of the block as from the other.
AROUND = np.array([[i, j] for i in range(-6, 9) for j in range(-6, 9)], dtype=float)
TRIANGLE = np.array([[0.0, 0.0], [2.0, 0.3], [0.7, 1.5]])
KINDS = [md.mechanisms.Laplace, md.mechanisms.PlanarIsotropic]


def bound(mechanism: KNormMechanism) -> PairBound:
    edges = np.array(mechanism.graph.edges(), dtype=np.int64).reshape(-1, 2)
    return PairBound.graph(mechanism.epsilon, len(mechanism.nodes), np.searchsorted(mechanism.nodes, edges))


def holds(mechanism: KNormMechanism, channel: md.Channel) -> bool:
    return check(channel.numerators, 62, bound(mechanism)) is None


def mixed() -> tuple[Floats, nx.Graph]:
    """Give a triangle, a pair, two coincident places and a node alone: hulls of dimension 2, 1, 0 and 0."""
    points = np.concatenate((TRIANGLE, [[4.0, 0.0], [5.0, 1.0], [3.0, 3.0], [3.0, 3.0], [0.0, 4.0]]))
    return points, md.graphs.from_edges(8, [(0, 1), (1, 2), (0, 2), (3, 4), (5, 6)])


SHAPES: dict[str, tuple[ArrayLike, nx.Graph]] = {
    "line": ([[0.0], [1.0], [3.0]], md.graphs.line(3)),
    "pair in the plane": ([[0.0, 0.0], [1.0, 2.0]], md.graphs.complete(2)),
    "pair in space": ([[0.0, 0.0, 1.0], [1.0, 2.0, 0.0]], md.graphs.complete(2)),
    "triangle": (TRIANGLE, md.graphs.complete(3)),
    "triangle in space": (TRIANGLE @ [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]] + 2.0, md.graphs.complete(3)),
    "block": (BLOCK, md.graphs.complete(9)),
    "tetrahedron": (np.eye(4)[:, :3], md.graphs.complete(4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", mostly_long(["triangle", "tetrahedron", "triangle in space", "block"], 2))
def test_norms_follow_the_gamma_law_and_are_independent_of_directions(kind: Kinds, shape: str) -> None:
    points, g = SHAPES[shape]
    mechanism = kind("1.7", points, g)
    hull = mechanism.hull(1)
    noise = mechanism.sample(1, 20_000, 7) - mechanism.points[1]
    norms, k = hull.norm(noise), hull.dimension
    # Gamma(k + 1) times the K-norm of a uniform point, whose k-th power is uniform, is Gamma(k).
    assert stats.kstest(norms, stats.gamma(k, scale=1 / 1.7).cdf).pvalue > 1e-3
    # On each side of K, which the noise leaves through, as many as its cone has volume; norms do not depend on it.
    side = (noise @ hull.facets.T).argmax(axis=1)
    cones = np.bincount((hull.sample(200_000, 1) @ hull.facets.T).argmax(axis=1), minlength=len(hull.facets))
    observed = np.bincount(side, minlength=len(hull.facets))
    assert stats.chi2_contingency(np.stack((observed, cones))).pvalue > 1e-3
    assert stats.ks_2samp(norms[side < len(hull.facets) // 2], norms[side >= len(hull.facets) // 2]).pvalue > 1e-3


def test_directions_are_uniform_in_the_hull_in_one_two_and_three_dimensions() -> None:
    """Second moments of noise of Gamma(k + 1) radius: (k + 1)(k + 2)/ε² times those of K, for cubes (side 2)² / 12."""
    for k in (1, 2, 3):
        corners = np.array(list(itertools.product((0.0, 1.0), repeat=k)))
        mechanism = md.mechanisms.PlanarIsotropic(2, corners, md.graphs.complete(2**k))
        noise = mechanism.sample(0, 50_000, k)
        moment = (k + 1) * (k + 2) / 4 / 3
        assert noise.T @ noise / len(noise) == pytest.approx(moment * np.eye(k), abs=0.05 * moment)


@pytest.mark.parametrize("shape", ["line", "pair in the plane", "triangle", "tetrahedron"])
def test_norms_have_the_moments_of_the_gamma_law(shape: str) -> None:
    """The norm is Gamma(k)/ε: E ‖z‖ = k/ε and E ln ‖z‖ = ψ(k) − ln ε.

    Half a million draws tell the shape k + 0.98 of the radius from k + 1 by six standard errors. A public
    implementation draws Gamma(3) whatever the dimension (errata, PGLP 3).
    """
    points, g = SHAPES[shape]
    mechanism = md.mechanisms.PlanarIsotropic("1.7", points, g)
    norms = mechanism.hull(1).norm(mechanism.sample(1, 500_000, 6) - mechanism.points[1])
    k = mechanism.hull(1).dimension
    for values, mean, variance in (
        (norms * 1.7, k, k),
        (np.log(norms * 1.7), special.digamma(k), special.polygamma(1, k)),
    ):
        assert abs(values.mean() - mean) < 3.5 * math.sqrt(variance / len(values))
        assert values.var() == pytest.approx(variance, rel=0.02)


def test_laplace_noise_is_independent_with_the_scale_of_the_edges() -> None:
    """Errata, PGLP 1: neighbours count, not all pairs of the component; three against seven here."""
    points = [[0.0, 0.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    mechanism = md.mechanisms.Laplace("0.5", points, md.graphs.line(4))
    noise = mechanism.sample(3, 200_000, 5) - points[3]
    # E |x| is the scale, and so is its standard deviation.
    assert np.abs(np.abs(noise).mean(axis=0) / 6 - 1).max() < 3.5 / math.sqrt(200_000)
    noise = noise[:20_000]
    for coordinate in noise.T:
        assert stats.kstest(coordinate, stats.laplace(scale=3 / 0.5).cdf).pvalue > 1e-3
    for sample in (noise, np.abs(noise)):
        assert stats.spearmanr(*sample.T).pvalue > 1e-3
    z = np.array([[0.3, -4.0], [3.0, 4.0]])
    assert mechanism.density(z, 3) == pytest.approx(np.exp(-np.abs(z - points[3]).sum(axis=1) / 6) / 144)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hull", ["component", "graph"])
def test_snapped_samples_match_the_channel(kind: Kinds, hull: str) -> None:
    points, g = mixed()
    mechanism = kind("1.2", points, g, hull)  # type: ignore[arg-type]
    sites = np.random.default_rng(12).uniform(-3, 6, size=(15, 2))
    channel = mechanism.channel(sites)
    assert holds(mechanism, channel)
    for node in range(8):
        drawn = np.bincount(nearest(mechanism.sample(node, 30_000, node), sites), minlength=15)
        expected = 30_000 * channel.matrix[node]
        rare = expected < 5
        assert drawn[expected < 1e-9].sum() == 0
        observed = np.append(drawn[~rare], drawn[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
        if len(expected) > 2:
            assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_densities_integrate_to_one(kind: Kinds) -> None:
    mechanism = kind(3, TRIANGLE, md.graphs.complete(3))
    axis, step = np.linspace(-12, 14, 1301, retstep=True)
    total = mechanism.density(np.stack(np.meshgrid(axis, axis), axis=-1), 1).sum() * step**2
    assert total == pytest.approx(1, abs=1e-3)


def test_densities_on_a_line_and_in_space_integrate_to_one() -> None:
    pair = md.mechanisms.PlanarIsotropic(2, [[0.0, 0.0], [3.0, 4.0]], md.graphs.complete(2))
    # By arc length; K reaches 5 to both sides.
    on_line = integrate.quad(lambda t: float(pair.density([0.6 * t, 0.8 * t], 0)), -90, 90, points=[0])[0]
    assert on_line == pytest.approx(1, rel=1e-6)
    assert pair.density([[0.6, 0.8], [0.6, 0.9]], 0) == pytest.approx([0.2 * math.exp(-0.4), 0.0])
    octahedron = md.mechanisms.Laplace(2, np.eye(4)[:, :3] * 0.5, md.graphs.complete(4))
    # In an octant the density is exp of a linear function: Gauss-Laguerre quadrature is exact.
    nodes, weights = np.polynomial.laguerre.laggauss(4)
    cube = np.array(list(itertools.product(nodes, repeat=3)))
    masses = np.prod(list(itertools.product(weights, repeat=3)), axis=1)
    values = octahedron.density(cube / 2, 3) * np.exp(cube.sum(axis=1)) / 8
    assert 8 * values @ masses == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hull", ["component", "graph"])
def test_density_ratios_stay_within_the_hops(kind: Kinds, hull: str) -> None:
    domain = md.Domain.grid(columns=4, rows=4, width=4.0, height=4.0)
    g = md.graphs.blocks(domain, 2)
    g.add_edge(5, 6)
    mechanism = kind("0.9", domain, g, hull)  # type: ignore[arg-type]
    z = np.random.default_rng(0).uniform(-3, 7, size=(500, 2))
    logs = np.log(mechanism.likelihood(z))
    for i, hops in nx.all_pairs_shortest_path_length(g):
        for j, steps in hops.items():
            assert (logs[:, i] - logs[:, j]).max() <= 0.9 * steps + 1e-9


def test_example_5_2_both_mechanisms_expose_s5() -> None:
    """Under {s2, s3, s5} an output f(s5) is e^{3ε/2} times as likely from s5 as from s3, or impossible from s3."""
    s3, s5 = states(3, 5)
    for epsilon in (0.5, 3):
        laplace, planar = (kind(epsilon, ANSWERS, under(2, 3, 5), hull="graph") for kind in KINDS)
        ratio = laplace.density(ANSWERS[s5], s5) / laplace.density(ANSWERS[s5], s3)
        assert ratio == pytest.approx(math.exp(1.5 * epsilon), rel=1e-12)
        assert planar.density(ANSWERS[s5], s5) > 0
        assert planar.density(ANSWERS[s5], s3) == 0


def test_likelihood_is_density_and_knows_that_exact_hits_are_no_coincidence() -> None:
    points, g = mixed()
    mechanism = md.mechanisms.PlanarIsotropic(1, points, g)
    elsewhere = np.array([[0.5, 0.5], [-1.0, 2.0]])
    densities = np.stack([mechanism.density(elsewhere, node) for node in range(8)], axis=-1)
    assert mechanism.likelihood(elsewhere) == pytest.approx(densities)
    assert (densities[:, :3] > 0).all()
    assert (densities[:, 3:] == 0).all()
    on_line = mechanism.likelihood([4.25, 0.25])
    assert np.flatnonzero(on_line).tolist() == [3, 4]
    assert on_line[4] == pytest.approx(on_line[3] * math.exp(-0.5))
    assert mechanism.likelihood([3.0, 3.0]).tolist() == [0, 0, 0, 0, 0, 1, 1, 0]
    assert mechanism.likelihood([0.0, 4.0]).tolist() == [0, 0, 0, 0, 0, 0, 0, 1]


def test_nobody_changes_the_graph_of_a_mechanism() -> None:
    points, g = [[0.0], [1.0], [2.0]], nx.path_graph(3)
    for given in (g, g.subgraph([0, 1, 2])):
        mechanism = md.mechanisms.Laplace(1, points, given)
        g.remove_edge(1, 2)
        assert mechanism.graph.has_edge(1, 2)
        g.add_edge(1, 2)
    frozen = nx.freeze(nx.path_graph(3))
    assert md.mechanisms.Laplace(1, points, frozen).graph is frozen


def test_the_logarithm_of_the_likelihood_does_not_underflow() -> None:
    mechanism = md.mechanisms.PlanarIsotropic(1, [[0.0], [1.0]], md.graphs.complete(2))
    found = mechanism.log_likelihood([[0.5], [2000.0]])
    assert found == pytest.approx(-math.log(2) - np.array([[0.5, 0.5], [2000, 1999]]))
    assert mechanism.likelihood([2000.0]).tolist() == [0, 0]


def test_samples_of_a_pair_are_recognised_as_on_their_line() -> None:
    points = np.array([[1000.1, 2000.7], [1000.4, 2001.9], [999.0, 2000.0]])
    mechanism = md.mechanisms.PlanarIsotropic(1, points, md.graphs.from_edges(3, [(0, 1)]))
    found = mechanism.likelihood(mechanism.sample(0, 2000, 4))
    assert (found[:, :2] > 0).all()
    assert (found[:, 2] == 0).all()


def test_a_node_alone_is_released_exactly_under_the_component_hull_only() -> None:
    points, g = mixed()
    for kind in KINDS:
        component, whole = kind(1, points, g), kind(1, points, g, hull="graph")
        assert component.hull(7).dimension == component.hull(5).dimension == 0
        assert (component.sample(7, 3) == points[7]).all()
        assert component.density([points[7], points[0]], 7).tolist() == [1.0, 0.0]
        assert component.channel(points[[7, 0]]).matrix[7].tolist() == [1.0, 0.0]
        assert whole.hull(7).dimension == 2
        assert 0 < whole.density(points[0], 7) < 1
        assert whole.channel(points[[7, 0]]).matrix[7].max() < 1


def test_two_nodes_are_told_apart_with_the_mass_and_not_with_the_density() -> None:
    """Snapped to the two nodes at ε = 1 the posterior of a uniform prior is 1 - exp(-1/2)/2; densities give 0.7311."""
    for kind in KINDS:
        mechanism = kind(1, [[0.0, 0.0], [1.0, 0.0]], md.graphs.complete(2))
        matrix = mechanism.channel(mechanism.points).matrix
        posterior = matrix[0, 0] / matrix[:, 0].sum()
        assert posterior == pytest.approx(1 - math.exp(-0.5) / 2, rel=1e-11)
        assert round(posterior, 4) == 0.6967
        density = mechanism.likelihood([0.0, 0.0])
        assert round(density[0] / density.sum(), 4) == 0.7311


def test_planar_isotropic_noise_on_a_clique_of_nine_cells() -> None:
    """Design page, section 7: about 4.6 cells at ε = 1, 1.34 when the output is clipped to the block."""
    mechanism = md.mechanisms.PlanarIsotropic(1, BLOCK, md.graphs.complete(9))
    error = np.linalg.norm(mechanism.sample(4, 50_000, 9) - BLOCK[4], axis=1).mean()
    exact = 3 * 2 * (math.sqrt(2) + math.asinh(1)) / 3
    assert exact == pytest.approx(4.59, abs=0.005)
    assert error == pytest.approx(exact, rel=0.01)
    clipped = (mechanism.channel(BLOCK).matrix * md.distances.euclidean(BLOCK)).sum(axis=1).mean()
    assert clipped == pytest.approx(1.34, abs=0.001)


@pytest.mark.parametrize("kind", KINDS)
def test_channels_are_private_exactly_and_spend_what_they_may(kind: Kinds) -> None:
    domain = md.Domain.grid(columns=6, rows=5, width=6.0, height=5.0)
    epsilons: list[Number] = ["0.001", "0.5", Fraction(7, 3), 30, 800]
    for epsilon in epsilons:
        mechanism = kind(epsilon, domain, md.graphs.blocks(domain, 3))
        channel = mechanism.channel(domain)
        assert holds(mechanism, channel), epsilon
        spent = realised(channel.numerators, 62, bound(mechanism))
        nominal = float(mechanism.epsilon)
        assert spent <= nominal
        # At ε = 30 masses below 2**-62 cannot be held: far cells are then more alike than they need be.
        assert spent >= min(nominal * (1 - 1e-9), 25), epsilon
        assert channel.matrix == pytest.approx(mechanism.matrix(domain), abs=1e-11), epsilon


def test_small_masses_are_kept_relatively() -> None:
    domain = md.Domain.grid(columns=20, rows=1, width=20.0, height=1.0)
    mechanism = md.mechanisms.PlanarIsotropic(1, domain, md.graphs.line(20))
    channel, masses = mechanism.channel(domain), mechanism.matrix(domain)
    assert masses.min() < 1e-8
    assert channel.matrix == pytest.approx(masses, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_within_the_hull_of_the_graph_are_protected_however_large_epsilon_is(kind: Kinds) -> None:
    """Masses of 1e-400 are 0 as floats; of two nodes without a common edge one may be rounded so, and not the other."""
    points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [1.0, 7.0], [1.0, 8.0]])
    mechanism = kind(300, points, md.graphs.from_edges(5, [(0, 1), (0, 2)]), hull="graph")
    assert [3, 4] in protected_pairs(points, mechanism.graph, mechanism.hull(0)).tolist()
    numerators = mechanism.channel(points).numerators
    assert numerators.min() > 0
    assert realised(numerators[3:], 62, PairBound.graph(Fraction(300), 2, np.array([[0, 1]]))) <= 300


def test_masses_that_break_the_policy_are_not_certified() -> None:
    rows = np.array([[0.75, 0.25], [0.25, 0.75]])
    edges = np.array([[0, 1]])
    assert (
        certify_numerators(lambda _: rows, PairBound.graph(Fraction("1.0987"), 2, edges), 2).sum(axis=1).tolist()
        == [2**62] * 2
    )
    with pytest.raises(CertificateError, match=r"cannot be rounded to a channel: p\(") as caught:
        certify_numerators(lambda _: rows, PairBound.graph(Fraction("1.0986"), 2, edges), 2)
    assert caught.value.pair in ((0, 1), (1, 0))


def test_more_rounding_is_paid_for_with_a_smaller_epsilon() -> None:
    """Masses that carry relative errors of 1e-10 hold at an ε that is lower by as much."""
    noise = 1 + 1e-10 * np.random.default_rng(0).uniform(-1, 1, size=(9, 225))
    mechanism = md.mechanisms.PlanarIsotropic(1, BLOCK, md.graphs.complete(9))
    asked = []

    def masses(rate: float) -> Floats:
        asked.append(rate)
        rows = mechanism._masses(rate, AROUND) * noise
        normalised: Floats = rows / rows.sum(axis=1, keepdims=True)
        return normalised

    edges = np.array(list(itertools.combinations(range(9), 2)))
    numerators = certify_numerators(masses, PairBound.graph(Fraction(1), 225, edges), 225)
    assert len(asked) > 1
    assert check(numerators, 62, bound(mechanism)) is None
    assert realised(numerators, 62, bound(mechanism)) > 1 - 1e-8


def test_hulls_that_rounding_distorts_are_certified_all_the_same() -> None:
    """Offsets that are equal but for 1e-11 are merged in the hull: its norm is then a little above 1 on some edges."""
    points = BLOCK + 3e-11 * np.random.default_rng(1).uniform(-1, 1, size=BLOCK.shape)
    mechanism = md.mechanisms.PlanarIsotropic(1, points, md.graphs.complete(9))
    assert holds(mechanism, mechanism.channel(BLOCK))
    nearly = np.array([[0.0, 0.0], [1.0, 1e-11], [2.0, -1e-11]])
    flat = md.mechanisms.PlanarIsotropic(1, nearly, md.graphs.line(3))
    assert flat.hull(0).dimension == 1
    assert holds(flat, flat.channel(nearly))


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "origin"), mostly_long([(1e-90, 0.0), (0.1, 5e6), (1e90, 0.0), (1.0, 5e5)], 2))
def test_neither_the_unit_nor_the_origin_matters(unit: float, origin: float) -> None:
    """Projected coordinates, such as UTM's, lie millions of metres from their origin."""
    domain = md.Domain.grid(columns=6, rows=6, width=6.0, height=6.0)
    places = domain.points * unit + origin
    scattered = places + 0.1 * unit * np.random.default_rng(0).normal(size=places.shape)
    for kind, observables in itertools.product(KINDS, (places, scattered)):
        moved = kind(1, places, md.graphs.blocks(domain, 3))
        still = kind(1, domain, md.graphs.blocks(domain, 3))
        channel = moved.channel(observables)
        assert holds(moved, channel)
        plain = still.matrix((observables - origin) / unit)
        assert channel.matrix == pytest.approx(plain, abs=1e-7)


@pytest.mark.slow
def test_equal_components_anywhere_get_equal_rows_and_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_by_rate: dict[float, list[int]] = {}

    def counted(hull: md.graphs.SensitivityHull, rate: float, places: Floats, sites: Floats) -> Floats:
        rows_by_rate.setdefault(rate, []).append(len(places))
        return masses.cell_masses(hull, rate, places, sites)

    monkeypatch.setattr(knorm, "cell_masses", counted)
    domain = md.Domain.geographic_grid(columns=30, rows=30, south=40.7, north=40.9, west=-74.1, east=-73.9)
    mechanism = md.mechanisms.PlanarIsotropic(1, domain, md.graphs.blocks(domain, 3))
    channel = mechanism.channel(domain)
    assert holds(mechanism, channel)
    # A hundred blocks, whose hulls differ by rounding alone, in one computation for each rate that is tried.
    assert len({id(mechanism.hull(node)) for node in range(900)}) > 1
    assert set(map(tuple, rows_by_rate.values())) == {(900,)}
    cells = channel.matrix.reshape(30, 30, 30, 30)
    assert cells[7, 7, 5:10, 5:10] == pytest.approx(cells[16, 13, 14:19, 11:16], rel=1e-11)


def test_labels_and_constrained_graphs() -> None:
    domain = md.Domain.from_points([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0]], labels=["a", "b", "c", "d"])
    g = md.graphs.constrain(md.graphs.complete(4), [3, 0, 2])
    mechanism = md.mechanisms.PlanarIsotropic(1, domain, g)
    channel = mechanism.channel(domain)
    assert mechanism.nodes.tolist() == [0, 2, 3]
    # The place that is left out lies farther off than the hull reaches.
    assert mechanism.hull(0).norm(domain.points[1] - domain.points[2]) > 1.1
    assert mechanism.level() == pytest.approx(1)
    assert channel.secrets == ("a", "c", "d")
    assert channel.observables == domain.labels
    assert holds(mechanism, channel)
    plain = md.mechanisms.PlanarIsotropic(1, domain.points, g).channel(domain.points[:2])
    assert plain.secrets == ("0", "2", "3")
    assert plain.observables == ()
    assert md.mechanisms.PlanarIsotropic(1, domain.points, md.graphs.complete(4)).channel(domain).secrets == ()


def test_one_place_and_one_observable() -> None:
    alone = md.mechanisms.PlanarIsotropic(1, [[2.0, 3.0]], md.graphs.complete(1))
    assert alone.sample(0, 2).tolist() == [[2.0, 3.0], [2.0, 3.0]]
    assert alone.channel([[0.0, 0.0], [2.0, 2.0]]).matrix.tolist() == [[0.0, 1.0]]
    pair = md.mechanisms.Laplace(1, [[2.0, 3.0], [0.0, 1.0]], md.graphs.complete(2))
    assert pair.channel([[9.0, 9.0]]).matrix.tolist() == [[1.0], [1.0]]


def test_the_hull_has_the_smaller_volume_and_in_the_plane_the_smaller_error() -> None:
    """Errata, PGLP 10: the cross-polytope contains the hull."""
    rng = np.random.default_rng(6)
    for case in range(6):
        points = rng.normal(size=(5, 2)) * [1.0, 10.0 ** -(case % 3)]
        g = md.graphs.line(5) if case % 2 else md.graphs.complete(5)
        isotropic, laplace = md.mechanisms.PlanarIsotropic(1, points, g), md.mechanisms.Laplace(1, points, g)
        assert isotropic.hull(0).volume <= laplace.hull(0).volume * (1 + 1e-9)
        assert laplace.hull(0).norm(isotropic.hull(0).vertices).max() <= 1 + 1e-9
        errors = [np.linalg.norm(m.sample(0, 10_000, 1) - points[0], axis=1).mean() for m in (isotropic, laplace)]
        assert errors[0] < errors[1]


def test_sizes_and_seeds() -> None:
    mechanism = md.mechanisms.PlanarIsotropic(1, TRIANGLE, md.graphs.complete(3))
    assert mechanism.sample(0).shape == (1, 2)
    assert mechanism.sample(0, 0).shape == (0, 2)
    assert mechanism.sample(0, (4, 3), 1).shape == (4, 3, 2)
    assert (mechanism.sample(0, 5, 3) == mechanism.sample(0, 5, np.random.default_rng(3))).all()
    assert (mechanism.sample(0, 5) != mechanism.sample(0, 5)).any()
    assert repr(mechanism) == "PlanarIsotropic(epsilon=1, 3 nodes, 3 edges)"
    assert mechanism.density(np.zeros((2, 5, 2)), 0).shape == (2, 5)
    assert mechanism.likelihood(np.zeros((4, 2))).shape == (4, 3)
    with pytest.raises(InputError, match="z: holds"):
        mechanism.likelihood("here")


def test_the_least_epsilon_of_a_channel() -> None:
    least = md.mechanisms.PlanarIsotropic("2e-12", TRIANGLE, md.graphs.complete(3))
    assert holds(least, least.channel(TRIANGLE))
