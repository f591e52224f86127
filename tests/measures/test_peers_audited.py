"""Recipes: what other packages return, audited as it was returned; those that are not installed are left out."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linprog

import mechdesign as md

DOMAIN = md.Domain.grid(3, 3, 3.0, 3.0)
DISTANCE = md.distances.euclidean(DOMAIN)
PRIOR = md.Prior.from_counts(np.arange(1, 10)).probabilities
EPSILON = 1.0


def program() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return cost, inequalities and equations of the least-cost channel, as one would write them by hand."""
    n = len(PRIOR)
    inequalities = []
    for s in range(n):
        for t in range(n):
            if s != t:
                for o in range(n):
                    row = np.zeros((n, n))
                    row[s, o], row[t, o] = 1.0, -math.exp(EPSILON * DISTANCE[s, t])
                    inequalities.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones(n))
    return (PRIOR[:, None] * DISTANCE).ravel(), np.array(inequalities), np.zeros(len(inequalities)), sums, np.ones(n)


@pytest.mark.parametrize("method", ["highs-ds", "highs-ipm"])
def test_highs(method: str) -> None:
    cost, inequalities, limits, sums, ones = program()
    answer = linprog(cost, inequalities, limits, sums, ones, (0, None), method=method)
    assert answer.status == 0
    found = md.audit(answer.x.reshape(9, 9), DISTANCE, prior=PRIOR, cost=DISTANCE)
    # Optimal says the solver; the channel keeps ε only to the solver's tolerance, if at all.
    assert found.epsilon > EPSILON * (1 - 1e-6)
    assert found.cost is not None
    assert found.cost == pytest.approx(float(answer.fun), rel=1e-6)
    exact = md.design(md.Problem(PRIOR, DISTANCE, [md.MetricPrivacy(1, DISTANCE)])).channel
    assert md.audit(exact, DISTANCE).holds(1)


QIF = """
import json, sys
import numpy as np, qif
task = json.load(sys.stdin)
distance, prior = np.array(task["distance"]), np.array(task["prior"])
found = qif.mechanism.d_privacy.min_loss_given_d(
    prior, len(prior), lambda s, t: float(distance[s, t]), lambda s, o: float(distance[s, o]))
geometric = qif.mechanism.d_privacy.geometric(4, 0.5)
json.dump({"optimal": np.array(found).tolist(), "geometric": np.array(geometric).tolist()}, sys.stdout)
"""


def test_qif() -> None:
    pytest.importorskip("qif", reason="libqif is not installed: it only serves as a peer here")
    task = json.dumps({"distance": (EPSILON * DISTANCE).tolist(), "prior": PRIOR.tolist()})
    # A process of its own: two copies of one solver may take each other's symbols.
    done = subprocess.run([sys.executable, "-c", QIF], input=task, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    found = md.audit(answer["optimal"], DISTANCE, prior=PRIOR, cost=DISTANCE)
    assert found.epsilon > EPSILON * (1 - 1e-6)
    line = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    assert md.audit(answer["geometric"], line).epsilon == pytest.approx(0.5, rel=1e-9)


def test_opendp() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: it only serves as a peer here")
    dp.enable_features("contrib")
    probability, categories = 0.6, ["a", "b", "c", "d"]
    measurement = dp.m.make_randomized_response(categories, probability)
    claimed = measurement.map(1)
    matrix = np.full((4, 4), (1 - probability) / 3)
    np.fill_diagonal(matrix, probability)
    found = md.audit(matrix, md.distances.hamming(4))
    assert found.epsilon == pytest.approx(claimed, rel=1e-12)
    # OpenDP rounds what it claims up.
    assert found.holds(claimed * (1 + 1e-15))
    drawn = np.bincount([categories.index(measurement("b")) for _ in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(drawn, found.matrix[1], atol=0.05)
