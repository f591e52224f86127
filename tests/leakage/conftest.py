from __future__ import annotations

import pytest

from mechdesign.base._cache import VARIABLE


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests out of the user's cache."""
    monkeypatch.setenv(VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))
