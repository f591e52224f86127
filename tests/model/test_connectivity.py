import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.model._components import label_components, members

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
