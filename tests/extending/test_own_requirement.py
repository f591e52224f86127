"""A requirement of one's own, as metric privacy with a matrix of weights, from a problem to a bundle that verifies."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import MetricWarning

WARDS = md.Domain.from_labels(["north", "east", "south"])


# --8<-- [start:weights]
def within_factors(factors: dict[tuple[int, int], float], secrets: int) -> md.MetricPrivacy:
    """Bound p(o|s) ≤ factor · p(o|t) for the listed ordered pairs (s, t), and for no others."""
    weights = np.full((secrets, secrets), np.inf)
    np.fill_diagonal(weights, 0)
    for pair, factor in factors.items():
        weights[pair] = np.log(factor)
    return md.MetricPrivacy(1, weights)


# --8<-- [end:weights]


# --8<-- [start:problem]
factors = {(0, 1): 4, (1, 0): 4, (1, 2): 9, (2, 1): 6}
with pytest.warns(MetricWarning):
    requirement = within_factors(factors, 3)
problem = md.Problem([0.5, 0.3, 0.2], 1 - np.eye(3), [requirement], secrets=WARDS, observables=WARDS)
# --8<-- [end:problem]


def test_from_weights_to_a_verified_bundle(tmp_path: Path) -> None:
    design = md.design(problem)
    md.save(design, tmp_path / "wards", report=False)
    assert md.verify(tmp_path / "wards").holds
    rows = md.Channel.load(tmp_path / "wards").numerators.astype(object)
    for (s, t), factor in factors.items():
        assert all(one <= Fraction(factor) * other for one, other in zip(rows[s], rows[t], strict=True)), (s, t)


def test_pairs_without_a_weight_are_bounded_by_paths_alone() -> None:
    """Between 0 and 2 the listed factors imply 4 · 9 and 6 · 4, and the channel of least cost attains both."""
    rows = md.design(problem).channel.matrix
    assert (rows[0] / rows[2]).max() == pytest.approx(36, rel=1e-9)
    assert (rows[2] / rows[0]).max() == pytest.approx(24, rel=1e-9)
