"""Totals of counts near the limits of 64 bits are refused before anything is charged, never wrapped."""

from __future__ import annotations

import numpy as np
import pytest
from releases import release_counts

import mechdesign as md
from mechdesign.errors import InputError

T = md.tables
RELEASES = {
    "ordered": lambda counts, ledger: release_counts(counts, 1, 1, ledger=ledger),
    "ordered hierarchical": lambda counts, ledger: release_counts(counts, 1, 1, "ordered-hierarchical", ledger=ledger),
    "hierarchical": lambda counts, ledger: release_counts(counts, len(counts), 1, "hierarchical", ledger=ledger),
}


def test_no_total_wraps() -> None:
    for counts in (
        [2**61] * 8 + [5], [2**61] * 4, [2**61] * 8, [2**61, 1], [2**60, 2**60, 1], np.full(9, 2**61),
        np.full(8, 2**61, dtype=np.uint64), np.full(4, 2.0**61),
    ):  # fmt: skip
        for name, release in RELEASES.items():
            ledger = md.Ledger(epsilon=10)
            with pytest.raises(InputError, match="too many records") as caught:
                release(counts, ledger)
            assert caught.value.path == "counts", name
            assert ledger.spent.epsilon == 0, name


def test_the_largest_totals_are_released() -> None:
    for counts in ([2**61], [2**60, 2**60], [2**61 - 3, 1, 2]):
        for name, release in RELEASES.items():
            assert release(counts, None).records == sum(counts), name


def test_known_counts_are_compared_with_exact_sums() -> None:
    place = T.Domain({"a": range(4)})
    policy = T.Policy.full(place, constraints=[([True, True, True, False], 0)])
    with pytest.raises(InputError, match="differs from the count"):
        policy.check_counts(np.array([2**63 - 1, 2**63 - 1, 2, 0]))
