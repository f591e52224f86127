"""Wrong bounds of pairs: each mistake is refused where it is, with something to go on."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from refusals import Row, assert_closed, each

import mechdesign as md
from mechdesign import leakage
from mechdesign.base._names import Named
from mechdesign.errors import CorrelationWarning
from mechdesign.leakage import Candidates, LossFunction, OpenChain, Varying
from mechdesign.leakage._bounds import pairs
from mechdesign.leakage._recursion import windows

E = np.array([[0.0, 1.0], [0.5, 0.0]])
THREE = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
MILD = [[0.8, 0.2], [0.2, 0.8]]
OTHER = [[0.5, 0.25, 0.25]] * 3
METRIC = md.MetricPrivacy(1, THREE)
FLOOR = md.DistortionPrivacy("0.1", THREE)

WRONG: dict[str, tuple[Any, str, str]] = {
    "not square": ([[0, 1]], "", "is not a square matrix"),
    "empty": (np.zeros((0, 0)), "", "is not a square matrix"),
    "negative": ([[0, -1], [1, 0]], "[0,1]", "a number >= 0"),
    "minus infinity": ([[0, 1], [-math.inf, 0]], "[1,0]", "a number >= 0"),
    "not a number": ([[0, math.nan], [1, 0]], "[0,1]", "a number >= 0"),
    "minus a tiny fraction": ([[0, Fraction(-1, 10**350)], [1, 0]], "[0,1]", "a number >= 0"),
    "minus a huge integer": ([[0, -(10**350)], [1, 0]], "[0,1]", "a number >= 0"),
    "too large": ([[0, 1], [1e301, 0]], "[1,0]", "at most 1e+300 or infinity"),
    "a diagonal of 1": ([[0, 1], [1, 1]], "[1,1]", "set the diagonal to 0"),
    "an infinite diagonal": ([[math.inf, 1], [1, 0]], "[0,0]", "set the diagonal to 0"),
    "texts": ([["0", "1"], ["1", "0"]], "", ""),
    "complex": ([[0, 1j], [1, 0]], "", ""),
    "masked": (np.ma.masked_array(E), "", "masked array"),
}


def sources() -> list[Row]:
    """Return what `pairs` refuses."""
    near = md.MetricPrivacy(1, THREE[:2, :2])
    return [
        *((name, lambda given=given: pairs(given), f"bounds{place}", says)
          for name, (given, place, says) in WRONG.items()),
        ("a vector", lambda: pairs([0, 1]), "bounds"),
        ("ragged", lambda: pairs([[0, 1], [1]]), "bounds"),
        ("a number", lambda: pairs(1.0), "bounds"),
        ("None", lambda: pairs(None), "bounds"),
        ("several matrices", lambda: pairs([E, E]), "bounds"),
        ("probabilities", lambda: pairs([[0.75, 0.25], [0.25, 0.75]]), "bounds", "ive md.Channel.from_matrix"),
        ("wide probabilities", lambda: pairs([[0.5, 0.25, 0.25]] * 2), "bounds", "ive md.Channel.from_matrix"),
        ("a chain", lambda: pairs(md.MarkovChain([[0, 1], [1, 0]])), "bounds", "hains are correlations"),
        ("an open chain", lambda: pairs(OpenChain([[0, 1], [0, 0]])), "bounds", "hains are correlations"),
        ("a graph", lambda: pairs(nx.path_graph(3)), "bounds", "md.GraphPrivacy(epsilon, graph)"),
        ("a problem", lambda: pairs(md.Problem([1 / 3] * 3, THREE, [METRIC])), "bounds", "problem.requirements"),
        ("a floor", lambda: pairs(FLOOR), "bounds", "bounds no pairs of secrets"),
        ("a floor among others", lambda: pairs([METRIC, FLOOR]), "bounds[1]", "eave it out"),
        ("other secrets", lambda: pairs([METRIC, near]), "bounds[1]", "3, as in bounds[0]"),
        ("a number among requirements", lambda: pairs([METRIC, 1]), "bounds[1]", "a requirement"),
        ("a channel among them", lambda: pairs([METRIC, md.Channel([[2**62]])]), "bounds[1]", "a requirement"),
        ("no path", lambda: pairs(""), "path"),
    ]  # fmt: skip


def starts() -> list[Row]:
    """Return what `Varying.from_start` refuses."""
    tiny = [[1, 1e-200, 0], [0, 1, 1e-200], [0, 0, 1]]

    def start(chain: Any = MILD, initial: Any = (0.5, 0.5), steps: Any = 2) -> Varying:
        return Varying.from_start(chain, initial, steps)

    return [
        *each("steps", (0, -1, 1.5, None), lambda steps: start(steps=steps), "steps"),
        ("a law of three states", lambda: start(initial=[0.5, 0.25, 0.25]), "initial", "2 probabilities"),
        ("a law that is none", lambda: start(initial=[0.5, 0.4]), "initial", "does not sum to 1"),
        ("a negative law", lambda: start(initial=[1.5, -0.5]), "initial"),
        ("rows that are none", lambda: start([[0.5, 0.4], [0.5, 0.5]]), "chain[0]", "does not sum to 1"),
        ("an unknown row", lambda: start(OpenChain([[0.5, 0.5], [0, 0]])), "chain[1]", "row of zeros"),
        ("a loss function", lambda: start(LossFunction(MILD)), "chain"),
        ("a varying one", lambda: start(Varying([MILD])), "chain"),
        ("too improbable", lambda: start(tiny, [1, 0, 0]), "chain[1,2]", "too improbable at step 1"),
        ("a step too many", lambda: leakage.temporal([0.1] * 4, start()), "backward", ""),
        ("for ever", lambda: leakage.supremum(0.1, start()), "backward", "changes with time"),
    ]  # fmt: skip


def numbers_only() -> list[Row]:
    """Return what takes numbers, and is given bounds of pairs."""
    uses: dict[str, tuple[Callable[[Any], object], str]] = {
        "window": (lambda given: leakage.window(given, 0, 1, MILD), "epsilons"),
        "windows": (lambda given: windows(given, 1, MILD), "epsilons"),
        "users": (lambda given: leakage.users(given, [leakage.User(MILD)]), "epsilons"),
        "a user": (lambda given: leakage.users(None, [leakage.User(MILD, epsilons=given)]), "users[0].epsilons"),
    }
    ledger = md.Ledger()

    def series(**changes: Any) -> object:
        return ledger.add_series(**{"alpha": 1, "backward": MILD, "forward": None, "history": "others", **changes})

    return [
        *((name, lambda use=use: use([E, E]), path, "a budget is a number; leakage.temporal takes bounds of pairs")
          for name, (use, path) in uses.items()),
        *((f"{name}, mixed", lambda use=use: use([E, 0.1]), path) for name, (use, path) in uses.items()),
        ("accountant", lambda: leakage.Accountant(E, MILD), "alpha"),
        ("a release", lambda: leakage.Accountant(1.0, MILD).release(E), "epsilon"),
        ("a preview", lambda: leakage.Accountant(1.0, MILD).preview(E), "epsilon"),
        ("a constant budget", lambda: leakage.constant_budget(E, MILD), "alpha"),
        ("allocated budgets", lambda: leakage.allocate_budget(E, 3, MILD), "alpha"),
        ("best budgets", lambda: leakage.best_budgets(E, [([0, 1], [1, 0])], MILD), "alpha"),
        ("a ledger", lambda: md.Ledger(E), "epsilon"),
        ("spending", lambda: ledger.spend("answers", "people", epsilon=E), "epsilon"),
        ("a series", lambda: series(alpha=E), "alpha"),
        ("a plan", lambda: series(plan=[E, E]), "plan[0]"),
        ("an equal plan", lambda: series(plan=("equal", E)), "plan[1]"),
        ("a loss at infinity", lambda: LossFunction(MILD).supremum(E), "epsilon"),
    ]  # fmt: skip


def releases() -> list[Row]:
    """Return wrong budgets of releases, and correlations and edges that do not fit them."""
    lines = LossFunction.from_lines(2, "", list(LossFunction(MILD).lines))
    places, others = (["home", second] for second in ("work", "away"))
    named, elsewhere = Named(MILD, places, places), Named(E, others, others)
    path, triple = nx.path_graph(2), nx.path_graph(3)
    problem, policy = md.Problem([1 / 3] * 3, THREE, [METRIC]), md.GraphPrivacy(1, triple)
    channel = md.Channel.from_matrix(np.eye(2))
    rows: list[Row] = []
    for use in (leakage.backward, leakage.forward, leakage.temporal):
        name, where = use.__name__, "forward" if use is leakage.forward else "backward"
        for wrong, (given, place, says) in WRONG.items():
            rows.append((f"{name}, {wrong}", lambda use=use, given=given: use([E, given], MILD), "epsilons", says))
            if place:
                rows[-1] = (*rows[-1][:2], f"epsilons[1]{place}", says)
        rows += [
            (f"{name}, a matrix", lambda use=use: use(E, MILD), "epsilons", "ive [E]"),
            (f"{name}, lists", lambda use=use: use(E.tolist(), MILD), "epsilons", "ive [E]"),
            (f"{name}, a number", lambda use=use: use([E, 0.1], MILD), "epsilons[1]", "a matrix"),
            (f"{name}, numbers first", lambda use=use: use([0.1, E], MILD), "epsilons[0]", "a matrix"),
            (f"{name}, sizes", lambda use=use: use([E, THREE], MILD), "epsilons[1]", "2, as in epsilons[0]"),
            (f"{name}, other states", lambda use=use: use([E, E], OTHER), where, "2, as in epsilons[0]. A chain"),
            (f"{name}, rows", lambda use=use: use([E, E], [[0.5, 0.4], [0.5, 0.5]]), f"{where}[0]", "sum to 1"),
            (f"{name}, lines", lambda use=use: use([E, E], lines), where, "without its matrix"),
            (f"{name}, lines of a step", lambda use=use: use([E, E], Varying([lines])), where, "without its matrix"),
            (f"{name}, requirements", lambda use=use: use([METRIC] * 2, OTHER), "epsilons[0]", "leakage.pairs of the"),
            (f"{name}, a channel", lambda use=use: use(channel, MILD), "epsilons", "leakage.pairs of the"),
            (f"{name}, too few", lambda use=use: use([E] * 3, Varying([MILD])), where, "2 matrices for 3 releases"),
            (f"{name}, edges", lambda use=use: use([E, E], MILD, edges=triple), "edges", "between 0 and 1"),
            (f"{name}, edges of fewer", lambda use=use: use([E, E], MILD, edges=nx.empty_graph(1)), "edges", "node 1"),
            (f"{name}, one way", lambda use=use: use([E, E], MILD, edges=nx.DiGraph([(0, 1)])), "edges", "is directed"),
            (f"{name}, a policy", lambda use=use: use([E, E], MILD, edges=policy), "edges", "a graph with 2 nodes"),
            (f"{name}, no graph", lambda use=use: use([E, E], MILD, edges=[[0, 1]]), "edges", "networkx"),
            (
                f"{name}, edges of numbers",
                lambda use=use: use([0.1, 0.1], MILD, edges=path),
                "edges",
                "for budgets that are",
            ),
        ]
    return [
        *rows,
        ("other names", lambda: leakage.backward([elsewhere] * 2, named), "epsilons[0]"),
        ("a loss of lines", lambda: lines.pairs(E), "loss", "without its matrix"),
        ("a loss of others", lambda: LossFunction(MILD).pairs(THREE), "bounds", "2, as in the matrix"),
        ("a loss of a number", lambda: LossFunction(MILD).pairs(0.1), "bounds"),
        ("a loss of a requirement", lambda: LossFunction(OTHER).pairs(METRIC), "bounds", "leakage.pairs of the"),
        ("a design", lambda: leakage.backward([E, md.design(problem)], MILD), "epsilons[1]", "leakage.pairs of the"),
    ]


def futures() -> list[Row]:
    """Return what `supremum` of a matrix and `largest_scale` refuse."""
    limit, scale = leakage.supremum, leakage.largest_scale
    varying, found = Varying([MILD]), limit(E, MILD)
    return [
        *((f"supremum, {name}", lambda given=given: limit(given, MILD), "epsilon", says)
          for name, (given, _, says) in WRONG.items() if name not in ("texts", "complex")),
        ("supremum, a list", lambda: limit([E, E], MILD), "epsilon", "of shape (n, n)"),
        ("supremum, a requirement", lambda: limit(METRIC, OTHER), "epsilon", "leakage.pairs of the"),
        ("scale, a requirement", lambda: scale(METRIC, 1, 3, OTHER), "shape", "leakage.pairs of the"),
        ("supremum, a vector", lambda: limit([0.1, 0.2], MILD), "epsilon", "of shape (n, n)"),
        *each("a reason", (2, -1, 0.5, None), lambda state: found.reason(0, state), "t", "from 0 to 1"),
        ("supremum, other states", lambda: limit(E, OTHER), "backward", "another number of states"),
        ("supremum, varying", lambda: limit(E, varying), "backward", "changes with time"),
        ("supremum, varying ahead", lambda: limit(E, None, varying), "forward", "changes with time"),
        ("supremum, candidates of others", lambda: limit(E, Candidates([MILD, OTHER])), "backward"),
        *((f"scale, {name}", lambda given=given: scale(given, 1, 3, MILD), f"shape{place}", says)
          for name, (given, place, says) in WRONG.items()),
        *((f"scale, limits {name}", lambda given=given: scale(E, given, 3, MILD), f"alpha{place}", says)
          for name, (given, place, says) in WRONG.items()),
        *each("scale, a limit", (0, -1, math.nan, math.inf, "x"), lambda alpha: scale(E, alpha, 3, MILD), "alpha"),
        *each("scale, releases", (0, 1.5, None), lambda releases: scale(E, 1, releases, MILD), "releases"),
        ("scale, other limits", lambda: scale(E, THREE, 3, MILD), "alpha", "2, as in shape"),
        ("scale, other states", lambda: scale(E, 1, 3, OTHER), "backward"),
        ("scale, too few", lambda: scale(E, 1, 3, varying), "backward", "2 matrices for 3 releases"),
        ("scale, nothing to scale", lambda: scale(np.zeros((2, 2)), 1, 3, MILD), "shape", "infinite"),
    ]  # type: ignore[list-item]  # fmt: skip


def test_a_forward_matrix_in_place_of_the_backward_one_is_told_where_both_are_given() -> None:
    turning = np.roll(np.eye(3), 1, axis=1) * 0.9 + 0.1 / 3
    with pytest.warns(CorrelationWarning, match=r"cannot both be correlations of one chain.*Varying\.from_start"):
        leakage.temporal([THREE] * 3, backward=turning, forward=turning)


@pytest.mark.parametrize("table", [sources, releases, futures, starts, numbers_only], ids=lambda table: table.__name__)
def test_each_mistake_is_refused_at_its_place(table: Callable[[], list[Row]]) -> None:
    assert_closed(table())
