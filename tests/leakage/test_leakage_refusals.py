"""Wrong input to what computes leakage and budgets: each mistake is refused where it is, with something to go on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from refusals import Row, assert_closed, each

from mechdesign import leakage
from mechdesign import traces as tracing
from mechdesign.graphs import _builders as builders
from mechdesign.leakage import Candidates, LossFunction, OpenChain, Varying, cao2019, loss_by_programs
from mechdesign.leakage._best_budgets import best_budgets
from mechdesign.leakage._recursion import User, windows
from mechdesign.model._markov import MarkovChain, VaryingChain

MILD = [[0.8, 0.2], [0.2, 0.8]]
THREE = [[0.5, 0.25, 0.25]] * 3
ZEROS = [[0.5, 0.5], [0.0, 0.0]]
OPEN = OpenChain(ZEROS)
FALLING = (np.linspace(0.0, 2.0, 41), np.exp(-np.linspace(0.0, 4.0, 41)))
FOUR = [0.1] * 4


MATRICES: dict[str, Any] = {
    "does not sum to 1": ([[0.5, 0.4], [0.5, 0.5]], "P[0]", "normalise"),
    "negative": ([[0.5, 0.5], [1.2, -0.2]], "P[1,1]"),
    "not square": ([[0.5, 0.5]], "P", "is not a square matrix"),
    "a vector": ([0.5, 0.5], "P", "has 1 axes"),
    "not a number": ([[math.nan, 1.0], [0.5, 0.5]], "P[0,0]"),
    "texts": ([["a", "b"], ["c", "d"]], "P", "holds <"),
    "empty": (np.zeros((0, 0)), "P"),
}
UNKNOWN: dict[str, Any] = {
    "a row of zeros": (ZEROS, "P[1]", 'ends = "stay"'),
    "an open chain": (OPEN, "P[1]", "LossFunction, which reads a row of zeros as any row"),
    "sparse, zeros": (sparse.csr_array(ZEROS), "P[1]", "is a row of zeros"),
}
SPARSE: dict[str, Any] = {
    "sparse, not 1": (sparse.csr_array([[0.5, 0.5], [0.9, 0.0]]), "P[1]", "does not sum to 1"),
    "sparse, negative": (sparse.csr_array([[0.5, 0.5], [1.5, -0.5]]), "P[1,1]"),
    "sparse, no row": (sparse.csr_array((2, 2)), "P", "has no known row"),
    "zeros": (np.zeros((2, 2)), "P", "has no known row"),
    "zeros of one": ([[0.0]], "P", "has no known row"),
    "beside zeros, not 1": ([[0.5, 0.4], [0, 0]], "P[0]", "does not sum to 1"),
    "a row of little": ([[0.5, 0.5], [1e-9, 0]], "P[1]", "does not sum to 1"),
    "beside zeros, negative": ([[1.5, -0.5], [0, 0]], "P[0,1]"),
    "beside zeros, nan": ([[0.5, 0.5], [math.nan, 0]], "P[1,0]"),
}


def refused_matrices(use: Callable[[Any], object], matrices: dict[str, Any]) -> list[Row]:
    return [(name, lambda matrix=matrix: use(matrix), path, *says) for name, (matrix, path, *says) in matrices.items()]  # type: ignore[misc]


def budgets() -> list[Row]:
    alphas = (0.0, -1.0, math.nan, math.inf, "1")
    return [
        *each("constant", alphas, lambda alpha: leakage.constant_budget(alpha, MILD), "alpha"),
        *each("allocation", alphas, lambda alpha: leakage.allocate_budget(alpha, 3, MILD), "alpha"),
        ("no step", lambda: leakage.allocate_budget(1.0, 0, MILD), "steps", "is too small"),
        ("many steps", lambda: leakage.allocate_budget(1.0, 10**20, MILD), "steps", "an integer from 1 to 100000"),
        ("varying", lambda: leakage.allocate_budget(1.0, 3, Varying([MILD, MILD])), "backward", "Give Candidates"),
        ("algorithm 4, negative", lambda: cao2019.algorithm4(MILD, -1.0), "largest"),
        ("algorithm 4, nan", lambda: cao2019.algorithm4(MILD, math.nan), "largest"),
        ("algorithm 6, negative", lambda: cao2019.algorithm6(MILD, -1.0), "epsilon"),
        ("algorithm 6, nan", lambda: cao2019.algorithm6(MILD, math.nan), "epsilon"),
        ("algorithm 7", lambda: cao2019.algorithm7(0.0, MILD, MILD), "alpha", "leaves no budget"),
        ("algorithm 8", lambda: cao2019.algorithm8(-1.0, 3, MILD, MILD), "alpha", "leaves no budget"),
        ("algorithm 8, no step", lambda: cao2019.algorithm8(1.0, 0, MILD, MILD), "steps"),
    ]


def budgets_of_least_cost() -> list[Row]:
    costs: dict[str, Any] = {
        "rising": ([FALLING, ([0, 1], [1, 1.5])], "costs[1].costs[1]", "at most the preceding cost"),
        "beyond": ([([1.5, 2], [1, 0])], "costs[0].epsilons[0]", "larger than the budget of any release"),
        "repeated": ([([1, 1], [1, 0])], "costs[0].epsilons[1]"),
        "lengths": ([([0, 1], [1])], "costs[0]", "different lengths"),
        "empty": ([([], [])], "costs[0]"),
        "none": ([], "costs"),
        "a number": ([3.0], "costs[0]", "is not a curve"),
        "a text": ("abc", "costs", "are not curves"),
        "infinite": ([([0, 1], [math.inf, 0])], "costs[0].costs"),
        "negative": ([([-1, 1], [1, 0])], "costs[0].epsilons"),
    }
    return [
        *[(f"costs {name}", lambda costs=costs: best_budgets(1.0, costs), *rest)
          for name, (costs, *rest) in costs.items()],
        *each("α", (0.0, math.nan, -1.0), lambda alpha: best_budgets(alpha, [FALLING]), "alpha"),
        ("window", lambda: best_budgets(1.0, [FALLING], window=2), "window", "is too large"),
        ("several", lambda: best_budgets(1.0, [FALLING] * 2, Candidates([MILD, MILD])), "backward"),
        ("sizes", lambda: best_budgets(1.0, [FALLING] * 2, MILD, np.eye(3)), "forward"),
        ("tolerance", lambda: best_budgets(1.0, [FALLING], tolerance=-1), "tolerance"),
    ]  # type: ignore[list-item]  # fmt: skip


def series() -> list[Row]:
    wrong = ([], [0.1, -0.1], [math.nan], [math.inf], [[0.1]], "abc")
    ends_of_windows = ((-1, 2), (2, 1), (0, 4), (0.5, 2))
    return [
        *each("budgets", wrong, lambda epsilons: leakage.temporal(epsilons, MILD), "epsilons"),
        *each("window", ends_of_windows, lambda ends: leakage.window(FOUR, *ends, MILD), "st"),
        ("width", lambda: windows(FOUR, 5), "width"),
        ("one too few", lambda: leakage.forward(FOUR, Varying([MILD, MILD])), "forward", "3 matrices for 4 releases"),
        ("for ever", lambda: leakage.supremum(0.1, Varying([MILD])), "backward", "changes with time"),
        ("no candidate", lambda: Candidates([]), "candidates"),
        ("a number of candidates", lambda: Candidates(3), "candidates"),  # type: ignore[arg-type]
        ("a text of candidates", lambda: Candidates("ab"), "candidates"),
        ("a number of steps", lambda: Varying(3), "steps"),  # type: ignore[arg-type]
        ("nobody", lambda: leakage.users([0.1], []), "users"),
        ("no budgets", lambda: leakage.users(None, [User(MILD)]), "users[0].epsilons"),
        ("negative", lambda: leakage.users(None, [User(MILD, epsilons=[1, -1])]), "users[0].epsilons[1]"),
        (
            "lengths",
            lambda: leakage.users([0.1] * 2, [User(MILD), User(MILD, epsilons=[0.1] * 3, name="bob")]),
            "users[1] (bob).epsilons",
        ),
    ]


def sizes() -> list[Row]:
    says = "another number of states"
    return [
        ("temporal", lambda: leakage.temporal([0.1, 0.2], MILD, THREE), "forward", says),
        ("supremum", lambda: leakage.supremum(0.1, MILD, THREE), "forward", says),
        ("constant", lambda: leakage.constant_budget(1.0, MILD, THREE), "forward", says),
        ("allocation", lambda: leakage.allocate_budget(1.0, 5, MILD, Candidates([None, THREE])), "forward", says),
        ("accountant", lambda: leakage.Accountant(1.0, MILD, THREE), "forward", says),
        ("window", lambda: leakage.window(FOUR, 0, 2, MILD, THREE), "forward", says),
        ("windows", lambda: windows(FOUR[:3], 2, Varying([MILD, MILD]), THREE), "forward", says),
        ("varying", lambda: leakage.temporal([0.1] * 3, None, Varying([MILD, THREE])), "forward", says),
    ]


def losses() -> list[Row]:
    alphas = (-1.0, -1e-300, math.nan, None, "1", ["1"], 1j, [0.5, "b"], [[1], [1, 2]], [1, -2], np.array([1.0, -2.0]))
    routes = {"1": cao2019.algorithm1, "3": cao2019.algorithm3, "5": cao2019.algorithm5}
    rows = each("loss", alphas, LossFunction(MILD), "alpha")
    for name, route in routes.items():
        rows += each(f"algorithm {name}", alphas, lambda alpha, route=route: route(MILD, alpha), "alpha")
    return rows + refused_matrices(LossFunction, MATRICES | SPARSE)


def programs() -> list[Row]:
    rows = each(
        "α", ([-0.1], [np.nan], "1", [], [[1.0, 2.0]], None, [1j]), lambda a: loss_by_programs(MILD, a), "alpha"
    )
    return [
        *rows,
        ("infinite α", lambda: loss_by_programs(MILD, [np.inf]), "alphas[0]", "between 0 and 20"),
        ("α above 20", lambda: loss_by_programs(MILD, [1.0, 20.001]), "alphas[1]"),
        *refused_matrices(lambda P: loss_by_programs(P, 1.0), MATRICES | UNKNOWN),
        ("method", lambda: loss_by_programs(MILD, 1.0, "simplex"), "method", "dinkelbach"),  # type: ignore[arg-type]
        ("no method", lambda: loss_by_programs(MILD, 1.0, None), "method"),  # type: ignore[arg-type]
        *each("solver", ("cplex", "block", 3), lambda name: loss_by_programs(MILD, 1.0, solver=name), "solver"),
        ("options", lambda: loss_by_programs(MILD, 1.0, options=3), "options"),  # type: ignore[arg-type]
        ("prune", lambda: loss_by_programs(MILD, 1.0, prune="no"), "prune"),  # type: ignore[arg-type]
    ]


def pairs() -> list[Row]:
    alphas = (20.001, -1.0, math.nan)
    q, d = [0.8, 0.2], [0.2, 0.8]
    return [
        *each("α", alphas, lambda alpha: leakage.fractional(q, d, alpha), "alpha"),
        ("α of 50", lambda: leakage.fractional(q, d, 50.0), "alpha", "Use LossFunction"),
        ("lengths", lambda: leakage.fractional(q, [1.0], 1.0), "d", "differs in length"),
        ("sum", lambda: leakage.fractional([0.7, 0.2], d, 1.0), "q", "does not sum to 1"),
        ("negative", lambda: leakage.fractional(q, [1.2, -0.2], 1.0), "d[1]"),
        ("method", lambda: leakage.fractional(q, d, 1.0, "newton"), "method"),  # type: ignore[arg-type]
    ]


def chains() -> list[Row]:
    says = "is a row of zeros"
    counts = {"counts": np.eye(2)}
    keywords: list[tuple[dict[str, Any], str]] = [
        ({"smoothing": 0.1}, "smoothing"),
        ({"smoothing": -0.1} | counts, "smoothing"),
        ({"smoothing": np.nan} | counts, "smoothing"),
        ({"counts": np.eye(3)}, "counts"),
        ({"counts": [1, 2]}, "counts"),
        ({"counts": [[1, -1], [0, 1]]}, "counts[0,1]"),
        ({"counts": [[1, np.inf], [0, 1]]}, "counts[0,1]"),
    ]
    return [
        *[(f"{given}", lambda given=given: MarkovChain(np.eye(2), **given), path) for given, path in keywords],
        ("open as a chain", lambda: MarkovChain(OPEN), "matrix[1]", says),
        ("open, at rest", lambda: OPEN.stationary(), "matrix", 'ends = "stay"'),
        ("open, reversed", lambda: OPEN.reverse([0.5, 0.5]), "matrix", "has 1 unknown rows of 2"),
        ("open among chains", lambda: VaryingChain.of([np.eye(2), OPEN]), "chains[1]", says),
        ("open in algorithm 1", lambda: cao2019.algorithm1(OPEN, 1.0), "P", says),
        ("open steps", lambda: builders.transitions(OPEN), "P[1]", says),
        ("open adversary", lambda: tracing.Adversary(OPEN, [0.5, 0.5]), "transition", 'ends = "stay"'),
        ("zeros", lambda: MarkovChain(ZEROS), "matrix[1]", 'ends = "stay"'),
        ("zeros in traces", lambda: MarkovChain.from_traces([[0, 1]], 2), "traces", 'ends="stay"'),
        ("mixture", lambda: MarkovChain.from_traces([[0, 1]], 2, ends="mixture"), "ends", '"any" or "stay"'),
        ("none", lambda: MarkovChain.from_counts(np.eye(2), ends=None), "ends"),
        ("no end", lambda: OpenChain(np.eye(2)), "matrix", "has no unknown row"),
        ("no row", lambda: OpenChain(np.zeros((2, 2))), "matrix", "has no known row"),
        ("no row of one", lambda: OpenChain([[0.0]]), "matrix", "has no known row"),
        ("open sum", lambda: OpenChain([[0.5, 0.4], [0, 0]]), "matrix[0]", "does not sum to 1"),
        ("open shape", lambda: OpenChain([[0.5, 0.5, 0], [0, 0, 0]]), "matrix", "wrong shape"),
        ("open negative", lambda: OpenChain([[1.5, -0.5], [0, 0]]), "matrix[0,1]"),
        ("open nan", lambda: OpenChain([[math.nan, 0.5], [0, 0]]), "matrix[0,0]"),
    ]


def estimates() -> list[Row]:
    def use(traces: Any, n: int = 2, **given: Any) -> Callable[[], object]:
        return lambda: leakage.correlations_from_traces(traces, n, **given)

    return [
        ("no step", use([[0]]), "traces", "hold no step"),
        ("a state too many", use([[0, 5]]), "traces[0][1]"),
        *[(f"ends {ends}", use([[0, 1]], ends=ends), "ends", '"any" or "stay"') for ends in ("mixture", None, 1)],
        ("border", use([[0, 1]], border="wall"), "border"),
        ("no border", use([[0, 1]], border="state"), "border", "do not record steps that leave"),
    ]


DOORS = [budgets, budgets_of_least_cost, series, sizes, losses, programs, pairs, chains, estimates]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_mistakes_are_refused(door: Callable[[], list[Row]]) -> None:
    assert_closed(door())
