import math
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.certify._certificate import certify
from mechdesign.errors import CertificateError, InfeasibleError, InputError, RevealedWarning
from mechdesign.graphs._builders import components
from mechdesign.model._problem import largest_distortion


def grid(columns, rows):
    return md.Domain.grid(columns=columns, rows=rows, width=float(columns), height=float(rows))


def cost_of(channel, prior, cost):
    return float(prior @ (channel.matrix * cost).sum(axis=1))


def test_a_clique_of_nine_cells_at_one():
    """1.05 cells on average, where P-PIM's output errs by 4.6, and by 1.34 when it is snapped to the block."""
    domain = grid(3, 3)
    graph = md.graphs.blocks(domain, 3)
    made = md.design(md.graphs.problem(domain, graph=graph, epsilon=1))
    assert made.certificate.expected_cost == pytest.approx(1.0495268546209, rel=1e-12)
    assert made.certificate.epsilon[0] == pytest.approx(1, rel=1e-12)
    assert made.certificate.forbidden == 0
    snapped = md.mechanisms.PlanarIsotropic(1, domain, graph).channel(domain)
    cost = md.distances.euclidean(domain)
    assert cost_of(snapped, np.full(9, 1 / 9), cost) == pytest.approx(1.34, abs=0.01)


@pytest.mark.parametrize("epsilon", ["0.1", "0.7", 2])
def test_a_line_has_the_geometric_mechanism_remapped(epsilon):
    """Ghosh, Roughgarden and Sundararajan 2009: truncated geometric noise, each output replaced by what is then best.

    1.200 for n = 5 and ε = 0.1, against 1.728 without the remap.
    """
    n, alpha = 5, math.exp(-float(epsilon))
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    edge = np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), 1, 1 - alpha)
    geometric = alpha**distance * edge / (1 + alpha)
    expected = (geometric.T @ distance).min(axis=1).sum() / n
    made = md.design(md.graphs.problem(np.arange(n)[:, None], graph=md.graphs.line(n), epsilon=epsilon))
    assert made.certificate.expected_cost == pytest.approx(expected, rel=1e-12)
    if epsilon == "0.1":
        assert expected == pytest.approx(1.2, abs=1e-3)
        assert (geometric * distance).sum() / n == pytest.approx(1.728, abs=1e-3)


@pytest.mark.parametrize(("n", "epsilon"), [(2, 1), (5, "0.3"), (7, 3)])
def test_randomised_response_on_complete_components(n, epsilon):
    """Two components of n labels each, Hamming cost: (n − 1) / (n − 1 + e^ε)."""
    domain = md.Domain.from_labels([f"{city}-{shop}" for city in "ab" for shop in range(n)])
    graph = md.graphs.categories([name[0] for name in domain.labels])
    made = md.design(md.graphs.problem(domain, graph=graph, epsilon=epsilon, cost=md.distances.hamming(domain)))
    assert made.certificate.expected_cost == pytest.approx((n - 1) / (n - 1 + math.exp(float(epsilon))), rel=1e-12)
    assert made.certificate.provenance["programs"] == 1
    assert made.channel.secrets == domain.labels
    # The other city is never named.
    assert (made.channel.numerators[:n, n:] == 0).all()


@st.composite
def policies(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns, rows = draw(st.sampled_from([(4, 2), (3, 3), (5, 2), (4, 3)]))
    domain = grid(columns, rows)
    n = columns * rows
    kind = draw(st.sampled_from(["blocks", "categories", "threshold", "random"]))
    if kind == "blocks":
        graph = md.graphs.blocks(domain, 2)
    elif kind == "categories":
        graph = md.graphs.categories(random.integers(0, 3, n).tolist())
    elif kind == "threshold":
        graph = md.graphs.threshold(domain, draw(st.sampled_from([1, 1.5])))
    else:
        graph = nx.empty_graph(n)
        graph.add_edges_from((s, t) for s in range(n) for t in range(s) if random.random() < 1.5 / n)
    prior = random.dirichlet(np.full(n, 0.5)) if draw(st.booleans()) else np.full(n, 1 / n)
    return domain, graph, draw(st.sampled_from([0.5, 1, 2])), prior


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@settings(max_examples=40)
@given(policies())
def test_no_mechanism_of_the_papers_is_cheaper(policy):
    """Same ε, graph, prior and observables: all cells, to which what they release is snapped."""
    domain, graph, epsilon, prior = policy
    cost = md.distances.euclidean(domain)
    best = md.design(
        md.graphs.problem(domain, graph=graph, epsilon=epsilon, prior=prior, within="map", isolated="release")
    )
    # What is asked for unless something else is.
    assert best.certificate.relative_gap <= 1e-6
    for mechanism in (
        md.mechanisms.PlanarIsotropic(epsilon, domain, graph),
        md.mechanisms.PlanarIsotropic(epsilon, domain, graph, hull="graph"),
        md.mechanisms.Laplace(epsilon, domain, graph),
    ):
        assert best.certificate.lower_bound <= cost_of(mechanism.channel(domain), prior, cost) * (1 + 1e-12)
    own = md.design(md.graphs.problem(domain, graph=graph, epsilon=epsilon, prior=prior, isolated="release"))
    assert own.certificate.relative_gap <= 1e-6
    # More answers are permitted on the map, and the component's bound is none for the map.
    assert best.certificate.lower_bound <= own.certificate.expected_cost
    component = {node: number for number, nodes in enumerate(components(graph)) for node in nodes.tolist()}
    labels = np.array([component[node] for node in range(domain.size)])
    assert (own.channel.numerators[labels[:, None] != labels] == 0).all()
    # Snapped to its own component's cells, noise still keeps the policy.
    for nodes in components(graph):
        if len(nodes) > 1:
            part = md.graphs.constrain(graph, nodes)
            snapped = md.mechanisms.PlanarIsotropic(epsilon, domain, part).channel(domain.points[nodes])
            weights, here = prior[nodes], np.ix_(nodes, nodes)
            spent = float(weights @ (own.channel.matrix[here] * cost[here]).sum(axis=1))
            assert spent <= float(weights @ (snapped.matrix * cost[here]).sum(axis=1)) + 1e-9


def test_the_map_has_better_answers_where_a_component_has_a_hole():
    """Two ends of a line, and nothing of theirs between: the middle costs the worst case less."""
    domain = md.Domain.from_points(np.array([[0.0], [1], [2], [3], [4]]))
    graph = md.graphs.from_edges(5, [(0, 4), (1, 2), (2, 3)])
    squares = (domain.points - domain.points.T) ** 2
    own, whole = (
        md.design(md.graphs.problem(domain, graph=graph, epsilon="0.1", cost=squares, within=within, objective="worst"))
        for within in ("component", "map")
    )
    assert own.certificate.worst_cost == pytest.approx(16 / (1 + math.exp(0.1)), rel=1e-9)
    assert whole.certificate.worst_cost < 5
    assert own.certificate.forbidden == 2 * 3 + 3 * 2
    assert whole.certificate.forbidden == 0


def test_equal_blocks_are_solved_once():
    domain = grid(12, 9)
    made = md.design(md.graphs.problem(domain, graph=md.graphs.blocks(domain, 3), epsilon=1))
    assert made.certificate.provenance["parts"] == 12
    assert made.certificate.provenance["programs"] == 1
    assert made.certificate.expected_cost == pytest.approx(1.0495268546209, rel=1e-12)
    prior = np.random.default_rng(1).dirichlet(np.ones(108))
    each = md.design(md.graphs.problem(domain, graph=md.graphs.blocks(domain, 3), epsilon=1, prior=prior))
    assert each.certificate.provenance["programs"] == 12
    alone = 0.0
    for nodes in components(md.graphs.blocks(domain, 3)):
        share = prior[nodes].sum()
        one = md.design(
            md.graphs.problem(domain.points[nodes], graph=md.graphs.complete(9), epsilon=1, prior=prior[nodes] / share)
        )
        alone += share * one.certificate.expected_cost
    assert each.certificate.expected_cost == pytest.approx(alone, rel=1e-12)


def test_cells_that_are_no_whole_numbers_wide_are_equal_all_the_same():
    domain = md.Domain.geographic_grid(columns=12, rows=12, south=40.7, north=40.8, west=-74.02, east=-73.92)
    made = md.design(md.graphs.problem(domain, graph=md.graphs.blocks(domain, 4), epsilon="0.5"))
    assert made.certificate.provenance["programs"] == 1
    assert made.certificate.relative_gap < 1e-9


def test_a_constrained_graph_has_a_row_for_each_of_its_nodes():
    domain = grid(4, 2)
    graph = md.graphs.constrain(md.graphs.blocks(domain, 2), [0, 1, 5, 6, 7])
    prior = np.array([0.1, 0.1, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1])
    made = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=prior))
    assert made.channel.secrets == ("0", "1", "5", "6", "7")
    assert made.channel.observables == made.channel.secrets
    assert made.problem.prior.tolist() == pytest.approx([0.2] * 5)
    assert (made.channel.numerators[:3, 3:] == 0).all()
    assert np.array_equal(made.problem.secrets.points, domain.points[[0, 1, 5, 6, 7]])
    whole = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=prior, within="map"))
    assert whole.channel.numerators.shape == (5, 8)
    assert whole.channel.observables == domain.labels
    assert whole.certificate.lower_bound <= made.certificate.expected_cost
    given = md.design(
        md.graphs.problem(domain, graph=graph, epsilon=1, prior=prior, cost=md.distances.euclidean(domain))
    )
    assert given.certificate.expected_cost == made.certificate.expected_cost
    with pytest.raises(InputError, match="zero on every node"):
        md.design(md.graphs.problem(domain, graph=graph, epsilon=1, prior=np.eye(8)[2]))


def test_other_observables_by_their_cost():
    domain = grid(2, 2)
    cost = md.distances.euclidean(domain, np.array([[1.0, 1.0], [0.5, 0.5]]))
    made = md.design(md.graphs.problem(domain, graph=md.graphs.complete(4), epsilon="0.01", cost=cost, within="map"))
    assert made.channel.numerators.shape == (4, 2)
    assert made.problem.observables is None
    assert made.certificate.expected_cost == pytest.approx(math.sqrt(0.5), abs=1e-3)


class TestNodesWithoutAnEdge:
    # 4 lies within the hull of the other edges, 5 far away.
    domain = md.Domain.from_points(np.array([[0.0, 0], [2, 0], [0, 2], [2, 2], [1, 1], [40, 1]]))
    graph = md.graphs.from_edges(6, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (1, 2)])

    def test_refused(self):
        with pytest.raises(InputError, match=r"graph: has nodes without an edge.*\[4, 5\].*repair.*release"):
            md.design(md.graphs.problem(self.domain, graph=self.graph, epsilon=1))

    def test_released_where_that_is_accepted(self):
        with pytest.warns(RevealedWarning, match=r"2 of 6 secrets \(4, 5\) have an answer that no other"):
            made = md.design(md.graphs.problem(self.domain, graph=self.graph, epsilon=1, isolated="release"))
        assert made.certificate.revealed == (4, 5)
        assert (made.channel.matrix[4:] == np.eye(6)[4:]).all()
        assert made.certificate.provenance["edges_added"] == 0

    def test_what_was_done_with_them_is_a_fact_of_the_problem(self):
        problem = md.graphs.problem(self.domain, graph=self.graph, epsilon=1, within="map", isolated="repair")
        added = problem.requirements[-1].graph.number_of_edges() - self.graph.number_of_edges()
        assert dict(problem.facts) == {"within": "map", "isolated": "repair", "edges_added": added}
        made = md.design(problem, isolated="release")
        assert problem.facts.items() <= made.certificate.provenance.items()
        assert pickle.loads(pickle.dumps(problem)).facts == problem.facts

    def test_joined_to_what_the_hull_would_hide_them_among(self):
        with pytest.raises(InputError, match=r"within the sensitivity hull.*\[5\]"):
            md.design(md.graphs.problem(self.domain, graph=self.graph, epsilon=1, isolated="hull"))
        near, graph = md.Domain.from_points(self.domain.points[:5]), md.graphs.constrain(self.graph, range(5))
        made = md.design(md.graphs.problem(near, graph=graph, epsilon=1, isolated="hull"))
        edges = set(made.problem.requirements[-1].graph.edges)
        assert edges - set(graph.edges) == {(0, 4), (1, 4), (2, 4), (3, 4)}
        assert made.certificate.provenance["edges_added"] == 4
        assert made.certificate.forbidden == 0

    def test_repaired(self):
        made = md.design(md.graphs.problem(self.domain, graph=self.graph, epsilon=1, isolated="repair"))
        found = made.problem.requirements[-1].graph
        assert min(degree for _, degree in found.degree()) > 0
        assert set(self.graph.edges) < set(found.edges)
        assert set(md.graphs.repair(self.domain, self.graph).graph.edges) <= set(found.edges)
        # The caller's graph is as it was.
        assert self.graph.number_of_edges() == 6

    def test_not_without_a_requirement(self):
        """Another requirement ties both to the rest."""
        distance = md.distances.euclidean(self.domain)
        made = md.design(
            md.graphs.problem(
                self.domain, graph=self.graph, epsilon=1, requirements=[md.MetricPrivacy("0.5", distance)]
            )
        )
        assert made.certificate.forbidden == 0
        assert len(made.certificate.epsilon) == 2

    def test_alone_in_the_world(self):
        for isolated in ("refuse", "hull", "repair"):
            with pytest.raises(InputError, match=r"graph: has a single node, which every answer reveals; found \[0\]"):
                md.design(
                    md.graphs.problem(np.zeros((1, 2)), graph=md.graphs.complete(1), epsilon=1, isolated=isolated)
                )
        with pytest.warns(RevealedWarning, match="There is a single secret, and every answer reveals it"):
            made = md.design(
                md.graphs.problem(np.zeros((1, 2)), graph=md.graphs.complete(1), epsilon=1, isolated="release")
            )
        assert made.certificate.revealed == (0,)
        assert made.channel.matrix.tolist() == [[1.0]]
        assert made.certificate.expected_cost == 0

    def test_in_one_place(self):
        """Coincident nodes cannot be told apart by any mechanism with a hull; with an edge each, here neither."""
        points = np.array([[0.0, 0], [0, 0], [5, 5], [5, 6]])
        made = md.design(md.graphs.problem(points, graph=md.graphs.from_edges(4, [(2, 3)]), epsilon=1, isolated="hull"))
        assert set(made.problem.requirements[-1].graph.edges) == {(0, 1), (2, 3)}
        assert made.certificate.holds


def test_requirements_join_components():
    domain = grid(4, 1)
    graph = md.graphs.from_edges(4, [(0, 1), (2, 3)])
    distance = np.full((4, 4), math.inf)
    np.fill_diagonal(distance, 0)
    distance[1, 2] = distance[2, 1] = 1
    made = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, requirements=[md.MetricPrivacy(2, distance)]))
    assert made.certificate.forbidden == 0
    # A path of three edges, the middle one of 2ε.
    assert made.channel.numerators.any(axis=0).sum() > 1
    assert [checked.nominal for checked in made.certificate.requirements] == ["2", "1"]


@pytest.mark.parametrize("within", ["component", "map"])
def test_floors_are_met_by_all_components_together(within):
    domain = grid(6, 2)
    graph = md.graphs.blocks(domain, 2)
    error = md.distances.euclidean(domain)
    prior = np.random.default_rng(3).dirichlet(np.ones(12))
    told = np.arange(12) % 6 // 2 if within == "component" else None
    largest = float(largest_distortion(prior, error, told))
    free = md.design(
        md.graphs.problem(domain, graph=graph, epsilon=2, prior=prior, cost=md.distances.hamming(domain), within=within)
    )
    assert md.attack.optimal(free.channel, prior, error).distortion < 0.6 * largest
    floor = md.DistortionPrivacy(round(0.7 * largest, 6), error)
    made = md.design(
        md.graphs.problem(
            domain,
            graph=graph,
            epsilon=2,
            prior=prior,
            cost=md.distances.hamming(domain),
            within=within,
            requirements=[floor],
        )
    )
    assert made.certificate.relative_gap < 1e-9
    assert made.certificate.distortion[0] >= float(floor.minimum)
    assert made.certificate.expected_cost > free.certificate.expected_cost
    said = "which of 3 sets" if within == "component" else "releasing nothing"
    above = md.DistortionPrivacy(round(largest * 1.01, 6), error)
    with pytest.raises(InfeasibleError, match=rf"requirements\[0\].minimum.*{said}.*{largest:.12g}"):
        md.design(md.graphs.problem(domain, graph=graph, epsilon=2, prior=prior, within=within, requirements=[above]))


def test_a_floor_within_the_largest_of_the_map_may_be_above_that_of_the_components():
    domain = grid(4, 1)
    graph = md.graphs.from_edges(4, [(0, 1), (2, 3)])
    floor = md.DistortionPrivacy("0.9", md.distances.euclidean(domain))
    with pytest.raises(InfeasibleError, match=r"is 0\.5 km\."):
        md.design(md.graphs.problem(domain, graph=graph, epsilon=1, requirements=[floor]))
    made = md.design(md.graphs.problem(domain, graph=graph, epsilon=1, requirements=[floor], within="map"))
    assert made.certificate.distortion[0] >= 0.9


def test_the_saved_set_says_it_all(tmp_path):
    domain = grid(6, 3)
    made = md.design(md.graphs.problem(domain, graph=md.graphs.blocks(domain, 3), epsilon="0.8", title="Two blocks"))
    md.save(made, tmp_path, report=False)
    found = md.verify(tmp_path)
    assert found.differences(made.certificate) == ()
    assert found.forbidden == 2 * 9 * 9
    assert found.provenance["within"] == "component"
    assert md.Channel.load(tmp_path).sample(0, size=100, rng=0).max() < 15


def test_a_changed_channel_fails():
    domain = grid(4, 2)
    made = md.design(md.graphs.problem(domain, graph=md.graphs.blocks(domain, 2), epsilon=1))
    evidence = made.evidence()

    def changed(row, taken, given, amount):
        numerators = made.channel.numerators.copy()
        numerators[row, taken] -= amount
        numerators[row, given] += amount
        fields = ("exponent", "prior", "cost", "objective", "requirements", "multipliers")
        return type(evidence)(numerators, *(getattr(evidence, name) for name in fields))

    certify(changed(0, 0, 1, 0)).require()
    # Across one edge: a part in a million more of the secret's own cell.
    with pytest.raises(CertificateError) as caught:
        certify(changed(0, 1, 0, int(made.channel.numerators[0, 1]) // 10**6)).require()
    assert 0 in caught.value.pair
    # To a cell of the other block, which is another component's, and so broken privacy first of all.
    with pytest.raises(CertificateError, match="observable 2"):
        certify(changed(0, 0, 2, 1)).require()


def test_wrong_input():
    rows = [
        ({"graph": nx.path_graph(5)}, "graph: has an unknown node"),
        ({"graph": nx.Graph([(0, 1), (2, 2), (2, 3)])}, "graph: has a self-loop"),
        ({"graph": nx.DiGraph([(0, 1)])}, "graph: is directed"),
        ({"graph": "line"}, "graph: is not"),
        ({"epsilon": 0}, "epsilon: must be positive"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"prior": [0.5, 0.5]}, "prior: has the wrong length"),
        ({"prior": [0, 0, 0, 0]}, "prior"),
        ({"cost": np.zeros((4, 3))}, "cost: has the wrong shape"),
        ({"cost": np.zeros((3, 4)), "within": "map"}, "cost: has the wrong shape"),
        ({"cost": np.full((4, 4), math.inf)}, r"cost\[0\]: forbids every answer"),
        ({"cost": np.full((4, 4), -1.0)}, r"cost\[0,0\]"),
        ({"within": "block"}, "within: is not known"),
        ({"isolated": "ignore"}, "isolated: is not known"),
        ({"requirements": ["privacy"]}, r"requirements\[0\]: is not a requirement"),
        ({"requirements": None}, "requirements: is not a list"),
        ({"requirements": md.GraphPrivacy(1, nx.path_graph(4))}, "requirements: is not a list"),
        ({"requirements": [md.GraphPrivacy(1, nx.path_graph(3))]}, r"requirements\[0\]: has another number"),
        ({"objective": "median"}, "objective: is not known"),
        ({"solver": "abacus"}, "solver: is not known"),
        ({"tolerance": 0}, "tolerance: must be positive"),
        ({"domain": md.Domain.from_labels(list("abcd"))}, "cost: is missing"),
    ]
    for change, path in rows:
        arguments = {"domain": grid(2, 2), "graph": md.graphs.complete(4), "epsilon": 1, **change}
        solving = {name: arguments.pop(name) for name in ("solver", "tolerance") if name in arguments}
        with pytest.raises(InputError, match=f"^{path}"):
            md.design(md.graphs.problem(**arguments), **solving)
