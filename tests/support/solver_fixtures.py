"""Fixtures of tests that call many solvers; a `conftest.py` imports them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mechdesign.solve import _registry as registry


@pytest.fixture(scope="session")
def loaded() -> None:
    """Import the packages of all solvers, so that no test waits for them."""
    for name in ("highs", "scipy", "cvxpy"):
        registry.find(name).load()


@pytest.fixture
def pdlp_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PDLP run in this process, where it does not wait for another one to start."""
    here = replace(registry.find("highs-pdlp"), apart=math.inf, deaf=False)
    monkeypatch.setitem(registry._SOLVERS, "highs-pdlp", here)
