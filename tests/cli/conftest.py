from __future__ import annotations

import pytest
from cli_examples import SPECIFICATION, run
from matplotlib.figure import Figure

from mechdesign.base._cache import VARIABLE


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests out of the user's cache."""
    monkeypatch.setenv(VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def blank_pictures(monkeypatch):
    """Leave the pictures of released traces blank: drawing them takes longer than all else that a release does."""
    for drawing in ("over_time_picture", "trace_picture"):
        monkeypatch.setattr(f"mechdesign.report._trace_figures.{drawing}", lambda *_: Figure())


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SPECIFICATION, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.toml").write_text(SPECIFICATION, encoding="utf-8")
    result = run("design", folder / "s.toml", "-o", folder / "out", "--no-report")
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture
def made(original, tmp_path):
    """Give an export that may be damaged."""
    for path in original.iterdir():
        (tmp_path / "made").mkdir(exist_ok=True)
        (tmp_path / "made" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "made"
