"""The script that makes the pictures of the pages runs with the package as it is."""

import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.long
def test_every_picture_of_the_pages_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    pictures = importlib.import_module("pictures")
    assert {f"{name}.png" for name in pictures.PICTURES} <= {path.name for path in (DOCS / "pictures").iterdir()}
    for name, make in pictures.PICTURES.items():
        with pictures.report_style():
            assert make().axes, name
