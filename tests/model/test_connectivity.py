import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.model._claims import label_components, members

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12)


@given(PAIRS, st.booleans())
def test_labels_are_those_of_the_components_in_order_of_their_first_nodes(pairs, strong):
    graph = nx.DiGraph(pairs)
    graph.add_nodes_from(range(8))
    found = nx.strongly_connected_components(graph) if strong else nx.weakly_connected_components(graph)
    expected = sorted(map(sorted, found))
    labels = label_components(8, pairs, strong=strong)
    assert [nodes.tolist() for nodes in members(labels)] == expected


def test_no_pairs_and_many_equal_ones():
    assert label_components(3, []).tolist() == [0, 1, 2]
    assert label_components(2, np.zeros((0, 2))).tolist() == [0, 1]
    assert label_components(2, [(0, 1)] * 256).tolist() == [0, 0]


def test_a_long_path_in_any_order_is_one_component():
    order = np.random.default_rng(1).permutation(2000)
    for path in (np.arange(2000), np.arange(2000)[::-1], order):
        assert not label_components(2000, np.column_stack((path[:-1], path[1:]))).any()


@given(PAIRS)
def test_pairs_in_both_directions_have_equal_components_strong_or_not(pairs):
    pairs = [*pairs, *(pair[::-1] for pair in pairs)]
    assert label_components(8, pairs, strong=True).tolist() == label_components(8, pairs).tolist()
