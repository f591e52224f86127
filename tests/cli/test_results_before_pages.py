"""What fails after the work is done has written and shown its results first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import ReportError
from mechdesign.report import _saving as saving

SPECIFICATION = """
domain.labels = ["a", "b"]
prior.uniform = true
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
"""


def fail(*_, **__):
    raise ValueError("nothing can be drawn")


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.fixture(autouse=True)
def _specified(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SPECIFICATION, encoding="utf-8")


def test_a_design_is_written_although_its_report_cannot_be_drawn(monkeypatch):
    monkeypatch.setattr("mechdesign.report._design_page.html", fail)
    done = run("design", "s.toml", "-o", "out")
    assert done.exit_code == 2
    assert "the design in out is complete; only additional files, such as a page, are missing" in done.stderr
    assert "(nothing can be drawn)" in done.stderr
    assert "expected cost" in done.stdout
    assert md.verify("out").holds
    with pytest.raises(ReportError):
        saving.save(md.specification.parse(SPECIFICATION).design(), "python")
    assert md.verify("python").holds


def test_what_draws_is_loaded_before_anything_is_solved(monkeypatch):
    monkeypatch.setitem(sys.modules, "mechdesign.report._design_page", None)
    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", fail)
    done = run("design", "s.toml", "-o", "out")
    assert (done.exit_code, Path("out").exists()) == (2, False)
    assert "figures cannot be drawn" in done.stderr


def test_a_sweep_keeps_its_rows_although_its_report_cannot_be_drawn(monkeypatch):
    monkeypatch.setattr("mechdesign.runs._sweep_page.html", fail)
    asked = md.sweep.parse(SPECIFICATION + 'sweep = { "privacy.0.epsilon" = [1, 2] }')
    with pytest.raises(ReportError, match="all rows were written to swept"):
        md.sweep.run(asked, "swept", jobs=1)
    assert len(Path("swept/results.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("module", "line", "shown"),
    [
        ("mechdesign.report._audit_page.page", ["audit", "made", "-o", "page.html"], "tight"),
        ("mechdesign.report._compare_page.html", ["compare", "made", "made", "-o", "page.html"], "cost"),
    ],
)
def test_what_was_computed_is_shown_although_its_page_cannot_be_drawn(monkeypatch, module, line, shown):
    md.specification.parse(SPECIFICATION).design().save("made")
    monkeypatch.setattr(module, fail)
    done = run(*line)
    assert done.exit_code == 70
    assert shown in done.stdout
