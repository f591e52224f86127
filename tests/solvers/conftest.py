"""What several tests of solvers ask for."""

from __future__ import annotations

import pytest

from mechdesign.solvers.ipm import stages


@pytest.fixture
def _tiny(monkeypatch):
    """Let programs of a few rows begin with the columns of one of two."""
    monkeypatch.setattr(stages, "_FEWEST", 2)
