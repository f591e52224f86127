from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, leave_pictures_blank, well, write

from mechdesign.base._cache import VARIABLE


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests out of the user's cache."""
    monkeypatch.setenv(VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def blank_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of pages blank, but for a test that asks for `drawn`."""
    if "drawn" not in request.fixturenames:
        leave_pictures_blank(monkeypatch)


@pytest.fixture
def drawn() -> None:
    """Draw the pictures of pages, although other tests of the file leave them blank."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return tmp_path / write(SPECIFICATION)


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give an export that nobody changes."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.toml").write_text(SPECIFICATION, encoding="utf-8")
    well("design", folder / "s.toml", "-o", folder / "out", "--no-report")
    return folder / "out"


@pytest.fixture
def made(original: Path, tmp_path: Path) -> Path:
    """Give an export that may be damaged, as made in this folder."""
    return Path(shutil.copytree(original, tmp_path / "made"))
