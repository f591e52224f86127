from __future__ import annotations

import pytest
from cli_examples import leave_pictures_blank


@pytest.fixture(autouse=True)
def _blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures: what is added from outside is no picture."""
    leave_pictures_blank(monkeypatch)
