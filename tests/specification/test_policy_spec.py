from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from rows import each_row
from spec_examples import BOX, GRID, LABELS, UNIFORM, assert_refused_texts

from mechdesign import specification as spec
from mechdesign.data.movement import read_plt
from mechdesign.data.trajectories import to_grid
from mechdesign.errors import InputWarning, SpecificationError
from mechdesign.graphs._builders import edge_array
from mechdesign.model._markov import MarkovChain

# The bracket is replaced by further keys, or by nothing.
KINDS = 'categories = { path = "kinds.csv", column = "kind", label = false]'
CHECKINS = 'prior = { checkins = { path = "c.csv", user = "u", latitude = "a", longitude = "o" }, smoothing = 1 }'


def read(folder=".", graph="line = true", domain=LABELS, prior=UNIFORM, rest="", more=""):
    tables = (
        f'{{ kind = "graph", epsilon = 1, {graph} }}'
        if graph
        else '{ kind = "distortion", minimum = 0, distance = "hamming" }'
    )
    text = f'{domain}\n{prior}\ncost.distance = "hamming"\nprivacy = [{tables}{more}]\n{rest}'
    return spec.parse(text, folder)


@pytest.fixture
def folder(tmp_path):
    texts = {
        "p.csv": "0,.5,.5\n1,0,0\n0,1,0\n",
        "kinds.csv": "kind,area\npark,1\nshop,1\npark,2\npark,1\n,1\nshop,1\n",
        "three.csv": "kind\na\nb\nc\n",
        "wide.csv": "1,0\n0,1\n",
        "sums.csv": "1,1,0\n0,1,0\n0,0,1\n",
        # One user visits cells 0, 1, 0, 3 in order; another user visits cell 2 only.
        "c.csv": "u,a,o\n1,40.05,-74.15\n1,40.05,-74.05\n1,40.05,-74.15\n1,40.15,-74.05\n2,40.15,-74.15\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def edges(graph):
    return [tuple(edge) for edge in edge_array(graph).tolist()]


def failure(make):
    with pytest.raises(SpecificationError) as raised:
        make()
    return raised.value


@each_row(
    ("keys", "domain", "expected"),
    [
        ("complete = true", LABELS, [(0, 1), (0, 2), (1, 2)]),
        ("line = true", LABELS, [(0, 1), (1, 2)]),
        ("blocks = 2", GRID, [(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (2, 5), (3, 4)]),
        ("blocks = [3, 1]", GRID, [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]),
        ('categories = ["x", "", "x", "y", "", "y"]', GRID, [(0, 2), (3, 5)]),
        (KINDS.replace("]", " }"), GRID, [(0, 2), (0, 3), (1, 5), (2, 3)]),
        (KINDS.replace("]", ', region = "area" }'), GRID, [(0, 3), (1, 5)]),
        (KINDS.replace("]", ", region = [1, 2] }"), GRID, [(0, 3)]),
        (KINDS.replace("]", ", region = 2 }"), GRID, [(0, 3)]),
        ('transitions = { path = "p.csv" }', LABELS, [(1, 2)]),
        ("transitions = { neighbours = 4 }", "domain.grid = { columns = 3, rows = 1, width = 3, height = 1 }",
         [(0, 1), (0, 2), (1, 2)]),
    ],
)  # fmt: skip
def test_builders(folder, keys, domain, expected):
    found = read(folder, keys, domain).policy
    assert edges(found.graph) == expected
    assert found.graph.number_of_nodes() == 6 if domain is GRID else 3
    assert edges(read(folder, keys, domain).problem().requirements[0].graph) == expected


def test_transitions_from_the_data_of_the_prior(folder):
    # Steps lead from 0 to 1 and 3, and from 1 to 0; no step leaves 2 or 3.
    assert edges(read(folder, "transitions = { estimated = true }", BOX, CHECKINS).policy.graph) == [(1, 3)]
    named = 'transitions = { checkins = { path = "c.csv", user = "u", latitude = "a", longitude = "o", only = 2 } }'
    with pytest.warns(InputWarning, match="4 secrets has no edge: no state has transitions to two different states"):
        assert edges(read(folder, named, BOX).policy.graph) == []


def test_several_tables_are_one_policy():
    other = ', { kind = "graph", epsilon = 1, edges = [[0, 2]] }'
    floor = ', { kind = "distortion", minimum = 0, distance = "hamming" }'
    found = read(graph='edges = [["b", "a"]]', more=other + floor)
    assert edges(found.policy.graph) == [(0, 1), (0, 2)]
    assert found.policy.epsilon == Fraction(1)
    assert len(found.problem().requirements) == 3


def test_how_a_policy_is_kept():
    settings = read().policy.settings
    assert (settings.within, settings.isolated, settings.repair, settings.hull) == (
        "component", "refuse", "area", "component",
    )  # fmt: skip
    assert (settings.support, settings.delta) == (None, None)
    text = 'policy = { within = "map", isolated = "hull", repair = "nearest", hull = "graph", support = ["c", 0, "a"] }'
    settings = read(rest=text).policy.settings
    assert (settings.within, settings.isolated, settings.repair, settings.hull) == ("map", "hull", "nearest", "graph")
    assert settings.support == [0, 2]
    assert settings.repaired == "disconnected"
    assert read(rest="policy.repaired = 'all'").policy.settings.repaired == "all"
    assert read(rest="policy.delta = 0.1").policy.settings.delta == Fraction(1, 10)


def test_how_a_trace_is_released(folder):
    found = read(folder, rest='release.transition = { path = "p.csv" }').release_settings
    assert found.transition.matrix.tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 1, 0]]
    assert found.initial.probabilities.tolist() == [1 / 3] * 3
    assert (found.table.mechanism, found.table.snap, found.table.seed) == ("planar-isotropic", None, None)
    assert found.notes == ()
    text = (
        'release = { mechanism = "lp", transition = { path = "p.csv" }, initial = { counts = [0, 1, 3] }, snap = true'
    )
    found = read(folder, rest=text + ", seed = 7 }").release_settings
    assert found.initial.probabilities.tolist() == [0, 0.25, 0.75]
    assert (found.table.mechanism, found.table.snap, found.table.seed) == ("lp", True, 7)


def test_chains_from_data(folder):
    found = read(folder, domain=BOX, prior=CHECKINS, rest="release.transition = { estimated = true, smoothing = 1 }")
    expected = MarkovChain.from_traces([[0, 1, 0, 3], [2]], 4, 1.0)
    assert found.release_settings.transition.matrix.tolist() == expected.matrix.tolist()
    steps, order = found.release_settings.notes
    assert steps == "release.transition: 3 steps of 2 user(s) counted"
    assert order == "release.transition: no times are read: points are in the order of the file"
    named = CHECKINS.replace("prior", "release.transition")
    assert read(folder, domain=BOX, rest=named).release_settings.transition.matrix.tolist() == expected.matrix.tolist()


def test_a_walk_over_a_grid():
    chain = read(domain=GRID, rest="release.transition = { neighbours = 4 }").release_settings.transition
    assert chain.matrix[0].tolist() == [1 / 3, 1 / 3, 0, 1 / 3, 0, 0]
    chain = read(domain=GRID, rest="release.transition = { neighbours = 8 }").release_settings.transition
    assert chain.matrix[1].tolist() == [1 / 6] * 6


@pytest.mark.long
@pytest.mark.slow
def test_geolife_transitions(data_folder):
    box = "domain.grid = { columns = 8, rows = 8, south = 39.8, north = 40.1, west = 116.2, east = 116.5 }"
    prior = 'prior = { plt = { path = "geolife_trackintel/geolife_long_10_MB", only = "001" }, smoothing = 0.01 }'
    rest = "release.transition = { estimated = true, smoothing = 0.01 }"
    found = read(data_folder, "transitions = { estimated = true }", box, prior, rest)
    traces = [trace for trace in read_plt(data_folder / "geolife_trackintel/geolife_long_10_MB") if trace.user == "001"]
    visits = to_grid(traces, found.problem().secrets)
    steps = np.zeros((64, 64))
    for cells in visits.cells:
        np.add.at(steps, (cells[:-1], cells[1:]), 1)
    expected = nx.empty_graph(64)
    for row in steps:
        expected.add_edges_from((i, j) for i in np.flatnonzero(row) for j in np.flatnonzero(row) if i < j)
    assert edges(found.policy.graph) == edges(expected)
    assert len(edges(expected)) > 10
    chain = MarkovChain.from_traces(visits.cells, 64, 0.01)
    assert (found.release_settings.transition.matrix == chain.matrix).all()


# Each row: what is written, the path of the error, and a part of its message.
GRAPHS = [
    ("complete = false", "privacy[0].complete", "cannot be false"),
    ("complete = 1", "privacy[0].complete", "true or false"),
    ("line = false", "privacy[0].line", "cannot be false"),
    ("line = true, complete = true", "privacy[0]", "has complete and line, which exclude each other"),
    ("complete = true, distance = 'hamming'", "privacy[0].distance", "cannot be combined with complete"),
    ("blocks = 3", "privacy[0].blocks", "is not a grid"),
    ("categories = ['x']", "privacy[0].categories", "must be 3, in order"),
    ("categories = [1, 2, 3]", "privacy[0].categories[0]", "a string"),
    ("categories = { path = 'none.csv', column = 'kind' }", "privacy[0].categories.path", "opened"),
    ("categories = { path = 'three.csv', column = 'sort' }", "privacy[0].categories", "no column 'sort'"),
    ("categories = { path = 'three.csv' }", "privacy[0].categories.column", "is missing"),
    (
        "categories = { path = 'three.csv', column = 'kind', region = 2 }",
        "privacy[0].categories.region",
        "is not a grid",
    ),
    ("transitions = {}", "privacy[0].transitions", "exactly one of path"),
    ("transitions = { path = 'none.csv' }", "privacy[0].transitions.path", "cannot be opened"),
    ("transitions = { path = 'wide.csv' }", "privacy[0].transitions.path", "3 rows and 3 columns"),
    ("transitions = { path = 'sums.csv' }", "privacy[0].transitions.path[0]", "does not sum to 1"),
    ("transitions = { path = 'p.csv', smoothing = 1 }", "privacy[0].transitions.smoothing", "Remove"),
    ("transitions = { path = 'p.csv', ends = 'any' }", "privacy[0].transitions.ends", "Remove the key"),
    ("transitions = { estimated = false }", "privacy[0].transitions.estimated", "cannot be false"),
    ("transitions = { estimated = true }", "privacy[0].transitions.estimated", "checkins or plt"),
    ("transitions = { neighbours = 8 }", "privacy[0].transitions.neighbours", "needs a grid"),
    ("edges = [[0, 1], [1, 1]]", "privacy[0].edges[1]", "is a self-loop"),
    ("edges = [[0, 'd']]", "privacy[0].edges[0][1]", "is not a secret"),
]
GRAPHS_OF_CELLS = [
    ("block = 3", "privacy[0].block", "Did you mean blocks?"),
    ("blocks = 0", "privacy[0].blocks", ">= 1"),
    ("blocks = [3, 0]", "privacy[0].blocks", ">= 1"),
    ("blocks = [3]", "privacy[0].blocks", "a list of length 2"),
    ("blocks = 'three'", "privacy[0].blocks", "integer"),
    ("categories = { path = 'three.csv', column = 'kind' }", "privacy[0].categories", "found 3; must be 6"),
    ("transitions = { neighbours = 5 }", "privacy[0].transitions.neighbours", "one of 4, 8"),
]
POLICIES = [
    ("policy.withing = 'map'", "policy.withing", "Did you mean within?"),
    ("policy.within = 'maps'", "policy.within", "Did you mean map?"),
    ("policy.isolated = 'repaired'", "policy.isolated", "Did you mean repair?"),
    ("policy.repair = 'are'", "policy.repair", "Did you mean area?"),
    ("policy.repaired = 'al'", "policy.repaired", "Did you mean all?"),
    ("policy.hull = 3", "policy.hull", "must be a string"),
    ("policy.hull = 'whole'", "policy.hull", "component, graph"),
    ("policy.support = []", "policy.support", "length >= 1"),
    ("policy.support = ['a', 'e']", "policy.support[1]", "is not a secret"),
    ("policy = { support = ['a'], delta = 0.1 }", "policy", "both support and delta"),
    ("policy.delta = 1", "policy.delta", "below 1"),
    ("policy.delta = -0.1", "policy.delta", "at least 0"),
    ("policy.delta = 'x'", "policy.delta", "found 'x'"),
]
RELEASES = [
    ("# nothing", "release.transition", "is missing"),
    ("release.transition = {}", "release.transition", "exactly one of path"),
    ("release.transition = { path = 'p.csv', smoothing = 1 }", "release.transition.smoothing", "be combined"),
    ("release.transition = { path = 'p.csv', ends = 'any' }", "release.transition.ends", "cannot be combined"),
    ("release.transition = { neighbours = 4, ends = 'stay' }", "release.transition.ends", "cannot be combined"),
    ("release.transition = { neighbours = 4, header = true }", "release.transition.header", "cannot be combined"),
    ("release.transition = { estimated = true, index = false }", "release.transition.index", "cannot be combined"),
    ("release.transition = { path = 'p.csv', numbered = true }", "release.transition.numbered", "is not a known key"),
    ("release.transition = { estimated = true, ends = 'leave' }", "release.transition.ends", "leave"),
    ("release.transition = { estimated = true, border = 'state' }", "release.transition.border", "is not a known key"),
    ("release.transition = { estimated = true, ends = 'mixture' }", "release.transition.ends", "mixture"),
    ("release.transition = { path = 'sums.csv' }", "release.transition.path[0]", "does not sum to 1"),
    ("release.transition = { estimated = true }", "release.transition.estimated", "checkins or plt"),
    ("release = { mechanism = 'lap', transition = { path = 'p.csv' } }", "release.mechanism", "Did you mean"),
    ("release = { seed = -1, transition = { path = 'p.csv' } }", "release.seed", ">= 0"),
    ("release = { snap = 'yes', transition = { path = 'p.csv' } }", "release.snap", "true or false"),
    ("release = { initial.counts = [1], transition = { path = 'p.csv' } }", "release.initial.counts", "must be 3"),
    ("release.initials = 3", "release.initials", "Did you mean initial?"),
]


def test_wrong_graphs_are_refused(folder):
    for table, domain in ((GRAPHS, LABELS), (GRAPHS_OF_CELLS, GRID)):
        assert_refused_texts(
            table, lambda text, folder, domain=domain: read(folder, text.replace("'", '"'), domain).problem(), folder
        )


def test_wrong_policies_and_releases_are_refused(folder):
    assert_refused_texts(POLICIES, lambda text, folder: read(rest=text).policy)
    assert_refused_texts(RELEASES, lambda text, folder: read(folder, rest=text).release_settings, folder)


def test_a_state_that_nobody_left_stays_if_that_is_stated(folder):
    rest = "release.transition = { estimated = true, ends = 'stay' }"
    settings = read(folder, domain=BOX, prior=CHECKINS, rest=rest).release_settings
    assert settings.transition.matrix.tolist() == [[0, 0.5, 0, 0.5], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert any("observed for 2 of 4 rows: the chain stays there" in note for note in settings.notes)
    for ends in ("", ", ends = 'any'"):
        rest = f"release.transition = {{ estimated = true{ends} }}"
        error = failure(lambda rest=rest: read(folder, domain=BOX, prior=CHECKINS, rest=rest).release_settings)
        assert error.path == "release.transition.estimated"
        assert "no trace leaves 2 of 4 states" in error.problem
        assert 'ends="stay"' in error.remedy
    # The same holds for a matrix in a file.
    (folder / "open.csv").write_text("0,0.5,0,0.5\n1,0,0,0\n0,0,0,0\n0,0,0,0\n")
    error = failure(lambda: read(folder, domain=BOX, rest="release.transition.path = 'open.csv'").release_settings)
    assert error.path == "release.transition.path[2]"
    assert 'ends = "stay"' in error.remedy


def test_a_chain_with_names_is_taken_in_the_order_of_the_states(folder):
    rest = "release.transition = { path = 'named.csv', header = true, index = true }"
    (folder / "named.csv").write_text(",2,0,1\n2,0,0.25,0.75\n0,0.5,0,0.5\n1,1,0,0\n")
    chain = read(folder, rest=rest).release_settings.transition
    assert chain.matrix.tolist() == [[0, 0.5, 0.5], [0, 0, 1], [0.25, 0.75, 0]]
    for text, more in (
        (",2,0,9\n2,0,0.25,0.75\n0,0.5,0,0.5\n1,1,0,0\n", rest),
        (",2,0,1\n2,0,0.25,0.75\n", rest.split(",")[0] + " }"),
    ):
        (folder / "named.csv").write_text(text)
        error = failure(lambda more=more: read(folder, rest=more).release_settings)
        assert error.path.startswith("release.transition"), error
    assert "header = true" in error.remedy


def test_policies_need_a_graph_of_one_epsilon():
    error = failure(lambda: read(more=', { kind = "graph", epsilon = 0.5, complete = true }').policy)
    assert (error.path, error.value) == ("privacy[1].epsilon", "0.5")
    error = failure(lambda: read(graph="", rest='policy.within = "map"'))
    assert error.path == "policy"
    graphless = LABELS + "\n" + UNIFORM + '\ncost.distance = "hamming"\nprivacy = [{ kind = "metric", epsilon = 1, '
    error = failure(lambda: spec.parse(graphless + 'distance = "hamming" }]').policy)
    assert (error.path, 'kind = "graph"' in str(error)) == ("privacy", True)


LEDGER = 'ledger = { path = "l.json", epsilon = 1 }\n'
CHAIN = 'release.transition = { path = "p.csv" }\n'


def test_a_ledger_goes_with_the_release_of_a_trace(folder):
    assert read(folder, rest=LEDGER + CHAIN).document.ledger is not None
    assert not (folder / "l.json").exists()


@each_row(
    ("graph", "rest", "more", "found"),
    [
        ("line = true", "", "", "no [release]"),
        ("line = true", 'policy.isolated = "release"\n', "", "no [release]"),
        ("line = true", CHAIN, ', { kind = "distortion", minimum = 0, distance = "hamming" }', "distortion"),
        ("", CHAIN, "", "distortion"),
        ("", "", ', { kind = "metric", epsilon = 1, distance = "hamming" }', "no [release]"),
    ],
)
def test_a_ledger_that_nothing_charges_is_refused(folder, graph, rest, more, found):
    error = failure(lambda: read(folder, graph=graph, rest=LEDGER + rest, more=more))
    assert error.path == "ledger"
    assert "is never charged" in str(error)
    assert found in str(error)
    assert "Ledger.spend" in str(error)
