"""Graphs that users give: what is refused at every door, and remedies that are right when they are followed."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import networkx
import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.graphs._builders import components
from mechdesign.traces._composition import compose_graphs

TOWN = md.Domain.from_labels(["home", "work", "gym", "pub"])
MEANT = {(2, 3), (0, 2)}
CHAIN = np.full((4, 4), 0.25)

# What a door does with a graph: all states must be nodes, or a constrained graph may lack some.
WHOLE: dict[str, Callable[[Any], object]] = {
    "requirement": lambda graph: md.GraphPrivacy(1, graph),
    "shortest path": lambda graph: md.distances.shortest_path(graph),
    "trace": lambda graph: md.traces.Trace(TOWN, graph, 1, CHAIN, CHAIN[0], "exponential", cost=1 - CHAIN, repair=None),
}
PART: dict[str, Callable[[Any], object]] = {
    "exposed": lambda graph: md.graphs.exposed(TOWN, graph),
    "problem": lambda graph: md.graphs.problem(TOWN, graph=graph, epsilon=1, cost=1 - np.eye(4), isolated="release"),
    "K-norm noise": lambda graph: md.mechanisms.PlanarIsotropic(1, [[0.0], [1.0], [2.0], [3.0]], graph),
}
OTHER: dict[str, Callable[[Any], object]] = {
    "exponential": lambda graph: md.mechanisms.Exponential(1, 1 - np.eye(len(graph)), graph),
    "hops": lambda graph: md.mechanisms.Exponential.of_graph(1, graph),
    "components": components,
    "union": lambda graph: md.graphs.union(graph),
    "composition": lambda graph: compose_graphs([1], [graph]),
    "audit": lambda graph: md.audit(np.full((4, 4), 0.25), graph=graph),
}
DOORS = {**WHOLE, **PART, **OTHER}


def named(names: list[Any]) -> nx.Graph:
    return nx.Graph([(names[2], names[3]), (names[0], names[2])])


def complete(names: list[Any], kind: type[nx.Graph] = nx.Graph) -> nx.Graph:
    graph = kind(named(names))
    graph.add_nodes_from(names)
    return graph


def refusal(door: Callable[[Any], object], graph: nx.Graph) -> InputError | None:
    try:
        door(graph)
    except InputError as error:
        return error
    return None


def test_every_door_refuses_nodes_that_are_no_positions() -> None:
    for name, door in DOORS.items():
        for nodes in (
            *([False, True, 2, 3], [0.0, 1.0, 2.0, 3.0], [np.float64(0), 1, 2, 3], [np.False_, 1, 2, 3]),
            *(["home", "work", "gym", "pub"], [(0, 0), (0, 1), (1, 0), (1, 1)], [-1, 0, 1, 2]),
        ):
            found = refusal(door, complete(nodes))
            assert found is not None, (name, nodes)
            assert found.bound, (name, nodes)
            assert found.remedy, (name, nodes)
            assert "np." not in str(found), (name, nodes)
        assert refusal(door, complete([np.int64(0), 1, 2, 3])) is None, name


def test_every_door_refuses_other_kinds_of_graphs_with_a_remedy_that_it_takes() -> None:
    for name, door in DOORS.items():
        if name == "shortest path":
            continue
        for kind in (nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
            given = complete([0, 1, 2, 3], kind)
            assert follow(door, given) == MEANT, (name, kind)
        looped = complete([0, 1, 2, 3])
        looped.add_edge(1, 1)
        found = refusal(door, looped)
        assert found is not None, name
        exec(re.findall(r"graph\.remove_edges_from\(.*\)\)", found.remedy)[0], {"graph": looped, "networkx": networkx})
        assert refusal(door, looped) is None, name


def test_lengths_of_paths_take_directions_parallel_edges_and_loops() -> None:
    graph = nx.MultiDiGraph([(0, 1, {"x": 3}), (0, 1, {"x": 2}), (1, 1, {"x": 1})])
    assert md.distances.shortest_path(graph, "x").tolist() == [[0, 2], [np.inf, 0]]


def follow(door: Callable[[Any], object], graph: nx.Graph, case: str = "", **known: object) -> set[tuple[int, int]]:
    """Do what the messages say until the door takes the graph; return its edges."""
    for _ in range(3):
        found = refusal(door, graph)
        if found is None:
            return {tuple(sorted(map(int, edge))) for edge in graph.edges()}
        remedy = next((part for part in found.remedy.split("; ") if case in part), found.remedy)
        made = re.search(r"networkx\.(?:compose|relabel_nodes|Graph)\(.*?\)(?=;|$)|graph\.to_undirected\(\)", remedy)
        assert made, str(found)
        graph = eval(made[0], {"networkx": networkx, "graph": graph, "n": 4, **known})
    raise AssertionError(f"still refused: {graph.nodes}")


def test_what_a_message_says_protects_the_pairs_that_were_meant() -> None:
    ids = md.Domain.from_labels(["4711", "12", "99", "5"])
    digits = md.Domain.from_labels(["3", "1", "0", "2"])
    for name, door in {**WHOLE, **PART}.items():
        for lacking in (False, True):
            make = named if lacking else complete
            rows: dict[str, tuple[list[Any], md.Domain, str]] = {
                "names": (list(TOWN.labels), TOWN, ""),
                "digits as texts": (list(digits.labels), digits, ""),
                "numbers of records": ([4711, 12, 99, 5], ids, "labels"),
                "floats": ([0.0, 1.0, 2.0, 3.0], TOWN, ""),
                "truth values": ([False, True, 2, 3], TOWN, ""),
                "counted from 1": ([1, 2, 3, 4], TOWN, "from 1"),
            }
            for case, (nodes, domain, part) in rows.items():
                assert follow(door, make(nodes), part, domain=domain) == MEANT, (name, case, lacking)
        if name in WHOLE:
            assert follow(door, named([0, 1, 2, 3]), domain=TOWN) == MEANT, name


def test_a_figure_refuses_what_other_doors_refuse() -> None:
    for wrong in ([(True, 2)], [(0.0, 2.0)], [("home", "gym")], [(0, 4)], [(1, 1)]):
        with pytest.raises(InputError, match=r"^edges: has a"):
            md.figures.graph(md.Domain.grid(2, 2, 2.0, 2.0), nx.Graph(wrong))


def test_names_that_are_no_labels_are_not_renumbered_in_silence() -> None:
    found = refusal(WHOLE["requirement"], named(["a", "b", "c", "d"]))
    assert found is not None
    with pytest.raises(ValueError, match="not in tuple"):
        eval(found.remedy.split(": ", 1)[1], {"networkx": networkx, "graph": named(list("abcd")), "domain": TOWN})


def test_a_finite_mechanism_has_a_node_for_each_row() -> None:
    with pytest.raises(InputError, match=r"^graph: does not match the distance; found 3; must be 2 nodes"):
        md.mechanisms.Exponential(1, 1 - np.eye(2), nx.path_graph(3))


@pytest.mark.skipif(
    sys.version_info >= (3, 12) or not hasattr(os, "fork"), reason="the properties of networkx have no lock, or no fork"
)
def test_a_fork_while_a_thread_reads_edges_leaves_no_lock_behind() -> None:
    lock = vars(vars(nx.Graph)["edges"])["lock"]
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)
        try:
            md.GraphPrivacy(1, nx.path_graph(3))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert status == 0
