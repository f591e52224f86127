"""Check the leakage of chains with unknown rows by brute force: all sets of columns of all pairs of rows, in 60 digits.

    python benchmarks/evidence/ends.py [--seed 34] [--chains 500] [--traces 2000]

The random chains have 2 to 5 states; some rows are missing, and every third chain has zeros among its other entries.
Each missing row is replaced by each unit row, and then by a random row. The worst unit rows attain the loss, and no row
exceeds it. Forward and backward matrices are counted in random traces by `correlations_from_traces`, and compared with
an independent count. The script exits with 1 if anything differs.
"""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "leakage"))

from leakage_brute import best_of, close, subset_points

from harness import options


def chain(generator: np.random.Generator, index: int) -> np.ndarray:
    """Return a matrix (n, n) whose last rows are zero."""
    n = int(generator.integers(2, 6))
    missing = int(generator.integers(1, min(n, 4)))
    weights = generator.exponential(size=(n, n)) ** 2 + 1e-3
    if index % 3 == 0:
        weights[generator.uniform(size=(n, n)) < 0.2] = 0.0
        weights[np.arange(n), generator.integers(0, n, n)] += 0.1
    weights[n - missing :] = 0.0
    totals = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, totals, out=np.zeros((n, n)), where=totals > 0)


def wrong_any(matrix: np.ndarray, alpha: float, generator: np.random.Generator) -> bool:
    """Return whether some rows leak more than the loss, or unit rows do not reach it."""
    n, value = len(matrix), md.leakage.LossFunction(matrix)(alpha)
    known = matrix[matrix.any(axis=1)]
    missing = n - len(known)
    units = itertools.combinations_with_replacement(range(n), missing)
    worst = max(best_of(subset_points(np.vstack([known, np.eye(n)[list(chosen)]])), alpha) for chosen in units)
    drawn = np.vstack([known, generator.dirichlet(np.full(n, 0.3), missing)])
    return not close(value, worst) or best_of(subset_points(drawn), alpha) > value * (1 + 1e-12) + 1e-15


def wrong_counts(generator: np.random.Generator) -> bool:
    """Return whether the chains of random traces differ from an independent count."""
    n = int(generator.integers(1, 7))
    traces = [generator.integers(0, n, generator.integers(1, 6)).tolist() for _ in range(int(generator.integers(1, 5)))]
    steps = [pair for trace in traces for pair in itertools.pairwise(trace)]
    if not steps:
        return False
    states = sorted({state for trace in traces for state in trace})
    for ends in ("any", "stay"):
        found = md.leakage.correlations_from_traces(traces, n, ends=ends)
        both = ((found.forward, steps), (found.backward, [(b, a) for a, b in steps]))
        for made, pairs in both:
            for row, now in enumerate(states):
                left = [after for before, after in pairs if before == now]
                unit = [float(state == now and ends == "stay") for state in states]
                expected = [left.count(state) / len(left) for state in states] if left else unit
                if not np.allclose(made.matrix[row], expected, rtol=1e-12, atol=0):
                    return True
    return False


def main() -> None:
    given = options(__doc__, seed=34, chains=500, traces=2000)
    generator = np.random.default_rng(given.seed)
    alphas = (0.1, 1.0, 5.0)
    chains = [chain(generator, index) for index in range(given.chains)]
    wrong = sum(wrong_any(matrix, alpha, generator) for matrix in chains for alpha in alphas)
    lone = [matrix for matrix in chains if (~matrix.any(axis=1)).sum() == 1 and matrix[matrix.any(axis=1)].all()]
    formula = sum(
        not math.isclose(
            md.leakage.LossFunction(matrix)(alpha),
            math.log1p((1 - matrix[matrix > 0].min()) * math.expm1(alpha)),
            rel_tol=1e-13,
        )
        for matrix in lone
        for alpha in alphas
    )
    miscounted = sum(wrong_counts(generator) for _ in range(given.traces))
    print(f"seed {given.seed}, {given.chains} chains at {len(alphas)} values of alpha")
    print(f"{wrong} of {given.chains * len(alphas)} losses differ from brute force")
    print(
        f"one missing row and no zero: {formula} of {len(lone) * len(alphas)} differ from ln(1 + (1 - m)(e^alpha - 1))"
    )
    print(f"{miscounted} of {given.traces} sets of traces are counted otherwise than by hand")
    sys.exit(bool(miscounted or formula or wrong))


if __name__ == "__main__":
    main()
