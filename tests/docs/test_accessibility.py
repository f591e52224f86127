"""The check of pages by axe-core: it finds planted faults, in the mode that has them, and nothing on a clean page."""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SCRIPT = PROJECT / "docs" / "accessibility.py"

spec = importlib.util.spec_from_file_location("accessibility", SCRIPT)
assert spec is not None
assert spec.loader is not None
accessibility = importlib.util.module_from_spec(spec)
sys.modules["accessibility"] = accessibility
spec.loader.exec_module(accessibility)

CLEAN = """<!DOCTYPE html><html lang="en"><head><title>Clean</title><style>
p { color: #111; background: #fff; } @media (prefers-color-scheme: dark) { p { color: %s; background: #222; } }
</style></head><body><main><h1>Clean</h1><p>Words.</p></main></body></html>"""


@pytest.fixture(scope="module")
def checker():
    pytest.importorskip("playwright", reason="playwright is not installed: the session accessible of nox fetches it")
    if accessibility.find_axe() is None or accessibility.find_chromium() is None:
        pytest.skip("axe-core or Chromium is not there: the session accessible of nox fetches axe-core")
    with accessibility.open_checker() as found:
        yield found


def test_planted_faults_are_found(checker, tmp_path):
    assert accessibility.find_missed(checker, tmp_path) == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("colour", "modes"), [("#eee", []), ("#444", ["dark"])])
def test_each_mode_is_checked(checker, tmp_path, colour, modes):
    page = tmp_path / "page.html"
    page.write_text(CLEAN % colour)
    found = list(checker.check(page.as_uri(), "page"))
    assert [(each.mode, each.rule) for each in found] == [(mode, "color-contrast") for mode in modes]
    for each in found:
        assert re.match(r"page, dark: color-contrast \(serious\), 1 elements\n    p: ", str(each))


def test_one_page_of_each_kind_is_chosen(tmp_path):
    sizes = {"index": 1, "search": 1, "top": 5, "genindex": 9, "a/index": 1, "a/small": 2, "a/large": 9, "b/only": 1}
    for name, size in sizes.items():
        path = tmp_path / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x" * size)
    chosen = [str(path.relative_to(tmp_path)) for path in accessibility.choose_pages(tmp_path)]
    assert chosen == ["a/large.html", "b/only.html", "index.html", "search.html", "top.html"]


@pytest.mark.parametrize(
    ("variable", "value", "said"), [("AXE", "missing.js", "axe-core is not"), ("CHROMIUM", "", "Chromium is not")]
)
def test_what_is_missing_is_said_in_one_line(variable, value, said, tmp_path, monkeypatch):
    pytest.importorskip("playwright")
    (tmp_path / "axe.js").write_text("")
    monkeypatch.setenv("AXE", str(tmp_path / "axe.js"))
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(accessibility.shutil, "which", lambda name: None if said.startswith("Chromium") else name)
    with pytest.raises(SystemExit, match=said), accessibility.open_checker():
        pass


def test_the_extension_completes_pages():
    """Its doctests run, and what it does not know stays as it is."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    path = PROJECT / "docs" / "_ext" / "accessible.py"
    extension = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("accessible", path))
    spec.loader.exec_module(extension)
    results = doctest.testmod(extension)
    assert (results.failed, results.attempted) == (0, 2)
    definitions = "<dl>\n<dt>term</dt><dd>meaning</dd>\n</dl>"
    assert extension.replace_parameter_lists(definitions) == definitions


def test_without_pages_nothing_is_checked():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no page to check" in done.stderr
