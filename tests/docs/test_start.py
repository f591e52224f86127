"""The front door of the site: numbers are those that are stored, lines fit, and every error has its row."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pages import blocks

import mechdesign as md

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
START = sorted((DOCS / "start").glob("*.md"))
sys.path.append(str(DOCS / "_ext"))

pytest.importorskip("sphinx", reason="the extra docs is not installed")

import served  # noqa: E402
import town  # noqa: E402

WIDEST = 88


def name(page):
    return str(page.relative_to(DOCS).with_suffix(""))


def wide_lines(page):
    """Return the lines of code that are too wide; text that is only read may be as wide as what prints it."""
    found = [block for block in blocks(page) if block.language not in ("text", "csv") and block.language[:1] != "{"]
    return [line for block in found for line in block.text.splitlines() if len(line) > WIDEST]


def result(file, key):
    return json.loads((DOCS / "results" / f"{file}.json").read_text(encoding="utf-8"))["values"][key]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name)
def test_lines_of_code_fit(page):
    assert not wide_lines(page)


def test_a_wide_line_is_found_and_text_is_not_code(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{'x' * WIDEST}\n{'y' * (WIDEST + 1)}\n```\n\n```text\n{'z' * 200}\n```\n")
    assert wide_lines(page) == ["y" * (WIDEST + 1)]


@pytest.mark.parametrize("page", START, ids=name)
def test_a_page_is_short(page):
    prose = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    # The table of errors is looked up, not read.
    assert len(re.findall(r"\w+", prose)) <= (1100 if page.stem == "errors" else 750)


@pytest.mark.parametrize("page", [*START, DOCS / "index.md"], ids=name)
def test_output_says_something(page):
    shown = [
        line
        for block in blocks(page)
        if block.language in ("pycon", "console")
        for line in block.text.splitlines()
        if line.strip() and not line.startswith((">>> ", "... ", "$ "))
    ]
    empty = [line for line in shown if line.strip() in ("True", "False", "None", "...")]
    assert len(empty) <= len(shown) / 10


def exceptions():
    found = [getattr(md.errors, name) for name in dir(md.errors)]
    return {kind.__name__ for kind in found if isinstance(kind, type) and issubclass(kind, Exception)}


def test_every_error_and_warning_is_explained():
    text = (DOCS / "start" / "errors.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+(?:Error|Warning))`", text))
    assert named == exceptions()
    assert {"InputError", "RevealedWarning"} <= named


def test_the_headline_is_the_stored_measurement():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    less = "planar Laplace, moved to the nearest cell, less"
    remapped = "planar Laplace, each output replaced by the best answer, less"
    assert f"## {result('same_epsilon', less):.0%} less error at the same ε".replace("%", " %") in text
    assert f"{result('same_epsilon', remapped):.0%} less than planar Laplace".replace("%", " %") in text


def test_the_landing_page_designs_the_measured_town():
    page = next(block.text for block in blocks(DOCS / "index.md") if block.language == "python")
    names = {}
    exec(page.replace("design = md.design(problem)", ""), names)
    mine, theirs = names["problem"], town.town(1.0)
    assert np.array_equal(mine.prior, theirs.prior)
    assert np.array_equal(mine.cost, theirs.cost)


def test_stored_gaps_are_small():
    for file, most in (("same_epsilon", 1e-6), ("requirements", 1e-3), ("epsilons", 1e-4)):
        values = json.loads((DOCS / "results" / f"{file}.json").read_text(encoding="utf-8"))["values"]
        gaps = [value for key, value in values.items() if key.endswith("gap")]
        assert gaps
        assert max(gaps) <= most


def test_a_wheel_that_cannot_be_built_is_no_wheel(tmp_path, monkeypatch):
    monkeypatch.setattr(served, "PROJECT", tmp_path)
    assert not served.build_wheel(tmp_path / "downloads")
    assert not list(tmp_path.rglob("*.whl"))
