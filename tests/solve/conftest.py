from __future__ import annotations

import pytest

from mechdesign.solve import find


@pytest.fixture(scope="session")
def loaded() -> None:
    """Import the packages of all solvers, so that no test waits for them."""
    for name in ("highs", "scipy", "cvxpy"):
        find(name).load()
