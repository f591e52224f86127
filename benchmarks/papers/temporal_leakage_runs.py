"""Compute the rows of Figures 3 to 9 of Cao et al. (2019), on continuous releases under temporal correlations.

The matrices are those of the paper: printed matrices, random matrices, and the identity after Laplacian smoothing
(Equation 28). A small parameter s of the smoothing means strong correlation. Missing parameters of Figure 5 follow from
the four cases of the paper's Theorem 11.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from leakage.matrices import random_matrix
from leakage.routes import routes
from mechdesign import leakage
from mechdesign.errors import CorrelationWarning
from mechdesign.leakage._loss import log_ratio
from papers.experiments import Experiment, Row

__all__ = ["ALLOCATION", "LOSS", "OVER_TIME", "RUNTIME", "SMOOTHED", "SUPREMA", "UTILITY"]

Floats = NDArray[np.float64]

MODERATE = [[0.8, 0.2], [0.0, 1.0]]
STRONGEST = [[1.0, 0.0], [0.0, 1.0]]
BOTH_WAYS = [[0.8, 0.2], [0.1, 0.9]]
SYMMETRIC = [[0.8, 0.2], [0.2, 0.8]]
EXAMPLE_4 = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
# The last case is not in the paper: ε is slightly below ln(1/0.8), beyond which there is no supremum.
CASES = (
    ("(a) q = 1, d = 0", STRONGEST, 0.23),
    ("(b) q = 0.8, d = 0", MODERATE, 0.23),
    ("(c) q = 0.8, d = 0.1", BOTH_WAYS, 0.23),
    ("(d) q = 0.8, d = 0", MODERATE, 0.15),
    ("(e) q = 0.8, d = 0", MODERATE, 0.2231),
)


def smoothed(n: int, s: float) -> Floats:
    """Return the strongest correlation after Laplacian smoothing with s (Equation 28)."""
    return np.asarray(leakage.smooth(np.eye(n), s))


def _paired_as_in_the_paper(compute: Callable[..., Iterator[Row]]) -> Callable[..., list[Row]]:
    """Let an experiment combine matrices that do not belong to one chain, as the paper's examples do."""

    @functools.wraps(compute)
    def rows(**parameters: object) -> list[Row]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CorrelationWarning)
            return list(compute(**parameters))

    return rows


@_paired_as_in_the_paper
def over_time(*, steps: int, epsilon: float) -> Iterator[Row]:
    """Give the backward, the forward and the whole leakage of each release, for three degrees of correlation."""
    budgets = np.full(steps, epsilon)
    for name, matrix in (("none", None), ("moderate", MODERATE), ("strongest", STRONGEST)):
        columns = {
            "BPL": leakage.backward(budgets, matrix),
            "FPL": leakage.forward(budgets, matrix),
            "TPL": leakage.temporal(budgets, matrix, matrix),
        }
        for step in range(steps):
            found = {key: values[step] for key, values in columns.items()}
            yield {"correlation": name, "epsilon": epsilon, "step": step + 1} | found


@_paired_as_in_the_paper
def loss(*, largest: float, count: int) -> Iterator[Row]:
    """Give L(α) of Example 4, and the loss of each pair of rows (q, d), numbered from 1.

    Rows of kind "curve" are values at equal steps, and rows of kind "piece" are the ends of the pieces of L. Rows of
    kind "transition" contain a pair and the α at which its maximising set changes (Theorem 8).
    """
    matrix = np.array(EXAMPLE_4)
    whole = leakage.LossFunction(matrix, cache=False)
    tables = leakage.cao2019.algorithm2(matrix)
    # Algorithm 2 goes through all rows d, and for each d through all other rows q.
    names = [f"({q + 1}, {d + 1})" for d, q in permutations(range(len(matrix)), 2)]

    def row(kind: str, alpha: float, pair: str) -> Row:
        values = [float(log_ratio(tables.G[k], tables.D[k], alpha).max()) for k in range(len(names))]
        return {"kind": kind, "alpha": alpha, "pair": pair, "L": whole(alpha)} | dict(zip(names, values, strict=True))

    yield from (row("curve", alpha, "") for alpha in np.linspace(0, largest, count).tolist())
    yield from (row("piece", alpha, "") for alpha in whole.pieces.start.tolist())
    for name, points in zip(names, tables.until.tolist(), strict=True):
        yield from (row("transition", alpha, name) for alpha in points if 0 < alpha < math.inf)


@_paired_as_in_the_paper
def suprema(*, steps: list[int]) -> Iterator[Row]:
    """Give BPL step by step, and its supremum by Theorem 11, which may be infinite."""
    for case, matrix, epsilon in CASES:
        function = leakage.LossFunction(matrix, cache=False)
        limit = function.supremum(epsilon)
        series = leakage.backward(np.full(max(steps), epsilon), function)
        for step in steps:
            yield {"case": case, "epsilon": epsilon, "step": step, "BPL": series[step - 1], "supremum": limit}


@_paired_as_in_the_paper
def runtime(
    *, sizes: list[int], programs: list[int], steps: list[int], alphas: list[float], size: int, repeats: int
) -> Iterator[Row]:
    """Time the computation of leakage by number of states, by number of releases and by α, and precomputation alone.

    The linear programs are solved by HiGHS, up to the sizes in `programs`. Seconds are processor time. The column
    `value` contains the computed leakage.
    """
    for n in sizes:
        P = random_matrix(n)
        if n in programs:
            lfp = lambda P=P: max(leakage.fractional(q, d, 0.1) for q, d in permutations(P, 2))  # noqa: E731
            yield _timing("by states", n, "linear programs", lfp, 1)
        for name, prepare in routes(10.0).items():
            function = prepare(P)
            if name != "Algorithm 1":
                yield _timing("precomputation", n, name, lambda prepare=prepare, P=P: prepare(P)(0.1), repeats)
            yield _timing("by states", n, name, lambda f=function: f(0.1), repeats)
    P = random_matrix(size)
    for T in steps:
        for name, prepare in routes((T + 1) * 0.1).items():
            yield _timing("by releases", T, name, lambda prepare=prepare, T=T: _released(prepare(P), T, 0.1), repeats)
    for name, prepare in routes(max(alphas)).items():
        function = prepare(P)
        for alpha in alphas:
            yield _timing("by α", alpha, name, lambda f=function, a=alpha: f(a), repeats)


def _timing(panel: str, x: float, route: str, call: Callable[[], float], repeats: int) -> Row:
    """Time a call: the least of several measurements, because other work on the machine only adds time."""
    best = math.inf
    for _ in range(repeats):
        count, clock = 0, time.process_time()
        while not count or time.process_time() - clock < 0.01:
            value = call()
            count += 1
        best = min(best, (time.process_time() - clock) / count)
        if count * best > 2:
            break
    return {"panel": panel, "x": float(x), "route": route, "seconds": best, "value": value}


def _released(function: Callable[[float], float], steps: int, epsilon: float) -> float:
    leaked = 0.0
    for _ in range(steps):
        leaked = function(leaked) + epsilon
    return leaked


@_paired_as_in_the_paper
def strengths(*, sizes: list[int], smoothing: list[float], epsilons: list[float], steps: list[int]) -> Iterator[Row]:
    """Give BPL at each step under correlations of different strength, its supremum, and the step that reaches 90 %.

    The largest number of states is combined only with the least s of the paper, 0.005.
    """
    for n in sizes:
        for s in smoothing if n == min(sizes) else [0.005]:
            function = leakage.LossFunction(smoothed(n, s), cache=False)
            for epsilon in epsilons:
                series = leakage.backward(np.full(2000, epsilon), function)
                limit = function.supremum(epsilon)
                most = 1 + int(np.argmax(series >= 0.9 * limit))
                same = {"states": n, "s": s, "epsilon": epsilon, "supremum": limit, "nearly": most}
                yield from (same | {"step": step, "BPL": series[step - 1]} for step in steps)


@_paired_as_in_the_paper
def allocation(*, alpha: float, steps: int) -> Iterator[Row]:
    """Spread the budget by Algorithm 7, which gives all releases the same ε, and by Algorithm 8."""
    constant = leakage.constant_budget(alpha, SYMMETRIC, BOTH_WAYS)
    for name, budgets in (
        ("Algorithm 7", np.full(steps, constant)),
        ("Algorithm 8", leakage.allocate_budget(alpha, steps, SYMMETRIC, BOTH_WAYS)),
    ):
        leaked = leakage.temporal(budgets, SYMMETRIC, BOTH_WAYS)
        for step in range(steps):
            yield {"algorithm": name, "alpha": alpha, "step": step + 1, "epsilon": budgets[step], "TPL": leaked[step]}


@_paired_as_in_the_paper
def utility(
    *, alpha: float, states: int, smoothing: float, lengths: list[int], strengths: list[float], length: int
) -> Iterator[Row]:
    """Give the mean absolute Laplace noise, 1/ε_t at release t, by the number of releases and by s."""
    cases = [("by releases", smoothing, steps) for steps in lengths]
    cases += [("by s", s, length) for s in strengths]
    functions = {s: leakage.LossFunction(smoothed(states, s), cache=False) for s in {s for _, s, _ in cases}}
    for panel, s, steps in cases:
        both = functions[s], functions[s]
        for name, budgets in (
            ("Algorithm 7", np.full(steps, leakage.constant_budget(alpha, *both))),
            ("Algorithm 8", leakage.allocate_budget(alpha, steps, *both)),
        ):
            noise = float(np.mean(1 / budgets))
            yield {"panel": panel, "s": s, "steps": steps, "algorithm": name, "noise": noise, "alone": 1 / alpha}


OVER_TIME = Experiment(
    "temporal_leakage_over_time",
    over_time,
    small={"steps": 5, "epsilon": 0.1},
    full={"steps": 10, "epsilon": 0.1},
    keys=("correlation", "step"),
    spread={"BPL": 1e-9, "FPL": 1e-9, "TPL": 1e-9},
)
LOSS = Experiment(
    "temporal_leakage_loss",
    loss,
    small={"largest": 4.0, "count": 9},
    full={"largest": 4.0, "count": 81},
    keys=("kind", "alpha", "pair"),
    spread={"L": 1e-9},
)
SUPREMA = Experiment(
    "temporal_leakage_suprema",
    suprema,
    small={"steps": [1, 10, 100]},
    full={"steps": [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 300, 1000, 3000]},
    keys=("case", "epsilon", "step"),
    spread={"BPL": 1e-9, "supremum": 1e-9},
)
RUNTIME = Experiment(
    "temporal_leakage_runtime",
    runtime,
    small={"sizes": [5, 10], "programs": [5], "steps": [1, 5], "alphas": [0.1, 1.0], "size": 10, "repeats": 1},
    full={
        "sizes": [5, 10, 20, 40, 60],
        "programs": [5, 10, 20],
        "steps": [1, 5, 20, 100, 300, 1000],
        "alphas": [0.01, 0.1, 1.0, 5.0, 10.0, 15.0, 20.0],
        "size": 50,
        "repeats": 3,
    },
    keys=("panel", "x", "route"),
    spread={"value": 1e-6},
)
SMOOTHED = Experiment(
    "temporal_leakage_smoothed",
    strengths,
    small={"sizes": [5, 10], "smoothing": [0.001, 0.005, 0.05], "epsilons": [1.0, 0.1], "steps": [1, 10, 100]},
    full={
        "sizes": [50, 200],
        "smoothing": [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0],
        "epsilons": [1.0, 0.1],
        "steps": [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150],
    },
    keys=("states", "s", "epsilon", "step"),
    spread={"BPL": 1e-9, "supremum": 1e-9, "nearly": 0.0},
)
ALLOCATION = Experiment(
    "temporal_leakage_allocation",
    allocation,
    small={"alpha": 1.0, "steps": 6},
    full={"alpha": 1.0, "steps": 30},
    keys=("algorithm", "step"),
    spread={"epsilon": 1e-9, "TPL": 1e-9},
)
UTILITY = Experiment(
    "temporal_leakage_utility",
    utility,
    small={"alpha": 2.0, "states": 5, "smoothing": 0.001, "lengths": [5, 20], "strengths": [0.01, 1.0], "length": 10},
    full={
        "alpha": 2.0,
        "states": 50,
        "smoothing": 0.001,
        "lengths": [2, 5, 10, 20, 30, 40, 50],
        "strengths": [0.01, 0.05, 0.1, 0.5, 1.0],
        "length": 10,
    },
    keys=("panel", "s", "steps", "algorithm"),
    spread={"noise": 1e-6},
)
