"""What several tests of solvers ask for."""

from __future__ import annotations

import pytest

from mechdesign.solve._blocks import outside, stages


@pytest.fixture
def _tiny(monkeypatch):
    """Let programs of a few rows begin with the columns of one of two."""
    monkeypatch.setattr(stages, "_FEWEST", 2)


@pytest.fixture
def _few(monkeypatch, _tiny):
    """Let small programs use few bounds, and begin with the columns of one of two."""
    monkeypatch.setattr(outside, "_WORTH_NEAR", 2)
    monkeypatch.setattr(outside, "_NEAR", 5)
